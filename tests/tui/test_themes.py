"""The colours of every theme, by the formulas of those who measured eyes."""

import itertools

import pytest
from textual.color import Color

from filestore import CODES
from tui.formatting.findings import SEVERITY
from tui.widgets.drawing import DARK, LIGHT, LOOKS, MONO, THEMES, Palette, first_theme

BACKGROUNDS = ("background", "surface", "panel")
MEASURED = [theme for theme in THEMES if not theme.ansi]
"""What the others look like the terminal alone knows."""
COLOUR_BLIND = [theme for theme in THEMES if "colour-blind" in theme.name]
# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", IEEE TVCG 15(6), 2009, table 1, severity 1.0; for linear RGB.
EYES = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
APART = 20.0
"""CIE 1976 colour difference; 2.3 is what an eye just notices of two patches side by side."""


def named(theme):
    """A theme in the name of a test."""
    return theme.name


def palette(theme, background, *, no_color=False):
    """The styles of a theme on one of its backgrounds, and that background."""
    variables = {**theme.to_color_system().generate(), **theme.variables}
    behind = Color.parse(variables[background])
    return Palette(variables, behind, no_color=no_color), behind.rich_color.triplet


def linear(part):
    """A part of sRGB, 0 to 255, as light."""
    part /= 255
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def contrast(one, other):
    """The contrast ratio of WCAG 2.2."""
    light = [
        sum(
            weight * linear(part)
            for weight, part in zip((0.2126, 0.7152, 0.0722), rgb, strict=True)
        )
        for rgb in (one, other)
    ]
    return (max(light) + 0.05) / (min(light) + 0.05)


def least(role):
    """The contrast that a role needs: what may be overlooked, and the dots of a plot, need less."""
    return 3.0 if role == "quiet" or role.startswith("hue") else 4.5


def shown(style, behind):
    """Words and background of a style as they come to the eye."""
    ahead = style.color.triplet
    behind = behind if style.bgcolor is None else style.bgcolor.triplet
    return (behind, ahead) if style.reverse else (ahead, behind)


def lab(rgb, matrix):
    """A colour in CIE L*a*b* as an eye sees it."""
    light = [linear(part) for part in rgb]
    red, green, blue = (min(max(sum(map(float.__mul__, row, light)), 0.0), 1.0) for row in matrix)
    white = (
        (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047,
        0.2126729 * red + 0.7151522 * green + 0.0721750 * blue,
        (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883,
    )
    x, y, z = (
        part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116 for part in white
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("no_color", [False, True])
@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("theme", MEASURED, ids=named)
def test_all_words_can_be_read(theme, background, no_color):
    """Every role stands out from every background, also below a cursor, with or without colours."""
    styles, behind = palette(theme, background, no_color=no_color)
    for role in LOOKS:
        drawn = {"plain": styles.of(role), "cursor": styles.on_cursor(role)}
        if not role.startswith("hue"):
            drawn["resting"] = styles.on_resting(role)
        for where, style in drawn.items():
            assert contrast(*shown(style, behind)) >= least(role), (role, where)


@pytest.mark.parametrize("theme", MEASURED, ids=named)
def test_the_cursor_can_be_seen(theme):
    """The row under the cursor differs from the others, with the focus and without it."""
    styles, behind = palette(theme, "background")
    grounds = [styles.cursor.bgcolor.triplet, styles.resting.bgcolor.triplet, behind]
    plain = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    for one, other in itertools.combinations(grounds, 2):
        assert difference(one, other, plain) >= 10
    bare, behind = palette(theme, "background", no_color=True)
    assert bare.cursor.reverse
    assert bare.resting.underline
    assert not bare.of("text").reverse


def difference(one, other, matrix):
    """How different two colours are to an eye."""
    pairs = zip(lab(one, matrix), lab(other, matrix), strict=True)
    return sum((mine - its) ** 2 for mine, its in pairs) ** 0.5


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("theme", COLOUR_BLIND, ids=named)
def test_severities_differ_for_the_colour_blind(theme, background, eye):
    """Error, warning and good are colours apart to eyes without red or without green."""
    styles, _ = palette(theme, background)
    for one, other in itertools.combinations(("error", "warning", "good"), 2):
        colors = (styles.of(role).color.triplet for role in (one, other))
        assert difference(*colors, EYES[eye]) >= APART, (one, other)


def test_severities_differ_without_any_colour():
    """Each has a letter, a sign and a word of its own, and without colours a shape."""
    assert {code.severity for code in CODES.values()} <= SEVERITY.keys()
    signs, names, _ = zip(*SEVERITY.values(), strict=True)
    assert len(set(signs)) == len(set(names)) == len(SEVERITY)
    styles, _ = palette(MEASURED[-1], "background", no_color=True)
    shapes = {
        (style.bold, style.underline, style.italic)
        for style in map(styles.of, ("error", "warning", "note", "text"))
    }
    assert len(shapes) == 4


@pytest.mark.parametrize(
    ("environment", "saved", "theme"),
    [
        ({}, "", DARK),
        ({"COLORFGBG": "0;15"}, "", LIGHT),
        ({"COLORFGBG": "15;default;0"}, "", DARK),
        ({"COLORFGBG": "0;15"}, DARK, DARK),
        ({}, "a theme that is gone", DARK),
        ({"NO_COLOR": "1"}, LIGHT, MONO),
        ({"NO_COLOR": ""}, LIGHT, LIGHT),
    ],
)
def test_the_theme_to_begin_with(environment, saved, theme):
    """The one that was chosen, else what fits the terminal; none where colours are not wanted."""
    assert first_theme(environment, saved) == theme

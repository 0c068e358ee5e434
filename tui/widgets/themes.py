"""The colours: dark, light, two for the colour-blind, and one without any.

Severity is shown by letter, sign and word everywhere; colours only help the eye. For the
colour-blind it runs from blue to orange, the axis that red-green blindness leaves, in hues near
those of Okabe and Ito (Color Universal Design, 2008), and errors and warnings differ in lightness.
"""

from collections.abc import Mapping
from typing import Final

from textual.theme import Theme

DARK: Final = "filestore-dark"
LIGHT: Final = "filestore-light"
MONO: Final = "filestore-mono"

_RESTING: Final = "block-cursor-blurred-background"
"""Behind the row under the cursor of a list without the focus; Textual's own, which shines
through, leaves too little contrast."""


def _severity(*, error: str, warning: str) -> dict[str, str]:
    """Colours of severity as they are: Textual makes them more alike, to be read on anything."""
    return {"role-error": error, "role-removed": error, "role-warning": warning}


THEMES: Final = (
    Theme(
        name=DARK, dark=True, primary="#7aa2f7", secondary="#9aa5ce", accent="#e0af68",
        foreground="#d5d9e8", background="#16181f", surface="#1d2029", panel="#2a2f3d",
        success="#9ece6a", warning="#e8b45a", error="#ff7a93",
        variables={_RESTING: "#2b3a5c"},
    ),
    Theme(
        name=LIGHT, dark=False, primary="#1f5fbf", secondary="#4c566a", accent="#8a5a00",
        foreground="#1c1f26", background="#fbfbfa", surface="#f1f1ee", panel="#dfe1e6",
        success="#1d6b2f", warning="#855300", error="#b3142e",
        variables={_RESTING: "#cfdcf2"},
    ),
    Theme(
        name="filestore-colour-blind-dark", dark=True, primary="#56b4e9", secondary="#a9b4c2",
        accent="#f0e442", foreground="#e6e6e6", background="#111318", surface="#191c23",
        panel="#2a2f3a", success="#56b4e9", warning="#f0e442", error="#ff9b3d",
        variables={_RESTING: "#1f3b50", **_severity(error="#ff9b3d", warning="#fff6b8")},
    ),
    Theme(
        name="filestore-colour-blind-light", dark=False, primary="#005a93", secondary="#4c566a",
        accent="#5b4a00", foreground="#1a1a1a", background="#ffffff", surface="#f3f3f3",
        panel="#dedede", success="#005a93", warning="#5b4a00", error="#a04000",
        variables={_RESTING: "#c9dfee", **_severity(error="#a04000", warning="#2a2400")},
    ),
    Theme(
        name=MONO, dark=True, primary="#ffffff", secondary="#c8c8c8", accent="#ffffff",
        foreground="#e4e4e4", background="#000000", surface="#000000", panel="#303030",
        success="#e4e4e4", warning="#ffffff", error="#ffffff",
        variables={_RESTING: "#404040"},
    ),
)  # fmt: skip


def first_theme(environment: Mapping[str, str], saved: str) -> str:
    """The theme to begin with.

    `NO_COLOR` always means the one without: Textual turns colours to greys, and on the themes that
    take the terminal's own colours black on black.
    """
    if environment.get("NO_COLOR"):
        return MONO
    if saved in {theme.name for theme in THEMES}:
        return saved
    # COLORFGBG is foreground;background; 7 and 15 are light.
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if background in ("7", "15") else DARK

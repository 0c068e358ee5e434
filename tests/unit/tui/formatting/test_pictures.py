"""Pictures made of characters: what they say, whatever the points and whatever the screen."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tui.formatting import pictures
from tui.formatting.lines import plain

NUMBERS = st.floats(min_value=-5, max_value=5, allow_nan=False, width=32)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from("abcdefghijkl")), max_size=40)
SIZES = st.tuples(st.integers(1, 30), st.integers(1, 12))


def plot(points, width, height):
    groups = pictures.grouped([name for _, _, name in points]).groups
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    return groups, pictures.plotted(xs, ys, groups, width=width, height=height)


@given(POINTS, SIZES)
def test_every_point_is_in_the_map_once(points, size):
    """Each point is in one cell of the screen, and no cell is drawn without a point."""
    _, picture = plot(points, *size)
    members = [point for cell in picture.members.values() for point in cell]
    assert sorted(members) == list(range(len(points)))
    assert all(0 <= cell < size[0] * size[1] for cell in picture.members)
    assert all(point in picture.members[cell] for point, cell in enumerate(picture.cells))
    assert set(picture.dots) == set(picture.members)
    drawn = "".join(plain(pictures.map_lines(picture)).split("\n"))
    assert {cell for cell, shown in enumerate(drawn) if shown != " "} == set(picture.members)


@given(POINTS, SIZES)
def test_a_map_fills_its_screen_exactly(points, size):
    """A map has as many lines and columns as asked for, in dots and in letters."""
    _, picture = plot(points, *size)
    for letters in (False, True):
        lines = pictures.map_lines(picture, letters=letters)
        assert [sum(len(part.text) for part in one) for one in lines] == [size[0]] * size[1]
    assert plain(pictures.map_lines(picture, letters=True)).isascii()


@given(POINTS, SIZES)
def test_a_cell_has_the_colour_of_most_of_its_points(points, size):
    """The group that a cell shows has no fewer points in it than any other."""
    groups, picture = plot(points, *size)
    for cell, members in picture.members.items():
        inside = [groups[point] for point in members]
        assert inside.count(picture.groups[cell]) == max(map(inside.count, inside))


def test_corners_are_where_they_belong():
    """The largest y is on top, the largest x to the right, each a single dot."""
    picture = pictures.plotted([0, 1, 0, 1], [0, 0, 1, 1], [0] * 4, width=3, height=2)
    top, bottom = plain(pictures.map_lines(picture)).split("\n")
    assert top == "⠁ ⠈"
    assert bottom == "⡀ ⢀"


def test_points_in_one_place_are_in_the_middle():
    """Points that do not differ are still drawn."""
    picture = pictures.plotted([2.0, 2.0], [1.0, 1.0], [0, 0], width=5, height=3)
    assert list(picture.members) == [1 * picture.width + 2]


def test_marks_replace_dots():
    """The cursor's cell and cells of drifted files are told by shape, and the cursor wins."""
    picture = pictures.plotted([0, 1, 2], [0, 0, 0], [0, 1, 2], width=3, height=1)
    (drawn,) = pictures.map_lines(picture, drifted={0, 1}, at=1)
    assert plain([drawn])[:2] == "×◉"
    assert [part.role for part in drawn] == ["error", "mark", "hue2"]
    (letters,) = pictures.map_lines(picture, drifted={0}, at=1, letters=True)
    assert plain([letters]) == "X@c"


@given(st.lists(st.sampled_from("abcdefghijkl"), max_size=60))
def test_the_most_frequent_names_get_hues(names):
    """Eight names at most have a hue, none more frequent goes without, and all are counted."""
    known = pictures.grouped(names)
    named = dict(known.named)
    assert len(named) <= 8
    least = min(named.values(), default=0)
    without = {name for name in names if name not in named}
    assert all(names.count(name) <= least for name in without)
    assert sum(named.values()) + known.others[1] == len(names)
    assert known.others[0] == len(without)
    for name, group in zip(names, known.groups, strict=True):
        assert group == (list(named).index(name) if name in named else pictures.OTHERS)


def test_the_legend_names_groups_by_symbol_and_colour():
    """Every group, the rest, and both marks stand in the legend, in lines that fit."""
    known = pictures.grouped([*"aaabb", *"cdefghijkl"])
    said = plain(pictures.legend_lines(known, width=40, letters=True))
    for expected in ("a a 3", "b b 2", ". 4 other resources 4", "@ under the cursor", "X drifted"):
        assert expected in said
    assert all(len(one) <= 40 for one in said.split("\n"))


def test_the_legend_makes_names_safe():
    """A name that steers a terminal or fills the screen is spelt out and shortened."""
    said = plain(pictures.legend_lines(pictures.grouped(["\x1b[31m" + "n" * 99]), width=80))
    assert "\x1b" not in said
    assert "\\x1b[31m" in said
    assert "..." in said


def test_a_sample_is_named():
    """A picture of some of the texts says so, with both numbers."""
    said = plain([pictures.map_title(shown=20_000, total=1_000_000, explained=(0.25, 0.125))])
    assert "a sample of 20,000 of 1,000,000 texts" in said
    assert "38%" in said
    assert "all 3 texts" in plain([pictures.map_title(shown=3, total=3, explained=(0.5, 0.5))])
    sampled = plain([pictures.histogram_title("similarities", total=5000, sampled=1000)])
    assert sampled.endswith("a sample of 1,000 of 5,000 texts")
    whole = plain([pictures.histogram_title("sizes", total=1, sampled=0)])
    assert whole.endswith("  1 file")


@given(
    st.lists(st.integers(0, 1_000_000), min_size=1, max_size=100),
    st.integers(50, 150),
    st.integers(1, 50),
    st.booleans(),
)
def test_a_histogram_fits_and_counts_everything(counts, width, height, ascii_only):
    """No line is wider than the screen, no more lines than it has, and the counts add up."""
    edges = [100.0 * number for number in range(len(counts) + 1)]
    lines = pictures.histogram_lines(
        edges, counts, unit="bytes", width=width, height=height, ascii_only=ascii_only
    )
    said = plain(lines)
    if not any(counts):
        assert said == "nothing to count"
        return
    assert all(len(one) <= width for one in said.split("\n"))
    assert len(lines) <= max(height, 2)
    assert sum(int(one[-1].text.replace(",", "")) for one in lines[:-1]) == sum(counts)
    assert said.isascii() or not ascii_only


def test_bins_are_named_by_their_edges():
    """Whole numbers are shown as such, shares with two digits, the unit below."""
    sizes = plain(pictures.histogram_lines([0, 1000, 2000], [1, 2], unit="B", width=60, height=9))
    assert sizes.split("\n")[0].lstrip().startswith("0 – 1,000 ")
    assert sizes.split("\n")[-1].strip() == "B"
    shares = plain(pictures.histogram_lines([0, 0.5, 1], [1, 2], unit="c", width=60, height=9))
    assert "0.50 – 1.00" in shares


@given(st.floats(0, 1), st.integers(1, 80))
def test_a_bar_is_as_long_as_its_share(share, width):
    """A bar is right to an eighth of a cell, and what is more than nothing is seen."""
    drawn = pictures.bar(share, width)
    eighths = sum(8 if part == "█" else " ▏▎▍▌▋▊▉".index(part) for part in drawn)
    assert abs(eighths - share * width * 8) <= 1
    assert bool(drawn) is (share > 0)
    assert abs(len(pictures.bar(share, width, ascii_only=True)) - share * width) <= 1
    assert math.isclose(len(pictures.bar(1.0, width)), width)


def test_a_drift_bar_says_how_bad_it_is():
    """Errors outweigh warnings, notes are no drift, and the bar keeps its width."""
    assert pictures.drift_bar({"I": 3}, 10) == ()
    warned, failed = pictures.drift_bar({"W": 1}, 10), pictures.drift_bar({"E": 1, "W": 9}, 10)
    assert (warned[1].role, failed[1].role) == ("warning", "error")
    assert failed[1].text == "█████"
    assert len(plain([warned])) == len(plain([failed])) == 7
    assert plain([pictures.drift_bar({"E": 1}, 2, width=4, ascii_only=True)]) == "[##  ]"


def test_drifted_resources_are_listed_worst_first():
    """Resources with errors come first, those without drift not at all, the rest is counted."""
    resources = [
        ("calm.md", 5, {"I": 2}),
        ("warned.md", 4, {"W": 1}),
        ("broken.md", 8, {"E": 2, "W": 1}),
        ("worn.md", 4, {"W": 3}),
    ]
    said = plain(pictures.drift_lines(resources, width=80, height=3)).split("\n")
    assert said[0].startswith("broken.md")
    assert "2 errors, 1 warning in 8 chunks" in said[0]
    assert said[1].startswith("worn.md")
    assert said[2] == "and 1 more resource with drift"
    assert "no drift" in plain(pictures.drift_lines(resources[:1], width=80, height=9))


def test_a_pointed_cell_names_its_file():
    """The first file of a cell is named, the others are counted."""
    said = plain([pictures.cell_line(["chunked/a.md/chunk1.md", "chunked/b"], "a.md")])
    assert said == "a.md/chunk1.md  a.md  and 1 more here"
    assert "no text here" in plain([pictures.cell_line([], "")])

"""The map in characters: what it says, whatever the points and whatever the screen."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.formatting import plain, vector_map

NUMBERS = st.floats(min_value=-5, max_value=5, allow_nan=False, width=32)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from("abcdefghijkl")), max_size=40)
SIZES = st.tuples(st.integers(1, 30), st.integers(1, 12))


def plot(points, width, height):
    groups = vector_map.grouped([name for _, _, name in points]).groups
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    return groups, vector_map.plotted(xs, ys, groups, width=width, height=height)


@given(POINTS, SIZES)
def test_every_point_is_in_the_map_once(points, size):
    """Each point is in one cell of the screen, and no cell is drawn without a point."""
    _, picture = plot(points, *size)
    members = [point for cell in picture.members.values() for point in cell]
    assert sorted(members) == list(range(len(points)))
    assert all(0 <= cell < size[0] * size[1] for cell in picture.members)
    assert all(point in picture.members[cell] for point, cell in enumerate(picture.cells))
    assert set(picture.dots) == set(picture.members)
    drawn = "".join(plain(vector_map.map_lines(picture)).split("\n"))
    assert {cell for cell, shown in enumerate(drawn) if shown != " "} == set(picture.members)


@given(POINTS, SIZES)
def test_a_map_fills_its_screen_exactly(points, size):
    """A map has as many lines and columns as asked for, in dots and in letters."""
    _, picture = plot(points, *size)
    for letters in (False, True):
        lines = vector_map.map_lines(picture, letters=letters)
        assert [sum(len(part.text) for part in one) for one in lines] == [size[0]] * size[1]
    assert plain(vector_map.map_lines(picture, letters=True)).isascii()


@given(POINTS, SIZES)
def test_a_cell_has_the_colour_of_most_of_its_points(points, size):
    """The group that a cell shows has no fewer points in it than any other."""
    groups, picture = plot(points, *size)
    for cell, members in picture.members.items():
        inside = [groups[point] for point in members]
        assert inside.count(picture.groups[cell]) == max(map(inside.count, inside))


def test_corners_are_where_they_belong():
    """The largest y is on top, the largest x to the right, each a single dot."""
    picture = vector_map.plotted([0, 1, 0, 1], [0, 0, 1, 1], [0] * 4, width=3, height=2)
    top, bottom = plain(vector_map.map_lines(picture)).split("\n")
    assert top == "⠁ ⠈"
    assert bottom == "⡀ ⢀"


def test_points_in_one_place_are_in_the_middle():
    """Points that do not differ are still drawn."""
    picture = vector_map.plotted([2.0, 2.0], [1.0, 1.0], [0, 0], width=5, height=3)
    assert list(picture.members) == [1 * picture.width + 2]


def test_marks_replace_dots():
    """Selected cells and cells of drifted files are told by shape, and the selection wins."""
    picture = vector_map.plotted([0, 1, 2], [0, 0, 0], [0, 1, 2], width=3, height=1)
    (drawn,) = vector_map.map_lines(picture, drifted={0, 1}, selected={1})
    assert plain([drawn])[:2] == "×◉"
    assert [part.role for part in drawn] == ["error", "mark", "hue2"]
    (letters,) = vector_map.map_lines(picture, drifted={0}, selected={1}, letters=True)
    assert plain([letters]) == "X@c"


@given(st.lists(st.sampled_from("abcdefghijkl"), max_size=60))
def test_the_most_frequent_names_get_hues(names):
    """Eight names at most have a hue, none more frequent goes without, and all are counted."""
    known = vector_map.grouped(names)
    named = dict(known.named)
    assert len(named) <= 8
    least = min(named.values(), default=0)
    without = {name for name in names if name not in named}
    assert all(names.count(name) <= least for name in without)
    assert sum(named.values()) + known.others[1] == len(names)
    assert known.others[0] == len(without)
    for name, group in zip(names, known.groups, strict=True):
        assert group == (list(named).index(name) if name in named else vector_map.OTHERS)


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([], []),
        (["a.md", "b.md"], ["", ""]),
        (["a/x.md", "b/c/y.md", "z.md"], ["a/", "b/", ""]),
        (["all/a/x.md", "all/b/c/y.md", "all/z.md"], ["all/a/", "all/b/", "all/"]),
        (["all/a/x.md", "all/a/b/y.md"], ["all/a/", "all/a/b/"]),
    ],
)
def test_folders_are_told_apart(documents, expected):
    """Documents have the colour of the folder where their paths begin to differ."""
    assert vector_map.folders(documents) == expected


WAYS = ((1, 0), (-1, 0), (0, 1), (0, -1))


@given(POINTS, SIZES, st.sampled_from(WAYS))
def test_a_step_leads_to_the_next_point(points, size, way):
    """A step ends on a point in its direction, and stays only where there is none."""
    _, picture = plot(points, *size)
    right, down = way
    cells = {(cell % picture.width, cell // picture.width) for cell in picture.members}
    assert not cells or vector_map.next_cell(picture, -1, -1, right=right, down=down) in cells
    for x, y in cells:
        ahead = {to for to in cells if (to[0] - x) * right + (to[1] - y) * down > 0}
        to = vector_map.next_cell(picture, x, y, right=right, down=down)
        assert to in (ahead or {(x, y)})


def test_a_step_prefers_what_is_straight_ahead():
    """Of two points as far away, and of a nearer one that lies to the side, the one ahead."""
    picture = vector_map.plotted([0, 4, 1, 9], [0, 0, 9, 9], [0] * 4, width=10, height=5)
    assert vector_map.next_cell(picture, 0, 4, right=1, down=0) == (4, 4)
    assert vector_map.next_cell(picture, 0, 4, right=0, down=-1) == (1, 0)


@pytest.mark.parametrize("seed", range(8))
def test_the_keys_lead_to_every_point(seed):
    """From the first point of a map as large as a screen, none is out of reach."""
    chosen = random.Random(seed)
    xs, ys = ([chosen.gauss(0, 1) for _ in range(120)] for _ in "xy")
    picture = vector_map.plotted(xs, ys, [0] * 120, width=60, height=24)
    cells = {(cell % 60, cell // 60) for cell in picture.members}
    seen: set[tuple[int, int]] = set()
    left = [min(cells)]
    while left:
        seen |= {*left}
        ways = {
            vector_map.next_cell(picture, *at, right=right, down=down)
            for at in left
            for right, down in WAYS
        }
        left = [*ways - seen]
    assert seen == cells


def test_the_legend_names_groups_by_symbol_and_colour():
    """Every group, the rest, and both marks stand in the legend, in lines that fit."""
    known = vector_map.grouped([*"aaabb", *"cdefghijkl"])
    said = plain(vector_map.legend_lines(known, width=40, letters=True))
    for expected in ("a a 3", "b b 2", ". 4 other folders 4", "@ selected", "X drifted"):
        assert expected in said
    assert all(len(one) <= 40 for one in said.split("\n"))


def test_the_legend_makes_names_safe():
    """A name that steers a terminal or fills the screen is spelt out and shortened."""
    said = plain(vector_map.legend_lines(vector_map.grouped(["\x1b[31m" + "n" * 99]), width=80))
    assert "\x1b" not in said
    assert "\\x1b[31m" in said
    assert "..." in said


def test_a_sample_is_named():
    """A map of some of the texts says so, with both numbers."""
    said = plain([vector_map.map_title(shown=20_000, total=1_000_000, explained=(0.25, 0.125))])
    assert "a sample of 20,000 of 1,000,000 passages" in said
    assert "38%" in said
    assert "all 3 passages" in plain([vector_map.map_title(shown=3, total=3, explained=(0.5, 0.5))])


def test_a_pointed_cell_names_its_file():
    """The first file of a cell is named, the others are counted."""
    said = plain([vector_map.cell_line(["chunked/a.md/chunk1.md", "chunked/b"], "a.md")])
    assert said == "a.md/chunk1.md  a.md  and 1 more here"
    assert "no point here" in plain([vector_map.cell_line([], "")])

"""The map of the vectors, made of characters. Pure.

A cell holds two by four dots of braille and takes the colour of the group with most points in it.
One rule: without colour, or with ASCII alone, a letter takes its place.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Final

from msgspec import Struct

from filestore.browse import shown_path
from tui.formatting import Line, Role, Span, count, cut, line, span
from tui.formatting.findings import place_of

HUES: Final[tuple[Role, ...]] = (
    "hue0", "hue1", "hue2", "hue3", "hue4", "hue5", "hue6", "hue7",
)  # fmt: skip
OTHERS: Final = len(HUES)
"""The group of everything that has no hue of its own."""
_LETTERS: Final = "abcdefgh."
_BRAILLE: Final = 0x2800
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of a dot by its row and column in the cell (Unicode, chapter 21.1)."""
_NAME_WIDTH: Final = 28
WORKING: Final = line("map of the vectors: working …", "quiet")


class Plotted(Struct, frozen=True, kw_only=True):
    """Points put into the cells of a screen, line after line."""

    width: int
    height: int
    dots: Mapping[int, int]
    """Cell to the bits of its dots; cells without a point are not there."""
    groups: Mapping[int, int]
    """Cell to the group with most points in it; of several the first."""
    members: Mapping[int, Sequence[int]]
    """Cell to the numbers of its points."""
    cells: Sequence[int]
    """The cell of each point."""


class PointGroups(Struct, frozen=True, kw_only=True):
    """Names of points made into a few groups, the biggest first."""

    groups: Sequence[int]
    """Of each point, `OTHERS` for a small one."""
    named: tuple[tuple[str, int], ...]
    """Name and points of each group that has a hue."""
    others: tuple[int, int]
    """How many names and points have none."""


def folders(documents: Sequence[str]) -> list[str]:
    """The folder that each document lies in, no deeper than where they begin to differ."""
    above = [document.split("/")[:-1] for document in documents]
    levels = zip(*above, strict=False)
    shared = len(list(takewhile(lambda names: len(set(names)) == 1, levels)))
    return ["".join(f"{name}/" for name in names[: shared + 1]) for names in above]


def grouped(names: Sequence[str]) -> PointGroups:
    """Points by name: a hue for each of the most frequent names, the same for the same names."""
    ranked = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    number = {name: rank for rank, (name, _) in enumerate(ranked[:OTHERS])}
    rest = ranked[OTHERS:]
    return PointGroups(
        groups=[number.get(name, OTHERS) for name in names],
        named=tuple(ranked[:OTHERS]),
        others=(len(rest), sum(points for _, points in rest)),
    )


def plotted(
    xs: Sequence[float], ys: Sequence[float], groups: Sequence[int], *, width: int, height: int
) -> Plotted:
    """Put points into cells; both axes are stretched to fill the screen, y upwards."""
    across, down = _scaled(xs, 2 * width), _scaled(ys, 4 * height)
    highest = 4 * height - 1
    dots: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    cells: list[int] = []
    for point, (x, up) in enumerate(zip(across, down, strict=True)):
        y = highest - up
        cell = (y >> 2) * width + (x >> 1)
        dots[cell] = dots.get(cell, 0) | _DOTS[y & 3][x & 1]
        members.setdefault(cell, []).append(point)
        cells.append(cell)
    return Plotted(
        width=width,
        height=height,
        dots=dots,
        groups={cell: _most(groups, points) for cell, points in members.items()},
        members=members,
        cells=cells,
    )


def _scaled(values: Sequence[float], size: int) -> list[int]:
    if not values:
        return []
    low, high = min(values), max(values)
    if not high > low:
        return [size // 2] * len(values)
    scale = (size - 1) / (high - low)
    return [round((value - low) * scale) for value in values]


def _most(groups: Sequence[int], points: Sequence[int]) -> int:
    if len(points) == 1:
        return groups[points[0]]
    counted = Counter(groups[point] for point in points)
    return min(counted, key=lambda group: (-counted[group], group))


def next_cell(picture: Plotted, x: int, y: int, *, right: int, down: int) -> tuple[int, int]:
    """Column and row of the nearest cell with points in a direction; where none is, the same."""
    cells = [(cell % picture.width, cell // picture.width) for cell in picture.members]
    if (x, y) not in cells:
        return min(cells, key=lambda to: abs(to[0] - x) + 2 * abs(to[1] - y), default=(x, y))
    costs = {}
    for to in cells:
        # A cell is twice as high as wide.
        aside, below = to[0] - x, 2 * (to[1] - y)
        along, across = aside * right + below * down, abs(aside * down) + abs(below * right)
        if along > 0:
            # What lies more to the side has a key of its own, unless nothing else is there.
            costs[to] = across > along, along**2 + across**2
    return min(costs, key=lambda to: (costs[to], to), default=(x, y))


def map_lines(
    picture: Plotted,
    *,
    drifted: Collection[int] = (),
    selected: Collection[int] = (),
    letters: bool = False,
) -> list[Line]:
    """The map, as many lines as it is high.

    Args:
        picture: The points in their cells.
        drifted: Cells with a point whose file is not as it was indexed.
        selected: Cells with a point of what is under the cursor of the list, or marked there.
        letters: Whether letters distinguish groups, for screens without colour or braille.
    """
    lines: list[Line] = []
    for row in range(picture.height):
        spans = []
        for cell in range(row * picture.width, (row + 1) * picture.width):
            bits = picture.dots.get(cell)
            if cell in selected:
                drawn = Span("@" if letters else "◉", "mark")
            elif bits is None:
                drawn = Span(" ")
            elif cell in drifted:
                drawn = Span("X" if letters else "×", "error")
            else:
                group = picture.groups[cell]
                role = HUES[group] if group < OTHERS else "quiet"
                drawn = Span(_LETTERS[group] if letters else chr(_BRAILLE | bits), role)
            spans.append(drawn)
        runs = groupby(spans, key=lambda one: one.role)
        lines.append(tuple(Span("".join(one.text for one in run), role) for role, run in runs))
    return lines


def map_title(*, shown: int, total: int, explained: tuple[float, float]) -> Line:
    """What the map shows, and how much of the variance two dimensions explain."""
    texts = count(total, "passage")
    what = f"a sample of {shown:,} of {texts}" if shown < total else f"all {texts}"
    return (
        span("map of vectors  ", "title"),
        span(f"{what} · axes explain {sum(explained):.0%} of variance", "quiet"),
    )


def legend_lines(known: PointGroups, *, width: int, letters: bool = False) -> list[Line]:
    """Which colour, or letter, is which folder; and what the marks mean."""
    entries: list[Line] = [
        (Span("@" if letters else "◉", "mark"), Span(" selected  ", "quiet")),
        (Span("X" if letters else "×", "error"), Span(" drifted  ", "quiet")),
    ]
    entries += [
        _entry(_LETTERS[rank] if letters else "●", HUES[rank], name or "(no folder)", points)
        for rank, (name, points) in enumerate(known.named)
    ]
    names, points = known.others
    if names:
        other = count(names, "other folder")
        entries.append(_entry("." if letters else "●", "quiet", other, points))
    lines: list[Line] = []
    used = width + 1
    for entry in entries:
        length = sum(len(part.text) for part in entry)
        if used + length > width:
            lines.append(())
            used = 0
        lines[-1] = (*lines[-1], *entry)
        used += length
    return lines


def _entry(symbol: str, role: Role, name: str, points: int) -> Line:
    words = f" {cut(shown_path(name), _NAME_WIDTH)} {points:,}  "
    return Span(symbol, role), Span(words, "quiet")


def cell_line(paths: Sequence[str], resource: str) -> Line:
    """What is in the pointed cell of the map: the first of its files, how many more."""
    if not paths:
        return line("no point here: arrows go to the next one, enter shows its file", "quiet")
    more = f"  and {len(paths) - 1:,} more here" if len(paths) > 1 else ""
    return (span(place_of(paths[0]), "title"), span(f"  {resource}{more}", "quiet"))

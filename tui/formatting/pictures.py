"""Pictures made of characters: a map of points, histograms, bars. Pure.

A cell of the map holds two by four dots of braille and takes the colour of the group with most
points in it. One rule: without colour, or with ASCII alone, a letter takes its place.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final

from msgspec import Struct

from filestore.browse import shown_path
from tui.formatting.findings import place_of
from tui.formatting.lines import Line, Role, Span, count, cut, line, span

HUES: Final[tuple[Role, ...]] = (
    "hue0", "hue1", "hue2", "hue3", "hue4", "hue5", "hue6", "hue7",
)  # fmt: skip
OTHERS: Final = len(HUES)
"""The group of everything that has no hue of its own."""
MOST_BINS: Final = 40
TITLES: Final = {
    "map": "map of the vectors",
    "sizes": "sizes of chunk files",
    "similarities": "cosine of each text to its nearest other",
    "tree": "tree of summaries",
}
_LETTERS: Final = "abcdefgh."
_BRAILLE: Final = 0x2800
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of a dot by its row and column in the cell (Unicode, chapter 21.1)."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_NAME_WIDTH: Final = 28


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


class Grouped(Struct, frozen=True, kw_only=True):
    """Names of points made into a few groups, the biggest first."""

    groups: Sequence[int]
    """Of each point, `OTHERS` for a small one."""
    named: tuple[tuple[str, int], ...]
    """Name and points of each group that has a hue."""
    others: tuple[int, int]
    """How many names and points have none."""


def grouped(names: Sequence[str]) -> Grouped:
    """Points by name: a hue for each of the most frequent names, the same for the same names."""
    ranked = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    number = {name: rank for rank, (name, _) in enumerate(ranked[:OTHERS])}
    rest = ranked[OTHERS:]
    return Grouped(
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


def map_lines(
    picture: Plotted, *, drifted: Collection[int] = (), at: int | None = None, letters: bool = False
) -> list[Line]:
    """The map, as many lines as it is high.

    Args:
        picture: The points in their cells.
        drifted: Cells with a point whose file is not as it was indexed.
        at: The cell of the point under the cursor.
        letters: Whether letters distinguish groups, for screens without colour or braille.
    """
    lines: list[Line] = []
    for row in range(picture.height):
        cells = range(row * picture.width, (row + 1) * picture.width)
        spans = [_cell(picture, cell, cell in drifted, cell == at, letters) for cell in cells]
        runs = groupby(spans, key=lambda one: one.role)
        lines.append(tuple(Span("".join(one.text for one in run), role) for role, run in runs))
    return lines


def _cell(picture: Plotted, cell: int, drifted: bool, is_at: bool, letters: bool) -> Span:
    if is_at:
        return Span("@" if letters else "◉", "mark")
    bits = picture.dots.get(cell)
    if bits is None:
        return Span(" ")
    if drifted:
        return Span("X" if letters else "×", "error")
    group = picture.groups[cell]
    role = HUES[group] if group < OTHERS else "quiet"
    return Span(_LETTERS[group] if letters else chr(_BRAILLE | bits), role)


def map_title(*, shown: int, total: int, explained: tuple[float, float]) -> Line:
    """What the map shows, and how much of the variance two dimensions explain."""
    texts = count(total, "text")
    what = f"a sample of {shown:,} of {texts}" if shown < total else f"all {texts}"
    return (
        span(f"{TITLES['map']}  ", "title"),
        span(f"{what} · the two axes explain {sum(explained):.0%} of the variance", "quiet"),
    )


def legend_lines(known: Grouped, *, width: int, letters: bool = False) -> list[Line]:
    """Which colour, or letter, is which resource; and what the marks mean."""
    entries: list[Line] = [
        (Span("@" if letters else "◉", "mark"), Span(" under the cursor  ", "quiet")),
        (Span("X" if letters else "×", "error"), Span(" drifted  ", "quiet")),
    ]
    entries += [
        _entry(_LETTERS[rank] if letters else "●", HUES[rank], name or "(no resource)", points)
        for rank, (name, points) in enumerate(known.named)
    ]
    names, points = known.others
    if names:
        other = count(names, "other resource")
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
    """What stands in the pointed cell of the map: the first of its files, how many more."""
    if not paths:
        return line("no text here: arrows move, enter shows the file", "quiet")
    more = f"  and {len(paths) - 1:,} more here" if len(paths) > 1 else ""
    return (
        span(place_of(paths[0]), "title"),
        span(f"  {resource}{more}", "quiet"),
    )


def histogram_title(kind: str, *, total: int, sampled: int, resource: str | None = None) -> Line:
    """What a histogram counts.

    Args:
        kind: "sizes" or "similarities".
        total: How many there are.
        sampled: The size of the sample; 0 for all.
        resource: Whose alone they are; None for all of the store.
    """
    noun = "file" if kind == "sizes" else "text"
    of = "" if resource is None else f" of {shown_path(resource) or '(no resource)'}"
    what = f"a sample of {sampled:,} of {total:,} {noun}s" if sampled else count(total, noun)
    return span(f"{TITLES[kind]}{of}  ", "title"), span(what, "quiet")


def histogram_lines(
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    unit: str,
    width: int,
    height: int,
    ascii_only: bool = False,
) -> list[Line]:
    """A histogram, a line for each bin: from, to, a bar, how many; the unit below."""
    if not any(counts):
        return [line("nothing to count", "quiet")]
    # Neighbouring bins are merged where there is no room for all.
    step = -(-len(counts) // max(1, min(height - 1, MOST_BINS)))
    starts = range(0, len(counts), step)
    counts = [sum(counts[start : start + step]) for start in starts]
    edges = [*(edges[start] for start in starts), edges[-1]]
    whole = all(float(edge).is_integer() for edge in edges) and edges[-1] > 1
    ends = [f"{edge:,.0f}" if whole else f"{edge:.2f}" for edge in edges]
    labels = [f"{low} {'-' if ascii_only else '–'} {high}" for low, high in pairwise(ends)]
    label_width = max(map(len, labels))
    number_width = max(len(f"{number:,}") for number in counts)
    room = max(1, width - label_width - number_width - 3)
    most = max(counts)
    lines = [
        (
            Span(f"{label:>{label_width}} ", "quiet"),
            Span(bar(number / most, room, ascii_only=ascii_only), "hue0"),
            Span(f" {number:,}"),
        )
        for label, number in zip(labels, counts, strict=True)
    ]
    return [*lines, line(f"{'':>{label_width}} {unit}", "quiet")]


def bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """A bar as long as the share of a width; what is more than nothing is never invisible."""
    share = min(max(share, 0.0), 1.0)
    if ascii_only:
        return "#" * max(round(share * width), 1 if share else 0)
    eighths = max(round(share * width * 8), 1 if share else 0)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def drift_bar(
    found: Mapping[str, int], total: int, *, width: int = 5, ascii_only: bool = False
) -> Line:
    """How much of something drifted, as wide as is asked; nothing where nothing did."""
    drifted = sum(found.get(severity, 0) for severity in "EW")
    if not drifted:
        return ()
    role: Role = "error" if found.get("E") else "warning"
    share = drifted / max(total, drifted)
    drawn = bar(share, width, ascii_only=ascii_only)
    frame = ("[", "]") if ascii_only else ("▕", "▏")
    return Span(frame[0], "quiet"), Span(f"{drawn:<{width}}", role), Span(frame[1], "quiet")


def drift_lines(
    resources: Sequence[tuple[str, int, Mapping[str, int]]],
    *,
    width: int,
    height: int,
    ascii_only: bool = False,
) -> list[Line]:
    """The resources that drifted, the worst first: a bar, how much, of how many.

    Args:
        resources: Name, chunks, and findings by severity.
        width: Of the screen.
        height: Of the screen; what has no room is counted.
        ascii_only: Whether the screen shows no more than ASCII.
    """
    drifted = [item for item in resources if any(item[2].get(severity) for severity in "EW")]
    if not drifted:
        return [line("no drift is known in any resource", "good")]
    drifted.sort(key=lambda item: (-item[2].get("E", 0), -item[2].get("W", 0), item[0]))
    shown = drifted[: max(1, height - 1)]
    name_width = max(8, min(_NAME_WIDTH, width - 40))
    lines: list[Line] = []
    for name, chunks, found in shown:
        label = cut(shown_path(name) or "(no resource)", name_width)
        parts = [
            count(found[severity], noun)
            for severity, noun in (("E", "error"), ("W", "warning"))
            if found.get(severity)
        ]
        drawn = drift_bar(found, chunks, width=12, ascii_only=ascii_only)
        counts = Span(f" {', '.join(parts)} in {count(chunks, 'chunk')}")
        lines.append((Span(f"{label:<{name_width}} "), *drawn, counts))
    if len(drifted) > len(shown):
        more = count(len(drifted) - len(shown), "more resource")
        lines.append(line(f"and {more} with drift", "quiet"))
    return lines

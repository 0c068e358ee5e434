"""Lines for rows of lists: files and folders, documents and sections, summaries, neighbours. Pure.

One rule: what is wrong with a row says so with a sign and a word, never by colour alone.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from filestore import Finding
from filestore.browse import CHUNKS, CatalogNewerError, Measure, Row, StorePath, Tree, shown_path
from tui.formatting import Line, Role, Span, arrow, count, cut, end_of, error_lines, line, span
from tui.formatting.findings import SEVERITY, place_of

if TYPE_CHECKING:
    from filestore import FilestoreError
    from filestore.browse import Family, Neighbour

MOST_PLACE: Final = 60
"""Characters of the headings above a text in its row."""
_NOTHING: Final[Mapping[str, str]] = {
    "filter": "Nothing matches the filter; escape clears it.",
    "search": "No results; escape returns to the tree.",
    "looking": "Nothing is indexed; looking for files …",
}
"""Why there is nothing to show."""
_INDENT: Final = "  "
_LETTERS: Final = re.compile(r"[\W_]+")
_CHUNK: Final = re.compile(r"\A(?:chunk|summary)\d+-")
_MOST_INDENTS: Final = 8
"""Folders deeper than this are not indented further: no room would be left."""
_MOST_LEVELS: Final = 12
"""The same of summaries."""
STALE: Final[tuple[str, Role]] = (f"{SEVERITY['W'][0]} stale", SEVERITY["W"][2])
_STATES: Final[Mapping[str, tuple[str, Role]]] = {
    "fresh": ("", "text"),
    "changed": ("~ changed", "warning"),
    "gone": ("x gone", "error"),
}
"""A sign, a word and a role for a child; a fresh one needs none."""


class Shown(Struct, frozen=True, kw_only=True):
    """How a row is shown in its list."""

    name: str = ""
    """As it is shown of a folder or a document; of a chunk file the resource it is below. "" of a
    summary in place, which has no name that a person knows."""
    depth: int = 0
    """In how many folders it lies, or how many summaries are above it."""
    is_open: bool = False
    """Whether what is below it is shown."""
    is_circle: bool = False
    """Whether a summary is one of those above it, and so is not opened again."""
    matches: int | None = None
    """How many rows below it pass the filter; None without one."""
    findings: Sequence[Finding] = ()
    """Of a file."""
    severities: Mapping[str, int] = field(default_factory=dict)
    """Of a resource or a folder: findings by severity."""
    goes_on: bool = False
    """Whether a section is below the same headings as the one before it."""
    by_title: bool = False
    """Whether its title comes before its name."""
    title_above: str = ""
    """Of the summary above, or the name of the resource."""

    @property
    def arrow(self) -> Span:
        """The sign before a row that can be opened."""
        return Span(arrow(is_open=self.is_open), "quiet")


def file_row(row: Row, shown: Shown) -> Line:
    """A row of the tree of files, without its columns."""
    depth = shown.depth + 2 if row.kind == "section" else shown.depth
    indent = Span(_INDENT * min(depth, _MOST_INDENTS))
    if row.kind == "section":
        return (indent, *_section(row, goes_on=shown.goes_on))
    if row.kind == "summary" and not shown.name:
        return (indent, Span(f"{_INDENT * 2}summary  ", "quiet"), span(row.title, "title"))
    if row.kind in ("chunk", "summary"):
        name, arrow = chunk_name(row.path, shown.name), Span(_INDENT * 2)
    else:
        name, arrow = shown.name if row.kind != "resource" else row.resource, shown.arrow
        name = shown_path(name or "(no document)")
    # A title may be the name itself, with the signs that are escaped in what is shown.
    title = row.title if not repeats(shown_path(row.title), name) else ""
    role: Role = "text" if row.kind in ("document", "chunk", "summary") else "title"
    # Without a folder nothing is in front that others share.
    keeps_end = "/" in name.rstrip("/")
    named = span(name, role, keeps_end=keeps_end)
    parts = [named, *((Span("  "), span(title, "quiet")) if title else ())]
    if shown.by_title and title:
        parts = [span(title, role), Span("  "), span(name, "quiet", keeps_end=keeps_end)]
    if shown.matches is not None and shown.matches != row.children:
        parts.append(Span(f"  {shown.matches:,} of {row.children:,}", "quiet"))
    above = row.headings[:-1] if row.headings[-1:] == (row.title,) else row.headings
    if above:
        parts.append(span(f"  {' > '.join(above)}", "quiet"))
    return (indent, arrow, *parts)


def _section(row: Row, *, goes_on: bool) -> Line:
    """Its own heading, as far in as it is deep, then its first words; these alone of a second."""
    inner = Span(_INDENT * min(max(len(row.headings) - 1 + goes_on, 0), _MOST_INDENTS))
    if not row.headings or (goes_on and row.title):
        return (inner, span(row.title or "(no text)"))
    words = (span(f"  {row.title}", "quiet"),) if row.title else ()
    return (inner, span(row.headings[-1], "title"), *words)


def repeats(title: str, name: str) -> bool:
    """Whether a title says no more than the name of its file does."""
    last = name.rstrip("/").rpartition("/")[2]
    stem = _CHUNK.sub("", last.rpartition(".")[0])
    letters = _LETTERS.sub("", title).casefold()
    return letters in (_LETTERS.sub("", one).casefold() for one in (stem, last))


COLUMNS: Final[Mapping[str, int]] = {"size": 8, "date": 11, "sections": 7, "drift": 15}
"""The columns of a list in their usual order; how wide they are, with the space before them."""
_GIVE_WAY: Final = ("date", "size", "drift", "sections")
"""Which of them go first where a name would have no room; of drift letter and sign stay."""
_LEAST_NAME: Final = 30
"""Cells that a name and some words of its title need."""
_NAME_WITH_DRIFT: Final = 22
"""Cells that a name keeps before the words of drift and the number of passages go."""
_SHORT_DRIFT: Final = 5
_SHORT: Final = "drift in short"
SORTS: Final = ("name", "title", *COLUMNS)
"""What a list is sorted by; "title" also shows it before the name."""


def columns(row: Row, shown: Shown, measure: Measure | None, chosen: Sequence[str]) -> Line:
    """The columns of a row.

    Args:
        row: The row.
        shown: How it is shown.
        measure: Of a resource or document, where it is known.
        chosen: As `columns_for` gives them.
    """
    is_file = row.kind in ("section", "chunk", "summary")
    size_bytes = row.size_bytes if measure is None else measure.size_bytes
    where = f":{row.line}" if row.line else f"p. {row.page}" if row.page else ""
    words = {
        "size": size(size_bytes) if size_bytes is not None else "",
        "date": measure.day if measure is not None else "",
        "sections": where if is_file else f"{row.children:,}",
    }
    found: list[Span] = []
    for name in chosen:
        wide = COLUMNS.get(name, _SHORT_DRIFT)
        if name in words:
            found.append(span(f" {words[name][: wide - 1]:>{wide - 1}}", "quiet"))
            continue
        marks = finding_marks(shown.findings, row.excluded)
        marks += severity_marks(shown.severities, most=99)
        marks += [Span(" edited", "note")] if row.edited else []
        room = wide
        # The first is cut where it has to be, the others are whole or not there.
        for mark in marks:
            if len(mark.text) <= room or mark is marks[0]:
                found.append(Span(mark.text[:room], mark.role))
                room -= len(found[-1].text)
        found.append(Span(" " * room))
    return tuple(found)


def columns_for(room: int, wanted: Sequence[str]) -> list[str]:
    """The columns that a row with this room has besides its name, in their order."""
    widths = {name: COLUMNS[name] for name in wanted if name in COLUMNS}
    for name in _GIVE_WAY:
        name_width = _LEAST_NAME if name in ("date", "size") else _NAME_WITH_DRIFT
        if sum(widths.values()) <= room - name_width:
            break
        if name != "drift":
            widths.pop(name, None)
        elif name in widths:
            widths[name] = _SHORT_DRIFT
    return [_SHORT if width == _SHORT_DRIFT else name for name, width in widths.items()]


def heading_row(first: Row, resource: Row) -> Line:
    """A document above its files: its name below the source of its resource.

    Args:
        first: One of the files.
        resource: What they belong to.
    """
    return (Span("  "), span(shown_path(StorePath(document_name(first, resource))), "title"))


def document_name(file: Row, resource: Row) -> str:
    """The name of the document that a file was made from, below the source of its resource."""
    none = "(summaries)" if file.kind == "summary" else "(no document)"
    return file.source.removeprefix(f"{resource.source}/") if file.source else none


def severity_marks(found: Mapping[str, int], *, most: int = sys.maxsize) -> list[Span]:
    """How much is found of something, worst first; "99+" beyond the most that is counted."""
    return [
        Span(f" {severity}{min(found[severity], most):,}{'+' * (found[severity] > most)}", role)
        for severity, (_, _, role) in SEVERITY.items()
        if found.get(severity)
    ]


def finding_marks(found: Sequence["Finding"], excluded: str) -> list[Span]:
    """What is found of one file, worst first, and what keeps it out of answers."""
    parts: list[Span] = []
    for finding in sorted(found, key=lambda one: "EWI".index(one.severity)):
        sign, _, role = SEVERITY[finding.severity]
        parts.append(span(f" {finding.severity} {sign} {finding.code}", role))
    if excluded and all(finding.code != excluded for finding in found):
        parts.append(span(f" x {excluded}", "error"))
    return parts


def size(size_bytes: int) -> str:
    """A number of bytes in few characters."""
    amount = float(size_bytes)
    for unit in ("B", "KB", "MB"):
        if amount < 1_000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1_000
    return f"{amount:,.1f} GB"


def chunk_name(path: str, resource: str) -> str:
    """A path relative to its resource."""
    below = CHUNKS.chunk_path(StorePath(path))
    return shown_path(below.removeprefix(f"{resource}/") if resource else below)


def summary_row(row: Row, tree: Tree, shown: Shown) -> Line:
    """A row of the tree of summaries: a summary, or a text that one was made from."""
    sign = shown.arrow.text if row.children and not shown.is_circle else _INDENT
    indent = _INDENT * min(shown.depth, _MOST_LEVELS)
    # It says why it is stale itself.
    found = [finding for finding in shown.findings if finding.code != "summary-stale"]
    marks = [*finding_marks(found, ""), Span("  ")] if found else []
    parts = [Span(f"{indent}{sign}", "quiet"), *state_spans(row), *marks]
    if shown.is_circle:
        parts.append(Span("o is above already  ", "warning"))
    # A title without what the one above begins with, too.
    shared = shown.title_above.partition(": ")[0]
    title = row.title.removeprefix(f"{shared}: ") if shared else row.title
    if row.kind == "summary":
        parts.append(Span(f"L{row.level} ", "quiet"))
        parts.append(span(title or place_of(row.path, tree), "title"))
        parts.append(Span(f"  {made_from(row.children)}", "quiet"))
    else:
        parts.append(span(title or place_of(row.path, tree)))
        if row.title:
            parts.append(span(f"  {place_of(row.path, tree)}", "quiet"))
    return tuple(parts)


def state_spans(row: Row) -> list[Span]:
    """What is the matter with a file of the tree of summaries.

    It comes before its name: a narrow screen cuts the end of a row.
    """
    words, role = _STATES[row.state]
    found = [Span(f"{words}  ", role)] if words else []
    if row.why:
        found.append(Span(f"{STALE[0]}  ", STALE[1]))
    if row.edited and row.kind == "summary":
        found.append(Span("edited  ", "note"))
    return found


def made_from(children: int) -> str:
    """A number of files that a summary was made from."""
    return "1 child" if children == 1 else f"{children:,} children"


def family_rows(family: "Family", tree: Tree) -> list[tuple[StorePath, Line]]:
    """The summaries above a file, the highest first, itself, and its children."""
    below = Shown(title_above=family.node.title)
    rows = [
        *((node, Span("^ ", "note"), Shown()) for node in reversed(family.above)),
        (family.node, Span("* ", "mark"), Shown()),
        *((node, Span("  - ", "quiet"), below) for node in family.children),
    ]
    return [(row.path, (sign, *summary_row(row, tree, shown)[1:])) for row, sign, shown in rows]


def neighbour_row(neighbour: "Neighbour") -> Line:
    """One of the nearest texts: how near, its heading and first words."""
    parts = [Span(f"{neighbour.cosine:>5.2f} ", "note")]
    if neighbour.headings:
        parts += [span(neighbour.headings[-1], "title"), Span("  ")]
    return (*parts, span(cut(neighbour.words, MOST_PLACE)))


def neighbour_place(one: "Neighbour", tree: Tree, room: int) -> Line:
    """Its document and the place in it, in a third of a row with this room."""
    path = place_of(one.path, tree)
    # The name of a chunk says no more than its heading.
    path = path if tree.has_sections else os.path.dirname(path) or path
    place = f":{one.line}" if one.line else f" p. {one.pages[0]}" if one.pages else ""
    return (span(f"  {end_of(path, room // 3 - len(place))}{place}", "quiet"),)


def pages_words(pages: Sequence[int]) -> str:
    """Some pages, the first ones of many."""
    numbers = ", ".join(str(page) for page in pages[:12]) + (" …" if len(pages) > 12 else "")
    return f"{'p.' if len(pages) == 1 else 'pp.'} {numbers}"


# Around a list


def count_line(
    *, shown: int, resources: int, chunks: int | None, filtered: str, has_sections: bool
) -> Line:
    """Below the tree: what there is of it, and what the filter leaves."""
    above, below = ("document", "passage") if has_sections else ("document", "chunk")
    message = count(resources, above)
    if filtered:
        # The filter is in the box above.
        return line(f"{count(shown, below)} of {message}  esc: all", "quiet")
    return line(message if chunks is None else f"{message} · {count(chunks, below)}", "quiet")


def filtering_line(filtered: str) -> Line:
    """Below the tree, while it is not known what a filter leaves."""
    return (Span("filtering … ", "note"), span(cut(filtered, 40), "match"))


def absence_lines(error: "FilestoreError") -> list[Line]:
    """Shown where the index cannot be read, with the key that rebuilds it."""
    if isinstance(error, FileNotFoundError):
        return [
            line("This store has no index yet:", "title"),
            (Span("i", "key"), Span(" builds it from its files", "text")),
        ]
    if isinstance(error, CatalogNewerError) or "sync" not in error.remedy:
        return error_lines(error)
    rebuilds = Span("i", "key"), Span(" rebuilds the index from its files", "text")
    return [line(shown_path(error.message), "error"), rebuilds]


def unindexed_lines(files: int, *, is_short: bool = False) -> list[Line]:
    """Shown for files that no search finds, with the key that changes it.

    Args:
        files: How many.
        is_short: Whether there is little room for it.
    """
    if not files:
        return []
    if is_short:
        return [(span(f"{files:,} not indexed: ", "warning"), Span("i", "key"), Span(" indexes"))]
    verb, them = ("is", "it") if files == 1 else ("are", "them")
    return [
        line(f"{count(files, 'file')} {verb} not indexed yet:", "warning"),
        (Span("i", "key"), Span(f" indexes {them}")),
    ]


def nothing_lines(*, why: str, index: Sequence[Line] = (), is_written: bool = True) -> list[Line]:
    """The detail where there is nothing under the cursor.

    Args:
        why: "filter", "search", "looking" while the files are not known yet, or
            "empty" for a store with nothing in it.
        index: Lines about the index.
        is_written: Whether the files of the store are chunk files, which commands write.
    """
    if why in _NOTHING:
        return [line(_NOTHING[why], "quiet")]
    if index:
        return list(index)
    if not is_written:
        return [
            line("No documents in this folder yet.", "title"),
            (),
            line("Put some there; then i indexes them.", "quiet"),
        ]
    return [
        line("Nothing in this store yet.", "title"),
        (),
        line("filestore add PATH…", "key"),
        line("adds documents; ':' takes that command here.", "quiet"),
    ]


# Folders of documents


def is_folder(name: object) -> bool:
    """Whether a name is that of a folder."""
    return isinstance(name, str) and name.endswith("/")


def folder_above(name: str) -> str:
    """The folder that something lies in, "" for none."""
    above = name.removesuffix("/").rpartition("/")[0]
    return f"{above}/" if above else ""


def way_of(name: str) -> tuple[str, ...]:
    """All folders that a document or folder lies in, from the outermost, and itself."""
    way = [name]
    while folder := folder_above(way[-1]):
        way.append(folder)
    return tuple(reversed(way))


def own_name(name: str) -> str:
    """A name without the folders above; that of a folder keeps its "/"."""
    return name.removeprefix(folder_above(name))

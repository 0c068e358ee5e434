"""Lines for documents in place: folders, documents, sections. Pure.

One rule: every text of a line is safe for a terminal, whatever the file or heading it came from.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from filestore.browse import shown_path
from tui.formatting.chunks import MOST_PLACE, MOST_TITLE, finding_marks, severity_marks, size
from tui.formatting.lines import Line, Span, arrow, cut, field, line, span

if TYPE_CHECKING:
    from filestore import Finding
    from filestore.browse import About, AboutResource, DocumentRow, Links, ResourceRow, SectionRow

_INDENT: Final = "  "
_MOST_INDENTS: Final = 8
"""Folders deeper than this are not indented further: no room would be left."""
_MOST_LINKS: Final = 200
"""Links of one document that are listed; the rest is counted."""


def indent(depth: int) -> str:
    """What stands before a row of a tree."""
    return _INDENT * min(depth, _MOST_INDENTS)


def folder_row(
    row: "ResourceRow",
    name: str,
    found: Mapping[str, int],
    *,
    depth: int,
    is_open: bool,
    ascii_only: bool,
) -> Line:
    """A folder of documents: how many are in it, and the worst that is found of them.

    Args:
        row: The folder.
        name: As it is shown.
        found: Its findings by severity.
        depth: In how many folders it lies.
        is_open: Whether what is in it stands below it.
        ascii_only: Whether the screen shows no more than ASCII.
    """
    return (
        Span(indent(depth)),
        Span(arrow(is_open=is_open, ascii_only=ascii_only), "quiet"),
        span(shown_path(name), "title"),
        Span(f"  {row.chunks:,}", "quiet"),
        *severity_marks(found),
    )


def document_row(
    row: "ResourceRow",
    known: "DocumentRow | None",
    name: str,
    found: Sequence["Finding"],
    *,
    depth: int,
    is_open: bool,
    ascii_only: bool,
    shown: int | None = None,
) -> Line:
    """A document: its name, what is found of it, its title, its sections, its size.

    Args:
        row: The document.
        known: What was read of it; None while that is on its way.
        name: As it is shown.
        found: What is found of it.
        depth: In how many folders it lies.
        is_open: Whether its sections stand below it.
        ascii_only: Whether the screen shows no more than ASCII.
        shown: How many of its sections pass the filter; None without one.
    """
    parts = [
        Span(indent(depth)),
        Span(arrow(is_open=is_open, ascii_only=ascii_only), "quiet"),
        span(shown_path(name)),
        *finding_marks(found, known.withheld if known is not None else ""),
    ]
    if known is not None and known.title:
        parts.append(span(f"  {cut(known.title, MOST_TITLE)}", "title"))
    sections = f"{row.chunks:,}" if shown in (None, row.chunks) else f"{shown:,} of {row.chunks:,}"
    parts.append(Span(f"  {sections}", "quiet"))
    if known is not None and known.size_bytes is not None:
        parts.append(Span(f"  {size(known.size_bytes)}", "quiet"))
    return tuple(parts)


def section_row(row: "SectionRow", *, depth: int) -> Line:
    """A section under its document: headings, line or page, size, first words."""
    parts = [Span(indent(depth + 1)), Span(_INDENT)]
    if row.headings:
        parts.append(span(cut(" > ".join(row.headings), MOST_PLACE), "title"))
    else:
        parts.append(span(cut(row.words or "(no text)", MOST_TITLE)))
    where = f"  :{row.line}" if row.line else f"  p. {row.page}" if row.page else ""
    parts.append(Span(f"{where}  {size(row.size_bytes)}", "quiet"))
    if row.headings and row.words:
        parts.append(span(f"  {cut(row.words, MOST_PLACE)}", "quiet"))
    return tuple(parts)


def folder_lines(row: "AboutResource", found: Mapping[str, int]) -> list[Line]:
    """What is known of a folder."""
    return [
        line(shown_path(row.resource), "title"),
        (),
        field("documents", f"{row.chunks:,}"),
        (
            span(f"{'drift':<11}", "quiet"),
            *(tuple(severity_marks(found)) or line("none known", "good")),
        ),
    ]


def place_line(about: "About", part: int | None) -> Line | None:
    """Which section is shown, and where it stands; None where that is the whole document."""
    section = about.section(part)
    if section is None:
        return None
    number = f"section {(part or 0) + 1} of {len(about.sections)}"
    if section.line:
        where = f"lines {section.line}-{section.end_line}"
    else:
        where = f"p. {section.page}" if section.page else ""
    headings = cut(" > ".join(section.headings), MOST_PLACE)
    return (
        span(number, "note"),
        *((span(f"  {where}", "quiet"),) if where else ()),
        *((span(f"  {headings}", "title"),) if headings else ()),
    )


def link_lines(found: "Links") -> list[Line]:
    """The links of a document, and those that lead to it."""
    lines: list[Line] = []
    for title, links in (("Links", found.outgoing), ("Linked from", found.incoming)):
        if not links:
            continue
        lines.append(line(title, "title"))
        for one in links[:_MOST_LINKS]:
            other = one.target if title == "Links" else one.path
            where = f"  :{one.line}" if one.line else ""
            state = () if one.state == "there" else (span(f"  {one.state}", "warning"),)
            lines.append((Span("  "), span(shown_path(other)), Span(where, "quiet"), *state))
        if len(links) > _MOST_LINKS:
            lines.append(line(f"  … {len(links) - _MOST_LINKS:,} more", "quiet"))
        lines.append(())
    return lines

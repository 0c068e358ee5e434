"""reStructuredText as Markdown: sections, listings, tables, and what directives say.

Levels of sections are the order in which their underlines first appear. One rule: nothing that a
directive names is opened.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from filestore.extract._marked import (
    Line,
    Written,
    dedented,
    indent,
    listing,
    numbered,
    table_lines,
)
from filestore.extract._marked.rows import delimited
from filestore.extract.base import names_in
from filestore.extract.markdown import prose

_RULE: Final = re.compile(r"([!-/:-@\[-`{-~])\1{2,} *")
_DIRECTIVE: Final = re.compile(r"\.\. +(?:\|[^|]*\| +)?([\w:+.-]+?):: *(.*)")
_NOTE: Final = re.compile(r"\.\. +(\[[^\]]+\]) *(.*)")
_FIELD: Final = re.compile(r":([^:`][^:]*): *(.*)")
_SIMPLE: Final = re.compile(r"=+(?: +=+)+ *")
_GRID: Final = re.compile(r"\+(?:[-=]+\+)+ *")
_CODE: Final = names_in(
    """
    code code-block sourcecode parsed-literal prompt ipython doctest testcode testsetup
    testoutput highlight-block productionlist graphviz mermaid uml
    """
)
_DROPPED: Final = names_in(
    """
    contents toctree index meta highlight role default-role include literalinclude raw sectnum
    tabularcolumns module currentmodule py:module py:currentmodule title header footer
    automodule
    """
)
_NAMED: Final = re.compile(
    r"(?:\w+:)?(?:function|class|method|attribute|data|exception|option|envvar|describe|macro|type"
    r"|confval|module|classmethod|staticmethod|property|program|cmdoption|object|member|decorator)"
)
_NOTICES: Final = names_in(
    """
    note warning tip hint important caution danger error attention seealso todo
    """
)
_TITLED: Final = names_in("rubric topic sidebar admonition table csv-table list-table")
_INLINE: Final = (
    (re.compile(r"``(.+?)``"), r"`\1`"),
    (re.compile(r":[\w:+.-]+:`[~!]?([^`<]*?) *<[^`>]*>`"), r"\1"),
    (re.compile(r":[\w:+.-]+:`[~!]?([^`]*)`"), r"\1"),
    (re.compile(r"`([^`<]+?) *<(https?://[^`>]*)>`__?"), r"[\1](\2)"),
    (re.compile(r"`([^`<]+?) *<[^`>]*>`__?"), r"\1"),
    (re.compile(r"`([^`]+)`__?(?!\w)"), r"\1"),
    (re.compile(r"(\[[\w#*-]+\])_(?!\w)"), r"\1"),
    (re.compile(r"\\ "), ""),
)
_LONGEST_INLINE: Final = 20_000
_MOST_ROWS: Final = 2_000
"""Lines of a table that are looked at for its end."""


class _Book(Struct):
    """What is known of the document so far."""

    styles: list[str] = field(default_factory=list)
    has_text: bool = False


def read_rst(text: str, out: Written, _name: str) -> None:
    """Write reStructuredText as Markdown."""
    _convert(numbered(text), out, _Book(), "")


def _convert(block: Sequence[Line], out: Written, book: _Book, pad: str) -> None:
    """Write a block; the sections are at its margin."""
    at = 0
    while at < len(block):
        number, line = block[at]
        if not line.strip():
            out.add(number, "")
            at += 1
        elif taken := _heading(block, at, out, book) or _table(block, at, out, pad):
            at = taken
        elif line.lstrip().startswith(".. ") or line.strip() in ("..", "__"):
            end = _end_of_body(block, at + 1, indent(line))
            _explicit(block[at:end], out, book, pad + " " * indent(line))
            at = end
        elif line.lstrip().startswith(">>> "):
            end = next((n for n in range(at, len(block)) if not block[n][1].strip()), len(block))
            listing(out, number, block[at:end], "python", pad + " " * indent(line))
            at = end
        else:
            at = _paragraph(block, at, out, book, pad)


def _end_of_body(block: Sequence[Line], start: int, margin: int) -> int:
    """Where what is indented deeper than a margin ends, blank lines behind it left out."""
    end = start
    for at in range(start, len(block)):
        line = block[at][1]
        if line.strip():
            if indent(line) <= margin:
                break
            end = at + 1
    return end


def _heading(block: Sequence[Line], at: int, out: Written, book: _Book) -> int:
    """The line behind a heading that begins here; 0 where none does."""
    lines = [line for _, line in block[at : at + 3]] + ["", "", ""]
    has_line = at > 0 and block[at - 1][1].strip() != ""
    over = _RULE.fullmatch(lines[0])
    if over and lines[1].strip() and not _RULE.fullmatch(lines[1]):
        under = _RULE.fullmatch(lines[2])
        if under and under[1] == over[1]:
            return _headed(block[at + 1], f"{over[1]}{over[1]}", out, book, at + 3)
    under = _RULE.fullmatch(lines[1])
    is_title = under and not over and lines[0][:1] not in (" ", "") and not has_line
    if under and is_title and len(lines[1].rstrip()) >= min(4, len(lines[0].rstrip())):
        return _headed(block[at], under[1], out, book, at + 2)
    if over and not has_line and not lines[1].strip():
        out.block(block[at][0], "---")
        return at + 1
    return 0


def _headed(line: Line, style: str, out: Written, book: _Book, after: int) -> int:
    if style not in book.styles:
        book.styles.append(style)
    level = min(6, book.styles.index(style) + 1)
    out.block(line[0], f"{'#' * level} {_inline(line[1].strip())}", "")
    if level == 1 and not book.has_text:
        out.metadata.setdefault("title", _inline(line[1].strip()))
    book.has_text = True
    return after


def _explicit(block: Sequence[Line], out: Written, book: _Book, pad: str) -> None:
    """A directive, note, target or comment with its body."""
    number, line = block[0][0], block[0][1].strip()
    directive, note = _DIRECTIVE.fullmatch(line), _NOTE.fullmatch(line)
    if directive:
        _directive(directive[1].lower(), directive[2].strip(), block, out, book, pad)
    elif note:
        out.block(number, f"{pad}{note[1]} {_inline(note[2])}")
        _convert(dedented(block[1:]), out, book, pad)


def _directive(
    kind: str, argument: str, block: Sequence[Line], out: Written, book: _Book, pad: str
) -> None:
    number, body = block[0][0], list(block[1:])
    options = dict[str, str]()
    while body and (option := _FIELD.fullmatch(body[0][1].strip())):
        options[option[1].lower()] = option[2]
        body.pop(0)
    lines = dedented(body)
    if kind in _DROPPED:
        return
    if kind in _CODE:
        is_language = kind in ("code", "code-block", "sourcecode")
        listing(out, number, body, argument if is_language else "", pad)
        return
    if kind == "math":
        formula = [(number, argument), *lines] if argument else lines
        out.block(number, f"{pad}$$")
        for at, written in [*formula, (formula[-1][0] if formula else number, "$$")]:
            out.add(at, pad + written)
        return
    shown = _inline(argument)
    if kind in ("image", "figure"):
        shown = f"[Image: {options['alt']}]" if options.get("alt") else ""
    elif kind in _NOTICES:
        shown = f"**{kind.capitalize()}:** {shown}"
    elif shown and (kind in _TITLED or _NAMED.fullmatch(kind)):
        shown = f"**{shown}**" if kind in _TITLED else f"`{argument}`"
    if shown:
        out.block(number, pad + shown, *([] if kind in _NOTICES else [""]))
    if kind == "csv-table":
        rows = [*delimited(options.get("header", ""), ","), *delimited(_joined(lines), ",")]
        _tabled([row for row in rows if row], number, out, pad)
    elif kind == "list-table":
        _tabled(list(_listed(lines)), number, out, pad)
    else:
        _convert(lines, out, book, pad)


def _joined(lines: Sequence[Line]) -> str:
    return "\n".join(line for _, line in lines)


def _listed(lines: Sequence[Line]) -> Iterator[list[str]]:
    """The rows of a table that is written as a list of lists."""
    row: list[str] = []
    for _, line in lines:
        if line.startswith("* "):
            if row:
                yield row
            row, line = [], line[2:]
        cell = line.strip()
        if cell.startswith("- ") or cell == "-":
            row.append(cell[2:])
        elif row:
            row[-1] += f" {cell}"
    if row:
        yield row


def _tabled(rows: Sequence[Sequence[str]], number: int, out: Written, pad: str) -> None:
    lines = table_lines([[_inline(cell) for cell in row] for row in rows])
    out.block(number, *(pad + line for line in lines))


def _table(block: Sequence[Line], at: int, out: Written, pad: str) -> int:
    """The line behind a table that begins here; 0 where none does."""
    number, line = block[at]
    border = line.strip()
    margin = indent(line)
    if _SIMPLE.fullmatch(border):
        far = min(len(block), at + _MOST_ROWS)
        borders = [n for n in range(at, far) if _SIMPLE.fullmatch(block[n][1].strip())]
        closing = (
            n for n in borders[1:] if not "".join(x for _, x in block[n + 1 : n + 2]).strip()
        )
        end = next(closing, 0)
        if not end:
            return 0
        starts = [one.start() for one in re.finditer("=+", border)]
        ends: list[int | None] = [*starts[1:], None]
        rows = [
            [written[margin:][a:b].strip() for a, b in zip(starts, ends, strict=True)]
            for _, written in block[at + 1 : end]
            if written.strip()
            and not _SIMPLE.fullmatch(written.strip())
            and not re.fullmatch(r"-+(?: +-+)* *", written.strip())
        ]
    elif _GRID.fullmatch(border):
        end = at
        while end + 1 < len(block) and block[end + 1][1].strip()[:1] in ("+", "|"):
            end += 1
        rows = list(_grid_rows([written.strip() for _, written in block[at : end + 1]]))
    else:
        return 0
    _tabled(rows, number, out, pad + " " * margin)
    return end + 1


def _grid_rows(lines: Sequence[str]) -> Iterator[list[str]]:
    """The rows of a table drawn with lines; a cell of several lines is one."""
    row: list[str] = []
    for line in lines:
        if line.startswith("+"):
            if any(row):
                yield row
            row = []
        else:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            row += [""] * (len(cells) - len(row))
            row[: len(cells)] = [
                f"{above} {cell}".strip() for above, cell in zip(row, cells, strict=False)
            ]


def _paragraph(block: Sequence[Line], at: int, out: Written, book: _Book, pad: str) -> int:
    """Lines up to a blank one, with the listing that they may announce."""
    end = at
    while end < len(block) and block[end][1].strip():
        if end > at and (block[end][1].lstrip().startswith(".. ") or _heading_at(block, end)):
            break
        end += 1
    for number, line in block[at:end]:
        own = line.lstrip()
        margin = pad + line[: len(line) - len(own)]
        found = _FIELD.fullmatch(own)
        if found:
            own = f"{found[1].capitalize()}: {found[2]}"
            if len(book.styles) <= 1 and found[1].lower() in ("author", "date", "version"):
                out.metadata.setdefault(found[1].lower(), found[2])
        elif own.startswith("#. "):
            own = f"1{own[1:]}"
        elif own.startswith("| "):
            own = own[2:]
        out.add(number, margin + _inline(prose(own)))
    number, line = block[end - 1]
    if line.rstrip().endswith("::"):
        is_alone = line.strip() == "::"
        out.lines[-1] = "" if is_alone else out.lines[-1].rstrip()[:-1]
        body_end = _end_of_body(block, end, indent(line))
        if body_end > end:
            listing(out, number, block[end:body_end], "", pad + " " * indent(line))
        return body_end
    return end


def _heading_at(block: Sequence[Line], at: int) -> bool:
    return bool(_SIMPLE.fullmatch(block[at][1].strip()) or _GRID.fullmatch(block[at][1].strip()))


def _inline(text: str) -> str:
    if len(text) > _LONGEST_INLINE:
        return text
    for pattern, written in _INLINE:
        text = pattern.sub(written, text)
    return text

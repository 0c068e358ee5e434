"""Org and AsciiDoc as Markdown: outline, listings, tables; what only programs read is left out.

One rule: a line whose markup is not known stays as it is written.
"""

import re
from collections.abc import Sequence
from typing import Final

from filestore.extract._marked import Line, Written, listing, numbered, table_lines
from filestore.extract.markdown import prose

_LONGEST_INLINE: Final = 20_000
_Rules = Sequence[tuple[re.Pattern[str], str]]


def _inline(text: str, rules: _Rules) -> str:
    for pattern, written in rules if len(text) <= _LONGEST_INLINE else ():
        text = pattern.sub(written, text)
    return text


# ---- Org -----------------------------------------------------------------------------------------

_OUTLINE: Final = re.compile(r"(\*+) +(\S.*)")
_TAGS: Final = re.compile(r":[\w@#%:]+:")
_KEYWORD: Final = re.compile(r"#\+(\w+)(\[[^\]]*\])?: *(.*)")
_BEGIN: Final = re.compile(r"\s*#\+begin_(\w+) *(\S*).*", re.I)
_DRAWER: Final = re.compile(r"\s*:[\w-]+:\s*")
_END_DRAWER: Final = re.compile(r"\s*:end:\s*", re.I)
_ORG: Final = (
    (re.compile(r"\[\[(https?:[^\[\]]*)\]\[([^\[\]]*)\]\]"), r"[\2](\1)"),
    (re.compile(r"\[\[[^\[\]]*\]\[([^\[\]]*)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\[\]]*)\]\]"), r"\1"),
    (re.compile(r"(?<!\S)[=~](\S(?:[^\n=~]*\S)?)[=~](?![\w=~])"), r"`\1`"),
    (re.compile(r"(?<![\w*])\*(\S(?:[^\n*]*\S)?)\*(?![\w*])"), r"**\1**"),
)
_KNOWN: Final = {
    "title": "title",
    "author": "author",
    "date": "date",
    "description": "description",
    "language": "language",
}


def read_org(text: str, out: Written, _name: str) -> None:
    """Write an outline of Org as Markdown."""
    lines = numbered(text)
    at = 0
    while at < len(lines):
        number, line = lines[at]
        begin, outline = _BEGIN.fullmatch(line), _OUTLINE.fullmatch(line)
        keyword = _KEYWORD.fullmatch(line.strip())
        if outline:
            level, title = min(6, len(outline[1])), outline[2].strip()
            words, _, last = title.rpartition(" ")
            title = words.rstrip() if _TAGS.fullmatch(last) else title
            out.block(number, f"{'#' * level} {_inline(title, _ORG)}", "")
        elif begin and (end := _closing(lines, at, rf"\s*#\+end_{re.escape(begin[1])}\s*")):
            _org_block(lines[at + 1 : end], number, begin, out)
            at = end
        elif _DRAWER.fullmatch(line) and (end := _closing(lines, at, _END_DRAWER.pattern, 200)):
            at = end
        elif keyword:
            key = keyword[1].lower()
            if key in _KNOWN:
                out.metadata.setdefault(_KNOWN[key], keyword[3])
            elif key == "filetags":
                out.metadata["tags"] = [tag for tag in keyword[3].split(":") if tag.strip()]
            elif key == "caption":
                out.block(number, _inline(keyword[3], _ORG))
        elif line.lstrip().startswith("|"):
            end = _while(lines, at, r"\s*\|.*")
            _org_table(lines[at:end], out)
            at = end - 1
        elif re.fullmatch(r"\s*:(?: .*)?", line):
            end = _while(lines, at, r"\s*:(?: .*)?")
            listing(out, number, [(n, one.lstrip()[2:]) for n, one in lines[at:end]], "")
            at = end - 1
        elif not re.fullmatch(r"\s*#(?:[ +].*)?", line):
            out.add(number, _inline(prose(line), _ORG))
        at += 1


def _org_block(inner: Sequence[Line], number: int, begin: re.Match[str], out: Written) -> None:
    kind = begin[1].lower()
    if kind in ("src", "example"):
        listing(out, number, inner, begin[2] if kind == "src" else "")
    elif kind == "quote":
        for at, line in inner:
            out.add(at, f"> {_inline(prose(line), _ORG)}")
    elif kind not in ("export", "comment"):
        for at, line in inner:
            out.add(at, _inline(prose(line), _ORG))


def _org_table(lines: Sequence[Line], out: Written) -> None:
    shown = [(n, line) for n, line in lines if not re.fullmatch(r"\s*\|[-+|: ]*", line)]
    rows = [
        [_inline(cell, _ORG) for cell in line.strip().strip("|").split("|")] for _, line in shown
    ]
    _placed(table_lines(rows), [n for n, _ in shown], out)


def _placed(table: Sequence[str], numbers: Sequence[int], out: Written) -> None:
    """Add a table whose rows are of these lines."""
    for at, line in enumerate(table):
        number = numbers[max(0, at - 1) if at else 0]
        if at:
            out.add(number, line)
        else:
            out.block(number, line)


def _closing(lines: Sequence[Line], at: int, pattern: str, most: int = 20_000) -> int:
    """The place of the line that closes what begins at one; 0 without one."""
    closes = re.compile(pattern, re.I)
    far = min(len(lines), at + most)
    return next((n for n in range(at + 1, far) if closes.fullmatch(lines[n][1])), 0)


def _while(lines: Sequence[Line], at: int, pattern: str) -> int:
    goes_on = re.compile(pattern)
    return next(
        (n for n in range(at, len(lines)) if not goes_on.fullmatch(lines[n][1])), len(lines)
    )


# ---- AsciiDoc ------------------------------------------------------------------------------------

_TITLE: Final = re.compile(r"(={1,6}|#{1,6}) +(\S.*?)(?: +\1)?\s*")
_ATTRIBUTE: Final = re.compile(r":!?([\w-]+)!?:(?: +(.*))?")
_ANCHOR: Final = re.compile(r"\[(?:\[.*\]|[^\]]*)\]\s*")
_FENCES: Final = re.compile(r"(-{4,}|\.{4,}|`{3,}|\+{4,}|/{4,})(\w*)\s*")
_BOXES: Final = re.compile(r"(?:={4,}|\*{4,}|_{4,}|--|<<<|\+)\s*")
_CAPTION: Final = re.compile(r"\.([^\s.].*)")
_ITEM: Final = re.compile(r"\s*(\*{1,6}|-|\.{1,6}) +(.*)")
_PREFIX: Final = re.compile(r"(?:^|\s+)(?:[\d.+*]*[<^>.]*[a-z]?)\|(?!\|)|^\|")
_MACRO: Final = re.compile(r"(?:include|ifdef|ifndef|ifeval|endif|toc)::.*")
_ADOC: Final = (
    (re.compile(r"(?:link:)?(https?://[^\s\[\]]+)\[([^\[\]^]+)\^?\]"), r"[\2](\1)"),
    (re.compile(r"<<[^<>,]+, *([^<>]+)>>"), r"\1"),
    (re.compile(r"<<([^<>,]+)>>"), r"\1"),
    (re.compile(r"(?:xref|link):[^\s\[\]]+\[([^\[\]]*)\]"), r"\1"),
    (re.compile(r"(?:kbd|btn|menu):(?:\S*)\[([^\[\]]*)\]"), r"\1"),
    (re.compile(r"footnote:\w*\[([^\[\]]*)\]"), r" (\1)"),
    (re.compile(r"image::?[^\s\[\]]+\[([^\[\],]+)[^\[\]]*\]"), r"[Image: \1]"),
    (re.compile(r"image::?[^\s\[\]]+\[[^\[\]]*\]"), ""),
    (re.compile(r"(?<![\w*])\*(\S(?:[^\n*]*\S)?)\*(?![\w*])"), r"**\1**"),
)


def read_adoc(text: str, out: Written, _name: str) -> None:
    """Write AsciiDoc as Markdown."""
    lines = numbered(text)
    at = _adoc_head(lines, out)
    attributes = ""
    while at < len(lines):
        number, line = lines[at]
        title, fence = _TITLE.fullmatch(line), _FENCES.fullmatch(line)
        if title:
            out.block(number, f"{'#' * len(title[1])} {_inline(title[2], _ADOC)}", "")
        elif fence and (end := _closing(lines, at, re.escape(fence[1]) + r"\s*")):
            if fence[1][0] not in "+/":
                style = attributes.split(",")
                is_source = style[0] in ("source", "") and len(style) > 1
                listing(
                    out, number, lines[at + 1 : end], style[1].strip() if is_source else fence[2]
                )
            at = end
        elif line.startswith(("|===", ",===")):
            end = _closing(lines, at, re.escape(line.strip()) + r"\s*") or len(lines)
            _adoc_table(lines[at + 1 : end], attributes, out, line[0])
            at = end
        elif not line.strip():
            out.add(number, "")
        elif _ANCHOR.fullmatch(line):
            attributes = line.strip()[1:-1] if not line.startswith("[[") else attributes
            at += 1
            continue
        elif caption := _CAPTION.fullmatch(line):
            out.block(number, f"**{_inline(caption[1], _ADOC)}**", "")
            at += 1
            continue
        elif _BOXES.fullmatch(line):
            out.add(number, "")
            at += 1
            continue
        elif line.startswith("'''"):
            out.block(number, "---")
        elif not (line.startswith("//") or _MACRO.fullmatch(line) or _ATTRIBUTE.fullmatch(line)):
            _adoc_line(number, line, attributes, out)
        attributes = ""
        at += 1


def _adoc_head(lines: Sequence[Line], out: Written) -> int:
    """Title, author and attributes of a document; returns the line behind them."""
    at = next((n for n, (_, line) in enumerate(lines) if line.strip() and line[:2] != "//"), 0)
    title = re.fullmatch(r"[=#] +(\S.*)", lines[at][1])
    if title is None:
        return 0
    out.metadata["title"] = title[1].strip()
    for n in range(at + 1, len(lines)):
        written = lines[n][1].strip()
        attribute = _ATTRIBUTE.fullmatch(written)
        if not written:
            return n
        if attribute and attribute[1] in ("author", "description", "revdate", "keywords"):
            key = attribute[1].replace("revdate", "date")
            out.metadata[key] = (attribute[2] or "").strip()
        elif not attribute and n == at + 1 and not written.startswith("//"):
            out.metadata["author"] = re.sub(r"\s*<[^>]*>", "", written)
    return len(lines)


def _adoc_line(number: int, line: str, attributes: str, out: Written) -> None:
    item = _ITEM.fullmatch(line)
    if item:
        depth = max(0, len(item[1]) - 1)
        sign = "1." if item[1].startswith(".") else "-"
        out.add(number, f"{'   ' * depth}{sign} {_inline(item[2], _ADOC)}")
        return
    if attributes in ("NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"):
        line = f"{attributes}: {line}"
    term, is_term, rest = line.partition("::")
    if is_term and rest.strip(":")[:1] in ("", " "):
        out.add(number, f"**{_inline(term.strip(), _ADOC)}:** {_inline(rest.strip(': '), _ADOC)}")
    else:
        out.add(number, _inline(prose(line), _ADOC))


def _adoc_table(lines: Sequence[Line], attributes: str, out: Written, sign: str) -> None:
    """A table whose cells may each have a line of their own."""
    if sign == ",":
        filled = [(n, line.split(",")) for n, line in lines if line.strip()]
        _placed(table_lines([row for _, row in filled]), [n for n, _ in filled], out)
        return
    cells = list[tuple[int, str]]()
    first_row = 0
    for number, line in lines:
        if not line.strip():
            first_row = first_row or len(cells)
            continue
        before, *found = _PREFIX.split(line)
        if before.strip() and cells:
            cells[-1] = cells[-1][0], f"{cells[-1][1]} {before.strip()}"
        cells += [(number, _inline(cell.strip(), _ADOC)) for cell in found]
        if not first_row and len(found) > 1:
            first_row = len(cells)
    columns = re.search(r'cols="?((?:[^"\],]+,?)+)', attributes)
    width = first_row or 1
    if columns:
        counts = [re.match(r"(\d+)\*", one.strip()) for one in columns[1].split(",") if one.strip()]
        width = sum(int(count[1]) if count else 1 for count in counts) or width
    groups = [cells[n : n + width] for n in range(0, len(cells), max(1, min(width, 256)))]
    rows = [[cell for _, cell in group] for group in groups]
    _placed(table_lines(rows), [group[-1][0] for group in groups], out)

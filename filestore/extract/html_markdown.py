"""The Markdown of a page whose main content has been found.

Markdownify writes, with rules of our own where its output reads badly; what a page is and what of
it counts is not known here. One rule: what was prose on the page reads as prose in Markdown.
"""

import re
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

_MAX_COLUMNS: Final = 64
_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
_AS_DIV: Final = (
    "main",
    "header",
    "footer",
    "aside",
    "figure",
    "details",
    "summary",
    "fieldset",
    "legend",
    "center",
    "address",
    "hgroup",
    "form",
    "noscript",
    "nav",
    "dialog",
)
_LANGUAGE: Final = re.compile(r"(?:^|\s)(?:highlight|language|lang|brush:?)[-\s]+([\w+#.-]+)")
_NO_LANGUAGE: Final = frozenset({"default", "none", "text", "plain", "plaintext", "source", "txt"})
_SHORT_LANGUAGE: Final = {"python3": "python", "py3": "python", "ipython3": "python", "c++": "cpp"}
_FENCE: Final = re.compile(r"^[ >\d.-]*?(`{3,})[\w+#.-]*$")
_LINE_MARKUP: Final = re.compile(
    r"^(?=#{1,6}(?:\s|$)|[-+](?:\s|$)|>|~~~|(?:-{3,}|={3,}|_{3,})\s*$"
    r"|<[!?]|<(?!https?:)[^<>]*>\s*$|</?(?:pre|script|style|textarea|div|p|table|t[dhr]|h[1-6r]"
    r"|[duo]l|li|d[dt]|form|section|article|main|nav|head|body|html|title|link|meta|iframe)\b)",
    re.I,
)
"""What a line of prose must not start with, lest it be read as a heading, list, quote or tag."""

_NUMBERED: Final = re.compile(r"^(\d{1,9})(?=[.)](?:\s|$))")
_SPACES: Final = re.compile(r"\s+")
_BREAK: Final = re.compile(r"\s*<br>\s*")


def markdown(page: str) -> str:
    """The Markdown of a page; `tidy` makes it fit to be read."""
    from bs4 import BeautifulSoup, Tag

    soup = BeautifulSoup(
        page, "html.parser", element_classes={Tag: _element_class()}, multi_valued_attributes=None
    )
    for element in soup.find_all(_AS_DIV):
        element.name = "div"
    for element in soup.find_all("tt"):
        element.name = "code"
    for listing in soup.find_all("pre"):
        for line_break in listing.find_all("br"):
            line_break.string = "\n"  # to replace it, its place among all others is looked for
        listing["data-language"] = _language(listing)
        # Its text alone is left, as colours are a tag for every word: taken out one by one, as the
        # library does it, they cost the square of their number.
        text = listing.get_text()
        last: Any = listing
        while getattr(last, "contents", None):
            last = last.contents[-1]
        listing.contents, listing.next_element = [], last.next_element
        if last.next_element is not None:
            last.next_element.previous_element = listing
        listing.append(text)
    for ordered in soup.find_all("ol"):
        start = str(ordered.get("start") or "")
        number = int(start) if re.fullmatch(r"[0-9]{1,6}", start) else 1
        for item in ordered.find_all("li", recursive=False):
            own = str(item.get("value") or "")
            number = int(own) if re.fullmatch(r"[0-9]{1,6}", own) else number
            item["data-number"] = str(number)
            number += 1
    for table in soup.find_all("table"):
        _reshape_table(table)
    options = {"heading_style": "atx", "bullets": "-", "autolinks": False}
    converter = _converter()(escape_asterisks=False, escape_underscores=False, **options)
    return str(converter.convert_soup(soup))


@cache
def _converter() -> Any:
    from markdownify import MarkdownConverter

    return type("_Converter", (_Rules, MarkdownConverter), {})


@cache
def _element_class() -> Any:
    from bs4 import Tag

    return type("_Element", (Tag,), {"find_parent": _find_parent})


def _find_parent(element: Any, name: str) -> Any:
    """The nearest ancestor of a name; its original, asked for every tag, took half of all time."""
    parent = element.parent
    while parent is not None and parent.name != name:
        parent = parent.parent
    return parent


def _reshape_table(table: Any) -> None:
    """A table that only lays out becomes blocks; the first row of any other is its head."""
    rows = [row for row in table.find_all("tr") if row.find_parent("table") is table]
    cells = [row.find_all(("td", "th"), recursive=False) for row in rows]
    lone = len(rows) <= 1 and table.find("th") is None
    # A table may be how a generator draws a note, or say itself that it is no table.
    box = _classes(table.parent) if table.parent else ()
    boxed = table.get("role") == "presentation" or any("admonition" in name for name in box)
    if lone or boxed or table.find((*_HEADINGS, "pre", "table")):
        parts = [cell for row in cells for cell in row]
        for element in (table, *rows, *parts, *table.find_all(("thead", "tbody", "tfoot"))):
            element.name = "div"
        return
    width = _place_cells(cells)
    if rows:
        rows[0]["data-columns"] = str(min(width, max(_MAX_COLUMNS, len(cells[0]))))


def _place_cells(cells: list[list[Any]]) -> int:
    """Note before each cell how many from the rows above reach into its row; the width."""
    above: dict[int, int] = {}
    width = 0
    for row in cells:
        column = 0
        for cell in row:
            start = column
            while above.get(column, 0) > 0:
                column += 1
            cell["data-before"] = str(column - start)
            end = column + _span(cell)
            if (rows := _span(cell, "rowspan")) > 1 and end <= _MAX_COLUMNS:
                above |= dict.fromkeys(range(column, end), rows)
            column = end
        width = max(width, column)
        above = {at: left - 1 for at, left in above.items() if left > 1}
    return width


def _span(cell: Any, name: str = "colspan") -> int:
    span = str(cell.get(name) or "")
    return min(int(span), _MAX_COLUMNS) if re.fullmatch(r"[1-9][0-9]{0,5}", span) else 1


class _Rules:
    """Where markdownify's own rules read badly; a mixin, so that it is imported when used."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        return text

    def convert_a(self, el: Any, text: str, parent_tags: set[str]) -> str:
        target = str(el.get("href") or "").strip()
        label = text.strip()
        if not label or "_noformat" in parent_tags or not _is_web(target):
            return text
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        target = re.sub(r"[\s<>()]", lambda found: f"%{ord(found[0]):02X}", target)
        return (
            f"{before}<{target}>{after}"
            if label == target
            else f"{before}[{label}]({target}){after}"
        )

    def convert_img(self, el: Any, text: str, parent_tags: set[str]) -> str:
        description = " ".join(str(el.get("alt") or "").split())
        source = str(el.get("src") or "")
        if not description or description.rpartition("/")[2] == source.rpartition("/")[2]:
            return ""
        if not parent_tags.isdisjoint({"_inline", "_noformat", "a"}) or not _is_web(source):
            return description
        source = re.sub(r"[\s<>()]", lambda found: f"%{ord(found[0]):02X}", source)
        return f"![{description}]({source})"

    def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:
        code = el.get_text().strip("\n").rstrip()
        if not code:
            return ""
        if "_inline" in parent_tags:
            return f" `{' '.join(code.split())}` "
        longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"\n\n{fence}{el.get('data-language')}\n{code}\n{fence}\n\n"

    def convert_p(self, el: Any, text: str, parent_tags: set[str]) -> str:
        text = text.strip(" \t\r\n")
        if "_inline" in parent_tags or not text:
            ends = text and "li" not in parent_tags and not parent_tags.isdisjoint({"td", "th"})
            return f"{text}<br>" if ends else f" {text} "
        if _is_label(el):
            return f"\n\n**{_SPACES.sub(' ', text)}**\n\n"
        # No line may read as a heading, list, quote or tag by accident.
        lines = [_NUMBERED.sub(r"\1\\", _LINE_MARKUP.sub(r"\\", line)) for line in text.split("\n")]
        return "\n\n" + "\n".join(lines) + "\n\n"

    def convert_div(self, el: Any, text: str, parent_tags: set[str]) -> str:
        text = text.strip()
        if "_inline" in parent_tags or not text:
            return f" {text} "
        return f"\n\n**{text}**\n\n" if _is_label(el) and "\n" not in text else f"\n\n{text}\n\n"

    def convert_hN(self, n: int, el: Any, text: str, parent_tags: set[str]) -> str:
        text = _SPACES.sub(" ", text).strip()
        if "_inline" in parent_tags or not text:
            return text
        return f"\n\n{'#' * max(1, min(6, n))} {text}\n\n"

    def convert_li(self, el: Any, text: str, parent_tags: set[str]) -> str:
        text = text.strip()
        if "_inline" in parent_tags or not text:
            return f"{text}; " if text else ""
        number = el.get("data-number")
        bullet = f"{number}. " if number else "- "
        indented = text.replace("\n", "\n" + " " * len(bullet))
        return f"{bullet}{indented}\n"

    def convert_dt(self, el: Any, text: str, parent_tags: set[str]) -> str:
        text = _SPACES.sub(" ", text).strip()
        if "_inline" in parent_tags or not text:
            return f" {text} "
        if "sig" in _classes(el):
            signature = _SPACES.sub(" ", el.get_text()).strip()
            return f"\n\n`` {signature} ``\n\n" if "`" in signature else f"\n\n`{signature}`\n\n"
        before = "" if _is_term(_sibling(el, "previous_sibling")) else "\n\n"
        after = ", " if _is_term(_sibling(el, "next_sibling")) else "\n\n"
        return before + (text if text[0] in "*`[" else f"**{text}**") + after

    def convert_dd(self, el: Any, text: str, parent_tags: set[str]) -> str:
        text = text.strip()
        return f" {text} " if "_inline" in parent_tags else f"\n\n{text}\n\n"

    def convert_tr(self, el: Any, text: str, parent_tags: set[str]) -> str:
        columns = int(el.get("data-columns") or 0)
        if not columns:
            return f"|{text}\n" if text.strip(" |") else ""
        cells = el.find_all(("td", "th"), recursive=False)
        missing = columns - sum(_span(cell) for cell in cells)
        return f"|{text}{'  |' * missing}\n|{' --- |' * columns}\n"

    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:
        text = _BREAK.sub("<br>", _SPACES.sub(" ", text)).strip().removesuffix(";")
        text = text.removesuffix("<br>").replace("|", "\\|")
        before = "  |" * int(el.get("data-before") or 0)
        return f"{before} {text} |" + "  |" * (_span(el) - 1)

    convert_th = convert_td

    def convert_br(self, el: Any, text: str, parent_tags: set[str]) -> str:
        if not parent_tags.isdisjoint({"td", "th"}):
            return "<br>"
        return " " if "_inline" in parent_tags else "  \n"

    def convert_sup(self, el: Any, text: str, parent_tags: set[str]) -> str:
        plain = text.strip()
        return text if not plain or plain[0] in "[(" or len(plain) > 9 else f"^{plain}"


def _is_web(target: str) -> bool:
    try:
        parts = urlsplit(target)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def _classes(element: Any) -> list[str]:
    return str(element.get("class") or "").split()


def _is_label(element: Any) -> bool:
    """Whether a block is the heading of a note or a listing, such as `Warning`."""
    classes = _classes(element)
    return "admonition-title" in classes or classes == ["title"]


def _sibling(element: Any, direction: str) -> Any:
    """The sibling next to an element, past white space; None without one."""
    sibling = getattr(element, direction)
    while isinstance(sibling, str) and not sibling.strip():
        sibling = getattr(sibling, direction)
    return sibling


def _is_term(element: Any) -> bool:
    """Whether this is a term that shares its definition with others: `-n`, `--dry-run`."""
    return getattr(element, "name", "") == "dt" and "sig" not in _classes(element)


def _language(element: Any) -> str:
    """The language of a listing, as class names on it, in it or around it say."""
    child = element.find("code")
    around = (element, child, *list(element.parents)[:3])
    for candidate in around:
        classes = " ".join(_classes(candidate)) if candidate is not None else ""
        found = _LANGUAGE.search(classes)
        language = found[1].lower() if found else ""
        if language and language not in _NO_LANGUAGE:
            return _SHORT_LANGUAGE.get(language, language)
    return ""


def tidy(text: str) -> str:
    """At most one blank line between blocks and no trailing spaces, but for what is in fences."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            lines.append(line)
            fence = "" if line.strip(" >") == fence else fence
        elif found:
            lines.append(line)
            fence = found[1]
        elif (stripped := line.rstrip()) or (lines and lines[-1]):
            lines.append(stripped)
    return "\n".join(lines).strip("\n") + "\n"

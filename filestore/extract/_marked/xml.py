"""XML as text: feeds and FictionBook by what they mean, any other by its titles, items and leaves.

One rule: what a document type defines is never expanded, and a file that defines entities by
others, or by other files, is refused.
"""

import html
import re
from collections.abc import Iterator
from typing import Any, Final

from filestore.extract._marked import Written, table_lines
from filestore.extract._office.package import local_name
from filestore.extract.base import ExtractionError, names_in, xml_parser
from filestore.extract.fragments import fragment_text
from filestore.extract.markdown import deepened, fenced, prose

_ENTITY: Final = re.compile(
    r"""<!ENTITY\s+(?:%|\S+\s+(?:SYSTEM|PUBLIC|"[^"<]*[&%]|'[^'<]*[&%]))""", re.I
)
"""One that may expand without end, or that another file holds; any other is left as a name."""
_DECLARATION: Final = re.compile(r"^\s*<\?xml\b[^>]*>")
_NAMED: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z][A-Za-z0-9]{1,30});")
_TITLES: Final = names_in("title head heading caption name")
_LISTINGS: Final = names_in("pre programlisting screen literallayout codeblock listing")
_ROWS: Final = names_in("tr row strow")
_CELLS: Final = names_in("td th entry cell stentry")
_ITEMS: Final = names_in("li listitem item")
_MARKUP: Final = re.compile(r"<[a-zA-Z/!]|&(?:\w+|#\d+);")
_DEEPEST: Final = 6
_DATA_SHARE: Final = 2
"""Where values of attributes have more than twice as many signs as the text, it is data."""


def read_xml(text: str, out: Written, name: str) -> None:
    """Write XML as Markdown; what is not well-formed, or is data, as it is written."""
    root = _root(text, name)
    kind = "" if root is None else local_name(root).lower()
    if root is None:
        out.add(0, prose(text))
    elif kind in ("rss", "rdf", "feed") and _items(root):
        _read_feed(root, out, name)
    elif kind == "fictionbook":
        _read_book(root, out)
    elif _is_data(root):
        out.add(0, fenced(text.strip("\n"), "xml"))
    else:
        _read_any(root, out, 1)


def _root(text: str, name: str) -> Any:
    """The root of a document; None where it is not well-formed.

    Raises:
        ExtractionError: It defines entities that could do harm.
    """
    from lxml import etree

    if _ENTITY.search(text):
        raise ExtractionError(
            f"{name} is refused: it defines entities by others; remove the definitions, or"
            " leave it out",
        )
    text = _NAMED.sub(_character, _DECLARATION.sub("", text, count=1))
    try:
        return etree.fromstring(text.encode("utf-8", "replace"), xml_parser())
    except (etree.XMLSyntaxError, ValueError):
        return None


def _character(name: re.Match[str]) -> str:
    """The character that HTML has under a name; any other name is text."""
    known = html.unescape(name[0])
    return f"&amp;{name[1]};" if known == name[0] else known


def _text(element: Any) -> str:
    """All text of an element on one line."""
    return " ".join("".join(element.itertext()).split())


def _children(element: Any, *names: str) -> list[Any]:
    return [one for one in element if local_name(one).lower() in names]


def _first(element: Any, *names: str) -> str:
    """What the first of these children that says something says."""
    found = (_text(one) for wanted in names for one in _children(element, wanted))
    return next(filter(None, found), "")


# ---- feeds ---------------------------------------------------------------------------------------


def _items(root: Any) -> list[Any]:
    channels = [root, *_children(root, "channel")]
    return [item for channel in channels for item in _children(channel, "item", "entry")]


def _read_feed(root: Any, out: Written, name: str) -> None:
    channel = next(iter(_children(root, "channel")), root)
    title = _first(channel, "title")
    written = _first(channel, "description", "subtitle")
    about = fragment_text(written, name=name) if _MARKUP.search(written) else written
    out.metadata |= {
        "title": title,
        "description": _plain_title(written) if written else "",
        "language": _first(channel, "language"),
        "date": _first(channel, "lastbuilddate", "pubdate", "updated"),
    }
    if title:
        out.add(0, f"# {title}")
    if about:
        out.block(0, about.strip())
    for item in _items(root):
        author = next((_first(one, "name") or _text(one) for one in _children(item, "author")), "")
        head = [
            _first(item, "pubdate", "published", "updated", "date"),
            author or _first(item, "creator"),
        ]
        links = [one.get("href") or _text(one) for one in _children(item, "link")]
        texts = [
            _item_text(one, name)
            for one in _children(item, "encoded", "content", "description", "summary")
        ]
        out.block(0, f"## {_plain_title(_first(item, 'title'))}", "")
        out.add(0, *filter(None, [*head, *links[:1]]))
        if texts:
            out.block(0, deepened(max(texts, key=len).strip(), 2))


def _plain_title(title: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", "", title)).split()) or "(no title)"


def _item_text(element: Any, name: str) -> str:
    from lxml import etree

    if len(element):
        page = "".join(etree.tostring(one, encoding="unicode") for one in element)
        return fragment_text(page, name=name)
    written = element.text or ""
    return fragment_text(written, name=name) if _MARKUP.search(written) else prose(written)


# ---- FictionBook ---------------------------------------------------------------------------------


def _read_book(root: Any, out: Written) -> None:
    for described in _children(root, "description"):
        for info in _children(described, "title-info"):
            authors = [
                " ".join(_text(part) for part in one if local_name(part).endswith("-name"))
                for one in _children(info, "author")
            ]
            out.metadata |= {
                "title": _first(info, "book-title"),
                "author": ", ".join(filter(None, authors)),
                "description": _first(info, "annotation"),
                "language": _first(info, "lang"),
                "date": _first(info, "date"),
            }
    for body in _children(root, "body"):
        _book_section(body, out, 1)


def _book_section(section: Any, out: Written, level: int) -> None:
    for part in section:
        kind = local_name(part).lower()
        if kind == "title":
            out.block(
                0, f"{'#' * min(_DEEPEST, level)} {' '.join(map(_text, part)) or _text(part)}", ""
            )
        elif kind == "subtitle":
            out.block(0, f"**{_text(part)}**")
        elif kind == "table":
            _table(part, out)
        elif kind in ("v", "text-author"):
            out.add(0, prose(_text(part)))
        elif kind in ("section", "epigraph", "cite", "poem", "stanza", "annotation"):
            is_below = kind == "section" and bool(_children(section, "title"))
            _book_section(part, out, level + is_below)
            out.block(0, "")
        elif words := _text(part):
            out.block(0, prose(words))


# ---- any other -----------------------------------------------------------------------------------


def _is_data(root: Any) -> bool:
    """Whether a file says more in attributes than in its text: settings, drawings."""
    texts = sum(len(text.strip()) for text in root.itertext())
    values = sum(len(value) for one in root.iter("*") for value in one.attrib.values())
    return bool(values > _DATA_SHARE * texts)


def _has_own_text(element: Any) -> bool:
    return bool((element.text or "").strip()) or any((one.tail or "").strip() for one in element)


def _read_any(element: Any, out: Written, level: int) -> None:
    """A title as a heading, rows as tables, items as lists, leaves as paragraphs or fields."""
    kind = local_name(element).lower()
    if kind in _LISTINGS:
        out.block(0, fenced("".join(element.itertext()).strip("\n")))
    elif _has_own_text(element) or not len(element):
        out.block(0, *_field(element, is_named=False))
    elif (
        any(local_name(one).lower() in _ROWS for one in element.iter("*")) and kind in _TABLE_KINDS
    ):
        _table(element, out)
    else:
        title = next((one for one in element if local_name(one).lower() in _TITLES), None)
        words = _first(element, local_name(title).lower()) if title is not None else ""
        words = words or next((element.get(key) for key in _TITLES if element.get(key)), "")
        if words:
            if level == 1:
                out.metadata.setdefault("title", words)
            out.block(0, f"{'#' * min(_DEEPEST, level)} {' '.join(words.split())}", "")
        inner = level + (words != "")
        children = [one for one in element if one is not title]
        is_record = all(map(_is_field, children))
        for child in children:
            if is_record:
                out.add(0, *_field(child, is_named=True))
            elif local_name(child).lower() in _ITEMS and not _children(child, *_TITLES):
                _item(child, out)
            else:
                _read_any(child, out, inner)


_TABLE_KINDS: Final = names_in("table informaltable tgroup simpletable")
_FIELD_LENGTH: Final = 200
_PROSE: Final = names_in("p para simpara ab l line")


def _is_field(element: Any) -> bool:
    name = local_name(element).lower()
    is_short = len(element.text or "") <= _FIELD_LENGTH
    return not len(element) and name not in _PROSE | _ITEMS and is_short


def _field(element: Any, *, is_named: bool) -> Iterator[str]:
    """What an element without others says; where that is nothing, what its attributes do."""
    words, name = _text(element), local_name(element)
    if words:
        yield prose(f"{name}: {words}" if is_named else words)
    elif values := [f"{local_name(key)}={value}" for key, value in element.attrib.items()]:
        yield prose(f"{name}: {' '.join(' '.join(values).split())}")


def _item(element: Any, out: Written) -> None:
    if any(local_name(one).lower() in _ITEMS for one in element.iter("*") if one is not element):
        for child in element:
            _read_any(child, out, _DEEPEST)
    elif words := _text(element):
        add = out.add if out.lines and out.lines[-1].startswith("- ") else out.block
        add(0, f"- {words}")


def _table(element: Any, out: Written) -> None:
    title = _first(element, *_TITLES)
    rows = [
        [_text(cell) for cell in row if local_name(cell).lower() in _CELLS]
        for row in element.iter("*")
        if local_name(row).lower() in _ROWS
    ]
    out.block(0, *([f"**{title}**", ""] if title else ()), *table_lines(rows), "")

"""What a document says about itself: title, other names, description, tags and links.

Pure. Keys of the frontmatter count in whatever case. One rule: what a stranger wrote stays small:
only a number of names, each of a limited length, whatever the document holds.
"""

import json
import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from filestore.chunking import blanked
from filestore.extract import FRONTMATTER_ERROR, for_name
from filestore.extract.base import Document, ExtractionError, decode, document_text
from filestore.extract.links import MOST_LINKS, Link, links
from filestore.extract.markdown import plain_text, read_frontmatter
from filestore.extract.markdown_read import DEFINITION, INLINE, without_any_code

MAX_TITLE: Final = 500
MAX_DESCRIPTION: Final = 500
MAX_NAME: Final = 200
"""Of an alias or a tag, in characters; a longer one is none."""
MOST_NAMES: Final = 200
"""Aliases, or tags, of one document."""

_HEADING_WINDOW: Final = 65_536  # characters; a title further down names a part, not the document
_HEADING: Final = re.compile(
    r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<atx>[^\n]*)$"
    r"|(?:\A|(?<=\n\n)) {0,3}(?P<setext>[^\s#>|`~*+-][^\n]*)\n {0,3}(?P<line>=+|-+)[ \t]*$",
    re.MULTILINE,
)
_CLOSING: Final = re.compile(r"^(?:---|\.\.\.|\+\+\+)[ \t]*$", re.MULTILINE)
_NO_TAGS: Final = re.compile(
    # [[links]], the ends of [links](to#places), <tags and="#attributes">, and addresses.
    r"!?\[\[[^\[\]\n]+\]\]|</?[A-Za-z][^<>\n]*>|://\S+"
)
_TAG: Final = re.compile(
    r"""(?:^|(?<=[\s(\[{"'“‘«*~>,|，、。（]))#([^\s#!-,.:-@\[-^`{-~\\]+)""", re.MULTILINE
)
_TAG_START: Final = re.compile(r"#[^\s#!-,.:-@\[-^`{-~\\]")
"""Found much sooner, as what it begins with is one sign."""
_TAG_MARKS: Final = frozenset("_-/")
_MOST_LEVELS: Final = 8  # of a nested tag that count on their own


class About(Struct, frozen=True, kw_only=True):
    """What a document says about itself."""

    title: str
    """From the metadata, else the first heading, in a note one of the first level, else the name
    of the file; on one line."""
    heading_title: str
    """The title where the document says one, else empty: it never depends on the file's name."""
    aliases: tuple[str, ...]
    """Other names, as written."""
    description: str
    """On one line."""
    tags: tuple[str, ...]
    """Without `#`; first those of the metadata, then those in the text."""
    links: tuple[Link, ...]
    """To files, in order: those in the metadata, on line 0, then those in the text."""

    def pairs(self) -> Iterator[tuple[str, str]]:
        """What filters match in addition to the metadata: each key and value once.

        A tag `a/b` counts as `a`, too: a search for a subject means what lies below it.
        """
        yield from _pairs(self.heading_title, self.description, self.aliases, self.tags)


def about_pairs(metadata: Mapping[str, Any], text: str = "") -> Iterator[tuple[str, str]]:
    """The same of what metadata say alone, and of the tags in a text of Markdown."""
    values = _by_folded_key(metadata)
    title = " ".join(_text(values.get("title")).split())[:MAX_TITLE]
    inline = _inline_tags(without_any_code(text)) if _TAG.search(text) else ()
    tags = _distinct(chain(_tags_above(values), inline))
    yield from _pairs(title, _description(values), _aliases(values), tags)


def _pairs(
    title: str, description: str, aliases: Iterable[str], tags: Iterable[str]
) -> Iterator[tuple[str, str]]:
    found = [("title", title), ("description", description)]
    found += [("aliases", alias) for alias in aliases]
    for tag in tags:
        ends = [at for at, sign in enumerate(tag) if sign == "/"][:_MOST_LEVELS]
        found += [("tags", part) for part in (tag, *(tag[:end] for end in ends))]
    yield from dict.fromkeys((key, value) for key, value in found if value)


def about(document: Document, *, name: str) -> About:
    """What a document says about itself.

    Args:
        document: As an extractor made it.
        name: The name or path of its file.
    """
    values = _by_folded_key(document.metadata)
    # What `#word` and `[[name]]` are in notes, they are not in what was a web page or a PDF.
    is_note = document.extractor.startswith("markdown/")
    visible = without_any_code(document.text) if document.syntax == "markdown" else ""
    # The title that a document says, in its metadata or its first heading.
    named = _text(values.get("title"))
    # Extractors of code and notebooks call a document as its file, for want of another name.
    if not named and not document.extractor.startswith(("code/", "notebook/")):
        named = document.title
    heading = " ".join(named.split())[:MAX_TITLE] or _first_heading(
        visible, values, is_note=is_note
    )
    base = name.rpartition("/")[2]
    stem, dot, _ = base.rpartition(".")
    found: tuple[Link, ...] = ()
    if document.syntax == "markdown":
        above = _metadata_links(document.metadata.values()) if is_note else ()
        found = (*above, *links(document.text, visible=visible, wiki=is_note))[:MOST_LINKS]
    return About(
        title=heading or (stem if dot and stem else base),
        heading_title=heading,
        aliases=_aliases(values),
        description=_description(values),
        tags=_distinct(chain(_tags_above(values), _inline_tags(visible) if is_note else ())),
        links=found,
    )


def frontmatter_alone(data: bytes, *, name: str) -> Document | None:
    """A note of which nothing but the frontmatter is written yet: that is its text.

    Args:
        data: The bytes of a file without any text below its frontmatter.
        name: Its name or path.

    Returns:
        None where it is no note, or its frontmatter says nothing.

    Raises:
        ExtractionError: It is no text.
    """
    extractor = for_name(name)
    if extractor is None or extractor.name != "markdown":
        return None
    decoded, _ = decode(data, name=name)
    text = document_text(decoded, name=name)
    metadata, _ = read_frontmatter(text)
    if not metadata:
        return None
    return Document(text=text, syntax="text", metadata=metadata, extractor=extractor.label)


def _metadata_links(values: Iterable[Any]) -> Iterator[Link]:
    """The names in brackets that are in metadata, as in `up: "[[name]]"`."""
    for value in values:
        if isinstance(value, str):
            yield from (replace(one, line=0) for one in links(value) if one.kind == "wiki")
        elif isinstance(value, Mapping):
            yield from _metadata_links(value.values())
        elif isinstance(value, list):
            yield from _metadata_links(value)


# ---- titles --------------------------------------------------------------------------------------


def _first_heading(visible: str, values: Mapping[str, Any], *, is_note: bool) -> str:
    """The first heading, as plain text on one line; empty without one.

    One below the first level is a part of a note; what was no note may have no other.
    """
    start = 0
    if FRONTMATTER_ERROR in values and visible.startswith(("---", "+++")):
        # It is in the text, where its last key looks like a heading with a line under it.
        closing = _CLOSING.search(visible, visible.find("\n") + 1, _HEADING_WINDOW)
        start = closing.end() if closing else 0
    for match in _HEADING.finditer(visible, start, _HEADING_WINDOW):
        if is_note and (match["level"] or match["line"])[:2] not in ("#", "=", "=="):
            continue
        title = plain_text((match["atx"] or match["setext"] or "").rstrip("# \t"))
        if title:
            return title[:MAX_TITLE]
    return ""


def _description(values: Mapping[str, Any]) -> str:
    named = _text(values.get("description")) or _text(values.get("summary"))
    return " ".join(named.split())[:MAX_DESCRIPTION].rstrip()


# ---- lists of names ------------------------------------------------------------------------------


def _by_folded_key(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata by key in whatever case; of two the first counts."""
    return {key.casefold(): value for key, value in reversed(list(metadata.items()))}


def _aliases(values: Mapping[str, Any]) -> tuple[str, ...]:
    return _distinct(_frontmatter_names(values, "aliases", "alias"))


def _tags_above(values: Mapping[str, Any]) -> Iterator[str]:
    names = _frontmatter_names(values, "tags", "tag", by_blanks=True)
    return (tag.lstrip("#") for tag in names)


def _frontmatter_names(
    values: Mapping[str, Any], *keys: str, by_blanks: bool = False
) -> Iterator[str]:
    """The items of a list, or of a text with commas; with blanks, too, if it has no comma."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, list):
            yield from map(_text, value)
        elif isinstance(value, str) and by_blanks and "," not in value:
            yield from value.split()
        else:
            yield from _text(value).split(",")


def _text(value: object) -> str:
    """A scalar as text; empty for what is none."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else ""


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Names that differ in more than their case, in order, as many as may be."""
    found: dict[str, str] = {}
    for name in names:
        written = " ".join(name.split())
        if 0 < len(written) <= MAX_NAME:
            found.setdefault(unicodedata.normalize("NFC", written).casefold(), written)
            if len(found) == MOST_NAMES:
                break
    return tuple(found.values())


# ---- tags ----------------------------------------------------------------------------------------


def _inline_tags(visible: str) -> Iterator[str]:
    """The tags of a text whose code is blank, as Obsidian reads them."""
    if not _TAG_START.search(visible) or not _TAG.search(visible):
        return
    for pattern, group in ((INLINE, 1), (DEFINITION, 2), (_NO_TAGS, 0)):
        visible = blanked(visible, [match.span(group) for match in pattern.finditer(visible)])
    for match in _TAG.finditer(visible):
        written = match[1][: MAX_NAME + 1]
        end = 0
        for sign in written:
            is_mark = sign in _TAG_MARKS or unicodedata.category(sign).startswith("M")
            if not (sign.isalnum() or is_mark):
                break
            end += 1
        tag = written[:end].strip("/")
        # `#1984` is the number of something.
        if any(map(str.isalnum, tag)) and not tag.isdecimal():
            yield tag


_BREAK: Final = re.compile(r"\r\n|\r|\n")
_LINE_FEED: Final = re.compile(r"\n")


class Lines:
    """The line breaks of a file, as places in the text of its document."""

    def __init__(self, before: int, breaks: "array[int]", numbers: Sequence[int] = ()) -> None:
        self._before = before
        self._breaks = breaks
        self._numbers = numbers

    @classmethod
    def of(cls, document: Document, data: bytes, *, name: str) -> "Self | None":
        """The lines of a document that knows them, or whose text is the end of its file; else None.

        Args:
            document: As it was taken out of the file.
            data: The bytes of the file.
            name: Its name, for messages.
        """
        if document.lines:
            places = (one.start() for one in _LINE_FEED.finditer(document.text))
            return cls(0, array("q", places), document.lines)
        try:
            decoded, _ = decode(data, name=name)
            text = document_text(decoded, name=name)
        except ExtractionError:
            return None
        if not text.endswith(document.text):
            return None
        head = len(text) - len(document.text)
        if "\r" not in decoded:
            at = head + decoded.startswith("\ufeff")
            breaks = array("q", [one.start() - at for one in _LINE_FEED.finditer(decoded, at)])
            return cls(decoded.count("\n", 0, at), breaks)
        # A lone CR ends a line only where no LF does: editors show it as a sign within one.
        counts_cr = "\n" not in decoded
        start = 1 if decoded.startswith("\ufeff") else 0
        before, breaks, shrunk = 0, array("q"), start
        for match in _BREAK.finditer(decoded):
            place = match.start() - shrunk - head
            shrunk += len(match[0]) - 1
            if match[0] == "\r" and not counts_cr:
                continue
            if place < 0:
                before += 1
            else:
                breaks.append(place)
        return cls(before, breaks)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The first and the last line of a slice of the document's text, from 1; 0 where none is.

        Who counts from the first to another must not meet a line that was left out or added, unless
        the last one says so.
        """
        first = bisect_left(self._breaks, start)
        last = bisect_left(self._breaks, max(start, end - 1))
        if self._numbers:
            found = self._numbers[first : last + 1]
            is_even = found[-1] - found[0] == last - first
            is_hidden = is_even and any(b - a != 1 for a, b in pairwise(found))
            return (0, 0) if is_hidden else (found[0], found[-1])
        return self._before + first + 1, self._before + last + 1

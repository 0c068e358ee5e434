"""Where a passage is: the document that a person opens, and the line or page in it.

The document of a chunk is the original that it was made from, where that can be looked at and holds
the passage, or is the file that was read and has no lines; else the chunk file itself. No record
has a line in it: the passage is looked for in the bytes that are on disk now. One rule: every line
and page that is named is true, or none is.
"""

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog, FileRow, in_batches, queries
from filestore.core.errors import FilestoreError
from filestore.core.hashing import source_hash
from filestore.core.paths import StorePath, Tree
from filestore.core.schema import JsonObject
from filestore.fs import disk
from filestore.fs.stats import pack_stat
from filestore.search.passage import ELLIPSIS, HEADING, ITEM

if TYPE_CHECKING:
    from filestore.sidecar.originals import Reachable

Span = tuple[int, int]
"""Start and end in a text."""
MOST_ORIGINAL_BYTES: Final = 4 * 1024 * 1024
"""No larger original is searched for a passage."""
MOST_HASHED_BYTES: Final = 16 * 1024 * 1024
"""No larger original is hashed to know whether its pages are still those of its chunks."""
MOST_READ_BYTES: Final = 64 * 1024 * 1024
"""For one answer."""
_MOST_PLACES: Final = 100
_MARKS: Final = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
_WORD: Final = re.compile(r"\S+")
_FRONTMATTER: Final = re.compile(r"---[ \t]*\n.*?^---[ \t]*$", re.S | re.M)
_TAG: Final = re.compile(
    r"<!--.*?-->|<(script|style|head)\b.*?</\1\s*>|<[^>]*>|&#?\w+;", re.S | re.I
)
_LETTERS: Final = re.compile(r"[^\W_]+")
_TARGET: Final = re.compile(r"\]\([^()]*(?:\([^()]*\)[^()]*)*\)")
_FEWEST_LETTERS: Final = 12
"""A shorter passage may be in a page by chance."""
_HEADING: Final = re.compile(r"^#{1,6}[ \t]+(.*)$", re.M)


class Chunk(Struct, frozen=True, kw_only=True):
    """A chunk file as it was read just now."""

    path: StorePath
    body: str
    body_line: int
    """The line of the file on which the body begins; 0 where the file has no such lines."""
    source: str | None
    """The reference of its document, as recorded."""
    resource: str
    headings: tuple[str, ...]
    pages: tuple[int, ...]
    edited: bool
    """Whether a person changed the body: it may say what its document does not."""
    page_starts: tuple[Span, ...] = ()
    """Where in the body of a section its pages start, and their numbers."""
    is_code: bool = False
    """Whether a line with a hash in it is no heading."""
    is_section: bool = False
    """Whether it is a section of the document itself, which was read just now."""
    is_uneven: bool = False
    """Whether it has line ends that are none in the document."""

    @classmethod
    def of(
        cls,
        row: FileRow,
        files: Tree,
        body: str,
        source: str | None,
        *,
        edited: bool,
        body_line: int = 0,
    ) -> Self:
        """A chunk file with the body that it has now, and what the catalog knows of it."""
        headings, pages = row.headings_and_pages()
        return cls(
            path=files.store_path(row.path),
            body=body,
            body_line=body_line,
            source=source,
            resource=row.resource,
            headings=headings,
            pages=pages,
            edited=edited,
        )


class Around(JsonObject, Struct, frozen=True, kw_only=True):
    """The lines of a document in which an excerpt is, and some around it, as they are written."""

    KEYS = "line end_line text"

    before: tuple[str, ...] = ()
    """Lines above the ones of the excerpt."""
    lines: tuple[str, ...] = ()
    """Those in which it is."""
    after: tuple[str, ...] = ()
    line: int | None = None
    """The first of them in the document; None where it has no lines."""

    @property
    def end_line(self) -> int | None:
        """The last one."""
        count = len(self.before) + len(self.lines) + len(self.after)
        return None if self.line is None else self.line + count - 1

    @property
    def text(self) -> str:
        """What they say."""
        return "\n".join((*self.before, *self.lines, *self.after))


class Place(Struct, frozen=True, kw_only=True):
    """Where a passage is."""

    document: StorePath
    """Relative to the store root; it may lead out of it."""
    line: int | None = None
    """The first line of the passage, from 1; None in a document that has pages."""
    end_line: int | None = None
    """The last one."""
    page: int | None = None
    """None also where its chunk spans several."""
    before: tuple[str, ...] = ()
    """Lines that are before the passage."""
    after: tuple[str, ...] = ()
    around: Around | None = None
    """The lines that it is in, and some around them; None where none are wanted."""


def has_lines(source: str, pages: Sequence[int]) -> bool:
    """Whether a document, by its name and its pages, has lines that a place could name."""
    from filestore.extract import is_markup, is_text

    return is_text(source) and not (is_markup(source) or pages)


class Locator:
    """Finds the places of the hits of one answer; what it reads is read once."""

    def __init__(
        self, reachable: "Callable[[], Reachable]", catalog: Catalog, sources: Iterable[str]
    ) -> None:
        """Prepare; the catalog is asked now, the disk when a place is.

        Args:
            reachable: Says where the store may look; asked if there is an original at all.
            catalog: Inside a snapshot.
            sources: Those of the chunks whose passages are placed, as far as they have no lines.
        """
        self._open_reachable = reachable
        self._reachable: Reachable | None = None
        self._known: dict[tuple[str, str], list[tuple[str, str | None, bytes | None]]] = {}
        for batch in in_batches(sorted(set(sources))):
            self._known |= queries.known_of_documents(catalog, batch)
        self._texts: dict[str, str | None] = {}
        self._markup: dict[str, _Markup] = {}
        self._left_bytes = MOST_READ_BYTES

    def whole(self, chunk: Chunk) -> Place:
        """Where all of a chunk is."""
        words = chunk.body.strip()
        start = chunk.body.find(words)
        return self.place(chunk, (start, start + len(words)))

    def place(self, chunk: Chunk, passage: Span, *, context: int | None = None) -> Place:
        """Where a passage is.

        Args:
            chunk: The chunk file that it was found in.
            passage: Start and end in its body.
            context: How many lines around it are wanted; 0 for a few in its section, None for none.
        """
        if chunk.is_section:
            return self._in_document(chunk, passage, context)
        start, end = passage
        if chunk.source and end > start:
            from filestore.extract import is_markup, is_text

            has_tags = is_markup(chunk.source)
            if is_text(chunk.source) and not chunk.pages:
                text = self._text_of(chunk.source)
                span = None if text is None else find(text, chunk, passage)
                if text is not None and span is None and has_tags:
                    if chunk.source not in self._markup:
                        self._markup[chunk.source] = _Markup(text)
                    span = self._markup[chunk.source].find(chunk.body[start:end])
                if text is not None and span is not None:
                    place = Place(document=StorePath(chunk.source))
                    found = _with_lines(place, text, span, 1, context, chunk.is_code)
                    if has_tags:
                        # What is around it there is tags.
                        read = _with_lines(place, chunk.body, passage, 0, context)
                        found = replace(found, around=read.around)
                    return found
            if (
                not has_lines(chunk.source, chunk.pages)
                and not chunk.edited
                and self._is_its_original(chunk)
            ):
                # What it says is in there, if not on a line that could be named.
                return _on_page(chunk, passage, context)
        own = Place(document=chunk.path)
        return _with_lines(own, chunk.body, passage, chunk.body_line, context, chunk.is_code)

    def _in_document(self, chunk: Chunk, passage: Span, context: int | None) -> Place:
        """Where a passage of a section is; the lines around it may be of other sections."""
        if not chunk.body_line:
            page = next((n for at, n in reversed(chunk.page_starts) if at <= passage[0]), None)
            return replace(_on_page(chunk, passage, context), document=chunk.path, page=page)
        text = self._text_of(chunk.path) if context is not None or chunk.is_uneven else None
        if chunk.is_uneven:
            return _in_uneven(chunk, passage, text, context)
        own = Place(document=chunk.path)
        at = -1 if text is None else text.find(chunk.body, _start_of(text, chunk.body_line))
        if text is None or at < 0:
            return _with_lines(own, chunk.body, passage, chunk.body_line, context, chunk.is_code)
        span = at + passage[0], at + passage[1]
        return _with_lines(own, text, span, 1, context, chunk.is_code)

    def _path_of(self, source: str) -> str | None:
        """Where an original is read; None where there is none, or the store may not look."""
        if self._reachable is None:
            self._reachable = self._open_reachable()
        path = self._reachable.path(source)
        if path is not None and os.path.islink(path):
            path = self._reachable.followed(source)
        return path if path is not None and os.path.isfile(path) else None

    def _text_of(self, source: str) -> str | None:
        """The text of an original as it is now, with LF line ends."""
        if source not in self._texts:
            data = self._read(source, MOST_ORIGINAL_BYTES)
            self._texts[source] = None if data is None else _decoded(data)
        return self._texts[source]

    def _read(self, source: str, limit: int) -> bytes | None:
        try:
            path = self._path_of(source)
            if path is None or self._left_bytes <= 0:
                return None
            data = disk.read_path(path, limit=limit)
        except (OSError, ValueError, FilestoreError) as error:
            if isinstance(error, OSError):
                disk.pass_limits(error)
            return None
        self._left_bytes -= len(data)
        return data

    def _is_its_original(self, chunk: Chunk) -> bool:
        """Whether the original is the one that the chunk was made from."""
        assert chunk.source is not None
        known = self._known.get((chunk.resource, chunk.source), [])
        try:
            path = self._path_of(chunk.source)
            values = None if path is None else disk.stat_values(os.lstat(path))
        except (OSError, ValueError):
            return False
        if values is None or not known:
            return False
        packed = pack_stat(values)
        if any(now == made and stat == packed for made, now, stat in known):
            return True
        if any(stat == packed for _, _, stat in known):
            return False
        data = self._read(chunk.source, MOST_HASHED_BYTES)
        return data is not None and source_hash(data) in {made for made, _, _ in known}


class _Markup:
    """The letters of a page of HTML, and where each is."""

    def __init__(self, text: str) -> None:
        """Take the page; what is in tags, scripts and comments is passed over."""
        self._starts: list[int] = []
        self._before: list[int] = []
        pieces: list[str] = []
        length = at = 0
        for tag in (*_TAG.finditer(text), None):
            for word in _LETTERS.finditer(text, at, tag.start() if tag else len(text)):
                self._starts.append(word.start())
                self._before.append(length)
                pieces.append(word[0])
                length += len(word[0])
            at = tag.end() if tag else at
        self._letters = "".join(pieces)

    def find(self, wanted: str) -> Span | None:
        """Where the letters of a passage of Markdown are, if they do so once."""
        letters = "".join(_LETTERS.findall(_TARGET.sub("]", wanted)))
        place = self._letters.find(letters) if len(letters) >= _FEWEST_LETTERS else -1
        if place < 0 or self._letters.find(letters, place + 1) >= 0:
            return None
        return self._place(place), self._place(place + len(letters) - 1) + 1

    def _place(self, number: int) -> int:
        at = bisect_right(self._before, number) - 1
        return self._starts[at] + number - self._before[at]


def find(text: str, chunk: Chunk, passage: Span) -> Span | None:
    """Where in a document a passage of one of its chunks starts and ends; None where it does not.

    The whole body is looked for first: what is there twice alone may be told apart by it, else
    by the heading above it. White space may differ: a list is taken out of its indentation.
    """
    body = chunk.body.replace("\r\n", "\n").strip("\n")
    start, end = passage
    wanted = chunk.body[start:end].replace("\r\n", "\n")
    before = chunk.body[:start].replace("\r\n", "\n").lstrip("\n")
    spans = [
        (place + len(before), place + len(before) + len(wanted))
        for place in _occurrences(text, body)
    ]
    if not spans:
        spans = [(place, place + len(wanted)) for place in _occurrences(text, wanted)]
    if not spans:
        # The same words, whatever the space between them. Both are compared with single blanks,
        # which takes no longer for texts that repeat themselves.
        even, needle = " ".join(text.split()), " ".join(wanted.split())
        last = len(needle) - 1
        spans = [
            (_in_text(text, even, at), _in_text(text, even, at + last) + 1)
            for at in _occurrences(even, needle)
        ]
    from filestore.extract import is_markup

    has_tags = is_markup(chunk.source or "")
    spans = [one for one in spans if not _is_markup(text, one[0], tags=has_tags)]
    if len(spans) < 2 or not chunk.headings:
        return spans[0] if spans else None
    above = [(match.start(), match[1].strip(" #\t")) for match in _HEADING.finditer(text)]
    for span in spans:
        at = bisect_left(above, (span[0],))
        if at > 0 and above[at - 1][1] == chunk.headings[-1]:
            return span
    return spans[0]


def _is_markup(text: str, place: int, *, tags: bool) -> bool:
    """Whether a place is in the frontmatter, or in a tag or the head of a page."""
    head = _FRONTMATTER.match(text)
    if head is not None and place < head.end():
        return True
    if not tags:
        return False
    begin = text.lower().find("<body")
    return place < begin or text.rfind("<", 0, place) > text.rfind(">", 0, place)


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    start = text.find(wanted) if wanted else -1
    for _ in range(_MOST_PLACES):
        if start < 0:
            return
        end = start + len(wanted)
        before, after = text[start - 1 : start], text[end : end + 1]
        begins = not (before.isalnum() and text[start].isalnum() and before.isascii())
        if begins and not (after.isalnum() and text[end - 1].isalnum() and after.isascii()):
            yield start
        start = text.find(wanted, start + 1)


def _in_text(text: str, even: str, place: int) -> int:
    """Where in a text the sign is that has a place in its words joined by single blanks."""
    number = even.count(" ", 0, place)
    word = next(islice(_WORD.finditer(text), number, None))
    return word.start() + place - (even.rfind(" ", 0, place) + 1)


def _decoded(data: bytes) -> str | None:
    """Text with LF line ends, in the encoding in which its lines can be counted."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeError:
        # An older encoding: what is plain in it is found, and the lines are where they are.
        text = data.decode("latin-1")
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    # Where lines end with LF, a CR is a sign within one.
    return text.replace("\r", "\n") if "\r" in text and "\n" not in text else text


def _on_page(chunk: Chunk, passage: Span, context: int | None) -> Place:
    place = Place(
        document=StorePath(chunk.source or ""),
        page=chunk.pages[0] if len(chunk.pages) == 1 else None,
    )
    # The lines around it are the ones that were taken out of the page.
    found = _with_lines(place, chunk.body, passage, 0, context)
    return replace(found, line=None, end_line=None)


def _start_of(text: str, line: int) -> int:
    """Where a line of a text begins."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start


def _in_uneven(chunk: Chunk, span: Span, text: str | None, context: int | None) -> Place:
    """A place in a text of which not every line end of its section is one in the file."""
    place = Place(document=chunk.path)
    if text is None:
        return place
    first = _start_of(text, chunk.body_line)
    at = text.replace("\r", "\n").find(chunk.body, first)
    if at >= 0:
        found: Span | None = (at + span[0], at + span[1])
    elif found := find(text[first:], chunk, span):
        found = found[0] + first, found[1] + first
    return _with_lines(place, text, found, 1, context, chunk.is_code) if found else place


def _with_lines(
    place: Place,
    text: str,
    span: Span,
    first_line: int,
    context: int | None,
    is_code: bool = False,
) -> Place:
    """A place with the lines of a slice, and as many around it as are wanted."""
    start, end = span
    line = first_line + text.count("\n", 0, start)
    before: list[str] = []
    after: list[str] = []
    if context:
        lines = text.removesuffix("\n").split("\n")
        first, last = text.count("\n", 0, start), text.count("\n", 0, end)
        before = lines[max(0, first - context) : first]
        after = lines[last + 1 : last + 1 + context]
    return replace(
        place,
        line=line,
        end_line=line + text.count("\n", start, end),
        before=tuple(before),
        after=tuple(after),
        around=None
        if context is None
        else around(text, span, first_line, context=context, is_code=is_code),
    )


# The lines around an excerpt


LINES_AROUND: Final = 3
"""Of a document, on either side of an excerpt, where no other number is asked for."""
_MOST_AROUND: Final = 20_000
"""Characters of lines around one excerpt."""
_LONGEST_AROUND: Final = 500
"""Of one of these lines, and to either side of an excerpt in its own."""
_MOST_ITEM: Final = 20
"""Lines of a list item that are looked at for its beginning and its end."""
_LOOKED_BACK: Final = 2_000
"""Lines above an excerpt in which fences are looked for."""
_RULE: Final = re.compile(r"---[ \t]*\Z")


def around(
    text: str, span: tuple[int, int], first_line: int, *, context: int = 0, is_code: bool = False
) -> Around:
    """The lines of an excerpt, with whole list items around it.

    Args:
        text: What it is a slice of.
        span: Its start and end.
        first_line: The number of the first line of the text; 0 where that has none.
        context: How many lines are wanted on either side; 0 for a few in the same section.
        is_code: Whether a line with a hash is no heading.
    """
    start, end = span
    lines = text.removesuffix("\n").split("\n")
    first, last = text.count("\n", 0, start), text.count("\n", 0, end)
    first, last = min(first, len(lines) - 1), min(last, len(lines) - 1)
    barriers = set[int]() if context or is_code else _barriers(lines, first, last)
    top, bottom = _extent(lines, first, last, context or LINES_AROUND, barriers)
    begun, ended = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    ended = len(text) if ended < 0 else ended
    cut = max(begun, start - _LONGEST_AROUND), min(ended, end + _LONGEST_AROUND)
    own = f"{ELLIPSIS * (cut[0] > begun)}{text[slice(*cut)]}{ELLIPSIS * (cut[1] < ended)}"
    return Around(
        before=tuple(map(_short, lines[top:first])),
        lines=tuple(own.removesuffix("\n").split("\n")),
        after=tuple(map(_short, lines[last + 1 : bottom + 1])),
        line=first_line + top if first_line else None,
    )


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_AROUND else f"{line[:_LONGEST_AROUND]}{ELLIPSIS}"


def _barriers(lines: Sequence[str], first: int, last: int) -> set[int]:
    """The lines near an excerpt that another section begins with, or the frontmatter ends with."""
    found: set[int] = set()
    fence, begin = "", max(0, first - _LOOKED_BACK)
    for at, line in enumerate(lines[begin : last + LINES_AROUND + 1], begin):
        opened = line.lstrip()[:3]
        if opened in ("```", "~~~") and fence in ("", opened):
            fence = "" if fence else opened
        elif not fence and (HEADING.match(line) or _RULE.match(line)):
            found.add(at)
    return found


def _extent(
    lines: Sequence[str], first: int, last: int, count: int, barriers: set[int]
) -> tuple[int, int]:
    """The first and the last line around some, without blank ones at the ends."""
    top, bottom, room = first, last, _MOST_AROUND
    # Above a heading is another section.
    while first - top < count and top > 0 and not {top - 1, first} & barriers and room > 0:
        top -= 1
        room -= len(_short(lines[top]))
    if first not in barriers:
        begun = _item_begins(lines, top, barriers)
        top = top if begun is None else begun
    while bottom - last < count and bottom + 1 < len(lines) and room > 0:
        if bottom + 1 in barriers:
            break
        bottom += 1
        room -= len(_short(lines[bottom]))
    if _item_begins(lines, bottom, barriers) is not None:
        for at in range(bottom + 1, min(len(lines), bottom + _MOST_ITEM)):
            if at in barriers or not lines[at].strip() or ITEM.match(lines[at].lstrip()):
                break
            bottom = at
    while top < first and not lines[top].strip():
        top += 1
    while bottom > last and not lines[bottom].strip():
        bottom -= 1
    return top, bottom


def _item_begins(lines: Sequence[str], at: int, barriers: set[int]) -> int | None:
    """The line on which the list item begins that has a line; None where no item has it."""
    for begun in range(at, max(-1, at - _MOST_ITEM), -1):
        if begun in barriers or not lines[begun].strip():
            return None
        if ITEM.match(lines[begun].lstrip()):
            return begun
    return None

"""What a chunk file is: the keys that are ours, the texts that are embedded, the names of files.

Reading and writing frontmatter as such is `chunks.frontmatter`; nothing here touches a disk. One
rule: a file we generate is a function of what it is made from, and a file that exists is changed
only in our keys.
"""

import hashlib
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final, Protocol, TypedDict, Unpack

from msgspec import Struct

from filestore.chunking import Section, without_data
from filestore.chunks import order_key
from filestore.chunks.frontmatter import (
    parse_block,
    serialize,
    split,
    with_keys,
)
from filestore.core import hashing
from filestore.core.errors import FilestoreError
from filestore.core.frontmatter_yaml import Value
from filestore.core.paths import ChunkPath

KINDS: Final = ("chunk", "summary", "questions")

OUR_KEYS: Final = (
    "source",
    "kind",
    "level",
    "order",
    "headings",
    "pages",
    "overlap",
    "repeats",
    "origin",
    "children",
    "made_by",
    "questions",
    "questions_origin",
)
"""The keys that are not the user's, in the order in which they are written."""

_OURS: Final = frozenset(OUR_KEYS)
_HEADING_SEPARATOR: Final = " > "
_BYTE_ORDER_MARK: Final = "\ufeff"
_NUMBERED_NAME: Final = re.compile(r"(chunk|summary)([0-9]{1,18})(?:-[^/]*)?\.md")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FLAT_STEM_LENGTH: Final = 13
_INSERTED_TAG_LENGTH: Final = 4
_MOST_WORDS: Final = 40
"""Characters of words in a name, which are at most 160 bytes."""
MARK_DIGITS: Final = 12


class InvalidMetadata(FilestoreError, ValueError):
    """One of our keys holds a value of the wrong type."""

    def __init__(self, key: str, *, expected: str, found: str, line: int, column: int) -> None:
        super().__init__(
            f"invalid metadata, line {line}, column {column}:"
            f" '{key}' must be {expected}, found {found}",
            remedy=f"correct '{key}' or remove the line",
        )
        self.key = key
        self.line = line
        """1-based, in the file: where the key is; where the block starts if in doubt."""
        self.column = column


class BadEncoding(FilestoreError, ValueError):
    """A body that is not UTF-8."""

    def __init__(self, reason: str, *, line: int, offset: int) -> None:
        super().__init__(
            f"bad encoding, line {line}, byte {offset} of the file: not UTF-8, {reason}",
            remedy="save the file as UTF-8",
        )
        self.line = line
        """1-based, in the file."""
        self.offset = offset
        """The first byte that does not fit, counted from 0 in the file."""


class Child(Struct, frozen=True, kw_only=True):
    """What a summary was made from."""

    path: ChunkPath
    hash: str
    """``sha256:<64 hex digits>`` of the text that was read: headings and body, see `embed_text`."""

    @property
    def key(self) -> bytes:
        """The embedding key of that text: 32 bytes; empty where `hash` is none."""
        digits = self.hash.removeprefix(hashing.ORIGIN_PREFIX)
        return bytes.fromhex(digits) if _DIGEST.fullmatch(digits) else b""


class QuestionsOrigin(Struct, frozen=True, kw_only=True):
    """Which questions were generated for a file, and from what."""

    text: str
    """The `text_mark` of the text they were made from; another one now means they are stale."""
    made: tuple[str, ...]
    """The `text_mark` of each question that was ever generated for this file: one that is not there
    any more was changed or deleted by a person, and does not come back."""


class Chunk(Struct, frozen=True, kw_only=True):
    """A chunk file as read. A key that is absent or null has its default."""

    source: str | None = None
    kind: str | None = None
    """``chunk``, ``summary``, ``questions``; None leaves it to the name, see `kind_of_name`."""
    order: str | None = None
    """A key of `filestore.chunks.order_key`; None leaves it to the number in the name."""
    overlap: int = 0
    """Characters at the start of the body that repeat the end of the previous chunk."""
    repeats: tuple[int, int] = (0, 0)
    """Characters at the start and at the end of the body that are elsewhere in its document, such
    as a table's header or a fence; see `reading_order.own_texts`."""
    headings: tuple[str, ...] = ()
    """From the outermost in."""
    pages: tuple[int, ...] = ()
    """1-based."""
    origin: str | None = None
    """The `origin_hash` of the body as generated; None if the file was written by hand."""
    questions: tuple[str, ...] = ()
    level: int | None = None
    children: tuple[Child, ...] = ()
    made_by: str | None = None
    """The generator of a summary, such as ``extractive/2``."""
    questions_origin: QuestionsOrigin | None = None
    user: Mapping[str, Value]
    """Every key that is not ours."""
    body: str
    frontmatter: Mapping[str, Value]
    """Every key, as parsed."""
    sections: tuple[Section, ...] = ()
    """Of a document in place; none of a chunk file."""
    pairs: tuple[tuple[str, str], ...] = ()
    """What filters match of a document, too: aliases, tags in its text."""
    page_starts: tuple[tuple[int, int], ...] = ()
    """Where each of its pages starts, in characters of the body, and the page's number."""
    link_keys: frozenset[str] = frozenset()
    """What is kept of its links to others, of which it only names the target: see `link_key`."""

    def pages_between(self, start: int, end: int) -> tuple[tuple[int, int], ...]:
        """The pages that a stretch of the body lies on: each with where in it the page starts."""
        first = max(0, bisect_right(self.page_starts, start, key=itemgetter(0)) - 1)
        after = bisect_left(self.page_starts, end, key=itemgetter(0))
        return tuple((max(0, at - start), page) for at, page in self.page_starts[first:after])


class OurKeys(TypedDict, total=False):
    """Our keys, as `update` takes them; None removes one."""

    source: str | None
    kind: str | None
    level: int | None
    order: str | None
    headings: Sequence[str] | None
    pages: Sequence[int] | None
    overlap: int | None
    repeats: Sequence[int] | None
    origin: str | None
    children: Sequence[Child] | None
    made_by: str | None
    questions: Sequence[str] | None
    questions_origin: QuestionsOrigin | None


class _WrongTypeError(Exception):
    """Raised where the value is looked at, which is not where the line is known."""

    def __init__(self, key: str, expected: str, value: Value) -> None:
        super().__init__(key)
        self.key = key
        self.expected = expected
        self.value = value


# Reading and writing


def parse(data: bytes) -> Chunk:
    """Read the bytes of a chunk file.

    Raises:
        MalformedFrontmatter: The frontmatter cannot be read within the limits.
        InvalidMetadata: One of our keys has a value of the wrong type.
        BadEncoding: The body is not UTF-8.
    """
    parts = split(data)
    values = parse_block(parts.block, parts.block_line)
    try:
        return _chunk(values, parts.body.decode())
    except UnicodeDecodeError as error:
        offset = len(parts.head) + error.start
        line = data.count(b"\n", 0, offset) + 1
        raise BadEncoding(error.reason, line=line, offset=offset) from error
    except _WrongTypeError as error:
        key = re.compile(rb"^[ \t]*[\"']?" + error.key.encode() + rb"[\"']?[ \t]*:", re.MULTILINE)
        match = key.search(parts.block)
        place = match.start() if match else 0
        found = f"{'text' if isinstance(error.value, str) else 'the value'} {error.value!r:.60}"
        if isinstance(error.value, Mapping | list):
            found = "a list" if isinstance(error.value, list) else "a mapping"
        raise InvalidMetadata(
            error.key,
            expected=error.expected,
            found=found,
            line=parts.block_line + parts.block.count(b"\n", 0, place),
            column=len(match[0]) - len(match[0].lstrip(b" \t")) + 1 if match else 1,
        ) from error


def generate(*, body: str, **keys: Unpack[OurKeys]) -> bytes:
    """The bytes of a chunk file as generated, with the hash of its body as ``origin``.

    The keys come in one fixed order, those with default values are left out, so that the same
    input gives the same bytes.

    Raises:
        ValueError: The frontmatter would be larger than 64 KiB, or a text cannot be encoded.
    """
    given = {**keys, "overlap": keys.get("overlap") or None, "origin": hashing.origin_hash(body)}
    values = {key: _written(given.get(key)) for key in OUR_KEYS}
    kept = {key: value for key, value in values.items() if value is not None}
    return serialize(kept, body.encode())


def update(data: bytes, **changes: Unpack[OurKeys]) -> bytes:
    """A chunk file with some of our keys set, or removed for None; every other byte is kept.

    Raises:
        MalformedFrontmatter: The frontmatter cannot be read or not be edited in place.
        ValueError: A key is not ours, a value has the wrong type or cannot be written.
    """
    written: dict[str, Value] = {}
    for key, value in changes.items():
        if key not in _OURS:
            raise ValueError(f"{key!r} is not a key of ours: {', '.join(OUR_KEYS)}")
        written[key] = _written(value)
    try:
        _chunk(written, "")
    except _WrongTypeError as error:
        raise ValueError(f"{error.key!r} must be {error.expected}") from error
    return with_keys(data, written)


def hand_edited(chunk: Chunk) -> bool:
    """Whether the body of a generated chunk was changed since."""
    return chunk.origin is not None and hashing.origin_hash(chunk.body) != chunk.origin


def text_mark(text: str) -> str:
    """A text in 12 hex digits: enough to tell the few texts of one file from each other."""
    return hashing.embedding_key(text).hex()[:MARK_DIGITS]


class HasQuestions(Protocol):
    """Whatever questions are made for."""

    @property
    def questions(self) -> tuple[str, ...]:
        """The ones that are there."""

    @property
    def questions_origin(self) -> QuestionsOrigin | None:
        """Which were generated, and from what."""


def own_questions(chunk: HasQuestions) -> tuple[str, ...]:
    """The questions that a person wrote or changed."""
    made = chunk.questions_origin.made if chunk.questions_origin else ()
    return tuple(one for one in chunk.questions if text_mark(one) not in made)


def is_summary(path: str, chunk: Chunk) -> bool:
    """Whether a file is a summary, by its own word or else by its name."""
    return (chunk.kind or kind_of_name(path)) == "summary"


def embed_text(headings: Iterable[str], body: str) -> str:
    """What is embedded for a body: its headings on one line, a blank line, the body without data.

    A body that is data alone, and has no heading, is embedded as it is.
    """
    trail = _HEADING_SEPARATOR.join(headings)
    plain = without_data(body)
    if not trail:
        return plain if plain.strip() else body
    # The hash of a text ignores a byte-order mark, but only where it comes first.
    return f"{trail}\n\n{plain.removeprefix(_BYTE_ORDER_MARK)}"


def texts(chunk: Chunk) -> tuple[str, ...]:
    """The texts that are embedded.

    Of a chunk file part 0 is headings and body, part n question n; of a document each section, of a
    file of questions each of them.
    """
    if chunk.sections or chunk.kind == "questions":
        return tuple(section_text(chunk, section) for section in chunk.sections)
    return (embed_text(chunk.headings, chunk.body), *chunk.questions)


def section_text(chunk: Chunk, section: Section) -> str:
    """What is embedded of a section."""
    return embed_text(section.headings, chunk.body[section.start : section.end])


def _chunk(values: Mapping[str, Value], body: str) -> Chunk:
    get = values.get
    kind = get("kind")
    if kind is not None and kind not in KINDS:
        raise _WrongTypeError("kind", '"chunk" or "summary"', kind)
    origin = _text("origin", get("origin"))
    return Chunk(
        source=_text("source", get("source")),
        kind=kind,
        order=_text("order", get("order")),
        overlap=_count("overlap", get("overlap")) or 0,
        repeats=_repeats(get("repeats")),
        headings=_texts("headings", get("headings")),
        pages=_pages(get("pages")),
        origin=origin and hashing.short_origin(origin),
        questions=_texts("questions", get("questions")),
        level=_count("level", get("level")),
        children=_children(get("children")),
        made_by=_text("made_by", get("made_by")),
        questions_origin=_questions_origin(get("questions_origin")),
        user={key: value for key, value in values.items() if key not in _OURS},
        body=body,
        frontmatter=values,
    )


def _text(key: str, value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise _WrongTypeError(key, "text", value)


def _texts(key: str, value: Value) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _WrongTypeError(key, "a list of texts", value)
    for item in value:
        if not isinstance(item, str):
            raise _WrongTypeError(key, "a list of texts", item)
    return tuple(value)


def _count(key: str, value: Value) -> int | None:
    if value is None or (type(value) is int and value >= 0):
        return value
    raise _WrongTypeError(key, "an integer from 0", value)


def _repeats(value: Value) -> tuple[int, int]:
    if value is None:
        return (0, 0)
    if not isinstance(value, list) or len(value) != 2:
        raise _WrongTypeError("repeats", "two integers from 0", value)
    start, end = (_count("repeats", one) or 0 for one in value)
    return start, end


def _pages(value: Value) -> tuple[int, ...]:
    if value is None:
        return ()
    pages = value if isinstance(value, list) else [value]
    for page in pages:
        if type(page) is not int or page < 1:
            raise _WrongTypeError("pages", "an integer from 1, or a list of them", page)
    return tuple(pages)


def _children(value: Value) -> tuple[Child, ...]:
    if value is None:
        return ()
    expected = 'a list of {"path": text, "hash": text}'
    if not isinstance(value, list):
        raise _WrongTypeError("children", expected, value)
    children: list[Child] = []
    for item in value:
        path, digest = (item.get("path"), item.get("hash")) if isinstance(item, dict) else (0, 0)
        if not isinstance(path, str) or not isinstance(digest, str):
            raise _WrongTypeError("children", expected, item)
        children.append(Child(path=ChunkPath(path), hash=digest))
    return tuple(children)


def _questions_origin(value: Value) -> QuestionsOrigin | None:
    if value is None:
        return None
    text, made = (value.get("text"), value.get("made")) if isinstance(value, dict) else (0, 0)
    if not isinstance(text, str) or not isinstance(made, list):
        raise _WrongTypeError("questions_origin", '{"text": text, "made": a list of texts}', value)
    return QuestionsOrigin(text=text, made=_texts("questions_origin", made))


def _written(value: object) -> Value:
    """A value of ours as it is in frontmatter: an empty list is no key."""
    if isinstance(value, QuestionsOrigin):
        return {"text": value.text, "made": list(value.made)}
    if isinstance(value, str | int | None):
        return value
    assert isinstance(value, Sequence)
    if tuple(value) == (0, 0):
        return None
    items = [
        {"path": one.path, "hash": one.hash} if isinstance(one, Child) else one for one in value
    ]
    return items or None


# Names


def chunk_name(number: int, heading: str = "") -> str:
    """The name of the n-th chunk of a resource, counted from 1, with words of a heading."""
    return f"chunk{number}{_words_of(heading)}.md"


def inserted_name(
    number: int, body: str, taken: Container[str], *, folder: str = "", heading: str = ""
) -> str:
    """The name of a chunk inserted after the n-th one: its number and a tag of its content.

    Two people who insert different chunks at the same place get different names. The tag has 4
    base-32 characters, more while the name is taken.

    Args:
        number: Of the chunk before.
        body: Its text.
        taken: Names in use, with their folders.
        folder: Where it is to be, with its slash; part of what is returned.
        heading: Whose words follow.

    Raises:
        ValueError: Every name this body could have is taken.
    """
    data = hashing.normalize_text(body).encode()
    return _tagged_name(f"{folder}chunk", number, data, taken, _words_of(heading))


def _words_of(heading: str) -> str:
    """Words of a heading as they follow a number in a name: letters and digits of any script."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", heading).lower())
    signs = (sign if unicodedata.category(sign)[0] in "LMN" else " " for sign in text)
    words = "".join(signs).split()
    kept = words[0][:_MOST_WORDS] if words else ""
    for word in words[1:]:
        if len(kept) + 1 + len(word) > _MOST_WORDS:
            break
        kept += f"-{word}"
    return f"-{kept}" if kept else ""


def summary_name(number: int, children: Iterable[str], taken: Container[str]) -> str:
    """The name of the n-th summary of a folder, counted from 1.

    Where that is taken, a tag of the paths of its children follows, so that two people who make
    different ones give them different names.
    """
    name = f"summary{number}.md"
    if name not in taken:
        return name
    data = b"\0".join(map(_name_bytes, sorted(children)))
    return _tagged_name("summary", number, data, taken)


def _tagged_name(
    kind: str, number: int, data: bytes, taken: Container[str], words: str = ""
) -> str:
    digest = _base32(data)
    for length in range(_INSERTED_TAG_LENGTH, len(digest) + 1):
        name = f"{kind}{number}-{digest[:length]}{words}.md"
        if name not in taken:
            return name
    raise ValueError(f"every name for this text after {kind} {number} is taken")


def flat_name(source: str, body: str, taken: Container[str]) -> str:
    """The name of a chunk in the flat layout: 13 base-32 characters from source and content."""
    text = _name_bytes(source) + b"\0" + hashing.normalize_text(body).encode()
    stem = _base32(text)[:_FLAT_STEM_LENGTH]
    counter = 1
    while f"{stem}.md" in taken:
        counter += 1
        stem = _base32(text + b"\0%d" % counter)[:_FLAT_STEM_LENGTH]
    return f"{stem}.md"


def record_stem(source: str) -> str:
    """The stem of a resource's record in the flat layout: 13 characters from the source alone."""
    return _base32(_name_bytes(source))[:_FLAT_STEM_LENGTH]


def kind_of_name(name: str) -> str | None:
    """``chunk`` or ``summary`` as a name or path says; None if it does not."""
    match = _NUMBERED_NAME.fullmatch(name.rpartition("/")[2])
    return match[1] if match else None


def number_of_name(name: str) -> int | None:
    """The number after ``chunk`` or ``summary`` in a name or path; None if there is none."""
    match = _NUMBERED_NAME.fullmatch(name.rpartition("/")[2])
    return int(match[2]) if match else None


def sort_key(order: str | None, path: str) -> tuple[bool, str, int, str]:
    """What the files of a resource are sorted by: order key, number in the name, path.

    A numbered file without a key has the key its number implies; one with neither comes last.
    """
    number = number_of_name(path)
    if order is None and number is not None:
        order = order_key.number_key(number)
    return order is None, order or "", number or 0, path


def _name_bytes(name: str) -> bytes:
    """A file name as it is on disk; bytes that are not UTF-8 came in as surrogates."""
    return name.encode("utf-8", "surrogateescape")


def _base32(data: bytes) -> str:
    """The SHA-256 of some bytes in lower-case base 32 (``a-z2-7``): 52 characters."""
    import base64

    return base64.b32encode(hashlib.sha256(data).digest()).decode().rstrip("=").lower()

"""What the bytes of a chunk file mean, and what the catalog keeps of a file.

Of a chunk file it keeps the bytes; of a document what was read from it.

The bytes of a PDF say nothing without the work of reading it; what is kept is what came of that.
One rule: it carries its own checksum and the hash of the file that it was made from, and nothing of
it is believed before both were looked at.

Layout: `MAGIC`, the xxh3_128 of the file, the xxh3_128 of all that follows, the length of the head
(four bytes, little-endian), the head as JSON, the text as UTF-8.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import orjson
from msgspec import Struct, field
from msgspec.structs import asdict

from filestore import chunking
from filestore.chunking import Section
from filestore.chunks import chunk_file, questions_file
from filestore.chunks.chunk_file import Chunk
from filestore.chunks.frontmatter import QUESTIONS_FROM, metadata_pairs
from filestore.chunks.links import link_key
from filestore.chunks.observation import DOCUMENT, MAGIC, Observation, kept_hash
from filestore.core.errors import FilestoreError
from filestore.core.frontmatter_yaml import MalformedFrontmatter
from filestore.core.hashing import DIGEST_BYTES, content_hash, embedding_key
from filestore.core.paths import ChunkPath
from filestore.extract.links import Link

_MARKS: Final = re.compile(rb"^(?:<{7}(?: .*)?|={7}|>{7}(?: .*)?)\r?$", re.MULTILINE)
_FENCE: Final = re.compile(rb"\n---[ \t]*(?:\r?\n|\Z)")
_CODE_FENCE: Final = re.compile(rb"^ {0,3}(`{3,}|~{3,})([^\r\n]*)", re.MULTILINE)


def interpret_chunk(seen: Observation) -> None:
    """Fill in what the bytes of a chunk file mean."""
    try:
        chunk = questions_file.read(seen.data)
    except MalformedFrontmatter as error:
        seen.line, seen.column = error.line, error.column
        refuse(seen, "malformed-frontmatter", error.message, _conflict_in_head(seen.data))
    except chunk_file.InvalidMetadata as error:
        seen.line, seen.column = error.line, error.column
        lines = _conflict_in_head(seen.data)
        if lines is None and error.key == questions_file.KIND:
            # Its lines are the metadata, wherever they are.
            lines = conflict_lines(seen.data)
        refuse(seen, "invalid-metadata", error.message, lines)
    except chunk_file.BadEncoding as error:
        seen.state, seen.detail = "bad-encoding", error.message
        start = seen.data.rfind(b"\n", 0, error.offset) + 1
        before = seen.data[start : error.offset].decode("utf-8", "replace")
        seen.line, seen.column = error.line, len(before) + 1
    else:
        lines = _conflict_in_body(seen.data, chunk) if b"<<<<<<<" in seen.data else None
        if not chunk.body.strip():
            found = f"{len(seen.data):,} bytes, of which none is text below the frontmatter"
            found = found if seen.data else "0 bytes, expected a text"
            seen.state, seen.detail = "empty", f"found {found}"
        elif lines is not None:
            refuse(seen, "conflict-markers", "", lines)
        else:
            seen.chunk = chunk
            seen.texts = chunk_file.texts(chunk)
            seen.keys = tuple(embedding_key(text) for text in seen.texts)


def refuse(seen: Observation, code: str, reason: str, lines: tuple[int, int, int] | None) -> None:
    """Say why a file cannot be used; a conflict is the reason for whatever else is wrong."""
    seen.state, seen.detail = code, reason
    if lines is not None:
        first, middle, last = lines
        detail = (
            "unresolved merge conflict: the conflict markers are in lines"
            f" {first}, {middle} and {last}"
        )
        if later := _begun_after(seen.data, last):
            detail += f"; then {len(later):,} more, from line {later[0]} on"
        seen.state, seen.detail = "conflict-markers", detail
        seen.line, seen.column = first, 0


def _begun_after(data: bytes, last: int) -> list[int]:
    """The lines in which conflicts after this line begin."""
    line, at, found = 1, 0, []
    for begin, _, _ in _triples(data, 0):
        line, at = line + data.count(b"\n", at, begin), begin
        found += [line] if line > last else []
    return found


def _conflict_in_head(data: bytes) -> tuple[int, int, int] | None:
    """The lines of a conflict that begins in the frontmatter; text about git begins after it."""
    closing = _FENCE.search(data, 3)
    lines = conflict_lines(data)
    if lines is None or (closing and lines[0] > data.count(b"\n", 0, closing.start()) + 1):
        return None
    return lines


def _conflict_in_body(data: bytes, chunk: chunk_file.Chunk) -> tuple[int, int, int] | None:
    """The lines of a conflict in a body that is not as generated, or that takes up the file.

    A person's own file has no generated text to be held against: what it shows as code is no
    conflict of its own.
    """
    head = len(data) - len(chunk.body.encode())
    if chunk_file.hand_edited(chunk):
        return conflict_lines(data, head)
    if chunk.origin is None and (found := conflict_outside_code(data, head)) is not None:
        return found
    # One that begins before the frontmatter leaves none to tell what was generated.
    has_fence = _FENCE.search(data) is not None
    return conflict_lines(data) if data.startswith(b"<<<<<<<") and has_fence else None


def conflict_lines(data: bytes, start: int = 0) -> tuple[int, int, int] | None:
    """The lines, 1-based, of the three anchored markers of an unresolved conflict; None for none.

    Args:
        data: A file.
        start: Where to begin; lines are counted from the beginning of the file all the same.
    """
    return next((_lines(data, triple) for triple in _triples(data, start)), None)


def conflict_outside_code(data: bytes, start: int) -> tuple[int, int, int] | None:
    """As `conflict_lines`, of a conflict that is not in one fenced block of code as a whole."""
    blocks = list(fenced(data, start))
    for triple in _triples(data, start):
        first, _, last = triple
        if not any(begin < first and last < end for begin, end in blocks):
            return _lines(data, triple)
    return None


def fenced(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Where blocks of fenced code begin and end; one that is never closed ends with the file."""
    return chunking.fenced(data, _CODE_FENCE, b"`", start)


def _triples(data: bytes, start: int) -> Iterator[tuple[int, int, int]]:
    """The lines of the three markers of each conflict."""
    found: list[int] = []
    for match in _MARKS.finditer(data, start):
        mark = match[0][:1]
        if mark == b"<" and len(found) < 2:
            found = [match.start()]
        elif mark == b"<=>"[len(found) : len(found) + 1]:
            found.append(match.start())
        if len(found) == 3:
            first, middle, last = found
            yield first, middle, last
            found = []


def _lines(data: bytes, triple: tuple[int, int, int]) -> tuple[int, int, int]:
    """The lines, 1-based, of three places."""
    first, middle, last = (data.count(b"\n", 0, place) + 1 for place in triple)
    return first, middle, last


_LENGTH_BYTES: Final = 4
_HEAD_AT: Final = len(MAGIC) + 2 * DIGEST_BYTES + _LENGTH_BYTES


class DocumentDamagedError(FilestoreError, ValueError):
    """What was kept of a document is not what was once written."""


class Extracted(Struct, frozen=True, kw_only=True):
    """What was taken out of a file, and how it was cut."""

    text: str
    syntax: Literal["text", "markdown", "code"]
    extractor: str
    """Name and version of what read it."""
    chunker: str
    """The label of how it was cut."""
    sections: Sequence[Section]
    heading: str = ""
    """What heads the path of every section."""
    title: str = ""
    """What it calls itself; "" where it does not."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pairs: Sequence[Sequence[str]] = ()
    """Key and value of what filters match in addition to the metadata."""
    links: Sequence[Link] = ()
    """To files, as they are written; each with its line in the file, 0 for none."""
    pages: Sequence[Sequence[int]] = ()
    """Start and number of each page."""
    outline: Sequence[Sequence[Any]] = ()
    """Start, level and title of each section of code."""


def encode(document: Extracted, file_hash: bytes) -> bytes:
    """A document as it is kept.

    Args:
        document: What is kept.
        file_hash: The xxh3_128 of the file that it was made from.
    """
    values = asdict(document)
    text = values.pop("text").encode()
    values["sections"] = [
        [one.start, one.end, one.headings, one.line, one.end_line, one.page]
        for one in document.sections
    ]
    values["links"] = [list(asdict(one).values()) for one in document.links]
    head = orjson.dumps(values)
    body = b"".join((len(head).to_bytes(_LENGTH_BYTES, "little"), head, text))
    return b"".join((MAGIC, file_hash, content_hash(body), body))


def is_document(data: bytes) -> bool:
    """Whether kept bytes are those of a document."""
    return data.startswith(MAGIC)


def file_hash_of(data: bytes) -> bytes:
    """The hash of the file that a document was made from.

    Raises:
        DocumentDamagedError: The checksum does not hold.
    """
    made_from = kept_hash(data)
    if not made_from:
        raise _damaged("its checksum does not hold")
    return made_from


def _damaged(detail: str) -> DocumentDamagedError:
    return DocumentDamagedError(
        "what was kept of a document is damaged", remedy="filestore sync --full", detail=detail
    )


def decode(data: bytes, *, part: int | None = None) -> Extracted:
    """The inverse of `encode`.

    Args:
        data: What was kept.
        part: The only section that is wanted, without links; None for all.

    Raises:
        DocumentDamagedError: It is not what was once written.
    """
    file_hash_of(data)
    length = int.from_bytes(data[_HEAD_AT - _LENGTH_BYTES : _HEAD_AT], "little")
    try:
        values = orjson.loads(memoryview(data)[_HEAD_AT : _HEAD_AT + length])
        values = {key: value for key, value in values.items() if key != "names"}  # of 0.1.0
        if part is not None:
            values |= {"sections": values["sections"][part : part + 1], "links": ()}
        values["sections"] = tuple(
            Section(
                start=start, end=end, headings=tuple(headings), line=line, end_line=last, page=page
            )
            for start, end, headings, line, last, page in values["sections"]
        )
        values["links"] = tuple(
            Link(kind=kind, target=target, heading=heading, label=label, line=line, is_embed=embeds)
            for kind, target, heading, label, line, embeds in values.get("links", ())
        )
        return Extracted(text=data[_HEAD_AT + length :].decode(), **values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(str(error)) from error


def as_chunk(document: Extracted) -> Chunk:
    """A document as readers of chunk files know it; its texts are those of its sections."""
    return Chunk(
        kind=DOCUMENT,
        headings=(document.title,) if document.title else (),
        user=document.metadata,
        body=document.text,
        frontmatter=document.metadata,
        sections=tuple(document.sections),
        pairs=tuple((key, value) for key, value in document.pairs),
        page_starts=tuple((start, number) for start, number in document.pages),
        link_keys=frozenset(filter(None, map(link_key, document.links))),
    )


def read(data: bytes) -> Chunk:
    """What kept bytes mean.

    Raises:
        ValueError: They are damaged.
    """
    if is_document(data):
        return as_chunk(decode(data))
    return questions_file.read(data)


def interpret(seen: Observation) -> None:
    """Fill in what kept bytes mean; of what is damaged nothing is known."""
    if not is_document(seen.data):
        interpret_chunk(seen)
        return
    with contextlib.suppress(DocumentDamagedError):
        fill(seen, seen.data)


def fill(seen: Observation, data: bytes) -> None:
    """Fill in what a document says.

    Args:
        seen: Its file.
        data: The document as it is kept, which takes the place of the file's bytes.

    Raises:
        DocumentDamagedError: It is not what was once written.
    """
    _fill(seen, data, decode(data))


def keep(seen: Observation, document: Extracted) -> None:
    """Fill in what a document says that was just read, and how it is kept."""
    _fill(seen, encode(document, seen.file_hash), document)


def _fill(seen: Observation, data: bytes, document: Extracted) -> None:
    seen.data, seen.pending = data, False
    seen.chunk = as_chunk(document)
    seen.texts = chunk_file.texts(seen.chunk)
    seen.keys = tuple(embedding_key(text) for text in seen.texts)


def pairs_of(chunk: Chunk, path: ChunkPath) -> Iterator[tuple[str, str]]:
    """Every pair that filters match of a file, each once, in order."""
    origin = chunk.questions_origin
    made_from = [(QUESTIONS_FROM, origin.text)] if origin is not None else []
    own = chunk.pairs if chunk.sections else pairs_of_user(chunk, path)
    yield from dict.fromkeys((*metadata_pairs(chunk.frontmatter), *own, *made_from))


def pairs_of_user(chunk: Chunk, path: ChunkPath) -> Iterator[tuple[str, str]]:
    """The pairs of the keys of a chunk file that are not ours, and the tags in its text.

    A text that is not of a note has none, nor has a summary.
    """
    from filestore.extract import is_note
    from filestore.extract.about import about_pairs

    is_tagged = chunk.kind in (None, "chunk") and is_note(chunk.source or path.partition("/")[0])
    yield from metadata_pairs(chunk.user)
    yield from about_pairs(chunk.user, chunk.body if is_tagged else "")


def part_name(kind: str, number: int) -> str:
    """What a part of a file is called in words.

    Args:
        kind: That of the file's row.
        number: Of the part, from 0.
    """
    if kind == DOCUMENT:
        return f"passage {number + 1}"
    return f"question {number}" if number else "its text"

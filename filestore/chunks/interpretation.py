"""What the bytes of a chunk file mean, or what is wrong with them. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from filestore.chunks import chunk_file, questions_file
from filestore.chunks.observation import Observation
from filestore.core import encoded_data
from filestore.core.frontmatter_yaml import MalformedFrontmatter
from filestore.core.hashing import embedding_key

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
            # Its lines are the metadata, wherever they stand.
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
        seen.state, seen.detail = "conflict-markers", detail
        seen.line, seen.column = first, 0


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
    """As `conflict_lines`, of a conflict that does not stand in one fenced block of code whole."""
    blocks = list(fenced(data, start))
    for triple in _triples(data, start):
        first, _, last = triple
        if not any(begin < first and last < end for begin, end in blocks):
            return _lines(data, triple)
    return None


def fenced(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Where blocks of fenced code begin and end; one that is never closed ends with the file."""
    return encoded_data.fenced(data, _CODE_FENCE, b"`", start)


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

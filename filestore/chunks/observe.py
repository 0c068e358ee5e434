"""One entry of the truth tree, looked at: what its bytes are, what they mean, what is wrong.

Reads files; decides nothing about drift. One rule: a file that cannot be used becomes an
observation with the code that says why, never an exception.
"""

import contextlib
import os
import re
import stat
from collections.abc import Container, Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Final

from filestore.chunks import chunk_file
from filestore.chunks.frontmatter import MalformedFrontmatter
from filestore.chunks.observation import INDEXED, RECORD, UNMERGED, Observation
from filestore.config.layout import Places
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash, embedding_key
from filestore.core.paths import ChunkPath, Tree
from filestore.fs import disk

if TYPE_CHECKING:
    from filestore.chunks.layout import Layout

MAX_CHUNK_BYTES: Final = 16 * 1024 * 1024

_MARKS: Final = re.compile(rb"^(?:<{7}(?: .*)?|={7}|>{7}(?: .*)?)\r?$", re.MULTILINE)
_FENCE: Final = re.compile(rb"\n---[ \t]*(?:\r?\n|\Z)")
_CODE_FENCE: Final = re.compile(rb"^ {0,3}(`{3,}|~{3,})([^\r\n]*)", re.MULTILINE)


def observe(
    root: int, paths: Iterable[ChunkPath], *, layout: "Layout", unmerged: Container[str] = ()
) -> Iterator[Observation | tuple[ChunkPath, OSError]]:
    """Look at entries below a directory handle, one after another.

    Args:
        root: Directory handle of `chunked/`.
        paths: Relative paths; neighbours of one folder together are read fastest.
        layout: What the files mean.
        unmerged: Paths that git has as unmerged: they are excluded whatever they hold.

    Yields:
        An observation, or the path and the error for what cannot be read. A path that is gone by
        now yields FileNotFoundError.
    """
    open_path: str | None = None
    handle = -1
    try:
        for path in paths:
            parent, _, name = path.rpartition("/")
            try:
                if parent != open_path:
                    if open_path is not None:
                        # First: whoever is interrupted in closing must not close it once more.
                        open_path = None
                        os.close(handle)
                    handle = disk.open_folder(root, parent)
                    open_path = parent
                seen = observe_entry(handle, path, name, layout=layout)
                if path in unmerged and seen.state in (INDEXED, RECORD):
                    exclude(seen)
                yield seen
            except OSError as error:
                disk.pass_limits(error)
                yield path, error
    finally:
        if open_path is not None:
            os.close(handle)


def observe_entry(handle: int, path: ChunkPath, name: str, *, layout: "Layout") -> Observation:
    """Look at one entry of an open folder.

    Raises:
        OSError: It cannot be read, or is gone.
    """
    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
    values = disk.stat_values(status)
    if code := layout.unread_code(name, status.st_mode, status.st_size):
        target = b""
        with contextlib.suppress(OSError):
            target = os.readlink(os.fsencode(name), dir_fd=handle) if code == "symlink" else b""
        most = layout.most_bytes
        detail = describe_unread(
            code, name, status.st_mode, status.st_size, target, most_bytes=most
        )
        return Observation(path=path, values=values, state=code, detail=detail)
    data, status = disk.read_at(handle, name, most=layout.most_bytes)
    seen = Observation(
        path=path,
        values=disk.stat_values(status),
        state=INDEXED,
        file_hash=content_hash(data),
        data=data,
    )
    layout.interpret(seen, name)
    return seen


def describe_unread(
    code: str,
    name: str,
    mode: int,
    size: int,
    target: bytes = b"",
    *,
    most_bytes: int = MAX_CHUNK_BYTES,
) -> str:
    """What stands where a chunk file was expected, in words; pure.

    Args:
        code: As `unread_code` gave it.
        name: The entry's.
        mode: Of its stat.
        size: Of its stat, in bytes.
        target: Where a symbolic link leads.
        most_bytes: The largest file that is read.
    """
    if code == "symlink":
        where = f" to {target.decode('utf-8', 'backslashreplace')}" if target else ""
        return f"a symbolic link{where}; it is not followed"
    if code == "special-file":
        return f"{disk.KINDS.get(stat.S_IFMT(mode), 'no regular file')}; it is never opened"
    if code == "oversized":
        return f"found {size:,} bytes, expected {most_bytes:,} or smaller"
    if code == "leftovers":
        return f"{size:,} bytes left by a filestore process that was killed"
    if name.startswith("."):
        return f"a hidden file of {size:,} bytes"
    return f"a file of {size:,} bytes; the names of chunk files end in .md"


def exclude(seen: Observation) -> None:
    """Exclude a file that git has as unmerged: it holds one side, and which is unknown."""
    seen.state, seen.detail = "conflict-markers", UNMERGED
    seen.chunk, seen.record, seen.texts, seen.keys = None, None, (), ()


def interpret_chunk(seen: Observation) -> None:
    """Fill in what the bytes of a chunk file mean."""
    try:
        chunk = chunk_file.parse(seen.data)
    except MalformedFrontmatter as error:
        seen.line, seen.column = error.line, error.column
        refuse(seen, "malformed-frontmatter", error.message, _conflict_in_head(seen.data))
    except chunk_file.InvalidMetadata as error:
        seen.line, seen.column = error.line, error.column
        refuse(seen, "invalid-metadata", error.message, _conflict_in_head(seen.data))
    except chunk_file.BadEncoding as error:
        seen.state, seen.detail = "bad-encoding", error.message
        start = seen.data.rfind(b"\n", 0, error.offset) + 1
        before = seen.data[start : error.offset].decode("utf-8", "replace")
        seen.line, seen.column = error.line, len(before) + 1
    else:
        lines = _conflict_in_body(seen.data, chunk) if b"<<<<<<<" in seen.data else None
        if not chunk.body.strip():
            seen.state, seen.detail = "empty", _what_is_empty(seen.data)
        elif lines is not None:
            refuse(seen, "conflict-markers", "", lines)
        else:
            seen.chunk = chunk
            seen.texts = chunk_file.texts(chunk)
            seen.keys = tuple(embedding_key(text) for text in seen.texts)


def _what_is_empty(data: bytes) -> str:
    if not data:
        return "found 0 bytes, expected a text"
    return f"found {len(data):,} bytes, of which none is text below the frontmatter"


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
    opened: re.Match[bytes] | None = None
    for match in _CODE_FENCE.finditer(data, start):
        mark, words = match[1], match[2]
        if opened is None:
            # Backticks after backticks are a span of code on one line, not a fence.
            if not (mark[:1] == b"`" and b"`" in words):
                opened = match
        elif mark.startswith(opened[1]) and not words.strip():
            yield opened.start(), match.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(data)


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


def look_at(
    places: Places,
    paths: Sequence[ChunkPath],
    layout: "Layout",
    *,
    unmerged: Set[ChunkPath] = frozenset(),
) -> Iterator[Observation | tuple[ChunkPath, OSError]]:
    """Observe some files of the tree; what git has as unmerged is excluded from search.

    Where the tree cannot be opened, every file is yielded with that error.
    """
    if not paths:
        return

    try:
        handle = os.open(places.chunked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        yield from ((path, error) for path in paths)
        return
    try:
        yield from observe(handle, paths, layout=layout, unmerged=unmerged)
    finally:
        os.close(handle)


def unreadable(tree: Tree, path: ChunkPath, error: OSError) -> Iterator[Finding]:
    """The finding for a file that cannot be read; none for one that went away meanwhile."""
    if not isinstance(error, FileNotFoundError):
        reason = error.strerror or str(error)
        yield Finding(code="unreadable", path=tree.store_path(path), detail=reason)

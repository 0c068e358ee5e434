"""One entry of the truth tree, looked at: what its bytes are, what they mean, what is wrong.

Reads files; decides nothing about drift. One rule: a file that cannot be used becomes an
observation with the code that says why, never an exception.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from filestore import chunkfile, fileio, records
from filestore.frontmatter import MalformedFrontmatter
from filestore.hashing import content_hash, embedding_key
from filestore.observation import INDEXED, RECORD, Observation
from filestore.places import RECORD_NAME
from filestore.settings import Layout

MAX_CHUNK_BYTES: Final = 16 * 1024 * 1024

_CONFLICT: Final = re.compile(
    r"^<{7}(?: .*)?\n(?:.*\n)*?^={7}\n(?:.*\n)*?^>{7}(?: .*)?$", re.MULTILINE
)


def observe(
    root: int, paths: Iterable[str], *, layout: Layout
) -> Iterator[Observation | tuple[str, OSError]]:
    """Look at entries below a directory handle, one after another.

    Args:
        root: Directory handle of `chunked/`.
        paths: Relative paths; neighbours of one folder together are read fastest.
        layout: How records are named.

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
                        os.close(handle)
                        open_path = None
                    handle = fileio.open_folder(root, parent)
                    open_path = parent
                yield observe_entry(handle, path, name, layout=layout)
            except OSError as error:
                yield path, error
    finally:
        if open_path is not None:
            os.close(handle)


def observe_entry(handle: int, path: str, name: str, *, layout: Layout) -> Observation:
    """Look at one entry of an open folder.

    Raises:
        OSError: It cannot be read, or is gone.
    """
    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
    values = fileio.stat_values(status)
    if code := _unread_code(name, status.st_mode, status.st_size, layout):
        return Observation(path=path, values=values, state=code)
    data, status = fileio.read_at(handle, name)
    seen = Observation(
        path=path,
        values=fileio.stat_values(status),
        state=INDEXED,
        file_hash=content_hash(data),
        data=data,
    )
    if is_record(name, layout):
        _interpret_record(seen)
    else:
        interpret_chunk(seen)
    return seen


def is_record(name: str, layout: Layout) -> bool:
    """Whether a file name is that of a record."""
    return name == RECORD_NAME if layout == "tree" else name.endswith(".json")


def _unread_code(name: str, mode: int, size: int, layout: Layout) -> str:
    if stat.S_ISLNK(mode):
        return "symlink"
    if not stat.S_ISREG(mode):
        return "special-file"
    if name.startswith(fileio.TEMPORARY_PREFIX):
        return "leftovers"
    if name.startswith(".") or not (name.endswith(".md") or is_record(name, layout)):
        return "litter"
    return "oversized" if size > MAX_CHUNK_BYTES else ""


def _interpret_record(seen: Observation) -> None:
    try:
        seen.record = records.parse(seen.data)
        seen.state = RECORD
    except records.RecordInvalidError as error:
        seen.state, seen.detail = "record-invalid", error.message


def interpret_chunk(seen: Observation) -> None:
    """Fill in what the bytes of a chunk file mean."""
    try:
        chunk = chunkfile.parse(seen.data)
    except MalformedFrontmatter as error:
        seen.state, seen.detail = "malformed-frontmatter", error.message
    except chunkfile.InvalidMetadata as error:
        seen.state, seen.detail = "invalid-metadata", error.message
    except chunkfile.BadEncoding as error:
        seen.state, seen.detail = "bad-encoding", error.message
    else:
        if not chunk.body.strip():
            seen.state = "empty"
        elif "<<<<<<<" in chunk.body and chunkfile.hand_edited(chunk) and has_conflict(chunk.body):
            seen.state, seen.detail = "conflict-markers", "unresolved merge conflict in the body"
        else:
            seen.chunk = chunk
            seen.texts = chunkfile.texts(chunk)
            seen.keys = tuple(embedding_key(text) for text in seen.texts)


def has_conflict(body: str) -> bool:
    """Whether a body holds the three anchored lines of an unresolved merge conflict, in order."""
    return _CONFLICT.search(body.replace("\r\n", "\n")) is not None

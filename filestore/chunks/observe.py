"""One entry of the truth tree, looked at: what its bytes are, what they mean, what is wrong.

Reads files; decides nothing about drift. One rule: a file that cannot be used becomes an
observation with the code that says why, never an exception.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Container, Iterable, Iterator, Sequence, Set

from filestore.chunks.layout import Layout
from filestore.chunks.observation import INDEXED, MAX_CHUNK_BYTES, RECORD, UNMERGED, Observation
from filestore.config.layout import Places
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath, Tree
from filestore.fs import disk


def observe(
    root: int, paths: Iterable[ChunkPath], *, layout: Layout, unmerged: Container[str] = ()
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
                        # First: one that is interrupted in closing must not close it once more.
                        open_path = None
                        os.close(handle)
                    handle = disk.open_folder(root, parent)
                    open_path = parent
                seen = observe_entry(handle, path, name, layout=layout)
                if path in unmerged and seen.state in (INDEXED, RECORD):
                    # It holds one side, and which is unknown.
                    seen.state, seen.detail = "conflict-markers", UNMERGED
                    seen.chunk, seen.record, seen.texts, seen.keys = None, None, (), ()
                yield seen
            except OSError as error:
                disk.pass_limits(error)
                yield path, error
    finally:
        if open_path is not None:
            os.close(handle)


def observe_entry(handle: int, path: ChunkPath, name: str, *, layout: Layout) -> Observation:
    """Look at one entry of an open folder.

    Raises:
        OSError: It cannot be read, or is gone; a folder in its place is no file.
    """
    layout = layout.of(path)
    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "a folder is in its place", path)
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
    return observe_bytes(path, data, disk.stat_values(status), layout=layout)


def observe_bytes(
    path: ChunkPath,
    data: bytes,
    values: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0),
    *,
    layout: Layout,
) -> Observation:
    """What a file of some bytes would mean at a path; pure."""
    seen = Observation(
        path=path, values=values, state=INDEXED, file_hash=content_hash(data), data=data
    )
    layout.of(path).interpret(seen, path.rpartition("/")[2])
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
    """What is where a chunk file was expected, in words; pure.

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


def look_at(
    places: Places,
    paths: Sequence[ChunkPath],
    layout: Layout,
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

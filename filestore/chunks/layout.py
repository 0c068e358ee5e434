"""The entries of a truth tree: how they are named, what their bytes mean, what is wrong.

Reads files; decides nothing about drift. Two rules: what a file means hangs on its name and its
bytes alone; one that cannot be used becomes an observation with the code that says why, never an
exception.
"""

import contextlib
import errno
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from typing import ClassVar, Final

from filestore.chunks.observation import INDEXED, MAX_CHUNK_BYTES, RECORD, UNMERGED, Observation
from filestore.config.layout import RECORD_NAME, Places
from filestore.config.settings import LayoutName
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash
from filestore.core.paths import QUESTIONS, ChunkPath, Tree, folder_of, made_of
from filestore.fs import disk

_EITHER_SIDE: Final = "; either side will do: 'filestore update' completes it"
"""Of a record: what it does not name any more is found, and what it names wrongly read again."""
_FILE: Final = stat.S_IFREG
_MADE_AGAIN: Final = (
    "; unless a person wrote in it, either side will do: 'filestore enrich --refresh' completes it"
)


class Layout(ABC):
    """One of the layouts that a store may have."""

    cut_by: str = ""
    """The label of how documents were cut since it was made; "" where none was."""

    most_bytes: ClassVar[int]
    """The largest file that is read."""
    has_folders: bool = False
    """Whether each resource has a folder of its own, with its record in it."""
    shares_folder: bool = False
    """Whether the files of all resources lie side by side in one folder."""
    has_sections: ClassVar[bool] = False
    """Whether a file is a document with sections, each found by itself."""
    cuts_as: str = ""
    """The label of how its documents would be cut now; "" where none are cut."""

    def of(self, path: ChunkPath) -> "Layout":
        """The layout that a file is of: what was made of documents has its own."""
        del path
        return self

    def is_record(self, name: str) -> bool:
        """Whether a file name is that of a record."""
        return False

    def reads(self, path: ChunkPath) -> bool:
        """Whether a file of this layout would be read, as far as its name tells."""
        return not self.unread_code(path.rpartition("/")[2], _FILE, 0)

    def is_text(self, path: ChunkPath) -> bool:
        """Whether a file is one that people wrote, as far as its name tells; a record is none."""
        return not self.is_record(path.rpartition("/")[2]) and self.reads(path)

    def unread_code(self, name: str, mode: int, size: int) -> str:
        """The code that keeps an entry from being read at all; "" for one that is to be read."""
        if stat.S_ISLNK(mode):
            return "symlink"
        if not stat.S_ISREG(mode):
            return "special-file"
        if name.startswith(disk.TEMPORARY_PREFIX):
            return "leftovers"
        return "oversized" if size > self.most_bytes else ""

    @abstractmethod
    def interpret(self, seen: Observation, name: str) -> None:
        """Fill in what the bytes of a file mean, as far as that costs little."""

    @abstractmethod
    def settle(self, seen: Observation) -> None:
        """Fill in what an observation leaves pending, where no process has to be started."""

    @abstractmethod
    def complete(self, seen: Iterable[Observation]) -> None:
        """Fill in all that observations leave pending; for writers of the sidecar."""

    @abstractmethod
    def drop_unused(self, files: Callable[[], Iterable[tuple[bytes, bytes]]]) -> None:
        """Forget what is kept of files that are gone, where that is much.

        Args:
            files: Gives path, as it is on disk, and content hash of every file of the store.
        """

    @abstractmethod
    def resource(self, path: ChunkPath, had: str = "") -> str:
        """The resource of a file: what its path tells, where it tells nothing the one it had."""

    def source(self, path: ChunkPath, named: str | None) -> str | None:
        """The document that a file with text comes from, where the file names that one."""
        del path
        return named


class ChunkFiles(Layout):
    """Chunk files and the records of their resources."""

    most_bytes = MAX_CHUNK_BYTES
    _keeps_questions_apart: ClassVar[bool] = False
    """Whether one file of a document may hold questions alone."""

    def __init__(self, *, has_folders: bool = False, shares_folder: bool = False) -> None:
        self.has_folders, self.shares_folder = has_folders, shares_folder

    def is_record(self, name: str) -> bool:
        """Whether a file name is that of a record."""
        return name == RECORD_NAME if self.has_folders else name.endswith(".json")

    def unread_code(self, name: str, mode: int, size: int) -> str:
        """See `Layout.unread_code`."""
        code = super().unread_code(name, mode, size)
        if code not in ("", "oversized"):
            return code
        if name.startswith(".") or not (name.endswith(".md") or self.is_record(name)):
            return "litter"
        return code

    def interpret(self, seen: Observation, name: str) -> None:
        """Fill in what the bytes of a record or a chunk file mean."""
        from filestore.chunks import questions_file, resource_record
        from filestore.chunks.kept import conflict_lines, interpret_chunk, refuse

        if not self.is_record(name):
            interpret_chunk(seen)
            is_apart = seen.chunk is not None and seen.chunk.kind == questions_file.KIND
            # Questions are in the chunk files themselves, or in one file of a document.
            if is_apart and not (self._keeps_questions_apart and name == QUESTIONS):
                refuse(seen, "invalid-metadata", '\'kind\' must be "chunk" or "summary"', None)
                seen.chunk, seen.texts, seen.keys = None, (), ()
            return
        try:
            seen.record = resource_record.parse(seen.data)
            seen.state = RECORD
        except resource_record.RecordInvalidError as error:
            seen.line, seen.column = error.line, error.column
            refuse(seen, "record-invalid", error.message, conflict_lines(seen.data))
            if seen.state == "conflict-markers":
                seen.detail += _EITHER_SIDE

    def settle(self, seen: Observation) -> None:
        """Nothing is ever pending: these files are small."""

    def complete(self, seen: Iterable[Observation]) -> None:
        """Nothing is ever pending."""

    def drop_unused(self, files: Callable[[], Iterable[tuple[bytes, bytes]]]) -> None:
        """Nothing is kept."""

    def resource(self, path: ChunkPath, had: str = "") -> str:
        """In a tree the top folder; in the flat layout the path does not tell."""
        return resource_of(folder_of(path)) if self.has_folders else had


class MadeFiles(ChunkFiles):
    """Chunk files that were made of documents; each says by its path of which."""

    _keeps_questions_apart = True

    def is_record(self, name: str) -> bool:
        """There are no records among them."""
        del name
        return False

    def interpret(self, seen: Observation, name: str) -> None:
        """Fill in what the bytes of a chunk file mean."""
        super().interpret(seen, name)
        if seen.state == "conflict-markers":
            seen.detail += _MADE_AGAIN

    def resource(self, path: ChunkPath, had: str = "") -> str:
        """The document."""
        return shown_name(made_of(path)) or had


def shown_name(path: ChunkPath) -> str:
    r"""A path as a name, which has to be Unicode; bytes that are not UTF-8 as ``\xNN``."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def resource_of(path: ChunkPath) -> str:
    """The resource that the first folder of a path names."""
    return shown_name(ChunkPath(path.partition("/")[0]))


TREE: Final = ChunkFiles(has_folders=True)
FLAT: Final = ChunkFiles(shares_folder=True)
CHUNK_FILES: Final[dict[LayoutName, Layout]] = {"tree": TREE, "flat": FLAT}
"""Layouts of chunk files, by the names of layouts; documents have another."""
MADE: Final = MadeFiles()


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
                if path in unmerged and seen.file_hash and seen.state != "conflict-markers":
                    # It holds one side, and which is unknown.
                    seen.state, seen.detail, seen.pending = "conflict-markers", UNMERGED, False
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

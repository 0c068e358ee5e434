"""How the files of a tree are named, and what their bytes mean.

Asked wherever a file is read. One rule: what a file means hangs on its name and its bytes alone.
"""

import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from filestore.chunks.observation import MAX_CHUNK_BYTES, RECORD, Observation
from filestore.config.layout import RECORD_NAME
from filestore.config.settings import LayoutName
from filestore.core.paths import ChunkPath, folder_of, made_of
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
            if is_apart and not (self._keeps_questions_apart and name == questions_file.NAME):
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

"""The two ways to write where a file of a store lies, and the only place that converts them. Pure.

Both are relative and separated by "/", on every system; bytes that are not UTF-8 are surrogates.
One rule: nothing else puts `chunked/` before a path or takes it off, so that mypy finds a path of
one kind where the other is expected. Where documents are indexed in place, the two are the same.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, NewType

from msgspec import Struct

ChunkPath = NewType("ChunkPath", str)
"""Relative to the folder of the tree, as `chunked/`; "" is the folder itself."""
StorePath = NewType("StorePath", str)
"""Relative to the store root."""

CHUNKED: Final = StorePath("chunked")
"""The folder of the chunk files."""
TOP: Final = ChunkPath("")
"""The same folder."""
NO_PATH: Final = StorePath("")
ROOT: Final = StorePath(".")
"""The store root itself, as findings name it."""
SETTINGS: Final = StorePath("filestore.toml")
SIDECAR: Final = StorePath(".sidecar")
"""The derived parts of a store of chunk files, as findings name it wherever it lies."""
DOCUMENTS_SIDECAR: Final = StorePath(".filestore")
"""The same where documents are indexed in place."""
NOTES: Final = (".md", ".markdown", ".mdown", ".mkd", ".qmd", ".rmd", ".mdx")
"""Suffixes of notes: a link by name leaves them out."""
SUMMARIES: Final = StorePath(".filestore-summaries")
"""The folder, among documents, of what was made of them: summaries, questions."""
QUESTIONS: Final = "questions.md"
"""Below it, in the folder of a document: its questions."""
_NUMBER: Final = re.compile(r"(\d+)")
_NO_DOCUMENTS: Final = frozenset(("", ".", "..", SETTINGS, DOCUMENTS_SIDECAR))
"""First parts of a path that leads to no document."""


class Tree(Struct, frozen=True):
    """Which folder of a store holds its files, and so how a path below it is written."""

    folder: StorePath = CHUNKED
    """"" for a root that holds the documents itself."""
    sidecar: StorePath = SIDECAR
    """The folder of the derived parts as findings name it, wherever the user has it lie."""
    is_written: bool = True
    """Whether its files are chunk files, which commands write; documents are written by people."""
    has_sections: bool = False
    """Whether its files have sections, which `PATH:LINE` names; a chunk file is one passage."""

    @property
    def pathspec(self) -> StorePath:
        """Its folder as git, and a finding about the whole of it, name it."""
        return self.folder or ROOT

    def part(self, name: str) -> StorePath:
        """A derived part as findings name it; "" for their folder."""
        return StorePath(f"{self.sidecar}/{name}" if name else self.sidecar)

    def store_path(self, path: ChunkPath) -> StorePath:
        """A path of the tree as the contract shows it: relative to the store root."""
        if not self.folder:
            return StorePath(path or ROOT)
        return StorePath(f"{self.folder}/{path}" if path else self.folder)

    def holds(self, path: str) -> bool:
        """Whether a path, relative to the store root, lies in the tree; its folder does not."""
        if self.folder:
            return path.startswith(f"{self.folder}/")
        if path.partition("/")[0] in _NO_DOCUMENTS:
            return False
        return "/.." not in path or ".." not in path.split("/")

    def covers(self, path: str) -> bool:
        """Whether a path, relative to the store root, is the folder of the tree, or in it."""
        return path == self.pathspec or self.holds(path)

    def chunk_path(self, path: StorePath) -> ChunkPath:
        """The inverse of `store_path`; a path that is not of the tree stays as it is."""
        if not self.folder:
            return TOP if path == ROOT else ChunkPath(path)
        return ChunkPath("" if path == self.folder else path.removeprefix(f"{self.folder}/"))

    def chunk_paths(self, paths: Iterable[StorePath]) -> list[ChunkPath]:
        """Those of some paths that lie in the tree, as paths below its folder."""
        return [self.chunk_path(path) for path in paths if self.holds(path)]


CHUNKS: Final = Tree()
"""The tree of a store of chunk files."""
DOCUMENTS: Final = Tree(NO_PATH, DOCUMENTS_SIDECAR, is_written=False, has_sections=True)
"""The tree of a store whose root holds its documents."""


def sidecar_named(folder: str) -> StorePath:
    """How findings name the folder of the derived parts, by how it is called on the disk."""
    return DOCUMENTS_SIDECAR if folder == DOCUMENTS_SIDECAR else SIDECAR


def inside(folder: ChunkPath, name: str) -> ChunkPath:
    """The path of an entry of a folder."""
    return ChunkPath(f"{folder}/{name}" if folder else name)


def is_made(path: str) -> bool:
    """Whether a file of a tree of documents is none, but was made of one."""
    return path.startswith(f"{SUMMARIES}/")


def made_of(path: ChunkPath) -> ChunkPath:
    """The document that a file was made of: below `SUMMARIES` each has a folder."""
    return folder_of(ChunkPath(path.partition("/")[2]))


def folder_of(path: ChunkPath) -> ChunkPath:
    """The folder that an entry lies in."""
    return ChunkPath(path.rpartition("/")[0])


def around(path: str) -> Iterator[str]:
    """A path, and every folder around it but the top."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies below it: the one rule of containment.

    Compares texts, case and all, and asks no disk. To know where a path leads, give
    `os.path.realpath` of both, or a symbolic link in either is taken for what it is called.
    """
    if folder == ROOT:
        return not path.startswith("/") and path.partition("/")[0] != ".."
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def has_plain_names(path: str) -> bool:
    """Whether a relative path that a stranger may have written names something inside its folder.

    Every part of it has to be a name, so that it leads out neither at once nor on the way.
    """
    return "\0" not in path and {"", ".", ".."}.isdisjoint(path.split("/"))


def folded_path(path: str) -> str:
    """A path as a file system that ignores case and composition sees it."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Sorts as a person does: chunk 10 after chunk 9."""
    parts = _NUMBER.split(name.casefold())
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)

"""How the files of a tree are named, and what their bytes mean.

Asked by whoever looks at a file. One rule: what a file means hangs on its name and its bytes alone.
"""

import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Final

from filestore.chunks import chunk_file, questions_file, resource_record
from filestore.chunks.observation import MAX_CHUNK_BYTES, RECORD, Observation
from filestore.config.layout import RECORD_NAME
from filestore.config.settings import LayoutName
from filestore.core import encoded_data
from filestore.core.frontmatter_yaml import MalformedFrontmatter
from filestore.core.hashing import embedding_key
from filestore.core.paths import ChunkPath, folder_of, made_of
from filestore.fs import disk

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
        """Fill in all that observations leave pending; for whoever writes the sidecar."""

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
        from filestore.chunks import questions_file

        if not self.is_record(name):
            interpret_chunk(seen)
            if seen.chunk is not None and seen.chunk.kind == questions_file.KIND:
                self._judge_questions(seen, name)
            return
        try:
            seen.record = resource_record.parse(seen.data)
            seen.state = RECORD
        except resource_record.RecordInvalidError as error:
            seen.line, seen.column = error.line, error.column
            refuse(seen, "record-invalid", error.message, conflict_lines(seen.data))
            if seen.state == "conflict-markers":
                seen.detail += _EITHER_SIDE

    def _judge_questions(self, seen: Observation, name: str) -> None:
        """Questions stand in the chunk files themselves."""
        del name
        _refuse_kind(seen)

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

    def is_record(self, name: str) -> bool:
        """There are no records among them."""
        del name
        return False

    def interpret(self, seen: Observation, name: str) -> None:
        """Fill in what the bytes of a chunk file mean."""
        super().interpret(seen, name)
        if seen.state == "conflict-markers":
            seen.detail += _MADE_AGAIN

    def _judge_questions(self, seen: Observation, name: str) -> None:
        """One file of a document has them."""
        from filestore.chunks import questions_file

        if name != questions_file.NAME:
            _refuse_kind(seen)

    def resource(self, path: ChunkPath, had: str = "") -> str:
        """The document."""
        return shown_name(made_of(path)) or had


def _refuse_kind(seen: Observation) -> None:
    """Say that a file has questions alone where it cannot."""
    refuse(seen, "invalid-metadata", '\'kind\' must be "chunk" or "summary"', None)
    seen.chunk, seen.texts, seen.keys = None, (), ()


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

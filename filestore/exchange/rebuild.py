"""Documents that others cut into chunks, put together again and written to a folder.

The chunks come from the files of a folder, from JSON lines, or from `vector_store`; `joining` tells
what they repeat. One rule: what cannot be read is named and left out, and the rest is written.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Any, Final

from msgspec import Struct, field

from filestore.chunks import chunk_file
from filestore.chunks.reading_order import reconstruct
from filestore.config.layout import RECORD_NAME
from filestore.core.errors import FilestoreError
from filestore.core.limits import LINE_BYTES, Counter, Size
from filestore.core.paths import StorePath, natural_key
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import brief, shown_path
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean_path
from filestore.exchange.base import LeftOut
from filestore.exchange.joining import (
    EXACT,
    NONE,
    NORMALIZED,
    Joined,
    Overlap,
    Strategy,
    calibrate,
    count,
    join,
)
from filestore.exchange.markdown import FileNames
from filestore.exchange.rows import lines_of, parsed_line
from filestore.fs import disk
from filestore.remote import EndpointUnusable

Read = Callable[[], Sequence[str] | Joined]


class NoTextError(FilestoreError):
    """Nothing of a document can be read."""


class NoSuchSource(FilestoreError, FileNotFoundError):
    """What was to be read is not there, or is of another kind."""


class Document(Struct, frozen=True, kw_only=True):
    """A document in chunks, which are read when they are asked for."""

    name: str
    read: Read
    """Its chunks in their order; a text where the chunks say themselves how they follow."""
    identifier: str = ""
    """What else it is asked for by."""
    strategy: Strategy | None = None
    """How much its chunks repeat, where its source says so."""


ENDING: Final = ".reconstructed.md"
"""Of what is written: no chunk, where it lies among the files that are read."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_TEXT: Final = ("text", "page_content", "content", "chunk", "chunk_text", "body")
_DOCUMENT: Final = (
    *("document", "filename", "file_name", "file", "source", "path", "document_id", "doc_id"),
    *("file_id", "url", "title"),
)
_ORDER: Final = (
    *("index", "order", "chunk_index", "chunk_number", "position", "seq", "sequence", "number"),
    *("chunk_id", "start", "start_index", "i_start"),
)
_NUMBERED: Final = re.compile(
    r"(?P<name>.*?)[\s._#-]*(?:(?<![a-z])(?P<word>chunk|part|page|section|segment|split|piece))?"
    r"[\s._#(\[-]*(?P<number>\d+)(?:[\s._-]*of[\s._-]*\d+)?[)\]]?",
    re.IGNORECASE | re.DOTALL,
)
_NUMBER_FIRST: Final = re.compile(r"(?P<number>\d+)[\s._#)-]+(?P<name>.+)", re.DOTALL)
_FLAT_NAME: Final = re.compile(r"[a-z2-7]{13}\.md")
_FLAT_RECORD: Final = re.compile(r"[a-z2-7]{13}\.json")
_OTHER_FILES: Final = frozenset({".json", ".jsonl", ".csv", ".npy", ".pdf", ".png", ".jpg"})


def in_folder(folder: str, left_out: LeftOut, counter: Counter) -> list[Document]:
    """The documents of a folder of text files.

    A folder inside is a document, or several where all of its names with numbers say so; at the
    top, files whose names differ only by a number are one. Chunk files of a store are read as such.

    Raises:
        NoSuchSource: There is no such folder.
        LimitExceededError: It has more files or bytes than are taken.
    """
    if not os.path.isdir(folder):
        raise NoSuchSource(
            f"there is no folder {folder}"
            ": name a folder of text files; a file is read by '--from jsonl'",
        )
    found: list[Document] = []

    def unread(error: OSError) -> None:
        left_out.add(f"{error.filename}: {error.strerror}")

    for path, folders, names in os.walk(folder, onerror=unread):
        folders[:] = sorted((one for one in folders if not one.startswith(".")), key=natural_key)
        files = [one for one in names if _is_chunk(one, path, left_out)]
        for member in files:
            size = 0
            with suppress(OSError):  # what cannot be read is named later
                size = os.stat(os.path.join(path, member)).st_size
            counter.add(Size(rows=1, bytes=size))
        below = os.path.relpath(path, folder)
        top = os.path.basename(os.path.abspath(folder))
        name = top if below == "." else below.replace(os.sep, "/")
        if RECORD_NAME in names:  # a resource of a store
            paths = [os.path.join(path, member) for member in sorted(files)]
            found.append(Document(name=name, read=partial(_texts, paths, left_out)))
            continue
        flat = {member: _flat_source(path, member) for member in files}
        for source in sorted(set(filter(None, flat.values())), key=natural_key):
            paths = [os.path.join(path, one) for one in files if flat[one] == source]
            own = os.path.basename(source)
            found.append(Document(name=own, read=partial(_texts, paths, left_out)))
        files = [one for one in files if not flat[one]]
        for document, members in _grouped(name, files, is_top=below == "."):
            paths = [os.path.join(path, member) for member in members]
            found.append(Document(name=document, read=partial(_texts, paths, left_out)))
    counter.add(Size(files=len(found)))
    return found


def _flat_source(folder: str, name: str) -> str:
    """The document that a chunk file of a store in the flat layout comes from; "" for others."""
    if not _FLAT_NAME.fullmatch(name):
        return ""
    try:
        chunk = chunk_file.parse(disk.read_path(os.path.join(folder, name)))
    except (OSError, FilestoreError) as error:
        disk.pass_limits(error)
        return ""
    return chunk.source if chunk.source and chunk.order else ""


def _is_chunk(name: str, folder: str, left_out: LeftOut) -> bool:
    """Whether a file may be a chunk by its name."""
    is_ours = name == RECORD_NAME or _FLAT_RECORD.fullmatch(name) or name.endswith(ENDING)
    if is_ours or name.startswith("."):
        return False
    if os.path.splitext(name)[1].lower() in _OTHER_FILES:
        left_out.add(f"{os.path.join(folder, name)}: no text file by its name")
        return False
    return True


def _grouped(folder: str, names: Sequence[str], *, is_top: bool) -> list[tuple[str, list[str]]]:
    """Documents and their files, in order."""
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    certain: set[str] = set()
    for name in names:
        stem, suffix = os.path.splitext(name)
        if suffix[1:].isdecimal():  # report.001
            stem, suffix = name, ""
        match = _NUMBERED.fullmatch(stem) or _NUMBER_FIRST.fullmatch(stem)
        key = (match["name"].strip(), suffix) if match else (stem, suffix)
        groups.setdefault(key, []).append((int(match["number"]) if match else -1, name))
        if match and match.groupdict().get("word"):
            certain.add(name)
    alone = [members for members in groups.values() if len(members) == 1]
    if not is_top and (len(groups) == 1 or alone):
        return [(folder, sorted(names, key=natural_key))] if names else []
    found = []
    for (stem, _), members in groups.items():
        files = [name for _, name in sorted(members, key=lambda one: (one[0], natural_key(one[1])))]
        own = stem or folder
        if len(files) == 1 and stem and files[0] not in certain:
            own = os.path.splitext(files[0])[0]
        found.append((own if is_top or not stem else f"{folder}/{own}", files))
    return sorted(found, key=lambda one: natural_key(one[0]))


def _texts(paths: Sequence[str], left_out: LeftOut) -> Sequence[str] | Joined:
    found: list[tuple[str, bytes]] = []
    for path in paths:
        try:
            found.append((path, disk.read_path(path)))
        except (OSError, FilestoreError) as error:
            disk.pass_limits(error)
            left_out.add(f"{path}: {getattr(error, 'strerror', None) or error}")
    ours = _own_chunks(found)
    if ours is not None:
        return ours
    texts = []
    for path, data in found:
        try:
            text = data.removeprefix(_BYTE_ORDER_MARK).decode()
        except UnicodeDecodeError as error:
            left_out.add(f"{path}: not UTF-8 at byte {error.start + 1:,}")
            continue
        if "\0" in text:
            left_out.add(f"{path}: no text, it holds a NUL")
            continue
        texts.append(text)
    if paths and not texts:
        raise NoTextError("no file of it can be read as text: 'left out' says why")
    return texts


def _own_chunks(files: Sequence[tuple[str, bytes]]) -> Joined | None:
    """The text of chunk files that a store wrote; None for what others wrote."""
    chunks: list[tuple[StorePath, chunk_file.Chunk]] = []
    is_ours = False
    for path, data in files:
        try:
            chunk = chunk_file.parse(data)
        except FilestoreError:
            return None
        is_ours |= chunk.origin is not None or chunk.order is not None or bool(chunk.overlap)
        if not chunk_file.is_summary(os.path.basename(path), chunk):
            chunks.append((StorePath(path), chunk))
    if not is_ours:
        return None
    done = reconstruct(chunks)
    recorded = [
        Overlap(overlap_chars=chunk.overlap or 0, confidence=EXACT, method="recorded")
        for _, chunk in chunks[1:]
    ]
    return Joined(
        text=done.text, chunks=done.chunks, overlaps=tuple(recorded), warnings=done.warnings
    )


def in_lines(path: str, left_out: LeftOut, counter: Counter) -> list[Document]:
    """The documents of a file of JSON lines: a chunk a line.

    Raises:
        NoSuchSource: There is no such file.
        LimitExceededError: It has more lines or bytes than are taken.
    """
    found: dict[str, list[tuple[float, int, int]]] = {}
    """Of the lines of each document: order, number, offset."""
    fallback = os.path.splitext(os.path.basename(path))[0]
    with _opened(path) as file:
        counter.add(Size(bytes=os.fstat(file.fileno()).st_size))
        for where, number, offset, row in lines_of(file, left_out, path):
            counter.add(Size(rows=1))
            if problem := _unusable(row):
                left_out.add(f"{where}: {problem}")
                continue
            named = (
                str(one)
                for one in _values(row, _DOCUMENT)
                if isinstance(one, str | int) and not isinstance(one, bool) and one != ""
            )
            document = next(named, fallback)
            if document not in found:
                counter.add(Size(files=1))
            found.setdefault(document, []).append((_order_of(row, number), number, offset))
    return [
        Document(name=name, read=partial(_texts_of_lines, path, lines))
        for name, lines in found.items()
    ]


def _opened(path: str) -> IO[bytes]:
    try:
        descriptor = disk.open_regular(path, follow_links=True)
    except (FileNotFoundError, disk.NotAFileError) as error:
        raise NoSuchSource(
            f"there is no file {path}: name a file of JSON lines, a chunk a line"
        ) from error
    return open(descriptor, "rb", buffering=1024 * 1024)


def _unusable(row: object) -> str:
    """What is wrong with the value of a line, "" for a chunk."""
    if not isinstance(row, Mapping):
        return f"expected an object, found {brief(row)}"
    return "" if _text_of(row) is not None else f"no text in {brief(row)}"


def _values(row: Mapping[str, Any], keys: Sequence[str]) -> Iterator[Any]:
    """The values of these keys, in the row or in its metadata."""
    inner = row.get("metadata")
    for place in (row, inner if isinstance(inner, Mapping) else {}):
        yield from (place[key] for key in keys if place.get(key) is not None)


def _text_of(row: Mapping[str, Any]) -> str | None:
    return next((one for one in _values(row, _TEXT) if isinstance(one, str)), None)


def _order_of(row: Mapping[str, Any], line: int) -> float:
    for value in _values(row, _ORDER):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str) and (digits := re.search(r"\d+", value)):
            return float(digits[0][:15])
    return float(line)


def _texts_of_lines(path: str, lines: Iterable[tuple[float, int, int]]) -> list[str]:
    texts = []
    with _opened(path) as file:
        for _, _, offset in sorted(lines):
            file.seek(offset)
            row, _ = parsed_line(file.readline(LINE_BYTES))
            texts.append("" if _unusable(row) else _text_of(row) or "")
    return texts


class RebuiltFile(JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}):
    """One document that was put together."""

    KEYS = "name path chunks size_bytes exact normalized none overlaps warnings"

    name: str
    """Of the document; its id where no name is known."""
    path: str
    """The file that was written."""
    size_bytes: int
    """Of the text in UTF-8."""
    chunks: int
    """How many were joined, those without a text included."""
    overlaps: tuple[Overlap, ...]
    """Of each chunk with the one before; chunks without a text have none."""
    warnings: tuple[str, ...]
    """What may be missing or doubled."""

    @property
    def exact(self) -> int:
        """Neighbours that repeat each other."""
        return count(self.overlaps, EXACT)

    @property
    def normalized(self) -> int:
        """Pairs whose overlap differs in white space."""
        return count(self.overlaps, NORMALIZED)

    @property
    def none(self) -> int:
        """Neighbours that share nothing: joined with a newline."""
        return count(self.overlaps, NONE)


class Rebuilt(JsonObject, Struct, frozen=True, kw_only=True):
    """What was put together."""

    KEYS = "folder overlap files chunks bytes failed warnings"

    folder: str
    """Where the texts were written."""
    overlap: str
    """What neighbours were found to repeat, and how it was known; empty where nothing was
    joined."""
    files: tuple[RebuiltFile, ...]
    """A document each."""
    failed: tuple[str, ...]
    """Documents that could not be had, and names of `--only` that none has."""
    warnings: tuple[str, ...]
    """What was left out, of single documents too."""

    @property
    def chunks(self) -> int:
        """Of all."""
        return sum(one.chunks for one in self.files)

    @property
    def size_bytes(self) -> int:
        """Of all."""
        return sum(one.size_bytes for one in self.files)

    @property
    def json_bytes(self) -> int:
        """Of all."""
        return self.size_bytes


def rebuild(
    documents: Iterable[Document],
    folder: str,
    *,
    only: Sequence[str] = (),
    strategy: Strategy | None = None,
    left_out: LeftOut,
    on_progress: OnProgress = ignore,
) -> Rebuilt:
    """Put documents together and write each to ``{folder}/{name}.reconstructed.md``.

    Args:
        documents: Passed through once.
        folder: Made where it is missing; files of these names are replaced.
        only: Names or identifiers of documents; none for all.
        strategy: How much the chunks repeat; None to find out.
        left_out: Where the source of the documents says what it left out.
        on_progress: Called after each document.

    Raises:
        EndpointError: The service that has them is gone; what was written stays.
        WriteFailedError: The disk refused.
    """
    work = _Rebuilding(folder=folder, strategy=strategy)
    wanted, seen = dict.fromkeys(only), list[str]()
    for number, document in enumerate(documents, start=1):
        seen.append(document.name)
        asked = {document.name, document.identifier} & wanted.keys()
        if asked or not wanted:
            wanted |= dict.fromkeys(asked, "found")
            work.take(document)
        on_progress(Progress(stage="reconstructing", done=number, total=None))
    missing = [name for name, found in wanted.items() if found is None]
    work.failed += [f"no document {name!r}{did_you_mean_path(name, seen)}" for name in missing]
    notes = [*left_out, *([f"and {left_out.more:,} more"] if left_out.more else [])]
    return Rebuilt(
        folder=folder,
        overlap=work.label,
        files=tuple(work.files),
        failed=tuple(work.failed),
        warnings=tuple(notes),
    )


class _Rebuilding(Struct, kw_only=True):
    folder: str
    strategy: Strategy | None
    label: str = ""
    files: list[RebuiltFile] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    names: FileNames = field(default_factory=FileNames)

    def take(self, document: Document) -> None:
        """Put one together and write it."""
        try:
            found = document.read()
        except EndpointUnusable:
            raise
        except FilestoreError as error:
            disk.pass_limits(error)
            self.failed.append(f"{shown_path(document.name)}: {error.message}")
            return
        joined = found if isinstance(found, Joined) else join(found, self._of(document, found))
        data = joined.text.encode("utf-8", "surrogatepass")
        path = os.path.join(self.folder, self.names.take(document.name, ENDING))
        with disk.disk_errors(path):
            disk.make_folders(self.folder)
            disk.write_path(path, data)
        warnings = list(joined.warnings)
        if lacking := count(joined.overlaps, NONE):
            pairs = len(joined.overlaps)
            warnings.append(
                f"{lacking:,} of {pairs:,} pairs of neighbours share no text: joined with a newline"
            )
        self.files.append(
            RebuiltFile(
                name=document.name,
                path=path,
                size_bytes=len(data),
                chunks=joined.chunks,
                overlaps=joined.overlaps,
                warnings=tuple(f"{shown_path(document.name)}: {one}" for one in warnings),
            )
        )

    def _of(self, document: Document, texts: Sequence[str]) -> Strategy:
        """What its chunks repeat: as was given, else as the first document with several shows."""
        if self.strategy is not None:
            found = self.strategy
        elif document.strategy is not None:
            found = document.strategy
        else:
            found = calibrate(texts)
            if found.pairs:
                self.strategy = found
        if not self.label and sum(map(bool, texts)) > 1:
            self.label = f"{found.label} ({found.method})"
        return found

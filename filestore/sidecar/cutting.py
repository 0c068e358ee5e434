"""Documents in place, read and cut into sections, and the cache of what was read and cut before.

Apart from `documents`, since most commands read and cut none. One rule: the same bytes are never
extracted twice. Whatever is damaged of the cache costs time and nothing else: rows are only looked
up by the hash of the bytes that they were made from, and each carries its own checksum (see
`chunks.kept`). Who can write it can write the catalog next to it, and is trusted as much.
"""

import contextlib
import os
import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from msgspec.structs import asdict, replace

from filestore import chunking, extract
from filestore.catalog import in_batches, is_damage, placeholders
from filestore.chunking import Section
from filestore.chunks import kept
from filestore.chunks.kept import DocumentDamagedError, Extracted, decode
from filestore.chunks.observation import Observation, kept_hash
from filestore.core.errors import FilestoreError, on_error
from filestore.core.hashing import content_hash
from filestore.core.safe_text import encodable
from filestore.extract.about import Lines, about, frontmatter_alone
from filestore.extract.base import (
    Document,
    EmptyDocumentError,
    ExtractionError,
    Page,
    PointerError,
)
from filestore.extract.links import Link
from filestore.fs import database, disk, part

if TYPE_CHECKING:
    from filestore.extract.pool import Pending


class Chunker(Struct, frozen=True, kw_only=True):
    """Cuts documents, for whichever model."""

    budget: int
    """The most tokens of a chunk and its heading path."""
    way: str = chunking.CHUNKER
    """Name and version of how it cuts."""

    @property
    def label(self) -> str:
        """Says how a text is cut: another label means other chunks."""
        return chunking.label(self.budget, way=self.way)

    def pieces(self, document: Document) -> list[Section]:
        """The pieces of a document's text, in order; see `chunking.blocks.split`."""
        from filestore.chunking.blocks import split

        return split(
            document.text,
            syntax=document.syntax,
            budget=self.budget,
            title=document.title,
            outline=document.outline,
        )


_AT_ONCE: Final = 64
"""How many documents are read ahead and kept together: an interruption loses no more."""


class _Held(Struct, frozen=True, kw_only=True):
    """A file whose bytes are in memory, for the extraction."""

    path: str
    held: bytes

    @property
    def size_bytes(self) -> int:
        """How large it is."""
        return len(self.held)

    def data(self) -> bytes:
        """Its bytes."""
        return self.held


def complete(
    waiting: Iterable[Observation], chunker: Chunker, cache_path: str, processes: int
) -> None:
    """Read and cut documents, or take what was kept of the same bytes.

    Args:
        waiting: Their files.
        chunker: Cuts them.
        cache_path: Where is kept what was read.
        processes: How many child processes may read them.
    """
    with contextlib.closing(DocumentCache.open(cache_path)) as cache:
        by_key: dict[bytes, list[Observation]] = {}
        for look in waiting:
            by_key.setdefault(key_of_file(look.file_hash, look.path), []).append(look)
        known = cache.get(by_key)
        for keys in in_batches(list(by_key), _AT_ONCE):
            some = {key: by_key[key] for key in keys}
            cache.put(_completed(some, known, chunker, processes))


def _completed(
    looks: Mapping[bytes, Sequence[Observation]],
    known: Mapping[bytes, bytes],
    chunker: Chunker,
    processes: int,
) -> dict[bytes, bytes]:
    """Fill in some documents; returns what is to be kept, by key.

    Args:
        looks: Files by the key of their document: those of one key hold the same bytes.
        known: Documents that were kept.
        chunker: Cuts them.
        processes: How many child processes may read them.
    """
    fresh: dict[bytes, bytes] = {}
    unread: dict[bytes, Observation] = {}
    for key, (first, *_) in looks.items():
        data = _as_cut(first, known.get(key), chunker)
        if data is None:
            unread[key] = first
        elif data is not known[key]:
            fresh[key] = data
    fresh |= _read(unread, chunker, processes)
    for first, *others in looks.values():
        for look in others:
            look.state, look.detail, look.pending = first.state, first.detail, first.pending
            look.data, look.chunk = first.data, first.chunk
            look.texts, look.keys = first.texts, first.keys
    return fresh


def _as_cut(look: Observation, data: bytes | None, chunker: Chunker) -> bytes | None:
    """Fill in what was kept, cut again where it is cut otherwise; None where nothing of use was."""
    if data is None:
        return None
    try:
        if kept_hash(data) != look.file_hash:
            return None
        before = decode(data)
        if before.chunker != chunker.label:
            document = Document(
                text=before.text,
                syntax=before.syntax,
                metadata=before.metadata,
                extractor=before.extractor,
                title=before.heading,
                outline=tuple(
                    chunking.Symbol(start=s, level=v, title=t) for s, v, t in before.outline
                ),
                pages=tuple(Page(start=start, number=number) for start, number in before.pages),
            )
            kept.keep(look, _cut(document, look, chunker))
            return look.data
        kept.fill(look, data)
    except DocumentDamagedError:
        return None
    return data


def _read(
    looks: Mapping[bytes, Observation], chunker: Chunker, processes: int
) -> Iterator[tuple[bytes, bytes]]:
    """Extract and cut documents, some ahead of others; yields what can be read, by key."""
    from filestore.extract.pool import Extraction

    extraction = Extraction(workers=processes)
    try:
        begun = [
            (key, look, extraction.begin(_Held(path=look.path, held=look.data)))
            for key, look in looks.items()
        ]
        for key, look, pending in begun:
            fill(look, pending, chunker)
            if look.chunk is not None:
                yield key, look.data
    finally:
        extraction.close()


def fill(look: Observation, pending: "Pending", chunker: Chunker) -> None:
    """Fill in what a document says, or why it cannot be read."""
    try:
        document = pending()
    except EmptyDocumentError as error:
        alone = frontmatter_alone(look.data, name=look.path)
        if alone is None:
            _fail(look, "empty", error)
        else:
            kept.keep(look, _cut(alone, look, chunker))
    except FilestoreError as error:
        code = "extraction-failed"
        if extract.is_text(look.path) and not isinstance(error, PointerError):
            # Of a name that says nothing, what is no text is no document either.
            is_known = extract.is_known(os.path.basename(look.path))
            code = "bad-encoding" if is_known else "not-read"
        _fail(look, code, error)
    else:
        kept.keep(look, _cut(document, look, chunker))


def extracted_here(data: bytes, name: str) -> Document:
    """A document read in this process."""
    extractor = extract.for_name(name)
    if extractor is None:
        raise ExtractionError(f"{name}: no extractor reads this kind of file")
    return extractor.read(data, name=name)


def _fail(look: Observation, code: str, error: FilestoreError) -> None:
    look.state, look.detail, look.pending = code, encodable(error.message), False
    look.data = b""


def key_of_file(file_hash: bytes, path: str) -> bytes:
    """The key of what is kept of a file: its bytes, and who reads files of such a name."""
    name = path.rpartition("/")[2]
    extractor = extract.for_name(name)
    suffix = os.path.splitext(name)[1].lower() or (name if extract.is_code(name) else "")
    return key_of(file_hash, f"{extractor.label if extractor else ''} {suffix}")


def _cut(document: Document, look: Observation, chunker: Chunker) -> Extracted:
    """A document with its sections."""
    described = about(document, name=look.path)
    if document.title == os.path.basename(look.path):
        # What is embedded must not hang on what a file is called: a rename embeds nothing.
        document = replace(document, title="")
    lines = Lines.of(document, look.data, name=look.path) if extract.is_text(look.path) else None
    sections = []
    for piece in chunker.pieces(document):
        line, end_line = lines.span(piece.start, piece.end) if lines is not None else (0, 0)
        pages = document.pages_between(piece.start, piece.end)
        page = pages[0] if pages else 0
        sections.append(
            replace(piece, line=line, end_line=end_line, page=page, before="", after="")
        )
    return Extracted(
        text=document.text,
        syntax=document.syntax,
        extractor=document.extractor,
        chunker=chunker.label,
        sections=sections,
        heading=document.title,
        title=described.heading_title,
        metadata=document.recorded,
        pairs=list(described.pairs()),
        links=_with_lines(described.links, document.text, lines),
        pages=[(page.start, page.number) for page in document.pages],
        outline=[tuple(asdict(symbol).values()) for symbol in document.outline],
    )


def _with_lines(links: Sequence[Link], text: str, lines: Lines | None) -> list[Link]:
    """Links with their line in the file in place of the one in its text."""
    if lines is None or not links:
        return [replace(link, line=0) for link in links]
    starts = [0, *(place + 1 for place, sign in enumerate(text) if sign == "\n")]
    return [
        replace(link, line=lines.span(at := starts[link.line - 1], at + 1)[0] if link.line else 0)
        for link in links
    ]


_APPLICATION_ID: Final = 0x66736465  # "fsde"
_SCHEMA: Final = (
    "CREATE TABLE documents(id INTEGER PRIMARY KEY, key BLOB NOT NULL, data BLOB NOT NULL)",
    "CREATE UNIQUE INDEX documents_by_key ON documents(key)",
)
_FAILURES: Final = (sqlite3.Error, part.NotAFileError, UnicodeDecodeError)


def key_of(file_hash: bytes, label: str) -> bytes:
    """The key of a document: 16 bytes.

    Args:
        file_hash: The xxh3_128 of the bytes it was made from.
        label: What read them, and all else that this depends on.
    """
    return content_hash(file_hash + label.encode("utf-8", "surrogateescape"))


class DocumentCache:
    """Documents by key, in SQLite; one that cannot be used is empty."""

    def __init__(self, path: str, connection: sqlite3.Connection | None) -> None:
        self._path = path
        self._connection = connection

    @classmethod
    def open(cls, path: str) -> Self:
        """Open or make it; a damaged one is made anew. The caller holds the store's lock.

        Raises:
            OSError: It cannot be removed.
        """
        for _ in range(2):
            try:
                return cls(path, _opened(path))
            except _FAILURES as error:
                disk.pass_hidden_limits(error)
                _remove(path)
        return cls(path, None)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Those of some documents that are there."""
        found: dict[bytes, bytes] = {}
        if self._connection is None:
            return found
        try:
            for batch in in_batches(list(keys)):
                # An index may be damaged: which key a document has is what its own row says.
                rows = self._connection.execute(
                    "SELECT key, data FROM documents WHERE id IN"
                    f" (SELECT id FROM documents WHERE key IN ({placeholders(batch)}))",
                    batch,
                )
                found.update((key, data) for key, data in rows if isinstance(data, bytes))
        except _FAILURES as error:
            self._begin_again(error)
        return found

    def put(self, documents: Mapping[bytes, bytes]) -> None:
        """Keep documents by key."""
        for _ in range(2):
            if self._connection is None or not documents:
                return
            try:
                self._insert(self._connection, documents)
            except _FAILURES as error:
                if self._begin_again(error):
                    continue
            return

    def _insert(self, connection: sqlite3.Connection, documents: Mapping[bytes, bytes]) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute("BEGIN")
            try:
                statement = "INSERT OR REPLACE INTO documents(key, data) VALUES (?, ?)"
                cursor.executemany(statement, list(documents.items()))
                cursor.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise

    def _begin_again(self, error: BaseException) -> bool:
        """Make a damaged file anew, lest what it held be extracted again by every later sync.

        Returns:
            Whether it was damaged, and not the disk full or the like.

        Raises:
            OSError: It cannot be removed.
        """
        if isinstance(error, sqlite3.Error) and not is_damage(error):
            return False
        self.close()
        _remove(self._path)
        with suppress(*_FAILURES):
            self._connection = _opened(self._path)
        return True

    def drop_unused(self, used: Container[bytes], most_bytes: int) -> None:
        """Forget documents that no file is any more, the oldest first.

        Args:
            used: The keys of documents that are files now.
            most_bytes: So much of the others stays: somebody may go back to them.
        """
        if self._connection is None:
            return
        statement = "SELECT id, key, length(data) FROM documents ORDER BY id DESC"
        try:
            kept_bytes, dropped = 0, []
            for identifier, key, size in self._connection.execute(statement):
                if key not in used:
                    kept_bytes += size or 0
                    if kept_bytes > most_bytes:
                        dropped.append((identifier,))
            self._connection.execute("BEGIN")
            self._connection.executemany("DELETE FROM documents WHERE id = ?", dropped)
            self._connection.execute("COMMIT")
        except _FAILURES as error:
            self._begin_again(error)


def _remove(path: str) -> None:
    for suffix in part.DATABASE_SUFFIXES:
        database.remove(path + suffix)


def _opened(path: str) -> sqlite3.Connection:
    connection = database.connect(path, "mode=rwc")
    with on_error(connection.close):
        connection.execute("PRAGMA synchronous = NORMAL")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application == 0:
            statements = "; ".join(_SCHEMA)
            connection.executescript(
                f"BEGIN; {statements}; PRAGMA application_id = {_APPLICATION_ID}; COMMIT;"
            )
        found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
        if found != set(_SCHEMA):
            raise sqlite3.DatabaseError("its tables have another shape")
    return connection

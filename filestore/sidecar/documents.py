"""An in-place store's files: documents, read and cut into sections in the sidecar alone.

What a reader of the store sees first is the hash of a file's bytes; what they say is taken out of
them when the sidecar is written, and kept. One rule: the same bytes are never extracted twice.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from msgspec.structs import asdict, replace

from filestore import chunking, extract
from filestore.catalog.extracted import DocumentCache, key_of
from filestore.chunks import kept
from filestore.chunks.chunk_file import Section
from filestore.chunks.interpretation import conflict_outside_code, refuse
from filestore.chunks.kept import DocumentDamagedError, Extracted, decode, encode
from filestore.chunks.layout import MADE, Layout, shown_name
from filestore.chunks.observation import Observation
from filestore.config.layout import DOCUMENTS, MAX_SOURCE_BYTES, Places
from filestore.config.settings import LayoutName
from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath, is_made
from filestore.extract.about import Lines, about, frontmatter_alone
from filestore.extract.base import Document, EmptyDocumentError, ExtractionError, Page
from filestore.extract.links import Link

if TYPE_CHECKING:
    from filestore.embed.base import Embedder
    from filestore.extract.pool import Pending


IN_PLACE: Final = "sections/3"
"""How documents in place are read and cut: what is kept of them is made anew where either changed,
which costs no embedding of a text that is known."""


class Chunker(Struct, frozen=True, kw_only=True):
    """Cuts documents for one model."""

    budget: int
    """The most tokens of a chunk and its heading path."""
    count_tokens: Callable[[str], int]
    label: str
    """Says how a text is cut: another label means other chunks."""

    @classmethod
    def of(cls, budget: int, embedder: "Embedder | None", *, way: str = chunking.CHUNKER) -> Self:
        """The chunker of a store.

        Args:
            budget: Of its settings.
            embedder: Counts tokens; None leaves an estimate: few models have a token to fewer
                characters than three.
            way: Name and version of how it cuts, as its label has it.
        """
        most = embedder.max_tokens if embedder is not None else None
        counter = embedder.tokenizer if embedder is not None else "estimate"
        return cls(
            budget=chunking.room(budget, most),
            count_tokens=embedder.count_tokens
            if embedder is not None
            else lambda text: (len(text) + 2) // 3,
            label=chunking.label(budget, most=most, counter=counter, way=way),
        )

    def pieces(self, document: "Document") -> list[chunking.Piece]:
        """The pieces of a document's text, in order; see `chunking.split`."""
        return chunking.split(
            document.text,
            syntax=document.syntax,
            budget=self.budget,
            count_tokens=self.count_tokens,
            title=document.title,
            outline=document.outline,
        )


_AT_ONCE: Final = 64
"""So many documents are read ahead, and kept together: what is interrupted loses no more."""


_LEAST_BYTES: Final = 256 * 1024 * 1024
"""So much is kept of documents that no file is any more: a branch that is left comes back."""


class _Held(Struct, frozen=True, kw_only=True):
    """A file whose bytes are in memory, for whoever extracts it."""

    path: str
    held: bytes

    @property
    def size_bytes(self) -> int:
        """How large it is."""
        return len(self.held)

    def data(self) -> bytes:
        """Its bytes."""
        return self.held


class InPlace(Layout):
    """A folder of documents as it is."""

    name: LayoutName = "in-place"
    most_bytes = MAX_SOURCE_BYTES
    is_in_place = True

    def __init__(self, places: Places, chunker: Callable[[], Chunker], *, processes: int) -> None:
        """Prepare.

        Args:
            places: Where the store lies.
            chunker: Gives what cuts its documents; asked when one is to be cut.
            processes: At most so many child processes read documents.
        """
        self._cache_path = os.path.join(places.sidecar, DOCUMENTS)
        self._catalog_path = places.catalog
        self._open_chunker = chunker
        self._processes = processes
        self._cut_by = ""

    @property
    def cut_by(self) -> str:
        """See `Layout.cut_by`."""
        return self._cut_by

    def of(self, path: ChunkPath) -> Layout:
        """See `Layout.of`."""
        return MADE if is_made(path) else self

    def interpret(self, seen: Observation, name: str) -> None:
        """Say what the bytes alone tell: a text without words, or with a conflict in it."""
        if not seen.data.strip():
            seen.state = "empty"
            seen.detail = f"found {len(seen.data):,} bytes, of which none is text"
            return
        if extract.is_text(name) and b"<<<<<<<" in seen.data:
            lines = conflict_outside_code(seen.data, 0)
            if lines is not None:
                refuse(seen, "conflict-markers", "", lines)
                return
        seen.pending = True

    def settle(self, seen: Observation) -> None:
        """Read and cut a document, unless that takes a process of its own."""
        from filestore.extract.pool import needs_child

        name = os.path.basename(seen.path)
        if not seen.pending or needs_child(name, len(seen.data)):
            return
        self._fill(seen, lambda: _extracted_here(seen.data, name), self._open_chunker())

    def complete(self, seen: Iterable[Observation]) -> None:
        """Read and cut documents, or take what was kept of the same bytes."""
        waiting = [look for look in seen if look.pending]
        if not waiting:
            return
        chunker = self._open_chunker()
        self._cut_by = chunker.label
        with contextlib.closing(DocumentCache.open(self._cache_path)) as cache:
            by_key: dict[bytes, list[Observation]] = {}
            for look in waiting:
                by_key.setdefault(_key(look.file_hash, look.path), []).append(look)
            known = cache.get(by_key)
            for some in _in_turns(by_key, _AT_ONCE):
                cache.put(self._completed(some, known, chunker))

    def _completed(
        self,
        looks: Mapping[bytes, Sequence[Observation]],
        known: Mapping[bytes, bytes],
        chunker: Chunker,
    ) -> dict[bytes, bytes]:
        """Fill in some documents; returns those that are to be kept, by key.

        Args:
            looks: Files by the key of their document: those of one key hold the same bytes.
            known: Documents that were kept.
            chunker: Cuts them.
        """
        fresh: dict[bytes, bytes] = {}
        unread: dict[bytes, Observation] = {}
        for key, (first, *_) in looks.items():
            data = self._as_cut(first, known.get(key), chunker)
            if data is None:
                unread[key] = first
            elif data is not known[key]:
                fresh[key] = data
        fresh |= self._read(unread, chunker)
        for first, *others in looks.values():
            for look in others:
                look.state, look.detail, look.pending = first.state, first.detail, first.pending
                look.data, look.chunk = first.data, first.chunk
                look.texts, look.keys = first.texts, first.keys
        return fresh

    def _as_cut(self, look: Observation, data: bytes | None, chunker: Chunker) -> bytes | None:
        """Fill in what was kept, cut as it is cut today; None where nothing of use was."""
        if data is None:
            return None
        try:
            if kept.file_hash(data) != look.file_hash:
                return None
            before = decode(data)
            if before.chunker != chunker.label:
                document = _document(before)
                data = encode(_cut(document, look, chunker), look.file_hash)
            kept.fill(look, data)
        except DocumentDamagedError:
            return None
        return data

    def _read(
        self, looks: Mapping[bytes, Observation], chunker: Chunker
    ) -> Iterator[tuple[bytes, bytes]]:
        """Extract and cut documents, some ahead of others; those that can be read, by key."""
        from filestore.extract.pool import Extraction

        extraction = Extraction(workers=self._processes)
        try:
            begun = [
                (key, look, extraction.begin(_Held(path=look.path, held=look.data)))
                for key, look in looks.items()
            ]
            for key, look, pending in begun:
                self._fill(look, pending, chunker)
                if look.chunk is not None:
                    yield key, look.data
        finally:
            extraction.close()

    def _fill(self, look: Observation, pending: "Pending", chunker: Chunker) -> None:
        """Fill in what a document says, or why it cannot be read."""
        try:
            document = pending()
        except EmptyDocumentError as error:
            alone = frontmatter_alone(look.data, name=look.path)
            if alone is None:
                _fail(look, "empty", error)
            else:
                kept.fill(look, encode(_cut(alone, look, chunker), look.file_hash))
        except FilestoreError as error:
            _fail(look, _code_of_failure(look.path), error)
        else:
            kept.fill(look, encode(_cut(document, look, chunker), look.file_hash))

    def drop_unused(self, files: Callable[[], Iterable[tuple[bytes, bytes]]]) -> None:
        """Forget documents that no file is any more, beyond what somebody may go back to."""
        with contextlib.suppress(OSError):
            # The catalog has the documents that are used, and so is about as large.
            in_use = os.path.getsize(self._catalog_path)
            if os.path.getsize(self._cache_path) <= in_use + _LEAST_BYTES:
                return
            used = {_key(file_hash, os.fsdecode(path)) for path, file_hash in files()}
            with contextlib.closing(DocumentCache.open(self._cache_path)) as cache:
                cache.drop_unused(used, _LEAST_BYTES)

    def resource(self, path: ChunkPath) -> str:
        """Each document is a resource of its own, called what it is called, with what is of it."""
        return MADE.resource(path) if is_made(path) else shown_name(path)


def _in_turns(
    looks: Mapping[bytes, Sequence[Observation]], size: int
) -> Iterator[dict[bytes, Sequence[Observation]]]:
    """Consecutive parts of a mapping."""
    items = iter(looks.items())
    while some := dict(islice(items, size)):
        yield some


def _extracted_here(data: bytes, name: str) -> Document:
    extractor = extract.for_name(name)
    if extractor is None:
        raise ExtractionError(f"{name}: no extractor reads this kind of file")
    return extractor.extract(data, name=name)


def _code_of_failure(path: ChunkPath) -> str:
    """What a file is that cannot be read as a document."""
    if not extract.is_text(path):
        return "extraction-failed"
    # Of a name that says nothing, what is no text is no document either.
    return "bad-encoding" if extract.is_known(os.path.basename(path)) else "litter"


def _fail(look: Observation, code: str, error: FilestoreError) -> None:
    look.state, look.detail, look.pending = code, error.message, False
    look.data = b""


def _key(file_hash: bytes, path: str) -> bytes:
    """The key of what is kept of a file: its bytes, and who reads files of such a name."""
    name = path.rpartition("/")[2]
    extractor = extract.for_name(name)
    suffix = os.path.splitext(name)[1].lower() or (name if extract.is_code(name) else "")
    return key_of(file_hash, f"{extractor.label if extractor else ''} {suffix}")


def _cut(document: Document, look: Observation, chunker: Chunker) -> Extracted:
    """A document with its sections."""
    said = about(document, name=look.path)
    if document.title == os.path.basename(look.path):
        # What is embedded must not hang on what a file is called: a rename embeds nothing.
        document = replace(document, title="")
    lines = Lines.of(document, look.data, name=look.path) if extract.is_text(look.path) else None
    sections = []
    for piece in chunker.pieces(document):
        line, end_line = lines.span(piece.start, piece.end) if lines is not None else (0, 0)
        pages = document.pages_between(piece.start, piece.end)
        sections.append(
            Section(
                start=piece.start,
                end=piece.end,
                headings=piece.headings,
                line=line,
                end_line=end_line,
                page=pages[0] if pages else 0,
            )
        )
    return Extracted(
        text=document.text,
        syntax=document.syntax,
        extractor=document.extractor,
        chunker=chunker.label,
        sections=sections,
        heading=document.title,
        title=said.heading_title,
        names=said.words(),
        metadata=document.metadata,
        pairs=list(said.pairs()),
        links=_with_lines(said.links, document.text, lines),
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


def _document(before: Extracted) -> Document:
    """The document that was cut, to be cut again."""
    from filestore.chunking import Section as Symbol

    return Document(
        text=before.text,
        syntax=before.syntax,
        metadata=before.metadata,
        extractor=before.extractor,
        title=before.heading,
        outline=tuple(Symbol(start=s, level=v, title=t) for s, v, t in before.outline),
        pages=tuple(Page(start=start, number=number) for start, number in before.pages),
    )

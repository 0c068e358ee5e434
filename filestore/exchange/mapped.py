"""A collection as a map of documents with vectors, and back.

A document is one source of one resource; what the map has no word for travels in its `content`,
under `filestore`. Pure. One rule: what is there comes from strangers as well, and is checked as
the rest is.
"""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn, TypeAlias, TypeVar

import orjson
from msgspec import Struct, field

from filestore.chunks.chunk_file import OUR_KEYS
from filestore.core.safe_text import brief
from filestore.core.schema import UnfitError, converted
from filestore.exchange.base import Chunk, Collection, Form, LeftOut, Resource, naming, refuse
from filestore.exchange.document_map import OURS, DocumentMap, Place, utc

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

NO_RESOURCE: Final = "(no resource)"
"""The id of the document of chunks that belong to no resource."""
NO_MODEL: Final = "none"
"""The name of the model where there are no vectors."""
T = TypeVar("T")
_FIRST_ROWS: Final = 1_024
_PART: Final = re.compile("[1-9][0-9]{0,5}", re.ASCII)
_GAP: Final = "\n\n"
"""Between two chunks in the text of a document; some Markdown needs it to stay two blocks."""
_MOST_METADATA: Final = 4_096
"""Bytes that are taken over from a document into the frontmatter of each of its chunks."""
_DEEPEST: Final = 6
_DOCUMENT_KEYS: Final = frozenset({"id", "source", "full_text", "content", "chunks"})


class MapForm(Form):
    """A form that is one map of documents, held in memory as a whole."""

    flat: ClassVar[str]
    """The flat class of FAISS that its index is written as."""

    def __init__(self, now: Callable[[], str] = lambda: utc(time.time())) -> None:
        self._now = now

    def write(self, target: str, collection: Collection) -> tuple[str, ...]:
        """See `Form.write`."""
        self.check_target(target)
        return self.write_map(target, of_collection(collection, flat=self.flat, now=self._now()))

    def read(self, source: str) -> Collection:
        """See `Form.read`."""
        found, left_out = self.read_map(source)
        with naming(source):
            collection = to_collection(found)
        for sentence in left_out:
            collection.left_out.add(sentence)
        return collection

    @abstractmethod
    def check_target(self, target: str) -> None:
        """Let nothing be replaced that is not of this form.

        Raises:
            TargetRefused: Something else is there.
        """

    @abstractmethod
    def write_map(self, target: str, made: DocumentMap) -> tuple[str, ...]:
        """Write a map; returns the paths of its files.

        Raises:
            TargetRefused: Something else is there, or it would be larger than is read.
            WriteFailedError: The disk refused; what was there is untouched.
        """

    @abstractmethod
    def read_map(self, source: str) -> tuple[DocumentMap, Sequence[str]]:
        """Read a map of any program; with a sentence for each part that was left out.

        Raises:
            FormDamaged: It is not of this form, or disagrees with itself.
            FileNotFoundError: There is nothing.
        """


ChunkParts: TypeAlias = "tuple[str, str, Mapping[str, Any], dict[int, int]]"
"""Path, text and frontmatter of a chunk, and the number of the vector of each of its parts."""


class _Resource(Struct):
    """A resource, in parts perhaps, on its way into the map."""

    record: Mapping[str, Any] | None = None
    documents: list[Mapping[str, Any]] = field(default_factory=list)
    """Of the record."""
    chunks: list[ChunkParts] = field(default_factory=list)
    by_source: dict[str | None, list[int]] = field(default_factory=dict)
    """Which of them come from the same document."""


def of_collection(collection: Collection, *, flat: str, now: str) -> DocumentMap:
    """The map of a collection.

    Args:
        collection: Passed through once.
        flat: The class of the index that is wanted.
        now: The time, ISO 8601.
    """
    resources: dict[str, _Resource] = {}
    rows = _Rows(collection.dimension)
    for resource in collection:
        held = resources.setdefault(resource.name, _Resource())
        if not held.record:
            held.record, held.documents = resource.record, resource.documents
        for chunk in resource.chunks:
            numbers = {part: rows.add(chunk.vectors[part]) for part in sorted(chunk.vectors)}
            held.by_source.setdefault(chunk.source, []).append(len(held.chunks))
            # Not the chunk itself: its vectors are views of large blocks.
            held.chunks.append((chunk.path, chunk.text, chunk.frontmatter, numbers))
    places: list[Place] = [("", "")] * rows.count
    return DocumentMap(
        model=collection.model or NO_MODEL,
        dimension=collection.dimension,
        flat=flat,
        kind=flat,
        created_at=now,
        updated_at=now,
        places=places,
        documents=dict(_documents(resources, places)),
        rows=rows.taken(),
    )


class _Rows:
    """Vectors, one after the other."""

    def __init__(self, dimension: int) -> None:
        import numpy

        self._shape = (dimension,)
        self._rows = numpy.empty((_FIRST_ROWS, dimension), numpy.float32)
        self.count = 0

    def add(self, vector: NDArray[float32]) -> int:
        """Take one; returns its number.

        Raises:
            ValueError: It is of another length than the first.
        """
        number = self.count
        if vector.shape != self._shape:
            raise ValueError(f"a vector of {vector.shape} among those of {self._shape}")
        if number == len(self._rows):
            # By a part only, since what is added is filled with zeros first.
            self._rows.resize((number + number // 4, *self._shape), refcheck=False)
        self._rows[number] = vector
        self.count = number + 1
        return number

    def taken(self) -> NDArray[float32]:
        """All of them."""
        return self._rows[: self.count]


def _documents(
    resources: Mapping[str, _Resource], places: list[Place]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The documents with their ids; fills in the place of each vector."""
    used: set[str] = set()
    for name, resource in resources.items():
        groups = resource.by_source or {None: []}
        in_order = [at for group in groups.values() for at in group]
        is_sorted = in_order == list(range(len(in_order)))
        for number, (source, group) in enumerate(groups.items()):
            base = name or NO_RESOURCE
            found = wanted = base if len(groups) == 1 else f"{base}/{source or 'other'}"
            tries = 1
            while found in used:
                tries += 1
                found = f"{wanted} ({tries})"
            used.add(found)
            ours: dict[str, Any] = {"format": 1, "resource": name}
            if number == 0 and resource.record is not None:
                ours["record"] = dict(resource.record)
            if not is_sorted:
                ours["at"] = group
            document = _Document(name, found, places)
            for at in group:
                document.add(*resource.chunks[at])
            yield found, document.made(*_about(resource.documents, source), ours)


def _about(known: Sequence[Mapping[str, Any]], source: str | None) -> tuple[str, dict[str, Any]]:
    """What a document was made from, and what it says of itself."""
    own = next((one for one in known if one.get("source") == source), None)
    if own is None and source is None and len(known) == 1:
        own = known[0]
    if own is None:
        return source or "", {}
    metadata = own.get("metadata")
    found = own.get("source")
    return (
        source or (found if isinstance(found, str) else ""),
        dict(metadata) if isinstance(metadata, Mapping) else {},
    )


class _Document:
    """One document on its way into the map."""

    def __init__(self, resource: str, name: str, places: list[Place]) -> None:
        self._folder = f"{resource}/" if resource else ""
        self._name = name
        self._places = places
        self._texts: list[str] = []
        self._length = 0
        self._chunks: dict[str, dict[str, int]] = {}
        self._ours: dict[str, dict[str, Any]] = {}

    def made(self, source: str, metadata: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
        """The document as the forms have it."""
        metadata.pop(OURS, None)
        return {
            "id": self._name,
            "source": source,
            "full_text": "".join(self._texts),
            "content": metadata | {OURS: ours | {"chunks": self._ours}},
            "chunks": self._chunks,
        }

    def add(
        self, path: str, text: str, frontmatter: Mapping[str, Any], numbers: Mapping[int, int]
    ) -> None:
        """Take one chunk more."""
        short = path.removeprefix(self._folder).removesuffix(".md")
        key = wanted = short or f"chunk{len(self._ours) + 1}"
        tries = 1
        # Free also for the questions of the chunk.
        while (
            key in self._ours
            or key in self._chunks
            or (len(numbers) > 1 and any(f"{key}#{part}" in self._chunks for part in numbers))
        ):
            tries += 1
            key = f"{wanted}-{tries}"
        start = self._start(text, frontmatter.get("overlap"))
        end = self._length
        ours: dict[str, Any] = {}
        if path != f"{self._folder}{key}.md":
            ours["path"] = path
        if frontmatter:
            ours["frontmatter"] = dict(frontmatter)
        if 0 not in numbers:
            ours["span"] = [start, end]
        self._ours[key] = ours
        for part, number in numbers.items():
            name = f"{key}#{part}" if part else key
            self._places[number] = (self._name, name)
            self._chunks[name] = {"i_start": start, "i_end": end, "faiss_id": number}

    def _start(self, text: str, repeated: object) -> int:
        """Add the text of a chunk, which overlaps the one before where it repeats its end."""
        start = self._length
        if self._texts:
            last = self._texts[-1]
            if (
                type(repeated) is int
                and 0 < repeated <= min(len(last), len(text))
                and last.endswith(text[:repeated])
            ):
                self._texts.append(text[repeated:])
                self._length += len(text) - repeated
                return start - repeated
            self._texts.append(_GAP)
            start += len(_GAP)
        self._texts.append(text)
        self._length = start + len(text)
        return start


def to_collection(found: DocumentMap) -> Collection:
    """What a map holds, for a store.

    Raises:
        FormDamaged: What `filestore` wrote was changed.
    """
    left_out = LeftOut()
    resources: dict[str, _FoundResource] = {}
    foreign: list[Resource] = []
    for name, document in found.documents.items():
        ours = (document.get("content") or {}).get(OURS)
        if ours is not None:
            _OwnDocument(name, document, ours, found).into(resources)
            continue
        # Another program wrote it.
        text, spans = document.get("full_text"), document["chunks"]
        if text is None:
            left_out.add(
                f"document {brief(name)}: without full_text its {len(spans):,} chunks have no text"
            )
            continue
        metadata = _metadata(name, document, left_out)
        in_order = sorted(spans.values(), key=lambda one: (one["i_start"], one["faiss_id"]))
        chunks = tuple(
            Chunk(
                path="",
                text=text[span["i_start"] : span["i_end"]],
                frontmatter=metadata,
                vectors={0: found.rows[span["faiss_id"]]},
            )
            for span in in_order
        )
        foreign.append(Resource(name=name, chunks=chunks))
    made = [one.resource(name) for name, one in resources.items()]
    return Collection(
        resources=[*made, *foreign],
        model=found.model if len(found.rows) else "",
        dimension=found.dimension if len(found.rows) else 0,
        left_out=left_out,
    )


def _metadata(name: str, document: Mapping[str, Any], left_out: LeftOut) -> dict[str, Any]:
    """What a document states of itself, for the frontmatter of its chunks."""
    metadata: dict[str, Any] = {}
    if document.get("source"):
        metadata["source"] = document["source"]
    room = _MOST_METADATA
    # Some write outside of `content` what belongs into it.
    outside = {key: value for key, value in document.items() if key not in _DOCUMENT_KEYS}
    for key, value in (outside | (document.get("content") or {})).items():
        try:
            size = len(key) + len(orjson.dumps(value))
        except TypeError:
            size = room + 1
        if key in OUR_KEYS:
            reason = "the key means something else in a chunk file"
        elif size > room:
            reason = f"more than {_MOST_METADATA:,} bytes of metadata for each of its chunks"
        elif _is_deep(value):
            reason = f"nested more than {_DEEPEST} deep"
        else:
            metadata[key] = value
            room -= size
            continue
        left_out.add(f"document {brief(name)}: {brief(key)} of its content: {reason}")
    return metadata


def _is_deep(value: Any) -> bool:
    """Whether a value of few bytes is nested deeper than frontmatter may be."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST):
        inner = [one.values() if isinstance(one, dict) else one for one in level]
        level = [one for some in inner for one in some if isinstance(one, dict | list)]
        if not level:
            return False
    return True


class _FoundResource(Struct):
    """A resource as it is put together from its documents."""

    record: dict[str, Any] | None = None
    chunks: list[tuple[int, Chunk]] = field(default_factory=list)
    """Each with its place among the others."""

    def resource(self, name: str) -> Resource:
        in_order = sorted(self.chunks, key=lambda one: one[0])
        return Resource(name=name, chunks=tuple(chunk for _, chunk in in_order), record=self.record)


class _Stated(Struct):
    """What a store wrote of a document in addition to the form."""

    format: Literal[1]
    resource: str | None = None
    record: dict[str, Any] | None = None
    at: list[int] | None = None
    chunks: dict[str, Any] | None = None


class _StatedChunk(Struct):
    path: str | None = None
    frontmatter: dict[str, Any] | None = None
    span: tuple[int, int] | None = None


class _OwnDocument:
    """A document that a store wrote."""

    def __init__(
        self, name: str, document: Mapping[str, Any], ours: Any, found: DocumentMap
    ) -> None:
        self._name = name
        self._document = document
        self._rows = found.rows
        self._stated = self._converted(ours, _Stated, "")
        self._chunks = self._stated.chunks or {}

    def into(self, resources: dict[str, _FoundResource]) -> None:
        """Add what it holds to its resource."""
        held = resources.setdefault(self._stated.resource or "", _FoundResource())
        held.record = held.record or self._stated.record
        before, count = len(held.chunks), len(self._chunks)
        order = self._stated.at or range(before, before + count)
        if len(order) != count:
            self._refuse("'at' must be as many whole numbers as there are chunks")
        held.chunks += zip(order, self._made(), strict=True)

    def _made(self) -> Iterator[Chunk]:
        """Its chunks."""
        text: str | None = self._document.get("full_text")
        if text is None:
            if self._chunks:
                self._refuse("its full_text is not there")
            return
        spans = self._document["chunks"]
        vectors: dict[str, dict[int, NDArray[float32]]] = {}
        for name, span in spans.items():
            key, part = name, 0
            if name not in self._chunks:
                key, _, digits = name.rpartition("#")
                part = int(digits) if _PART.fullmatch(digits) else 0
                if key not in self._chunks or not part:
                    self._refuse(f"it does not know the chunk {brief(name)}")
            vectors.setdefault(key, {})[part] = self._rows[span["faiss_id"]]
        folder = f"{self._stated.resource}/" if self._stated.resource else ""
        for key, value in self._chunks.items():
            about = self._converted(value, _StatedChunk, f"chunk {brief(key)}")
            # One without a vector of its own says itself where it is in the text.
            start, end = about.span or (0, -1)
            if key in spans:
                start, end = spans[key]["i_start"], spans[key]["i_end"]
            elif not 0 <= start <= end <= len(text):
                self._refuse(f"chunk {brief(key)}: it has no place in the text")
            yield Chunk(
                path=about.path or f"{folder}{key}.md",
                text=text[start:end],
                frontmatter=about.frontmatter or {},
                vectors=vectors.get(key) or {},
            )

    def _converted(self, value: Any, kind: type[T], place: str) -> T:
        try:
            return converted(value, kind, place)
        except UnfitError as error:
            self._refuse(error.message)

    def _refuse(self, problem: str) -> NoReturn:
        refuse(
            f"document {brief(self._name)}: what filestore wrote of it was changed: {problem}",
            "have it exported again, or remove 'filestore' from its content to read it without",
        )

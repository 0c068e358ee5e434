"""What a store holds, as a collection: its chunk files as they are on disk, with their vectors.

Reads the tree and the sidecar, writes nothing. One rule: what is excluded from search is not given
away as knowledge, but named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from filestore.catalog import Catalog
from filestore.chunks import chunk_file, kept, questions_file
from filestore.chunks.layout import look_at, shown_name
from filestore.chunks.observation import INDEXED, RECORD, Observation, why_excluded
from filestore.config.layout import RECORD_NAME, Places
from filestore.core.codes import CODES
from filestore.core.errors import FilestoreError
from filestore.core.hashing import embedding_key, source_hash
from filestore.core.paths import ChunkPath, inside, is_below, is_made
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.schema import JsonObject
from filestore.exchange.base import Chunk, Collection, LeftOut, Resource, TargetRefused, open_form
from filestore.fs import disk
from filestore.sidecar.file_rows import owner
from filestore.sidecar.losses import walk
from filestore.sidecar.refusals import own_folder_of
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.embed.cache import EmbeddingCache

_AT_ONCE: Final = 2_000
"""Chunks whose vectors are looked up together."""


class NoFolderError(FilestoreError, FileNotFoundError):
    """The folder in which something is to be written is not there."""


class Exported(JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}):
    """What was written."""

    files: tuple[str, ...]
    """Absolute paths of what was written."""
    size_bytes: int
    """Their size."""
    resources: int
    """How many documents are in it."""
    chunks: int
    """How many chunk files, in place sections."""
    vectors: int
    """How many vectors."""
    model: str
    """The fingerprint of their model; "" without any."""
    left_out: tuple[str, ...]
    """What is not in it, and why, a sentence each, at most 1,000; the exit code is then 1."""
    more_left_out: int
    """How many more there are."""


def export(
    parts: Parts,
    catalog: Catalog,
    form: str,
    target: str,
    *,
    resources: Sequence[str] = (),
    vectors: bool = True,
    on_progress: OnProgress = ignore,
) -> Exported:
    """Write a store in a form of other programs.

    Args:
        parts: The store's.
        catalog: In a snapshot.
        form: The name of the form.
        target: Absolute path of the file or folder.
        resources: Their exact names; none for all.
        vectors: Whether their vectors go with the texts.
        on_progress: Called with the progress.

    Raises:
        UnknownFormError: There is no such form.
        TargetRefused: The target belongs to the store, or something else is there.
        WriteFailedError: The disk refused; what was there is untouched.
    """
    chosen = open_form(form)
    check_target(parts.places, target)
    vectors = vectors and chosen.takes_vectors
    embeddings = parts.embeddings() if vectors else None
    collection = collection_of(parts, catalog, embeddings, resources, in_parts=chosen.takes_parts)
    if vectors and not collection.model and catalog.indexed_count():
        collection.left_out.add("the vectors: no passage is embedded yet; run 'filestore sync'")
    total = catalog.indexed_count() if not resources else None
    counts = dict.fromkeys(("resources", "chunks", "vectors"), 0)
    counted = _counting(collection, counts, total, on_progress)
    files = chosen.write(target, replace(collection, resources=counted))
    inside = [os.path.join(at, name) for at, _, names in os.walk(target) for name in names]
    return Exported(
        files=files,
        size_bytes=sum(map(os.path.getsize, inside or files)),
        **counts,
        model=collection.model if counts["vectors"] else "",
        left_out=tuple(collection.left_out),
        more_left_out=collection.left_out.more,
    )


def check_target(places: Places, target: str) -> None:
    """Refuse a target that belongs to the store, or holds it.

    Raises:
        NoFolderError: There is no folder for it.
        TargetRefused: It does.
    """
    parent = os.path.realpath(os.path.dirname(target))
    if not os.path.isdir(parent):
        raise NoFolderError(f"there is no folder {parent}", remedy=f"mkdir -p {parent}")
    if is_below(os.path.realpath(places.root), os.path.join(parent, os.path.basename(target))):
        raise TargetRefused(f"{target} holds the store itself: name another place")
    if folder := own_folder_of(places, target):
        raise TargetRefused(
            f"{target} lies in {folder}, which holds files of the store: name a place outside it",
        )


def _counting(
    resources: Iterable[Resource],
    counts: dict[str, int],
    total: int | None,
    on_progress: OnProgress,
) -> Iterator[Resource]:
    """Pass resources on, and count what went by; a large one may come in several parts."""
    last = None
    for resource in resources:
        yield resource
        counts["resources"] += resource.name != last
        counts["chunks"] += len(resource.chunks)
        counts["vectors"] += sum(len(chunk.vectors) for chunk in resource.chunks)
        last, done = resource.name, counts["chunks"]
        on_progress(Progress(stage="exporting", done=done, total=max(done, total or 0) or None))


def collection_of(
    parts: Parts,
    catalog: Catalog,
    embeddings: EmbeddingCache | None,
    resources: Sequence[str] = (),
    *,
    in_parts: bool = False,
) -> Collection:
    """The collection of a store.

    Args:
        parts: The store's.
        catalog: In a snapshot that lasts until all was passed through.
        embeddings: Where vectors come from; None for none.
        resources: Their exact names; none for all.
        in_parts: Whether a large resource may come in several parts, in order.
    """
    model = catalog.meta("fingerprint") if embeddings is not None else None
    dimension = embeddings.fingerprints().get(model or "", 0) if embeddings is not None else 0
    if not dimension:
        model, embeddings = "", None
    left_out = LeftOut()
    work = _Reading(
        _parts=parts,
        _catalog=catalog,
        _embeddings=embeddings,
        _model=model or "",
        _left_out=left_out,
    )
    return Collection(
        resources=work.resources(frozenset(resources), in_parts=in_parts),
        model=model or "",
        dimension=dimension,
        left_out=left_out,
    )


class _KeyedChunk(Struct):
    """A chunk with the embedding keys of its texts."""

    path: str
    chunk: chunk_file.Chunk
    text: str
    frontmatter: dict[str, Any]
    keys: tuple[bytes, ...]


class _ReadResource(Struct):
    """What was read of one resource."""

    made: list[_KeyedChunk] = field(default_factory=list)
    record: dict[str, Any] | None = None


class _Reading(Struct, kw_only=True):
    """One store on its way out."""

    _parts: Parts
    _catalog: Catalog
    _embeddings: EmbeddingCache | None
    _model: str
    _left_out: LeftOut
    _lacking: int = 0
    """Texts without a vector."""

    def resources(self, wanted: frozenset[str], *, in_parts: bool) -> Iterator[Resource]:
        """The resources by name; a file of none comes in the one without a name."""
        for name, paths in sorted(self._grouped().items()):
            if wanted and name not in wanted:
                continue
            # Questions are given to the sections that they were made for.
            paths.sort(key=is_made)
            if in_parts and len(paths) > _AT_ONCE and not self._parts.places.tree.has_sections:
                yield from self._in_parts(name, paths)
            elif (resource := self._whole(name, paths)) is not None:
                yield resource
        if self._lacking:
            self._left_out.add(
                f"{self._lacking:,} of the vectors: their passages have none yet; 'filestore sync'"
                " embeds them"
            )

    def _whole(self, name: str, paths: Sequence[ChunkPath]) -> Resource | None:
        """A resource, in reading order; None where there is nothing of it."""
        read = _ReadResource()
        for look in self._looks(paths):
            self._take(name, look, read)
        if not read.made and read.record is None:
            return None
        if not self._parts.places.tree.has_sections:
            read.made.sort(key=lambda one: chunk_file.sort_key(one.chunk.order, one.path))
        chunks: list[Chunk] = []
        for start in range(0, len(read.made), _AT_ONCE):
            some = read.made[start : start + _AT_ONCE]
            keys = [key for one in some for key in one.keys]
            vectors, found, at = None, None, 0
            if self._embeddings is not None:
                vectors, found = self._embeddings.get(self._model, keys)
                self._lacking += len(keys) - int(found.sum())
            for one in some:
                own = {}
                if vectors is not None and found is not None:
                    places = range(at, at + len(one.keys))
                    own = {place - at: vectors[place] for place in places if found[place]}
                at += len(one.keys)
                chunks.append(
                    Chunk(path=one.path, text=one.text, frontmatter=one.frontmatter, vectors=own)
                )
        return Resource(name=name, chunks=tuple(chunks), record=read.record)

    def _looks(self, paths: Sequence[ChunkPath]) -> Iterator[Observation]:
        for look in look_at(self._parts.places, paths, self._parts.layout):
            if isinstance(look, Observation):
                yield look
            elif not isinstance(look[1], FileNotFoundError):
                self._leave(look[0], look[1].strerror or str(look[1]))

    def _in_parts(self, name: str, paths: Sequence[ChunkPath]) -> Iterator[Resource]:
        """A large resource: its files are read once for their order, and once more part by part."""
        order = []
        for look in self._looks(paths):
            read = _ReadResource()
            self._take(name, look, read)
            if read.record is not None:
                yield Resource(name=name, chunks=(), record=read.record)
            order += [
                (chunk_file.sort_key(one.chunk.order, one.path), look.path) for one in read.made
            ]
        order.sort()
        for start in range(0, len(order), _AT_ONCE):
            part = self._whole(name, [path for _, path in order[start : start + _AT_ONCE]])
            if part is not None:
                yield part

    def _grouped(self) -> dict[str, list[ChunkPath]]:
        """The files of the tree by resource."""
        tree = walk(self._parts.places, processes=1)
        for path, reason in tree.problems.items():
            self._leave(path, reason)
        flat = self._parts.layout.shares_folder
        known: dict[ChunkPath, str] = {}
        if flat:
            known = {row.path: row.resource for row in self._catalog.all_files()}
            known |= {path: name for path, name, *_ in self._catalog.all_records()}
        unknown: list[ChunkPath] = []
        found: dict[str, list[ChunkPath]] = {}
        for folder, packed in tree.folders.items():
            for name in packed.entries():
                path = inside(folder, name)
                if not flat:
                    resource = self._parts.layout.resource(path)
                elif path in known:
                    resource = known[path]
                else:
                    unknown.append(path)
                    continue
                found.setdefault(resource, []).append(path)
        # Files of the flat layout that the catalog does not know.
        owners = self._catalog.sources_of_resources()
        looks = look_at(self._parts.places, unknown, self._parts.layout)
        seen = [look for look in looks if isinstance(look, Observation)]
        owners |= {one.record.source: one.record.resource or "" for one in seen if one.record}
        for look in seen:
            if look.record is not None:
                resource = look.record.resource or ""
            else:
                source = look.chunk.source if look.chunk is not None else None
                resource = owner(source, owners) if source else ""
            found.setdefault(resource, []).append(look.path)
        return found

    def _leave(self, path: ChunkPath, reason: str) -> None:
        self._left_out.add(
            f"{shown_name(ChunkPath(self._parts.places.tree.store_path(path)))}: {reason}"
        )

    def _take(self, name: str, look: Observation, read: _ReadResource) -> None:
        """Take what is in a file, or name it."""
        if look.state == RECORD:
            is_its_own = shown_name(look.path) == f"{name}/{RECORD_NAME}"
            if read.record is not None or not (is_its_own or self._parts.layout.shares_folder):
                self._leave(look.path, "a second record of its document")
            else:
                read.record = orjson.loads(look.data)
            return
        if look.pending:
            self._complete(look)
        if look.state != INDEXED or look.chunk is None:
            if CODES[look.state].severity != "I":
                self._leave(look.path, why_excluded(look.state, look.detail))
            return
        path, frontmatter = shown_name(look.path), dict(look.chunk.frontmatter)
        if self._parts.places.tree.has_sections:
            if not is_made(look.path):
                self._take_sections(name, look, read)
                return
            if look.chunk.kind == questions_file.KIND:
                _add_questions(read.made, look.chunk.body)
                return
            path = f"{name}/{look.path.rpartition('/')[2]}"
            # What it was made from are sections, which are no files.
            frontmatter.pop("children", None)
        read.made.append(_KeyedChunk(path, look.chunk, look.chunk.body, frontmatter, look.keys))

    def _complete(self, look: Observation) -> None:
        """Fill in what a document in place says: as it was indexed, or as it is now."""
        row = self._catalog.files([look.path]).get(look.path)
        if row is not None and row.file_hash == look.file_hash:
            look.state, look.detail = row.state, row.detail
            data = self._catalog.content(row.id)
            if row.state == INDEXED and data is not None:
                look.data = data
                kept.interpret(look)
        else:
            self._parts.layout.settle(look)
        if look.chunk is None and look.state == INDEXED:
            look.state, look.detail = "untracked", "not indexed as it is now: filestore sync"

    def _take_sections(self, name: str, look: Observation, read: _ReadResource) -> None:
        chunk = look.chunk
        assert chunk is not None
        document = kept.decode(look.data)
        # What it was read from and by what, as the record of a resource says.
        with suppress(OSError):
            with disk.folder_at(self._parts.places.chunked) as folder:
                data, _ = disk.read_below(folder, look.path)
            about: dict[str, Any] = {
                "source": name,
                "hash": source_hash(data),
                "extractor": document.extractor,
            }
            if document.metadata:
                about["metadata"] = dict(document.metadata)
            read.record = {
                "format": 1,
                "source": name,
                "kind": "file",
                "chunker": document.chunker,
                "documents": [about],
            }
        for number, section in enumerate(chunk.sections, 1):
            frontmatter: dict[str, Any] = {}
            if section.headings:
                frontmatter["headings"] = list(section.headings)
            if section.page:
                frontmatter["pages"] = [section.page]
            if section.line:
                frontmatter["lines"] = [section.line, section.end_line]
            key = look.keys[number - 1]
            path = f"{name}/{chunk_file.chunk_name(number)}"
            text = chunk.body[section.start : section.end]
            read.made.append(_KeyedChunk(path, chunk, text, frontmatter, (key,)))


def _add_questions(made: Sequence[_KeyedChunk], body: str) -> None:
    """Give the sections of a document the questions of a file of their own."""
    by_key = {one.keys[0]: one for one in made}
    for block in questions_file.blocks_of(body):
        one = by_key.get(block.key)
        if one is None or not block.questions:
            continue
        one.frontmatter["questions"] = list(block.questions)
        if block.made:
            mark = block.questions_origin
            one.frontmatter["questions_origin"] = {"text": mark.text, "made": list(mark.made)}
        one.keys += tuple(embedding_key(question) for question in block.questions)

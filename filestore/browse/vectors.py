"""Looking around among the vectors of a store: neighbours, a map.

Reads the catalog, the embeddings and, for a text as it is now, one file. One rule: whatever rests
on stored vectors works without their model.
"""

import os
from array import array
from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.browse.rows import opening
from filestore.catalog import Catalog, decode_path, queries
from filestore.chunks import kept
from filestore.chunks.layout import look_at
from filestore.chunks.observation import INDEXED, Observation
from filestore.core.errors import FilestoreError
from filestore.core.findings import FromIndex
from filestore.core.hashing import embedding_key
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.schema import JsonObject
from filestore.sidecar.session import Parts
from filestore.sidecar.vector_file import loaded_to_search
from filestore.sidecar.vector_home import StoredVectors

if TYPE_CHECKING:
    from numpy import float32, float64
    from numpy.typing import NDArray

    from filestore.embed.cache import EmbeddingCache
    from filestore.index import VectorIndex

MOST_POINTS: Final = 20_000
"""Of a map; more would be drawn over each other."""
_FEW_ASKED: Final = 64
"""With more vectors than this all are compared at once, not searched for one by one."""
_ASKED_AT_ONCE: Final = 1024
_DEEPEST: Final = 5_000
"""This many nearest texts are looked through for files; more only tie."""
_SPARE: Final = 8


class NoVectorError(FilestoreError, LookupError):
    """There is no vector to start from."""


class Neighbour(Struct, frozen=True, kw_only=True):
    """A file whose text is near another."""

    path: StorePath
    resource: str
    cosine: float
    """Of the nearest two of their texts."""
    headings: tuple[str, ...]
    """As they were indexed, and so are the pages."""
    pages: tuple[int, ...]
    line: int = 0
    """Of a document in place: where its nearest section begins, from 1; 0 where it has no lines."""
    words: str = ""
    """The first of its text, or of its nearest section, that are none of the headings."""


class _Near(Struct, frozen=True, kw_only=True):
    """A file near some vectors."""

    path: ChunkPath
    cosine: float
    part: int
    """Of its text that is nearest."""


class MapPoint(JsonObject, Struct, frozen=True):
    """One text of a map."""

    path: str
    """The chunk file; in place the document."""
    resource: str
    """Its document."""
    title: str
    """Its innermost heading, or its document's title; empty where there is none."""
    x: float
    """Where it lies; near texts lie near each other."""
    y: float
    """The same."""


class VectorMap(FromIndex, frozen=True, kw_only=True):
    """The bodies of a store as points; the first five fields are parallel."""

    KEYS = "points total left_out explained generation behind"

    paths: tuple[StorePath, ...]
    resources: tuple[str, ...]
    titles: tuple[str, ...]
    """The innermost heading of each, or its document's title; "" where there is none."""
    xs: "array[float]"
    ys: "array[float]"
    total: int
    """How many texts there are."""
    explained: tuple[float, float]
    """The shares, 0 to 1, of all variance along x and along y."""
    generation: int
    """Of the index."""

    @property
    def points(self) -> "Iterator[tuple[str, str, str, float, float]]":
        """Path, resource, title and place of each."""
        return zip(self.paths, self.resources, self.titles, self.xs, self.ys, strict=True)

    @property
    def json_points(self) -> list[MapPoint]:
        """A fixed choice of the texts."""
        return [MapPoint(*point) for point in self.points]

    @property
    def left_out(self) -> int:
        """How many of them are no point: too many, or without a vector."""
        return self.total - len(self.paths)


class _Space(Struct, frozen=True, kw_only=True):
    """Whose vectors the catalog counts on, whether or not the model is here."""

    fingerprint: str
    dimension: int


class Explorer:
    """Questions to the vectors of one store; one thread at a time. Closed with its store."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tree = parts.places.tree
        self._loaded: tuple[Catalog, int, VectorIndex] | None = None
        """The index, and the catalog and generation that it was opened of."""

    def close(self) -> None:
        """Let go of the index."""
        self._loaded = None

    def neighbours(
        self, path: str, count: int = 10, *, now: bool = False, part: int | None = None
    ) -> tuple[Neighbour, ...]:
        """The files whose texts are nearest to those of one file, nearest first, ties by path.

        Args:
            path: Relative to the store root.
            count: At most this many.
            now: Start from what the file says at this moment, embedded where that was not done yet,
                instead of from what was indexed.
            part: Start from this one of its texts alone; None for all of them.

        Raises:
            NoVectorError: It is not indexed, not embedded, or cannot be read as a chunk.
            CatalogMissingError: There is no catalog yet.
            FilestoreError: The embeddings, or the model for a new text, cannot be had.
        """
        relative = self._tree.chunk_path(StorePath(os.path.normpath(path)))
        with self._parts.reading() as catalog:
            space = self._require_space(catalog, self._tree.store_path(relative))
            if now:
                vectors = self._present_vectors(relative, space, part)
            else:
                vectors = self._stored_vectors(relative, catalog, space, part)
            near = self._nearest(vectors, {relative}, max(0, count), catalog, space)
            rows = catalog.files([one.path for one in near])
            found = []
            for one in near:
                data = catalog.content(rows[one.path].id)
                chunk = kept.read(data) if data is not None else None
                headings, pages, line = (chunk.headings, chunk.pages, 0) if chunk else ((), (), 0)
                body = chunk.body if chunk is not None else ""
                if chunk is not None and one.part < len(chunk.sections):
                    section = chunk.sections[one.part]
                    headings, line = section.headings, section.line
                    body = body[section.start : section.end]
                    pages = (section.page,) if section.page else ()
                neighbour = Neighbour(
                    path=self._tree.store_path(one.path),
                    resource=rows[one.path].resource,
                    cosine=one.cosine,
                    headings=headings,
                    pages=pages,
                    line=line,
                    words=opening(body, headings),
                )
                found.append(neighbour)
            return tuple(found)

    def nearest(
        self, paths: Sequence[ChunkPath], count: int, *, part: int | None = None
    ) -> list[tuple[ChunkPath, float, int]]:
        """The files whose texts are nearest to any of those of some files: cosine, and which text.

        Args:
            paths: Indexed files; none of them is found.
            count: At most this many.
            part: Start from this one of their texts alone; None for all of them.

        Raises:
            NoVectorError: None of them is embedded.
            FilestoreError: The embeddings cannot be had.
        """
        import numpy

        with self._parts.reading() as catalog:
            space = self._require_space(catalog, self._tree.store_path(paths[0]))
            vectors, lost = [], None
            for path in paths:
                try:
                    vectors.append(self._stored_vectors(path, catalog, space, part))
                except NoVectorError as error:
                    lost = error
            if lost is not None and not vectors:
                raise lost
            near = self._nearest(numpy.concatenate(vectors), set(paths), count, catalog, space)
            return [(one.path, one.cosine, one.part) for one in near]

    def bodies(
        self, most: int | None = None
    ) -> "tuple[list[tuple[int, bytes, bytes, str]], NDArray[float32]]":
        """Id, key, path and resource of every body that has a vector, and their vectors.

        A body that several files have comes once for each of them, in a row. Each section of a
        document in place is one.

        Raises:
            CatalogMissingError: There is no catalog yet.
            FilestoreError: The embeddings cannot be read.
        """
        with self._parts.reading() as catalog:
            most = catalog.count("parts") if most is None else most
            return self._sampled(catalog, most, sections=True)

    def searcher(self) -> "VectorIndex":
        """The index itself; inside a snapshot of the catalog."""
        catalog = self._parts.catalog()
        space = self._require_space(catalog, StorePath("the store"))
        return self._index(catalog, space)

    def vector_map(self, most: int = MOST_POINTS) -> VectorMap:
        """The store's bodies laid out in a plane; see `principal_plane`.

        Args:
            most: A fixed choice of this many is drawn where there are more.

        Raises:
            CatalogMissingError: There is no catalog yet.
            FilestoreError: The embeddings cannot be read.
        """
        with self._parts.reading() as catalog:
            rows, vectors = self._sampled(catalog, most)
            plane = principal_plane(vectors)
            paths = [decode_path(path) for _, _, path, _ in rows]
            files = catalog.files(paths)
            headings = (files[one].headings_and_pages()[0] if one in files else () for one in paths)
            return VectorMap(
                paths=tuple(self._tree.store_path(path) for path in paths),
                resources=tuple(resource for _, _, _, resource in rows),
                titles=tuple(one[-1] if one else "" for one in headings),
                xs=plane.xs,
                ys=plane.ys,
                total=len({path for _, path, _ in queries.bodies(catalog)}),
                explained=plane.explained,
                generation=catalog.generation,
            )

    def _embeddings(self) -> "EmbeddingCache":
        """The embeddings; where they cannot be read, what opening them says is raised."""
        from filestore.embed.cache import EmbeddingCache

        opened = self._parts.embeddings()
        if opened is not None:
            return opened
        return EmbeddingCache.open(self._parts.places.embeddings, read_only=True)

    def _space(self, catalog: Catalog) -> _Space | None:
        """Whose vectors the catalog counts on; None where nothing was embedded."""
        fingerprint = catalog.meta("fingerprint")
        if fingerprint is None or not queries.has_embedded(catalog):
            return None
        dimension = self._embeddings().fingerprints().get(fingerprint)
        if dimension is None:
            raise _lost("the embeddings of this store")
        return _Space(fingerprint=fingerprint, dimension=dimension)

    def _require_space(self, catalog: Catalog, path: StorePath) -> _Space:
        space = self._space(catalog)
        if space is None:
            raise NoVectorError(
                f"{path} has no neighbours: nothing of this store is embedded",
                remedy="filestore sync",
            )
        return space

    def _stored_vectors(
        self, path: ChunkPath, catalog: Catalog, space: _Space, part: int | None = None
    ) -> "NDArray[float32]":
        """The vectors of a file's texts, as far as they are embedded: (n, dimension)."""
        row = catalog.files([path]).get(path)
        ids = catalog.parts_of(row.id) if row is not None and row.state == INDEXED else []
        ids = ids if part is None else ids[part : part + 1]
        if not ids:
            raise NoVectorError(
                f"{self._tree.store_path(path)} is not indexed, so it has no vector",
                remedy="'filestore sync'; 'filestore status' says why a file is left out",
            )
        keys = catalog.keys_of_vectors(ids)
        vectors, found = self._embeddings().get(
            space.fingerprint, [keys.get(one, b"") for one in ids]
        )
        if not found.any():
            raise _lost(f"the vectors of {self._tree.store_path(path)}")
        return vectors[found]

    def _present_vectors(
        self, path: ChunkPath, space: _Space, part: int | None = None
    ) -> "NDArray[float32]":
        """The vectors of what a file says now; what was embedded once is not embedded again."""
        texts: tuple[str, ...] = ()
        try:
            (look,) = look_at(self._parts.places, [path], self._parts.layout)
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            if isinstance(look, Observation):
                texts, reason = look.texts, look.detail or look.state
            else:
                reason = look[1].strerror or str(look[1])
        if not texts:
            raise NoVectorError(
                f"{self._tree.store_path(path)} has no text to embed now: {reason}"
                "; fix the file, or ask for the neighbours of what was indexed",
            )
        texts = texts if part is None else texts[part : part + 1] or texts
        keys = [embedding_key(text) for text in texts]
        vectors, found = self._embeddings().get(space.fingerprint, keys)
        if found.all():
            return vectors
        embedder = self._parts.model.embedder
        if embedder is None or embedder.fingerprint != space.fingerprint:
            raise self._parts.model.why_not
        new = [text for text, is_known in zip(texts, found.tolist(), strict=True) if not is_known]
        vectors = vectors.copy()
        vectors[~found] = embedder.embed_documents(new)
        return vectors

    def _index(self, catalog: Catalog, space: _Space) -> "VectorIndex":
        if self._loaded is not None:
            known, generation, index = self._loaded
            if known is catalog and generation == catalog.generation:
                return index
        stored = StoredVectors(catalog, self._embeddings(), space)
        index = loaded_to_search(self._parts.places, stored)
        self._loaded = catalog, catalog.generation, index
        return index

    def _nearest(
        self,
        vectors: "NDArray[float32]",
        without: Set[ChunkPath],
        count: int,
        catalog: Catalog,
        space: _Space,
    ) -> list[_Near]:
        """The files nearest to any of some vectors."""
        wanted = count + len(vectors) + len(without) + _SPARE
        ask = self._ask(vectors, catalog, space)
        while count:
            rankings = ask(wanted)
            files = _best_files(catalog, rankings, without)
            reached = (
                max(ranking[-1][1] for ranking in rankings if ranking) if any(rankings) else -1.0
            )
            is_all = all(len(ranking) < wanted for ranking in rankings)
            # The order among equals is ours only if none of them was left behind.
            enough = len(files) >= count and files[count - 1].cosine > reached
            if is_all or enough or wanted >= _DEEPEST:
                return files[:count]
            wanted *= 4
        return []

    def _ask(
        self, vectors: "NDArray[float32]", catalog: Catalog, space: _Space
    ) -> Callable[[int], list[list[tuple[int, float]]]]:
        """What gives n of the nearest of each vector; of very many, of all together."""
        import numpy

        if len(vectors) <= _FEW_ASKED:
            index = self._index(catalog, space)
            return lambda wanted: [index.search(vector, wanted) for vector in vectors]
        identifiers, scores = [], []
        for ids, block in StoredVectors(catalog, self._embeddings(), space).blocks():
            best = numpy.full(len(ids), -numpy.inf, numpy.float32)
            for start in range(0, len(vectors), _ASKED_AT_ONCE):
                some = block @ vectors[start : start + _ASKED_AT_ONCE].T
                best = numpy.maximum(best, some.max(axis=1))
            identifiers.append(ids)
            scores.append(best)
        every, near = numpy.concatenate(identifiers), numpy.concatenate(scores)
        order = numpy.argsort(-near, kind="stable")
        ranking = list(zip(every[order].tolist(), near[order].tolist(), strict=True))
        return lambda wanted: [ranking[:wanted]]

    def _sampled(
        self, catalog: Catalog, most: int, *, sections: bool = False
    ) -> "tuple[list[tuple[int, bytes, bytes, str]], NDArray[float32]]":
        """Id, key, path and resource of bodies, and their vectors, rows without one left out."""
        import numpy

        space = self._space(catalog)
        if space is None:
            return [], numpy.empty((0, 0), numpy.float32)
        rows = queries.embedded_bodies(catalog, max(0, most), sections=sections)
        vectors, found = self._embeddings().get(space.fingerprint, [row[1] for row in rows])
        found = found & numpy.isfinite(vectors).all(axis=1)
        if not found.all():
            rows = [rows[place] for place in numpy.flatnonzero(found).tolist()]
            vectors = vectors[found]
        return [(row[0], row[1], row[2], row[3]) for row in rows], vectors


def _best_files(
    catalog: Catalog, rankings: Sequence[Sequence[tuple[int, float]]], without: Set[ChunkPath]
) -> list[_Near]:
    """Each file but some with the cosine of its nearest text, nearest first, ties by path."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for identifier, score in ranking:
            scores[identifier] = max(score, scores.get(identifier, score))
    best: dict[int, tuple[float, int]] = {}
    for identifier, files in catalog.files_of_vectors(list(scores)).items():
        for file, part in files:
            # Of equal ones the first, as a person reads.
            known = best.get(file)
            best[file] = max((scores[identifier], -part), known or (scores[identifier], -part))
    paths = catalog.indexed_paths(list(best))
    named = [
        _Near(path=path, cosine=best[file][0], part=-best[file][1])
        for file, path in paths.items()
        if path not in without
    ]
    return sorted(named, key=lambda one: (-one.cosine, one.path))


def _lost(what: str) -> NoVectorError:
    return NoVectorError(
        f"{what} are missing or damaged", remedy="'filestore sync --full' embeds what is lost again"
    )


_COLUMNS: Final = 10
"""Directions that are followed for the sake of the first two, which then settle sooner."""
_ROUNDS: Final = 30
_SETTLED: Final = 1e-6
"""The share of the variance by which a round of a plane that is good enough still gains."""
_NO_SPREAD: Final = 1e-10
_SEED: Final = 2011


class Plane(Struct, frozen=True, kw_only=True):
    """Points in two dimensions, and how much of what there was to see they show."""

    xs: "array[float]"
    """float32"""
    ys: "array[float]"
    """float32"""
    explained: tuple[float, float]
    """The shares, 0 to 1, of all variance that lie along x and along y."""


def principal_plane(vectors: "NDArray[float32]") -> Plane:
    """The plane through vectors on which they lie furthest apart: principal component analysis.

    Found by orthogonal iteration from a fixed start, which never forms a matrix of dimension by
    dimension (N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", SIAM
    Review 53, 2011, algorithm 4.4). The sign of an axis means nothing: it is the one with which
    the entry of the axis that is largest in size is positive.

    Args:
        vectors: (n, dimension) float32.
    """
    import numpy

    if not vectors.size:
        return _plane(numpy.zeros((len(vectors), 2)), (0.0, 0.0))
    centred = vectors - vectors.mean(axis=0, dtype=numpy.float64).astype(numpy.float32)
    variance = float(numpy.einsum("ij,ij->", centred, centred, dtype=numpy.float64))
    if variance <= _NO_SPREAD * len(vectors):
        return _plane(numpy.zeros((len(vectors), 2)), (0.0, 0.0))
    axes, along = _leading_axes(centred, variance)
    points = numpy.zeros((len(vectors), 2))
    points[:, : axes.shape[1]] = centred @ axes.astype(numpy.float32)
    shares = [*(along / variance).tolist(), 0.0][:2]
    return _plane(points, (shares[0], shares[1]))


def _leading_axes(
    centred: "NDArray[float32]", variance: float
) -> "tuple[NDArray[float64], NDArray[float64]]":
    """The first axes, (dimension, up to 2), and the squares along each: (up to 2,)."""
    import numpy

    columns = min(_COLUMNS, *centred.shape)
    # The legacy generator is the one whose numbers are promised never to change.
    start = numpy.random.RandomState(_SEED).standard_normal((centred.shape[1], columns))
    basis, _ = numpy.linalg.qr(start)
    before = 0.0
    for _ in range(_ROUNDS):
        seen = centred @ basis.astype(numpy.float32)
        squares, turns = numpy.linalg.eigh(seen.T.astype(numpy.float64) @ seen)
        captured = float(squares[-2:].sum())
        if captured - before <= _SETTLED * variance:
            break
        before = captured
        basis, _ = numpy.linalg.qr((centred.T @ seen).astype(numpy.float64))
    axes = (basis @ turns)[:, ::-1][:, :2]
    largest = axes[numpy.abs(axes).argmax(axis=0), numpy.arange(axes.shape[1])]
    return axes * numpy.where(largest < 0, -1.0, 1.0), squares[::-1][:2]


def _plane(points: "NDArray[float64]", explained: tuple[float, float]) -> Plane:
    xs, ys = array("f", points[:, 0].tolist()), array("f", points[:, 1].tolist())
    return Plane(xs=xs, ys=ys, explained=explained)

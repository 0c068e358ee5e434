"""The FAISS file of a store: written when due, checked by hash, brought up to date in memory.

It is an accelerator: whatever is wrong with it, its vectors come from the embeddings again.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from filestore.catalog import Catalog, IndexFile, in_batches, queries
from filestore.config import user_config
from filestore.config.layout import EMBEDDINGS, Places
from filestore.core.findings import Finding
from filestore.embed.base import odd_lengths as wrong_lengths
from filestore.fs import disk, part
from filestore.index import IndexDamagedError, new_index, overlaid, read_index
from filestore.index.base import VectorSource

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

    from filestore.catalog import CatalogWriter
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex
    from filestore.index.building import Built, Description, Grown, Limits

PREFIX: Final = "vectors-"
SUFFIX: Final = ".faiss"
REPLAYED_ALWAYS: Final = 100
REPLAYED_SHARE: Final = 0.05
"""A difference up to the larger of the two is replayed at opening, beyond it a file is due."""
FEW_VECTORS: Final = 1_000
_BLOCK: Final = 8192
_DESCRIPTION: Final = "index_description"
_FINGERPRINT: Final = "index_fingerprint"
_SEAL: Final = "index_seal"
"""Keys of the catalog's memory: what kind of index the file is, whose vectors it holds, and this
user's keyed hash. The hash says nothing of a sidecar from a stranger, who wrote file and hash."""


class Space(Protocol):
    """Whose vectors: an embedder, or what is known of one that is not here."""

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        ...

    @property
    def dimension(self) -> int:
        """See `Embedder`."""
        ...


def is_behind(catalog: Catalog, *, changed: int = 0) -> bool:
    """Whether more differs than is replayed in passing, or did before a file was written.

    Args:
        catalog: With the difference that there is now.
        changed: How many vectors came or went in one change of several commits.
    """
    behind = queries.unsent_vectors(catalog)
    if behind <= REPLAYED_ALWAYS:
        return False
    return max(behind, changed) > REPLAYED_SHARE * catalog.count("vectors")


class StoredVectors(VectorSource):
    """The vectors of a model that the catalog counts on, out of the embeddings, and their index."""

    def __init__(self, catalog: Catalog, embeddings: "EmbeddingCache", embedder: Space) -> None:
        self.dimension = embedder.dimension
        self._catalog = catalog
        self._embeddings = embeddings
        self._fingerprint = embedder.fingerprint
        self._is_counted_on = is_counted_on(catalog, embedder)
        self.lacking: set[int] = set()
        """Ids whose embedding turned out to be lost or damaged."""

    @cached_property
    def _wanted(self) -> Sequence[tuple[int, bytes]]:
        return self._catalog.vector_keys()

    def __len__(self) -> int:
        return len(self._wanted)

    def sample(self, count: int) -> "NDArray[float32]":
        """See the contract. Ids are hashes: those in regular distances are a fair choice."""
        import numpy

        step = max(1, len(self._wanted) // max(1, count))
        parts = [vectors for _, vectors in self._read(self._wanted[::step][:count])]
        return numpy.concatenate([numpy.empty((0, self.dimension), numpy.float32), *parts])

    def ids(self) -> "NDArray[int64]":
        """The ids of all, ascending: (n,) int64."""
        import numpy

        return numpy.array([identifier for identifier, _ in self._wanted], numpy.int64)

    def blocks(self) -> "Iterator[tuple[NDArray[int64], NDArray[float32]]]":
        """See the contract."""
        return self._read(self._wanted)

    def _read(
        self, wanted: Sequence[tuple[int, bytes]]
    ) -> "Iterator[tuple[NDArray[int64], NDArray[float32]]]":
        """Ids and vectors, in blocks; what is lost or damaged is noted and left out."""
        import numpy

        for block in in_batches(wanted, _BLOCK):
            vectors, found = self._embeddings.get(self._fingerprint, [key for _, key in block])
            ids = numpy.array([identifier for identifier, _ in block], numpy.int64)
            self.lacking.update(ids[~found].tolist())
            if found.all():
                yield ids, vectors
            elif found.any():
                yield ids[found], vectors[found]

    def vectors_of(self, ids: "NDArray[int64]") -> "tuple[NDArray[float32], NDArray[bool_]]":
        """See the contract; none where the file of the embeddings cannot be walked."""
        import numpy

        from filestore.embed.cache import EmbeddingsDamaged

        keys = self._catalog.keys_of_vectors(ids.tolist())
        wanted = [keys.get(identifier, b"") for identifier in ids.tolist()]
        try:
            return self._embeddings.get(self._fingerprint, wanted)
        except EmbeddingsDamaged:
            # The index still answers, nearly as well; saying what is damaged is verification's
            # part.
            return numpy.empty((len(ids), 0), numpy.float32), numpy.zeros(len(ids), numpy.bool_)

    def load_to_search(self, places: Places) -> "VectorIndex":
        """The vectors of the catalog's generation, the quickest way.

        A few come straight from the embeddings: comparing them one by one takes less time than
        loading the library that does it well for many.
        """
        if self._is_counted_on and self._catalog.count("vectors") <= FEW_VECTORS:
            return self._filled("exact", self._wanted)
        return self.load(places)

    def load(self, places: Places) -> "VectorIndex":
        """The vectors of the catalog's generation, from the file and what came since.

        A file that is missing or damaged is not parsed: all vectors come from the embeddings. So do
        those of another model than the catalog counts on. That has no file, which would have to be
        kept in step with the catalog: 20,000 vectors of 384 numbers are read in 0.25 s, each held
        against its checksum, and stay while the store is open.
        """
        if not self._is_counted_on:
            wanted = self._catalog.vector_keys(embedded=None)
            return self._filled("faiss" if len(wanted) > FEW_VECTORS else "exact", wanted)
        index = self.read(places, mapped=True)
        return self._filled("faiss", self._wanted) if index is None else self.laid_over(index)

    def laid_over(self, index: "VectorIndex") -> "VectorIndex":
        """An index with the catalog's difference to it laid over it."""
        import numpy

        removed, added = self._catalog.index_delta()
        if removed or added:
            index = overlaid(index, numpy.array(removed, numpy.int64))
            self.fill(index, added)
        return index

    def read(self, places: Places, *, mapped: bool) -> "VectorIndex | None":
        """The index in the file as it was written; None if it is missing, damaged or another's."""
        if self._catalog.meta(_FINGERPRINT, self._fingerprint) != self._fingerprint:
            return None
        path = _sound_file(places, self._catalog)
        if path is None:
            return None
        try:
            return read_index(path, self.dimension, self.vectors_of, mapped=mapped)
        except IndexDamagedError:
            return None

    def fill(self, index: "VectorIndex", wanted: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors to an index by id and embedding key."""
        for ids, vectors in self._read(wanted):
            index.add(ids, vectors)

    def _filled(self, kind: str, wanted: Sequence[tuple[int, bytes]]) -> "VectorIndex":
        index = new_index(kind, self.dimension)
        self.fill(index, wanted)
        return index


def write(
    places: Places,
    catalog: "CatalogWriter",
    embeddings: "EmbeddingCache",
    embedder: "Embedder",
    *,
    limits: "Limits | None" = None,
) -> bool:
    """Write a FAISS file of every embedded vector and name it in the running transaction.

    Args:
        places: Where it is written.
        catalog: Which vectors there are.
        embeddings: The vectors.
        embedder: Whose vectors.
        limits: Where an index with lists begins to win over an exact one; None for the usual.

    Returns:
        Whether an embedding that should be there was not, or was damaged.

    Raises:
        WriteFailedError: The disk refused; the old file stays.
    """
    import numpy

    from filestore.index.building import Limits, build

    source = StoredVectors(catalog, embeddings, embedder)
    limits = limits or Limits()
    is_large = len(source) > limits.exact_up_to
    grown = _grown(places, catalog, source) if is_large else None
    tried = _tried(catalog, embedder)
    built = build(source, grown=grown, tried=tried, limits=limits)
    # A row that was lost or damaged is said to be lacking, so that the next sync embeds it.
    catalog.set_embedded(source.lacking, embedded=False)
    built.index.remove(numpy.array(sorted(source.lacking), numpy.int64))
    named = _written(places, catalog, built)
    catalog.name_index(named)
    catalog.set_meta(
        _SEAL, user_config.seal(places.configuration, _sealed(catalog, named), make=True)
    )
    described = replace(built.description, vectors=len(built.index))
    catalog.set_meta(_DESCRIPTION, described.serialize())
    catalog.set_meta(_FINGERPRINT, embedder.fingerprint)
    return bool(source.lacking)


def _written(places: Places, catalog: "CatalogWriter", built: "Built") -> IndexFile:
    name = f"{PREFIX}{catalog.next_generation}{SUFFIX}"
    path = os.path.join(places.sidecar, name)
    temporary = os.path.join(places.sidecar, f"{disk.TEMPORARY_PREFIX}{name}")
    try:
        built.index.write(temporary)
        size_bytes, digest = os.path.getsize(temporary), disk.file_hash(temporary).hex()
        os.rename(temporary, path)
        disk.sync_path(places.sidecar)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise disk.write_failed(path, error) from error
    return IndexFile(name, size_bytes, digest, catalog.next_generation)


def describe(catalog: Catalog) -> "Description | None":
    """What kind of index the FAISS file is, from the catalog alone; None where there is none."""
    from filestore.index.building import Description

    text = catalog.meta(_DESCRIPTION)
    if text is not None:
        return Description.parse(text)
    if catalog.index_file() is None:
        return None
    # Written before there was any other kind.
    return Description(kind="exact", vectors=catalog.count("vectors"))


def _tried(catalog: Catalog, embedder: "Embedder") -> "Description | None":
    """The exact index of this model for which lists were tried; None where there is none."""
    described = describe(catalog)
    if described is None or described.kind != "exact" or described.trained_on is None:
        return None
    return described if catalog.meta(_FINGERPRINT) == embedder.fingerprint else None


def _grown(places: Places, catalog: Catalog, source: StoredVectors) -> "Grown | None":
    """The trained index of the file with what came since, if it holds the wanted ids."""
    import numpy

    from filestore.index.building import Grown, is_current

    described = describe(catalog)
    is_trained = described is not None and described.kind == "approximate"
    trained_on = described.trained_on if described and is_trained else None
    if trained_on is None or not is_current(len(source), trained_on):
        return None
    index = source.read(places, mapped=False)
    if index is None:
        return None
    removed, added = catalog.index_delta()
    index.remove(numpy.array(removed, numpy.int64))
    source.fill(index, added)
    if not numpy.array_equal(index.ids(), numpy.setdiff1d(source.ids(), list(source.lacking))):
        return None
    return Grown(index=index, trained_on=trained_on)


def is_counted_on(catalog: Catalog, embedder: Space) -> bool:
    """Whether the catalog's vectors and the FAISS file are those of this model."""
    return bool(catalog.meta("fingerprint", embedder.fingerprint) == embedder.fingerprint)


def _sound_file(places: Places, catalog: Catalog) -> str | None:
    """Where the file is that this user wrote and that has its hash; None where there is none."""
    named = catalog.index_file()
    if named is None or not is_ours(places, catalog, named) or problem(places, named, hashes=True):
        return None
    return os.path.join(places.sidecar, named.name)


def unreadable(places: Places, catalog: Catalog, embedder: "Embedder") -> str:
    """Why FAISS cannot read a file whose hash holds; "" where it can, or where nothing is read."""
    path = _sound_file(places, catalog)
    if path is None:
        return ""
    vectors_of = partial(_none_of, embedder.dimension)
    try:
        read_index(path, embedder.dimension, vectors_of, mapped=True)
    except IndexDamagedError as error:
        return f"{error.message} {error.detail}".strip()
    return ""


def _none_of(dimension: int, ids: "NDArray[int64]") -> "tuple[NDArray[float32], NDArray[bool_]]":
    import numpy

    return numpy.empty((len(ids), dimension), numpy.float32), numpy.zeros(len(ids), numpy.bool_)


def is_ours(places: Places, catalog: Catalog, named: IndexFile) -> bool:
    """Whether this user wrote the file; FAISS trusts what it parses, so it gets no other."""
    data, mark = _sealed(catalog, named), catalog.meta(_SEAL)
    return user_config.is_sealed(places.configuration, data, mark)


def _sealed(catalog: Catalog, named: IndexFile) -> bytes:
    return f"{catalog.identity}\n{named.name}\n{named.hash}".encode("utf-8", "surrogatepass")


def problem(places: Places, named: IndexFile, *, hashes: bool) -> str:
    """The code of what is wrong with the named file, or ""."""
    path = os.path.join(places.sidecar, named.name)
    try:
        part.check(path, "shared")
        if os.path.getsize(path) != named.size_bytes:
            return "index-damaged"
        if hashes and disk.file_hash(path).hex() != named.hash:
            return "index-damaged"
    except (FileNotFoundError, NotADirectoryError):
        return "index-missing"
    except disk.NotAFileError:
        return "index-damaged"
    except OSError as error:
        # Of the moment: nothing is written again for a file that cannot be read just now.
        disk.pass_limits(error)
        return "unreadable"
    return ""


def findings(places: Places, catalog: Catalog, *, hashes: bool) -> list[Finding]:
    """What is wrong with the FAISS file, without parsing it."""
    named = catalog.index_file()
    if named is None:
        if not queries.has_embedded(catalog):
            return []
        path, detail = places.part(""), "no FAISS file was written"
        return [Finding(code="index-missing", path=path, detail=detail)]
    path = places.part(named.name)
    if code := problem(places, named, hashes=hashes):
        expected = f"expected {named.size_bytes} bytes with hash {named.hash}"
        detail = f"{_what_is_there(places, named, hashes=hashes)}, {expected}"
        return [Finding(code=code, path=path, detail=detail)]
    if not is_ours(places, catalog, named) and user_config.can_seal(places.configuration):
        detail = "it does not carry this user's keyed hash"
        return [Finding(code="index-foreign", path=path, detail=detail)]
    whose, wanted = catalog.meta(_FINGERPRINT), catalog.meta("fingerprint")
    if whose is not None and whose != wanted:
        detail = f"it holds the vectors of {whose}, the catalog counts on {wanted}"
        return [Finding(code="index-behind", path=path, detail=detail)]
    if is_behind(catalog):
        detail = f"{queries.unsent_vectors(catalog)} vectors differ from the catalog"
        return [Finding(code="index-behind", path=path, detail=detail)]
    return []


def _what_is_there(places: Places, named: IndexFile, *, hashes: bool) -> str:
    path = os.path.join(places.sidecar, named.name)
    try:
        found = f"found {os.path.getsize(path)} bytes"
        return f"{found} with hash {disk.file_hash(path).hex()}" if hashes else found
    except OSError as error:
        return f"found none ({error.strerror})"


def embeddings_findings(
    places: Places, catalog: Catalog, opened: "EmbeddingCache | None" = None
) -> list[Finding]:
    """The finding for embeddings that are gone though the catalog counts on some, or do not open.

    Opening shows what their header, their tables and the size of their file tell; no row is read.

    Args:
        places: Where the store lies.
        catalog: What it counts on.
        opened: The embeddings, where they are open already.
    """
    path = places.part(EMBEDDINGS)
    if not os.path.exists(places.embeddings):
        if not queries.has_embedded(catalog):
            return []
        return [Finding(code="embeddings-damaged", path=path, detail="the file is gone")]
    if opened is not None:
        return []
    from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged, EmbeddingsMissing

    try:
        EmbeddingCache.open(places.embeddings, read_only=True).close()
    except EmbeddingsDamaged as error:
        return [Finding(code="embeddings-damaged", path=path, detail=error.detail)]
    except EmbeddingsMissing:
        # It went between the two looks: a writer is putting another in its place.
        return []
    except sqlite3.OperationalError as error:
        return [Finding(code="unreadable", path=path, detail=str(error))]
    return []


def collect(places: Places, catalog: Catalog, previous: IndexFile | None) -> None:
    """Remove FAISS files that no reader can need: all but the named and the previous one."""
    named = catalog.index_file()
    kept = {file.name for file in (named, previous) if file is not None}
    for name in os.listdir(places.sidecar):
        if name.startswith(PREFIX) and name.endswith(SUFFIX) and name not in kept:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(places.sidecar, name))


def invalid_keys(embeddings: "EmbeddingCache", fingerprint: str) -> set[bytes]:
    """The keys of stored embeddings that can be no vector: not of length 1."""
    import numpy

    keys: set[bytes] = set()
    for key, raw in embeddings.rows(fingerprint):
        vector = numpy.frombuffer(raw, dtype="<f4").reshape(1, -1)
        if wrong_lengths(vector):
            keys.add(key)
    return keys


def odd_lengths(ids: "NDArray[int64]", vectors: "NDArray[float32]") -> dict[int, str]:
    """The vectors that are not of length 1; a number that is not finite gives no length."""
    found = wrong_lengths(vectors)
    return {
        int(ids[place]): f"its length is {length:.4g}, expected 1"
        for place, length in found.items()
    }

"""The FAISS file of a store: written when due, checked by hash, updated in memory.

It is an accelerator: whatever is wrong with it, its vectors come from the embeddings again.
"""

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import Catalog, IndexFile, queries
from filestore.config import user_config
from filestore.config.layout import EMBEDDINGS, Places
from filestore.core.findings import Finding
from filestore.core.paths import StorePath
from filestore.embed import odd_lengths as wrong_lengths
from filestore.fs import disk, part
from filestore.index import Description, ExactIndex, IndexDamagedError, read_index
from filestore.sidecar.vector_home import Space, StoredVectors, VectorHome

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

    from filestore.catalog import CatalogWriter
    from filestore.embed.cache import EmbeddingCache
    from filestore.index import HeldIndex, VectorIndex
    from filestore.index.backend import Inspected, Sent, ShownHome
    from filestore.index.building import Built, Grown, Limits

PREFIX: Final = "vectors-"
SUFFIX: Final = ".faiss"
REPLAYED_ALWAYS: Final = 100
REPLAYED_SHARE: Final = 0.05
"""A difference up to the larger of the two is replayed at opening, beyond it a file is due."""
FEW_VECTORS: Final = 1_000
_DESCRIPTION: Final = "index_description"
_FINGERPRINT: Final = "index_fingerprint"
_SEAL: Final = "index_seal"
"""Keys of the catalog's memory: what kind of index the file is, whose vectors it holds, and this
user's keyed hash. The hash says nothing of a sidecar from a stranger, who wrote file and hash."""


class OwnFile(VectorHome):
    """The FAISS file of the sidecar; the catalog names it and this user's key seals it."""

    row_name = "FAISS row"

    def __init__(self, places: Places) -> None:
        self._places = places

    def address(self) -> str:
        """See the contract."""
        return "the FAISS file of the sidecar"

    def part(self, catalog: Catalog) -> StorePath:
        """See the contract."""
        named = catalog.index_file()
        return self._places.part(named.name if named else "")

    def lag(self, catalog: Catalog, *, changed: int = 0) -> str:
        """See the contract; more differs than is replayed in passing, or did before a write."""
        behind = queries.unsent_vectors(catalog)
        most = max(REPLAYED_ALWAYS, REPLAYED_SHARE * catalog.count("vectors"))
        if behind <= REPLAYED_ALWAYS or max(behind, changed) <= most:
            return ""
        return f"{behind} vectors differ from the catalog"

    def findings(self, catalog: Catalog, *, hashes: bool) -> list[Finding]:
        """See the contract."""
        places, named = self._places, catalog.index_file()
        code, detail = "", ""
        if named is None:
            if queries.has_embedded(catalog):
                code, detail = "index-missing", "no FAISS file was written"
        elif code := _problem(places, named, hashes=hashes):
            expected = f"expected {named.size_bytes} bytes with hash {named.hash}"
            path = os.path.join(places.sidecar, named.name)
            try:
                there = f"found {os.path.getsize(path)} bytes"
                there += f" with hash {disk.file_hash(path).hex()}" if hashes else ""
            except OSError as error:
                there = f"found none ({error.strerror})"
            detail = f"{there}, {expected}"
        elif not _is_ours(places, catalog, named) and user_config.can_seal(places.configuration):
            code, detail = "index-foreign", "nothing in it shows that you made it"
        else:
            whose, wanted = catalog.meta(_FINGERPRINT), catalog.meta("fingerprint")
            detail = self.lag(catalog)
            if whose is not None and whose != wanted:
                detail = f"it holds the vectors of {whose}, the catalog counts on {wanted}"
            code = "index-behind" if detail else ""
        shown = places.part(named.name if named else "")
        return [Finding(code=code, path=shown, detail=detail)] if code else []

    def write(
        self,
        catalog: "CatalogWriter",
        vectors: StoredVectors,
        *,
        wanted: bool,
        limits: "Limits | None" = None,
    ) -> bool:
        """See the contract; a file of every embedded vector, which the catalog names.

        Args:
            catalog: In a transaction.
            vectors: All that there are.
            wanted: Whether one is written that is not due.
            limits: Where an index with lists begins to win over an exact one; None for the usual.
        """
        catalog.unname_rows()
        is_first = catalog.index_file() is None and queries.has_embedded(catalog)
        if not (is_first or wanted or self.lag(catalog)):
            return False
        import numpy

        from filestore.index.building import Limits, build

        limits = limits or Limits()
        is_large = len(vectors) > limits.exact_up_to
        grown = _grown(self._places, vectors) if is_large else None
        described, tried = describe(catalog), None
        if described is not None and described.kind == "exact" and described.trained_on is not None:
            # The exact index of this model for which lists were tried.
            is_own = catalog.meta(_FINGERPRINT) == vectors.space.fingerprint
            tried = described if is_own else None
        built = build(vectors, grown=grown, tried=tried, limits=limits)
        # A row that was lost or damaged is reported as lacking, so that the next sync embeds it.
        catalog.set_embedded(vectors.lacking, embedded=False)
        built.index.remove(numpy.array(sorted(vectors.lacking), numpy.int64))
        named = _written(self._places, catalog, built)
        catalog.name_index(named)
        seal = user_config.seal(self._places.configuration, _sealed(catalog, named), make=True)
        catalog.set_meta(_SEAL, seal)
        now = replace(built.description, vectors=len(built.index))
        catalog.set_meta(_DESCRIPTION, now.serialize())
        catalog.set_meta(_FINGERPRINT, vectors.space.fingerprint)
        return bool(vectors.lacking)

    def load(self, vectors: StoredVectors) -> "VectorIndex":
        """See the contract."""
        return loaded_to_search(self._places, vectors)

    def inspect(self, vectors: StoredVectors) -> "Inspected":
        """See the contract."""
        from filestore.index.backend import Inspected

        catalog = vectors.catalog
        found, named = self.findings(catalog, hashes=True), catalog.index_file()
        unread = ", ".join(
            one.code for one in found if one.meaning.about == "index" and one.meaning.unopened
        )
        if not unread and named and not _is_ours(self._places, catalog, named):
            unread = "its writer is unknown"
        elif not unread and (why := _unreadable(self._places, vectors)):
            found.append(Finding(code="index-damaged", path=self.part(catalog), detail=why))
            unread = "index-damaged"
        if unread:
            unread = f"FAISS rows, since the file is not opened ({unread})"
            return Inspected(findings=found, unread=unread)
        return Inspected(index=loaded(self._places, vectors), findings=found)

    def shown(self, catalog: Catalog) -> "ShownHome":
        """See the contract."""
        from filestore.index.backend import ShownHome

        return ShownHome(
            kind="faiss",
            address=self.address(),
            vectors=catalog.count("vectors"),
            waiting=queries.unsent_vectors(catalog),
            compares=True,
        )

    def compare(self, catalog: Catalog, space: Space, *, takes_over: bool) -> "Sent":
        """See the contract; it is written anew."""
        from filestore.index.backend import Sent

        return Sent(written=len(catalog.vector_keys()))


def loaded_to_search(places: Places, vectors: StoredVectors) -> "VectorIndex":
    """An index in this process of the catalog's generation, the quickest way.

    A few come straight from the embeddings: comparing them one by one takes less time than loading
    the library that does it well for many.
    """
    if vectors.is_counted_on and vectors.catalog.count("vectors") <= FEW_VECTORS:
        return _filled(vectors, vectors.keys, few=True)
    return loaded(places, vectors)


def loaded(places: Places, vectors: StoredVectors) -> "VectorIndex":
    """An index in this process of the catalog's generation, from the file and what came since.

    A file that is missing or damaged is not parsed: all vectors come from the embeddings. So do
    those of another model than the catalog counts on. That has no file, which would have to follow
    the catalog: 20,000 vectors of 384 numbers are read in 0.25 s, each held against
    its checksum, and stay while the store is open.
    """
    if not vectors.is_counted_on:
        wanted = vectors.catalog.vector_keys(embedded=None)
        return _filled(vectors, wanted, few=len(wanted) <= FEW_VECTORS)
    index = _read(places, vectors, mapped=True)
    return _filled(vectors, vectors.keys) if index is None else vectors.laid_over(index)


def _filled(
    vectors: StoredVectors, wanted: Sequence[tuple[int, bytes]], *, few: bool = False
) -> "HeldIndex":
    index: HeldIndex = ExactIndex(vectors.dimension)
    if not few:
        from filestore.index.faiss_index import FaissIndex

        index = FaissIndex(vectors.dimension)
    vectors.fill(index, wanted)
    return index


def _read(places: Places, vectors: StoredVectors, *, mapped: bool) -> "HeldIndex | None":
    """The index in the file as it was written; None if it is missing, damaged or another's."""
    fingerprint = vectors.space.fingerprint
    if vectors.catalog.meta(_FINGERPRINT, fingerprint) != fingerprint:
        return None
    path = _sound_file(places, vectors.catalog)
    if path is None:
        return None
    try:
        return read_index(path, vectors.dimension, vectors.vectors_of, mapped=mapped)
    except IndexDamagedError:
        return None


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
    text = catalog.meta(_DESCRIPTION)
    if text is not None:
        return Description.parse(text)
    if catalog.index_file() is None:
        return None
    # Written before there was any other kind.
    return Description(kind="exact", vectors=catalog.count("vectors"))


def _grown(places: Places, vectors: StoredVectors) -> "Grown | None":
    """The trained index of the file with what came since, if it holds the wanted ids."""
    import numpy

    from filestore.index.building import Grown, is_current

    described = describe(vectors.catalog)
    is_trained = described is not None and described.kind == "approximate"
    trained_on = described.trained_on if described and is_trained else None
    if trained_on is None or not is_current(len(vectors), trained_on):
        return None
    index = _read(places, vectors, mapped=False)
    if index is None:
        return None
    removed, added = vectors.catalog.index_delta()
    index.remove(numpy.array(removed, numpy.int64))
    vectors.fill(index, added)
    if not numpy.array_equal(index.ids(), numpy.setdiff1d(vectors.ids(), list(vectors.lacking))):
        return None
    return Grown(index=index, trained_on=trained_on)


def _sound_file(places: Places, catalog: Catalog) -> str | None:
    """Where the file is that this user wrote and that has its hash; None where there is none."""
    named = catalog.index_file()
    if named is None or not _is_ours(places, catalog, named):
        return None
    if _problem(places, named, hashes=True):
        return None
    return os.path.join(places.sidecar, named.name)


def _unreadable(places: Places, vectors: StoredVectors) -> str:
    """Why FAISS cannot read a file whose hash holds; "" where it can, or where nothing is read."""
    path = _sound_file(places, vectors.catalog)
    if path is None:
        return ""
    try:
        read_index(path, vectors.dimension, vectors.vectors_of, mapped=True)
    except IndexDamagedError as error:
        return f"{error.message} {error.detail}".strip()
    return ""


def _is_ours(places: Places, catalog: Catalog, named: IndexFile) -> bool:
    """Whether this user wrote the file; FAISS trusts what it parses, so it gets no other."""
    data, mark = _sealed(catalog, named), catalog.meta(_SEAL)
    return user_config.is_sealed(places.configuration, data, mark)


def _sealed(catalog: Catalog, named: IndexFile) -> bytes:
    return f"{catalog.identity}\n{named.name}\n{named.hash}".encode("utf-8", "surrogatepass")


def _problem(places: Places, named: IndexFile, *, hashes: bool) -> str:
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

"""Where the vectors of a store live: the contract of the sidecar's own file and of a backend.

Chosen once, as the store is opened, by `session.home_of`. One rule: no other code asks which it is;
what differs is a property or a method here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, Self

from filestore.catalog import Catalog, in_batches
from filestore.config.layout import SETTINGS
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding
from filestore.core.paths import StorePath
from filestore.index import OverlaidIndex, VectorSource

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

    from filestore.catalog import CatalogWriter
    from filestore.embed.cache import EmbeddingCache
    from filestore.index import HeldIndex, VectorIndex, Where
    from filestore.index.backend import Inspected, Sent, ShownHome

PART: Final = StorePath(SETTINGS)
"""The path of a backend in findings: that of the settings, which name it."""
_BLOCK: Final = 8192


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


class StoredVectors(VectorSource):
    """The vectors of a model, out of the embeddings: what every home of them is filled from."""

    def __init__(self, catalog: Catalog, embeddings: "EmbeddingCache", space: Space) -> None:
        self.catalog, self.embeddings, self.space = catalog, embeddings, space
        self.dimension = space.dimension
        self.lacking: set[int] = set()
        """Ids whose embedding turned out to be lost or damaged."""

    @property
    def is_counted_on(self) -> bool:
        """Whether the catalog's vectors are those of this model."""
        wanted = self.space.fingerprint
        return bool(self.catalog.meta("fingerprint", wanted) == wanted)

    @cached_property
    def keys(self) -> Sequence[tuple[int, bytes]]:
        """Id and embedding key of each that the catalog has as embedded."""
        return self.catalog.vector_keys()

    def __len__(self) -> int:
        return len(self.keys)

    def sample(self, count: int) -> "NDArray[float32]":
        """See the contract. Ids are hashes: those in regular distances are a fair choice."""
        import numpy

        step = max(1, len(self.keys) // max(1, count))
        parts = [vectors for _, vectors in self.read(self.keys[::step][:count])]
        return numpy.concatenate([numpy.empty((0, self.dimension), numpy.float32), *parts])

    def ids(self) -> "NDArray[int64]":
        """The ids of all, ascending: (n,) int64."""
        import numpy

        return numpy.array([identifier for identifier, _ in self.keys], numpy.int64)

    def blocks(self) -> "Iterator[tuple[NDArray[int64], NDArray[float32]]]":
        """See the contract."""
        return self.read(self.keys)

    def read(
        self, wanted: Sequence[tuple[int, bytes]]
    ) -> "Iterator[tuple[NDArray[int64], NDArray[float32]]]":
        """Ids and vectors, in blocks; what is lost or damaged is noted and left out."""
        import numpy

        for block in in_batches(wanted, _BLOCK):
            vectors, found = self.embeddings.get(self.space.fingerprint, [key for _, key in block])
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

        keys = self.catalog.keys_of_vectors(ids.tolist())
        wanted = [keys.get(identifier, b"") for identifier in ids.tolist()]
        try:
            return self.embeddings.get(self.space.fingerprint, wanted)
        except EmbeddingsDamaged:
            # The index still answers, nearly as well; saying what is damaged is verification's
            # part.
            return numpy.empty((len(ids), 0), numpy.float32), numpy.zeros(len(ids), numpy.bool_)

    def laid_over(self, index: "VectorIndex") -> "VectorIndex":
        """An index with the catalog's difference to it laid over it."""
        removed, added = self.catalog.index_delta()
        if not removed and not added:
            return index
        from filestore.index.faiss_index import FaissIndex

        laid = OverlaidIndex(index, FaissIndex(self.dimension))
        laid.hide(removed)
        self.fill(laid, added)
        return laid

    def fill(self, index: "HeldIndex", wanted: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors to an index by id and embedding key."""
        for ids, vectors in self.read(wanted):
            index.add(ids, vectors)


class VectorHome(ABC):
    """Where the vectors of a store live and are searched; nothing is opened before it is used."""

    elsewhere: str = ""
    """The kind of backend; "" for the sidecar's own file."""
    takes_conditions: bool = False
    """Whether it can be given the conditions of a filter; see `takes`."""

    @property
    def reaches_out(self) -> bool:
        """Whether it is anywhere but in the sidecar."""
        return False

    @abstractmethod
    def address(self) -> str:
        """Where it is, for people, without a password.

        Raises:
            BackendError: The settings cannot be used, or a package is not installed.
        """

    @property
    def where(self) -> str:
        """The address; of settings that cannot be used, what they name."""
        return self.address()

    @property
    @abstractmethod
    def row_name(self) -> str:
        """What one of its rows is called."""

    @abstractmethod
    def part(self, catalog: Catalog) -> StorePath:
        """Its path in findings."""

    @abstractmethod
    def lag(self, catalog: Catalog, *, changed: int = 0) -> str:
        """What it lacks, in words; "" where nothing, or what each search makes up for in passing.

        Args:
            catalog: Knows the difference; nothing else is asked.
            changed: How many vectors came or went in one change of several commits.
        """

    @abstractmethod
    def findings(self, catalog: Catalog, *, hashes: bool) -> list[Finding]:
        """What is wrong with it, by the catalog and without parsing anything."""

    def doubt(self, catalog: "CatalogWriter", found: Iterable[Finding]) -> None:
        """Have all of it compared by the next writer, if findings of a verification say so."""
        return

    @abstractmethod
    def write(self, catalog: "CatalogWriter", vectors: StoredVectors, *, wanted: bool) -> bool:
        """Write what belongs into the running transaction, if it is due or wanted.

        Returns:
            Whether an embedding that should be there was not, or was damaged.

        Raises:
            WriteFailedError: The disk refused; what was there stays.
        """

    def catch_up(
        self, catalog: "CatalogWriter", vectors: StoredVectors, *, whole: bool
    ) -> FilestoreError | None:
        """Send what it lacks after the commit; why that did not work, which is no reason to fail.

        Args:
            catalog: Between two transactions.
            vectors: What is sent.
            whole: Compare all that it holds; else what the catalog says differs.
        """
        return None

    @abstractmethod
    def load(self, vectors: StoredVectors) -> "VectorIndex":
        """What is searched, of the catalog's generation; to be closed.

        Raises:
            BackendError: It is away, or has not what it should.
        """

    def takes(self, where: "Where", catalog: Catalog) -> bool:
        """Whether it was given all that a filter asks for."""
        return False

    @abstractmethod
    def inspect(self, vectors: StoredVectors) -> "Inspected":
        """Open what is searched to verify it; nothing that is damaged is parsed."""

    @abstractmethod
    def shown(self, catalog: Catalog) -> "ShownHome":
        """Where the vectors are and in which state; a backend is asked."""

    def trusted(self) -> Self:
        """The same, for a person who names it, which allows the store to reach it."""
        return self

    @abstractmethod
    def compare(self, catalog: Catalog, space: Space, *, takes_over: bool) -> "Sent":
        """Count what it lacks; changes nothing of the store.

        Raises:
            BackendError: It cannot be used, or belongs to another store.
        """

    def fill(
        self,
        catalog: "CatalogWriter",
        vectors: StoredVectors,
        name: Callable[[], None],
        *,
        takes_over: bool = False,
    ) -> "Sent | None":
        """Send all, then have the settings name it; None where the next commit is to write it.

        Raises:
            BackendError: It is away, refuses, or belongs to another store.
        """
        name()
        return None

    def clear(self, catalog: Catalog) -> bool:
        """Delete what this store has there; returns whether there was anything.

        Raises:
            BackendError: It is away, or refuses.
        """
        return False

    def is_emptied(self) -> bool:
        """Whether it holds nothing of a store now, as after another address of it was cleared."""
        return False


def is_doubted(found: Iterable[Finding]) -> bool:
    """Whether findings of a verification say that a backend has not what was sent to it."""
    return any(
        PART in (one.path, one.other) and (one.meaning.discards == "index" or one.meaning.unopened)
        for one in found
    )

"""The contract of a vector index: ids of our choosing, vectors of length 1, inner product.

A store's size chooses one, or a name does.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from filestore.config.settings import BACKENDS
from filestore.core.errors import FilestoreError
from filestore.core.schema import JsonObject

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

    from filestore.index.backend import BackendChoice, IndexBackend
    from filestore.index.building import ApproximateIndex
    from filestore.index.faiss_index import FaissIndex


VectorsOf: TypeAlias = (
    "Callable[[NDArray[int64]], tuple[NDArray[float32], NDArray[bool_]]]"  # what ruff cannot quote
)
"""The embeddings as they were stored, by id: (n, dimension) float32, and which of them are to be
had; the other rows mean nothing."""


Where: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Conditions that all hold in one and the same file of an item: a key, and the values of which
that file has at least one."""


class IndexDamagedError(FilestoreError):
    """A FAISS file does not hold what it should."""


class BackendError(FilestoreError):
    """A backend cannot do what it is asked; files and embeddings are as they were."""


class Description(JsonObject, Struct, frozen=True, kw_only=True):
    """What kind of index a store has, for people; None where it means nothing for the kind."""

    kind: str
    """`exact` or `approximate`."""
    vectors: int
    """In the file; later ones are replayed."""
    lists: int | None = None
    """Of an exact index, as all below: what was measured when lists were tried and won too little.
    """
    probes: int | None = None
    """Lists that a search for ten neighbours looks into."""
    recall: float | None = None
    """Share of the ten nearest that are found, measured on queries made from the data."""
    trained_on: int | None = None
    """How many vectors there were when the lists were made."""
    work: float | None = None
    """What a search with the lists costs, as a share of comparing all vectors."""

    def serialize(self) -> str:
        """As JSON, with null for None."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def parse(cls, text: str) -> "Description":
        """The inverse of `serialize`."""
        return cls(**orjson.loads(text))


class VectorSource(ABC):
    """Where the vectors of a store are kept."""

    dimension: int

    @abstractmethod
    def __len__(self) -> int:
        """How many there should be."""

    @abstractmethod
    def sample(self, count: int) -> "NDArray[float32]":
        """About that many vectors, evenly chosen, always the same: (n, dimension) float32."""

    @abstractmethod
    def blocks(self) -> "Iterator[tuple[NDArray[int64], NDArray[float32]]]":
        """Every vector that is to be had, in blocks: (n,) int64 and (n, dimension) float32."""

    @abstractmethod
    def vectors_of(self, ids: "NDArray[int64]") -> "tuple[NDArray[float32], NDArray[bool_]]":
        """See `VectorsOf`."""


class VectorIndex(ABC):
    """Vectors by id that can be searched and compared, wherever they are."""

    has_lists: bool = False
    """Whether a vector can lie where no search for it looks."""
    lacking: str = ""
    """What the last answer is without, for people; "" where it is whole. Only settings that allow
    a part of an answer make a backend give one."""

    @property
    def takes_conditions(self) -> bool:
        """Whether `search` takes `where`, and so needs no list of what is allowed."""
        return False

    @abstractmethod
    def __len__(self) -> int:
        """How many vectors are held."""

    @abstractmethod
    def ids(self) -> "NDArray[int64]":
        """Every id held, ascending: (n,) int64. A damaged index may give one twice."""

    @abstractmethod
    def holds(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """Which ids are held with just these vectors: (n,) bool.

        Compared are the bits that the index keeps of a vector: all, or what it shortens it to.
        """

    def holds_codes(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """As `holds`, without looking whether a search would find them."""
        return self.holds(ids, vectors)

    @abstractmethod
    def search(
        self,
        vector: "NDArray[float32]",
        count: int,
        *,
        allowed: "NDArray[int64] | None" = None,
        where: Where = (),
    ) -> list[tuple[int, float]]:
        """The nearest ids and their inner products, best first, ties by id.

        An approximate index may miss some of the nearest, but gives `count` wherever it holds as
        many that are allowed.

        Args:
            vector: (dimension,) float32 of length 1.
            count: At most this many.
            allowed: Only these ids; None allows all.
            where: What must hold of a file with the text; only where `takes_conditions`.
        """

    def close(self) -> None:
        """Let go of what it has open; one in memory has nothing."""
        return


class HeldIndex(VectorIndex):
    """One in this process, which takes vectors. Adding an id that is there replaces its vector."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    @abstractmethod
    def add(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        """Hold vectors: (n,) int64 distinct ids and (n, dimension) float32 rows of length 1.

        Raises:
            ValueError: The shapes do not fit.
        """

    @abstractmethod
    def remove(self, ids: "NDArray[int64]") -> int:
        """Let go of ids; unknown ids are passed over. Returns how many were held."""

    def _check(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        if vectors.ndim != 2 or vectors.shape != (len(ids), self.dimension):
            raise ValueError(
                f"expected vectors of shape ({len(ids)}, {self.dimension}), found {vectors.shape}"
            )


def best_first(ids: "NDArray[int64]", scores: "NDArray[float32]") -> list[tuple[int, float]]:
    """Pairs ordered by score descending, then id ascending."""
    pairs = zip(ids.tolist(), scores.tolist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


class OverlaidIndex(HeldIndex):
    """A lower index that is only read, ids of it that count no more, and an upper index.

    So a large file is searched where it lies, and opening it costs the difference only.
    """

    def __init__(self, lower: VectorIndex, upper: HeldIndex) -> None:
        """Lay an index over another.

        Args:
            lower: Left as it is.
            upper: Empty; takes what is added.
        """
        super().__init__(upper.dimension)
        self.has_lists = lower.has_lists
        self._lower = lower
        self._upper = upper
        self._hidden: set[int] = set()
        """Ids that no longer count below; some may never have been there."""

    def __len__(self) -> int:
        return len(self.ids())

    def ids(self) -> "NDArray[int64]":
        """See the contract."""
        import numpy

        below = self._lower.ids()
        shown = below[~self._is_hidden(below)]
        return numpy.sort(numpy.concatenate([shown, self._upper.ids()]))

    def _is_hidden(self, ids: "NDArray[int64]") -> "NDArray[bool_]":
        import numpy

        hidden = numpy.fromiter(self._hidden, dtype=numpy.int64, count=len(self._hidden))
        return numpy.isin(ids, hidden)

    def holds(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """See the contract."""
        below = self._lower.holds(ids, vectors) & ~self._is_hidden(ids)
        return below | self._upper.holds(ids, vectors)

    def holds_codes(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """See the contract."""
        below = self._lower.holds_codes(ids, vectors) & ~self._is_hidden(ids)
        return below | self._upper.holds_codes(ids, vectors)

    def add(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        """See the contract."""
        self._upper.add(ids, vectors)
        self._hidden.update(ids.tolist())

    def remove(self, ids: "NDArray[int64]") -> int:
        """See the contract."""
        import numpy

        shown = ids[~self._is_hidden(ids)]
        below = int(numpy.isin(shown, self._lower.ids()).sum())
        self.hide(ids.tolist())
        return below + self._upper.remove(ids)

    def close(self) -> None:
        """See the contract."""
        self._lower.close()

    def hide(self, ids: Iterable[int]) -> None:
        """Let go of ids below, without counting, which would look at all of them."""
        self._hidden.update(ids)

    def search(
        self,
        vector: "NDArray[float32]",
        count: int,
        *,
        allowed: "NDArray[int64] | None" = None,
        where: Where = (),
    ) -> list[tuple[int, float]]:
        """See the contract."""
        if allowed is not None:
            below = self._lower.search(vector, count, allowed=allowed[~self._is_hidden(allowed)])
        else:
            # The nearest below that still count.
            wanted = count
            while True:
                found = self._lower.search(vector, wanted)
                below = [hit for hit in found if hit[0] not in self._hidden]
                if len(below) >= count or len(found) < wanted:
                    break
                wanted = wanted * 2 + len(found) - len(below)
        self.lacking = self._lower.lacking
        above = self._upper.search(vector, count, allowed=allowed)
        return sorted([*below, *above], key=lambda hit: (-hit[1], hit[0]))[: max(0, count)]


class ExactIndex(HeldIndex):
    """A dictionary of vectors, compared one and all."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self._rows: dict[int, NDArray[float32]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def ids(self) -> "NDArray[int64]":
        """See the contract."""
        import numpy

        return numpy.array(sorted(self._rows), dtype=numpy.int64)

    def holds(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """See the contract."""
        import numpy

        self._check(ids, vectors)
        absent = numpy.full(self.dimension, numpy.nan, dtype=numpy.float32)
        rows = [self._rows.get(identifier, absent) for identifier in ids.tolist()]
        same: NDArray[bool_] = (self._matrix(rows) == vectors).all(axis=1)
        return same

    def add(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        """See the contract."""
        self._check(ids, vectors)
        self._rows |= dict(zip(ids.tolist(), vectors.copy(), strict=True))

    def remove(self, ids: "NDArray[int64]") -> int:
        """See the contract."""
        return sum(self._rows.pop(identifier, None) is not None for identifier in ids.tolist())

    def vectors_of(self, ids: "NDArray[int64]") -> "NDArray[float32]":
        """The vectors of ids that are held: (n, dimension) float32.

        Raises:
            KeyError: One of them is not held.
        """
        return self._matrix([self._rows[identifier] for identifier in ids.tolist()])

    def search(
        self,
        vector: "NDArray[float32]",
        count: int,
        *,
        allowed: "NDArray[int64] | None" = None,
        where: Where = (),
    ) -> list[tuple[int, float]]:
        """See the contract."""
        import numpy

        ids = self.ids()
        if allowed is not None:
            ids = ids[numpy.isin(ids, allowed)]
        # Row by row, so that equal vectors score equally wherever they are.
        return best_first(ids, numpy.einsum("ij,j->i", self.vectors_of(ids), vector))[:count]

    def _matrix(self, rows: "list[NDArray[float32]]") -> "NDArray[float32]":
        import numpy

        return numpy.array(rows, dtype=numpy.float32).reshape(len(rows), self.dimension)


def open_backend(choice: "BackendChoice") -> "IndexBackend":
    """The backend that settings name; nothing is connected before `load`.

    Raises:
        BackendSettingsWrong: No such backend, or a key is unknown or of another type.
        BackendKeysMissing: Keys are missing; all of them are named.
        BackendMissing: Its package is not installed.
    """
    if choice.kind not in BACKENDS:
        from filestore.core.spelling import did_you_mean
        from filestore.index.backend import BackendSettingsWrong

        raise BackendSettingsWrong(
            f"there is no backend {choice.kind!r}{did_you_mean(choice.kind, BACKENDS)}"
            f": the backends are {', '.join(BACKENDS)}",
        )
    module, _, name = BACKENDS[choice.kind].member.rpartition(".")
    opened: IndexBackend = getattr(import_module(module), name)(choice)
    return opened


def read_index(
    path: str, dimension: int, vectors_of: "VectorsOf", *, mapped: bool = False
) -> "FaissIndex | ApproximateIndex":
    """The index in a file that was written by one, and whose hash was checked.

    Args:
        path: Where it is.
        dimension: Length of the vectors.
        vectors_of: Gives the embeddings by id.
        mapped: Leave the vectors in the file; the index must not be changed.

    Raises:
        IndexDamagedError: It is no such file.
    """
    import faiss

    from filestore.index import faiss_index
    from filestore.index.building import ApproximateIndex
    from filestore.index.faiss_index import FaissIndex

    loaded = faiss_index.read(path, mapped=mapped)
    if loaded.d == dimension:
        if isinstance(loaded, faiss.IndexIDMap2):
            return FaissIndex(dimension, loaded=loaded)
        if isinstance(loaded, faiss.IndexIVFScalarQuantizer) and not loaded.by_residual:
            return ApproximateIndex(loaded, vectors_of)
    found = f"{type(loaded).__name__} of dimension {loaded.d}"
    raise faiss_index.damaged(path, f"expected an index of dimension {dimension}, found {found}")

"""The contract of a vector index: ids of our choosing, vectors of length 1, inner product."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from filestore.index.backend import Where

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

VectorsOf: TypeAlias = (
    "Callable[[NDArray[int64]], tuple[NDArray[float32], NDArray[bool_]]]"  # what ruff cannot quote
)
"""The embeddings as they were stored, by id: (n, dimension) float32, and which of them are to be
had; the other rows mean nothing."""


class VectorIndex(ABC):
    """Vectors by id. Adding an id that is there replaces its vector."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

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

    @property
    def has_lists(self) -> bool:
        """Whether a vector can lie where no search for it looks."""
        return False

    def holds_codes(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """As `holds`, without looking whether a search would find them."""
        return self.holds(ids, vectors)

    @abstractmethod
    def add(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        """Hold vectors: (n,) int64 distinct ids and (n, dimension) float32 rows of length 1.

        Raises:
            ValueError: The shapes do not fit.
        """

    @abstractmethod
    def remove(self, ids: "NDArray[int64]") -> int:
        """Let go of ids; unknown ids are passed over. Returns how many were held."""

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
            count: At most so many.
            allowed: Only these ids; None allows all.
            where: What must hold of a file with the text; only where `takes_conditions`.
        """

    @property
    def takes_conditions(self) -> bool:
        """Whether `search` takes `where`, and so needs no list of what is allowed."""
        return False

    @property
    def lacking(self) -> str:
        """What the last answer is without, for people; "" where it is whole."""
        return ""

    def close(self) -> None:
        """Let go of what it has open; one in memory has nothing."""
        return

    def _check(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        if vectors.ndim != 2 or vectors.shape != (len(ids), self.dimension):
            raise ValueError(
                f"expected vectors of shape ({len(ids)}, {self.dimension}), found {vectors.shape}"
            )


def best_first(ids: "NDArray[int64]", scores: "NDArray[float32]") -> list[tuple[int, float]]:
    """Pairs ordered by score descending, then id ascending."""
    pairs = zip(ids.tolist(), scores.tolist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))

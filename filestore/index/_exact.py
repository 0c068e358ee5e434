"""Exact search in plain numpy: the reference that judges the other indexes."""

from typing import TYPE_CHECKING

from filestore.index.base import VectorIndex, Where, best_first

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray


class ExactIndex(VectorIndex):
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
        # Row by row, so that equal vectors score equally wherever they stand.
        return best_first(ids, numpy.einsum("ij,j->i", self.vectors_of(ids), vector))[:count]

    def _matrix(self, rows: "list[NDArray[float32]]") -> "NDArray[float32]":
        import numpy

        return numpy.array(rows, dtype=numpy.float32).reshape(len(rows), self.dimension)

"""An index file that stays as it is, with what came since laid over it.

So a large file is searched where it lies, and opening it costs the difference only.
"""

from typing import TYPE_CHECKING

from filestore.index.backend import Where
from filestore.index.base import VectorIndex

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray


class OverlaidIndex(VectorIndex):
    """A lower index that is only read, ids of it that count no more, and an upper index."""

    def __init__(self, lower: VectorIndex, upper: VectorIndex) -> None:
        """Lay an index over another.

        Args:
            lower: Left as it is.
            upper: Empty; takes what is added.
        """
        super().__init__(lower.dimension)
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

    @property
    def has_lists(self) -> bool:
        """See the contract."""
        return self._lower.has_lists

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
        self.hide(ids)
        return below + self._upper.remove(ids)

    @property
    def lacking(self) -> str:
        """See the contract; what is laid over is whole."""
        return self._lower.lacking

    def close(self) -> None:
        """See the contract."""
        self._lower.close()

    def hide(self, ids: "NDArray[int64]") -> None:
        """Let go of ids below, without counting, which would look at all of them."""
        self._hidden.update(ids.tolist())

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
        above = self._upper.search(vector, count, allowed=allowed)
        return sorted([*below, *above], key=lambda hit: (-hit[1], hit[0]))[: max(0, count)]

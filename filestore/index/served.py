"""A backend as the index that searches and verifications ask; what came since is laid over it."""

from functools import cached_property
from typing import TYPE_CHECKING

from filestore.index.backend import DocState, IndexBackend, digest
from filestore.index.base import VectorIndex, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy import bool_, float32, int64
    from numpy.typing import NDArray


class ServedIndex(VectorIndex):
    """What a loaded backend holds; only read: changes are laid over it."""

    def __init__(self, backend: IndexBackend, dimension: int) -> None:
        super().__init__(dimension)
        self._backend = backend

    @property
    def takes_conditions(self) -> bool:
        """See the contract."""
        return self._backend.capabilities.filters

    def __len__(self) -> int:
        return len(self.ids())

    @cached_property
    def _digests(self) -> "Mapping[int, bytes]":
        return self._backend.digests()

    def docs(self) -> "Mapping[str, DocState]":
        """All documents of the backend with their content hashes, asked now.

        Raises:
            BackendError: It does not answer.
        """
        return self._backend.state.docs

    def ids(self) -> "NDArray[int64]":
        """See the contract; what is given was there when it was asked first."""
        import numpy

        return numpy.array(sorted(self._digests), dtype=numpy.int64)

    def holds(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """See the contract; compared are digests, so that vectors stay where they are."""
        import numpy

        self._check(ids, vectors)
        pairs = zip(ids.tolist(), digest(vectors), strict=True)
        same = [self._digests.get(identifier) == expected for identifier, expected in pairs]
        return numpy.array(same, dtype=numpy.bool_)

    def add(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        """Not here: a backend is written by `filestore.sidecar.vector_rows`."""
        raise NotImplementedError

    def remove(self, ids: "NDArray[int64]") -> int:
        """Not here, as `add`."""
        raise NotImplementedError

    def search(
        self,
        vector: "NDArray[float32]",
        count: int,
        *,
        allowed: "NDArray[int64] | None" = None,
        where: Where = (),
    ) -> list[tuple[int, float]]:
        """See the contract.

        Raises:
            BackendError: It does not answer, or somebody else wrote to it.
        """
        if count < 1 or (allowed is not None and not len(allowed)):
            return []
        hits = self._backend.query(vector, top_k=count, where=where, allowed=allowed)
        return [(hit.id, hit.score) for hit in hits]

    @property
    def lacking(self) -> str:
        """See the contract."""
        return self._backend.lacking

    def close(self) -> None:
        """Let go of its connection."""
        self._backend.close()

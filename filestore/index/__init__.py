"""Vector indexes behind one contract; the store's settings choose one by name."""

from filestore.index.base import VectorIndex


def new_index(backend: str, dimension: int) -> VectorIndex:
    """An empty index.

    Args:
        backend: ``faiss``, or ``exact`` for the plain numpy reference.
        dimension: Length of the vectors.

    Raises:
        ValueError: No such backend.
    """
    if backend == "faiss":
        from filestore.index._faiss import FaissIndex

        return FaissIndex(dimension)
    if backend == "exact":
        from filestore.index._exact import ExactIndex

        return ExactIndex(dimension)
    raise ValueError(f"no index backend {backend!r}")

"""Vector indexes behind one contract; a store's size chooses one, or a name does."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from filestore.index.base import IndexDamagedError as IndexDamagedError
from filestore.index.base import OverlaidIndex
from filestore.index.base import VectorIndex as VectorIndex
from filestore.index.base import VectorsOf as VectorsOf

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    from filestore.index._approximate import ApproximateIndex
    from filestore.index._faiss import FaissIndex
    from filestore.index.backend import BackendChoice, IndexBackend


BACKENDS: Final = {
    "faiss": "filestore.index._file_rows.FaissRows",
    "local": "filestore.index._file_rows.LocalRows",
    "qdrant": "filestore.index._qdrant.rows.QdrantRows",
    "pgvector": "filestore.index._pgvector.rows.PgvectorRows",
}
"""Where the vectors of a store may live, and the class that keeps them there. The sidecar's own
FAISS file, which `faiss` means without a path, is no member: the catalog names and seals it."""


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
            f"there is no backend {choice.kind!r}{did_you_mean(choice.kind, BACKENDS)}",
            remedy=f"the backends are {', '.join(BACKENDS)}",
        )
    module, _, name = BACKENDS[choice.kind].rpartition(".")
    opened: IndexBackend = getattr(import_module(module), name)(choice)
    return opened


def new_index(backend: str, dimension: int) -> VectorIndex:
    """An empty exact index.

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
        from filestore.index.base import ExactIndex

        return ExactIndex(dimension)
    raise ValueError(f"no index backend {backend!r}")


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

    from filestore.index import _faiss
    from filestore.index._approximate import ApproximateIndex
    from filestore.index._faiss import FaissIndex

    loaded = _faiss.read(path, mapped=mapped)
    if loaded.d == dimension:
        if isinstance(loaded, faiss.IndexIDMap2):
            return FaissIndex(dimension, loaded=loaded)
        if isinstance(loaded, faiss.IndexIVFScalarQuantizer) and not loaded.by_residual:
            return ApproximateIndex(loaded, vectors_of)
    found = f"{type(loaded).__name__} of dimension {loaded.d}"
    raise _faiss.damaged(path, f"expected an index of dimension {dimension}, found {found}")


def overlaid(lower: VectorIndex, removed: "NDArray[int64]") -> VectorIndex:
    """An index that leaves another as it is and takes changes itself.

    Args:
        lower: Only read.
        removed: Ids of it that count no more.
    """
    from filestore.index._faiss import FaissIndex

    index = OverlaidIndex(lower, FaissIndex(lower.dimension))
    index.hide(removed)
    return index

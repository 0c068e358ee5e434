"""Vector indexes behind one contract; a store's size chooses one, or a name does."""

from importlib import import_module
from typing import TYPE_CHECKING

from filestore.config.settings import BACKENDS
from filestore.index.base import IndexDamagedError as IndexDamagedError
from filestore.index.base import VectorIndex as VectorIndex
from filestore.index.base import VectorsOf as VectorsOf

if TYPE_CHECKING:
    from filestore.index._approximate import ApproximateIndex
    from filestore.index._faiss import FaissIndex
    from filestore.index.backend import BackendChoice, IndexBackend


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

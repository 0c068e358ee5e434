"""The FAISS file of a store: written when due, checked by hash, brought up to date in memory.

It is an accelerator: whatever is wrong with it, its vectors come from the embeddings again.
"""

import contextlib
import os
from typing import TYPE_CHECKING, Final

from filestore import fileio
from filestore.catalog import Catalog, IndexFile
from filestore.findings import Finding
from filestore.hashing import file_hash
from filestore.places import Places

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex

PREFIX: Final = "vectors-"
SUFFIX: Final = ".faiss"
REPLAYED_ALWAYS: Final = 100
REPLAYED_SHARE: Final = 0.05
"""A difference up to the larger of the two is replayed at opening, beyond it a file is due."""
_BLOCK: Final = 8192


def is_behind(catalog: Catalog) -> bool:
    """Whether more differs than is replayed in passing."""
    behind = catalog.delta_size()
    if behind <= REPLAYED_ALWAYS:
        return False
    return behind > REPLAYED_SHARE * catalog.count("vectors")


def write(
    places: Places, catalog: "CatalogWriter", embeddings: "EmbeddingCache", embedder: "Embedder"
) -> bool:
    """Write a FAISS file of every embedded vector and name it in the running transaction.

    Returns:
        Whether an embedding that should be there was not, or was damaged.

    Raises:
        WriteFailedError: The disk refused; the old file stays.
    """
    from filestore.index._faiss import FaissIndex

    index = FaissIndex(embedder.dimension)
    lacking = _fill(index, catalog.vector_keys(), embeddings, embedder)
    # A row that was lost or damaged is said to be lacking, so that the next sync embeds it.
    catalog.set_embedded(lacking, embedded=False)
    name = f"{PREFIX}{catalog.next_generation}{SUFFIX}"
    path = os.path.join(places.sidecar, name)
    temporary = os.path.join(places.sidecar, f"{fileio.TEMPORARY_PREFIX}{name}")
    try:
        index.write(temporary)
        named = IndexFile(
            name, os.path.getsize(temporary), file_hash(temporary).hex(), catalog.next_generation
        )
        os.rename(temporary, path)
        fileio.sync_path(places.sidecar)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise fileio.write_failed(path, error) from error
    catalog.name_index(named)
    return bool(lacking)


def _fill(
    index: "VectorIndex",
    wanted: list[tuple[int, bytes]],
    embeddings: "EmbeddingCache",
    embedder: "Embedder",
) -> list[int]:
    """Add vectors by id and embedding key; returns the ids whose embedding is not to be had."""
    import numpy

    lacking: list[int] = []
    for start in range(0, len(wanted), _BLOCK):
        block = wanted[start : start + _BLOCK]
        vectors, found = embeddings.get(embedder.fingerprint, [key for _, key in block])
        ids = numpy.array([identifier for identifier, _ in block], dtype=numpy.int64)
        lacking += ids[~found].tolist()
        if found.any():
            index.add(ids[found], vectors[found])
    return lacking


def load(
    places: Places, catalog: Catalog, embeddings: "EmbeddingCache", embedder: "Embedder"
) -> "VectorIndex":
    """The vectors of the catalog's generation, from the file and what came since.

    A file that is missing or damaged is not parsed: all vectors come from the embeddings.
    """
    import numpy

    from filestore.index import new_index
    from filestore.index._faiss import FaissIndex, IndexDamagedError

    named = catalog.index_file()
    if named is not None and not problem(places, named, hashes=True):
        try:
            path = os.path.join(places.sidecar, named.name)
            index: VectorIndex = FaissIndex.read(path, embedder.dimension)
        except IndexDamagedError:
            pass
        else:
            removed, added = catalog.index_delta()
            index.remove(numpy.array(removed, dtype=numpy.int64))
            _fill(index, added, embeddings, embedder)
            return index
    index = new_index("faiss", embedder.dimension)
    _fill(index, catalog.vector_keys(), embeddings, embedder)
    return index


def problem(places: Places, named: IndexFile, *, hashes: bool) -> str:
    """The code of what is wrong with the named file, or ""."""
    path = os.path.join(places.sidecar, named.name)
    try:
        if os.path.getsize(path) != named.size_bytes:
            return "index-damaged"
        if hashes and file_hash(path).hex() != named.hash:
            return "index-damaged"
    except FileNotFoundError:
        return "index-missing"
    except OSError:
        return "index-damaged"
    return ""


def findings(places: Places, catalog: Catalog, *, hashes: bool) -> list[Finding]:
    """What is wrong with the FAISS file, without parsing it."""
    named = catalog.index_file()
    if named is None:
        if catalog.count("vectors") == 0:
            return []
        return [Finding(code="index-missing", path=".sidecar", detail="no FAISS file was written")]
    path = f".sidecar/{named.name}"
    if code := problem(places, named, hashes=hashes):
        expected = f"expected {named.size_bytes} bytes with hash {named.hash}"
        return [Finding(code=code, path=path, detail=expected)]
    if is_behind(catalog):
        detail = f"{catalog.delta_size()} vectors differ from the catalog"
        return [Finding(code="index-behind", path=path, detail=detail)]
    return []


def collect(places: Places, catalog: Catalog, previous: IndexFile | None) -> None:
    """Remove FAISS files that no reader can need: all but the named and the previous one."""
    named = catalog.index_file()
    kept = {file.name for file in (named, previous) if file is not None}
    for name in os.listdir(places.sidecar):
        if name.startswith(PREFIX) and name.endswith(SUFFIX) and name not in kept:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(places.sidecar, name))

"""Opening a store's parts for writing: the damaged is put aside, what was sound is kept."""

import contextlib
import os
from collections.abc import Iterable

from filestore import fileio, vector_file
from filestore.catalog import CatalogDamagedError, CatalogWriter
from filestore.embed.base import Embedder
from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged
from filestore.findings import Finding
from filestore.places import Places

MAX_QUARANTINED = 4
CATALOG_CODES = frozenset({"catalog-damaged", "map-mismatch"})
VECTOR_CODES = frozenset({"vector-orphan", "vector-invalid", "vector-mismatch"})


def make_sidecar(places: Places) -> None:
    """Make the sidecar folder, for its owner only.

    Raises:
        WriteFailedError: The disk refused.
    """
    try:
        os.makedirs(places.sidecar, mode=0o700, exist_ok=True)
    except OSError as error:
        raise fileio.write_failed(places.sidecar, error) from error


def open_parts(
    places: Places, embedder: Embedder | None
) -> tuple[CatalogWriter, EmbeddingCache, tuple[Finding, ...]]:
    """Open catalog and embeddings, making them where they are missing. The lock is held.

    Returns:
        Both, and the findings that were mended on the way.
    """
    mended: list[Finding] = []
    with fileio.disk_errors(places.sidecar):
        embeddings = _open_embeddings(places, embedder, mended)
        catalog = _open_catalog(places, mended)
        _collect_leftovers(places)
    return catalog, embeddings, tuple(mended)


def _open_catalog(places: Places, mended: list[Finding]) -> CatalogWriter:
    path = ".sidecar/catalog.sqlite"
    missing = not os.path.exists(places.catalog)
    try:
        catalog = CatalogWriter.open(places.catalog, create=True)
    except CatalogDamagedError as error:
        quarantine(places, places.catalog)
        mended.append(Finding(code="catalog-damaged", path=path, detail=error.message))
        return CatalogWriter.open(places.catalog, create=True)
    if missing and _has_truth(places):
        mended.append(Finding(code="catalog-missing", path=path, detail="there was no catalog"))
    return catalog


def _has_truth(places: Places) -> bool:
    with contextlib.suppress(OSError), os.scandir(places.chunked) as entries:
        return any(True for _ in entries)
    return False


def _open_embeddings(
    places: Places, embedder: Embedder | None, mended: list[Finding]
) -> EmbeddingCache:
    try:
        return EmbeddingCache.open(places.embeddings)
    except EmbeddingsDamaged as error:
        embeddings, finding = _salvage(places, embedder, error.message)
        mended.append(finding)
        return embeddings


def _salvage(
    places: Places, embedder: Embedder | None, reason: str
) -> tuple[EmbeddingCache, Finding]:
    """Put damaged embeddings aside and keep every row whose checksum holds."""
    put_aside = quarantine(places, places.embeddings)
    embeddings = EmbeddingCache.open(places.embeddings)
    known = [embedder.fingerprint] if embedder is not None else []
    kept = embeddings.salvage(put_aside, fingerprints=known)
    detail = f"{reason}; {kept} rows kept"
    path = ".sidecar/embeddings.sqlite"
    return embeddings, Finding(code="embeddings-damaged", path=path, detail=detail)


def mend(places: Places, embedder: Embedder | None, found: Iterable[Finding]) -> list[Finding]:
    """Put aside the parts that findings of a full verification condemn. The lock is held.

    Returns:
        The findings that the next opening and sync then mend for good.
    """
    mended: dict[str, Finding] = {finding.code: finding for finding in found}
    if mended.keys() & CATALOG_CODES:
        quarantine(places, places.catalog)
    if "embeddings-damaged" in mended:
        reason = mended["embeddings-damaged"].detail
        embeddings, mended["embeddings-damaged"] = _salvage(places, embedder, reason)
        embeddings.close()
    if mended.keys() & VECTOR_CODES:
        for name in os.listdir(places.sidecar):
            if name.startswith(vector_file.PREFIX):
                os.unlink(os.path.join(places.sidecar, name))
    wanted = CATALOG_CODES | VECTOR_CODES | {"embeddings-damaged"}
    return [finding for code, finding in mended.items() if code in wanted]


def quarantine(places: Places, path: str) -> str:
    """Put a damaged SQLite file and its log aside, the oldest making room; returns its path."""
    os.makedirs(places.quarantine, mode=0o700, exist_ok=True)
    held = sorted(os.listdir(places.quarantine), key=lambda name: int(name.partition("-")[0]))
    numbers = sorted({int(name.partition("-")[0]) for name in held})
    for number in numbers[: len(numbers) - MAX_QUARANTINED + 1]:
        for name in held:
            if name.startswith(f"{number}-"):
                os.unlink(os.path.join(places.quarantine, name))
    number = max(numbers, default=0) + 1
    aside = os.path.join(places.quarantine, f"{number}-{os.path.basename(path)}")
    for suffix in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{path}-shm")
    return aside


def _collect_leftovers(places: Places) -> None:
    """Remove the temporary files of a writer that died; the lock says that none is alive."""
    for name in os.listdir(places.sidecar):
        if name.startswith(fileio.TEMPORARY_PREFIX):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(places.sidecar, name))

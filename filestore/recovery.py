"""Opening a store's parts for writing: the damaged is put aside, what was sound is kept."""

import contextlib
import os
from collections.abc import Iterable

from filestore import fileio, vector_file
from filestore.catalog import CatalogDamagedError, CatalogWriter
from filestore.embed.base import Embedder
from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged
from filestore.findings import Finding
from filestore.fulltext import STAMP_NAME
from filestore.places import Places
from filestore.salvage import carry_over
from filestore.without_catalog import catalog_finding

MAX_QUARANTINED = 4
CATALOG_CODES = frozenset({"catalog-damaged", "map-mismatch"})
VECTOR_CODES = frozenset(
    {"index-damaged", "vector-orphan", "vector-missing", "vector-invalid", "vector-mismatch"}
)
FULLTEXT_CODES = frozenset({"fulltext-damaged", "fulltext-mismatch"})


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
        mended.append(catalog_finding(error))
        catalog = CatalogWriter.open(places.catalog, create=True)
    else:
        if missing and _has_truth(places):
            mended.append(Finding(code="catalog-missing", path=path, detail="there was no catalog"))
    aside = _last_aside(places, places.catalog)
    if catalog.generation == 0 and aside is not None:
        # Asked of the generation, not of what just happened: a kill in between loses nothing.
        carry_over(aside, catalog, places)
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


def mend(
    places: Places,
    embedder: Embedder | None,
    found: Iterable[Finding],
    unsound: Iterable[bytes] = (),
) -> list[Finding]:
    """Put aside the parts that findings of a full verification condemn. The lock is held.

    Args:
        places: Where the store lies.
        embedder: Its model; without one no vector is given up, since none could be made again.
        found: What was found.
        unsound: Embedding keys whose vector is stored whole, and wrong.

    Returns:
        The findings that the next opening and sync then mend for good.
    """
    mended = [finding for finding in found if _is_condemned(finding, embedder)]
    codes = {finding.code for finding in mended}
    if codes & CATALOG_CODES:
        quarantine(places, places.catalog)
    if "embeddings-damaged" in codes and os.path.exists(places.embeddings):
        reason = next(one.detail for one in mended if one.code == "embeddings-damaged")
        embeddings, _ = _salvage(places, embedder, reason)
        embeddings.close()
    if embedder is not None and (unsound or "vector-invalid" in codes):
        _discard(places, embedder, unsound)
    if codes & VECTOR_CODES:
        for name in os.listdir(places.sidecar):
            if name.startswith(vector_file.PREFIX):
                os.unlink(os.path.join(places.sidecar, name))
    if codes & FULLTEXT_CODES:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(places.fulltext, STAMP_NAME))
    return mended


def _is_condemned(finding: Finding, embedder: Embedder | None) -> bool:
    """Whether a finding says that a part cannot be kept as it is."""
    if finding.code in VECTOR_CODES:
        # Of a text that was never embedded the FAISS file is not to blame.
        return embedder is not None and finding.other.startswith(".sidecar/")
    return finding.code in CATALOG_CODES | FULLTEXT_CODES | {"embeddings-damaged"}


def _discard(places: Places, embedder: Embedder, unsound: Iterable[bytes]) -> None:
    """Take out vectors that are wrong, so that their texts are embedded again."""
    from filestore.checking_vectors import invalid_keys

    with EmbeddingCache.open(places.embeddings) as embeddings:
        keys = {*unsound, *invalid_keys(embeddings, embedder.fingerprint)}
        embeddings.discard(embedder.fingerprint, keys)


def quarantine(places: Places, path: str) -> str:
    """Put a damaged SQLite file and its log aside, the oldest making room; returns its path."""
    os.makedirs(places.quarantine, mode=0o700, exist_ok=True)
    held = _quarantined(places)
    numbers = sorted({number for number, _ in held})
    for number, name in held:
        if number in numbers[: len(numbers) - MAX_QUARANTINED + 1]:
            os.unlink(os.path.join(places.quarantine, name))
    number = max(numbers, default=0) + 1
    aside = os.path.join(places.quarantine, f"{number}-{os.path.basename(path)}")
    for suffix in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{path}-shm")
    return aside


def _quarantined(places: Places) -> list[tuple[int, str]]:
    """Number and name of everything that was put aside; what else lies there is not ours."""
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir(places.quarantine)
        numbered = [(name.partition("-")[0], name) for name in names]
        return sorted((int(number), name) for number, name in numbered if number.isdecimal())
    return []


def _last_aside(places: Places, path: str) -> str | None:
    """The newest of the files of this name that were put aside."""
    base = os.path.basename(path)
    names = [name for number, name in _quarantined(places) if name == f"{number}-{base}"]
    return os.path.join(places.quarantine, names[-1]) if names else None


def _collect_leftovers(places: Places) -> None:
    """Remove the temporary files of a writer that died; the lock says that none is alive."""
    for name in os.listdir(places.sidecar):
        if name.startswith(fileio.TEMPORARY_PREFIX):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(places.sidecar, name))

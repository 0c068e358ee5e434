"""The model beside the store's own: whether every text has a sound vector of it.

One rule: nothing here keeps the store's own model from answering.
"""

import sqlite3
from collections.abc import Iterator
from typing import Final

from filestore.catalog import Catalog
from filestore.config.layout import EMBEDDINGS, SETTINGS
from filestore.core.findings import Finding
from filestore.core.hashing import vector_id
from filestore.embed.base import Embedder
from filestore.sidecar.beside import Known, known
from filestore.sidecar.snapshot import Sample, StoreSnapshot, VerificationReport

_WHOSE: Final = "the model beside"


def findings(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """What is known without reading a vector."""
    chosen = snapshot.settings.beside
    if chosen is None:
        return
    if snapshot.no_beside:
        yield Finding(code="beside-unusable", path=SETTINGS, detail=snapshot.no_beside)
        return
    catalog, other = snapshot.catalog, snapshot.beside
    if not catalog.count("vectors") or (other and _is_counted_on(catalog, other)):
        return
    kept = known(catalog)
    if kept is None or (other and kept.fingerprint != other.fingerprint):
        detail = f"no text was embedded with {chosen.embedder} yet"
    elif kept.lacking:
        number = "1 text has" if kept.lacking == 1 else f"{kept.lacking:,} texts have"
        detail = f"{number} no vector of {chosen.embedder}"
    elif kept.generation != catalog.generation or _were_lost(snapshot, kept):
        detail = f"texts or vectors changed without {chosen.embedder} being asked"
    else:
        return
    yield Finding(code="beside-behind", path=SETTINGS, detail=detail)


def _is_counted_on(catalog: Catalog, other: Embedder) -> bool:
    """Whether the two have changed places in the settings, and not yet in the catalog."""
    return bool(catalog.meta("fingerprint") == other.fingerprint)


def _were_lost(snapshot: StoreSnapshot, kept: Known) -> bool:
    """Whether there are fewer embeddings than there were, as far as these are open."""
    from filestore.embed.cache import EmbeddingsDamaged

    if snapshot.embeddings is None:
        return False
    try:
        return snapshot.embeddings.count(kept.fingerprint) != kept.embeddings
    except (EmbeddingsDamaged, sqlite3.DatabaseError):
        # That is told of the embeddings as a whole.
        return False


def check(snapshot: StoreSnapshot, sample: Sample, report: VerificationReport) -> None:
    """Read every stored vector of the model beside."""
    from filestore.embed.cache import EmbeddingsDamaged
    from filestore.verify import _vectors

    if snapshot.settings.beside is None:
        return
    kept, embeddings = known(snapshot.catalog), snapshot.embeddings
    fingerprint = snapshot.beside.fingerprint if snapshot.beside else kept and kept.fingerprint
    if not fingerprint or embeddings is None:
        report.not_checked.append("vectors of the model beside, since there are none")
        return
    keys = snapshot.catalog.vector_keys(embedded=None)
    wanted = [one for one in keys if sample.has_vector(one[0])]
    try:
        seen = _vectors.read(embeddings, fingerprint, wanted, None, "full")
        there = embeddings.has(fingerprint, seen.lost)
    except EmbeddingsDamaged:
        report.not_checked.append("vectors of the model beside, which SQLite cannot walk to")
        return
    part = snapshot.places.part(EMBEDDINGS)
    damaged = {vector_id(key): f"{_WHOSE}: its checksum does not hold" for key in there}
    report.add(_vectors.findings(snapshot, "embeddings-damaged", damaged, part))
    invalid = {one: f"{_WHOSE}: {why}" for one, why in seen.invalid.items()}
    report.add(_vectors.findings(snapshot, "vector-invalid", invalid, part))
    if not any(findings(snapshot)):
        gone = {vector_id(key): f"{_WHOSE}: its row is gone" for key in seen.lost - there}
        report.add(_vectors.findings(snapshot, "beside-behind", gone, part))
    report.not_checked.append("whether the model beside still gives the same vectors")
    of = "every vector" if sample.is_all else f"vectors of slice {sample}"
    report.checked.append(f"{of} of the model beside")

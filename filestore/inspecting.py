"""Looking at a whole store, whatever state it is in: its status, and its verification.

One rule: where a part cannot be opened, that is the finding, and the rest is looked at all the
same. Changes nothing.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filestore import vector_file, verify
from filestore.catalog import (
    CatalogDamagedError,
    CatalogMissingError,
    CatalogNewerError,
)
from filestore.errors import FilestoreError
from filestore.findings import Finding, is_clean, worst_first
from filestore.parts import Parts
from filestore.progress import OnProgress, ignore
from filestore.subject import Level, Sample
from filestore.verify import Checked

if TYPE_CHECKING:
    from filestore.index.building import Description


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Drift by stat."""

    clean: bool
    generation: int
    files: int
    """Files in the catalog, records included."""
    findings: tuple[Finding, ...]
    index: "Description | None" = None
    """The vector index as it was last written; None where there is none."""


def status(parts: Parts) -> Status:
    """Drift by stat, reading only files whose stat differs or cannot be relied on."""
    generation, files, index = 0, 0, None
    try:
        catalog = parts.catalog()
        with catalog.snapshot():
            found = verify.status_findings(parts.subject(catalog, None))
            generation, files = catalog.generation, catalog.file_count()
            index = vector_file.describe(catalog)
    except (CatalogMissingError, CatalogDamagedError) as error:
        found = list(_without_catalog(parts, error, "fast", verify.ALL, ignore).findings)
    return Status(
        clean=is_clean(found, parts.settings.accepted),
        generation=generation,
        files=files,
        index=index,
        findings=tuple(worst_first(found)),
    )


def verified(parts: Parts, level: Level, sample: Sample | None, on_progress: OnProgress) -> Checked:
    """Every drift and damage.

    Args:
        parts: The store's.
        level: How much is read.
        sample: The slice of files and vectors that is read; None for all of them.
        on_progress: Told how far it is.
    """
    from filestore.embed.cache import EmbeddingsNewer

    chosen = sample or verify.ALL
    try:
        catalog = parts.catalog()
        with catalog.snapshot():
            subject = parts.subject(catalog, parts.embeddings())
            return verify.verify(subject, level=level, sample=chosen, on_progress=on_progress)
    except (CatalogMissingError, CatalogDamagedError, CatalogNewerError, EmbeddingsNewer) as error:
        return _without_catalog(parts, error, level, chosen, on_progress)


def _without_catalog(
    parts: Parts,
    error: FilestoreError,
    level: Level,
    sample: Sample,
    on_progress: OnProgress,
) -> Checked:
    return verify.without_catalog(
        parts.places,
        parts.settings.layout,
        error,
        level=level,
        sample=sample,
        on_progress=on_progress,
    )

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
from filestore.subject import NOBODY, Level, OnFound, Sample, Telling
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


def verified(
    parts: Parts,
    level: Level,
    sample: Sample | None,
    on_progress: OnProgress,
    on_found: OnFound | None = None,
) -> Checked:
    """Every drift and damage.

    Args:
        parts: The store's.
        level: How much is read.
        sample: The slice of files and vectors that is read; None for all of them.
        on_progress: Told how far it is.
        on_found: Told of findings as they are found, of each once, by the thread that called. The
            result may lack some of them, where a cause was found that hides its consequences.
    """
    telling = Telling(on_found)
    checked = _verified(parts, level, sample or verify.ALL, on_progress, telling)
    telling.tell(checked.findings)
    return checked


def _verified(
    parts: Parts, level: Level, sample: Sample, on_progress: OnProgress, telling: Telling
) -> Checked:
    from filestore.embed.cache import EmbeddingsNewer

    try:
        catalog = parts.catalog()
        with catalog.snapshot():
            subject = parts.subject(catalog, parts.embeddings())
            return verify.verify(
                subject, level=level, sample=sample, on_progress=on_progress, telling=telling
            )
    except (CatalogMissingError, CatalogDamagedError, CatalogNewerError, EmbeddingsNewer) as error:
        return _without_catalog(parts, error, level, sample, on_progress, telling)


def _without_catalog(
    parts: Parts,
    error: FilestoreError,
    level: Level,
    sample: Sample,
    on_progress: OnProgress,
    telling: Telling = NOBODY,
) -> Checked:
    return verify.without_catalog(
        parts.places,
        parts.settings.layout,
        error,
        level=level,
        sample=sample,
        on_progress=on_progress,
        telling=telling,
    )

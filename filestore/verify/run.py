"""Looking at a whole store, whatever state it is in: its status, and its verification.

One rule: where a part cannot be opened, that is the finding, and the rest is looked at all the
same. Changes nothing.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import CatalogDamagedError, CatalogMissingError, CatalogNewerError
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding, as_told, is_clean, worst_first
from filestore.core.progress import OnProgress, ignore
from filestore.core.schema import JsonObject
from filestore.index.base import Description
from filestore.sidecar import fulltext_file, vector_file
from filestore.sidecar.losses import walk_watched
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import NO_LISTENER, FindingStream, Level, OnFound, Sample, SeenFiles
from filestore.verify import verify
from filestore.verify.verify import Checked

if TYPE_CHECKING:
    from filestore.sidecar.model import StoreModel


class Watched(JsonObject, Struct, frozen=True, kw_only=True):
    """What a server, which watches the tree, says of its answer."""

    used: bool
    """Whether the walk was spared: only folders with changes were looked at."""
    reason: str = ""
    """Why it was not, or empty."""


class StatusEmbedder(TypedDict):
    """A model as the settings name it."""

    name: str
    """As the settings have it."""
    fingerprint: str | None
    """Of the model; None where it cannot be used."""
    problem: str | None
    """Why it cannot be used."""


class Accepted(JsonObject, Struct, frozen=True):
    """A warning that the settings accept."""

    code: str
    """Of the finding."""
    path: str
    """Of the finding."""


class Status(JsonObject, Struct, frozen=True, kw_only=True):
    """Drift by stat."""

    KEYS = (
        "clean generation counts drift accepted embedder beside index not_checked deleted_texts "
        "watched"
    )
    SPARSE = "beside deleted_texts watched"

    clean: bool
    """Whether nothing was found but notes and accepted warnings."""
    generation: int
    """Of the index; 0 where there is none."""
    files: int
    """Files in the catalog, records included."""
    findings: tuple[Finding, ...]
    index: Description | None = None
    """The FAISS file as last written; None where there is none, or a backend has the vectors."""
    embedder: StatusEmbedder
    """Its ``name``, ``fingerprint``, and the ``problem`` that keeps it from being used."""
    beside: StatusEmbedder | None = None
    """The same of the model beside; None where none is tried."""
    not_checked: tuple[str, ...] = ()
    """Originals that were not looked at, and what has them looked at."""
    deleted_texts: int = 0
    """Texts that are gone and that keyword scores still count."""
    watched: Watched | None = None
    """How a server, which watches the tree, came to this; None for all others."""

    @property
    def drift(self) -> dict[str, list[str]]:
        """Each code that was found, with its paths."""
        found: dict[str, list[str]] = {}
        for finding in self.findings:
            found.setdefault(finding.code, []).append(finding.path)
        return found

    @property
    def counts(self) -> dict[str, int]:
        """`files` in the catalog, and how often each code was found."""
        return {"files": self.files} | {code: len(paths) for code, paths in self.drift.items()}

    @property
    def accepted(self) -> list[Finding]:
        """The warnings that the settings accept."""
        return [finding for finding in self.findings if finding.accepted]

    @property
    def json_accepted(self) -> list[Accepted]:
        """Warnings that the settings accept."""
        return [Accepted(one.code, one.path) for one in self.accepted]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)


def status(parts: Parts) -> Status:
    """Drift by stat, reading only files whose stat differs or cannot be relied on."""
    generation, files, index, watched, deleted_texts = 0, 0, None, None, 0
    not_checked: list[str] = []
    try:
        with parts.reading() as catalog:
            catalog.require_rows()
            catalog.require_paths()
            snapshot = replace(parts.snapshot(catalog, None), seen=SeenFiles())
            if parts.watched_tree is not None:
                seen = walk_watched(parts.places, parts.watched_tree)
                snapshot = replace(snapshot, tree=seen.tree)
                watched = Watched(used=not seen.unwatched, reason=seen.unwatched)
            report = verify.status_report(snapshot)
            found, not_checked = report.findings, report.not_checked
            generation, files = catalog.generation, catalog.file_count()
            index = vector_file.describe(catalog)
            deleted_texts = fulltext_file.deleted_texts(parts.places, catalog)
    except (CatalogMissingError, CatalogDamagedError) as error:
        found = list(_without_catalog(parts, error, "fast", verify.ALL, ignore).findings)
    return Status(
        clean=is_clean(found, parts.settings.accepted),
        generation=generation,
        files=files,
        index=index,
        not_checked=tuple(not_checked),
        deleted_texts=deleted_texts,
        watched=watched,
        embedder=_embedder(parts.model),
        beside=_embedder(parts.models.beside) if parts.models.beside else None,
        findings=as_told(worst_first(found), parts.places.tree),
    )


def _embedder(model: "StoreModel") -> StatusEmbedder:
    problem, embedder = model.problem, model.embedder
    return {
        "name": model.name,
        "fingerprint": embedder.fingerprint if embedder else None,
        "problem": problem.message if problem else None,
    }


def verified(
    parts: Parts,
    level: Level,
    sample: Sample | None,
    on_progress: OnProgress,
    on_found: OnFound | None = None,
    seen: SeenFiles | None = None,
) -> Checked:
    """Every drift and damage.

    Args:
        parts: The store's.
        level: How much is read.
        sample: The slice of files and vectors that is read; None for all of them.
        on_progress: Called with the progress.
        on_found: Called with findings as they are found, each once, by the calling thread. The
            result may lack some of them, where a cause was found that hides its consequences.
        seen: Keeps the files that are read, for whoever plans with the findings.
    """
    stream = FindingStream(on_found)
    checked = _verified(parts, level, sample or verify.ALL, on_progress, stream, seen)
    stream.tell(checked.findings)
    return replace(checked, findings=as_told(checked.findings, parts.places.tree))


def _verified(
    parts: Parts,
    level: Level,
    sample: Sample,
    on_progress: OnProgress,
    stream: FindingStream,
    seen: SeenFiles | None,
) -> Checked:
    from filestore.embed.cache import EmbeddingsNewer

    try:
        with parts.reading() as catalog:
            catalog.require_rows()
            catalog.require_paths()
            snapshot = parts.snapshot(catalog, parts.embeddings())
            snapshot = replace(snapshot, seen=seen or SeenFiles())
            return verify.verify(
                snapshot, level=level, sample=sample, on_progress=on_progress, stream=stream
            )
    except (CatalogMissingError, CatalogDamagedError, CatalogNewerError, EmbeddingsNewer) as error:
        return _without_catalog(parts, error, level, sample, on_progress, stream)


def _without_catalog(
    parts: Parts,
    error: FilestoreError,
    level: Level,
    sample: Sample,
    on_progress: OnProgress,
    stream: FindingStream = NO_LISTENER,
) -> Checked:
    """Every file judged on its own, as the catalog cannot be read."""
    if (nothing := verify.refused(level, error, parts.places.tree)) is not None:
        return nothing
    from filestore.verify._no_catalog import judge

    report = judge(
        parts.places,
        parts.layout,
        error,
        level=level,
        sample=sample,
        on_progress=on_progress,
        stream=stream,
    )
    return verify.result(level, report)

"""Looking at a whole store, whatever state it is in: its status, and its verification.

`fast` stats everything and opens no content file of a clean tree; `full` reads every byte of the
three sets, files, catalog and vectors, and holds them against each other; `deep` asks the model,
too. Changes nothing. One rule: a cause hides its consequences, and what was not looked at is
reported; where a part cannot be opened, that is the finding, and the rest is looked at.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import (
    CatalogDamagedError,
    CatalogMissingError,
    CatalogNewerError,
)
from filestore.core.errors import FilestoreError
from filestore.core.findings import LEFT_BY_STATS, Finding, is_clean, with_tree, worst_first
from filestore.core.paths import CHUNKS, Tree
from filestore.core.progress import OnProgress, ignore
from filestore.core.schema import JsonObject
from filestore.git import repository
from filestore.index import Description
from filestore.sidecar import fulltext_file, vector_file
from filestore.sidecar.losses import walk_watched
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import (
    NO_LISTENER,
    FindingStream,
    Level,
    OnFound,
    Sample,
    SeenFiles,
    StoreSnapshot,
    VerificationReport,
)
from filestore.verify import drift, environment, recorded_state

if TYPE_CHECKING:
    from filestore.sidecar.model import StoreModel
    from filestore.verify._rows import Judged


ALL: Final = Sample()


class Checked(JsonObject, Struct, frozen=True, kw_only=True):
    """The result of one verification."""

    KEYS = "clean level checked not_checked findings"

    level: Level | Literal["staged"]
    """`fast`, `full`, `deep` or `staged`."""
    findings: tuple[Finding, ...]
    """Worst first."""
    checked: tuple[str, ...]
    """What was looked at, in words."""
    not_checked: tuple[str, ...]
    """What was not, and why, in words."""
    unsound: tuple[bytes, ...] = ()
    """Embedding keys whose vector is stored whole and wrong: they have to be embedded again."""

    @property
    def clean(self) -> bool:
        """Whether nothing was found but notes and accepted warnings."""
        return is_clean(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)


def result(level: Level, report: VerificationReport) -> Checked:
    """What a verification that ended found."""
    return Checked(
        level=level,
        findings=tuple(worst_first(report.findings)),
        checked=tuple(report.checked),
        not_checked=tuple(report.not_checked),
        unsound=tuple(sorted(report.unsound)),
    )


def refused(level: Level, error: FilestoreError, tree: Tree = CHUNKS) -> Checked | None:
    """The result for a store, or a part of it, that must not be opened; None for other errors."""
    from filestore.sidecar.refusals import refusal

    finding = refusal(error, tree)
    if finding is None:
        return None
    return result(
        level, VerificationReport(findings=[finding], not_checked=["everything: it was not opened"])
    )


def verify(
    snapshot: StoreSnapshot,
    *,
    level: Level,
    sample: Sample = ALL,
    on_progress: OnProgress = ignore,
    stream: FindingStream = NO_LISTENER,
) -> Checked:
    """Compare files, catalog and vectors.

    Args:
        snapshot: The store; its catalog should be inside a snapshot.
        level: How much is read.
        sample: The slice of files and vectors that is read; what a stat shows is reported of all.
        on_progress: Called with the number of files read.
        stream: Hands on what is found meanwhile.
    """
    report = VerificationReport(
        checked=["names and stats of all files", "sizes of all index files"], stream=stream
    )
    if level == "fast":
        _compare_stats(snapshot, level, report)
        report.not_checked += LEFT_BY_STATS
        return result(level, report)
    from filestore.verify import _rows

    # Git also has files as unmerged when nothing is under way: after 'git stash pop', say.
    unmerged = frozenset(repository.unmerged(snapshot.places.chunked))
    snapshot = replace(snapshot, unmerged=unmerged)
    catalog = snapshot.catalog
    apart = snapshot.processes > 1 and catalog.file_count() > drift.PARALLEL_FILES
    with _rows.checked(catalog, snapshot.places.catalog, sample, apart=apart) as judged:
        _compare_stats(snapshot, level, report)
        _read_everything(snapshot, judged, level, sample, report, on_progress)
    return result(level, report)


def _compare_stats(snapshot: StoreSnapshot, level: Level, report: VerificationReport) -> None:
    from filestore.verify import source_drift

    report.add(fast_findings(snapshot))
    recorded_state.check(snapshot, report)
    report.not_checked += recorded_state.unjudged(snapshot, reads=level != "fast")
    source_drift.check(snapshot, level, report)
    if any(one.code == "source-missing" and one.other for one in report.findings):
        from filestore.verify.lost_links import LostSources, renamed_sources

        report.add(LostSources(snapshot, renamed_sources(report.findings)).findings())


def _read_everything(
    snapshot: StoreSnapshot,
    judged: "Judged",
    level: Level,
    sample: Sample,
    report: VerificationReport,
    on_progress: OnProgress,
) -> None:
    from filestore.verify import _catalog, _files, _vectors

    with _files.begun(snapshot, sample, report, on_progress) as differing:
        # The pages take a while: what is found meanwhile counts only if they are sound.
        vectors = VerificationReport(findings=[*report.findings])
        _vectors.check(snapshot, level, sample, vectors)
        _vectors.check_other(snapshot, sample, vectors)
        if not _catalog.check(snapshot, judged.page_problem(), level, sample, report):
            return
        reported = _files.reported(report)
        report.join(vectors)
        _catalog.check_fulltext(snapshot, level, sample, report)
        _catalog.check_links(snapshot, report)
        _files.check(snapshot, judged, differing(), reported, report)
    read = "contents of all files" if sample.is_all else f"contents of slice {sample}"
    report.checked += [read, "every id of the catalog, both ways"]
    if not sample.is_all:
        report.not_checked.append(f"contents of files outside slice {sample}")
    if level == "deep":
        _vectors.check_model(snapshot, sample, report, on_progress)
    else:
        report.not_checked.append("whether the model still gives the same vectors")


def status_report(snapshot: StoreSnapshot) -> VerificationReport:
    """What `status` shows: all of E and W that level fast finds.

    It leaves out what only looking around finds, and remarks.
    """
    report = VerificationReport(findings=list(fast_findings(snapshot)))
    report.add(recorded_state.warnings(snapshot, report.codes()))
    if snapshot.catalog.has_rows("documents"):
        from filestore.verify import source_drift

        source_drift.check(snapshot, None, report)
    return report


def fast_findings(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Drift of chunk files by stat, and the state of the sidecar's files."""
    places, catalog = snapshot.places, snapshot.catalog
    seen = drift.detect(snapshot)
    yield from [*seen.findings, *drift.missing_findings(seen)]
    yield from drift.standing_findings(seen, catalog)
    moved = {new: old for old, new in seen.edited_moves}
    yield from drift.changed_findings(snapshot, seen.to_read, moved)
    yield from recorded_state.pages_read_whole(snapshot)
    yield from recorded_state.open_matters(snapshot, drift.moved_paths(seen))
    yield from environment.findings(places)
    yield from recorded_state.sidecar_findings(snapshot, hashes=False)


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
    """What differs, worst first."""
    index: Description | None = None
    """The FAISS file as last written; None where there is none, or a backend has the vectors."""
    embedder: StatusEmbedder
    """Its ``name``, ``fingerprint``, and the ``problem`` that keeps it from being used."""
    beside: StatusEmbedder | None = None
    """The same of the second model; None where none is tried."""
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
        with parts.comparing() as catalog:
            catalog.require_rows()
            catalog.require_paths()
            snapshot = replace(parts.snapshot(catalog, None), seen=SeenFiles())
            if parts.watched_tree is not None:
                seen = walk_watched(parts.places, parts.watched_tree)
                snapshot = replace(snapshot, tree=seen.tree)
                watched = Watched(used=not seen.unwatched, reason=seen.unwatched)
            report = status_report(snapshot)
            found, not_checked = report.findings, report.not_checked
            generation, files = catalog.generation, catalog.file_count()
            index = vector_file.describe(catalog)
            deleted_texts = fulltext_file.deleted_texts(parts.places, catalog)
    except (CatalogMissingError, CatalogDamagedError) as error:
        found = list(_without_catalog(parts, error, "fast", ALL, ignore).findings)
    return Status(
        clean=is_clean(found, parts.settings.accepted),
        generation=generation,
        files=files,
        index=index,
        not_checked=tuple(not_checked),
        deleted_texts=deleted_texts,
        watched=watched,
        embedder=_embedder(parts.model),
        beside=_embedder(parts.models.second) if parts.models.second else None,
        findings=with_tree(worst_first(found), parts.places.tree),
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
        seen: Keeps the files that are read, for a plan made with the findings.
    """
    from filestore.embed.cache import EmbeddingsNewer

    stream = FindingStream(on_found)
    sample = sample or ALL
    try:
        with parts.comparing() as catalog:
            catalog.require_rows()
            catalog.require_paths()
            snapshot = parts.snapshot(catalog, parts.embeddings())
            snapshot = replace(snapshot, seen=seen or SeenFiles())
            checked = verify(
                snapshot, level=level, sample=sample, on_progress=on_progress, stream=stream
            )
    except (CatalogMissingError, CatalogDamagedError, CatalogNewerError, EmbeddingsNewer) as error:
        checked = _without_catalog(parts, error, level, sample, on_progress, stream)
    stream.tell(checked.findings)
    return replace(checked, findings=with_tree(checked.findings, parts.places.tree))


def _without_catalog(
    parts: Parts,
    error: FilestoreError,
    level: Level,
    sample: Sample,
    on_progress: OnProgress,
    stream: FindingStream = NO_LISTENER,
) -> Checked:
    """Every file judged on its own, as the catalog cannot be read."""
    if (nothing := refused(level, error, parts.places.tree)) is not None:
        return nothing
    from filestore.verify._files import judge

    report = judge(
        parts.places,
        parts.layout,
        error,
        level=level,
        sample=sample,
        on_progress=on_progress,
        stream=stream,
    )
    return result(level, report)

"""Verification: every drift and damage as findings, at three levels. Changes nothing.

`fast` stats everything and opens no content file of a clean tree; `full` reads every byte of the
three sets, files, catalog and vectors, and holds them against each other; `deep` asks the model,
too. One rule: a cause hides its consequences, and what was not looked at is said.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from filestore import (
    catalog_findings,
    drift,
    fulltext_file,
    surroundings,
    vector_file,
    worktree,
)
from filestore.catalog import Catalog
from filestore.errors import FilestoreError
from filestore.findings import Finding, worst_first
from filestore.observation import Observation
from filestore.places import Places
from filestore.progress import OnProgress, ignore
from filestore.settings import Layout
from filestore.subject import NOBODY, Level, Said, Sample, Subject, Telling

if TYPE_CHECKING:
    from filestore.catalog_rows import Judged

ALL: Final = Sample()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of one verification."""

    level: Level
    findings: tuple[Finding, ...]
    """Worst first."""
    checked: tuple[str, ...]
    """What was looked at, in words."""
    not_checked: tuple[str, ...]
    """What was not, and why, in words."""
    unsound: tuple[bytes, ...] = ()
    """Embedding keys whose vector is stored whole and wrong: they have to be embedded again."""


def result(level: Level, said: Said) -> Checked:
    """What a verification that ended found."""
    return Checked(
        level=level,
        findings=tuple(worst_first(said.findings)),
        checked=tuple(said.checked),
        not_checked=tuple(said.not_checked),
        unsound=tuple(sorted(said.unsound)),
    )


def refused(level: Level, error: FilestoreError) -> Checked | None:
    """The result for a store, or a part of it, that must not be opened; None for other errors."""
    from filestore.refusals import refusal

    finding = refusal(error)
    if finding is None:
        return None
    return result(level, Said(findings=[finding], not_checked=["everything: it is not opened"]))


def without_catalog(
    places: Places,
    layout: Layout,
    error: FilestoreError,
    *,
    level: Level,
    sample: Sample,
    on_progress: OnProgress,
    telling: Telling = NOBODY,
) -> Checked:
    """The result where the catalog cannot be read: every file is judged on its own."""
    if (nothing := refused(level, error)) is not None:
        return nothing
    from filestore.without_catalog import judge

    said = judge(
        places,
        layout,
        error,
        level=level,
        sample=sample,
        on_progress=on_progress,
        telling=telling,
    )
    return result(level, said)


def verify(
    subject: Subject,
    *,
    level: Level,
    sample: Sample = ALL,
    on_progress: OnProgress = ignore,
    telling: Telling = NOBODY,
) -> Checked:
    """Compare files, catalog and vectors.

    Args:
        subject: The store; its catalog should be inside a snapshot.
        level: How much is read.
        sample: The slice of files and vectors that is read; what a stat tells is told of all.
        on_progress: Told how many files were read.
        telling: Hands on what is found meanwhile.
    """
    said = Said(
        checked=["names and stats of all files", "sizes of all accelerator files"], telling=telling
    )
    if level == "fast":
        _compare_stats(subject, level, said)
        said.not_checked += ["contents of files with unchanged stats"]
        said.not_checked += ["rows of the embeddings", "vectors", "full-text entries", "the model"]
        return result(level, said)
    from filestore import catalog_rows

    # Git also has files as unmerged when nothing is under way: after 'git stash pop', say.
    unmerged = frozenset(worktree.unmerged(subject.places.chunked))
    subject = replace(subject, unmerged=unmerged)
    catalog = subject.catalog
    apart = subject.processes > 1 and catalog.file_count() > drift.PARALLEL_FILES
    with catalog_rows.checked(catalog, subject.places.catalog, sample, apart=apart) as judged:
        _compare_stats(subject, level, said)
        _read_everything(subject, judged, level, sample, said, on_progress)
    return result(level, said)


def _compare_stats(subject: Subject, level: Level, said: Said) -> None:
    from filestore import checking_sources

    said.add(fast_findings(subject))
    catalog_findings.check(subject, said)
    checking_sources.check(subject, level, said)


def _read_everything(
    subject: Subject,
    judged: "Judged",
    level: Level,
    sample: Sample,
    said: Said,
    on_progress: OnProgress,
) -> None:
    from filestore import checking_catalog, checking_files, checking_fulltext, checking_vectors

    with checking_files.begun(subject, sample, said, on_progress) as differing:
        # The pages take a while: what is found meanwhile counts only if they are sound.
        vectors = Said(findings=[*said.findings])
        checking_vectors.check(subject, level, sample, vectors)
        if not checking_catalog.check(subject, judged.page_problem(), said):
            return
        told = checking_files.told(said)
        said.join(vectors)
        checking_fulltext.check(subject, level, sample, said)
        checking_files.check(subject, judged, differing(), told, said)
        checking_files.say_what_was_read(said, sample)
    if level == "deep":
        from filestore import checking_model

        checking_model.check(subject, sample, said, on_progress)
    else:
        said.not_checked.append("whether the model still gives the same vectors")


def status_findings(subject: Subject) -> list[Finding]:
    """What `status` shows: all of E and W that level fast finds.

    It leaves out what only looking around finds, and remarks.
    """
    found = list(fast_findings(subject))
    found += catalog_findings.warnings(subject, {finding.code for finding in found})
    if subject.catalog.count("documents"):
        from filestore import checking_sources

        found += checking_sources.status(subject)
    return found


def fast_findings(subject: Subject) -> Iterator[Finding]:
    """Drift of chunk files by stat, and the state of the sidecar's files."""
    places, catalog = subject.places, subject.catalog
    seen = drift.detect(
        places,
        catalog,
        layout=subject.layout,
        deleted=subject.deleted,
        processes=subject.processes,
        unmerged=subject.unmerged,
    )
    yield from [*seen.findings, *drift.missing_findings(seen), *drift.withheld_moves(seen)]
    moved = {new: old for old, new in seen.edited_moves}
    looked_at = {*seen.look, *seen.gone, *(old for old, _ in seen.moves), *moved.values()}
    yield from drift.standing_findings(catalog, looked_at)
    yield from changed_findings(subject, seen.look, moved)
    yield from catalog_findings.open_matters(subject)
    yield from surroundings.findings(places)
    yield from sidecar_findings(subject, hashes=False)


def changed_findings(
    subject: Subject, paths: tuple[str, ...], moved: Mapping[str, str]
) -> Iterator[Finding]:
    """Read the files whose stat differs, and say what differs.

    Args:
        subject: The store.
        paths: The files, below `chunked/`.
        moved: New path to old path of those that were moved and edited.
    """
    known = subject.catalog.files([*paths, *moved.values()])
    for look in drift.look_at(subject.places, paths, subject.layout, unmerged=subject.unmerged):
        if isinstance(look, Observation):
            finding = drift.classify(known.get(moved.get(look.path, look.path)), look)
            if finding is not None:
                yield finding
        else:
            yield from drift.unreadable(*look)


def sidecar_findings(subject: Subject, *, hashes: bool) -> list[Finding]:
    """What is wrong with the derived files, without parsing an accelerator."""
    places, catalog = subject.places, subject.catalog
    found = [
        *vector_file.findings(places, catalog, hashes=hashes),
        *fulltext_file.findings(places, catalog, hashes=hashes),
        *catalog_findings.metric_mismatch(catalog, subject.settings),
    ]
    recorded = catalog.meta("fingerprint")
    if subject.embedder is None:
        # Without its model nobody can give the store vectors, nor needs to be told of each.
        found = [finding for finding in found if not finding.code.startswith("index-")]
        missing = Finding(code="model-missing", path="filestore.toml", detail=subject.no_model)
        return [*found, missing]
    if recorded is not None and recorded != subject.embedder.fingerprint:
        detail = f"indexed with {recorded}, the settings ask for {subject.embedder.fingerprint}"
        found.append(Finding(code="model-changed", path="filestore.toml", detail=detail))
    found += vector_file.embeddings_findings(places, catalog, subject.embeddings)
    return found + not_embedded(catalog)


def not_embedded(catalog: Catalog) -> list[Finding]:
    """Files with a text that has no vector."""
    return [
        Finding(code="vector-missing", path=drift.root_path(path), detail="never embedded")
        for path in catalog.paths_without_vectors()
    ]

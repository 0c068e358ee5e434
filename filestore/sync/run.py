"""Syncing a store whatever state it is in: verify where asked, set damage aside, sync the files.

One lock: what a verification condemns is set aside by the writer that then syncs the files. That
writer walks the tree again: the verification held no lock, so since its walk files may have come
back that would be forgotten, and another writer may have made a generation. Of 20,000 files the
second walk takes 0.1 to 0.4 s, where the verification takes 2.5 s. Writes no truth file.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import CatalogDamagedError
from filestore.config.layout import EMBEDDINGS, Places
from filestore.core.findings import Finding, as_told, worst_first
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, ignore
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.sidecar.recover import condemned, part_finding
from filestore.sidecar.session import Parts
from filestore.sync.apply import SyncReport, sync
from filestore.verify import run

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import Level


class Wanted(Struct, frozen=True, kw_only=True):
    """What a sync is asked to do."""

    embed: bool = True
    """Whether texts without embedding are embedded now."""
    forget_missing: bool = False
    """Whether a mass of missing files is meant to be gone."""
    forget: Collection[StorePath] | None = None
    """Missing files of which no text is to be kept; None for all but a mass."""
    first: "Level | None" = None
    """Verify at this level before, and repair what that finds, too."""
    wait_s: float = DEFAULT_WAIT_S
    """How long to wait for another writer."""


def catch_up(parts: Parts, wanted: Wanted, on_progress: OnProgress = ignore) -> SyncReport:
    """Index what differs in the files and repair the sidecar; writes no chunk file.

    Raises:
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; the old generation stays.
    """
    from filestore.embed.cache import EmbeddingsDamaged

    found: tuple[Finding, ...] = ()
    unsound: tuple[bytes, ...] = ()
    if wanted.first is not None:
        checked = run.verified(parts, wanted.first, None, on_progress)
        found, unsound = checked.findings, checked.unsound
    try:
        return _follow(parts, wanted, on_progress, found, unsound)
    except (CatalogDamagedError, EmbeddingsDamaged) as error:
        # Damage that opening did not show: set it aside, and sync the files afresh.
        repaired = condemned(parts.places, found, parts.model.embedder)
        report = _follow(parts, wanted, on_progress, [part_finding(parts.places, error)], ())
        return replace(report, applied=_once(parts.places, [*repaired, *report.applied]))


def _once(places: Places, applied: Iterable[Finding]) -> tuple[Finding, ...]:
    """What was applied, the embeddings as a whole once: opening them and counting them tell it."""
    path = places.part(EMBEDDINGS)
    seen: dict[Finding | tuple[str, str], Finding] = {}
    for finding in applied:
        is_file = finding.code == "embeddings-damaged" and finding.path == path
        seen.setdefault((finding.code, finding.path) if is_file else finding, finding)
    return tuple(seen.values())


def _follow(
    parts: Parts,
    wanted: Wanted,
    on_progress: OnProgress,
    found: Sequence[Finding],
    unsound: Sequence[bytes],
) -> SyncReport:
    """Set aside what findings condemn, and sync the files in one commit."""
    if wanted.embed:
        parts.model.ask()
    writing = parts.writing("sync", wait_s=wanted.wait_s, found=found, unsound=unsound)
    with writing as (catalog, embeddings, repaired):
        with parts.commit(catalog, embeddings, embed=wanted.embed) as commit:
            report = sync(
                parts.snapshot(catalog, embeddings),
                commit,
                clock=parts.clock(),
                forget_missing=wanted.forget_missing,
                full=wanted.first is not None,
                forget=wanted.forget,
                on_progress=on_progress,
            )
        return replace(
            report,
            applied=as_told(_once(parts.places, [*repaired, *report.applied]), parts.places.tree),
            remaining=as_told(_with_unrepaired(report, found), parts.places.tree),
        )


def _with_unrepaired(report: SyncReport, found: Iterable[Finding]) -> list[Finding]:
    """What is left, and what only the verification could see and no sync repairs, as bit rot."""
    told = {(one.code, one.path) for one in report.remaining}
    done = {one.path for one in report.applied}
    unseen = [
        one
        for one in found
        if one.meaning.level != "fast"
        and not (one.safe or one.path in done or (one.code, one.path) in told)
    ]
    return worst_first([*report.remaining, *unseen])

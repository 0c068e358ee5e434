"""Bringing the sidecar of a store in step with its files, whatever state it is in.

`syncing` follows the files in one commit; here the lock is taken and what stands in the way of that
commit, a part that is damaged, is put aside first. Writes no truth file.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from filestore import inspecting, recovery, syncing
from filestore.catalog import CatalogDamagedError
from filestore.findings import Finding
from filestore.locking import DEFAULT_WAIT_S, writer_lock
from filestore.parts import Parts
from filestore.progress import OnProgress, ignore
from filestore.syncing import SyncReport

if TYPE_CHECKING:
    from filestore.subject import Level

EMBEDDINGS: Final = ".sidecar/embeddings.sqlite"
Chosen = Callable[[Finding], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How far a store is to be brought in step."""

    embed: bool = True
    """Whether texts without embedding are embedded now."""
    forget_missing: bool = False
    """Whether a mass of missing files is meant to be gone."""
    first: "Level | None" = None
    """Verify at this level before, and mend what that finds, too."""
    chosen: Chosen | None = None
    """Which findings are mended; None for all that touch only the sidecar."""
    wait_s: float = DEFAULT_WAIT_S
    """How long to wait for another writer."""


def catch_up(parts: Parts, wanted: Wanted, on_progress: OnProgress = ignore) -> SyncReport:
    """Apply every repair that touches only the sidecar.

    Raises:
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; the old generation stays.
    """
    from filestore.embed.cache import EmbeddingsDamaged

    mended: list[Finding] = []
    if wanted.first is not None:
        checked = inspecting.verified(parts, wanted.first, None, on_progress)
        mended = mend(parts, checked.findings, checked.unsound, wait_s=wanted.wait_s)
    try:
        report = follow(parts, wanted, on_progress)
    except (CatalogDamagedError, EmbeddingsDamaged) as error:
        # Damage that opening did not show: put it aside, and follow the files afresh.
        from filestore.without_catalog import part_finding

        mended += mend(parts, [part_finding(error)], wait_s=wanted.wait_s)
        report = follow(parts, wanted, on_progress)
    return replace(report, applied=_once([*mended, *report.applied]))


def _once(applied: Iterable[Finding]) -> tuple[Finding, ...]:
    """What was applied, the embeddings as a whole once: opening them and counting them tell it."""
    seen: dict[Finding | tuple[str, str], Finding] = {}
    for finding in applied:
        is_file = finding.code == "embeddings-damaged" and finding.path == EMBEDDINGS
        seen.setdefault((finding.code, finding.path) if is_file else finding, finding)
    return tuple(seen.values())


def follow(parts: Parts, wanted: Wanted, on_progress: OnProgress = ignore) -> SyncReport:
    """Follow the files in one commit."""
    with parts.writing("sync", wait_s=wanted.wait_s) as (catalog, embeddings, mended):
        with parts.commit(catalog, embeddings, embed=wanted.embed) as commit:
            report = syncing.sync(
                parts.subject(catalog, embeddings),
                commit,
                clock=parts.clock(),
                forget_missing=wanted.forget_missing,
                on_progress=on_progress,
                chosen=wanted.chosen,
            )
        return replace(report, applied=(*mended, *report.applied))


def mend(
    parts: Parts,
    found: Iterable[Finding],
    unsound: Sequence[bytes] = (),
    *,
    wait_s: float = DEFAULT_WAIT_S,
) -> list[Finding]:
    """Put aside what findings, and keys of wrong vectors, condemn; see `recovery.mend`."""
    parts.close()
    with writer_lock(
        parts.places.lock, command="filestore sync", wait_s=wait_s, on_wait=parts.on_wait
    ):
        return recovery.mend(parts.places, parts.model.embedder, found, unsound)

"""Enriching as it is asked for: the store brought up to date, the generator and its cache opened.

One rule: one run at a time. Two would pay for the same results.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from filestore.config.layout import ENRICH_LOCK, GENERATED
from filestore.core.errors import UsageError
from filestore.core.progress import OnProgress, ignore
from filestore.enrich.plan import EnrichPlan, EnrichReport, Wanted, Wish
from filestore.enrich.run import Enriching
from filestore.fs import disk
from filestore.fs.lock import writer_lock
from filestore.generate.base import MOST_QUESTIONS
from filestore.generate.cache import GeneratedCache
from filestore.git import repository
from filestore.sidecar import recover
from filestore.sync import apply as syncing

if TYPE_CHECKING:
    from filestore.generate import Generator
    from filestore.sidecar.session import Parts


def wish(parts: Parts, resources: Sequence[str], wanted: Wanted) -> Wish:
    """What is asked for, the resources by their exact names.

    Raises:
        UnknownResourceError: There is no such resource.
    """
    from filestore.browse.file import resource_named

    if not resources:
        return Wish(**wanted)
    with parts.reading() as catalog:
        names = [resource_named(catalog, name, parts.places) for name in resources]
    return Wish(tuple(dict.fromkeys(names)), **wanted)


def plan(
    parts: Parts, wish: Wish, *, generator: str | None = None, on_progress: OnProgress = ignore
) -> EnrichPlan:
    """What enriching would take; changes nothing, and asks nobody.

    Raises:
        UnknownGenerator: There is no such generator.
        UnknownResourceError: There is no such resource.
        EndpointUntrusted: The generator would reach what this store may not.
    """
    _check(parts, wish)
    opened = _opened(parts, generator)
    asked = replace(wish, replace=generator is not None)
    with GeneratedCache.open(_cache(parts)) as cache:
        return Enriching(parts, opened, asked, on_progress=on_progress).plan(cache)


def enrich(
    parts: Parts,
    wish: Wish,
    *,
    generator: str | None = None,
    stop: threading.Event | None = None,
    on_progress: OnProgress = ignore,
) -> EnrichReport:
    """Sync, then make and write what is wanted. What fails is in the report, the rest goes on.

    Args:
        parts: Of the store.
        wish: What is asked for.
        generator: Another one than the store's.
        stop: Set when no more is to be begun.
        on_progress: Called with the progress.

    Raises:
        As `plan`, and:
        GitBusyError: A merge, rebase or the like is under way.
        LockedError: Another writer holds the store, or another run is under way.
        WriteFailedError: The disk refused; what was written before stays.
    """
    _check(parts, wish)
    repository.refuse_during_operation(parts.places.root)
    parts.model.ask()
    opened = _opened(parts, generator)
    syncing.catch_up(parts, syncing.Wanted(), on_progress)
    asked = replace(wish, replace=generator is not None)
    recover.make_sidecar(parts.places)
    lock = os.path.join(parts.places.sidecar, ENRICH_LOCK)
    with (
        disk.disk_errors(parts.places.sidecar),
        writer_lock(lock, command="filestore enrich", on_wait=parts.on_wait),
        GeneratedCache.open(_cache(parts)) as cache,
    ):
        return Enriching(parts, opened, asked, stop=stop, on_progress=on_progress).run(cache)


def _opened(parts: Parts, name: str | None) -> Generator:
    """The generator.

    Raises:
        ModelMissing: What it makes could not be embedded, and making it costs nothing later either.
    """
    opened = parts.model.generator(name)
    if opened.is_free and parts.model.embedder is None:
        raise parts.model.why_not
    return opened


def _check(parts: Parts, wish: Wish) -> None:
    if wish.questions is not None and not 1 <= wish.questions <= MOST_QUESTIONS:
        raise UsageError(f"--questions must be 1 to {MOST_QUESTIONS}, found {wish.questions}")
    if wish.across and not parts.layout.has_folders:
        raise UsageError(
            "--across needs the tree layout: elsewhere a summary belongs to one source",
            remedy="filestore enrich, without --across",
        )
    if wish.budget is not None and wish.budget < 0:
        raise UsageError(f"--budget must not be negative, found {wish.budget}")


def _cache(parts: Parts) -> str:
    return os.path.join(parts.places.sidecar, GENERATED)

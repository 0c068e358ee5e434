"""Gives texts their vectors after the files are indexed, and keywords find them.

One rule: the writer's lock is held for a turn of about two seconds, each a commit of its own. So
others write meanwhile, two processes embed no text twice, and what is interrupted loses nothing.
"""

import math
import time
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import CatalogMissingError
from filestore.core.errors import FilestoreError
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.fs.lock import DEFAULT_WAIT_S, LockedError
from filestore.sidecar.session import Parts

TURN_S: Final = 2.0
_PAUSE_S: Final = 0.06
"""Between two turns: whoever waits for the lock looks more often."""

R = TypeVar("R", bound=Struct)


class Embedded(Struct, frozen=True, kw_only=True):
    """What was embedded."""

    texts: int = 0
    waiting: int = 0
    """Texts that have no vector still."""
    problem: FilestoreError | None = None
    """Why not."""

    @property
    def goes_on(self) -> bool:
        """Whether it is worth going on: some texts wait still, and others were embedded."""
        return self.texts > 0 and self.waiting > 0 and self.problem is None

    def added_to(self, report: R) -> R:
        """A report with what was embedded after it was made."""
        values: Any = report
        field = "not_embedded" if hasattr(report, "not_embedded") else "problem"
        told = {field: getattr(report, field) or self.problem}
        return replace(report, embedded=values.embedded + self.texts, **told)


def embed_waiting(
    parts: Parts,
    *,
    wait_s: float = DEFAULT_WAIT_S,
    on_progress: OnProgress = ignore,
) -> Embedded:
    """Embed the texts that wait for their vector, in turns.

    Args:
        parts: The store's, which say for how long.
        wait_s: How long to wait for another writer.
        on_progress: Called with the number of texts.

    Raises:
        WriteFailedError: The disk refused; what was embedded is kept.
    """
    ends_s = math.inf if parts.embed_for_s is None else time.monotonic() + parts.embed_for_s
    done = Embedded(waiting=_waiting(parts))
    total = done.waiting
    ordered: list[int] = []
    try:
        while done.waiting and done.problem is None:
            is_whole = not ordered
            turn = _turn(parts, ordered, ends_s, wait_s, total)
            done = replace(turn, texts=done.texts + turn.texts)
            total = max(total, done.texts + done.waiting)
            on_progress(Progress(stage="embedding", done=total - done.waiting, total=total))
            if (is_whole and not turn.texts) or time.monotonic() >= ends_s:
                break
            time.sleep(_PAUSE_S)
    except LockedError as error:
        # What was done before is not to be lost with it.
        return replace(done, problem=error)
    except KeyboardInterrupt as error:
        with parts.reading() as catalog:
            texts = catalog.count("vectors")
            has = texts - catalog.waiting_count()
        error.add_note(f"{has:,} of {texts:,} texts have vectors\nrun 'filestore sync'")
        raise
    return done


def embed_some(parts: Parts, vectors: list[int], *, until_s: float, wait_s: float) -> None:
    """Embed some texts that wait for their vector, in one turn.

    Args:
        parts: The store's.
        vectors: Their ids, last first.
        until_s: No batch begins after this moment of the monotonic clock; the first always does.
        wait_s: How long to wait for another writer.

    Raises:
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    if _waiting(parts):
        _turn(parts, vectors, until_s, wait_s, len(vectors), is_quick=True)


def _turn(
    parts: Parts,
    ordered: list[int],
    ends_s: float,
    wait_s: float,
    total: int,
    *,
    is_quick: bool = False,
) -> Embedded:
    parts.close()
    with (
        parts.writing("embed", wait_s=wait_s) as (catalog, embeddings, _),
        parts.commit(catalog, embeddings, embed=True) as commit,
    ):
        if is_quick:
            commit.be_quick()
        try:
            commit.embed_waiting(ordered, min(ends_s, time.monotonic() + TURN_S))
        except KeyboardInterrupt:
            commit.finish()
            raise
        is_last = not catalog.waiting_count()
        if is_last and parts.home.lag(catalog, changed=total):
            commit.want_index(whole=False)
        made = commit.finish()
    return Embedded(texts=made.embedded, waiting=_waiting(parts), problem=made.problem)


def _waiting(parts: Parts) -> int:
    """How many texts wait; 0 where the model that is to embed them is not here."""
    try:
        with parts.reading() as catalog:
            if parts.same_model(catalog) is None:
                return 0
            return parts.models.waiting(catalog)
    except CatalogMissingError:
        return 0

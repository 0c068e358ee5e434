"""What is indexed while somebody waits for an answer: little of it, or turn by turn.

One rule: it forgets nothing. What is gone keeps its last text until a person syncs.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog, queries
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.core.paths import ChunkPath, folder_of
from filestore.fs.scan import TreeScan
from filestore.fs.stats import unpack_stat
from filestore.sidecar.fulltext_file import own_stamp
from filestore.sidecar.session import Parts
from filestore.sync.actions import ReadHistory, Session
from filestore.sync.apply import (
    NOTHING,
    TURN_S,
    SyncPlan,
    SyncReport,
    apply,
    embed_some,
    tree_actions,
)
from filestore.verify import drift

MOST_FILES: Final = 50
MOST_BYTES: Final = 1_000_000
EMBED_S: Final = 2.0
"""For so long texts get their vectors before the answer."""
WAIT_S: Final = 0.2
"""So long another writer is waited for."""


class Turn(Struct, frozen=True, kw_only=True):
    """How much is indexed at once, where a caller waits for all of it."""

    files: int = MOST_FILES
    size_bytes: int = MOST_BYTES
    wait_s: float = WAIT_S
    """How long to wait for another writer."""
    done: frozenset[ChunkPath] = frozenset()
    """Files that an earlier turn had."""

    def after(self, paths: Iterable[ChunkPath], took_s: float) -> "Turn":
        """The next one, with more or less in it, so that none takes long."""
        times = 2.0 if took_s < TURN_S / 4 else 1.0 if took_s < TURN_S else 0.5
        return replace(
            self,
            files=max(1, int(self.files * times)),
            size_bytes=int(self.size_bytes * times),
            done=self.done.union(paths),
        )

    def first_of(self, tree: TreeScan, paths: Sequence[ChunkPath]) -> list[ChunkPath]:
        """The first of some files that are few and small enough together, but one at least."""
        wanted = [path for path in paths if path not in self.done][: self.files]
        size = 0
        for number, size_bytes in enumerate(_sizes(tree, wanted)):
            size += size_bytes
            if number and size > self.size_bytes:
                return wanted[:number]
        return wanted


def is_little(tree: TreeScan, paths: Sequence[ChunkPath]) -> bool:
    """Whether files are few and small enough to be indexed before an answer."""
    return len(paths) <= MOST_FILES and sum(_sizes(tree, paths)) <= MOST_BYTES


def _sizes(tree: TreeScan, paths: Sequence[ChunkPath]) -> Iterator[int]:
    """The size of each file in bytes; each folder is unpacked once."""
    folders = {folder: tree.folders[folder].entries() for folder in set(map(folder_of, paths))}
    for path in paths:
        yield unpack_stat(folders[folder_of(path)][path.rpartition("/")[2]])[0]


class TakenUp(Struct, frozen=True, kw_only=True):
    """What was indexed of what is new, edited or moved."""

    why_not: str = ""
    """Why nothing was."""
    report: SyncReport
    paths: Sequence[ChunkPath] = ()
    """The files that were read."""


def take_up(parts: Parts, tree: TreeScan, of: tuple[str, int], turn: Turn | None = None) -> TakenUp:
    """Index what is new, edited or moved, and embed it for two seconds.

    Args:
        parts: Of the store; not read meanwhile.
        tree: As it is.
        of: Identity and generation of the catalog that it was compared with.
        turn: How much of it, without vectors; None for all, where that is little.

    Raises:
        LockedError: Another writer holds the store, and held it for `WAIT_S`.
        FilestoreError, OSError: Nothing can be written.
    """
    wait_s = turn.wait_s if turn else WAIT_S
    with parts.writing("search", wait_s=wait_s) as (catalog, embeddings, _):
        # A sync has to come first that repairs more than what was edited.
        stamp, generation = own_stamp(parts.places, catalog), catalog.generation
        if generation and (stamp is None or stamp.generation != generation):
            return TakenUp(report=NOTHING, why_not="the full-text index has to be made first")
        if parts.model.embedder is not None and parts.same_model(catalog) is None:
            return TakenUp(report=NOTHING, why_not="the settings name another model")
        with parts.commit(catalog, embeddings, embed=False) as commit:
            commit.be_quick()
            snapshot = parts.snapshot(catalog, embeddings)
            if turn or (catalog.identity, catalog.generation) == of:
                # Each file is read again; only which ones there are is taken from before.
                snapshot = replace(snapshot, tree=tree)
            seen = drift.detect(snapshot)
            if turn:
                seen = replace(seen, to_read=tuple(turn.first_of(tree, seen.to_read)))
            came = [*seen.to_read, *(look.path for _, look in seen.moves)]
            if seen.mass_missing or (turn is None and len(came) > MOST_FILES):
                return TakenUp(report=NOTHING, why_not="the files changed meanwhile")
            seen = replace(seen, gone=(), left_out=())
            accepts = partial(_is_to_be_indexed, catalog)
            session = Session(
                snapshot=snapshot, commit=commit, clock=parts.clock(), accepts=accepts
            )
            todo = [*tree_actions(seen), ReadHistory()]
            report = apply(session, SyncPlan(actions=todo))
        if turn:
            return TakenUp(report=report, paths=came)
        # Their texts that have no vector yet, the last first.
        rows = catalog.files(came).values()
        own = set(catalog.vectors_of_files([row.id for row in rows]))
        every = queries.waiting_vectors(catalog) if own else []
        waiting = [one for one in reversed(every) if one in own]
    if waiting and parts.model.reaches is None and not parts.home.elsewhere:
        embed_some(parts, waiting, until_s=time.monotonic() + EMBED_S, wait_s=WAIT_S)
    return TakenUp(report=report, paths=came)


def _is_to_be_indexed(catalog: Catalog, seen: Observation | tuple[ChunkPath, OSError]) -> bool:
    """Whether a file is no worse than it was: of what broke, each answer is to say so."""
    if not isinstance(seen, Observation) or seen.pending or seen.state in (INDEXED, RECORD):
        return True
    known = catalog.files([seen.path]).get(seen.path)
    return known is None or known.state != INDEXED


def count_differing(parts: Parts, catalog: Catalog, tree: TreeScan) -> tuple[int, int, int]:
    """How many files are new, edited and moved, by reading what may be."""
    snapshot = replace(parts.snapshot(catalog, None), tree=tree)
    seen = drift.detect(snapshot)
    arrived = {new: old for old, new in seen.edited_moves}
    codes = [one.code for one in drift.changed_findings(snapshot, seen.to_read, arrived)]
    new = codes.count("untracked")
    return new, codes.count("modified") + codes.count("metadata-modified"), len(seen.moves)

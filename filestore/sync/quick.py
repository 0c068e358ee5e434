"""Indexes what is new, edited or moved where that is little: before an answer.

One rule: it forgets nothing. What is gone keeps its last text until a person syncs.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from filestore.catalog import Catalog, queries
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.core.paths import ChunkPath, folder_of
from filestore.fs.scan import TreeScan
from filestore.fs.stats import unpack_stat
from filestore.sidecar.fulltext_file import own_stamp
from filestore.sidecar.session import Parts
from filestore.sync.actions import Session
from filestore.sync.apply import SyncPlan, apply, embed_some, tree_actions
from filestore.verify import drift
from filestore.verify.run import changed_findings

MOST_FILES: Final = 50
MOST_BYTES: Final = 1_000_000
EMBED_S: Final = 2.0
"""For so long texts get their vectors before the answer."""
WAIT_S: Final = 0.2
"""So long another writer is waited for."""


def is_little(tree: TreeScan, paths: Sequence[ChunkPath]) -> bool:
    """Whether files are few and small enough to be indexed before an answer."""
    if len(paths) > MOST_FILES:
        return False
    folders = {folder: tree.folders[folder].entries() for folder in set(map(folder_of, paths))}
    entries = (folders[folder_of(path)][path.rpartition("/")[2]] for path in paths)
    return sum(unpack_stat(entry)[0] for entry in entries) <= MOST_BYTES


def why_not(parts: Parts, catalog: Catalog) -> str:
    """Why a sync has to come first, which repairs more than what was edited; "" where none has."""
    stamp = own_stamp(parts.places, catalog)
    generation = catalog.generation
    if generation and (stamp is None or stamp.generation != generation):
        return "the full-text index has to be made first"
    if parts.model.embedder is not None and parts.same_model(catalog) is None:
        return "the settings name another model"
    return ""


def take_up(parts: Parts, tree: TreeScan, of: tuple[str, int]) -> str:
    """Index what is new, edited or moved, and embed for two seconds what that brought.

    Args:
        parts: Of the store; not read meanwhile.
        tree: As it is.
        of: Identity and generation of the catalog that it was compared with.

    Returns:
        Why nothing was indexed, or "".

    Raises:
        LockedError: Another writer holds the store, and held it for `WAIT_S`.
        FilestoreError, OSError: Nothing can be written.
    """
    with parts.writing("search", wait_s=WAIT_S) as (catalog, embeddings, _):
        if reason := why_not(parts, catalog):
            return reason
        with parts.commit(catalog, embeddings, embed=False) as commit:
            commit.be_quick()
            snapshot = parts.snapshot(catalog, embeddings)
            if (catalog.identity, catalog.generation) == of:
                # Each file is read again; only which ones there are is taken from before.
                snapshot = replace(snapshot, tree=tree)
            seen = drift.detect(snapshot)
            came = [*seen.to_read, *(look.path for _, look in seen.moves)]
            if seen.mass_missing or len(came) > MOST_FILES:
                return "the files changed meanwhile"
            seen = replace(seen, gone=(), left_out=())
            accepts = partial(_is_to_be_indexed, catalog)
            session = Session(
                snapshot=snapshot, commit=commit, clock=parts.clock(), accepts=accepts
            )
            apply(session, SyncPlan(actions=tree_actions(seen)))
        # Their texts that have no vector yet, the last first.
        rows = catalog.files(came).values()
        own = set(catalog.vectors_of_files([row.id for row in rows]))
        every = queries.waiting_vectors(catalog) if own else []
        waiting = [one for one in reversed(every) if one in own]
    if waiting and parts.model.reaches is None and not parts.home.elsewhere:
        embed_some(parts, waiting, until_s=time.monotonic() + EMBED_S, wait_s=WAIT_S)
    return ""


def _is_to_be_indexed(catalog: Catalog, seen: Observation | tuple[ChunkPath, OSError]) -> bool:
    """Whether a file is no worse than it was: of what broke, each answer is to say so."""
    if not isinstance(seen, Observation) or seen.pending or seen.state in (INDEXED, RECORD):
        return True
    known = catalog.files([seen.path]).get(seen.path)
    return known is None or known.state != INDEXED


def count(parts: Parts, catalog: Catalog, tree: TreeScan) -> tuple[int, int, int]:
    """How many files are new, edited and moved, by reading what may be."""
    snapshot = replace(parts.snapshot(catalog, None), tree=tree)
    seen = drift.detect(snapshot)
    arrived = {new: old for old, new in seen.edited_moves}
    codes = [one.code for one in changed_findings(snapshot, seen.to_read, arrived)]
    new = codes.count("untracked")
    return new, codes.count("modified") + codes.count("metadata-modified"), len(seen.moves)

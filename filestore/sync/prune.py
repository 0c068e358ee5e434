"""Removing the embeddings that nothing needs: texts here, batches of undo and views keep theirs.

One rule: who cannot say what a text needs keeps everything. What is needed is counted under the
lock under which the rest goes.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import Catalog, in_batches, queries
from filestore.chunks.layout import observe_bytes
from filestore.chunks.observation import Observation
from filestore.core.errors import RefusedError
from filestore.core.paths import StorePath
from filestore.core.schema import JsonObject
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.git.process import work_tree
from filestore.history.backup_store import Originals
from filestore.sidecar.file_rows import kept_texts
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import texts_now
from filestore.verify import drift
from filestore.verify.recorded_state import documents_cut_otherwise

if TYPE_CHECKING:
    from filestore.embed.cache import EmbeddingCache
    from filestore.sidecar.snapshot import StoreSnapshot

_FILES_AT_ONCE: Final = 64
_FLOAT_BYTES: Final = 4
_ROW_BYTES: Final = 40
"""Of a row besides its vector: key and checksum."""

Elsewhere = Callable[[], Iterable[bytes]]
"""The keys of texts that others than the store's files and its undo have."""


class NotPrunedError(RefusedError):
    """What is needed is unknown, so nothing is removed."""


class Pruning(
    JsonObject,
    Struct,
    frozen=True,
    kw_only=True,
    rename={"size_bytes": "bytes", "is_done": "removed"},
):
    """The embeddings that no passage here, no batch of undo and no view has."""

    embeddings: int
    """How many no passage here, no batch of undo and no view of a commit has, of all models."""
    size_bytes: int
    """What they take."""
    kept: int
    """How many are needed."""
    is_done: bool
    """Whether they were removed; not with `--plan`."""


NOTHING: Final = Pruning(embeddings=0, size_bytes=0, kept=0, is_done=False)


def plan(parts: Parts, elsewhere: Elsewhere) -> Pruning:
    """What `prune` would remove; changes nothing.

    Raises:
        CatalogMissingError, NotPrunedError: What is needed is unknown.
        EmbeddingsMissing: There are none.
    """
    from filestore.embed.cache import EmbeddingCache

    catalog = parts.catalog()
    with (
        EmbeddingCache.open(parts.places.embeddings, read_only=True) as embeddings,
        catalog.snapshot(),
    ):
        unneeded = _unneeded(parts, catalog, embeddings, elsewhere)
        return _pruning(embeddings, unneeded, is_done=False)


def prune(parts: Parts, elsewhere: Elsewhere, *, wait_s: float = DEFAULT_WAIT_S) -> Pruning:
    """Remove the embeddings that nothing needs, of every model, and shrink their file.

    Raises:
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; what is needed is there, the next call goes on.
        CatalogMissingError, NotPrunedError: What is needed is unknown.
    """
    parts.catalog()
    parts.close()
    with parts.writing("embeddings prune", wait_s=wait_s) as (catalog, embeddings, _):
        with parts.commit(catalog, embeddings, embed=False) as commit:
            unneeded = _unneeded(parts, catalog, embeddings, elsewhere)
            done = _pruning(embeddings, unneeded, is_done=True)
            for fingerprint, keys in unneeded.items():
                embeddings.discard(fingerprint, keys)
            if done.embeddings:
                # The catalog counts them: any other number has it look for what was lost.
                commit.finish()
        embeddings.shrink()
    return done


def is_in_git(parts: Parts) -> bool:
    """Whether a branch of git may bring texts back: a work tree is around the store, or in it."""
    if work_tree(parts.places.root) is not None:
        return True
    folders = parts.catalog().folders()
    return any(
        os.path.lexists(os.path.join(parts.places.chunked, folder, ".git")) for folder in folders
    )


def _pruning(
    embeddings: "EmbeddingCache", unneeded: dict[str, list[bytes]], *, is_done: bool
) -> Pruning:
    sizes = embeddings.fingerprints()
    number = sum(map(len, unneeded.values()))
    return Pruning(
        embeddings=number,
        size_bytes=sum(
            len(keys) * (_ROW_BYTES + sizes[name] * _FLOAT_BYTES) for name, keys in unneeded.items()
        ),
        kept=sum(map(embeddings.count, sizes)) - number,
        is_done=is_done,
    )


def _unneeded(
    parts: Parts, catalog: Catalog, embeddings: "EmbeddingCache", elsewhere: Elsewhere
) -> dict[str, list[bytes]]:
    """The keys of the rows that may go, by the fingerprint of their model."""
    needed = {*_needed(parts, catalog), *elsewhere()}
    return {
        name: [key for key in embeddings.keys(name) if key not in needed]
        for name in embeddings.fingerprints()
    }


def _needed(parts: Parts, catalog: Catalog) -> Iterator[bytes]:
    """The keys of the texts that the store's files and its batches of undo have."""
    from filestore.embed import canary_keys

    snapshot = parts.snapshot(catalog, None)
    yield from canary_keys()
    yield from queries.text_keys(catalog)
    left_out = [path for path, _, _ in catalog.states()]
    yield from (key for key, _ in kept_texts(catalog, left_out))
    for paths in in_batches(drift.detect(snapshot).to_read, _FILES_AT_ONCE):
        _require_cut(parts, snapshot)
        yield from (key for _, key, _ in texts_now(parts.places, parts.layout, paths))
    for seen in _undoable(parts):
        if seen.pending:
            _require_cut(parts, snapshot)
            parts.layout.settle(seen)
        yield from seen.keys


def _require_cut(parts: Parts, snapshot: "StoreSnapshot") -> None:
    """Refuse to tell texts of documents in place that are cut otherwise than those indexed.

    Raises:
        NotPrunedError: The documents are to be cut again.
    """
    for finding in documents_cut_otherwise(snapshot):
        raise NotPrunedError(
            f"the documents are not indexed as they are to be: {finding.detail}",
            remedy="filestore sync",
        )


def _undoable(parts: Parts) -> Iterator[Observation]:
    """All files that an undo or a redo may restore."""
    if not os.path.isdir(parts.places.undo):
        return
    tree = parts.places.tree
    with Originals.open(parts.places.undo) as originals:
        for path, data in originals.contents():
            if tree.holds(path):
                yield observe_bytes(tree.chunk_path(StorePath(path)), data, layout=parts.layout)

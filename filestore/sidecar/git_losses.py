"""What git's HEAD has of the tree and the tree has not, for a catalog that cannot tell.

Asks git, reads files that may have moved; changes nothing. One rule: what git's index no longer has
was taken out on purpose, and is no loss.
"""

import os
from collections.abc import Iterator

from filestore.chunks.layout import Layout
from filestore.config.layout import Places
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath
from filestore.fs.scan import TreeScan
from filestore.git import repository, state
from filestore.sidecar.losses import (
    MODE,
    Lost,
    gone_findings,
    is_document,
    is_emptied,
    is_mass,
    vanished,
)


def lost(places: Places, layout: Layout, tree: TreeScan) -> Lost:
    """The chunk files and records that HEAD and git's index have, and a tree has not.

    A file of which another, that HEAD does not have, holds the very bytes was moved. Nothing is
    called lost below what cannot be read, nor where a sparse checkout leaves it out.
    """
    have = {
        path: name
        for path, name in repository.checked_in(places.root, places.tree).items()
        if _is_ours(path, layout)
    }
    if not have:
        return Lost()

    def named(added: list[ChunkPath]) -> dict[ChunkPath, bytes]:
        """What git would call those of new files that are ours."""
        like = next(iter(have.values()))
        return dict(
            _named(places, layout, [path for path in added if _is_ours(path, layout)], like)
        )

    gone = sorted(vanished({path: name.encode() for path, name in have.items()}, tree, named))
    if layout.is_in_place:
        # What is there and no part of the tree is left out by its rules.
        gone = [path for path in gone if not os.path.lexists(os.path.join(places.chunked, path))]
    return Lost(gone=tuple(gone), known=len(have))


def findings(places: Places, layout: Layout, tree: TreeScan) -> list[Finding]:
    """What is lost where there is no catalog: each file, or one finding for a mass of them."""
    found = lost(places, layout, tree)
    mass = is_mass(
        found.gone,
        found.known,
        emptied=is_emptied(tree, layout),
        deleted=lambda: set(),
    )
    return gone_findings(places.tree, found.gone, found.known, is_mass=mass)


def _is_ours(path: ChunkPath, layout: Layout) -> bool:
    name = path.rpartition("/")[2]
    layout = layout.of(path)
    if layout.is_in_place and not is_document(path):
        return False
    return not layout.unread_code(name, MODE, 0)


def _named(
    places: Places, layout: Layout, paths: list[ChunkPath], like: str
) -> Iterator[tuple[ChunkPath, bytes]]:
    """The name that git would give to each file."""
    for path in paths:
        data = state.read_start(os.path.join(places.chunked, path), layout.most_bytes)
        yield path, repository.blob_name(data, like).encode()

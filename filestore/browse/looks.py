"""Files of an answer as they are now: which are fresh, edited or gone, and which are excluded.

One rule: the same as for the hits of a search.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Final

from filestore.catalog import Catalog, FileRow
from filestore.chunks.layout import Layout
from filestore.config.layout import Places
from filestore.core.paths import ChunkPath
from filestore.search import freshness
from filestore.search.freshness import Look, Looker

NO_PARTS: Final[Mapping[ChunkPath, int]] = MappingProxyType({})


def looks(
    places: Places,
    layout: Layout,
    catalog: Catalog,
    paths: Sequence[ChunkPath],
    parts: Mapping[ChunkPath, int] = NO_PARTS,
) -> Iterator[tuple[FileRow, Look]]:
    """The row of each indexed file, and what it is now, in the order given.

    Args:
        places: The store's.
        layout: What its files mean.
        catalog: Inside a snapshot.
        paths: Files; those that the catalog does not have are left out.
        parts: Which section of a document is meant, where it is not the first.
    """
    rows = catalog.files(paths)
    with closing(Looker(places, layout, catalog)) as looker:
        looker.begin()
        for path in paths:
            if path in rows:
                look = looker.look(rows[path], parts.get(path, 0))
                if look.freshness != "fresh" and not catalog.row_is_sound(rows[path]):
                    look = Look(freshness=None, code=freshness.MISMATCH)
                yield rows[path], look

"""Files of an answer as they are now: which are fresh, edited or gone, and which are excluded.

One rule: the same as for the hits of a search.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing

from filestore.catalog import Catalog, FileRow
from filestore.chunks.layout import Layout
from filestore.config.layout import Places
from filestore.core.paths import ChunkPath
from filestore.search import freshness
from filestore.search.freshness import Look, Looker


def looks(
    places: Places, layout: Layout, catalog: Catalog, paths: Sequence[ChunkPath]
) -> Iterator[tuple[FileRow, Look]]:
    """The row of each indexed file, and what it is now, in the order given.

    Args:
        places: The store's.
        layout: What its files mean.
        catalog: Inside a snapshot.
        paths: Files; those that the catalog does not have are left out.
    """
    for row, _, look in looks_at_texts(places, layout, catalog, [(path, 0) for path in paths]):
        yield row, look


def looks_at_texts(
    places: Places, layout: Layout, catalog: Catalog, texts: Sequence[tuple[ChunkPath, int]]
) -> Iterator[tuple[FileRow, int, Look]]:
    """The same of texts: files, and which section of a document is meant; each with its section."""
    rows = catalog.files(list(dict.fromkeys(path for path, _ in texts)))
    with closing(Looker(places, layout, catalog)) as looker:
        looker.begin()
        for path, part in texts:
            if path in rows:
                look = looker.look(rows[path], part)
                if look.freshness != "fresh" and not catalog.row_is_sound(rows[path]):
                    look = Look(freshness=None, code=freshness.MISMATCH)
                yield rows[path], part, look

"""What a document in place has: its sections with their vectors, its summaries. Reads only.

As `material` for chunk files. One rule: nothing is written into a document; what is made of it lies
in a folder of its own below `.filestore-summaries/`.
"""

from filestore.catalog import FileRow, summaries
from filestore.chunks import kept
from filestore.chunks.chunk_file import texts as texts_of
from filestore.chunks.observation import DOCUMENT, INDEXED
from filestore.core.paths import SUMMARIES, ChunkPath, inside
from filestore.enrich.material import Material, Text, leaves_of, present_of, read_file
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.sidecar.summary_tree import SummaryTree


def gather(snapshot: StoreSnapshot, tree: SummaryTree, resource: str) -> Material:
    """Read one document from the catalog."""
    rows = [row for row in snapshot.catalog.files_of(resource) if row.state == INDEXED]
    made = {row.path: read_file(snapshot, row) for row in rows if row.kind == "summary"}
    texts: dict[bytes, Text] = {}
    title, path = resource, ChunkPath(resource)
    for row in rows:
        if row.kind == DOCUMENT:
            path = row.path
            title = row.headings_and_pages()[0][0] if row.headings_and_pages()[0] else resource
            texts = _sections(snapshot, row)
    leaves, vectors, lacking = leaves_of(snapshot, texts)
    return Material(
        resource=resource,
        folder=inside(ChunkPath(SUMMARIES), path),
        source=None,
        title=title,
        chunks={},
        summaries=made,
        leaves=leaves,
        texts={leaf.key: texts[leaf.key].text for leaf in leaves},
        vectors=vectors,
        without_vector=lacking,
        present=present_of(tree, made),
    )


def _sections(snapshot: StoreSnapshot, row: FileRow) -> dict[bytes, Text]:
    """The sections of a document, each text once, by their keys."""
    chunk = kept.read(snapshot.catalog.content(row.id) or b"")
    found: dict[bytes, Text] = {}
    keys = summaries.section_keys(snapshot.catalog, row.id)
    for key, text in zip(keys, texts_of(chunk), strict=True):
        found.setdefault(key, Text(path=row.path, text=text))
    return found

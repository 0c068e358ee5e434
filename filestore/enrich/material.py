"""What a resource has: its texts with their vectors, its files, its summaries. Reads only.

Taken from the catalog, in which a text and its hash belong together; what is on disk is held
against it when a file is written. Two rules: a text is one for all files that have it; and nothing
is written into a document in place: what is made of it lies in a folder of its own below
`.filestore-summaries/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.catalog import FileRow, summaries
from filestore.chunking import count_tokens
from filestore.chunks import chunk_file, kept, questions_file
from filestore.chunks.chunk_file import Chunk
from filestore.chunks.observation import DOCUMENT, INDEXED, RECORD
from filestore.chunks.questions_file import Block
from filestore.core.paths import QUESTIONS, SUMMARIES, TOP, ChunkPath, folder_of, inside
from filestore.enrich.tree import Leaf, Present
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.sidecar.summary_tree import SummaryTree

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from filestore.chunks.chunk_file import Chunk
    from filestore.sidecar.snapshot import StoreSnapshot
    from filestore.sidecar.summary_tree import SummaryTree


class ChunkFile(Struct, kw_only=True):
    """A chunk file or a summary, as it was indexed last."""

    path: ChunkPath
    data: bytes
    chunk: Chunk

    def take(self, data: bytes) -> None:
        """Note that the file was written."""
        self.data, self.chunk = data, chunk_file.parse(data)

    @property
    def text(self) -> str:
        """What is embedded of it, questions aside."""
        return chunk_file.embed_text(self.chunk.headings, self.chunk.body)


class SectionText(ChunkFile, kw_only=True):
    """A section of a document in place, as if it were a chunk file with its questions."""

    key: bytes
    """The embedding key of its text."""


class QuestionsFile(Struct, frozen=True, kw_only=True):
    """The questions for the sections of a document in place, as they were indexed last."""

    path: ChunkPath
    data: bytes | None = None
    """None where there are none."""
    blocks: Mapping[bytes, Block] = field(default_factory=dict)
    """By the key of the text that they were made from."""


class Text(Struct, frozen=True, kw_only=True):
    """A text and its file."""

    path: ChunkPath
    text: str


class Material(Struct, frozen=True, kw_only=True):
    """One document."""

    resource: str
    folder: ChunkPath
    """Where its new summaries go."""
    source: str | None = None
    """What its summaries name as their source where the layout needs one."""
    title: str = ""
    chunks: Mapping[ChunkPath, ChunkFile] = field(default_factory=dict)
    """In reading order."""
    summaries: Mapping[ChunkPath, ChunkFile]
    leaves: tuple[Leaf, ...]
    """Each text once, in reading order; those without a vector are left out."""
    texts: Mapping[bytes, str]
    """Theirs, by their keys."""
    vectors: NDArray[np.float32]
    """Theirs, ``(n, dim) float32, rows of length 1``."""
    without_vector: int
    present: tuple[Present, ...]
    excluded: frozenset[ChunkPath] = frozenset()
    """Its files that are excluded from search for now: their texts are not known."""
    sections: Sequence[SectionText] = ()
    """Of a document in place, each text once."""
    questions: QuestionsFile | None = None
    """The file of their questions; None for chunk files, which have their own, and where it cannot
    be read."""
    unread: tuple[ChunkPath, ...] = ()
    """Files that cannot be read, and so stay as they are."""


STORE_TREE: Final = "_store"
"""The folder, and so the resource, of the summaries over all resources."""


def gather_across(snapshot: StoreSnapshot, tree: SummaryTree) -> Material:
    """What every resource has on top: its root, or the one text that it has."""
    catalog = snapshot.catalog
    texts: dict[bytes, Text] = {}
    for resource, _, count in catalog.resources():
        top = _top(snapshot, tree, resource) if count and resource != STORE_TREE else None
        if top is not None:
            row, key = top
            texts.setdefault(key, Text(path=row.path, text=read_file(snapshot, row).text))
    rows = [row for row in catalog.files_of(STORE_TREE) if row.state == INDEXED]
    made = {row.path: read_file(snapshot, row) for row in rows}
    return Material(
        resource=STORE_TREE, folder=ChunkPath(STORE_TREE), **shared_of(snapshot, tree, texts, made)
    )


def _top(snapshot: StoreSnapshot, tree: SummaryTree, resource: str) -> tuple[FileRow, bytes] | None:
    rows = [row for row in snapshot.catalog.files_of(resource) if row.state == INDEXED]
    keys = summaries.body_keys(snapshot.catalog, resource)
    own = {row.path for row in rows}
    roots = [
        row
        for row in rows
        if tree.is_summary(row.path) and not own.intersection(tree.parents(row.path))
    ]
    if roots:
        top = min(roots, key=lambda row: (-tree.level(row.path), row.path))
        return top, keys[top.id]
    rows.sort(key=lambda row: chunk_file.sort_key(row.position, row.path))
    return (rows[0], keys[rows[0].id]) if len({*keys.values()}) == 1 else None


def gather(snapshot: StoreSnapshot, tree: SummaryTree, resource: str) -> Material:
    """Read one resource from the catalog."""
    catalog = snapshot.catalog
    every = catalog.files_of(resource)
    rows = [row for row in every if row.state == INDEXED]
    rows.sort(key=lambda row: chunk_file.sort_key(row.position, row.path))
    files = {row.path: read_file(snapshot, row) for row in rows}
    kinds = {row.path: row.kind for row in rows}
    chunks = {path: file for path, file in files.items() if kinds[path] != "summary"}
    made = {path: file for path, file in files.items() if kinds[path] == "summary"}
    keys = summaries.body_keys(catalog, resource)
    texts: dict[bytes, Text] = {}
    for row in rows:
        if row.path in chunks and row.id in keys:
            texts.setdefault(keys[row.id], Text(path=row.path, text=chunks[row.path].text))
    is_flat = snapshot.layout.shares_folder
    owners = catalog.sources_of_resources() if is_flat else {}
    source = next((one for one, name in owners.items() if name == resource), None)
    # The top folder of its files; the top itself where files lie there.
    tops = {ChunkPath(folder_of(row.path).partition("/")[0]) for row in rows}
    folder = TOP if is_flat else min(tops, default=ChunkPath(resource))
    first = next(iter(chunks.values()), None)
    return Material(
        resource=resource,
        folder=folder,
        source=source,
        # The headings of the first text, else the name of the resource.
        title=first.chunk.headings[0] if first and first.chunk.headings else resource,
        chunks=chunks,
        excluded=excluded_of(every),
        **shared_of(snapshot, tree, texts, made),
    )


def excluded_of(rows: Iterable[FileRow]) -> frozenset[ChunkPath]:
    """Those of some files that are excluded from search."""
    return frozenset(row.path for row in rows if row.state not in (INDEXED, RECORD))


def read_file(snapshot: StoreSnapshot, row: FileRow) -> ChunkFile:
    """A chunk file as it was indexed last."""
    data = snapshot.catalog.content(row.id) or b""
    return ChunkFile(path=row.path, data=data, chunk=chunk_file.parse(data))


def shared_of(
    snapshot: StoreSnapshot,
    tree: SummaryTree,
    texts: Mapping[bytes, Text],
    made: Mapping[ChunkPath, ChunkFile],
) -> dict[str, Any]:
    """What every `Material` has: its texts, by their keys, and the summaries of them."""
    import numpy as np

    leaves: tuple[Leaf, ...] = ()
    vectors: NDArray[np.float32] = np.zeros((0, 1), dtype=np.float32)
    embedder, embeddings = snapshot.embedder, snapshot.embeddings
    if embedder is not None and embeddings is not None and texts:
        every, found = embeddings.get(embedder.fingerprint, list(texts))
        leaves = tuple(
            Leaf(path=one.path, key=key, tokens=count_tokens(one.text))
            for (key, one), is_there in zip(texts.items(), found.tolist(), strict=True)
            if is_there
        )
        vectors = every[found]
    present: list[Present] = []
    for path in filter(tree.is_summary, made):
        children: dict[ChunkPath, frozenset[bytes]] = {}
        for child in tree.children(path):
            children[child.path] = children.get(child.path, frozenset()) | {child.key}
        present.append(Present(path=path, level=tree.level(path), children=children))
    return {
        "summaries": made,
        "leaves": leaves,
        "texts": {leaf.key: texts[leaf.key].text for leaf in leaves},
        "vectors": vectors,
        "without_vector": len(texts) - len(leaves),
        "present": tuple(present),
    }


_HEADING_SEPARATOR: Final = " > "


def gather_document(snapshot: StoreSnapshot, tree: SummaryTree, resource: str) -> Material:
    """Read one document from the catalog."""
    rows = snapshot.catalog.files_of(resource)
    indexed = {row.path: row for row in rows if row.state == INDEXED}
    document = next((row for row in indexed.values() if row.kind == DOCUMENT), None)
    made = {
        path: read_file(snapshot, row) for path, row in indexed.items() if row.kind == "summary"
    }
    folder = inside(ChunkPath(SUMMARIES), document.path if document else ChunkPath(resource))
    path = inside(folder, QUESTIONS)
    excluded = excluded_of(rows)
    unread = (path,) if path in excluded or ChunkPath(resource) in excluded else ()
    questions = None
    if not unread:
        row = indexed.get(path)
        data = snapshot.catalog.content(row.id) if row is not None else None
        blocks = questions_file.blocks_of(kept.read(data).body) if data is not None else ()
        questions = QuestionsFile(path=path, data=data, blocks=questions_file.joined(blocks))
    sections = _sections(snapshot, document, questions) if document else []
    texts = {one.key: Text(path=document.path, text=one.text) for one in sections if document}
    headings = document.headings_and_pages()[0] if document else ()
    return Material(
        resource=resource,
        folder=folder,
        title=headings[0] if headings else resource,
        excluded=excluded,
        sections=() if unread else sections,
        questions=questions,
        unread=unread,
        **shared_of(snapshot, tree, texts, made),
    )


def _sections(
    snapshot: StoreSnapshot, row: FileRow, questions: QuestionsFile | None
) -> list[SectionText]:
    """The sections of a document, each text once, with the questions that are theirs."""
    chunk = kept.read(snapshot.catalog.content(row.id) or b"")
    keys = summaries.section_keys(snapshot.catalog, row.id)
    found: dict[bytes, SectionText] = {}
    for key, section in zip(keys, chunk.sections, strict=True):
        body = chunk.body[section.start : section.end]
        one = replace(chunk, headings=section.headings, body=body, sections=())
        path = questions.path if questions is not None else row.path
        found.setdefault(key, SectionText(path=path, data=b"", chunk=one, key=key))
    blocks = of_sections(list(found.values()), questions)
    for key, block in blocks.items():
        found[key].chunk = replace(
            found[key].chunk,
            questions=block.questions,
            questions_origin=block.questions_origin,
        )
    return list(found.values())


def of_sections(
    sections: Sequence[SectionText], questions: QuestionsFile | None
) -> dict[bytes, Block]:
    """The block of each section, by the section's key.

    Where a text changed, it is the one that stood under the same headings.
    """
    blocks = questions.blocks if questions is not None else {}
    own = {one.key: blocks[one.key] for one in sections if one.key in blocks}
    left: dict[str, list[Block]] = {}
    for block in blocks.values():
        if block.key not in own and block.heading:
            left.setdefault(block.heading, []).append(block)
    for one in sections:
        same = left.get(heading_of(one.chunk)) if one.key not in own else None
        if same:
            own[one.key] = same.pop(0)
    return own


def heading_of(chunk: Chunk) -> str:
    """The heading of the questions of a section."""
    return f"## {_HEADING_SEPARATOR.join(chunk.headings)}".rstrip()

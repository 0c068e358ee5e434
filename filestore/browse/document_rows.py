"""Documents in place as a screen lists them: folders, documents, and the sections of each.

Reads no file of the tree. One rule: what is listed of all documents is their names and how many
sections they have; what has to be read of a document is read of those in sight.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from filestore.browse.row_words import OPENING_BYTES, first_words
from filestore.catalog import (
    Catalog,
    CatalogPages,
    FileRow,
    file_of_text,
    part_of_text,
    queries,
    text_id,
)
from filestore.chunks import kept
from filestore.chunks.chunk_file import Chunk, Section
from filestore.core.paths import ChunkPath, StorePath, Tree, folder_of, is_made
from filestore.fs.stats import STAT_BYTES, unpack_names, unpack_stat


class ResourceRow(Struct, frozen=True, kw_only=True):
    """One resource."""

    resource: str
    """Its name; in place that of a document, or the path of a folder with "/" behind it."""
    chunks: int
    """Chunk files, excluded ones included; sections of a document in place, and of a folder of
    some its documents."""
    source: str = ""
    """What its record names; "" where that is not known."""
    title: str = ""
    """Of its one document; "" where its metadata has none, or it has several documents."""
    document: int = 0
    """The id of a document in place; 0 for a folder, whose name ends with "/"."""


class DocumentRow(Struct, frozen=True, kw_only=True):
    """What is read of a document for its row."""

    id: int
    path: StorePath
    title: str
    """What it calls itself; else its first words."""
    sections: int
    size_bytes: int | None
    """Of the file as it was indexed; None where that is not known."""
    withheld: str
    """The code that keeps it out of answers, "" for none."""


class SectionRow(Struct, frozen=True, kw_only=True):
    """One section of a document."""

    id: int
    path: StorePath
    headings: tuple[str, ...]
    """From the outermost in; without the title of the document."""
    words: str
    """The first ones below its headings."""
    line: int
    """In the file, from 1; 0 where that has no lines of its own."""
    page: int
    """From 1; 0 where there are none."""
    size_bytes: int
    """Of its text."""


def entries(pages: CatalogPages) -> list[ResourceRow]:
    """All folders and documents, what is in a folder behind it: its folders first."""
    counts = pages.part_counts()
    documents: dict[str, list[ResourceRow]] = {}
    for identifier, name in pages.names():
        row = ResourceRow(resource=name, chunks=counts.get(identifier, 0), document=identifier)
        documents.setdefault(_folder(name), []).append(row)
    return list(_in_order(documents))


def top_entries(pages: CatalogPages) -> list[ResourceRow]:
    """Those that lie in no folder, with how much is below; much quicker than all."""
    folders: Counter[str] = Counter()
    loose: list[tuple[int, str]] = []
    for identifier, name in pages.names():
        first, slash, _ = name.partition("/")
        if slash:
            folders[first] += 1
        else:
            loose.append((identifier, name))
    counts = pages.part_counts([identifier for identifier, _ in loose])
    found = [
        ResourceRow(resource=f"{name}/", chunks=folders[name])
        for name in sorted(folders, key=_by_name)
    ]
    rows = [
        ResourceRow(resource=name, chunks=counts.get(one, 0), document=one) for one, name in loose
    ]
    return found + sorted(rows, key=lambda row: _by_name(row.resource))


def _in_order(documents: Mapping[str, list[ResourceRow]]) -> Iterator[ResourceRow]:
    inside: dict[str, set[str]] = {}
    below: Counter[str] = Counter()
    for folder, rows in documents.items():
        while folder:
            below[folder] += len(rows)
            above = _folder(folder)
            inside.setdefault(above, set()).add(folder)
            folder = above
    # Not by recursion: folders may be nested deeper than that goes.
    stack = [("", False)]
    while stack:
        folder, is_listed = stack.pop()
        if is_listed:
            yield from sorted(documents.get(folder, ()), key=lambda row: _by_name(row.resource))
            continue
        if folder:
            yield ResourceRow(resource=f"{folder}/", chunks=below[folder])
        stack.append((folder, True))
        held = sorted(inside.get(folder, ()), key=_by_name, reverse=True)
        stack += [(one, False) for one in held]


def _by_name(name: str) -> tuple[str, str]:
    return name.casefold(), name


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def documents_of(catalog: Catalog, pages: CatalogPages, resource: str) -> list[int]:
    """The document of a name, or those below a folder, in order; none for an unknown name."""
    if resource.endswith("/"):
        found = (row for row in entries(pages) if row.resource.startswith(resource))
        return [row.document for row in found if row.document]
    return [row.id for row in catalog.files_of(resource) if not is_made(row.path)]


def section_ids(pages: CatalogPages, document: int) -> "array[int]":
    """The sections of a document, by full-text id."""
    count = pages.part_counts([document]).get(document, 0)
    return array("q", [text_id(document, part) for part in range(count)])


def section_at(catalog: Catalog, document: int, line: int) -> int:
    """The section of a document that holds a line, by full-text id; 0 for none."""
    chunk = read(catalog, document)
    for part, one in enumerate(chunk.sections if chunk is not None else ()):
        if one.line <= line <= one.end_line:
            return text_id(document, part)
    return 0


# What is read of those in sight


def documents(tree: Tree, catalog: Catalog, ids: Sequence[int]) -> dict[int, DocumentRow]:
    """What is known of some documents; unknown ids are left out."""
    rows = catalog.files_by_id(ids)
    stats = dict(stats_of(catalog, [row.path for row in rows.values()]))
    sizes = {path: values[0] for path, values in stats.items() if values[3]}
    counts = CatalogPages(catalog).part_counts(ids)
    return {
        one: DocumentRow(
            id=one,
            path=tree.store_path(row.path),
            title=_title(read(catalog, one)),
            sections=counts.get(one, 0),
            size_bytes=sizes.get(row.path),
            withheld=row.state,
        )
        for one, row in rows.items()
    }


def sections(tree: Tree, catalog: Catalog, ids: Sequence[int]) -> dict[int, SectionRow]:
    """What is known of some sections, by full-text id; unknown ids are left out."""
    rows = catalog.files_by_id(list({file_of_text(one) for one in ids}))
    texts = {file: read(catalog, file) for file in rows}
    found = {}
    for one in ids:
        file, part = file_of_text(one), part_of_text(one)
        chunk = texts.get(file)
        if chunk is not None and part < len(chunk.sections):
            found[one] = _section_row(tree, rows[file], chunk, one, chunk.sections[part])
    return found


def read(catalog: Catalog, document: int) -> Chunk | None:
    """A document as it was indexed; None where nothing was kept of it."""
    data = catalog.content(document)
    try:
        return None if data is None else kept.read(data)
    except ValueError:
        return None


def _title(chunk: Chunk | None) -> str:
    if chunk is None:
        return ""
    return chunk.headings[0] if chunk.headings else _opening(chunk.body, ())


def _section_row(
    tree: Tree, row: FileRow, chunk: Chunk, identifier: int, section: Section
) -> SectionRow:
    body = chunk.body[section.start : section.end]
    headings = section.headings
    return SectionRow(
        id=identifier,
        path=tree.store_path(row.path),
        headings=headings[1:] if headings[:1] == chunk.headings[:1] else headings,
        words=_opening(body, headings),
        line=section.line,
        page=section.page,
        size_bytes=len(body.encode("utf-8", "surrogateescape")),
    )


def _opening(body: str, headings: Sequence[str]) -> str:
    """The first words of a text that are none of its headings."""
    rest = body[:OPENING_BYTES].strip()
    while rest:
        words = first_words(rest.encode("utf-8", "surrogateescape"))
        if words not in headings:
            return words
        rest = rest.partition("\n")[2].strip()
    return ""


def stats_of(
    catalog: Catalog, paths: Iterable[ChunkPath]
) -> Iterator[tuple[ChunkPath, tuple[int, int, int, int, int]]]:
    """The stats of files as they were recorded; none of those that are not known."""
    wanted: dict[ChunkPath, dict[str, ChunkPath]] = {}
    for path in paths:
        wanted.setdefault(folder_of(path), {})[path.rpartition("/")[2]] = path
    for folder, names in wanted.items():
        packed_folder = folder.encode("utf-8", "surrogateescape")
        for packed, stats in queries.folder_stats(catalog, packed_folder):
            for place, held in enumerate(unpack_names(packed)):
                if held in names:
                    packed_stat = stats[place * STAT_BYTES : (place + 1) * STAT_BYTES]
                    yield names[held], unpack_stat(packed_stat)

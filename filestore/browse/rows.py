"""A row of a list of what a store holds, and how rows are read from the catalog.

Reads no file of the tree. One rule: of all resources, documents and folders only the names and how
much is in them is read; the rest is read of the rows in sight, from the first bytes alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import (
    Catalog,
    CatalogPages,
    ages,
    file_of_text,
    part_of_text,
    queries,
    text_id,
)
from filestore.chunks.chunk_file import Chunk, kind_of_name
from filestore.chunks.observation import RECORD
from filestore.config.settings import KeyNames
from filestore.core.paths import NO_PATH, ChunkPath, StorePath, Tree, folder_of, is_made
from filestore.fs.stats import STAT_BYTES, unpack_names, unpack_stat
from filestore.sidecar.summary_tree import ChildState

OPENING_BYTES: Final = 4_096
"""Of a file that are looked at: frontmatter, and where it ends, the first lines."""
_MOST_CHARACTERS: Final = 80
"""Of the first words."""
_FRONTMATTER: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_ITS_END: Final = re.compile(rb"^---[ \t]*\r?$\n?", re.MULTILINE)
_SIGNS: Final = re.compile(r"^(?:#{1,6}\s+|[-*+>|]\s+|\d+[.)]\s+|`{3,}\w*|~{3,}\w*|[-=*_|: ]+$)")
"""What Markdown puts before the words of a line, and lines that are nothing else."""


class Measure(Struct, frozen=True):
    """How large a resource or a document is, and when it last changed."""

    size_bytes: int | None
    """As it was indexed; None where that is not known."""
    day: str
    """In ISO 8601; "" where that is not known."""


class Row(Struct, frozen=True, kw_only=True):
    """One row of a list; what does not apply, or is not read for it, has no value."""

    kind: Literal["resource", "folder", "document", "section", "chunk", "summary"]
    """In place, a resource is a "document", or a "folder" of some."""
    id: int = 0
    """Of the file in the catalog, of a section its full-text id; 0 for a folder."""
    path: StorePath = NO_PATH
    resource: str = ""
    """Its name; in place that of a document, or the path of a folder with "/" behind it."""
    title: str = ""
    """Of its metadata; else its first heading, or its first words. Of a resource that of its one
    document, of a section the first words below its headings."""
    headings: tuple[str, ...] = ()
    """Above it in its document, from the outermost in; of a section those it has itself, too,
    without the title of the document."""
    children: int = 0
    """Of a resource its chunk files, excluded ones and summaries included; of a folder the
    documents below it, of a document its sections, of a summary what it was made from."""
    source: str = ""
    """Of a resource what its record names; of a chunk file its document. Relative to the store
    root; "" where that is not known, or the record of the resource tells it."""
    size_bytes: int | None = None
    """As it was indexed; None where that is not known."""
    line: int = 0
    """In the file, from 1; 0 where that has no lines of its own."""
    page: int = 0
    """From 1; 0 where there are none."""
    edited: bool = False
    """Whether its body differs from what was generated."""
    excluded: str = ""
    """The code that keeps it out of answers, "" for none."""
    level: int = 0
    """Of a summary: one more than the highest child's; 0 for a text."""
    state: ChildState = "fresh"
    """Of the file, as a child of the summary above it."""
    why: str = ""
    """Why the summary is out of date; "" where it is not."""


def first_words(opening: bytes) -> str:
    """The first words of a chunk file, its first heading if it begins with one; "" for none. Pure.

    Args:
        opening: Its first 4,096 bytes, or all of it.
    """
    body = opening
    begin = _FRONTMATTER.match(opening)
    if begin is not None:
        end = _ITS_END.search(opening, begin.end())
        if end is None:
            return ""
        body = opening[end.end() :]
    # The last character may be cut in two.
    for text in body.decode("utf-8", "ignore").splitlines():
        words = " ".join(_SIGNS.sub("", text.strip()).split())
        if len(words) > _MOST_CHARACTERS:
            whole, _, rest = words[: _MOST_CHARACTERS + 1].rpartition(" ")
            return f"{whole or rest[:_MOST_CHARACTERS]}…"
        if words:
            return words
    return ""


# Resources, documents and folders: all of them


def resources(pages: CatalogPages) -> list[Row]:
    """All resources in any layout: in the flat one a record without chunk files names one, too."""
    sources, records = pages.record_sources(), pages.record_sizes()
    sizes = dict.fromkeys(sources, 0) | dict(pages.resource_sizes(None, None))
    titles = pages.document_titles()
    return [
        Row(
            kind="resource",
            resource=name,
            source=sources.get(name, ""),
            children=files - records.get(name, 0),
            title=titles.get(name, ""),
        )
        for name, files in sorted(sizes.items())
        if name or files > records.get("", 0)
    ]


def resource_page(pages: CatalogPages, after: str | None, limit: int) -> list[Row]:
    """Some resources of the tree layout, where records lie in the folder of their own."""
    sizes = pages.resource_sizes(after, limit)
    titles = pages.document_titles([name for name, _ in sizes])
    found = []
    for name, files in sizes:
        records, source = pages.records_below(ChunkPath(name))
        row = Row(
            kind="resource",
            resource=name,
            source=source,
            children=files - records,
            title=titles.get(name, ""),
        )
        found.append(row)
    return found


def entries(pages: CatalogPages) -> list[Row]:
    """All folders and documents, what is in a folder behind it: its folders first."""
    counts = pages.part_counts()
    documents: dict[str, list[Row]] = {}
    for identifier, name in pages.names():
        row = _document(identifier, name, counts)
        documents.setdefault(_folder(name), []).append(row)
    inside: dict[str, set[str]] = {}
    below: Counter[str] = Counter()
    for folder, rows in documents.items():
        while folder:
            below[folder] += len(rows)
            above = _folder(folder)
            inside.setdefault(above, set()).add(folder)
            folder = above
    # Not by recursion: folders may be nested deeper than that goes.
    found: list[Row] = []
    stack = [("", False)]
    while stack:
        folder, is_listed = stack.pop()
        if is_listed:
            found += sorted(documents.get(folder, ()), key=lambda row: _by_name(row.resource))
            continue
        if folder:
            found.append(Row(kind="folder", resource=f"{folder}/", children=below[folder]))
        stack.append((folder, True))
        held = sorted(inside.get(folder, ()), key=_by_name, reverse=True)
        stack += [(one, False) for one in held]
    return found


def top_entries(pages: CatalogPages) -> list[Row]:
    """The ones in no folder, with how much is below; much quicker than all."""
    folders, loose = pages.top_names()
    counts = pages.part_counts([identifier for identifier, _ in loose])
    found = [
        Row(kind="folder", resource=f"{name}/", children=folders[name])
        for name in sorted(folders, key=_by_name)
    ]
    rows = [_document(one, name, counts) for one, name in loose]
    return found + sorted(rows, key=lambda row: _by_name(row.resource))


def _document(identifier: int, name: str, counts: Mapping[int, int]) -> Row:
    return Row(kind="document", id=identifier, resource=name, children=counts.get(identifier, 0))


def _by_name(name: str) -> tuple[str, str]:
    return name.casefold(), name


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def documents_of(catalog: Catalog, pages: CatalogPages, resource: str) -> list[int]:
    """The document of a name, or those below a folder, in order; none for an unknown name."""
    if resource.endswith("/"):
        found = (row for row in entries(pages) if row.resource.startswith(resource))
        return [row.id for row in found if row.id]
    return [row.id for row in catalog.files_of(resource) if not is_made(row.path)]


def section_at(catalog: Catalog, document: int, line: int) -> int:
    """The section of a document that holds a line, by full-text id; 0 for none."""
    chunk = read(catalog, document)
    for part, one in enumerate(chunk.sections if chunk is not None else ()):
        if one.line <= line <= one.end_line:
            return text_id(document, part)
    return 0


def measures(
    tree: Tree, catalog: Catalog, keys: KeyNames, resources: Sequence[str] | None
) -> dict[str, Measure]:
    """The size and the date of resources, or of all; folders and unknown names are left out.

    Args:
        tree: Of the store.
        catalog: Inside a snapshot.
        keys: What documents call their dates.
        resources: Their names; None for all.
    """
    extents = CatalogPages(catalog).extents(resources)
    found = catalog.files_by_id([first for _, first, _ in extents])
    files = [ages.aged(row, tree, catalog.source_of(row)) for row in found.values()]
    says = ages.statements(catalog, files, keys, only=("created", "updated"))
    dates = ages.ages(catalog, tree, files, says)
    stats: dict[ChunkPath, tuple[int, int, int, int, int]] = {}
    if tree.has_sections:
        # What is kept of a document is not its bytes.
        stats = dict(stats_of(catalog, [row.path for row in found.values()]))
    known = {}
    for name, first, kept_bytes in extents:
        size_bytes: int | None = kept_bytes
        if tree.has_sections:
            stat = stats.get(found[first].path)
            size_bytes = stat[0] if stat is not None and stat[3] else None
        updated = dates[first].updated if first in dates else None
        known[name] = Measure(size_bytes, updated.day if updated is not None else "")
    return known


# What is read of those in sight


def chunks(tree: Tree, catalog: Catalog, ids: Sequence[int]) -> dict[int, Row]:
    """What is known of some chunk files; unknown ids are left out."""
    found = {}
    openings, titles = opening_words(catalog, ids), queries.titles_of_files(catalog, ids)
    for one, row in catalog.files_by_id(ids).items():
        size_bytes, words = openings.get(one, (None, ""))
        kind = row.kind or kind_of_name(row.path)
        found[one] = Row(
            kind="summary" if kind == "summary" else "chunk",
            id=one,
            path=tree.store_path(row.path),
            title=titles.get(one, "") or words,
            headings=row.headings_and_pages()[0],
            source=row.source or "",
            size_bytes=size_bytes,
            edited=row.edited,
            excluded="" if row.state == RECORD else row.state,
        )
    return found


def made_summaries(tree: Tree, catalog: Catalog, ids: Sequence[int]) -> dict[int, Row]:
    """What is known of some summaries of documents in place; other ids are left out.

    They are called what they are headed with: their names are numbers.
    """
    found = {}
    for one, row in chunks(tree, catalog, ids).items():
        if row.kind == "summary":
            *above, title = row.headings or (row.title,)
            found[one] = replace(row, title=title, headings=tuple(above))
    return found


def opening_words(catalog: Catalog, ids: Sequence[int]) -> dict[int, tuple[int, str]]:
    """The size and the first words of some files; those without content are left out."""
    openings = CatalogPages(catalog).openings(ids, OPENING_BYTES)
    return {one: (size, first_words(opening)) for one, (size, opening) in openings.items()}


def documents(tree: Tree, catalog: Catalog, ids: Sequence[int]) -> dict[int, Row]:
    """What is known of some documents; unknown ids are left out."""
    rows = catalog.files_by_id(ids)
    stats = dict(stats_of(catalog, [row.path for row in rows.values()]))
    sizes = {path: values[0] for path, values in stats.items() if values[3]}
    found = {}
    for one, row in rows.items():
        chunk = read(catalog, one)
        title = opening(chunk.body, ()) if chunk is not None else ""
        found[one] = Row(
            kind="document",
            id=one,
            path=tree.store_path(row.path),
            title=chunk.headings[0] if chunk is not None and chunk.headings else title,
            size_bytes=sizes.get(row.path),
            excluded=row.state,
        )
    return found


def sections(tree: Tree, catalog: Catalog, ids: Sequence[int]) -> dict[int, Row]:
    """What is known of some sections, by full-text id; unknown ids are left out."""
    rows = catalog.files_by_id(list({file_of_text(one) for one in ids}))
    texts = {file: read(catalog, file) for file in rows}
    found = {}
    for one in ids:
        file, part = file_of_text(one), part_of_text(one)
        chunk = texts.get(file)
        if chunk is not None and part < len(chunk.sections):
            section = chunk.sections[part]
            body, headings = chunk.body[section.start : section.end], section.headings
            found[one] = Row(
                kind="section",
                id=one,
                path=tree.store_path(rows[file].path),
                headings=headings[1:] if headings[:1] == chunk.headings[:1] else headings,
                title=opening(body, headings),
                line=section.line,
                page=section.page,
                size_bytes=len(body.encode("utf-8", "surrogateescape")),
            )
    return found


def read(catalog: Catalog, document: int) -> Chunk | None:
    """A document as it was indexed; None where nothing was kept of it."""
    # With it comes what reads Markdown, which the first rows do not need.
    from filestore.chunks import kept

    data = catalog.content(document)
    try:
        return None if data is None else kept.read(data)
    except ValueError:
        return None


def opening(body: str, headings: Sequence[str]) -> str:
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
    """The stats of files as they were recorded; none of unknown ones."""
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

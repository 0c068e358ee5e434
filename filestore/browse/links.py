"""The links of a chunk file or an original, and the links to it.

Three kinds: those of notes in place; a person's own, from chunk file to chunk
file, which the catalog keeps; and links that came with an original, which lead from where it lies
to other originals. One rule: what an original links to is known from the records of the store, and
never looked for on the disk.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.browse.named import files_named, rows_of
from filestore.browse.original import rows_at
from filestore.browse.spans import NoLineError, Range
from filestore.catalog import Catalog, FileRow, decode_path, encode_path, in_batches, queries
from filestore.chunks import kept
from filestore.chunks.frontmatter import split
from filestore.chunks.links import (
    Names,
    document_of,
    link_key,
    path_keys,
    target_of,
    written_path,
)
from filestore.config.layout import Places
from filestore.core.errors import FilestoreError
from filestore.core.findings import FromIndex
from filestore.core.paths import ChunkPath, StorePath, Tree
from filestore.core.schema import JsonObject
from filestore.extract import for_name
from filestore.extract import links as extracted
from filestore.extract.markdown_read import destinations, percent_decoded
from filestore.search import freshness
from filestore.search.freshness import Freshness, Look
from filestore.sidecar.session import Parts
from filestore.sidecar.standing import names_called

State = Literal["there", "gone", "moved", "dangling", "not added"]
BROKEN: Final = frozenset({"gone", "moved", "dangling"})
"""States of a person's own link that leads nowhere as it is written."""


class Link(JsonObject, Struct, frozen=True, kw_only=True):
    """One link, as it was indexed."""

    path: StorePath
    """The chunk file, or the document in place, that has it."""
    line: int | None
    """Where in that file, as it was indexed; None for the children of a summary, in the metadata of
    a note, and in a document without lines."""
    freshness: Freshness
    """Of that file: `fresh`, `edited` or `gone`."""
    target: str
    """The chunk file, the original or the document that it leads to; where a note names no file,
    as the note has it."""
    state: State
    """`there`; of a chunk file also `gone`, `moved` or `dangling`; `not added` for an original that
    no record names, and for a file in place that is there and not indexed."""
    moved_to: StorePath | None = None
    """Where the target went."""


class Links(FromIndex, frozen=True, kw_only=True):
    """The links of some chunk files, and those to them or to their original."""

    to: tuple[StorePath, ...]
    """The chunk files that were named."""
    source: str | None
    """The original that was named; None where a chunk file was."""
    generation: int
    """Of the index that answered."""
    outgoing: tuple[Link, ...]
    """Links in these files, in reading order."""
    incoming: tuple[Link, ...]
    """Links to these files, or to their original, by path."""
    notes: tuple[str, ...]
    """What to know about this answer."""

    @property
    def broken(self) -> tuple[Link, ...]:
        """Links that lead nowhere."""
        return tuple(link for link in self.outgoing if link.state in BROKEN)


def links(parts: Parts, path: str) -> Links:
    """What links there are from and to a chunk file, or an original.

    Args:
        parts: The store's.
        path: PATH or PATH:LINE; see `files_named`.

    Raises:
        UnknownPathError, NoLineError: There is no such file, or line.
        CatalogMissingError: There is no catalog yet.
    """
    catalog, tree = parts.catalog(), parts.places.tree
    with catalog.snapshot():
        asked = files_named(parts.places, catalog, path)
        if parts.places.tree.has_sections:
            (row,) = asked.rows
            outgoing = note_links(parts.places, catalog, row, asked.line)
            incoming = backlinks(parts.places, catalog, row.path)
        else:
            documents = {source for _, _, source, _ in catalog.documents()}
            outgoing = [
                link
                for row in asked.rows
                for link in _outgoing(tree, catalog, row, documents, asked.line)
            ]
            sources = {catalog.source_of(row) for row in asked.rows if row.origin}
            originals = {source for source in sources if source}
            incoming = _incoming(tree, catalog, asked.paths, originals)
        # What the files at both ends are now.
        found = [*outgoing, *incoming]
        ends = {end for link in found for end in (link.path, link.target) if tree.holds(end)}
        texts = [(tree.chunk_path(StorePath(end)), 0) for end in sorted(ends)]
        looks = freshness.looks(parts, catalog, texts)
        now = {tree.store_path(row.path): look for row, _, look in looks}
        return Links(
            to=tuple(map(tree.store_path, asked.paths)),
            source=asked.source,
            generation=catalog.generation,
            outgoing=tuple(_as_now(outgoing, now)),
            incoming=tuple(_as_now(incoming, now)),
            notes=tuple(freshness.notes(list(now.values()))),
        )


class NoTargetError(FilestoreError, LookupError):
    """A link leads to nothing that can be shown."""


def followed(parts: Parts, path: str, written: str) -> tuple[StorePath, str]:
    """Where a link of a file leads: a file of the store, and a heading in it or "".

    Args:
        parts: The store's.
        path: The file that has it.
        written: Its destination as it is written, or ``[[name#heading]]``.

    Raises:
        NoTargetError: It leads nowhere, or out of the store.
    """
    is_wiki = written.startswith("[[")
    named, _, heading = (written[2:-2] if is_wiki else written).partition("#")
    if not is_wiki and extracted.is_external(written):
        raise NoTargetError(f"{written} leads out of the store: open it in a browser")
    heading = heading if is_wiki else percent_decoded(heading) or ""
    named = named.strip() if is_wiki else named.partition("?")[0]
    if not named:
        return StorePath(path), heading
    kind: Literal["wiki", "markdown"] = "wiki" if is_wiki else "markdown"
    link = extracted.Link(kind=kind, target=named, heading=heading, label="", line=0)
    with parts.reading() as catalog:
        tree, note = parts.places.tree, parts.places.tree.chunk_path(StorePath(path))
        if tree.has_sections:
            target = names_called(catalog, frozenset([link_key(link)])).resolve(link, note)
            if target is not None:
                return tree.store_path(target), heading
            raise _nowhere(parts, catalog, written_path(link, note), written)
        row = catalog.files([note]).get(note)
        own = target_of(note, named) if row is not None and not is_wiki else None
        if own is not None and own in catalog.files([own]):
            return tree.store_path(own), heading
        if own is not None and (new := queries.renamed_to(catalog, encode_path(own))) is not None:
            return tree.store_path(decode_path(new)), heading
        source = catalog.source_of(row) if row is not None else None
        if source is not None:
            # Originals name each other as notes do, also outside the store.
            up = "../" * source.split("/").count("..")
            documents = [
                ChunkPath(one.removeprefix(up))
                for _, _, one, _ in catalog.documents()
                if one.startswith(up)
            ]
            below = Names(documents).resolve(link, ChunkPath(source.removeprefix(up)))
            found = f"{up}{below}"
            rows = rows_of(catalog, found) if below is not None else []
            if rows:
                named_part = Range(unit="section", heading=heading)
                with suppress(NoLineError):
                    rows = [*(rows_at(parts.places, catalog, found, rows, named_part))] or rows
                return tree.store_path(rows[0].path), heading
    raise NoTargetError(f"{written} leads to nothing in this store")


def _nowhere(parts: Parts, catalog: Catalog, path: ChunkPath, written: str) -> NoTargetError:
    is_there = path and os.path.lexists(os.path.join(parts.places.chunked, path))
    if is_there and not catalog.closes(path):
        return NoTargetError(f"{written} exists, but is not a document of the store")
    return NoTargetError(f"{written} leads to nothing in this store")


# Links of notes in place: which file a name means changes with the names of all files.


def note_links(
    places: Places, catalog: Catalog, row: FileRow, line: int | None = None
) -> list[Link]:
    """The links of one note, in order, as it was indexed; of a line, those in it.

    What leads nowhere and would be no document, such as a picture, is left out.
    """
    found = _links_in(catalog.content(row.id) or b"")
    names = names_called(catalog, frozenset(map(link_key, found)))
    links = _resolved(places, catalog, row.path, found, names)
    return [one for one in links if line in (None, one.line)]


def backlinks(places: Places, catalog: Catalog, path: ChunkPath) -> list[Link]:
    """The links of other notes to a file, by path."""
    aliases = queries.files_with_key(catalog, "aliases")
    keys = path_keys(path, [alias for one, alias in aliases if one == path])
    names, target = names_called(catalog, keys), places.tree.store_path(path)
    links: list[Link] = []
    for batch in in_batches(sorted(keys)):
        for linking, data in queries.contents_linking(catalog, batch):
            note = decode_path(linking)
            if note != path:
                found = [link for link in _links_in(data) if link_key(link) in batch]
                resolved = _resolved(places, catalog, note, found, names)
                links += [one for one in resolved if (one.target, one.state) == (target, "there")]
    return sorted(links, key=lambda one: (one.path, one.line or 0))


def _links_in(data: bytes) -> list[extracted.Link]:
    """The links of a document to other files."""
    if not kept.is_document(data):
        return []
    return [link for link in kept.decode(data).links if link.target]


def _resolved(
    places: Places,
    catalog: Catalog,
    note: ChunkPath,
    found: Iterable[extracted.Link],
    names: Names,
) -> Iterator[Link]:
    for link in found:
        line, target = link.line or None, names.resolve(link, note)
        if target is not None:
            yield _link(places.tree, note, line, places.tree.store_path(target), "there")
            continue
        path = written_path(link, note) if for_name(link.target) else None
        if path is not None:
            # What the ignore rules leave out is there all the same.
            is_there = os.path.lexists(os.path.join(places.chunked, path))
            is_there = is_there and not catalog.closes(path)
            written = f"{link.target}#{link.heading}" if link.heading else link.target
            yield _link(places.tree, note, line, written, "not added" if is_there else "dangling")


# Links of chunk files


def _outgoing(
    tree: Tree, catalog: Catalog, row: FileRow, documents: set[str], line: int | None
) -> Iterator[Link]:
    """The links of one file; of a line, the ones in it."""
    own, source = catalog.links_of(row.id), catalog.source_of(row) if row.origin else None
    seen = set()
    for at, written in _written(catalog.content(row.id) or b""):
        if line is not None and at != line and source is None:
            continue
        target = target_of(row.path, written)
        document = document_of(source, written) if source else None
        if target in own:
            seen.add(target)
            yield _own_link(tree, catalog, row.path, target, at)
        elif document is not None and (_is_known(document, documents) or for_name(document)):
            state: State = "there" if _is_known(document, documents) else "not added"
            yield _link(tree, row.path, at, document, state)
    if line is None:
        for child in sorted(own - seen):
            yield _own_link(tree, catalog, row.path, child, None)


def _written(data: bytes) -> Iterator[tuple[int, str]]:
    """The destinations of the links of a chunk file, each with its line."""
    body = kept.read(data).body if data else ""
    first = split(data).head.count(b"\n") + 1
    for start, stop in destinations(body):
        yield first + body.count("\n", 0, start), body[start:stop]


def _is_known(document: str, documents: set[str]) -> bool:
    """Whether a path is a document of the store, or a folder of some."""
    return document in documents or any(one.startswith(f"{document}/") for one in documents)


def _own_link(
    tree: Tree, catalog: Catalog, path: ChunkPath, target: ChunkPath, line: int | None
) -> Link:
    if target in catalog.files([target]):
        return _link(tree, path, line, tree.store_path(target), "there")
    new = queries.renamed_to(catalog, encode_path(target))
    if new is None:
        return _link(tree, path, line, tree.store_path(target), "dangling")
    link = _link(tree, path, line, tree.store_path(target), "moved")
    return replace(link, moved_to=tree.store_path(decode_path(new)))


def _link(tree: Tree, path: ChunkPath, line: int | None, target: str, state: State) -> Link:
    return Link(
        path=tree.store_path(path),
        line=line,
        freshness="fresh",
        target=target,
        state=state,
    )


def _incoming(
    tree: Tree, catalog: Catalog, paths: Sequence[ChunkPath], originals: set[str]
) -> list[Link]:
    """A person's own links to some files, and those of other originals to theirs."""
    found = {
        (decode_path(linking), decode_path(target))
        for path in paths
        for linking, target in queries.links_to(catalog, encode_path(path))
    }
    made = list(_from_originals(tree, catalog, originals))
    for linking, target in found:
        (row,) = catalog.files([linking]).values()
        written = _written(catalog.content(row.id) or b"")
        lines = [line for line, one in written if target_of(linking, one) == target]
        # The children of a summary are in its frontmatter.
        made += [_own_link(tree, catalog, linking, target, line) for line in lines]
        made += [] if lines else [_own_link(tree, catalog, linking, target, None)]
    return sorted(made, key=lambda link: (link.path, link.line or 0, link.target))


def _from_originals(tree: Tree, catalog: Catalog, originals: set[str]) -> Iterator[Link]:
    """The links of chunk files that lead from their original to one of some others."""
    if not originals:
        return
    for path, own, line, document in _between_originals(catalog):
        if document in originals and document != own:
            yield _link(tree, decode_path(path), line, document, "there")


def _between_originals(catalog: Catalog) -> Iterator[tuple[bytes, str, int, str]]:
    """Each link that came with an original: chunk file, original, line and the file it names."""
    of_resource = {resource: source for source, resource in catalog.sources_of_resources().items()}
    for path, source, resource, data in queries.files_with_links(catalog):
        own = source or of_resource.get(resource)
        if own is None:
            continue
        for line, written in _written(data):
            if (document := document_of(own, written)) is not None:
                yield path, own, line, document


def linking_documents(tree: Tree, catalog: Catalog) -> dict[str, set[str]]:
    """In a chunk store the documents that have a link to one, by its name; summaries aside."""
    found: dict[str, set[str]] = {}
    for _, own, _, document in _between_originals(catalog):
        found.setdefault(document, set()).add(own)
    for target in queries.counts_of_link_keys(catalog):
        linking = [
            decode_path(one) for one, _ in queries.links_to(catalog, encode_path(ChunkPath(target)))
        ]
        rows = catalog.files([ChunkPath(target), *linking])
        names = {
            path: catalog.source_of(row) or tree.store_path(path)
            for path, row in rows.items()
            if row.kind != "summary"
        }
        if (name := names.pop(ChunkPath(target), None)) is not None:
            found.setdefault(name, set()).update(names.values())
    return {name: own - {name} for name, own in found.items()}


def _as_now(found: Iterable[Link], now: dict[StorePath, Look]) -> Iterator[Link]:
    """Links with what their ends are; those in files that are excluded from search go."""
    for link in found:
        look, target = now.get(link.path), now.get(StorePath(link.target))
        if look is None or look.freshness is None:
            continue
        is_gone = target is not None and target.freshness == "gone"
        state: State = "gone" if is_gone and link.state == "there" else link.state
        yield replace(link, freshness=look.freshness, state=state)

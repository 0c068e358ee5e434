"""What the catalog and the indexes hold of a file: its row, its texts, the words it is found by.

Writes nothing. A text is found by the names of its document, too, and the first one by the tags and
properties of that. A document in place has them itself; a chunk file is found by what the record of
its document says, whichever of the two comes first. One rule: the same files give the same words. A
file whose texts stay and that is found by other words now, since a property was changed, it lies
elsewhere, or the record of its document names it otherwise, gets a new id, as one whose text
changed, and keeps its vectors.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import (
    Catalog,
    FileRow,
    encode_place,
    in_batches,
    queries,
    text_id,
)
from filestore.chunking import without_data
from filestore.chunks import chunk_file, kept
from filestore.chunks.kept import pairs_of, pairs_of_user
from filestore.chunks.observation import DOCUMENT, INDEXED, Observation
from filestore.config.layout import RECORD_NAME
from filestore.core.hashing import vector_id
from filestore.core.paths import TOP, ChunkPath, folder_of, is_made

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.chunks.chunk_file import Chunk
    from filestore.chunks.layout import Layout
    from filestore.fulltext import Entry


_BATCH: Final = 64


def row_of(look: Observation, identifier: int, *, layout: "Layout", generation: int) -> FileRow:
    """The row of a file that was read."""
    chunk = look.chunk
    name = look.path.rpartition("/")[2]
    kind = (chunk.kind if chunk else None) or chunk_file.kind_of_name(name) or "chunk"
    return FileRow(
        identifier,
        look.path,
        look.state,
        look.detail,
        look.file_hash,
        look.text_key,
        kind if chunk else "",
        layout.resource(look.path),
        layout.source(look.path, chunk.source) if chunk else None,
        chunk.order if chunk else None,
        chunk.origin if chunk else None,
        chunk is not None and chunk_file.hand_edited(chunk),
        generation,
        encode_place(chunk.headings, chunk.pages) if chunk else "",
    )


def owner(source: str, owners: dict[str, str]) -> str:
    """The resource whose source is this one or a folder around it, "" for none."""
    while source:
        if source in owners:
            return owners[source]
        source = source.rpartition("/")[0]
    return ""


def has_same_text(row: FileRow, look: Observation) -> bool:
    """Whether the row's id may stay: nothing that the indexes hold differs."""
    return row.state == look.state and (look.state != INDEXED or row.text_key == look.text_key)


SeenTexts = dict[int, tuple[Sequence[bytes], Sequence[str]]]
"""Embedding keys and texts of files that were read, by file id."""


def texts_of_vectors(
    catalog: Catalog, ids: Sequence[int], seen: SeenTexts | None = None
) -> Iterator[tuple[list[int], list[str]]]:
    """Vector ids with their texts, as the catalog last saw them, in batches.

    Args:
        catalog: The catalog.
        ids: The vector ids.
        seen: What the last call read, and gets what this one does: a file of many texts is not
            read for each batch of them. It holds no more files than a batch has texts.
    """
    seen = {} if seen is None else seen
    for batch in in_batches(ids, _BATCH):
        owners = catalog.files_of_vectors(batch)
        pairs = [(one, *owners[one][0]) for one in batch if owners.get(one)]
        for file in seen.keys() - {file for _, file, _ in pairs}:
            del seen[file]
        texts: dict[int, str] = {}
        for identifier, file, part in pairs:
            if file not in seen:
                look = _seen(catalog.content(file) or b"")
                seen[file] = look.keys, look.texts
            keys, known = seen[file]
            if part < len(known) and vector_id(keys[part]) == identifier:
                texts[identifier] = known[part]
        if texts:
            yield list(texts), list(texts.values())


def _seen(data: bytes, path: ChunkPath = TOP) -> Observation:
    look = Observation(path=path, values=(0, 0, 0, 0, 0), state=INDEXED, data=data)
    kept.interpret(look)
    return look


def kept_texts(catalog: Catalog, paths: Iterable[ChunkPath]) -> Iterator[tuple[bytes, str]]:
    """Key and text of everything that is embedded of files, from their last good bytes."""
    for row in catalog.files(list(paths)).values():
        data = catalog.content(row.id)
        if data is not None:
            look = _seen(data, row.path)
            yield from zip(look.keys, look.texts, strict=True)


def metadata_of(look: Observation, identifier: int) -> Iterator[tuple[str, str, int]]:
    """Key, value and row id of the metadata of a chunk file."""
    pairs = pairs_of(look.chunk, look.path) if look.chunk else ()
    return ((key, value, identifier) for key, value in pairs)


_MOST_CHARACTERS: Final = 2_000
"""Of the names of a document, and of its description: each of its chunks is found by them."""
_TAGS: Final = ("tags", "tag")
_RULE: Final = frozenset("|-: \t\r")
_AT_ONCE: Final = 1_000
_NAMES: Final = ("title", "aliases", "alias")


class Named(Struct, frozen=True):
    """A document, as its record names and describes it."""

    source: str = ""
    """Its path."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Key and value of its metadata, in order."""


UNNAMED: Final = Named()


def entries(identifier: int, path: ChunkPath, chunk: "Chunk", named: Named) -> "Iterator[Entry]":
    """What is indexed of a file.

    Of a chunk file its body and questions; of a file of questions each; of a document each section,
    of which the first alone is found by the document's description.

    Args:
        identifier: Of its row.
        path: Where it is.
        chunk: What it holds.
        named: The document of a chunk file, see `named_by`.
    """
    from filestore.chunks import questions_file
    from filestore.fulltext import Entry

    if chunk.kind == questions_file.KIND:
        for part, text in enumerate(chunk_file.texts(chunk)):
            yield Entry(id=text_id(identifier, part), title="", text=text)
        return
    if not chunk.sections:
        text = "\n\n".join((without_data(chunk.body), *chunk.questions))
        title, described = " > ".join(chunk.headings), ""
        if not is_made(path):
            own = pairs_of_user(chunk, path)
            pairs = sorted({*named.pairs, *own})
            title = _title(chunk.headings, pairs, named.source)
            described = _description(pairs, (named.source, folder_of(path)))
        yield Entry(id=identifier, title=title, text=text, description=described)
        return
    pairs = sorted(set(pairs_of(chunk, path)))
    titles = [pair for pair in pairs if pair[0] == "title"]
    for part, (section, header) in enumerate(zip(chunk.sections, _headers(chunk), strict=True)):
        text = without_data(chunk.body[section.start : section.end])
        yield Entry(
            id=text_id(identifier, part),
            title=_title(section.headings, titles if part else pairs, path),
            text=f"{header}\n{text}" if header else text,
            description="" if part else _description(pairs, (path,)),
            document=chunk.body,
        )


def _headers(chunk: "Chunk") -> Iterator[str]:
    """Of each section that goes on with a table the header of that, else nothing."""
    body, before, header = chunk.body, 0, ""
    for section in chunk.sections:
        start = section.start
        blank = body.rfind("\n\n", before, start)
        found = header_of(body, before if blank < 0 else blank + 2, start)
        # A table has no blank line in it.
        header = found or (header if blank < 0 else "")
        before = start
        yield header if header and body.startswith("|", start) else ""


def header_of(body: str, start: int, end: int) -> str:
    """The header of the table that is all of a stretch of lines, without its rule; else nothing."""
    while start < end and not body.startswith("|", start):
        start = body.find("\n", start, end) + 1 or end
    line = body.find("\n", start, end)
    rule = body.find("\n", line + 1, end) if line >= 0 else -1
    if rule < 0 or rule - start > _MOST_CHARACTERS or set(body[line + 1 : rule]) - _RULE:
        return ""
    return body[start:line]


def _title(headings: Sequence[str], pairs: Sequence[tuple[str, str]], path: str) -> str:
    """The headings above a text, and the names of its document that are not in them."""
    found = [" > ".join(headings)]
    known, room = found[0].casefold(), _MOST_CHARACTERS
    values = {key: [v for k, v in pairs if k.casefold() == key] for key in _NAMES}
    aliases = sorted({*values["aliases"], *values["alias"]}, key=len, reverse=True)
    for name in (*values["title"], _as_text(stem_of(path)), *aliases):
        folded = name.casefold()
        if folded not in known and len(name) <= room:
            found.append(name)
            known, room = f"{known}\n{folded}", room - len(name)
    return " > ".join(filter(None, found))


def _description(pairs: Iterable[tuple[str, str]], paths: Iterable[str]) -> str:
    """The path, tags and properties of a document, in words."""
    places = dict.fromkeys(_as_text(path).lstrip("./") for path in paths)
    whole, *folders = (*places, "")[:2] if places else ("",)
    lines = [whole, *(one for one in folders if one.casefold() not in whole.casefold())]
    for key, value in pairs:
        folded = key.casefold()
        if folded in _TAGS:
            lines.append(f"#{value.lstrip('#')}")
        elif folded not in _NAMES:
            lines.append(f"{key} {value}")
    text = "\n".join(filter(None, lines))
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS].rpartition("\n")[0]


def stem_of(path: str) -> str:
    """The name of a file without its suffix."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _as_text(path: str) -> str:
    """A path as words; bytes that are not UTF-8 as gaps."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def named_by(catalog: Catalog, rows: Sequence[FileRow]) -> list[Named]:
    """The document of each of some files, as the records that are there say it.

    In a tree the record is that of the folder; in the flat layout each that names the source.
    """
    records = queries.sources_of_records(
        catalog, {record for row in rows if (record := _record_of(row)) is not None}
    )
    sources = [
        (row.source or "")
        if (record := _record_of(row)) is None
        else row.source or records.get(record, ("", ""))[1]
        for row in rows
    ]
    facts = queries.metadata_of_documents(catalog, {one for one in sources if one})
    found = []
    for row, source in zip(rows, sources, strict=True):
        if row.kind == DOCUMENT or is_made(row.path):
            found.append(UNNAMED)
            continue
        record, by_resource = _record_of(row), facts.get(source, {})
        owner = min(by_resource, default="") if record is None else records.get(record, ("",))[0]
        found.append(Named(source, tuple(by_resource.get(owner, ()))))
    return found


def _record_of(row: FileRow) -> ChunkPath | None:
    """Where the record of a chunk file is in a tree; None in the other layouts."""
    folder, slash, _ = row.path.partition("/")
    is_chunk = slash and row.kind != DOCUMENT and not is_made(row.path)
    return ChunkPath(f"{folder}/{RECORD_NAME}") if is_chunk else None


class Rewording:
    """Takes note while a commit is made, and gives what is to be indexed again at its end."""

    def __init__(self, catalog: "CatalogWriter", layout: "Layout") -> None:
        self._catalog = catalog
        self._layout = layout
        self._paths: set[ChunkPath] = set()
        self._documents: dict[str, set[str | None]] = {}
        """Of resources the documents that their records name otherwise now; None for the only one
        of a document."""
        self._named: dict[int, Named] = {}
        """How the documents of the files were named that were indexed in this commit."""

    def named(self, rows: Sequence[FileRow]) -> list[Named]:
        """The documents of files that are indexed now, as they are named at this moment."""
        found = named_by(self._catalog, rows)
        self._named |= {row.id: one for row, one in zip(rows, found, strict=True)}
        return found

    def note_words(self, row: FileRow, look: Observation) -> None:
        """Note whether a file with the same texts has other names or properties now."""
        if look.chunk is None or row.file_hash == look.file_hash:
            return
        try:
            before = kept.read(self._catalog.content(row.id) or b"")
            made = entries(0, row.path, before, UNNAMED)
            now = entries(0, look.path, look.chunk, UNNAMED)
            is_same = all(one == other for one, other in zip_longest(made, now))
        except ValueError:
            is_same = False
        if not is_same:
            self._paths.add(look.path)

    def note_path(self, old: ChunkPath, new: ChunkPath) -> None:
        """Note that a file may be found by other words: its path, or its folder, is among them."""
        if not is_made(new) and (self._layout.has_sections or folder_of(old) != folder_of(new)):
            self._paths.add(new)

    def note_record(
        self, path: ChunkPath, resource: str, source: str, now: Mapping[str, list[tuple[str, str]]]
    ) -> None:
        """Note which documents a record names or describes otherwise than it did.

        Args:
            path: Of the record, which the catalog still has as it was.
            resource: Whose it is; "" where it goes.
            source: What the resource is made from.
            now: Each of its documents, with the pairs of its metadata in order.
        """
        owner, of = queries.sources_of_records(self._catalog, [path]).get(path, ("", ""))
        sources = {named for named, _ in self._catalog.documents_in(path)} if owner else set()
        known = queries.metadata_of_documents(self._catalog, sources)
        before = {one: known.get(one, {}).get(owner, []) for one in sources}
        changed: set[str | None] = {
            one
            for one in {*before, *now}
            if owner != resource or before.get(one, []) != now.get(one, [])
        }
        if of != source or source in changed:
            changed.add(None)
        for one in filter(None, {owner, resource} if changed else ()):
            self._documents.setdefault(one, set()).update(changed)

    def renewed(self) -> "Iterator[tuple[list[int], Iterator[Entry]]]":
        """The full-text ids that files had, and their entries under new ones, in batches."""
        rows = {row.id: row for row in self._catalog.files(sorted(self._paths)).values()}
        documents = {one for changed in self._documents.values() for one in changed if one}
        is_flat = self._layout.shares_folder
        if is_flat and documents:
            rows |= {row.id: row for row in self._catalog.files_from(sorted(documents))}
        for resource, changed in self._documents.items() if not is_flat else ():
            found = self._catalog.files_of(resource)
            rows |= {row.id: row for row in found if row.source in changed}
        indexed = [row for row in rows.values() if row.state == INDEXED]
        for batch in in_batches(indexed, _AT_ONCE):
            pairs = zip(batch, named_by(self._catalog, batch), strict=True)
            stale = [(row, one) for row, one in pairs if self._named.get(row.id) != one]
            old = [row for row, _ in stale]
            gone = queries.texts_of_files(self._catalog, [row.id for row in old])
            renewed = self._catalog.renew(old)
            yield (
                gone,
                (
                    entry
                    for row, (_, named) in zip(renewed, stale, strict=True)
                    for entry in entries(
                        row.id, row.path, kept.read(self._catalog.content(row.id) or b""), named
                    )
                ),
            )

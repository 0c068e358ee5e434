"""Rows of the catalog, made of what was read, and the texts behind them. Writes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from filestore.catalog import Catalog, FileRow, encode_place, in_batches
from filestore.chunks import chunk_file, kept
from filestore.chunks.chunk_file import pairs_of
from filestore.chunks.layout import Layout
from filestore.chunks.observation import INDEXED, Observation
from filestore.chunks.observe import look_at
from filestore.config.layout import Places
from filestore.core.paths import TOP, ChunkPath, folder_of
from filestore.fs.stats import unpack_stat

_BATCH: Final = 64


def row_of(look: Observation, identifier: int, *, layout: Layout, generation: int) -> FileRow:
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


class StatEntries:
    """Entries of the stat cache, each folder unpacked once."""

    def __init__(self, catalog: Catalog) -> None:
        self._folders = catalog.folders()
        self._unpacked: dict[ChunkPath, dict[str, bytes]] = {}

    def entry(self, path: ChunkPath) -> bytes | None:
        """That of a file; None where there is none."""
        folder, name = folder_of(path), path.rpartition("/")[2]
        if folder not in self._unpacked:
            packed = self._folders.get(folder)
            self._unpacked[folder] = packed.entries() if packed else {}
        return self._unpacked[folder].get(name)

    def mtime_ns(self, path: ChunkPath) -> int:
        """When a file was last written; 0 where that is not known."""
        entry = self.entry(path)
        return unpack_stat(entry)[1] if entry else 0


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


def texts_of_vectors(catalog: Catalog, ids: Sequence[int]) -> Iterator[tuple[list[int], list[str]]]:
    """Vector ids with their texts, as the catalog last saw them, in batches."""
    for batch in in_batches(ids, _BATCH):
        owners = catalog.files_of_vectors(batch)
        pairs = [(one, *owners[one][0]) for one in batch if owners.get(one)]
        texts: dict[int, str] = {}
        looks: dict[int, Observation] = {}
        for identifier, file, part in pairs:
            if file not in looks:  # a file has many texts
                looks[file] = _seen(catalog.content(file) or b"")
            look = looks[file]
            if part < len(look.texts) and look.vector_ids()[part] == identifier:
                texts[identifier] = look.texts[part]
        if texts:
            yield list(texts), list(texts.values())


def _seen(data: bytes, path: ChunkPath = TOP) -> Observation:
    look = Observation(path=path, values=(0, 0, 0, 0, 0), state=INDEXED, data=data)
    kept.interpret(look)
    return look


def texts_of(look: Observation) -> Iterator[tuple[bytes, str]]:
    """Key and text of everything that is embedded of a file."""
    return zip(look.keys, look.texts, strict=True)


def texts_now(
    places: Places, layout: Layout, paths: Sequence[ChunkPath]
) -> Iterator[tuple[ChunkPath, bytes, str]]:
    """Path, embedding key and text of all that would be embedded of files as they are now."""
    looks = [one for one in look_at(places, paths, layout) if isinstance(one, Observation)]
    layout.complete(looks)
    for look in looks:
        if look.state == INDEXED:
            yield from ((look.path, key, text) for key, text in texts_of(look))


def kept_texts(catalog: Catalog, paths: Iterable[ChunkPath]) -> Iterator[tuple[bytes, str]]:
    """Key and text of everything that is embedded of files, from their last good bytes."""
    for row in catalog.files(list(paths)).values():
        data = catalog.content(row.id)
        if data is not None:
            yield from texts_of(_seen(data, row.path))


def metadata_of(look: Observation, identifier: int) -> Iterator[tuple[str, str, int]]:
    """Key, value and row id of the metadata of a chunk file."""
    pairs = pairs_of(look.chunk, look.path) if look.chunk else ()
    return ((key, value, identifier) for key, value in pairs)

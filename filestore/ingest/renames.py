"""Originals that were renamed: what a record and its chunk files are under the new names. Pure.

One rule: a document keeps its chunk files, with whatever a person did to them; only the key that
names it changes.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from filestore.chunks import chunk_file
from filestore.chunks.resource_record import Record
from filestore.core.paths import is_below
from filestore.ingest.regenerate import Existing, Lost

Renames = Mapping[str, str]
"""Document as recorded to what it is called now."""


def found(before: Record, source: str, fresh: Mapping[str, str]) -> dict[str, str]:
    """Which documents of a record were renamed.

    Args:
        before: The record.
        source: What its source is called now.
        fresh: The documents that are there, with their hashes.
    """
    places = {
        one.source: source + one.source[len(before.source) :]
        if is_below(one.source, before.source)
        else one.source
        for one in before.documents
    }
    left: dict[str, list[str]] = {}
    for place in fresh.keys() - {*places.values()}:
        left.setdefault(fresh[place], []).append(place)
    for one in before.documents:
        new = left.get(one.hash)
        if new and places[one.source] not in fresh:
            # Of several copies each goes where its name is, if it is anywhere.
            name = one.source.rpartition("/")[2]
            new.sort(key=lambda place: (place.rpartition("/")[2] != name, place))
            places[one.source] = new.pop(0)
    return {old: place for old, place in places.items() if old != place}


def record(before: Record | None, renames: Renames) -> Record | None:
    """A record with its documents under their new names."""
    if before is None or not renames:
        return before
    documents = (
        replace(one, source=renames.get(one.source, one.source)) for one in before.documents
    )
    return replace(before, documents=tuple(documents))


def files(existing: Sequence[Existing], renames: Renames) -> list[Existing]:
    """Chunk files that name their documents as they are called now."""
    return [_file(file, renames) for file in existing]


def _file(file: Existing, renames: Renames) -> Existing:
    place = renames.get(file.chunk.source or "")
    if place is None or file.excluded:
        return file
    data = chunk_file.update(file.data, source=place)
    return replace(file, data=data, chunk=replace(file.chunk, source=place))


def lost(deleted: Iterable[Lost], renames: Renames) -> list[Lost]:
    """Deleted chunk files with the documents that they named."""
    return [
        replace(one, source=renames.get(one.source, one.source)) if one.source else one
        for one in deleted
    ]


def writable(renames: Renames, existing: Iterable[Existing]) -> dict[str, str]:
    """The renames that can be written into every chunk file that names the document."""
    stuck = {file.chunk.source for file in existing if file.excluded}
    return {old: new for old, new in renames.items() if old not in stuck}


def in_order(sources: Iterable[str], before: Record | None, gone: set[str]) -> list[str]:
    """The documents of a record, those that are gone after what they stood behind before."""
    ordered = list(sources)
    previous = ""
    for one in before.documents if before is not None else ():
        if one.source in gone:
            at = ordered.index(previous) + 1 if previous in ordered else 0
            ordered.insert(at, one.source)
        previous = one.source
    return ordered

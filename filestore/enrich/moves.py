"""What was made of a document in place that lies elsewhere now goes along. Reads the catalog alone.

A document is known again by its texts, whoever moved it and wherever: what was made of it names
their hashes. One rule: it goes along where at least half of its texts are in one document, for
which nothing was made yet; else it stays, and is told as stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import queries, summaries
from filestore.chunks import chunk_file, questions_file
from filestore.chunks.observation import DOCUMENT
from filestore.core.hashing import vector_id
from filestore.core.paths import SUMMARIES, ChunkPath, inside, made_of

if TYPE_CHECKING:
    from filestore.catalog import Catalog


class Move(Struct, frozen=True, kw_only=True):
    """A document that has another name, and what follows from that."""

    old: ChunkPath
    new: ChunkPath
    changes: Mapping[ChunkPath, bytes | None]
    """Path of a file that was made of it, to its bytes; None for what is gone."""
    before: Mapping[ChunkPath, bytes | None]


def moves(catalog: Catalog) -> list[Move]:
    """The documents that lie elsewhere now."""
    made: dict[ChunkPath, list[ChunkPath]] = {}
    for path in queries.made_files(catalog):
        made.setdefault(made_of(path), []).append(path)
    there = catalog.files(list(made))
    found: list[Move] = []
    taken = set(made)
    for old in made:
        if old in there and there[old].kind == DOCUMENT:
            continue
        new = _new_place(catalog, made[old])
        if new is not None and new not in taken:
            taken.add(new)
            found.append(_move(catalog, old, new, made[old]))
    return found


def _new_place(catalog: Catalog, paths: Iterable[ChunkPath]) -> ChunkPath | None:
    """The document that has most of the texts that some files were made from."""
    keys = summaries.keys_read(catalog, list(paths))
    owners = catalog.files_of_vectors([vector_id(key) for key in keys])
    counts = Counter(
        file for found in owners.values() for file in dict.fromkeys(file for file, _ in found)
    )
    rows = catalog.files_by_id(list(counts))
    best = [
        (-counts[file], row.path)
        for file, row in rows.items()
        if row.kind == DOCUMENT and 2 * counts[file] >= len(keys)
    ]
    return min(best)[1] if best else None


def _move(catalog: Catalog, old: ChunkPath, new: ChunkPath, paths: Iterable[ChunkPath]) -> Move:
    folder = f"{SUMMARIES}/{old}/"
    before: dict[ChunkPath, bytes | None] = {}
    after: dict[ChunkPath, bytes | None] = {}
    rows = catalog.files(list(paths))
    for path, row in rows.items():
        data = catalog.content(row.id) or b""
        target = _moved_path(path, folder, new)
        before |= {path: data, target: None}
        after |= {path: None, target: _renamed(data, old, new)}
    return Move(old=old, new=new, changes=after, before=before)


def _moved_path(path: ChunkPath, folder: str, new: ChunkPath) -> ChunkPath:
    return inside(inside(ChunkPath(SUMMARIES), new), path.removeprefix(folder))


def _renamed(data: bytes, old: ChunkPath, new: ChunkPath) -> bytes:
    """A file with its children under their new names."""
    chunk = questions_file.read(data)
    if chunk.kind == questions_file.KIND or not chunk.children:
        return data
    folder = f"{SUMMARIES}/{old}/"
    children = [
        replace(child, path=new)
        if child.path == old
        else replace(child, path=_moved_path(child.path, folder, new))
        if child.path.startswith(folder)
        else child
        for child in chunk.children
    ]
    return chunk_file.update(data, children=children)

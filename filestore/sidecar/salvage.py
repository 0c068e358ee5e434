"""What is self-verifying in a catalog in quarantine, carried over into the new one.

Texts carry the hash they are known by, and rows of files their checksum, so they can be trusted
whatever else is damaged; all other rows are made again from the files. Reads row by row past what
SQLite cannot walk. One rule: garbage yields nothing and is no error.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from os.path import lexists
from typing import TYPE_CHECKING, Any, Final

from filestore.catalog import BEFORE, LET_GO, Forgotten, decode_path, queries
from filestore.chunks import kept
from filestore.chunks.observation import MAX_CHUNK_BYTES
from filestore.config.layout import MAX_SOURCE_BYTES, Places
from filestore.core.hashing import content_hash, origin_hash
from filestore.core.paths import ChunkPath, has_plain_names
from filestore.fs.database import UNREADABLE, is_plain_table, open_untrusted, size_bytes
from filestore.git.state import read_start
from filestore.sidecar import losses
from filestore.sidecar.losses import Loss, vanished, walk

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter

_LEFTOVERS: Final = "leftovers"
"""The state of a temporary file of a dead writer: no loss."""
_TABLES: Final = re.compile(r"(?:FROM|JOIN) (\w+)")


def carry_over(path: str, catalog: "CatalogWriter", places: Places, *, is_latest: bool) -> int:
    """Take what can be proved from a catalog in quarantine, as one commit. The lock is held.

    Args:
        path: The old catalog, with its write-ahead log beside it where there is one.
        catalog: The new one, without a commit.
        places: Says which files are there still: their own bytes are the newer ones.
        is_latest: Whether no catalog came after it: then what it knows and the tree lacks is lost.

    Returns:
        How many texts, remarks and losses were kept.
    """
    kept = 0
    catalog.begin()
    try:
        for origin, body in _proved(path, "generated", _is_generated):
            catalog.keep_generated(origin, bytes(body))
            kept += 1
        for key, value in _proved(path, "originals", _is_original):
            catalog.set_meta(key, value)
            kept += 1
        lost = _lost(path, places) if is_latest else {}
        ids = losses.note(catalog, list(lost.values()))
        if is_latest and not ids and any(_proved(path, "let-go", _is_let_go)):
            catalog.set_meta(LET_GO, 1)
        gone = _gone(path, places, catalog.next_generation)
        catalog.remember_forgotten(_keep_lost(gone, lost, ids, catalog))
        kept += len(ids) + catalog.count("forgotten")
        catalog.commit()
    except BaseException:
        catalog.rollback()
        raise
    return kept


def _lost(path: str, places: Places) -> dict[ChunkPath, Loss]:
    """The files that were known and neither went on purpose nor are there, under whatever name."""
    rows = {decode_path(row[1]): row for row in _proved(path, "files", _is_file)}

    def contents(added: list[ChunkPath]) -> dict[ChunkPath, bytes]:
        """The hashes of new files."""
        return dict(_hashes(places, added))

    hashes = {below: row[4] for below, row in rows.items()}
    gone = vanished(hashes, walk(places, processes=1), contents)
    if places.rules is not None:
        # What is there and no part of the tree is left out by its rules.
        root = places.chunked
        gone = {one: name for one, name in gone.items() if not lexists(os.path.join(root, one))}
    return {
        below: Loss(path=below, detail=_KNOWN, resource=rows[below][7], file_hash=file_hash)
        for below, file_hash in gone.items()
    }


def _hashes(places: Places, paths: list[ChunkPath]) -> Iterator[tuple[ChunkPath, bytes]]:
    most = MAX_SOURCE_BYTES if places.is_in_place else MAX_CHUNK_BYTES
    for path in paths:
        data = read_start(os.path.join(places.chunked, path), most)
        yield path, content_hash(data)


def _keep_lost(
    gone: Iterable[Forgotten],
    lost: Mapping[ChunkPath, Loss],
    ids: Mapping[ChunkPath, int],
    catalog: "CatalogWriter",
) -> Iterator[Forgotten]:
    """Keep the bytes of lost files under their rows; yield those of other files."""
    for one in gone:
        if one.path in lost and lost[one.path].file_hash == one.file_hash:
            catalog.put_content(ids[one.path], one.data)
        else:
            yield one


def _gone(path: str, places: Places, generation: int) -> Iterator[Forgotten]:
    """The last good bytes of files that are not there any more, those forgotten long ago first."""
    for what, at in (("forgotten", BEFORE), ("contents", generation), ("records", generation)):
        for name, file_hash, data, mtime_ns in _proved(path, what, _is_content):
            below = decode_path(name)
            if has_plain_names(below) and not lexists(os.path.join(places.chunked, below)):
                yield Forgotten(
                    path=below, file_hash=file_hash, data=data, mtime_ns=mtime_ns, generation=at
                )


_KNOWN: Final = "the catalog in quarantine has it"


def _is_file(row: tuple[Any, ...]) -> bool:
    """Whether a row, of this schema or the one before, is what was written, by its checksum."""
    number, path, *middle, edited, generation = row[:13]
    below = decode_path(path)
    values = (number, below, *middle, bool(edited), generation, *row[13:-1])
    is_written = content_hash(repr(values).encode("utf-8", "surrogatepass")) == row[-1]
    _, state, _, file_hash, *_, resource = row[1:8]
    typed = isinstance(file_hash, bytes) and isinstance(resource, str)
    return is_written and typed and has_plain_names(below) and state != _LEFTOVERS


def _is_let_go(row: tuple[Any, ...]) -> bool:
    return row == (LET_GO, 1)


def _is_generated(row: tuple[Any, ...]) -> bool:
    origin, body = row
    return bool(origin_hash(body.decode("utf-8")) == origin)


def _is_original(row: tuple[Any, ...]) -> bool:
    """A path that a person named: not proved, and only ever looked at to be compared by hash."""
    return all(isinstance(value, str) and "\0" not in value for value in row)


def _is_content(row: tuple[Any, ...]) -> bool:
    path, file_hash, data, mtime_ns = row
    typed = isinstance(path, bytes) and isinstance(data, bytes) and isinstance(mtime_ns, int)
    return typed and kept.file_hash(data) == file_hash


def _proved(
    path: str, what: str, holds: Callable[[tuple[Any, ...]], bool]
) -> Iterator[tuple[Any, ...]]:
    """Rows that prove themselves, from both ends of their table up to what cannot be read."""
    statement = queries.SALVAGED[what]
    seen: set[Any] = set()
    left = size_bytes(path)
    for order in ("ASC", "DESC"):
        with suppress(*UNREADABLE), closing(open_untrusted(path)) as connection:
            tables = _TABLES.findall(statement)
            if not all(is_plain_table(connection, table) for table in tables):
                return
            rows = connection.execute(statement.format(order=order))
            while left >= 0:
                row = rows.fetchone()
                if row is None:
                    return
                left -= sum(len(value) for value in row if isinstance(value, str | bytes))
                # Values of a damaged row may be of any type.
                with suppress(ValueError, TypeError, AttributeError):
                    if row[0] not in seen and holds(row):
                        seen.add(row[0])
                        yield row

"""Questions to the catalog of a screen: a little of much, quickly.

Changes nothing. One rule: what is asked first, the first page of resources and the rows in sight,
costs the same in a store of any size.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from filestore.catalog._rows import MADE, decode_path, encode_path
from filestore.core.paths import ChunkPath

if TYPE_CHECKING:
    from filestore.catalog._reading import Catalog

_NAMES: Final = (
    "WITH RECURSIVE names(name) AS (SELECT min(resource) FROM files UNION ALL"
    " SELECT (SELECT min(resource) FROM files WHERE resource > name) FROM names"
    " WHERE name IS NOT NULL) SELECT count(name) FROM names"
)
"""Each step leaps over the files of one resource."""
_PACKED: Final = (
    "SELECT resource, CAST(group_concat(id) AS BLOB), CAST(group_concat(path, x'00') AS BLOB),"
    " count(position) FROM files INDEXED BY files_by_resource WHERE state <> 'record'"
)
_HEADED: Final = (
    "SELECT resource, CAST(group_concat(id) AS BLOB), CAST(group_concat(replace(replace(ltrim("
    "rtrim(rtrim(place, '0123456789,[]'), '\"'), '[\"'), '\",\"', ' > '), '\\\"', '\"'),"
    " x'00') AS BLOB)"
    " FROM files INDEXED BY files_by_resource WHERE place > '[[\"' AND place < '[[#'"
    " GROUP BY resource"
)
"""Of two JSON lists, headings and pages, the first one with a separator for a person."""
_RECORDS: Final = "state = 'record' AND state <> ''"
"""The second half is what lets SQLite take the index of the few that are no chunks."""

_LEAPS: Final = 1_000
"""Folders that are leapt over; where there are more, reading every name is quicker."""


class CatalogPages:
    """What a screen asks of an open catalog, inside a snapshot of it."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog
        self._rows = catalog.rows

    def resource_count(self) -> int:
        """How many names of resources files have."""
        return int(self._rows(_NAMES)[0][0])

    def record_count(self) -> int:
        """How many of the files are records."""
        return int(self._rows(f"SELECT count(*) FROM files WHERE {_RECORDS}")[0][0])

    def resource_sizes(self, after: str | None, limit: int | None) -> list[tuple[str, int]]:
        """Names of resources and how many files they have, records included, by name.

        Args:
            after: Only those behind this name.
            limit: The most; None for all.
        """
        where, values = ("", ()) if after is None else ("WHERE resource > ?", (after,))
        statement = f"SELECT resource, count(*) FROM files {where} GROUP BY resource ORDER BY 1"
        return self._rows(f"{statement} LIMIT ?", (*values, -1 if limit is None else limit))

    def record_sizes(self) -> dict[str, int]:
        """How many of the files of each resource are records."""
        counted = f"SELECT resource, count(*) FROM files WHERE {_RECORDS} GROUP BY resource"
        return dict(self._rows(counted))

    def record_sources(self) -> dict[str, str]:
        """The source that the record of each resource names."""
        return dict(self._rows("SELECT resource, max(source) FROM records GROUP BY resource"))

    def records_below(self, folder: ChunkPath) -> tuple[int, str]:
        """How many records lie below a folder, and the source that they name, "" for none."""
        start = encode_path(folder)
        statement = "SELECT count(*), coalesce(max(source), '') FROM records"
        # "0" comes right behind "/".
        found = self._rows(f"{statement} WHERE path > ? AND path < ?", (start + b"/", start + b"0"))
        return found[0][0], found[0][1]

    def has_resource(self, name: str) -> bool:
        """Whether a file, or a record, says that it is of this resource."""
        known = "SELECT 1 FROM files WHERE resource = ? UNION ALL SELECT 1 FROM records"
        return bool(self._rows(f"{known} WHERE resource = ? LIMIT 1", (name, name)))

    def chunk_count(self, resource: str) -> int:
        """How many files a resource has but for its records."""
        statement = "SELECT count(*) FROM files WHERE resource = ? AND state <> 'record'"
        return int(self._rows(statement, (resource,))[0][0])

    def packed(self, resource: str | None) -> Iterator[tuple[str, bytes, bytes, int]]:
        """The files of resources but for their records, in no order.

        Args:
            resource: Only this one; None for all.

        Yields:
            Name, ids separated by commas, paths separated by NUL in the same order, and how many
            of the files have an order key.
        """
        if resource is None:
            yield from self._catalog.connection.execute(f"{_PACKED} GROUP BY resource")
        else:
            statement = f"{_PACKED} AND resource = ? GROUP BY resource"
            yield from self._catalog.connection.execute(statement, (resource,))

    def documents(self, resource: str) -> list[tuple[str, bytes]]:
        """The documents of a resource that has several, and of each the ids of its files.

        Returns:
            Source, and ids separated by commas; nothing for a resource of one document.
        """
        statement = "SELECT count(*) FROM documents WHERE resource = ?"
        if self._rows(statement, (resource,))[0][0] < 2:
            return []
        return self._rows(
            "SELECT coalesce(source, ''), CAST(group_concat(id) AS BLOB)"
            " FROM files INDEXED BY files_by_resource"
            " WHERE resource = ? AND state <> 'record' GROUP BY source",
            (resource,),
        )

    def sortable(self, resource: str) -> list[tuple[int, str | None, ChunkPath]]:
        """Id, order key and path of the files of a resource but for its records, in no order."""
        statement = "SELECT id, position, path FROM files WHERE resource = ? AND state <> 'record'"
        found = self._rows(statement, (resource,))
        return [(one, position, decode_path(path)) for one, position, path in found]

    def headed(self) -> Iterator[tuple[str, bytes, bytes]]:
        """The files that have headings, resource by resource, in no order.

        Yields:
            Name, ids separated by commas, and in the same order, separated by NUL, the headings of
            each from the top, joined by " > ".
        """
        yield from self._catalog.connection.execute(_HEADED)

    def with_headings(self, after: int) -> Iterator[tuple[int, bytes]]:
        """The files behind an id that may have headings inside, and their last good bytes."""
        yield from self._catalog.connection.execute(
            "SELECT file, data FROM contents WHERE file > ?"
            " AND (instr(data, x'0A23') OR substr(data, 1, 1) = x'23')",
            (after,),
        )

    def last_file(self) -> int:
        """The highest id that a file has; 0 where there are none."""
        return int(self._rows("SELECT coalesce(max(id), 0) FROM files")[0][0])

    def openings(self, files: Sequence[int], length: int) -> dict[int, tuple[int, bytes]]:
        """How many bytes files have, and the first ones; those without content are left out."""
        statement = f"SELECT file, length(data), substr(data, 1, {length:d}) FROM contents"
        rows = self._catalog.rows_among(f"{statement} WHERE file IN ({{}})", files)
        return {file: (size, bytes(first)) for file, size, first in rows}

    def extents(self, resources: Sequence[str] | None) -> list[tuple[str, int, int]]:
        """Of resources, or of all: name, the id of the first file, and bytes of what is kept."""
        start = (
            "SELECT resource, min(id), coalesce(sum(length(data)), 0) FROM files"
            " LEFT JOIN contents ON contents.file = files.id WHERE state <> 'record'"
        )
        if resources is None:
            return self._rows(f"{start} GROUP BY resource")
        some = f"{start} AND resource IN ({{}}) GROUP BY resource"
        return list(self._catalog.rows_among(some, resources))

    def document_titles(self, resources: Sequence[str] | None = None) -> dict[str, str]:
        """The title of each resource, of these or of all, whose documents have just one."""
        statement = "SELECT resource, min(value) FROM record_facts WHERE key = 'title'"
        end = "GROUP BY resource HAVING count(DISTINCT value) = 1"
        if resources is None:
            return dict(self._rows(f"{statement} {end}"))
        return dict(
            self._catalog.rows_among(f"{statement} AND resource IN ({{}}) {end}", resources)
        )

    def document_names(self) -> Iterator[tuple[str, str, str]]:
        """Of each document in a folder: resource, source, and the source of the folder."""
        yield from self._catalog.connection.execute(
            "SELECT documents.resource, documents.source, records.source"
            " FROM documents JOIN records ON records.path = documents.record"
            " WHERE documents.source <> records.source"
        )

    def document_aliases(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Resource and source of each document with a title or another name, and that."""
        statement = "SELECT resource, source, value FROM record_facts"
        among = "key IN ('title', 'aliases')"
        for resource, source, value in self._rows(f"{statement} WHERE {among}"):
            yield (resource, source), value

    def names(self) -> Iterator[tuple[int, str]]:
        """Id and name of every document in place, in no order."""
        statement = "SELECT id, resource FROM files WHERE path NOT BETWEEN ? AND ?"
        yield from self._catalog.connection.execute(statement, MADE)

    def top_names(self) -> tuple[dict[str, int], list[tuple[int, str]]]:
        """Documents in place: how many in each topmost folder, and id and name of those in none.

        The names in a folder are leapt over: they are counted by the index alone.
        """
        behind = "SELECT id, resource FROM files WHERE resource >= ? ORDER BY resource"
        within = "SELECT count(*) FROM files WHERE resource >= ? AND resource < ?"
        folders: Counter[str] = Counter()
        loose: dict[int, str] = {}
        start: str | None = ""
        while start is not None:
            rows, start = self._catalog.connection.execute(behind, (start,)), None
            for identifier, name in rows:
                folder, slash, _ = name.partition("/")
                if not slash:
                    loose[identifier] = name
                elif len(folders) >= _LEAPS:
                    folders[folder] += 1
                else:
                    # "0" comes right behind "/".
                    start = f"{folder}0"
                    folders[folder] = self._rows(within, (f"{folder}/", start))[0][0]
                    break
        for identifier, name in self._rows(
            "SELECT id, resource FROM files WHERE path BETWEEN ? AND ?", MADE
        ):
            folder, slash, _ = name.partition("/")
            folders[folder] -= bool(slash)
            loose.pop(identifier, None)
        return dict(+folders), list(loose.items())

    def summaries(self) -> list[tuple[int, str]]:
        """Id and resource of every indexed summary of documents in place."""
        statement = "SELECT id, resource FROM files WHERE path BETWEEN ? AND ?"
        return self._rows(f"{statement} AND kind = 'summary' AND state = '' ORDER BY path", MADE)

    def part_counts(self, files: Sequence[int] | None = None) -> dict[int, int]:
        """How many texts of each file, of these or of all, are indexed; none is left out."""
        statement, end = "SELECT file, count(*) FROM parts", "GROUP BY file"
        if files is None:
            return dict(self._rows(f"{statement} {end}"))
        return dict(self._catalog.rows_among(f"{statement} WHERE file IN ({{}}) {end}", files))

    def aliases_of_files(self) -> Iterator[tuple[int, str]]:
        """Each file whose metadata has a title or another name, and that."""
        yield from self._catalog.connection.execute(
            "SELECT file, value FROM facts WHERE key IN ('title', 'aliases')"
        )

    def path_of_vector(self, vector: int) -> ChunkPath | None:
        """A file that has the text of a vector: as its body before as a question, then by path."""
        found = self._rows(
            "SELECT path FROM parts JOIN files ON files.id = parts.file WHERE vector = ?"
            " ORDER BY part > 0, path LIMIT 1",
            (vector,),
        )
        return decode_path(found[0][0]) if found else None

    def vectors_of(self, file: int) -> list[tuple[int, int, bytes, int]]:
        """Part, vector id, embedding key, and when it was embedded as `TABLES` says, by part."""
        return self._rows(
            "SELECT part, id, key, embedded FROM parts JOIN vectors ON vectors.id = parts.vector"
            " WHERE file = ? ORDER BY part",
            (file,),
        )

    def paths_below(self, folder: ChunkPath, most: int) -> list[ChunkPath]:
        """Files below a folder, by path, up to a number; "" for all."""
        start = encode_path(folder)
        first, behind = (start + b"/", start + b"0") if folder else (b"", b"\xff\xff")
        statement = "SELECT path FROM files WHERE path > ? AND path < ? ORDER BY path LIMIT ?"
        return [decode_path(path) for (path,) in self._rows(statement, (first, behind, most))]

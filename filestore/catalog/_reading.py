"""Questions to the catalog. Changes nothing."""

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Self

import orjson
from msgspec.structs import replace

from filestore.catalog import _remembered
from filestore.catalog._remembered import Snapshots
from filestore.catalog._rows import (
    BEFORE,
    BODY,
    FILE_COLUMNS,
    Conflict,
    Deleted,
    FileRow,
    Forgotten,
    IndexFile,
    LinkRow,
    decode_path,
    encode_path,
    in_batches,
    placeholders,
)
from filestore.catalog._schema import (
    CHUNKER,
    WRONG_VALUES,
    catalog_errors,
    connect,
    damaged,
    is_damage,
    one_generation,
    refuse,
    type_problem,
    written_by_us,
)
from filestore.chunks.observation import (
    INDEXED,
    RECORD,
    UNMERGED,
    UNMERGED_BEFORE,
    kept_hash,
)
from filestore.core.codes import CODES
from filestore.core.errors import on_error
from filestore.core.hashing import ORIGIN_PREFIX, content_hash, origin_hash, short_origin
from filestore.core.paths import ChunkPath
from filestore.fs.stats import PackedFolder

STATES: Final = frozenset({INDEXED, RECORD, *CODES})
"""What a file may be: searchable, a record, or excluded by a finding."""
_KEPT: Final = (
    "SELECT data, file_hash FROM contents JOIN files ON id = file WHERE state = ''"
    " UNION ALL SELECT data, file_hash FROM records JOIN files USING (path)"
)


class Catalog(Snapshots):
    """An open catalog. Use `snapshot` where several questions must see one generation."""

    @classmethod
    def open(cls, path: str, *, create: bool = False) -> Self:
        """Open the catalog.

        Raises:
            CatalogMissingError: There is none, and none shall be made.
            CatalogDamagedError: The file is no sound catalog.
            CatalogNewerError: Its schema is newer than ours.
        """
        catalog = cls(connect(path, create=create))
        with on_error(catalog.close):
            catalog.require_sound_memory()
        return catalog

    @property
    def generation(self) -> int:
        """How many times the catalog was committed to."""
        with catalog_errors(self.problem):
            return int(self.meta("generation", 0))

    @property
    def indexed_at(self) -> str | None:
        """When it was last committed to, ISO 8601 in UTC; None where an earlier version did."""
        with contextlib.suppress(OverflowError, ValueError, OSError):
            seconds = self.meta(_remembered.COMMITTED)
            return seconds and time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
        return None

    @property
    def identity(self) -> str:
        """Tells this catalog from every other: file ids mean nothing outside their own."""
        return str(self.meta("identity", ""))

    def page_problem(self) -> str:
        """What is wrong with the pages or indexes, or ""; reads all of them."""
        (found,) = self.rows("PRAGMA integrity_check(1)")[0]
        return "" if found == "ok" else str(found)

    def problem(self) -> str:
        """What is wrong with pages, types or checksums of rows, or ""; for when in doubt."""
        with one_generation(self.connection):
            try:
                wrong = self.page_problem() or type_problem(self.connection)
                wrong = wrong or _remembered.problem(self.connection) or self.lost_rows()
                if not wrong and not all(self.row_is_sound(row) for row in self.all_files()):
                    wrong = "a row fails its checksum"
                if not wrong and any(kept_hash(data) != known for data, known in self.rows(_KEPT)):
                    wrong = "bytes that it keeps of a file fail their hash"
            except (sqlite3.Error, *WRONG_VALUES) as error:
                if isinstance(error, sqlite3.Error) and not is_damage(error):
                    raise
                wrong = str(error)
        return wrong

    def require_rows(self) -> None:
        """Count the rows of the tables as far as that takes a few milliseconds.

        Raises:
            CatalogDamagedError: A table lost or won some since the last commit.
        """
        refuse(self.connection, partial(_remembered.lost_rows, every=False))

    def require_paths(self) -> None:
        """Hold the paths of files against the names in the stat cache, all of them if they are few.

        Raises:
            CatalogDamagedError: A file has a path that it was never seen under.
        """
        refuse(self.connection, partial(_remembered.misplaced, every=False))

    def misplaced(self) -> str:
        """Whether a file has a path that it was never seen under, and what; reads all names."""
        return _remembered.misplaced(self.connection, every=True)

    def lost_rows(self) -> str:
        """Which table has other rows than the last commit left, or ""; counts all."""
        return _remembered.lost_rows(self.connection, every=True)

    def closes(self, path: ChunkPath) -> bool:
        """Whether a file is closed to who asks."""
        return False

    def closed(self) -> set[str]:
        """The paths, originals and resources that are closed to who asks, as answers name them."""
        return set()

    def closed_texts(self) -> list[int]:
        """The ids of texts in the full-text index that are closed to who asks."""
        return []

    def all_records(self) -> list[tuple[ChunkPath, str, str, bytes]]:
        """Path, resource, source and bytes of every record."""
        found = self.rows("SELECT path, resource, source, data FROM records ORDER BY path")
        return [(decode_path(path), *rest) for path, *rest in found]

    def documents_in(self, path: ChunkPath) -> set[tuple[str, str]]:
        """(source, hash) of the documents that a record names."""
        statement = "SELECT source, hash FROM documents WHERE record = ?"
        return {(source, digest) for source, digest in self.rows(statement, (encode_path(path),))}

    def metadata_of(self, file: int) -> set[tuple[str, str]]:
        """(key, value) of the frontmatter of a file."""
        return set(self.rows("SELECT key, value FROM facts WHERE file = ?", (file,)))

    def links_of(self, file: int) -> set[ChunkPath]:
        """Where the links of a file lead, below `chunked/`; of a document, how it names that."""
        found = self.rows("SELECT target FROM links WHERE file = ?", (file,))
        return {decode_path(target) for (target,) in found}

    def record_metadata(self, resource: str) -> set[tuple[str, str, str]]:
        """(key, value, source) of the documents of a resource."""
        statement = "SELECT key, value, source FROM record_facts WHERE resource = ?"
        return {(key, value, source) for key, value, source in self.rows(statement, (resource,))}

    def index_file(self) -> IndexFile | None:
        """The FAISS file, where one was written."""
        name = self.meta("index_name")
        if name is None:
            return None
        return IndexFile(
            name, self.meta("index_size"), self.meta("index_hash"), self.meta("index_generation")
        )

    def folders(self) -> dict[ChunkPath, PackedFolder]:
        """The stat cache: folder path to its packed entries; not to be changed."""

        def unpacked() -> dict[ChunkPath, PackedFolder]:
            found = self.connection.execute("SELECT path, names, stats FROM folders")
            return {decode_path(path): PackedFolder(names, stats) for path, names, stats in found}

        return self.once("folders", unpacked)

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self.rows(f"SELECT count(*) FROM {table}")[0][0])

    def has_rows(self, table: str) -> bool:
        """Whether a table has any row; a look at one."""
        return bool(self.rows(f"SELECT 1 FROM {table} LIMIT 1"))

    def file_count(self) -> int:
        """How many files are known, excluded ones and records included; counted at each commit."""
        return int(self.meta("files", 0))

    def indexed_count(self) -> int:
        """How many files are searchable; counted at each commit."""
        return int(self.meta("indexed", 0))

    def content_bytes(self) -> int:
        """How many bytes are kept of all files together."""
        return int(self.rows("SELECT coalesce(sum(length(data)), 0) FROM contents")[0][0])

    def text_count(self) -> int:
        """How many texts the full-text index has: of a document one a section."""
        return int(self.meta("texts", self.indexed_count()))

    def states(self) -> list[tuple[ChunkPath, str, str]]:
        """Path, state and detail of every file that is not an indexed chunk."""
        # The few lead: asked for them by path, SQLite would walk all files instead.
        found = self.rows("SELECT path, state, detail FROM files WHERE state <> '' ORDER BY +path")
        return [
            (decode_path(path), _known(state), UNMERGED if detail == UNMERGED_BEFORE else detail)
            for path, state, detail in found
        ]

    def files(self, paths: Sequence[ChunkPath]) -> dict[ChunkPath, FileRow]:
        """What is known of some paths; unknown ones are left out."""
        return {row.path: row for row in self._files_among("path", map(encode_path, paths))}

    def indexed_paths(self, ids: Sequence[int]) -> dict[int, ChunkPath]:
        """The paths of those file ids that are searchable."""
        statement = "SELECT id, path FROM files WHERE id IN ({}) AND state = ''"
        return {file: decode_path(path) for file, path in self.rows_among(statement, ids)}

    def files_by_id(self, ids: Sequence[int]) -> dict[int, FileRow]:
        """What is known of some file ids; unknown ones are left out."""
        return {row.id: row for row in self._files_among("id", ids)}

    def files_of(self, resource: str) -> list[FileRow]:
        """The files of a resource, its record included, in no order."""
        return list(self._files("resource = ?", (resource,)))

    def row_is_sound(self, row: FileRow) -> bool:
        """Whether a row is what was written, by its checksum."""
        found = self.rows("SELECT checksum, origin FROM files WHERE id = ?", (row.id,))
        return any(checksum == replace(row, origin=one).checksum() for checksum, one in found)

    def all_files(self) -> Iterator[FileRow]:
        """Every file, by path."""
        return self._files("1 ORDER BY path", ())

    def indexed_ids(self) -> list[int]:
        """The ids of all searchable files, ascending."""
        return [one for (one,) in self.rows("SELECT id FROM files WHERE state = '' ORDER BY id")]

    def file_hashes(self) -> list[tuple[bytes, bytes]]:
        """Path as it is on disk and content hash of every file whose bytes were read, by path."""
        # One walk through the table, and little to sort: most were indexed in this order.
        return sorted(self.rows("SELECT path, file_hash FROM files WHERE length(file_hash)"))

    def _files_among(self, column: str, values: Iterable[Any]) -> Iterator[FileRow]:
        for batch in in_batches(list(values)):
            yield from self._files(f"{column} IN ({placeholders(batch)})", batch)

    def _files(self, where: str, values: Sequence[Any]) -> Iterator[FileRow]:
        statement = f"SELECT {FILE_COLUMNS} FROM files WHERE {where}"
        for identifier, path, *rest in self.connection.execute(statement, values):
            rest[9] = bool(rest[9])
            if isinstance(rest[8], str):
                rest[8] = short_origin(rest[8])
            _known(rest[0])
            yield FileRow(identifier, decode_path(path), *rest)

    def files_of_vectors(self, vectors: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
        """Vector id to every (file id, part) that has its text."""
        found: dict[int, list[tuple[int, int]]] = {}
        statement = "SELECT vector, file, part FROM parts WHERE vector IN ({}) ORDER BY 1, 2, 3"
        for vector, file, part in self.rows_among(statement, vectors):
            found.setdefault(vector, []).append((file, part))
        return found

    def vectors_of_files(self, files: Iterable[int]) -> list[int]:
        """The vector ids of some files, ascending."""
        statement = "SELECT vector FROM parts WHERE file IN ({})"
        return sorted({vector for (vector,) in self.rows_among(statement, files)})

    def parts_of(self, file: int) -> list[int]:
        """The vector ids of one file, part by part."""
        found = self.rows("SELECT vector FROM parts WHERE file = ? ORDER BY part", (file,))
        return [row[0] for row in found]

    def vector_keys(self, *, embedded: bool | None = True) -> list[tuple[int, bytes]]:
        """Vector id and embedding key of vectors that have, or lack, their embedding; or of all."""
        which = {True: "embedded <> 0", False: "embedded = 0", None: "1"}[embedded]
        return self.rows(f"SELECT id, key FROM vectors WHERE {which} ORDER BY id")

    def keys_of_vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Vector id to embedding key; unknown ids are left out."""
        return dict(self.rows_among("SELECT id, key FROM vectors WHERE id IN ({})", ids))

    def waiting_count(self) -> int:
        """How many texts have no vector."""
        statement = "SELECT count(*) FROM vectors WHERE embedded = 0"
        return self.once("waiting", lambda: int(self.rows(statement)[0][0]))

    def paths_without_vectors(self) -> list[ChunkPath]:
        """Files with a text that was never embedded."""
        found = self.rows(
            "SELECT DISTINCT files.path FROM vectors JOIN parts ON parts.vector = vectors.id"
            " JOIN files ON files.id = parts.file WHERE vectors.embedded = 0 ORDER BY files.path"
        )
        return [decode_path(row[0]) for row in found]

    def index_delta(self) -> tuple[list[int], list[tuple[int, bytes]]]:
        """What the index lacks: ids to remove, and (id, embedding key) to add, or to send again."""
        removed = self.rows("SELECT vector FROM index_delta WHERE present = 0 ORDER BY vector")
        # The difference is small and leads: SQLite, left to choose, walks all vectors.
        added = self.rows(
            "SELECT id, key FROM index_delta CROSS JOIN vectors ON id = vector"
            " WHERE present <> 0 AND embedded <> 0 ORDER BY id"
        )
        return [row[0] for row in removed], added

    def content(self, file: int) -> bytes | None:
        """The last good bytes of a file."""
        found = self.rows("SELECT data FROM contents WHERE file = ?", (file,))
        return found[0][0] if found else None

    def generated(self, origin: str) -> bytes | None:
        """The generated body with this origin, where it was kept and is what it says."""
        long = f"{ORIGIN_PREFIX}{origin}"
        statement = "SELECT body FROM generated WHERE origin = ? OR origin BETWEEN ? AND ?"
        for (body,) in self.rows(statement, (origin, long, f"{long}g")):
            with contextlib.suppress(*WRONG_VALUES):
                if origin_hash(body.decode()) == origin:
                    return bytes(body)
        return None

    def records_of(self, resource: str) -> list[bytes]:
        """The bytes of a resource's records."""
        found = self.rows("SELECT data FROM records WHERE resource = ?", (resource,))
        return [row[0] for row in found]

    def record_data(self, path: ChunkPath) -> bytes | None:
        """The bytes of one record."""
        found = self.rows("SELECT data FROM records WHERE path = ?", (encode_path(path),))
        return found[0][0] if found else None

    def source_of(self, row: FileRow) -> str | None:
        """The source of a chunk: its own, or the one its resource's record names."""
        if row.source is not None:
            return row.source
        found = self.rows("SELECT source FROM records WHERE resource = ?", (row.resource,))
        return found[0][0] if found else None

    def sources_of_resources(self) -> dict[str, str]:
        """Source of each record to the name of its resource."""
        return dict(self.rows("SELECT source, resource FROM records"))

    def documents(self) -> list[tuple[ChunkPath, str, str, str]]:
        """Record path, resource, source and hash of every document that records name."""
        found = self.rows("SELECT record, resource, source, hash FROM documents ORDER BY 1, 3")
        return [(decode_path(record), *rest) for record, *rest in found]

    def source_stats(self) -> dict[str, tuple[str, bytes]]:
        """Source to the hash its file had, and the packed stat under which it had it."""
        found = self.connection.execute("SELECT source, hash, stat FROM source_stats")
        return {source: (digest, packed) for source, digest, packed in found}

    def dangling_links(self) -> list[LinkRow]:
        """Links to files that are not there, by path; of a document in place none is kept."""
        if self.meta(CHUNKER) is not None:
            return []
        # Links are few and lead. A child that is gone is `summary-stale`, wherever it went.
        found = self.rows(
            "SELECT files.path, links.target, there.path FROM links"
            " CROSS JOIN files ON files.id = links.file"
            " LEFT JOIN files AS linked ON linked.path = links.target"
            " LEFT JOIN renamed ON old = links.target LEFT JOIN files AS there ON there.path = new"
            " LEFT JOIN children ON children.file = links.file AND children.path = links.target"
            " WHERE linked.id IS NULL AND children.file IS NULL"
            " ORDER BY 1, 2"
        )
        return [
            LinkRow(
                path=decode_path(path),
                target=decode_path(target),
                moved_to=decode_path(new) if new is not None else None,
            )
            for path, target, new in found
        ]

    def renamed_from(self, prefix: ChunkPath) -> dict[ChunkPath, ChunkPath]:
        """Old path to new path of files that moved away from below a folder, "" for all."""
        found = self.rows("SELECT old, new FROM renamed")
        pairs = ((decode_path(old), decode_path(new)) for old, new in found)
        start = f"{prefix}/" if prefix else ""
        return {old: new for old, new in pairs if old.startswith(start)}

    def conflicts(self) -> list[Conflict]:
        """What waits for a person's choice, by path."""
        found = self.rows(
            "SELECT path, base, theirs, origin, headings, pages, detail, source, document"
            " FROM conflicts ORDER BY 1"
        )
        with written_by_us():
            return [_conflict(*row) for row in found]

    def deleted(self, version: bytes) -> list[Deleted]:
        """The chunk files that a person deleted from what a record describes.

        Args:
            version: The content hash of the record.
        """
        found = self.rows(
            "SELECT path, origin, source FROM deleted WHERE version = ? ORDER BY 1", (version,)
        )
        return [
            Deleted(path=decode_path(path), origin=short_origin(origin), source=source)
            for path, origin, source in found
        ]

    def record_version(self, row: FileRow) -> bytes | None:
        """The content hash of the record that describes a file; None without one."""
        if row.resource:
            found = self.rows("SELECT data FROM records WHERE resource = ?", (row.resource,))
        else:
            statement = "SELECT data FROM records JOIN documents ON record = path"
            found = self.rows(f"{statement} WHERE documents.source = ?", (row.source,))
        return content_hash(found[0][0]) if found else None

    def files_from(self, sources: Sequence[str]) -> list[FileRow]:
        """The files that name one of some documents as their source, in no order."""
        return list(self._files_among("source", sources))

    def forgotten(self, path: ChunkPath) -> Forgotten | None:
        """What was last seen of a file that is gone."""
        found = self.rows(
            "SELECT file_hash, data, mtime_ns, generation FROM forgotten WHERE path = ?",
            (encode_path(path),),
        )
        if not found:
            return None
        file_hash, data, mtime_ns, generation = found[0]
        return Forgotten(
            path=path, file_hash=file_hash, data=data, mtime_ns=mtime_ns, generation=generation
        )

    def forgotten_paths(self) -> list[ChunkPath]:
        """The files that are gone and still remembered."""
        found = self.rows("SELECT path FROM forgotten ORDER BY path")
        return [decode_path(row[0]) for row in found]

    def forgotten_before(self) -> list[ChunkPath]:
        """The files that an earlier catalog had forgotten."""
        found = self.rows("SELECT path FROM forgotten WHERE generation = ?", (BEFORE,))
        return [decode_path(path) for (path,) in found]

    def duplicates(self) -> list[tuple[ChunkPath, ...]]:
        """Files that say the same themselves, each group once, by path."""
        found = self.connection.execute(
            "SELECT vector, path FROM (SELECT vector FROM parts GROUP BY vector"
            " HAVING min(file) <> max(file)) JOIN parts USING (vector) JOIN files"
            f" ON files.id = parts.file AND {BODY} GROUP BY vector, path ORDER BY vector, path"
        )
        groups: dict[int, list[ChunkPath]] = {}
        for vector, path in found:
            groups.setdefault(vector, []).append(decode_path(path))
        return sorted({tuple(paths) for paths in groups.values() if len(paths) > 1})

    def hand_edited_paths(self) -> list[ChunkPath]:
        """Indexed files whose body a person changed."""
        found = self.rows("SELECT path FROM files WHERE edited <> 0 AND state = '' ORDER BY path")
        return [decode_path(row[0]) for row in found]

    def originals(self) -> dict[str, str]:
        """Where the originals of copies lie, by the reference of the copy."""
        prefix = "original:"
        found = self.rows("SELECT key, value FROM meta WHERE key GLOB ?", (f"{prefix}*",))
        return {key.removeprefix(prefix): path for key, path in found}

    def full_text_changes(self, since: int, until: int) -> tuple[list[int], list[int]]:
        """What a full-text index of generation `since` lacks to reflect `until`.

        Returns:
            File ids to delete, and file ids to add.
        """
        dead = self.rows("SELECT file FROM dead WHERE generation > ?", (since,))
        added = self.rows(
            # Not those of a commit that is under way; later ones are damage, and searchable.
            "SELECT id FROM files WHERE state = '' AND generation > ? AND generation <> ?",
            (since, until + 1),
        )
        return [row[0] for row in dead], [row[0] for row in added]

    def record_paths(self, resource: str) -> list[ChunkPath]:
        """Where the records of a resource are."""
        found = self.rows("SELECT path FROM records WHERE resource = ?", (resource,))
        return [decode_path(row[0]) for row in found]

    def resources(
        self, after: str | None = None, limit: int | None = None
    ) -> list[tuple[str, str, int]]:
        """Name, source and number of indexed files of every resource, by name.

        Args:
            after: Only those behind this name.
            limit: At most n; None for all.
        """
        behind = "" if after is None else "AND resource > ?1"
        return self.rows(
            "SELECT resource, coalesce((SELECT max(source) FROM records"
            " WHERE records.resource = names.resource), ''), (SELECT count(*) FROM files"
            " WHERE files.resource = names.resource AND state = '') FROM"
            f" (SELECT resource FROM files WHERE state = '' {behind}"
            f" UNION SELECT resource FROM records WHERE 1 {behind}"
            " ORDER BY resource LIMIT ?2) AS names",
            (after or "", -1 if limit is None else limit),
        )

    def files_with_fact(self, key: str, value: str) -> set[int]:
        """Indexed files whose frontmatter, or whose document's metadata, has this value."""
        own = "SELECT file FROM facts WHERE key = ? AND value = ?"
        documents = (
            "SELECT files.id FROM record_facts JOIN files ON files.resource = record_facts.resource"
            " LEFT JOIN records ON records.resource = files.resource"
            " WHERE record_facts.key = ? AND record_facts.value = ?"
            " AND record_facts.source = coalesce(files.source, records.source)"
        )
        found = self.rows(f"{own} UNION {documents}", (key, value, key, value))
        return {row[0] for row in found}

    def files_of_kind(self, kind: str) -> set[int]:
        """Indexed files of one kind."""
        return {row[0] for row in self.rows("SELECT id FROM files WHERE kind = ?", (kind,))}

    def has_below(self, folder: ChunkPath) -> bool:
        """Whether any file is known below a folder; a look at one row."""
        start = encode_path(folder)
        statement = "SELECT 1 FROM files WHERE path > ? AND path < ? LIMIT 1"
        return bool(self.rows(statement, (start + b"/", start + b"0")))

    def sources_of_files(self) -> list[tuple[int, str]]:
        """File id and source of every indexed file that has one."""
        return self.rows(
            "SELECT files.id, coalesce(files.source, records.source) AS document FROM files"
            " LEFT JOIN records ON records.resource = files.resource"
            " WHERE files.state = '' AND document IS NOT NULL"
        )


def _conflict(path: bytes, base: str, theirs: bytes | None, *rest: Any) -> Conflict:
    origin, headings, pages, detail, source, document = rest
    made = Conflict(
        path=decode_path(path),
        base=short_origin(base),
        theirs=None if theirs is None else theirs.decode(),
        origin=None if origin is None else short_origin(origin),
        headings=tuple(orjson.loads(headings)),
        pages=tuple(orjson.loads(pages)),
        detail=detail,
        source=source,
        document=document,
    )
    if {*map(type, made.headings)} <= {str} and {*map(type, made.pages)} <= {int}:
        return made
    raise ValueError("the headings or pages of a conflict are unreadable")


def _known(state: Any) -> str:
    """A state of a file, if it is one."""
    if state in STATES:
        return str(state)
    raise damaged(sqlite3.DatabaseError("a file has an unknown state"))

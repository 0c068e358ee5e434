"""Changes to the catalog, inside one transaction. Knows the tables, not the reasons."""

import sqlite3
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec.structs import asdict, astuple, replace

from filestore.catalog import _remembered, queries
from filestore.catalog._reading import Catalog
from filestore.catalog._rows import (
    SOME_TIME,
    Conflict,
    Deleted,
    FileRow,
    Forgotten,
    IndexFile,
    decode_path,
    encode_path,
    in_batches,
    placeholders,
)
from filestore.catalog._schema import (
    CHILDREN_SINCE,
    CHUNKER,
    FACTS_SINCE,
    upgrade,
    written_by_us,
)
from filestore.chunks.observation import DOCUMENT, INDEXED, Observation
from filestore.chunks.resource_record import Record
from filestore.core.errors import FilestoreError, on_error
from filestore.core.paths import ChunkPath
from filestore.fs.stats import PackedFolder

if TYPE_CHECKING:
    from filestore.catalog.ages import History

MAX_FORGOTTEN_BYTES: Final = 64 * 1024 * 1024
"""So much is remembered of files that are gone; the oldest make room."""

_MOST_RESOLVED: Final = 256
"""How many resolved conflicts are kept; of an older one undo restores the files alone."""


class VectorCollisionError(FilestoreError):
    """Two different texts have the same vector id."""


_OF_FILE: Final = tuple(
    f"index_{key}"
    for key in ("name", "size", "hash", "generation", "description", "fingerprint", "seal")
)
"""What is remembered of a FAISS file."""


class CatalogWriter(Catalog):
    """A catalog between `begin` and `commit`.

    One rule: a file id is of one text and is never given twice. A file whose text changed, or
    that is excluded from search or freed, gets a new id, so that derived indexes may lag without
    lying.
    """

    require_alone: Callable[[], None] = staticmethod(lambda: None)
    """Raises where another writer got the store's lock, too; asked before anything is committed."""

    _folders: dict[ChunkPath, PackedFolder] | None = None
    """The stat cache as it is in the running transaction, once it was asked for."""

    def begin(self) -> None:
        """Start the transaction; the generation to be is `next_generation`.

        Raises:
            CatalogDamagedError: What it remembers is not what the last commit wrote.
        """
        self.require_alone()
        # What writes comes back to pages all over; who reads is as fast with SQLite's own 2 MB.
        self.connection.executescript("PRAGMA cache_size = -16384; BEGIN IMMEDIATE;")
        with on_error(self.rollback):
            self.require_sound_memory()
        self.next_generation = self.generation + 1
        self._touched: set[str] = set()
        self._put: set[int] = set()
        self._folders = {}
        version = upgrade(self.connection)
        if version < CHILDREN_SINCE:
            from filestore.chunks import chunk_file

            # The table that a catalog of the schema before does not have.
            statement = "SELECT id, data FROM files JOIN contents ON file = id"
            for file, data in self.rows(f"{statement} WHERE kind = 'summary' AND state = ''"):
                children = chunk_file.parse(data).children
                self.replace_children(file, [(child.path, child.key) for child in children])
        if version < FACTS_SINCE:
            self._read_metadata_again()
        # SQLite asks it again about each statement, and so tells which tables are changed.
        self.connection.set_authorizer(self._note_table)

    def _read_metadata_again(self) -> None:
        """Fill in what filters match since: tags in texts and their parents, every alias.

        Documents in place are read again for their titles.
        """
        from filestore.chunks import questions_file, resource_record
        from filestore.chunks.kept import pairs_of

        statement = "SELECT id, path, data FROM files JOIN contents ON file = id WHERE state = ''"
        for file, path, data in self.rows(f"{statement} AND kind <> '{DOCUMENT}'"):
            pairs = pairs_of(questions_file.read(data), decode_path(path))
            self.insert_metadata((*pair, file) for pair in pairs)
            self._put.add(file)
        for _, resource, _, data in self.all_records():
            self._put_metadata(resource, resource_record.parse(data))

    def _note_table(self, action: int, table: str | None, *_: object) -> int:
        if table is not None and action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_DELETE):
            self._touched.add(table)
        return sqlite3.SQLITE_OK

    def commit(self) -> int:
        """Make the changes the new generation."""
        files = self.count("files")
        (others,) = self.rows("SELECT count(*) FROM files WHERE state <> ''")[0]
        if files or self.file_count():
            self.set_meta(_remembered.LET_GO, int(not files))
        self.set_meta("files", files)
        self.set_meta("indexed", files - others)
        self.set_meta("texts", queries.count_of_texts(self, files - others))
        self.set_meta("generation", self.next_generation)
        self.set_meta(_remembered.COMMITTED, int(time.time()))
        if queries.sent_rows(self) is not None:
            for batch in in_batches(sorted(self._put)):
                self._note_sent_with(self.vectors_of_files(batch))
        _remembered.seal(self.connection, self._touched)
        self.require_alone()
        self.connection.execute("COMMIT")
        self._folders = None
        self.connection.set_authorizer(None)
        return self.next_generation

    def rollback(self) -> None:
        """Forget the changes."""
        self._folders = None
        self.connection.set_authorizer(None)
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def set_meta(self, key: str, value: Any) -> None:
        """Remember one value."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def folders(self) -> dict[ChunkPath, PackedFolder]:
        """See `Catalog.folders`; unpacked once as long as a transaction changes none of them."""
        if self._folders is None:
            return super().folders()
        self._folders = self._folders or super().folders()
        return self._folders

    def put_folders(self, folders: Iterable[tuple[ChunkPath, PackedFolder]]) -> None:
        """Replace folders of the stat cache; a folder without entries is taken out."""
        if self._folders is not None:
            self._folders = {}
        for path, packed in folders:
            key = encode_path(path)
            if packed.names:
                values = (key, packed.names, packed.stats)
                self.connection.execute("INSERT OR REPLACE INTO folders VALUES (?, ?, ?)", values)
            else:
                self.connection.execute("DELETE FROM folders WHERE path = ?", (key,))

    def insert(self, seen: Sequence[tuple[Observation, FileRow]]) -> None:
        """Add rows with their contents, parts and vector ids.

        Args:
            seen: Observations with their rows, whose ids are from `new_ids`.

        Raises:
            VectorCollisionError: Two texts share a vector id.
        """
        self._insert_rows([row for _, row in seen])
        indexed = [(look, row) for look, row in seen if look.state == INDEXED]
        self.connection.executemany(
            "INSERT OR REPLACE INTO contents VALUES (?, ?)",
            [(row.id, look.data) for look, row in indexed],
        )
        wanted: dict[int, tuple[bytes, ChunkPath]] = {}
        for look, _ in indexed:
            for vector, key in zip(look.vector_ids(), look.keys, strict=True):
                before = wanted.setdefault(vector, (key, look.path))
                if before[0] != key:
                    raise collision(vector, before[1], look.path)
        known = self.keys_of_vectors(list(wanted))
        for vector, key in known.items():
            if wanted[vector][0] != key:
                file = self.files_of_vectors([vector])[vector][0][0]
                raise collision(vector, self.files_by_id([file])[file].path, wanted[vector][1])
        new = [vector for vector in wanted if vector not in known]
        self.connection.executemany(
            "INSERT INTO vectors VALUES (?, ?, 0)", [(vector, wanted[vector][0]) for vector in new]
        )
        if self._has_index:
            self._note_delta(new, present=True)
        self.connection.executemany(
            "INSERT INTO parts VALUES (?, ?, ?)",
            [
                (row.id, part, vector)
                for look, row in indexed
                for part, vector in enumerate(look.vector_ids())
            ],
        )

    def insert_metadata(self, pairs: Iterable[tuple[str, str, int]]) -> None:
        """Add (key, value, file id) that filters ask for."""
        self.connection.executemany("INSERT OR IGNORE INTO facts VALUES (?, ?, ?)", pairs)

    def replace_metadata(self, file: int, pairs: Iterable[tuple[str, str, int]]) -> None:
        """Replace all metadata of one file."""
        self.connection.execute("DELETE FROM facts WHERE file = ?", (file,))
        self.insert_metadata(pairs)

    def new_ids(self, count: int) -> range:
        """File ids that were never given before."""
        found = self.rows("SELECT seq FROM sqlite_sequence WHERE name = 'files'")
        first = max(found[0][0] if found else 0, self._given if self._given else 0) + 1
        self._given = first + count - 1
        return range(first, first + count)

    _given: int = 0

    @property
    def _has_index(self) -> bool:
        """Whether there is anything that `index_delta` tells the difference to."""
        return self.index_file() is not None or queries.sent_rows(self) is not None

    def _insert_rows(self, rows: Sequence[FileRow]) -> None:
        self._put.update(row.id for row in rows)
        self.connection.executemany(
            f"INSERT INTO files VALUES ({placeholders(range(15))})",
            [(row.id, encode_path(row.path), *astuple(row)[2:], row.checksum()) for row in rows],
        )

    def _note_delta(self, vectors: Sequence[int], *, present: bool) -> None:
        """Keep `index_delta` the net difference: coming back after leaving is no difference."""
        for vector in vectors:
            opposite = self.connection.execute(
                "DELETE FROM index_delta WHERE vector = ? AND present = ?", (vector, not present)
            )
            if opposite.rowcount == 0:
                self.connection.execute(
                    "INSERT OR REPLACE INTO index_delta VALUES (?, ?)", (vector, present)
                )

    def _note_sent_with(self, vectors: Iterable[int]) -> None:
        """Note that what is sent with vectors is another now, as the path of their file."""
        self.connection.executemany(
            "INSERT OR IGNORE INTO index_delta VALUES (?, 2)", [(vector,) for vector in vectors]
        )

    def update(self, row: FileRow) -> None:
        """Replace the row of a file whose texts stay as they were."""
        self.connection.execute("DELETE FROM files WHERE id = ?", (row.id,))
        self._insert_rows([row])

    def delete_rows(self, ids: Sequence[int]) -> None:
        """Take out the rows of files that `update` puts back under other names."""
        for batch in in_batches(ids):
            self.connection.execute(f"DELETE FROM files WHERE id IN ({placeholders(batch)})", batch)

    def renew(self, rows: Sequence[FileRow]) -> list[FileRow]:
        """Give new ids to files that are found by other words now, while their texts stay."""
        old = [row.id for row in rows]
        dead = [(text, self.next_generation) for text in queries.texts_of_files(self, old)]
        self.connection.executemany("INSERT OR REPLACE INTO dead VALUES (?, ?)", dead)
        renewed = [
            replace(row, id=new, generation=self.next_generation)
            for row, new in zip(rows, self.new_ids(len(rows)), strict=True)
        ]
        for table in ("parts", "children", "contents", "facts", "links"):
            self.connection.executemany(
                f"UPDATE {table} SET file = ? WHERE file = ?",
                [(new.id, row.id) for row, new in zip(rows, renewed, strict=True)],
            )
        self.delete_rows(old)
        self._insert_rows(renewed)
        return renewed

    def put_content(self, file: int, data: bytes) -> None:
        """Replace the last good bytes of a file."""
        self.connection.execute("INSERT OR REPLACE INTO contents VALUES (?, ?)", (file, data))

    def keep_generated(self, origin: str, body: bytes) -> None:
        """Keep a generated body, so that a hand edit can be merged with the next one."""
        self.connection.execute("INSERT OR IGNORE INTO generated VALUES (?, ?)", (origin, body))

    def delete(self, ids: Sequence[int]) -> None:
        """Forget files with all that hangs on them; vectors that no other file has go too."""
        for batch in in_batches(ids):
            self._delete_batch(batch)

    def _delete_batch(self, ids: Sequence[int]) -> None:
        inside = f"IN ({placeholders(ids)})"
        vectors = self.vectors_of_files(ids)
        texts = queries.texts_of_files(self, ids)
        self.connection.execute(f"DELETE FROM parts WHERE file {inside}", ids)
        for table in ("children", "contents", "facts", "links"):
            self.connection.execute(f"DELETE FROM {table} WHERE file {inside}", ids)
        self.connection.execute(f"DELETE FROM files WHERE id {inside}", ids)
        self.connection.executemany(
            "INSERT OR REPLACE INTO dead VALUES (?, ?)",
            [(identifier, self.next_generation) for identifier in texts],
        )
        used = self.files_of_vectors(vectors)
        unused = [vector for vector in vectors if vector not in used]
        self.connection.executemany(
            "DELETE FROM vectors WHERE id = ?", [(vector,) for vector in unused]
        )
        if self._has_index:
            self._note_delta(unused, present=False)
        if queries.sent_rows(self) is not None:
            self._note_sent_with(used)

    def set_embedded(
        self, vectors: Iterable[int], *, embedded: bool = True, at_s: int = SOME_TIME
    ) -> None:
        """Say that the embeddings of some vectors are, or are not, in the embeddings file.

        Args:
            vectors: Their ids.
            embedded: Whether they are.
            at_s: When the model gave them; what is known already is not forgotten.
        """
        statement = "UPDATE vectors SET embedded = max(embedded, ?) WHERE id = ?"
        if not embedded:
            statement, at_s = "UPDATE vectors SET embedded = ? WHERE id = ?", 0
        self.connection.executemany(statement, [(at_s, vector) for vector in vectors])

    def name_index(self, file: IndexFile) -> None:
        """Name a FAISS file that holds every embedded vector; the difference is empty again."""
        self.set_meta("index_name", file.name)
        self.set_meta("index_size", file.size_bytes)
        self.set_meta("index_hash", file.hash)
        self.set_meta("index_generation", file.generation)
        self._clear_delta()

    def _clear_delta(self) -> None:
        self.connection.execute("DELETE FROM index_delta")
        self.connection.execute(
            "INSERT INTO index_delta SELECT id, 1 FROM vectors WHERE embedded = 0"
        )

    def unname_rows(self) -> None:
        """Forget the backend that was written to: a FAISS file takes its place."""
        self._forget_meta(_remembered.ROWS_AT, _remembered.ROWS_GENERATION)

    def _forget_meta(self, *keys: str) -> None:
        for key in keys:
            self.connection.execute("DELETE FROM meta WHERE key = ?", (key,))

    def note_sent(self, address: str, generation: int) -> None:
        """Remember, in a transaction of its own, that a backend has all of a generation.

        A FAISS file is no longer named. It makes no new generation: no file changed, and what is
        read stays true.
        """
        with self._aside():
            self._forget_meta(*_OF_FILE)
            self.set_meta(_remembered.ROWS_AT, address)
            self.set_meta(_remembered.ROWS_GENERATION, generation)
            self._clear_delta()

    def doubt_sent(self) -> None:
        """Forget that a backend has anything, in a transaction of its own: all is compared."""
        with self._aside():
            self.unname_rows()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """A transaction that changes what is remembered of the index, and no generation."""
        self.require_alone()
        self.connection.execute("BEGIN IMMEDIATE")
        with on_error(self.rollback):
            yield
            _remembered.seal(self.connection, {"index_delta"})
            self.connection.execute("COMMIT")

    def forget_dead(self, generation: int) -> None:
        """Drop the dead ids that the full-text index, at this generation, no longer holds."""
        self.connection.execute("DELETE FROM dead WHERE generation <= ?", (generation,))

    def put_record(self, path: ChunkPath, resource: str, record: Record, data: bytes) -> None:
        """Replace a record, the metadata of its documents, and their hashes."""
        self.delete_record(path)
        key = encode_path(path)
        self.connection.executemany(
            "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)",
            [(key, resource, document.source, document.hash) for document in record.documents],
        )
        self.connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?)", (key, resource, record.source, data)
        )
        self._put_metadata(resource, record)

    def _put_metadata(self, resource: str, record: Record) -> None:
        self.connection.executemany(
            "INSERT OR IGNORE INTO record_facts VALUES (?, ?, ?, ?)",
            [
                (*fact, resource, document.source)
                for document in record.documents
                for fact in document.pairs()
            ],
        )

    def delete_record(self, path: ChunkPath) -> None:
        """Forget a record."""
        key = encode_path(path)
        for (resource,) in self.rows("SELECT resource FROM records WHERE path = ?", (key,)):
            self.connection.execute("DELETE FROM record_facts WHERE resource = ?", (resource,))
        self.connection.execute("DELETE FROM records WHERE path = ?", (key,))
        self.connection.execute("DELETE FROM documents WHERE record = ?", (key,))

    def put_source_stats(self, seen: Iterable[tuple[str, str, bytes]]) -> None:
        """Remember (source, hash, packed stat) of originals that were read."""
        statement = "INSERT OR REPLACE INTO source_stats VALUES (?, ?, ?)"
        self.connection.executemany(statement, seen)

    def drop_unused_source_stats(self) -> None:
        """Forget the stats of originals that no record names any more."""
        self.connection.execute(
            "DELETE FROM source_stats WHERE source NOT IN (SELECT source FROM documents)"
            " AND source NOT IN (SELECT 'original:' || source FROM documents)"
        )

    def replace_links(self, file: int, targets: Iterable[ChunkPath]) -> None:
        """Replace the links of one file; targets are paths below `chunked/`, or link keys."""
        self.connection.execute("DELETE FROM links WHERE file = ?", (file,))
        self.connection.executemany(
            "INSERT OR IGNORE INTO links VALUES (?, ?)",
            [(file, encode_path(target)) for target in targets],
        )

    def replace_children(self, file: int, children: Iterable[tuple[ChunkPath, bytes]]) -> None:
        """Replace what one summary was made from: paths, and the embedding key of each text."""
        self.connection.execute("DELETE FROM children WHERE file = ?", (file,))
        self.connection.executemany(
            "INSERT OR IGNORE INTO children VALUES (?, ?, ?)",
            [(file, encode_path(path), key) for path, key in children],
        )

    def note_history(self, history: "History") -> None:
        """Remember how far git's log was read."""
        self.set_meta(_remembered.HISTORY, orjson.dumps(asdict(history)).decode())

    def note_committed(
        self,
        dates: Mapping[bytes, tuple[int, int] | None],
        edited: Iterable[bytes],
        *,
        is_whole: bool,
    ) -> None:
        """Remember when files of the work tree were first and last committed.

        Args:
            dates: By path, relative to its top; None for what is gone.
            edited: All files that differ from the last commit.
            is_whole: Whether nothing of before holds.
        """
        self.connection.execute(
            "DELETE FROM committed_files" if is_whole else "UPDATE committed_files SET edited = 0"
        )
        statement = "DELETE FROM committed_files WHERE path = ?"
        self.connection.executemany(statement, [(path,) for path, at in dates.items() if not at])
        self.connection.executemany(
            "INSERT OR REPLACE INTO committed_files VALUES (?, ?, ?, 0)",
            [(path, *at) for path, at in dates.items() if at],
        )
        statement = "UPDATE committed_files SET edited = 1 WHERE path = ?"
        self.connection.executemany(statement, [(path,) for path in edited])

    def note_moves(self, moves: Iterable[tuple[ChunkPath, ChunkPath]]) -> None:
        """Remember where files went, and take what is kept about them along."""
        for old, new in moves:
            before, after = encode_path(old), encode_path(new)
            back = self.rows("SELECT 1 FROM renamed WHERE old = ? AND new = ?", (after, before))
            self.connection.execute("UPDATE renamed SET new = ? WHERE new = ?", (after, before))
            if not back or self.meta(CHUNKER) is not None:
                # Of a file that came back, the name between is none that it was made under; to a
                # document in place links may lead under it.
                statement = "INSERT OR REPLACE INTO renamed VALUES (?, ?)"
                self.connection.execute(statement, (before, after))
            self.connection.execute("DELETE FROM renamed WHERE old = new OR old = ?", (after,))
            self.connection.execute(
                "UPDATE OR REPLACE conflicts SET path = ? WHERE path = ?", (after, before)
            )

    def put_conflict(self, conflict: Conflict) -> None:
        """Keep the new source text of a hand-edited file."""
        self.connection.execute(
            "INSERT OR REPLACE INTO conflicts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                encode_path(conflict.path),
                conflict.base,
                None if conflict.theirs is None else conflict.theirs.encode(),
                conflict.origin,
                orjson.dumps(conflict.headings).decode(),
                orjson.dumps(conflict.pages).decode(),
                conflict.detail,
                conflict.source,
                conflict.document,
            ),
        )

    def delete_conflicts(self, paths: Iterable[ChunkPath]) -> None:
        """Forget conflicts that were resolved, or whose file is gone."""
        self.connection.executemany(
            "DELETE FROM conflicts WHERE path = ?", [(encode_path(path),) for path in paths]
        )

    def keep_resolved(self, batch: str, conflicts: Iterable[Conflict]) -> None:
        """Keep conflicts that a person resolved, by the batch of originals that undoes it."""
        fresh = [
            [batch, asdict(one) | {"path": encode_path(one.path).decode("latin-1")}]
            for one in conflicts
        ]
        if fresh:
            kept = [*self._resolved(), *fresh][-_MOST_RESOLVED:]
            self.set_meta(_remembered.RESOLVED, orjson.dumps(kept).decode())

    def reopen_conflicts(self, batches: Container[str]) -> None:
        """Let a person choose again, where the choice was undone."""
        with written_by_us():
            for batch, values in self._resolved():
                if batch in batches:
                    path = decode_path(values["path"].encode("latin-1"))
                    lists = {name: tuple(values[name]) for name in ("headings", "pages")}
                    self.put_conflict(Conflict(**values | lists | {"path": path}))

    def _resolved(self) -> list[Any]:
        return list(orjson.loads(self.meta(_remembered.RESOLVED, "[]")))

    def note_deleted(self, version: bytes, deleted: Iterable[Deleted]) -> None:
        """Remember what a person deleted from what this version of a record describes."""
        self.connection.executemany(
            "INSERT OR REPLACE INTO deleted VALUES (?, ?, ?, ?)",
            [(version, encode_path(one.path), one.origin, one.source) for one in deleted],
        )

    def remember_forgotten(self, gone: Iterable[Forgotten]) -> None:
        """Keep the last good bytes of files that are gone, the newest of them."""
        self.connection.executemany(
            "INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?, ?, ?)",
            [
                (encode_path(one.path), one.file_hash, one.data, one.mtime_ns, one.generation)
                for one in gone
            ],
        )
        held = 0
        for path, size in self.rows(
            "SELECT path, length(data) FROM forgotten ORDER BY generation DESC, path"
        ):
            held += size
            if held > MAX_FORGOTTEN_BYTES:
                self.connection.execute("DELETE FROM forgotten WHERE path = ?", (path,))

    def no_longer_forgotten(self, paths: Iterable[ChunkPath]) -> None:
        """Files that are there again are remembered by their own rows."""
        self.connection.executemany(
            "DELETE FROM forgotten WHERE path = ?", [(encode_path(path),) for path in paths]
        )


def collision(vector: int, first: ChunkPath, second: ChunkPath) -> VectorCollisionError:
    """Say which two files have different texts on one vector id."""
    return VectorCollisionError(
        f"{first} and {second} have different texts with the same vector id {vector}"
        ": change a word in one of them",
    )

"""The catalog as programs may see it: of files that are closed to them it has no row.

Views take the places of the tables, in the schema that SQLite looks in first, so that no question
can forget them. One rule: they show one generation only, that of which it was decided what is
closed; of any other they show nothing.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Self

from filestore.catalog._reading import Catalog
from filestore.catalog._rows import MADE, decode_path, encode_path, text_id
from filestore.catalog._schema import catalog_errors, readable
from filestore.core.paths import ChunkPath, made_of

if TYPE_CHECKING:
    from filestore.config.door import Rules
    from filestore.core.paths import Tree

_SHUT: Final = "SELECT id FROM temp.shut_files"
_PATHS: Final = "SELECT path FROM temp.shut_files"
_SOURCES: Final = "SELECT source FROM temp.shut_sources"
_ORIGIN: Final = "substr(replace(origin, 'sha256:', ''), 1, 16)"
"""As `short_origin` has it."""
VIEWS: Final = {
    "files": f"id NOT IN ({_SHUT})",
    "contents": f"file NOT IN ({_SHUT})",
    "parts": f"file NOT IN ({_SHUT})",
    "vectors": "id NOT IN (SELECT vector FROM temp.shut_vectors)",
    "facts": f"file NOT IN ({_SHUT})",
    "links": f"file NOT IN ({_SHUT})",
    "children": f"file NOT IN ({_SHUT}) AND path NOT IN ({_PATHS})",
    "records": f"path NOT IN ({_PATHS}) AND source NOT IN ({_SOURCES})",
    "record_facts": f"source NOT IN ({_SOURCES})",
    "documents": f"record NOT IN ({_PATHS}) AND source NOT IN ({_SOURCES})",
    "source_stats": f"source NOT IN ({_SOURCES})",
    "renamed": f"new NOT IN ({_PATHS}) AND new IN (SELECT path FROM main.files)",
    "conflicts": f"path NOT IN ({_PATHS}) AND source NOT IN ({_SOURCES})",
    # No program needs what files were, nor the names of all files.
    "forgotten": "0",
    "deleted": "0",
    "generated": f"{_ORIGIN} IN (SELECT {_ORIGIN} FROM main.files WHERE id NOT IN ({_SHUT}))",
    "folders": "0",
}
"""Of each table which rows are open."""
_TABLES: Final = (
    "CREATE TEMP TABLE shut_files (id INTEGER PRIMARY KEY, path BLOB NOT NULL);"
    "CREATE INDEX temp.shut_paths ON shut_files (path);"
    "CREATE TEMP TABLE shut_sources (source TEXT PRIMARY KEY) WITHOUT ROWID;"
    "CREATE TEMP TABLE shut_vectors (vector INTEGER PRIMARY KEY);"
)
_OF_FILES: Final = (
    "SELECT files.id, files.path, coalesce(files.source, records.source) FROM main.files"
    " LEFT JOIN main.records ON records.resource = files.resource AND files.resource <> ''"
)
_ABOVE: Final = (
    "INSERT OR IGNORE INTO temp.shut_files SELECT files.id, files.path FROM main.files"
    f" WHERE id NOT IN ({_SHUT}) AND id IN"
    f" (SELECT file FROM {{children}} WHERE path IN ({_PATHS}))"
)
"""What was made from what is closed, and so on."""
_MADE: Final = "INSERT OR IGNORE INTO temp.shut_files SELECT ?, ?"
_VECTORS: Final = (
    f"INSERT INTO temp.shut_vectors SELECT DISTINCT vector FROM main.parts WHERE file IN ({_SHUT})"
    f" AND vector NOT IN (SELECT vector FROM main.parts WHERE file NOT IN ({_SHUT}))"
)


class OpenCatalog(Catalog):
    """An open catalog without what some rules close."""

    _rules: "Rules"
    _tree: "Tree"
    _of: tuple[int, ...] = ()
    """The state of the database of which it was decided what is closed."""
    _children: str = "main.children"

    @classmethod
    def of(cls, path: str, rules: "Rules", tree: "Tree") -> Self:
        """Open the catalog; see `open`, which says what is raised.

        Args:
            path: Of the catalog.
            rules: What they hold for is closed.
            tree: Of the store.
        """
        catalog = cls.open(path)
        catalog._rules, catalog._tree = rules, tree
        connection = catalog.connection
        with catalog_errors(), readable():
            known = "SELECT 1 FROM temp.sqlite_master WHERE name = 'children'"
            if connection.execute(known).fetchone():
                # An earlier version had no such table, and nothing was made from others.
                connection.execute("ALTER TABLE temp.children RENAME TO no_children")
                catalog._children = "temp.no_children"
            connection.executescript(_TABLES)
            for table, is_open in VIEWS.items():
                place = catalog._children if table == "children" else f"main.{table}"
                connection.execute(
                    f"CREATE TEMP VIEW {table} AS SELECT * FROM {place} WHERE {is_open}"
                )
        return catalog

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything asked inside sees one generation, of which it is known what is closed."""
        if self.connection.in_transaction:
            with super().snapshot():
                yield
            return
        with readable(), catalog_errors():
            while True:
                # What is decided has to stay when the snapshot ends, so it is decided before.
                if self._version() != self._of:
                    self._decide()
                with super().snapshot():
                    if self._version() == self._of:
                        yield
                        return

    def _version(self) -> tuple[int, ...]:
        return tuple(self.rows("PRAGMA data_version")[0])

    def _decide(self) -> None:
        """Write down what is closed."""
        connection = self.connection
        connection.execute("BEGIN")
        try:
            for table in ("files", "sources", "vectors"):
                connection.execute(f"DELETE FROM temp.shut_{table}")
            sources = self._closed_sources()
            by_key = "SELECT file FROM main.facts WHERE key = ? AND value = ?"
            files = {one for pair in self._held("facts") for (one,) in self.rows(by_key, pair)}
            connection.executemany(
                "INSERT INTO temp.shut_sources VALUES (?)", [(one,) for one in sources]
            )
            shut = [
                (file, path)
                for file, path, source in self.rows(_OF_FILES)
                if file in files or source in sources or self._names_closed(decode_path(path))
            ]
            shut += self.rows(
                f"SELECT id, path FROM main.files JOIN main.records USING (path)"
                f" WHERE records.source IN ({_SOURCES})"
            )
            connection.executemany("INSERT OR IGNORE INTO temp.shut_files VALUES (?, ?)", shut)
            while connection.execute(_ABOVE.format(children=self._children)).rowcount > 0:
                pass
            made = self.rows("SELECT id, path FROM main.files WHERE path BETWEEN ? AND ?", MADE)
            for file, path in made:
                document = encode_path(made_of(decode_path(path)))
                connection.execute(f"{_MADE} WHERE ? IN ({_PATHS})", (file, path, document))
            connection.execute(_VECTORS)
            self._of = self._version()
        finally:
            connection.execute("COMMIT")

    def _closed_sources(self) -> set[str]:
        """The originals that are closed by where they lie, or by what they say."""
        rules, places = self._rules, super().originals()
        named = self.rows(
            "SELECT source FROM main.documents UNION SELECT source FROM main.records"
            " UNION SELECT source FROM main.files WHERE source IS NOT NULL"
        )
        found = {
            one for (one,) in named if rules.matches(one) or rules.matches(places.get(one, one))
        }
        pairs = self._held("record_facts")
        statement = "SELECT source FROM main.record_facts WHERE key = ? AND value = ?"
        return found | {one for pair in pairs for (one,) in self.rows(statement, pair)}

    def _held(self, table: str) -> list[tuple[str, str]]:
        if not (self._rules.tags or self._rules.properties):
            return []
        pairs = self.rows(f"SELECT DISTINCT key, value FROM main.{table}")
        return [(key, value) for key, value in pairs if self._rules.holds(key, value)]

    def _names_closed(self, path: ChunkPath) -> bool:
        return self._rules.matches(path) or self._rules.matches(self._tree.store_path(path))

    def closes(self, path: ChunkPath) -> bool:
        """Whether a file is closed, whatever the catalog knows of it."""
        known = "SELECT 1 FROM temp.shut_files WHERE path = ?"
        start = encode_path(path)
        if self._names_closed(path) or self.rows(known, (start,)):
            return True
        # A folder in which nothing else is known.
        below = "SELECT 1 FROM temp.shut_files WHERE path > ? AND path < ? LIMIT 1"
        return bool(self.rows(below, (start + b"/", start + b"0"))) and not self.has_below(path)

    def closed(self) -> set[str]:
        """The paths, originals and resources of which nothing is shown, as answers name them."""
        paths = [decode_path(path) for (path,) in self.rows(_PATHS)]
        resources = self.rows(
            "SELECT resource FROM main.files WHERE resource <> '' EXCEPT SELECT resource FROM files"
        )
        return {
            *paths,
            *map(self._tree.store_path, paths),
            *(one for (one,) in [*resources, *self.rows(_SOURCES)]),
        }

    def closed_texts(self) -> list[int]:
        """The ids of closed texts in the full-text index."""
        found = self.rows(f"SELECT file, part FROM main.parts WHERE file IN ({_SHUT})")
        return sorted({text_id(*one) for one in found} | {one for (one,) in self.rows(_SHUT)})

    def originals(self) -> dict[str, str]:
        """Where the originals of copies lie, by the reference of the copy."""
        shut = {one for (one,) in self.rows(_SOURCES)}
        return {key: path for key, path in super().originals().items() if key not in shut}

    def file_count(self) -> int:
        """How many files are known, excluded ones and records included."""
        return self.count("files")

    def indexed_count(self) -> int:
        """How many files are searchable."""
        return len(self.indexed_ids())

    def text_count(self) -> int:
        """How many texts the full-text index has: of a document one a section."""
        (more,) = self.rows(
            "SELECT count(*) FROM parts JOIN files ON files.id = parts.file"
            " WHERE kind = 'document' AND part > 0 AND state = ''"
        )[0]
        return self.indexed_count() + int(more)

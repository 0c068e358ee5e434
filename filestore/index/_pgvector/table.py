"""The tables of the backend pgvector: what is there, whether it is ours, how they are made.

A second table holds the stamp, in one row. The graph (HNSW) is derived from the first and made
after its rows are committed: without it answers are exact.

The rows of a table may lie on several servers: it is partitioned then, and its partitions are
foreign tables. One rule: a server that does not answer is named; what the others answer is a part,
and says so.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from filestore.core.safe_text import safe_text
from filestore.index._pgvector.session import Row, Session, checked_name
from filestore.index.backend import BackendUnreachable, BackendUnusable, not_announced

COLUMNS: Final = {
    "id": "int8",
    "doc_id": "text",
    "content_hash": "text",
    "body": "text",
    "metadata": "jsonb",
    "embedding": "vector",
}
_STAMP_COLUMNS: Final = {
    "single": "bool",
    "owner": "text",
    "generation": "int8",
    "fingerprint": "text",
    "dimension": "int4",
}
_OLDEST: Final = (0, 8)
"""The first pgvector that goes on looking where a filter leaves too few of the nearest."""
_MANY: Final = 50_000
"""Above it the nearest are looked for in a graph (HNSW) rather than among all."""
MOST_IN_GRAPH: Final = 2_000
"""Numbers of a vector that HNSW takes."""
_SEARCHED: Final = 100
"""hnsw.ef_search: how many of the graph are looked at, at least."""
_PLAIN: Final = 1_800
"""Vectors up to this length stay in their row, where a comparison of all need not fetch them."""
_GRAPH_LIMIT_S: Final = 6 * 3600
_GRAPH_MEMORY_MB: Final = 1_024
Ask: TypeAlias = Callable[[bytes, Any], Sequence[Row]]
"""Gives the rows of a statement with its parameters; raises `BackendUnreachable` where no one
answers, and then can be asked again."""

_PARTITIONS: Final = b"""
    SELECT server.srvname, place.nspname, part.relname
    FROM pg_class AS whole
    JOIN pg_namespace AS space ON space.oid = whole.relnamespace
    JOIN pg_inherits AS below ON below.inhparent = whole.oid
    JOIN pg_class AS part ON part.oid = below.inhrelid
    JOIN pg_namespace AS place ON place.oid = part.relnamespace
    JOIN pg_foreign_table AS far ON far.ftrelid = part.oid
    JOIN pg_foreign_server AS server ON server.oid = far.ftserver
    WHERE space.nspname = %s AND whole.relname = %s
    ORDER BY 1, 2, 3
"""


class Shard(Struct, frozen=True, kw_only=True):
    """A part of a table, on a server of its own."""

    server: str
    """As the server in front calls it."""
    schema: str
    name: str
    """Schema and name of the part there."""


class Gathered(Struct, frozen=True, kw_only=True):
    """What the servers of a table answered."""

    rows: Sequence[Row]
    """Of all of them, one after another."""
    missing: Mapping[str, str]
    """The servers that did not answer, and the error of each."""


def shards(ask: Ask, schema: str, name: str) -> tuple[Shard, ...]:
    """The parts of a table that lie on other servers; none of a table that lies on one.

    Args:
        ask: The server in front.
        schema: Of the table.
        name: Of the table.

    Raises:
        BackendUnreachable: The server in front does not answer.
    """
    rows = ask(_PARTITIONS, [schema, name])
    return tuple(Shard(server=server, schema=place, name=part) for server, place, part in rows)


def gather(
    ask: Ask, parts: Sequence[Shard], query: Callable[[Shard], bytes], parameters: Any
) -> Gathered:
    """Ask every part for itself, so that one that is away takes only its own rows with it.

    Args:
        ask: The server in front.
        parts: Of one table, at least one.
        query: Makes the statement for a part.
        parameters: Of the statement.

    Raises:
        BackendUnreachable: No part answers, or the server in front does not.
    """
    rows: list[Row] = []
    missing: dict[str, str] = {}
    for part in parts:
        try:
            rows += ask(query(part), parameters)
        except BackendUnreachable as error:
            # Nothing is a part's fault where the server in front is away.
            ask(b"SELECT 1", None)
            missing[part.server] = error.detail or error.message
            if len(missing) == len(parts):
                raise
    return Gathered(rows=rows, missing=missing)


def together(parts: Sequence[Shard], query: Callable[[Shard], bytes]) -> bytes:
    """One statement that asks every part at once, while the servers work side by side.

    Asked of the whole table, PostgreSQL asks one server after another, and each for a hundred rows.

    Args:
        parts: Of one table, at least one.
        query: Makes the statement for a part, with its own order and limit.
    """
    return b" UNION ALL ".join(b"(" + query(part) + b")" for part in parts)


def note(missing: Mapping[str, str]) -> str:
    """The servers that are missing in an answer, for people; empty where none is."""
    if not missing:
        return ""
    reason = next(iter(missing.values())).partition("\n")[0]
    names = ", ".join(sorted(missing))
    return safe_text(f"without the vectors on {names}: {reason}", keep_newlines=False)


class Table:
    """One table of vectors, and the one with its stamp."""

    def __init__(self, session: Session, *, schema: str, name: str) -> None:
        """Know their names; nothing is asked.

        Raises:
            BackendSettingsWrong: One is no name.
        """
        self.schema = checked_name("schema", schema)
        self.name = checked_name("table", name)
        self.dimension: int | None = None
        """Of the vectors that it holds; None where it is not made yet."""
        self.is_made = False
        self.has_graph = False
        self.parts: tuple[Shard, ...] = ()
        """The ones that lie on other servers, where the table is spread over several."""
        self.has_digests = False
        """Whether these servers compute digests themselves, in a table next to it."""
        self._vector_schema = "public"
        self._session = session
        self._composed: dict[tuple[str, str, Shard | None], bytes] = {}

    def look(self) -> None:
        """Find out what is there.

        Raises:
            BackendUnusable: The extension is missing or too old, or the table is not ours.
        """
        self.dimension, self.is_made, self.has_graph = None, False, False
        self.parts, self.has_digests = (), False
        # Which pgvector the database has, and in which schema: its operators are named by it.
        rows = self._session.rows(
            self.sql(
                "SELECT (SELECT default_version FROM pg_available_extensions"
                " WHERE name = 'vector'), extversion, nspname FROM (VALUES (1)) AS one"
                " LEFT JOIN pg_extension ON extname = 'vector'"
                " LEFT JOIN pg_namespace n ON n.oid = extnamespace"
            )
        )
        offered, version, schema = rows[0]
        package = "install pgvector on the server (Debian: postgresql-NN-pgvector)"
        if version is None:
            command = "run there as a superuser: CREATE EXTENSION vector"
            raise BackendUnusable(
                f"{self._session.address}: this database lacks the extension vector",
                remedy=command if offered else f"{package}, then {command}",
            )
        if _numbers(version) < _OLDEST:
            command = "run there as a superuser: ALTER EXTENSION vector UPDATE"
            is_offered = _numbers(offered or "0") >= _OLDEST
            raise BackendUnusable(
                f"{self._session.address}: the extension vector has version {version}, expected"
                " 0.8 or newer, which filters correctly",
                remedy=command if is_offered else f"{package} again, then {command}",
            )
        self._vector_schema = schema
        self._session.set({"hnsw.ef_search": str(_SEARCHED), "hnsw.iterative_scan": "strict_order"})
        found, stamps = self._columns(self.name), self._columns(f"{self.name}_stamp")
        if not found and not stamps:
            return
        if stamps:
            self._check_shape(f"{self.name}_stamp", stamps, _STAMP_COLUMNS)
        if not found:
            # The vectors were dropped: a stamp alone says nothing, and is made again with them.
            return
        self._check_shape(self.name, found, COLUMNS)
        self._check_shape(f"{self.name}_stamp", stamps, _STAMP_COLUMNS)
        self.is_made, self.dimension = True, found["embedding"][1]
        self._find_graph()

    def _columns(self, table: str) -> dict[str, tuple[str, int]]:
        """Columns of a table with type and bound; none where there is no table."""
        rows = self._session.rows(
            self.sql(
                "SELECT attname, typname, atttypmod FROM pg_attribute"
                " JOIN pg_class c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid"
                " JOIN pg_namespace n ON n.oid = relnamespace"
                " WHERE n.nspname = %s AND relname = %s AND attnum > 0 AND NOT attisdropped"
                " ORDER BY attnum"
            ),
            [self.schema, table],
        )
        return {name: (kind, bound) for name, kind, bound in rows}

    def _check_shape(
        self, table: str, found: Mapping[str, tuple[str, int]], expected: Mapping[str, str]
    ) -> None:
        """Refuse a table that filestore did not make."""
        kinds = {name: kind for name, (kind, _) in found.items()}
        if kinds == expected and found.get("embedding", ("", 1))[1] > 0:
            return
        there = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        wanted = ", ".join(f"{name} {kind}" for name, kind in expected.items())
        raise BackendUnusable(
            f"{self._session.address}: {table} is not what filestore makes; expected the"
            f" columns {wanted}; found {there or 'no such table'}",
            remedy="filestore backend set pgvector table=NAME, with a name that is not taken",
        )

    def _find_graph(self) -> None:
        """Whether there is a graph, or servers behind this one that may have it."""
        rows = self._session.rows(
            self.sql(
                "SELECT c.relkind, EXISTS (SELECT 1 FROM pg_index i JOIN pg_class g ON g.oid ="
                " i.indexrelid JOIN pg_am a ON a.oid = g.relam JOIN pg_opclass o ON o.oid ="
                " i.indclass[0] WHERE i.indrelid = c.oid AND i.indisvalid AND a.amname = 'hnsw'"
                " AND o.opcname = 'vector_ip_ops') FROM pg_class c JOIN pg_namespace n"
                " ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s"
            ),
            [self.schema, self.name],
        )
        kind, has_graph = rows[0]
        self.has_graph = has_graph or kind == "p"
        if kind == "p":
            self.parts = shards(self._session.rows, self.schema, self.name)
            self.has_digests = bool(self.parts and self._columns(f"{self.name}_digests"))

    def check_place(self, length: int | None) -> None:
        """Refuse to make tables of no length, or where there is no schema."""
        if length is None:
            raise not_announced(self._session.address)
        known = self._session.rows(
            self.sql("SELECT 1 FROM pg_namespace WHERE nspname = %s"), [self.schema]
        )
        if not known:
            raise BackendUnusable(
                f"{self._session.address}: this database has no schema {self.schema}"
                f'; run there: CREATE SCHEMA "{self.schema}"',
            )

    def make(self, length: int) -> None:
        """Both tables, and what filters are looked up in."""
        statements = [
            "CREATE TABLE {table} (id bigint PRIMARY KEY, doc_id text NOT NULL, content_hash text"
            f" NOT NULL, body text NOT NULL, metadata jsonb NOT NULL,"
            f" embedding {{vector}}({length}) NOT NULL)",
            "CREATE INDEX {files} ON {table} USING gin (metadata jsonb_path_ops)",
            "DROP TABLE IF EXISTS {stamps}",
            "CREATE TABLE {stamps} (single boolean PRIMARY KEY CHECK (single), owner text NOT NULL,"
            " generation bigint NOT NULL, fingerprint text NOT NULL, dimension integer NOT NULL)",
        ]
        if length <= _PLAIN:
            statements.append("ALTER TABLE {table} ALTER COLUMN embedding SET STORAGE PLAIN")
        for statement in statements:
            self._session.rows(self.sql(statement))
        self.is_made, self.dimension = True, length

    def wants_graph(self, choice: str) -> bool:
        """Whether a graph is due: as the settings say, and there is none."""
        if self.has_graph or choice == "exact" or (self.dimension or 0) > MOST_IN_GRAPH:
            return False
        if choice == "hnsw":
            return True
        statement = "SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT %s) AS first"
        return bool(self._session.rows(self.sql(statement), [_MANY + 1])[0][0] > _MANY)

    def make_graph(self) -> None:
        """Index what is there, after it was committed: without the graph answers are exact."""
        try:
            self._build_graph({})
        except BackendUnusable:
            # In a container processes often share less memory than several of them need for this.
            self._build_graph({"max_parallel_maintenance_workers": "0"})

    def _build_graph(self, settings: Mapping[str, str]) -> None:
        count = self._session.rows(self.sql("SELECT count(*) FROM {table}"))[0][0]
        needed = count * (4 * (self.dimension or 0) + 400) // 2**20 + 64
        limits = {
            "statement_timeout": f"{_GRAPH_LIMIT_S}s",
            "maintenance_work_mem": f"{min(needed, _GRAPH_MEMORY_MB)}MB",
            **settings,
        }
        self._session.begin()
        for name, value in limits.items():
            self._session.rows(self.sql("SELECT set_config(%s, %s, true)"), [name, value])
        self._session.rows(
            self.sql(
                "CREATE INDEX IF NOT EXISTS {graph} ON {table} USING hnsw (embedding {graph_class})"
            ),
            limit_s=_GRAPH_LIMIT_S,
        )
        self._session.rows(self.sql("ANALYZE {table}"), limit_s=_GRAPH_LIMIT_S)
        self._session.commit()
        self.has_graph = True

    def drop(self) -> None:
        """Remove both tables, with all that is in them.

        What a person spread over several servers stays, and is emptied.
        """
        if self.parts:
            self._session.rows(self.sql("TRUNCATE {table}"))
            self._session.rows(self.sql("DELETE FROM {stamps}"))
            return
        self._session.rows(self.sql("DROP TABLE {table}"))
        self._session.rows(self.sql("DROP TABLE {stamps}"))

    def sql(self, statement: str, *, part: Shard | None = None) -> bytes:
        """A statement with the names of this table in it, quoted; composed once.

        Args:
            statement: With the names in braces.
            part: Of the table, in its place.
        """
        key = statement, self._vector_schema, part
        if key not in self._composed:
            from psycopg.sql import SQL, Identifier

            name, schema, of = self.name, self.schema, self._vector_schema
            composed = SQL(statement).format(
                table=Identifier(part.schema, part.name) if part else Identifier(schema, name),
                digests=Identifier(schema, f"{name}_digests"),
                stamps=Identifier(schema, f"{name}_stamp"),
                files=Identifier(f"{name}_files"),
                graph=Identifier(f"{name}_hnsw"),
                vector=Identifier(of, "vector"),
                vector_bytes=Identifier(of, "vector_send"),
                graph_class=Identifier(of, "vector_ip_ops"),
                nearer=SQL("OPERATOR({}.<#>)").format(Identifier(of)),
            )
            self._composed[key] = composed.as_bytes(None)
        return self._composed[key]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())

"""Vectors in a table of PostgreSQL with the extension pgvector.

All changes up to `save` are one transaction; the stamp is a row of a second table, which is locked
while somebody writes. A change is a DELETE and a COPY, which servers that spread a table over
others take as well. Values are never part of a statement's text.
"""

import json
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from filestore.index._postgres import Session, checked_name
from filestore.index.backend import (
    BackendChoice,
    BackendForeign,
    BackendSettingsWrong,
    BackendUnusable,
    Capabilities,
    EmbedConfig,
    Hit,
    IndexBackend,
    Item,
    Stamp,
    State,
    Where,
    check_length,
    check_stamp,
    check_where,
    checked_options,
    docs_of,
    not_announced,
    whitelisted,
)

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray
    from psycopg.sql import Composed

_COLUMNS: Final = {
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
_MOST_IN_GRAPH: Final = 2_000
"""Numbers of a vector that HNSW takes."""
_SEARCHED: Final = 100
"""hnsw.ef_search: how many of the graph are looked at, at least."""
_MOST_SEARCHED: Final = 1_000
_SPARE: Final = 8
"""Neighbours fetched beyond what was asked, so that ties at the end are seen."""
_PLAIN: Final = 1_800
"""Vectors up to this length stay in their row, where a comparison of all need not fetch them."""
_PAGE: Final = 20_000
_GRAPH_LIMIT_S: Final = 6 * 3600
_GRAPH_MEMORY_MB: Final = 1_024
_SMALLEST: Final = -(2**63)
_COPY_START: Final = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_COPY_END: Final = struct.pack(">h", -1)


class PgvectorRows(IndexBackend):
    """One table; its options are those of formats.md, ``index`` and ``timeout_s``."""

    kind = "pgvector"
    capabilities = Capabilities(approximate=True, filters=True, compares=True, atomic=True)

    def __init__(self, choice: BackendChoice) -> None:
        known = {"dsn": str, "table": str, "schema": str, "index": str, "timeout_s": int}
        options = checked_options(
            choice, needed=("dsn",), known={**known, "metadata_whitelist": list}
        )
        self._table = checked_name("table", options.get("table", "filestore_vectors"))
        self._schema = checked_name("schema", options.get("schema", "public"))
        self._choice = options.get("index", "auto")
        if self._choice not in ("auto", "exact", "hnsw"):
            raise BackendSettingsWrong(
                "`index` of the backend pgvector is auto, exact or hnsw",
                remedy="filestore backend set pgvector index=auto",
            )
        self._whitelist: tuple[str, ...] = tuple(options.get("metadata_whitelist", ()))
        self._session = Session(
            options["dsn"],
            timeout_s=options.get("timeout_s", 30),
            about=f"{self._schema}.{self._table}",
        )
        self._expected: tuple[str, int] | None = None
        self._failed = False
        self._reset()

    def _reset(self) -> None:
        """Know nothing of what is there."""
        self._dimension: int | None = None
        self._embed: EmbedConfig | None = None
        self._seen: Stamp | None = None
        self._is_made = self._has_graph = self._is_spread = False
        self._vector_schema = "public"

    def load(self) -> None:
        """See the contract."""
        self._session.close()
        self._failed = False
        self._reset()
        self._find_extension()
        found = self._columns(self._table)
        stamps = self._columns(f"{self._table}_stamp")
        if not found and not stamps:
            return
        self._check_shape(self._table, found, _COLUMNS)
        self._check_shape(f"{self._table}_stamp", stamps, _STAMP_COLUMNS)
        self._is_made = True
        self._dimension = found["embedding"][1]
        self._seen = self.stamp()
        if self._seen is not None:
            self._embed = self._seen.embed
        self._find_graph()

    def _find_extension(self) -> None:
        """Which pgvector the database has, and in which schema: its operators are named by it."""
        rows = self._session.rows(
            self._sql(
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
                f"{self.address()}: this database lacks the extension vector",
                remedy=command if offered else f"{package}, then {command}",
            )
        if _numbers(version) < _OLDEST:
            command = "run there as a superuser: ALTER EXTENSION vector UPDATE"
            is_offered = _numbers(offered or "0") >= _OLDEST
            raise BackendUnusable(
                f"{self.address()}: the extension vector has version {version}, 0.8 is the oldest"
                " that filters as it should",
                remedy=command if is_offered else f"{package} again, then {command}",
            )
        self._vector_schema = schema
        self._session.set({"hnsw.ef_search": str(_SEARCHED), "hnsw.iterative_scan": "strict_order"})

    def _columns(self, table: str) -> dict[str, tuple[str, int]]:
        """Columns of a table with type and bound; none where there is no table."""
        rows = self._session.rows(
            self._sql(
                "SELECT attname, typname, atttypmod FROM pg_attribute"
                " JOIN pg_class c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid"
                " JOIN pg_namespace n ON n.oid = relnamespace"
                " WHERE n.nspname = %s AND relname = %s AND attnum > 0 AND NOT attisdropped"
                " ORDER BY attnum"
            ),
            [self._schema, table],
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
            f"{self.address()}: {table} is not what filestore makes; expected the columns {wanted};"
            f" found {there or 'no such table'}",
            remedy="filestore backend set pgvector table=NAME, with a name that is not taken",
        )

    def _find_graph(self) -> None:
        """Whether there is a graph, or servers behind this one that may have it."""
        rows = self._session.rows(
            self._sql(
                "SELECT c.relkind, EXISTS (SELECT 1 FROM pg_index i JOIN pg_class g ON g.oid ="
                " i.indexrelid JOIN pg_am a ON a.oid = g.relam JOIN pg_opclass o ON o.oid ="
                " i.indclass[0] WHERE i.indrelid = c.oid AND i.indisvalid AND a.amname = 'hnsw'"
                " AND o.opcname = 'vector_ip_ops') FROM pg_class c JOIN pg_namespace n"
                " ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s"
            ),
            [self._schema, self._table],
        )
        kind, has_graph = rows[0]
        self._is_spread = kind == "p"
        self._has_graph = has_graph or self._is_spread

    def set_embed_config(self, embed: EmbedConfig) -> None:
        """See the contract."""
        if self._dimension is not None:
            check_length(embed.dimension, self._dimension, self.address())
        if self._choice == "hnsw" and embed.dimension > _MOST_IN_GRAPH:
            raise BackendSettingsWrong(
                f"HNSW of pgvector takes up to {_MOST_IN_GRAPH:,} numbers, the model gives"
                f" {embed.dimension:,}",
                remedy="filestore backend set pgvector index=exact",
            )
        self._dimension, self._embed = embed.dimension, embed

    @property
    def dim(self) -> int | None:
        """See the contract."""
        return self._dimension

    def stamp(self) -> Stamp | None:
        """See the contract."""
        if not self._is_made:
            return None
        rows = self._session.rows(
            self._sql("SELECT owner, generation, fingerprint, dimension FROM {stamps}")
        )
        return _stamp(*rows[0]) if rows else None

    @property
    def state(self) -> State:
        """See the contract."""
        stamp = self.stamp()
        return State(stamp=stamp, docs=docs_of(self._pages("doc_id, content_hash")))

    def _pages(self, columns: str) -> Iterator[Any]:
        """Id and columns of all rows, page by page, so that no statement takes long."""
        after = _SMALLEST
        statement = self._sql(
            f"SELECT id, {columns} FROM {{table}} WHERE id >= %s ORDER BY id LIMIT {_PAGE}"
        )
        while self._is_made:
            rows = self._session.rows(statement, [after])
            yield from rows
            if len(rows) < _PAGE or rows[-1][0] == 2**63 - 1:
                return
            after = rows[-1][0] + 1

    def upsert(self, items: Iterable[Item], *, skip_existing: bool = True) -> int:
        """See the contract."""
        coming, written = iter(items), 0
        while batch := list(islice(coming, self.capabilities.batch)):
            for item in batch:
                check_length(len(item.vector), self._dimension, self.address())
            self._write()
            written += self._put(batch, skip_existing=skip_existing)
        return written

    def _put(self, batch: list[Item], *, skip_existing: bool) -> int:
        held: dict[int, str] = dict(
            self._session.rows(
                self._sql("SELECT id, content_hash FROM {table} WHERE id = ANY(%s::bigint[])"),
                [[item.id for item in batch]],
            )
        )
        some = [
            item
            for item in batch
            if not (skip_existing and held.get(item.id) == _text(item.content_hash))
        ]
        self._remove([item.id for item in some if item.id in held])
        if some:
            rows = b"".join(self._copied(item) for item in some)
            self._session.copy(
                self._sql(f"COPY {{table}} ({', '.join(_COLUMNS)}) FROM STDIN (FORMAT BINARY)"),
                _COPY_START + rows + _COPY_END,
            )
        return len(some)

    def _copied(self, item: Item) -> bytes:
        """One row as COPY takes it."""
        metadata = _clean(whitelisted(item.metadata, self._whitelist))
        fields = (
            struct.pack(">q", item.id),
            _text(item.doc_id).encode(),
            _text(item.content_hash).encode(),
            _text(item.text).encode(),
            b"\x01" + json.dumps(metadata).encode(),
            struct.pack(">hh", len(item.vector), 0) + item.vector.astype(">f4").tobytes(),
        )
        packed = (struct.pack(">i", len(field)) + field for field in fields)
        return struct.pack(">h", len(fields)) + b"".join(packed)

    def delete(self, ids: Collection[int]) -> int:
        """See the contract."""
        some = list(ids)
        if not self._is_made or not some:
            return 0
        self._write()
        pages = range(0, len(some), _PAGE)
        return sum(self._remove(some[start : start + _PAGE]) for start in pages)

    def _remove(self, ids: list[int]) -> int:
        if not ids:
            return 0
        return self._session.count(
            self._sql("DELETE FROM {table} WHERE id = ANY(%s::bigint[])"), [ids]
        )

    def _write(self) -> None:
        """Be in the transaction of this push, as the only one who writes.

        Raises:
            BackendForeign: Another store took the table since it was looked at.
            BackendUnusable: A part of the push failed, and with it all.
        """
        if self._session.in_transaction:
            return
        if self._failed:
            raise BackendUnusable(
                f"{self.address()}: the changes before this one were not taken",
                remedy="filestore sync",
            )
        if not self._is_made:
            self._check_place()
        self._session.begin()
        self._failed = True  # until it is committed; what breaks it ends the transaction
        if not self._is_made:
            self._make()
        self._session.rows(self._sql("LOCK TABLE {stamps} IN EXCLUSIVE MODE"))
        now = self.stamp()
        if now is not None and (self._seen is None or now.owner != self._seen.owner):
            self._session.close()
            raise BackendForeign(
                f"{self.address()} was written by another store meanwhile", remedy="filestore sync"
            )

    def _check_place(self) -> None:
        """Refuse to make tables of no length, or where there is no schema."""
        if self._dimension is None:
            raise not_announced(self.address())
        known = self._session.rows(
            self._sql("SELECT 1 FROM pg_namespace WHERE nspname = %s"), [self._schema]
        )
        if not known:
            raise BackendUnusable(
                f"{self.address()}: this database has no schema {self._schema}",
                remedy=f'run there: CREATE SCHEMA "{self._schema}"',
            )

    def _make(self) -> None:
        """Both tables, and what filters are looked up in."""
        length = self._dimension or 0
        statements = [
            "CREATE TABLE {table} (id bigint PRIMARY KEY, doc_id text NOT NULL, content_hash text"
            f" NOT NULL, body text NOT NULL, metadata jsonb NOT NULL,"
            f" embedding {{vector}}({length}) NOT NULL)",
            "CREATE INDEX {files} ON {table} USING gin (metadata jsonb_path_ops)",
            "CREATE TABLE {stamps} (single boolean PRIMARY KEY CHECK (single), owner text NOT NULL,"
            " generation bigint NOT NULL, fingerprint text NOT NULL, dimension integer NOT NULL)",
        ]
        if length <= _PLAIN:
            statements.append("ALTER TABLE {table} ALTER COLUMN embedding SET STORAGE PLAIN")
        for statement in statements:
            self._session.rows(self._sql(statement))
        self._is_made = True

    def save(self, *, owner: str, generation: int) -> None:
        """See the contract."""
        if self._embed is None:
            raise not_announced(self.address())
        self._write()
        stamp = Stamp(owner=owner, generation=generation, embed=self._embed)
        self._session.rows(self._sql("DELETE FROM {stamps}"))
        self._session.rows(
            self._sql("INSERT INTO {stamps} VALUES (true, %s, %s, %s, %s)"),
            [owner, generation, self._embed.fingerprint, self._embed.dimension],
        )
        self._session.commit()
        self._failed, self._seen = False, stamp
        if self._wants_graph():
            self._make_graph()

    def _wants_graph(self) -> bool:
        if self._has_graph or self._choice == "exact" or (self._dimension or 0) > _MOST_IN_GRAPH:
            return False
        if self._choice == "hnsw":
            return True
        statement = "SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT %s) AS first"
        return bool(self._session.rows(self._sql(statement), [_MANY + 1])[0][0] > _MANY)

    def _make_graph(self) -> None:
        """Index what is there, after it was committed: without the graph answers are exact."""
        count = self._session.rows(self._sql("SELECT count(*) FROM {table}"))[0][0]
        needed = count * (4 * (self._dimension or 0) + 400) // 2**20 + 64
        limits = {
            "statement_timeout": f"{_GRAPH_LIMIT_S}s",
            "maintenance_work_mem": f"{min(needed, _GRAPH_MEMORY_MB)}MB",
        }
        self._session.begin()
        for name, value in limits.items():
            self._session.rows(self._sql("SELECT set_config(%s, %s, true)"), [name, value])
        self._session.rows(
            self._sql(
                "CREATE INDEX IF NOT EXISTS {graph} ON {table} USING hnsw (embedding {graph_class})"
            ),
            limit_s=_GRAPH_LIMIT_S,
        )
        self._session.rows(self._sql("ANALYZE {table}"), limit_s=_GRAPH_LIMIT_S)
        self._session.commit()
        self._has_graph = True

    def query(
        self,
        vector: "NDArray[float32]",
        *,
        top_k: int | None = None,
        where: Where = (),
        allowed: "NDArray[int64] | None" = None,
    ) -> list[Hit]:
        """See the contract."""
        check_where(where, self._whitelist)
        if not self._is_made:
            check_stamp(None, self._expected, self.address())
            return []
        check_length(len(vector), self._dimension, self.address())
        if top_k is not None and top_k < 1:
            return []
        condition, values = _condition(where)
        if allowed is not None:
            condition += " AND id = ANY(%(allowed)s::bigint[])"
            values["allowed"] = allowed.tolist()
        values["vector"] = str(vector.tolist())
        can_walk = self._has_graph and self._choice != "exact" and allowed is None
        if can_walk and top_k is not None and top_k + _SPARE <= _MOST_SEARCHED:
            hits = self._hits(condition, values, top_k + _SPARE, exact=False)
            # Fewer than asked, or equals at the end: what was left behind only all can tell.
            if len(hits) == top_k + _SPARE and hits[-1].score < hits[top_k - 1].score:
                return hits[:top_k]
        return self._hits(condition, values, top_k, exact=True)

    def _hits(
        self, condition: str, values: Mapping[str, Any], count: int | None, *, exact: bool
    ) -> list[Hit]:
        """The rows that satisfy a condition, nearest first; the stamp is read along with them."""
        # The sum is no expression that an index could serve: such a query compares all.
        distance = "(embedding {nearer} %(vector)s::{vector})" + (" + 0" if exact else "")
        statement = (
            f"SELECT id, {distance} AS distance, body, metadata FROM {{table}} WHERE {condition}"
            f" ORDER BY distance{', id' if exact else ''} LIMIT %(count)s"
        )
        if self._expected is not None:
            statement = (
                "SELECT id, distance, body, metadata, owner, generation, fingerprint, dimension"
                " FROM (VALUES (1)) AS one LEFT JOIN {stamps} ON true"
                f" LEFT JOIN ({statement}) AS hit ON true"
            )
        rows = self._session.rows(self._sql(statement), {**values, "count": count})
        if self._expected is not None:
            stamp = None if rows[0][4] is None else _stamp(*rows[0][4:])
            check_stamp(stamp, self._expected, self.address())
        hits = [
            Hit(id=row[0], score=0.0 - row[1], text=row[2], metadata=row[3])
            for row in rows
            if row[0] is not None
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    def digests(self, ids: "NDArray[int64] | None" = None) -> Mapping[int, bytes]:
        """See the contract."""
        computed = "md5(substring({vector_bytes}(embedding) from 5))"
        if ids is None:
            return {key: bytes.fromhex(one) for key, one in self._pages(computed)}
        statement = f"SELECT id, {computed} FROM {{table}} WHERE id = ANY(%s::bigint[])"
        some: list[int] = ids.tolist() if self._is_made else []
        found: dict[int, bytes] = {}
        for start in range(0, len(some), _PAGE):
            rows = self._session.rows(self._sql(statement), [some[start : start + _PAGE]])
            found |= {key: bytes.fromhex(one) for key, one in rows}
        return found

    def clear(self) -> None:
        """See the contract."""
        self.load()
        if not self._is_made:
            return
        self._session.begin()
        self._session.rows(self._sql("DROP TABLE {table}"))
        self._session.rows(self._sql("DROP TABLE {stamps}"))
        self._session.commit()
        self.load()

    def address(self) -> str:
        """See the contract."""
        return self._session.address

    def expect(self, owner: str, generation: int) -> None:
        """See the contract."""
        self._expected = owner, generation

    def close(self) -> None:
        """See the contract."""
        self._session.close()

    def _sql(self, statement: str) -> "Composed":
        """A statement with the names of this table in it, quoted."""
        from psycopg.sql import SQL, Identifier

        table, schema, of = self._table, self._schema, self._vector_schema
        return SQL(statement).format(
            table=Identifier(schema, table),
            stamps=Identifier(schema, f"{table}_stamp"),
            files=Identifier(f"{table}_files"),
            graph=Identifier(f"{table}_hnsw"),
            vector=Identifier(of, "vector"),
            vector_bytes=Identifier(of, "vector_send"),
            graph_class=Identifier(of, "vector_ip_ops"),
            nearer=SQL("OPERATOR({}.<#>)").format(Identifier(of)),
        )


def _condition(where: Where) -> tuple[str, dict[str, Any]]:
    """What a row satisfies where one of its files has, of each key, one of its values.

    Containment is looked up in the index; that all conditions hold in the same file has to be asked
    of each file.
    """
    values: dict[str, Any] = {}
    of_row, of_file = ["true"], ["true"]
    for number, (key, some) in enumerate(where):
        names = [f"w{number}_{place}" for place in range(len(some))]
        for name, value in zip(names, some, strict=True):
            one = _clean({key: [value]})
            values |= {f"{name}_row": json.dumps({"files": [one]}), name: json.dumps(one)}
        rows = [f"metadata @> %({name}_row)s::jsonb" for name in names]
        files = [f"file @> %({name})s::jsonb" for name in names]
        of_row.append(f"({' OR '.join(rows) or 'false'})")
        of_file.append(f"({' OR '.join(files) or 'false'})")
    if len(where) > 1:
        files_of = "jsonb_array_elements(metadata -> 'files') AS file"
        of_row.append(f"EXISTS (SELECT 1 FROM {files_of} WHERE {' AND '.join(of_file)})")
    return " AND ".join(of_row), values


def _stamp(owner: str, generation: int, fingerprint: str, dimension: int) -> Stamp:
    embed = EmbedConfig(fingerprint=fingerprint, dimension=dimension)
    return Stamp(owner=owner, generation=generation, embed=embed)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _text(value: str) -> str:
    """Text as PostgreSQL takes it: without the sign 0, and without halves of signs."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _clean(value: Any) -> Any:
    """JSON whose texts PostgreSQL takes."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_text(key): _clean(one) for key, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, list | tuple) else value

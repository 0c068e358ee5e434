"""Vectors in a table of PostgreSQL with the extension pgvector.

All changes up to `save` are one transaction; the stamp is a row of a second table, which is locked
while somebody writes. A change is a DELETE and a COPY, which servers that spread a table over
others take as well. Values are never part of a statement's text.
"""

import json
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from filestore.core.errors import on_error
from filestore.core.safe_text import with_texts
from filestore.index import Where
from filestore.index._pgvector.session import Session
from filestore.index._pgvector.table import COLUMNS, MOST_IN_GRAPH, Table, gather, note, together
from filestore.index.backend import (
    BackendChoice,
    BackendForeign,
    BackendSettingsWrong,
    BackendUnreachable,
    BackendUnusable,
    Capabilities,
    EmbedConfig,
    Hit,
    IndexBackend,
    Item,
    Stamp,
    State,
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

_MOST_SEARCHED: Final = 1_000
"""A graph is not asked for more: this many are sooner found among all."""
_SPARE: Final = 1
"""Neighbours fetched beyond what was asked, so that a tie at the end is seen."""
_LINKED: Final = 200
"""Items that are sent at a time where each has to find its place in the graph."""
_PAGE: Final = 20_000
_STAMPED: Final = "(SELECT owner = %(owner)s AND generation >= %(generation)s FROM {stamps})"
"""Asked once for a statement, which answers nothing out of what somebody else wrote."""
_SMALLEST: Final = -(2**63)
_UNTAKEN: Final = "[\0\ud800-\udfff]"
_COPY_START: Final = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_COPY_END: Final = struct.pack(">h", -1)


class PgvectorRows(IndexBackend):
    """One table; its options are those of formats.md, ``index``, ``timeout_s`` and ``partial``."""

    kind = "pgvector"
    capabilities = Capabilities(approximate=True, filters=True, compares=True, atomic=True)

    def __init__(self, choice: BackendChoice) -> None:
        known = {"dsn": str, "table": str, "schema": str, "index": str, "timeout_s": int}
        known |= {"partial": bool, "metadata_whitelist": list}
        options = checked_options(choice, needed=("dsn",), known=known)
        self._choice = options.get("index", "auto")
        if self._choice not in ("auto", "exact", "hnsw"):
            raise BackendSettingsWrong(
                "`index` of the backend pgvector is auto, exact or hnsw",
                remedy="filestore backend set pgvector index=auto",
            )
        self._whitelist: tuple[str, ...] = tuple(options.get("metadata_whitelist", ()))
        self._takes_partial: bool = options.get("partial", False)
        schema = options.get("schema", "public")
        name = options.get("table", "filestore_vectors")
        self._session = Session(
            options["dsn"],
            password=choice.environment.get("PGPASSWORD"),
            timeout_s=options.get("timeout_s", 30),
            table=f"{schema}.{name}",
        )
        self._table = Table(self._session, schema=schema, name=name)
        self._failed = False
        self._embed: EmbedConfig | None = None
        self._seen: Stamp | None = None

    def load(self) -> None:
        """See the contract."""
        self._session.close()
        self._failed = False
        with on_error(self.close):
            self._table.look()
            self._seen = self.stamp()
        self._embed = None if self._seen is None else self._seen.embed

    def set_embed_config(self, embed: EmbedConfig) -> None:
        """See the contract."""
        if self._table.is_made:
            check_length(embed.dimension, self._table.dimension, self.address())
        if self._choice == "hnsw" and embed.dimension > MOST_IN_GRAPH:
            raise BackendSettingsWrong(
                f"HNSW of pgvector takes up to {MOST_IN_GRAPH:,} numbers, the model gives"
                f" {embed.dimension:,}",
                remedy="filestore backend set pgvector index=exact",
            )
        self._embed = embed

    @property
    def dim(self) -> int | None:
        """See the contract."""
        if self._table.is_made:
            return self._table.dimension
        return None if self._embed is None else self._embed.dimension

    def stamp(self) -> Stamp | None:
        """See the contract."""
        if not self._table.is_made:
            return None
        rows = self._session.rows(
            self._table.sql("SELECT owner, generation, fingerprint, dimension FROM {stamps}")
        )
        if not rows:
            return None
        owner, generation, fingerprint, dimension = rows[0]
        embed = EmbedConfig(fingerprint=fingerprint, dimension=dimension)
        return Stamp(owner=owner, generation=generation, embed=embed)

    @property
    def state(self) -> State:
        """See the contract."""
        stamp = self.stamp()
        return State(stamp=stamp, docs=docs_of(self._pages("doc_id, content_hash")))

    def _pages(self, columns: str, table: str = "{table}") -> Iterator[Any]:
        """Id and columns of all rows, page by page, so that no statement takes long."""
        after = _SMALLEST
        statement = self._table.sql(
            f"SELECT id, {columns} FROM {table} WHERE id >= %s ORDER BY id LIMIT {_PAGE}"
        )
        while self._table.is_made:
            rows = self._session.rows(statement, [after])
            yield from rows
            if len(rows) < _PAGE or rows[-1][0] == 2**63 - 1:
                return
            after = rows[-1][0] + 1

    def upsert(self, items: Iterable[Item], *, skip_existing: bool = True) -> int:
        """See the contract."""
        coming, written = iter(items), 0
        size = _LINKED if self._table.has_graph else self.capabilities.batch
        while batch := list(islice(coming, size)):
            for item in batch:
                check_length(len(item.vector), self.dim, self.address())
            self._write()
            written += self._put(batch, skip_existing=skip_existing)
        return written

    def _put(self, batch: list[Item], *, skip_existing: bool) -> int:
        held: dict[int, str] = dict(
            self._session.rows(
                self._table.sql(
                    "SELECT id, content_hash FROM {table} WHERE id = ANY(%s::bigint[])"
                ),
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
            into, spread = "{table}", self._table.parts
            # Servers behind this one get rows of a COPY one by one, those of an INSERT together.
            if spread:
                into = "filestore_sent"
                made = f"CREATE TEMP TABLE IF NOT EXISTS {into} (LIKE {{table}}) ON COMMIT DROP"
                self._session.rows(self._table.sql(made))
            names = ", ".join(COLUMNS)
            copy = self._table.sql(f"COPY {into} ({names}) FROM STDIN (FORMAT BINARY)")
            self._session.copy(copy, _COPY_START + b"".join(map(self._copied, some)) + _COPY_END)
            if spread:
                moved = f"INSERT INTO {{table}} ({names}) SELECT {names} FROM {into}"
                self._session.rows(self._table.sql(moved))
                self._session.rows(self._table.sql(f"TRUNCATE {into}"))
        return len(some)

    def _copied(self, item: Item) -> bytes:
        """One row as COPY takes it."""
        metadata = with_texts(whitelisted(item.metadata, self._whitelist), _text)
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
        if not self._table.is_made or not some:
            return 0
        self._write()
        pages = range(0, len(some), _PAGE)
        return sum(self._remove(some[start : start + _PAGE]) for start in pages)

    def _remove(self, ids: list[int]) -> int:
        if not ids:
            return 0
        return self._session.count(
            self._table.sql("DELETE FROM {table} WHERE id = ANY(%s::bigint[])"), [ids]
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
        if not self._table.is_made:
            self._table.check_place(self.dim)
        self._session.begin()
        self._failed = True  # until it is committed; what breaks it ends the transaction
        if not self._table.is_made:
            self._table.make(self.dim or 0)
        self._session.rows(self._table.sql("LOCK TABLE {stamps} IN EXCLUSIVE MODE"))
        now = self.stamp()
        if now is not None and (self._seen is None or now.owner != self._seen.owner):
            self._session.close()
            raise BackendForeign(
                f"{self.address()} was written by another store meanwhile", remedy="filestore sync"
            )

    def save(self, *, owner: str, generation: int) -> None:
        """See the contract."""
        if self._embed is None:
            raise not_announced(self.address())
        self._write()
        stamp = Stamp(owner=owner, generation=generation, embed=self._embed)
        self._session.rows(self._table.sql("DELETE FROM {stamps}"))
        self._session.rows(
            self._table.sql("INSERT INTO {stamps} VALUES (true, %s, %s, %s, %s)"),
            [owner, generation, self._embed.fingerprint, self._embed.dimension],
        )
        self._session.commit()
        self._failed, self._seen = False, stamp
        if self._table.wants_graph(self._choice):
            self._table.make_graph()

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
        if not self._table.is_made:
            check_stamp(None, self._expected, self.address())
            return []
        check_length(len(vector), self.dim, self.address())
        if top_k is not None and top_k < 1:
            return []
        condition, values = _condition(where)
        if allowed is not None:
            condition += " AND id = ANY(%(allowed)s::bigint[])"
            values["allowed"] = allowed.tolist()
        if self._expected is not None:
            values["owner"], values["generation"] = self._expected
            condition += "" if self._table.parts else f" AND {_STAMPED}"
        values["vector"] = str(vector.tolist())
        can_walk = self._table.has_graph and self._choice != "exact" and allowed is None
        if can_walk and top_k is not None and top_k + _SPARE <= _MOST_SEARCHED:
            hits = self._hits(condition, values, top_k + _SPARE, exact=False)
            # Fewer than asked, or equals at the end: what was left behind only all can tell.
            if len(hits) == top_k + _SPARE and hits[-1].score < hits[top_k - 1].score:
                return hits[:top_k]
        hits = self._hits(condition, values, top_k, exact=True)
        if not hits and self._expected is not None:
            check_stamp(self.stamp(), self._expected, self.address())
        return hits

    def _hits(
        self, condition: str, values: Mapping[str, Any], count: int | None, *, exact: bool
    ) -> list[Hit]:
        """The rows that satisfy a condition, nearest first."""
        # The sum is no expression that an index could serve: such a query compares all.
        distance = "(embedding {nearer} %(vector)s::{vector})" + (" + 0" if exact else "")
        statement = (
            f"SELECT id, {distance} AS distance, body, metadata FROM {{table}} WHERE {condition}"
            f" ORDER BY distance{', id' if exact else ''} LIMIT %(count)s"
        )
        values = {**values, "count": count}
        self.lacking = ""
        try:
            rows = self._session.rows(self._nearest(statement), values)
        except BackendUnreachable:
            if not (self._table.parts and self._takes_partial):
                raise
            check_stamp(self.stamp(), self._expected, self.address())
            found = gather(
                self._session.rows,
                self._table.parts,
                lambda part: self._table.sql(statement, part=part),
                values,
            )
            self.lacking = note(found.missing)
            rows = sorted(found.rows, key=lambda row: (row[1], row[0]))[: values["count"]]
        hits = [Hit(id=row[0], score=0.0 - row[1], text=row[2], metadata=row[3]) for row in rows]
        is_sorted = exact and not self._table.parts
        return hits if is_sorted else sorted(hits, key=lambda hit: (-hit.score, hit.id))

    def _nearest(self, statement: str) -> bytes:
        """A query of the table; where it is spread over several servers, of all of them at once."""
        if not self._table.parts:
            return self._table.sql(statement)
        union = together(self._table.parts, lambda part: self._table.sql(statement, part=part))
        stamped = "true" if self._expected is None else _STAMPED
        # In the order that the servers keep, or with a condition of its own for each, they would be
        # asked one after another.
        end = f") AS every ORDER BY distance + 0, id LIMIT %(count)s) AS best WHERE {stamped}"
        return b"SELECT * FROM (SELECT * FROM (" + union + self._table.sql(end)

    def digests(self, ids: "NDArray[int64] | None" = None) -> Mapping[int, bytes]:
        """See the contract."""
        computed = "md5(substring({vector_bytes}(embedding) from 5))"
        table = "{table}"
        if self._table.has_digests:
            computed, table = "digest", "{digests}"
        if ids is None:
            return {key: bytes.fromhex(one) for key, one in self._pages(computed, table)}
        statement = f"SELECT id, {computed} FROM {table} WHERE id = ANY(%s::bigint[])"
        some: list[int] = ids.tolist() if self._table.is_made else []
        found: dict[int, bytes] = {}
        for start in range(0, len(some), _PAGE):
            rows = self._session.rows(self._table.sql(statement), [some[start : start + _PAGE]])
            found |= {key: bytes.fromhex(one) for key, one in rows}
        return found

    def clear(self) -> None:
        """See the contract."""
        self.load()
        if not self._table.is_made:
            return
        self._session.begin()
        self._table.drop()
        self._session.commit()
        self.load()

    def address(self) -> str:
        """See the contract."""
        return self._session.address

    def close(self) -> None:
        """See the contract."""
        self._session.close()


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
            one = with_texts({key: [value]}, _text)
            values |= {f"{name}_row": json.dumps({"files": [one]}), name: json.dumps(one)}
        rows = [f"metadata @> %({name}_row)s::jsonb" for name in names]
        files = [f"file @> %({name})s::jsonb" for name in names]
        of_row.append(f"({' OR '.join(rows) or 'false'})")
        of_file.append(f"({' OR '.join(files) or 'false'})")
    if len(where) > 1:
        files_of = "jsonb_array_elements(metadata -> 'files') AS file"
        of_row.append(f"EXISTS (SELECT 1 FROM {files_of} WHERE {' AND '.join(of_file)})")
    return " AND ".join(of_row), values


def _text(value: str) -> str:
    """Text as PostgreSQL takes it: without the sign 0, and without halves of signs."""
    return value if value.isascii() and "\0" not in value else re.sub(_UNTAKEN, "\ufffd", value)

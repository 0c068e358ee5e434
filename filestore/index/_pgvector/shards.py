"""A table of PostgreSQL whose rows lie on several servers: which they are, and answers without one.

Such a table is partitioned, and its partitions are foreign tables. One rule: a server that does not
answer is named; what the others answer is a part, and says so.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from filestore.core.safe_text import safe_text
from filestore.index.backend import BackendUnreachable

Row: TypeAlias = tuple[Any, ...]
Ask: TypeAlias = Callable[[bytes, Any], Sequence[Row]]
"""Gives the rows of a statement with its parameters; raises `BackendUnreachable` where nobody
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
    """The servers that did not answer, and what was said of each."""


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
    said = next(iter(missing.values())).partition("\n")[0]
    names = ", ".join(sorted(missing))
    return safe_text(f"without the vectors on {names}: {said}", keep_newlines=False)

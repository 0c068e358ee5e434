"""A connection to PostgreSQL that never waits for ever and never tells its password.

Every statement has a time limit twice: the server's own, and ours, where the server itself hangs.
What goes wrong becomes an error of the contract outside of the handler, so that no chain of causes
leads back to what the driver knows.

Where the server is, libpq makes of a DSN, services, variables and defaults. One rule: every
parameter that it would use counts, since each may lead elsewhere, weaken the way there or name a
file.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from filestore.core.errors import FilestoreError, install_line
from filestore.core.safe_text import Unshown, safe_text
from filestore.index.backend import (
    WITHOUT,
    BackendMissing,
    BackendSettingsWrong,
    BackendUnreachable,
    BackendUnusable,
    WrongDimension,
)

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg.abc import PQGen

Row = tuple[Any, ...]
Result = TypeVar("Result")

_GRACE_S: Final = 1
"""What the server's own limit has before ours ends the connection."""
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_$-]*"
_LONGEST_NAME: Final = 50
"""PostgreSQL cuts names after 63 bytes in silence, and ours get endings."""
_LOGIN: Final = ("authentication failed", "no password supplied", "no pg_hba.conf entry")
_LOST: Final = ("08", "57P", "53300", "53400")
"""How the states begin in which a server lets no one in, or goes away."""
_LOCKED: Final = ("55P03", "40P01")
_REFUSED: Final = {
    "25006": ("takes no changes, it is read-only", "name the primary server in dsn"),
    "53100": ("has no room left on its disk", "free some space on the server"),
    "53200": ("has no memory left", "close other sessions of the server"),
    "42501": ("does not permit this", "have the owner of the table GRANT it to this user"),
    "42P01": ("is there no more", "filestore sync"),
    "3F000": ("is there no more", "filestore sync"),
    "42703": ("has another shape than filestore gave it", "set another table"),
    "58P01": ("lacks a file of the extension vector", "install pgvector on the server again"),
}
"""By state: what the server says of the table, and what to do."""
_ALWAYS: Final = ("host", "hostaddr", "port", "dbname", "user")
"""What is shown first, and whether it is the default or not."""
_SECRETS: Final = frozenset(
    {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:/@~+-]+")
_NO_VALUE: Final = "nothing-that-libpq-knows"
"""With it as a parameter libpq says what it would use for all others, and then refuses."""


class PostgresAddress(Unshown, Struct, frozen=True, kw_only=True):
    """A server, database and table, with all that decides how they are reached."""

    parameters: Mapping[str, str]
    """All that libpq has a value for, by its own names; secrets, too."""
    usual: Mapping[str, str]
    """What is not worth showing: defaults of libpq, and what we choose."""
    table: str

    def __str__(self) -> str:
        """As it is shown and remembered: no two that differ look the same; without secrets."""
        others = sorted(self.parameters.keys() - _SECRETS - set(_ALWAYS))
        shown = [key for key in _ALWAYS if self.parameters.get(key)]
        shown += [key for key in others if self.parameters[key] not in ("", self.usual.get(key))]
        words = " ".join(f"{key}={_word(self.parameters[key])}" for key in shown)
        is_local = not {"host", "hostaddr"} & set(shown)
        return f"PostgreSQL at {'the local socket, ' * is_local}{words}, table {self.table}"

    @property
    def to_connect(self) -> dict[str, str]:
        """The parameters to connect with, which leave libpq no server to find for itself."""
        # Without its name no service file is read again, unless a variable names one.
        left = () if "PGSERVICE" in os.environ else ("service",)
        whole = {"host": "", "hostaddr": "", **self.parameters}
        return {key: value for key, value in whole.items() if key not in left}

    def scrubbed(self, text: str) -> str:
        """Text of libpq without what it must not tell; it is made fit to be shown, too."""
        for secret in filter(None, map(self.parameters.get, _SECRETS)):
            text = text.replace(secret, "***")
        return safe_text(text)


def resolve(
    dsn: str, *, chosen: Mapping[str, str], password: str | None, table: str
) -> PostgresAddress:
    """What libpq would connect to, as things are now.

    Args:
        dsn: As libpq takes it: a URL, or words with an equals sign.
        chosen: Parameters that we choose where the DSN does not.
        password: For a server that neither DSN nor service give one for.
        table: With its schema.

    Raises:
        BackendMissing: psycopg is not installed.
        BackendSettingsWrong: The DSN cannot be read or used.
    """
    named = {**chosen, **_parsed(dsn)}
    # Each question leaves out what it asks with. A password file is not looked for: a stranger may
    # have named it.
    most, usual = _asked(named, {"sslmode": _NO_VALUE, "password": _NO_VALUE})
    rest, _ = _asked(named, {"target_session_attrs": _NO_VALUE, "passfile": "/dev/null/none"})
    parameters = {key: value for key, value in most.items() if value != _NO_VALUE}
    parameters |= {key: rest[key] for key in ("sslmode", "password") if key in rest}
    if password and not parameters.get("password"):
        parameters["password"] = password
    return PostgresAddress(parameters=parameters, usual={**usual, **chosen}, table=table)


def _asked(
    named: Mapping[str, str], wrong: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """What libpq makes of parameters, and its defaults; one is wrong, so that it does not connect.

    Raises:
        BackendSettingsWrong: Another one is wrong as well.
    """
    from psycopg import pq
    from psycopg.conninfo import make_conninfo

    words = make_conninfo("", **{**named, **wrong})
    connection = pq.PGconn.connect_start(words.encode())
    message = connection.error_message.decode("utf-8", "replace").strip()
    options = connection.info
    connection.finish()
    usual = {one.keyword.decode(): one.compiled.decode() for one in options if one.compiled}
    try:
        values = {one.keyword.decode(): one.val.decode() for one in options if one.val is not None}
    except UnicodeDecodeError:
        values, message = {}, "a value is not UTF-8"
    if _NO_VALUE in message:
        return values, usual
    address = PostgresAddress(parameters={**values, **named}, usual=usual, table="")
    message = address.scrubbed(message).partition("\n")[0]
    raise BackendSettingsWrong(
        "the dsn of the backend pgvector, with this machine's PG… variables, cannot"
        f" be used: {message or 'it does not say why'}",
        remedy="correct dsn under [backend_config], the service file, or the variable",
    )


def _word(value: str) -> str:
    """A value that no other one looks like, and that cannot look like two."""
    if _PLAIN.fullmatch(value):
        return value
    return safe_text(json.dumps(value), keep_newlines=False)


def _parsed(dsn: str) -> dict[str, str]:
    """The parts of a DSN.

    Raises:
        BackendMissing: psycopg is not installed.
        BackendSettingsWrong: It cannot be read; nothing of it is shown, for it may hold a password.
    """
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise BackendMissing(
            "the backend pgvector needs psycopg, which is not installed",
            remedy=install_line("pgvector"),
            detail=str(error),
        ) from error
    parts: dict[str, str] = {}
    with contextlib.suppress(ProgrammingError, ValueError):
        parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items() if value != ""}
    # A password with one of these signs as it is moves its rest into the name of the server.
    places = (parts.get(key, "") for key in ("host", "hostaddr", "dbname"))
    is_port = re.fullmatch(r"[0-9,]*", parts.get("port", ""))
    if not parts or not is_port or any("@" in place for place in places):
        raise BackendSettingsWrong(
            "the dsn of the backend pgvector cannot be read (it is not shown: it may hold a"
            " password)",
            remedy="write it as postgresql://user@host:5432/database, special signs as %40",
        )
    if "servicefile" in parts:
        raise BackendSettingsWrong(
            "the dsn of the backend pgvector names a service file, which is this machine's to name",
            remedy="set PGSERVICEFILE in the environment instead",
        )
    return parts


def checked_name(kind: str, name: str) -> str:
    """A name that PostgreSQL takes as it is.

    Raises:
        BackendSettingsWrong: It is too long, or has other signs than letters and digits.
    """
    if len(name) <= _LONGEST_NAME and re.fullmatch(_NAME, name):
        return name
    raise BackendSettingsWrong(
        f"{safe_text(name[:_LONGEST_NAME], keep_newlines=False)!r} is not a name for a {kind}:"
        f" use at most {_LONGEST_NAME} letters, digits and _, and begin with a letter",
        remedy=f"filestore backend set pgvector {kind}=…",
    )


class Deadline:
    """When what is waited for must be there; a statement begins it anew."""

    def __init__(self) -> None:
        self._at = 0.0
        self.is_over = False

    def begin(self, seconds: float) -> None:
        """From now on."""
        self._at, self.is_over = time.monotonic() + seconds, False

    def kept(self, waiting: "PQGen[Result]") -> "PQGen[Result]":
        """What the driver waits with, until it is over.

        A server that hangs still acknowledges what it gets, so no option of TCP notices; the driver
        looks up ten times a second at least.
        """
        from psycopg import OperationalError

        try:
            wanted = next(waiting)
            while True:
                ready = yield wanted
                if time.monotonic() > self._at:
                    self.is_over = True
                    raise OperationalError("the server says nothing")
                wanted = waiting.send(ready)
        except StopIteration as end:
            found: Result = end.value
            return found


@cache
def _limited_class() -> Any:
    """The driver's connection, with a deadline; made when the driver is there."""
    from psycopg import Connection

    class Limited(Connection[Row]):
        deadline: Deadline | None = None

        def wait(self, gen: "PQGen[Result]", *words: Any, **options: Any) -> "Result":
            kept = gen if self.deadline is None else self.deadline.kept(gen)
            return super().wait(kept, *words, **options)

    return Limited


class Session:
    """A connection that is made when it is needed, and again after it was lost."""

    def __init__(self, dsn: str, *, password: str | None, timeout_s: int, table: str) -> None:
        """Read where the server is; nothing is connected.

        Args:
            dsn: As libpq takes it: a URL, or words with an equals sign.
            password: For a server that neither DSN nor service give one for.
            timeout_s: How long a statement may take.
            table: With its schema.

        Raises:
            BackendMissing: psycopg is not installed.
            BackendSettingsWrong: The DSN cannot be read or used.
        """
        if timeout_s < 1:
            raise BackendSettingsWrong(f"timeout_s must be 1 or more, found {timeout_s}")
        self.timeout_s = timeout_s
        self._server = resolve(
            dsn,
            chosen={
                "application_name": "filestore",
                "connect_timeout": str(max(2, timeout_s)),
                "keepalives_idle": "10",
                "keepalives_interval": "5",
                "keepalives_count": "3",
                "tcp_user_timeout": str(timeout_s * 1000),
            },
            password=password,
            table=table,
        )
        self._connection: Connection[Row] | None = None
        self._settings: dict[str, str] = {}
        self._deadline = Deadline()
        self.in_transaction = False

    @property
    def address(self) -> str:
        """All that decides what is connected to, for people and to be remembered."""
        return str(self._server)

    def set(self, settings: Mapping[str, str]) -> None:
        """Have settings of the server, now and after the connection was made again."""
        self._settings |= settings
        if self._connection is not None:
            self.rows(*_set_config(settings))

    def rows(
        self, statement: bytes, parameters: Any = None, *, limit_s: int | None = None
    ) -> "list[Row]":
        """What a statement gives; errors are those of the contract.

        Args:
            statement: Names and constants; values are parameters.
            parameters: Of the statement.
            limit_s: How long it may take; None for the usual.
        """
        cursor = self._run(statement, parameters, limit_s)
        return cursor.fetchall() if cursor.description else []

    def count(self, statement: bytes, parameters: Any = None) -> int:
        """How many rows a statement changed."""
        return self._run(statement, parameters, None).rowcount

    def _run(self, statement: bytes, parameters: Any, limit_s: int | None) -> "Cursor[Row]":
        with _errors() as caught:
            connection = self._connected()
            self._deadline.begin((limit_s or self.timeout_s) + _GRACE_S)
            return connection.execute(statement, parameters)
        raise self._failed(caught[0])

    def copy(self, statement: bytes, data: bytes) -> None:
        """Send rows in the binary format of COPY."""
        with _errors() as caught:
            connection = self._connected()
            self._deadline.begin(self.timeout_s + _GRACE_S)
            with connection.cursor() as cursor, cursor.copy(statement) as copy:
                copy.write(data)
            return
        raise self._failed(caught[0])

    def begin(self) -> None:
        """Begin a transaction: what follows is seen whole or not at all."""
        self.rows(b"BEGIN")
        self.in_transaction = True

    def commit(self) -> None:
        """Make what the transaction did last.

        Raises:
            BackendUnreachable: No one knows whether it does: the answer did not come.
        """
        try:
            self.rows(b"COMMIT")
        finally:
            self.in_transaction = False

    def close(self) -> None:
        """Let go of the connection; the server rolls back what was not committed."""
        self.in_transaction = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> "Connection[Row]":
        from psycopg import OperationalError

        if self._connection is not None and not self._connection.closed:
            return self._connection
        if self.in_transaction:
            # On a new connection the rest of it would be taken by itself.
            raise OperationalError("the connection went away in the middle of a transaction")
        self.close()
        self._deadline.begin(self.timeout_s + _GRACE_S)
        # A plan that is kept on the server would be lost behind a pool that shares connections.
        connection = _limited_class().connect(
            **self._server.to_connect, autocommit=True, prepare_threshold=None
        )
        connection.deadline = self._deadline
        self._connection = connection
        limits = {
            "statement_timeout": f"{self.timeout_s}s",
            "lock_timeout": f"{self.timeout_s * 500}ms",
            "client_encoding": "UTF8",
        }
        self._deadline.begin(self.timeout_s + _GRACE_S)
        self._connection.execute(*_set_config(limits | self._settings))
        return self._connection

    def _failed(self, error: Any) -> FilestoreError:
        """The error of the contract for one of the driver, after which a transaction is over."""
        state, detail = error.sqlstate or "", self._server.scrubbed(str(error))
        was_made = self._connection is not None
        is_lost = self._connection is None or self._connection.closed
        is_late = self._deadline.is_over
        if is_lost or is_late or self.in_transaction:
            self.close()
        where = self.address
        if is_late or state == "57014":
            return BackendUnreachable(
                f"{where} did not answer within {self.timeout_s} s"
                f": try again, or raise timeout_s under [backend_config]; {WITHOUT}",
                detail=detail,
            )
        if state in _LOCKED:
            return BackendUnreachable(
                f"{where} is locked by another session: try again later", detail=detail
            )
        if is_lost or state.startswith(_LOST):
            if not is_lost and _behind(detail):
                where, was_made = f"{where}: its server {_behind(detail)}", False
            return self._unreachable(where, detail, was_made=was_made)
        if "different vector dimensions" in detail or re.search(r"expected \d+ dimensions", detail):
            return WrongDimension(f"{where} holds vectors of another length", detail=detail)
        what, remedy = _REFUSED.get(
            state, ("refuses: " + detail.partition("\n")[0], "filestore sync")
        )
        return BackendUnusable(f"{where} {what}", remedy=f"{remedy}; {WITHOUT}", detail=detail)

    def _unreachable(self, where: str, detail: str, *, was_made: bool) -> BackendUnreachable:
        if any(word in detail for word in _LOGIN):
            what, remedy = "refuses the login", "set PGPASSWORD, or write ~/.pgpass"
        elif re.search(r'database "[^\n]*" does not exist', detail):
            what, remedy = "is not a database on that server", "createdb, or check dsn"
        elif was_made:
            what, remedy = "broke the connection", "try again"
        else:
            what, remedy = "does not answer", "start the server, or check dsn"
        return BackendUnreachable(f"{where} {what}", remedy=f"{remedy}; {WITHOUT}", detail=detail)


def _behind(detail: str) -> str:
    """The server behind the one that was asked, where that is what is away."""
    found = re.search(r'could not connect to server "([^"]*)"', detail)
    return found[1] if found else ""


@contextlib.contextmanager
def _errors() -> Iterator[list[Any]]:
    """Catch what the driver raises, to be translated where it is no cause of anything any more."""
    import psycopg

    caught: list[Any] = []
    try:
        yield caught
    except psycopg.Error as error:
        caught.append(error.with_traceback(None))


def _set_config(settings: Mapping[str, str]) -> tuple[bytes, Sequence[str]]:
    calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
    return f"SELECT {calls}".encode(), [word for pair in settings.items() for word in pair]

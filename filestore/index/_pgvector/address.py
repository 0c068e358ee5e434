"""Where a server of PostgreSQL is, as libpq makes it of a DSN, services, variables and defaults.

Nothing is connected. One rule: every parameter that libpq would use counts, since each may lead
elsewhere, weaken the way there or name a file.
"""

import contextlib
import json
import os
import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from filestore.core.packages import install_line
from filestore.core.safe_text import Unshown, safe_text
from filestore.index.backend import BackendMissing, BackendSettingsWrong

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
    said = connection.error_message.decode("utf-8", "replace").strip()
    options = connection.info
    connection.finish()
    usual = {one.keyword.decode(): one.compiled.decode() for one in options if one.compiled}
    try:
        values = {one.keyword.decode(): one.val.decode() for one in options if one.val is not None}
    except UnicodeDecodeError:
        values, said = {}, "a value is not UTF-8"
    if _NO_VALUE in said:
        return values, usual
    address = PostgresAddress(parameters={**values, **named}, usual=usual, table="")
    said = address.scrubbed(said).partition("\n")[0]
    raise BackendSettingsWrong(
        f"the dsn of the backend pgvector, with the services and PG… variables of this machine,"
        f" cannot be used: {said or 'it does not say why'}",
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

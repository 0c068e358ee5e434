"""What a user allowed is one address, whole: with any part changed, nothing is connected.

Listeners on loopback note every connection. Services come from the code and parameters from libpq
itself, so that a new one is tried or fails here.
"""

import os
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import pytest
from msgspec.structs import fields

from filestore.config.layout import Places
from filestore.config.settings import BACKENDS, MODELS, Backend
from filestore.config.user_config import Machine
from filestore.index import BackendError
from filestore.index.backend import BackendSettingsWrong, BackendUnreachable
from filestore.sidecar.vector_rows import BackendUntrusted, VectorRows
from filestore.verify.trust import Reaches

ROOT: Final = "/a/store"
SECRET: Final = "s3cr3t-word"
NOT_ENCRYPTED: Final = (80877103, 80877104)
"""What a client asks first: whether the server encrypts, and whether by GSSAPI."""


class Listener:
    """Notes what comes in, by connection; asks a client of PostgreSQL for its password."""

    def __init__(self, host: str, port: int = 0) -> None:
        self._socket = socket.create_server((host, port))
        self.host, self.port = self._socket.getsockname()
        self._heard: list[bytes] = []
        self._thread = threading.Thread(target=self._listen)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.heard(b"end")
        self._thread.join()
        self._socket.close()

    def heard(self, mark: bytes = b"mark") -> list[bytes]:
        """What came since the last time; nothing that was begun before is still on its way."""
        with socket.create_connection((self.host, self.port)) as connection:
            connection.sendall(mark)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(100):
                pass
        heard, self._heard = self._heard, []
        return heard

    def _listen(self) -> None:
        while True:
            connection = self._socket.accept()[0]
            with connection:
                said = self._said(connection)
                if said == b"end":
                    return
                if said != b"mark":
                    self._heard.append(said)

    def _said(self, connection: socket.socket) -> bytes:
        said = connection.recv(65_536)
        while len(said) == 8 and struct.unpack(">ii", said)[1] in NOT_ENCRYPTED:
            connection.sendall(b"N")
            said = connection.recv(65_536)
        if said[4:8] == struct.pack(">i", 196_608):
            connection.sendall(b"R" + struct.pack(">ii", 8, 3))
            said += connection.recv(65_536)
        return said


@pytest.fixture
def listeners() -> Iterator[tuple[Listener, Listener, Listener]]:
    """The one that is allowed, another on its port, and another on its host."""
    with ExitStack() as stack:
        first = stack.enter_context(Listener("127.0.0.1"))
        try:
            other = stack.enter_context(Listener("127.0.0.2", first.port))
        except OSError:
            pytest.skip("127.0.0.2 is no address of this machine")
        yield first, other, stack.enter_context(Listener("127.0.0.1"))


# Services that are asked over http


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How a store names a service, and what asks it."""

    settings: str
    command: tuple[str, ...]


SERVICES: Final = {
    "own": Service(
        settings='embedder = "openai:small"\n\n[model]\nendpoint = "{url}"\n', command=("sync",)
    ),
    "beside": Service(
        settings='embedder = "builtin"\n\n[beside]\nembedder = "openai:small"\n'
        'endpoint = "{url}"\n',
        command=("sync",),
    ),
    "generator": Service(
        settings='embedder = "builtin"\n\n[generator]\nname = "openai:small"\nendpoint = "{url}"\n',
        command=("enrich", "--questions", "1", "--yes"),
    ),
    "backend": Service(
        settings='embedder = "builtin"\nbackend = "qdrant"\n\n[backend_config]\nurl = "{url}"\n'
        "timeout_s = 1\n",
        command=("sync",),
    ),
}
"""By the models, and the fields of `Reaches`; PostgreSQL is tried below, with more spellings."""
BASE: Final = "http://127.0.0.1:{port}/v1"
SAME: Final = ("HTTP://127.0.0.1:{port}/v1", "http://127.0.0.1:{port}/v1//", BASE)
CHANGED: Final = {
    "scheme": ("https://127.0.0.1:{port}/v1",),
    "host": (
        "http://127.0.0.2:{port}/v1",
        "http://localhost:{port}/v1",
        "http://127.0.0.1.:{port}/v1",
        "http://127.1:{port}/v1",
        "http://2130706433:{port}/v1",
        "http://[::ffff:127.0.0.2]:{port}/v1",
        "http://127.0.0.%32:{port}/v1",
        "http://127.0.0.1:{port}@127.0.0.2:{port}/v1",
        "http://127.0.0.1:{port}//127.0.0.2:{port}/v1",
    ),
    "port": ("http://127.0.0.1:{other}/v1", "http://127.0.0.1/v1"),
    "path": (
        "http://127.0.0.1:{port}/v2",
        "http://127.0.0.1:{port}",
        "http://127.0.0.1:{port}/v1/more",
        "http://127.0.0.1:{port}/V1",
        "http://127.0.0.1:{port}/%76%31",
        "http://127.0.0.1:{port}/v1/../v2",
    ),
}


def test_no_service_is_left_out() -> None:
    """Every model and every field that names an address is tried; so is every backend, and every
    member of a family that asks a service."""
    named = {one.name for one in fields(Reaches) if one.type == str | None}
    assert SERVICES.keys() == {*MODELS, *named}
    assert {kind for kind, one in BACKENDS.items() if re.search("url=|dsn=", one.keys)} == {
        "pgvector",
        "qdrant",
    }
    package = Path(__file__).resolve().parents[2] / "filestore"
    asking = {
        path.relative_to(package).as_posix()
        for room in ("embed", "generate", "rerank", "index", "search", "sidecar", "exchange")
        for path in (package / room).rglob("*.py")
        if re.search(
            r"import (\([^)]*|.*)\b(Service|PGconn)\b|\.connect\(|QdrantClient\(", path.read_text()
        )
    }
    assert asking == {
        "embed/_openai.py",
        "generate/_openai.py",
        "index/_pgvector/session.py",
        "index/_qdrant/folder.py",  # a folder
        "index/_qdrant/server.py",
        "exchange/vector_store.py",  # its user types the address
    } | {name for name in asking if "sqlite3" in (package / name).read_text()}


def point_to(workspace: Any, service: Service, url: str) -> None:
    settings = workspace.store / "filestore.toml"
    settings.write_text(f'format = 1\nlayout = "tree"\n{service.settings.format(url=url)}')


@pytest.mark.parametrize("name", SERVICES)
def test_a_changed_part_of_an_endpoint_asks_again(
    workspace: Any,
    listeners: Any,
    monkeypatch: pytest.MonkeyPatch,
    without_pauses: None,
    record_property: Callable[[str, object], None],
    name: str,
) -> None:
    """Until `filestore trust` nobody hears anything; the same address in other letters goes on."""
    service, (first, *others) = SERVICES[name], listeners
    monkeypatch.setenv("FILESTORE_API_KEY", SECRET)
    monkeypatch.setenv("QDRANT_API_KEY", SECRET)
    workspace.write("note.md", "# Note\n\nWords of the note.\n")
    workspace("add", "note.md")
    ports = {"port": first.port, "other": others[1].port}
    point_to(workspace, service, BASE.format(**ports))
    workspace(*service.command, code=None)
    assert first.heard() == []
    workspace("trust")
    for url in SAME:
        point_to(workspace, service, url.format(**ports))
        workspace(*service.command, code=None)
        assert first.heard(), url
    for url in (url for part in CHANGED.values() for url in part):
        point_to(workspace, service, url.format(**ports))
        done = workspace(*service.command, code=None)
        assert [one.heard() for one in (first, *others)] == [[], [], []], url
        assert SECRET not in done.stdout + done.stderr
    record_property("tried", f"{name}: {sum(map(len, CHANGED.values()))} changed addresses")
    point_to(workspace, service, CHANGED["host"][0].format(**ports))
    assert f"http://127.0.0.2:{first.port}/v1" in workspace("trust", "--list").stdout
    workspace("trust")
    workspace(*service.command, code=None)
    assert first.heard() == []
    assert SECRET.encode() in b"".join(others[0].heard())


def test_another_collection_asks_again() -> None:
    """It is a part of the address as well."""
    for options in ({}, {"collection": "another"}):
        rows = rows_at("qdrant", {"url": "http://127.0.0.1:1", **options}, trusted=[ADDRESS])
        expected = BackendUntrusted if options else BackendUnreachable
        with pytest.raises(expected):
            rows.connected()


ADDRESS: Final = "Qdrant at http://127.0.0.1:1 (collection filestore)"


def rows_at(kind: str, options: Mapping[str, Any], *, trusted: list[str]) -> VectorRows:
    """The backend that settings name, in a store that may reach some addresses."""
    return VectorRows(
        Backend(kind=kind, options=options),
        Places(root=ROOT, sidecar=f"{ROOT}/.sidecar"),
        machine=Machine(trusted={ROOT: tuple(trusted)}),
    )


def test_a_path_is_where_its_links_lead(tmp_path: Path) -> None:
    """A file that was allowed is not another one that a link of the store leads to later."""
    link = tmp_path / "link.jsonl"
    seen = set()
    for name in ("one", "two"):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        rows = rows_at("local", {"path": str(link)}, trusted=list(seen))
        with pytest.raises(BackendUntrusted, match=name):
            rows.connected()
        seen.add(rows.address())
    rows_at("local", {"path": str(link)}, trusted=list(seen)).connected().close()


# PostgreSQL

OTHERS: Final = {
    "channel_binding": "disable",
    "gssdelegation": "1",
    "gssencmode": "prefer",
    "hostaddr": "127.0.0.2",
    "host": "127.0.0.2",
    "load_balance_hosts": "random",
    "max_protocol_version": "latest",
    "min_protocol_version": "3.0",
    "options": "-c search_path=another",
    "require_auth": "password",
    "scram_client_key": f"{'A' * 43}=",
    "scram_server_key": f"{'A' * 43}=",
    "ssl_max_protocol_version": "TLSv1.3",
    "ssl_min_protocol_version": "TLSv1",
    "sslcertmode": "disable",
    "sslcompression": "1",
    "sslmode": "disable",
    "sslnegotiation": "direct",
    "sslsni": "0",
    "target_session_attrs": "read-write",
}
"""Another value of a parameter that does not take any."""
CHOSEN: Final = {
    "application_name",
    "connect_timeout",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "tcp_user_timeout",
}
"""What only a DSN changes, for we choose it."""
SHORT: Final = "connect_timeout=2"
"""A DSN that leaves all to others; as we choose anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """How a connection is named."""

    dsn: str
    service: Mapping[str, str] | None = None
    variables: Mapping[str, str]


def defaults() -> list[Any]:
    """Every parameter that libpq knows."""
    pq = pytest.importorskip("psycopg.pq")
    return [one for one in pq.Conninfo.get_defaults() if one.keyword != b"service"]


def words(parameters: Mapping[str, str]) -> str:
    from psycopg.conninfo import make_conninfo

    return make_conninfo("", **parameters)


def as_url(parameters: Mapping[str, str]) -> str:
    from urllib.parse import quote

    return "postgresql://?" + "&".join(
        f"{key}={quote(value, safe='')}" for key, value in parameters.items()
    )


def as_variables(parameters: Mapping[str, str]) -> Named:
    """As far as there are variables."""
    names = {one.keyword.decode(): one.envvar.decode() for one in defaults() if one.envvar}
    rest = {key: value for key, value in parameters.items() if key not in names}
    given = {names[key]: value for key, value in parameters.items() if key in names}
    return Named(dsn=words(rest) or SHORT, variables=given)


def of_many(parameters: Mapping[str, str]) -> Named:
    """As the second of two hosts."""
    more = {"host": "127.0.0.1", "port": "1", "hostaddr": "127.0.0.1"}
    both = {key: f"{more[key]},{parameters[key]}" for key in parameters.keys() & more.keys()}
    return Named(dsn=words({**parameters, **both}), variables={})


SPELLINGS: Final[dict[str, Callable[[Mapping[str, str]], Named]]] = {
    "words": lambda some: Named(dsn=words(some), variables={}),
    "a URL": lambda some: Named(dsn=as_url(some), variables={}),
    "a service": lambda some: Named(dsn="service=kb", service=some, variables={}),
    "a variable's service": lambda some: Named(
        dsn=SHORT, service=some, variables={"PGSERVICE": "kb"}
    ),
    "variables": as_variables,
    "several hosts": of_many,
}


class Postgres:
    """Settings of a store on this machine, spelled in some way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._monkeypatch = monkeypatch
        self.service_file = folder / "services"
        monkeypatch.setenv("PGSERVICEFILE", str(self.service_file))
        self._set: set[str] = set()

    def write_service(self, parameters: Mapping[str, str]) -> None:
        lines = [f"{key}={value}\n" for key, value in parameters.items()]
        self.service_file.write_text("[kb]\n" + "".join(lines))

    def rows(self, named: Named, trusted: list[str]) -> VectorRows:
        """The backend, with service file and variables as they are to be."""
        for name in self._set:
            self._monkeypatch.delenv(name)
        self._set = set(named.variables)
        for name, value in named.variables.items():
            self._monkeypatch.setenv(name, value)
        if named.service is not None:
            self.write_service(named.service)
        return rows_at("pgvector", {"dsn": named.dsn, "timeout_s": 2}, trusted=trusted)


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Postgres:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("PGPASSWORD", SECRET)
    return Postgres(monkeypatch, tmp_path)


def base(listener: Listener) -> dict[str, str]:
    return {
        "host": "127.0.0.1",
        "port": str(listener.port),
        "dbname": "kb",
        "user": "me",
        "sslmode": "prefer",
    }


def refusal(rows: VectorRows) -> BackendError | None:
    try:
        rows.connected()
    except BackendUnreachable:
        return None
    except BackendError as error:
        return error
    raise AssertionError("nobody refused the password")


def is_secret(option: Any) -> bool:
    return option.dispchar == b"*" or option.keyword.startswith(b"scram_")


def is_chosen(option: Any, named: Named) -> bool:
    """Whether a parameter is named where we do not heed it."""
    key = option.keyword.decode()
    return key in CHOSEN and f"{key}=" not in named.dsn.replace(SHORT, "")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_changed_part_of_postgresql_asks_again(
    postgres: Postgres,
    listeners: Any,
    record_property: Callable[[str, object], None],
    spelling: str,
) -> None:
    """Each parameter that libpq knows, however it is named; no password arrives before."""
    spell, plain = SPELLINGS[spelling], base(listeners[0])
    assert isinstance(refusal(postgres.rows(spell(plain), [])), BackendUntrusted)
    assert [one.heard() for one in listeners] == [[], [], []]
    allowed = postgres.rows(spell(plain), []).address()
    assert refusal(postgres.rows(spell(plain), [allowed])) is None
    assert SECRET.encode() in b"".join(listeners[0].heard())
    seen = {allowed}
    for option in defaults():
        key = option.keyword.decode()
        value = OTHERS.get(key, str(listeners[2].port) if key == "port" else "another")
        named = spell({**plain, key: value})
        rows = postgres.rows(named, [allowed])
        if is_secret(option) or is_chosen(option, named):
            assert rows.address() == allowed
            continue
        error = refusal(rows)
        assert [one.heard() for one in listeners] == [[], [], []], key
        if not isinstance(error, BackendSettingsWrong):
            assert isinstance(error, BackendUntrusted), key
            assert rows.address() in error.message
            assert f" {key}=" in rows.address()
            seen.add(rows.address())
    record_property("tried", f"backend, PostgreSQL by {spelling}: {len(defaults())} parameters")
    assert len(seen) > len(defaults()) - len(CHOSEN) - 10
    assert SECRET not in " ".join(seen)


def test_one_connection_is_one_address_however_it_is_spelled(postgres: Postgres) -> None:
    """Words, a URL and variables; what a service says counts with the name of the service."""
    plain = {"host": "db.example.org", "port": "5433", "dbname": "kb", "user": "me"}
    found = {name: postgres.rows(spell(plain), []).address() for name, spell in SPELLINGS.items()}
    address = (
        "PostgreSQL at host=db.example.org port=5433 dbname=kb user=me,"
        " table public.filestore_vectors"
    )
    assert found["words"] == found["a URL"] == found["variables"] == address
    with_service = address.replace("user=me,", "user=me service=kb,")
    assert found["a service"] == found["a variable's service"] == with_service


def test_what_looks_like_another_address_is_not_that(postgres: Postgres) -> None:
    """Values with signs of ours, of terminals, or that read like others, are told apart."""
    tricks = ["a b", "kb user=me", "kb, table public.x", '"kb"', "k\u0431", "kb\x1b[2J", "kb\u202e"]
    tricks += ["kb\\x1b[2J", "kb\\u202e", "kb ", "", "KB", "kb\\u0431"]
    plain = {"host": "h", "port": "1", "user": "me"}
    found = [
        postgres.rows(Named(dsn=words({**plain, "dbname": one}), variables={}), []).address()
        for one in ["kb", *tricks]
    ]
    assert len(set(found)) == len(found)
    assert all(one.isprintable() and one.isascii() for one in found)


def test_what_was_allowed_is_what_is_connected_to(postgres: Postgres, listeners: Any) -> None:
    """A service file or a variable that changes between the look and the connection, or before the
    next connection, leads nowhere else."""
    from filestore.index import open_backend

    for spelling in ("a service", "a variable's service", "variables"):
        plain = base(listeners[0])
        backend = open_backend(postgres.rows(SPELLINGS[spelling](plain), []).choice)
        postgres.write_service({**plain, "hostaddr": "127.0.0.2", "port": str(listeners[2].port)})
        os.environ["PGHOSTADDR"] = "127.0.0.2"
        for _ in range(2):
            with pytest.raises(BackendUnreachable):
                backend.load()
        del os.environ["PGHOSTADDR"]
        heard = [one.heard() for one in listeners]
        assert len(heard[0]) == 2
        assert heard[1:] == [[], []]


def test_what_is_allowed_is_what_was_shown(
    workspace: Any, postgres: Postgres, listeners: Any
) -> None:
    """What changes while a person reads is not allowed with it."""
    from filestore import Store

    service = Service(
        settings='embedder = "builtin"\nbackend = "pgvector"\n\n[backend_config]\n{url}\n',
        command=("sync",),
    )
    workspace.write("note.md", "Words of the note.\n")
    workspace("add", "note.md")
    point_to(workspace, service, 'dsn = "service=kb"')
    postgres.write_service(base(listeners[0]))
    with Store.open(workspace.store) as store:
        shown = store.reaches()
        postgres.write_service({**base(listeners[0]), "hostaddr": "127.0.0.2"})
        store.trust(shown)
    workspace("sync", code=None)
    assert [one.heard() for one in listeners] == [[], [], []]
    workspace("trust")
    workspace("sync", code=None)
    assert listeners[1].heard()


@pytest.mark.parametrize(
    ("dsn", "words_of_it"),
    [
        ("service=none", 'definition of service "none" not found'),
        ("host=h sslmode=often", "sslmode"),
        ("host=a,b port=1,2,3", "port numbers"),
    ],
)
def test_what_libpq_cannot_use_is_said(postgres: Postgres, dsn: str, words_of_it: str) -> None:
    """In its own words, before anything is connected."""
    postgres.write_service({})
    with pytest.raises(BackendSettingsWrong, match=words_of_it):
        postgres.rows(Named(dsn=dsn, variables={}), []).address()


def test_a_password_file_that_a_store_names_is_not_read_before(
    postgres: Postgres, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor is there a word of libpq about it on the terminal."""
    (tmp_path / "pipe\x1b[2J").mkdir()
    dsn = words({"host": "h", "passfile": str(tmp_path / "pipe\x1b[2J")})
    os.environ.pop("PGPASSWORD")
    assert "passfile=" in postgres.rows(Named(dsn=dsn, variables={}), []).address()
    assert capfd.readouterr().err == ""


def test_a_store_sends_nothing_where_a_pull_points(
    workspace: Any, database: Any, listeners: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From `backend set` on, through every command that would connect; `trust` shows it whole."""
    from tests.postgres_server import PASSWORD

    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    server = database.server
    workspace.write("note.md", "# Note\n\nWords of the note.\n")
    workspace("add", "note.md")
    dsn = f"host=127.0.0.1 port={server.port} dbname={database.name} user=postgres"
    workspace("backend", "set", "pgvector", f"dsn={dsn}", "table=pulled", "--yes")
    settings = workspace.store / "filestore.toml"
    text = settings.read_text()
    with Listener("127.0.0.2", server.port) as elsewhere:
        for changed in (
            f"{dsn} hostaddr=127.0.0.2",
            f"postgresql://?{dsn.replace(' ', '&')}&hostaddr=127.0.0.2",
        ):
            settings.write_text(text.replace(dsn, changed))
            workspace.write(
                "file_index/chunked/note.md/chunk1.md", f"Other words, {len(changed)}.\n"
            )
            for command in (
                "sync",
                "search words",
                "verify --level full",
                "backend show",
                "status",
            ):
                done = workspace(*command.split(), code=None)
                assert PASSWORD not in done.stdout + done.stderr
            assert elsewhere.heard() == []
        assert "hostaddr=127.0.0.2" in workspace("backend", "show", code=1).stdout
        assert "hostaddr=127.0.0.2" in workspace("trust").stdout
        workspace("sync", code=None)
        assert PASSWORD.encode() in b"".join(elsewhere.heard())
    settings.write_text(text)
    assert workspace.json("search", "words", "--mode", "vector")["hits"]

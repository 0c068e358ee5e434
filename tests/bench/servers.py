"""Real PostgreSQL servers on loopback for the benchmarks: started, lost, started again, ended.

Each has its own folder, port and random password, and is ended by its process id when the program
ends, also by Ctrl-C or a signal to terminate.
"""

import contextlib
import glob
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg

NEEDED: Final = ("postgres_fdw", "vector")
MISSING: Final = (
    "skipped: it needs the programs of a PostgreSQL that has the extensions postgres_fdw and vector"
    " (Debian 13: postgresql-17-pgvector; any other: pgvector built for it, and --bin DIR), as root"
    " a user postgres, and psycopg"
)
PAGE: Final = Path(__file__).with_name("SCALE.md")
NAMES: Final = ("shard1", "shard2", "shard3")
"""Of the servers that hold the vectors, as the page calls the first."""
USER: Final = "filestore"
DATABASE: Final = "filestore"
STARTS_IN_S: Final = 60.0


def programs(folder: str | None) -> str | None:
    """The folder of the programs of a PostgreSQL that has the extensions; None where that, or
    psycopg, is missing."""
    if find_spec("psycopg") is None:
        return None
    if os.geteuid() == 0 and "postgres" not in {one.pw_name for one in pwd.getpwall()}:
        return None
    found = shutil.which("initdb")
    newest = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=_version, reverse=True)
    known = [folder] if folder else [*([os.path.dirname(found)] if found else []), *newest]
    return next((one for one in known if _has_extensions(one)), None)


def _version(path: str) -> int:
    name = Path(path).parent.name
    return int(name) if name.isdigit() else 0


def _has_extensions(folder: str) -> bool:
    try:
        said = subprocess.run(
            [os.path.join(folder, "initdb"), "--show", "-D", os.devnull],
            capture_output=True,
            text=True,
            user=_user(),
            check=False,
        )
    except OSError:
        return False
    lines = (said.stdout + said.stderr).splitlines()
    shares = [line.partition("=")[2] for line in lines if line.startswith("share_path=")]
    return any(
        all(os.path.exists(f"{share}/extension/{name}.control") for name in NEEDED)
        for share in shares
    )


def _user() -> str | None:
    """Who runs the servers: PostgreSQL refuses to run as root."""
    return "postgres" if os.geteuid() == 0 else None


class Server:
    """One server and its folder."""

    def __init__(self, name: str, folder: str, bin_folder: str, settings: Mapping[str, str]):
        self.name = name
        self.port = _free_port()
        self.password = secrets.token_urlsafe(12)
        self._data = os.path.join(folder, name)
        self._log = os.path.join(folder, f"{name}.log")
        self._bin = bin_folder
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make its folder and a role, start it, and make its database."""
        secret = f"{self._data}.password"
        Path(secret).write_text(self.password)
        os.chmod(secret, 0o600)
        if user := _user():
            shutil.chown(secret, user)
        words = ("--auth=scram-sha-256", f"--pwfile={secret}", "--locale=C", "--encoding=UTF8")
        command = [os.path.join(self._bin, "initdb"), "-D", self._data, "-U", USER, *words]
        subprocess.run(command, check=True, capture_output=True, user=user, cwd="/")
        os.unlink(secret)
        self.start()
        with self.connect("postgres") as connection:
            connection.execute(f"create database {DATABASE}")

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            SystemExit: It does not.
        """
        import psycopg

        if self._process is not None and self._process.poll() is None:
            return
        until = time.monotonic() + STARTS_IN_S
        while time.monotonic() < until:
            # What a killed server leaves behind ends by itself, and until then none starts here.
            if self._process is None or self._process.poll() is not None:
                self._process = self._spawn()
            with contextlib.suppress(psycopg.OperationalError):
                self.connect("postgres").close()
                return
            time.sleep(0.05)
        raise SystemExit(f"{self.name} did not start: {Path(self._log).read_text()[-2000:]}")

    def _spawn(self) -> "subprocess.Popen[bytes]":
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with open(self._log, "ab") as log:
            return subprocess.Popen(
                [os.path.join(self._bin, "postgres"), "-D", self._data, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=_user(),
                cwd="/",
                # Ctrl-C is for the program, which ends its servers.
                start_new_session=True,
            )

    def connect(self, database: str = DATABASE) -> "psycopg.Connection[Any]":
        """A connection on which every statement is a transaction."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=self.password,
            dbname=database,
            autocommit=True,
            connect_timeout=10,
        )

    def kill(self) -> None:
        """Lose it: its first process is killed, and the others end when they see that."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """A server that is there and answers nothing, while the block runs."""
        family = [] if self._process is None else list(_family(self._process.pid))
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it in order; killed where it does not end."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STARTS_IN_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def memory_bytes(self) -> int:
        """Of all its processes; what several share is counted once. 0 where it cannot be told."""
        if self._process is None or not sys.platform.startswith("linux"):
            return 0
        return sum(map(_proportional_bytes, _family(self._process.pid)))

    def disk_bytes(self) -> int:
        """Of its folder, with its log of changes."""
        found = 0
        for folder, _, names in os.walk(self._data):
            for name in names:
                with contextlib.suppress(OSError):
                    found += os.lstat(os.path.join(folder, name)).st_blocks * 512
        return found


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _family(pid: int) -> Iterator[int]:
    """A process and its children."""
    yield pid
    with contextlib.suppress(OSError):
        for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(word))


def _proportional_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


@contextlib.contextmanager
def running(
    names: Sequence[str], folder: str, bin_folder: str, settings: Mapping[str, Mapping[str, str]]
) -> Iterator[list[Server]]:
    """Servers that are up; ended however the block ends.

    Args:
        settings: Of each server by name.
    """
    if user := _user():
        shutil.chown(folder, user)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    servers = [Server(name, folder, bin_folder, settings[name]) for name in names]
    try:
        for one in servers:
            one.create()
        yield servers
    finally:
        for one in servers:
            one.stop()
        signal.signal(signal.SIGTERM, before)


def statements() -> dict[str, str]:
    """The SQL of SCALE.md by the name of its block; what a person runs is what is run here."""
    return dict(re.findall(r"```sql (\w+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))


def set_up(front: Server, shards: Sequence[Server]) -> None:
    """Do what the page says, with the names and ports of these servers."""
    blocks = statements()
    for one in shards:
        with one.connect() as connection:
            connection.execute(blocks["shard"])
    with front.connect() as connection:
        connection.execute(blocks["front"])
        for at, one in enumerate(shards):
            text = blocks["part"]
            for said, meant in (
                ("shard1", one.name),
                ("db1.example", "127.0.0.1"),
                ("5432", str(one.port)),
                ("…", one.password),
                ("remainder 0", f"remainder {at}"),
            ):
                text = text.replace(said, meant)
            connection.execute(text)

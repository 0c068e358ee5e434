"""What every test stands on: a scrubbed environment, the command line, a store in a work tree."""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from tests import opened_databases
from tests.postgres_server import (
    PACKAGE,
    Database,
    Server,
    is_installed,
    new_database,
    shared_server,
)
from tests.tiers import is_about_safety, long_tests

# Whoever starts the run in the background has its interrupts ignored, in every child, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

opened_databases.watch()

CHECKOUT: Final = Path(__file__).resolve().parent.parent
_SCRUBBED: Final = frozenset(
    # The last would have each of some thousand child processes compile every module again.
    {"LANG", "LANGUAGE", "FORCE_COLOR", "COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"}
)
_SCRUBBED_PREFIXES: Final = (
    "FILESTORE",
    "GIT_",
    "HF_",
    "HUGGINGFACE_",
    "LC_",
    "OPENAI_",
    "PG",
    "XDG_",
)


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are processors: many tests wait for a terminal or a process."""
    processors = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )
    return (processors or 1) * 3 // 2


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have the asynchronous tests of LangChain's suite run where that is installed."""
    if config.pluginmanager.hasplugin("asyncio"):
        config.option.asyncio_mode = "auto"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is long, and what is about safety, before one of the marks is asked for."""
    for item in items:
        if item.nodeid in long_tests() or item.get_closest_marker("exhaustive"):
            item.add_marker("long")
        if is_about_safety(item.nodeid):
            item.add_marker("safety")


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the tests themselves: 7,000 stay until the end anyway."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that ended."""

    code: int
    stdout: str
    """Bytes that are not UTF-8 are surrogates."""
    stderr: str

    @property
    def json(self) -> Any:
        """The one object on stdout."""
        return json.loads(self.stdout)

    @property
    def lines(self) -> list[Any]:
        """The objects on stdout, one a line."""
        return [json.loads(line) for line in self.stdout.splitlines()]


Run = Callable[..., Finished]
Script = Callable[..., Finished]


@pytest.fixture(autouse=True)
def scrubbed_environment(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """The same surroundings for every test: no user's settings, no git's, no colours."""
    home = tmp_path_factory.mktemp("home")
    kept = {name: value for name, value in os.environ.items() if not _scrubbed(name)}
    kept |= {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "configuration"),
        "NO_COLOR": "1",
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - kept.keys():
            patch.delenv(name)
        for name, value in kept.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(autouse=True)
def only_sqlite_opens_databases() -> Iterator[None]:
    """Whatever the test does; see `opened_databases`."""
    opened_databases.OPENED.clear()
    yield
    assert opened_databases.OPENED == []


def _scrubbed(name: str) -> bool:
    return name in _SCRUBBED or name.startswith(_SCRUBBED_PREFIXES)


def with_builtin(words: Sequence[Any]) -> list[Any]:
    """The words of a command; one that makes a store takes the builtin embedder, or the one named.

    That loads no model, and what it finds is the same in every environment.
    """
    makes_store = words[:1] == ("init",) and not {"--embedder", "--help"} & set(words)
    return [*words, "--embedder", "builtin"] if makes_store else [*words]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command line in a process of its own: ``run("init", cwd=folder)``; see `with_builtin`.

    The words may hold surrogates for bytes that are not UTF-8. ``env`` adds variables, ``input``
    is what stdin says, ``timeout_s`` ends a test that hangs.
    """

    def command(
        *words: str | os.PathLike[str],
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        input: bytes = b"",
        timeout_s: float = 600,
    ) -> Finished:
        return _finish(
            [sys.executable, "-m", "filestore", *with_builtin(words)],
            cwd=tmp_path if cwd is None else cwd,
            env=env or {},
            input=input,
            timeout_s=timeout_s,
        )

    return command


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make packages look as if they were not installed, whether they are or not.

    ``without_packages("onnxruntime")`` takes names as they are imported.
    """

    def block(*names: str) -> None:
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return block


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real PostgreSQL with pgvector, one for all processes of this run."""
    if not is_installed():
        pytest.skip(f"needs {PACKAGE}")
    base = tmp_path_factory.getbasetemp()
    meeting = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with shared_server(meeting) as server:
        yield server


@pytest.fixture(scope="session")
def database(postgres_server: Server) -> Database:
    """A database of this process in it, with the extension."""
    return new_database(postgres_server, f"of_{os.getpid()}")


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Python code in a process of its own, where it may fork, drop privileges or set limits."""

    def python(
        code: str, *words: str | os.PathLike[str], cwd: str | os.PathLike[str] | None = None
    ) -> Finished:
        return _finish(
            [sys.executable, "-c", code, *words],
            cwd=tmp_path if cwd is None else cwd,
            env={},
            input=b"",
            timeout_s=600,
        )

    return python


def _finish(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    input: bytes,
    timeout_s: float,
) -> Finished:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **env},
        input=input,
        capture_output=True,
        check=False,
        timeout=timeout_s,
    )
    return Finished(
        code=done.returncode,
        stdout=done.stdout.decode("utf-8", "surrogateescape"),
        stderr=done.stderr.decode("utf-8", "surrogateescape"),
    )


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    """An empty git work tree whose commits have an author."""
    folder = tmp_path / "work"
    folder.mkdir()
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    for key, value in (("user.name", "A Person"), ("user.email", "person@example.org")):
        subprocess.run([*git, "config", key, value], check=True)
    return folder


@pytest.fixture
def store_folder(run: Run, work_tree: Path) -> Path:
    """The root of an empty store with default settings, in a git work tree."""
    done = run("init", cwd=work_tree)
    assert done.code == 0, done.stderr
    return work_tree / "file_index"

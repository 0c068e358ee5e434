"""What the tests of the command line share: a work tree with a store, and a hand to drive it.

`workspace` runs commands in this process, because starting Python for each of some hundred commands
takes minutes; output is caught at the file descriptors and what escapes as an exception is no exit
code but a failed test. Tests about the process itself use `run`, which starts one.
"""

import io
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filestore.chunks import chunk_file
from filestore.core.hashing import embedding_key
from filestore.core.paths import ChunkPath
from tests.conftest import with_builtin

if TYPE_CHECKING:
    from tests.system.verify.test_every_code import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        return json.loads(self.stdout)


class Workspace:
    """A git work tree with a store in `file_index/`, driven as a person would."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capture: "pytest.CaptureFixture[bytes]",
    ) -> None:
        self.folder = folder
        self.store = folder / "file_index"
        self.chunked = self.store / "chunked"
        self.sidecar = self.store / ".sidecar"
        self._monkeypatch = monkeypatch
        self._capture = capture

    def __call__(self, *words: object, cwd: Path | None = None, code: int | None = 0) -> Done:
        """Run one command; fails the test where it ends with another code than expected.

        A new store has the builtin embedder, where the words name no other.
        """
        from filestore.cli import main

        self._monkeypatch.chdir(cwd or self.folder)
        self._capture.readouterr()
        typed = with_builtin(words)
        found = main([os.fspath(word) if isinstance(word, Path) else str(word) for word in typed])
        out, err = self._capture.readouterr()
        done = Done(code=found, stdout=out.decode(), stderr=err.decode())
        assert "Traceback" not in done.stderr, done.stderr
        assert code is None or done.code == code, (words, done)
        return done

    def json(self, *words: object, cwd: Path | None = None, code: int | None = 0) -> Any:
        """Run one command with ``--json``; its object."""
        return self(*words, "--json", cwd=cwd, code=code).json

    def write(self, path: str, content: str | bytes) -> Path:
        """Write a file below the work tree, with the folders it needs."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def summarize(
        self,
        path: str,
        title: str,
        body: str,
        children: Iterable[str],
        *,
        level: int = 1,
        questions: Sequence[str] = (),
    ) -> Path:
        """Write a summary of chunk files as they are now, by their paths below `chunked/`."""
        made = []
        for child in map(ChunkPath, children):
            chunk = chunk_file.parse((self.chunked / child).read_bytes())
            key = embedding_key(chunk_file.texts(chunk)[0]).hex()
            made.append(chunk_file.Child(path=child, hash=f"sha256:{key}"))
        data = chunk_file.generate(
            body=body,
            kind="summary",
            level=level,
            headings=[title],
            children=made,
            questions=questions,
        )
        return self.write(f"file_index/chunked/{path}", data)

    def truth(self) -> dict[str, bytes]:
        """Every file below `chunked/` but the temporary ones of a writer: path to bytes."""
        found = files_below(self.chunked)
        return {path: data for path, data in found.items() if "/.filestore-tmp-" not in f"/{path}"}

    def committed(self) -> dict[str, bytes]:
        """Every file of the store that a person commits: path to bytes."""
        derived = (".sidecar/", ".undo/")
        found = files_below(self.store)
        return {path: data for path, data in found.items() if not path.startswith(derived)}

    def chunks(self, resource: str) -> list[str]:
        """Paths of the chunks of a resource below `chunked/`, in reading order."""
        items = self.json("ls", resource, "--no-update")["items"]
        return [item["path"].removeprefix("chunked/") for item in items]

    def drift(self) -> dict[str, list[str]]:
        """What `status` says has drifted."""
        done = self.json("status", code=None)
        assert isinstance(done["drift"], dict)
        return dict(done["drift"])

    def sync(self, *words: str, code: int | None = 0) -> Any:
        """Sync; its report, with the truth files proved untouched."""
        before = self.truth()
        report = self.json("sync", *words, code=code)
        assert self.truth() == before
        return report

    def found(self, query: str, *words: str) -> list[str]:
        """Paths of the hits of a keyword search below `chunked/`."""
        done = self.json("search", query, "--mode", "keyword", *words, code=None)
        return [hit["path"].removeprefix("chunked/") for hit in done["hits"]]

    def in_catalog(self, statement: str, *values: object) -> list[Any]:
        """Change the catalog as an odd writer would, with the counts and checksum of a commit."""
        from filestore.catalog import _remembered

        connection = sqlite3.connect(self.sidecar / "catalog.sqlite", isolation_level=None)
        try:
            found = connection.execute(statement, values).fetchall()
            if not statement.startswith("SELECT"):
                _remembered.seal(connection, _remembered.COUNTED)
            return found
        finally:
            connection.close()

    def rot(self, path: Path, data: bytes) -> None:
        """Change a file, and make the catalog take its new stamps for those it recorded."""
        from filestore.fs.stats import PackedFolder, pack_folder, pack_stat

        path.write_bytes(data)
        folder = path.relative_to(self.chunked).parent.as_posix().removeprefix(".").encode()
        connection = sqlite3.connect(self.sidecar / "catalog.sqlite")
        ((names, stats),) = connection.execute(
            "SELECT names, stats FROM folders WHERE path = ?", (folder,)
        )
        entries = PackedFolder(names, stats).entries()
        seen = os.lstat(path)
        values = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode)
        entries[path.name] = pack_stat(values)
        packed = pack_folder(entries)
        with connection:
            connection.execute(
                "UPDATE folders SET stats = ? WHERE path = ?", (packed.stats, folder)
            )
        connection.close()

    def assert_settled(self) -> None:
        """Nothing drifted, nothing is damaged, and another sync has nothing to do."""
        status = self.json("status")
        assert status["clean"] is True
        assert status["drift"] == {}
        checked = self.json("verify", "--level", "full")
        assert checked["clean"] is True
        assert [one for one in checked["findings"] if one["severity"] != "I"] == []
        again = self.sync()
        assert again["applied"] == []
        assert again["remaining"] == []
        assert again["embedded"] == 0

    def git(self, *words: str) -> str:
        """Run git in the work tree; its output."""
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        command = ["git", *identity, *words]
        done = subprocess.run(
            command, cwd=self.folder, check=True, capture_output=True, text=True, env=git_free()
        )
        return done.stdout


def git_free() -> dict[str, str]:
    """The environment without what git would take from it, nor from the user's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def files_below(folder: Path) -> dict[str, bytes]:
    """Every regular file below a folder: path relative to it, to bytes."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.fixture
def scene(workspace: Workspace) -> Iterator["Scene"]:
    """The store of three notes."""
    from tests.system.verify.test_every_code import Scene

    with ExitStack() as stack:
        made = Scene(workspace, stack)
        made.fill()
        yield made


@pytest.fixture(params=["tree", "flat"])
def layout(request: pytest.FixtureRequest) -> str:
    """Both layouts, one after the other."""
    return str(request.param)


@pytest.fixture(scope="session")
def empty_stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `new_workspace` keeps a copy of the first store it makes of each layout."""
    return tmp_path_factory.mktemp("empty")


@pytest.fixture
def new_workspace(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: "pytest.CaptureFixture[bytes]",
    empty_stores: Path,
) -> Callable[..., Workspace]:
    """Makes work trees with a store: ``new_workspace(name, layout=…)``.

    The first store of a test is a copy of an empty one, which takes a tenth of the time. Each
    further one is made, since a copy has the identity of its pattern.
    """
    copied = False

    def make(name: str = "work", *, layout: str = "tree", init: bool = True) -> Workspace:
        nonlocal copied
        folder = tmp_path / name
        folder.mkdir(parents=True)
        made = Workspace(folder, monkeypatch, capfdbinary)
        made.git("init", "-q")
        pattern = empty_stores / layout
        if init and (copied or not pattern.exists()):
            made("init", "--layout", layout)
            if not copied:
                shutil.copytree(made.store, pattern)
        elif init:
            shutil.copytree(pattern, made.store)
        copied = copied or init
        return made

    return make


@pytest.fixture
def workspace(new_workspace: Callable[..., Workspace]) -> Workspace:
    """A work tree with an empty store in the tree layout."""
    return new_workspace()


@pytest.fixture
def either(new_workspace: Callable[..., Workspace], layout: str) -> Workspace:
    """A work tree with an empty store, once in each layout."""
    return new_workspace(layout=layout)


def prose(topic: str, *, sentences: int = 11) -> str:
    """A paragraph that fills a chunk of its own, in words that no other topic has."""
    lines = [
        f"Sentence {number} about {topic} says that {topic} needs care in step {number}."
        for number in range(1, sentences + 1)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def manual() -> Callable[[Iterable[str]], str]:
    """Writes a Markdown document with a section that fills a chunk for every topic."""

    def write(topics: Iterable[str]) -> str:
        sections = [f"## About {topic}\n\n{prose(topic)}\n" for topic in topics]
        return "# Manual\n\n" + "".join(sections)

    return write


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that fails is asked again at once, as often as ever."""
    from filestore.remote.service import Deadline

    monkeypatch.setattr(Deadline, "pause", lambda self, seconds: None)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        os.chdir("/")
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


@pytest.fixture
def text_of() -> Callable[[str, str], str]:
    """Reads what the extractor gives for an original: its whole text."""

    def read(path: str, name: str) -> str:
        from filestore import extract

        extractor = extract.for_name(name)
        assert extractor is not None
        with io.FileIO(path) as file:
            return extractor.extract(file.readall(), name=name).text

    return read

"""No pipe, socket, device, folder or link in place of a file makes a command hang or fall.

A store is cloned from strangers, and whoever opens a pipe waits for its writer. One process runs
every command over every place, so that the places can be many; what hangs is what it named last.
"""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

_DRIVER: Final = """
import contextlib, io, os, re, socket, sys
from filestore.cli import main

COMMANDS = [line.split("|") for line in sys.argv[3].splitlines()]
KIND, PLACES = sys.argv[1], sys.argv[2].splitlines()
OPENED = set()
TELLING = open(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

def plant(path):
    if KIND == "pipe":
        os.mkfifo(path)
    elif KIND == "folder":
        os.mkdir(path)
    elif KIND == "device":
        os.symlink("/dev/zero", path)
    elif KIND == "link":
        os.path.lexists("pipe") or os.mkfifo("pipe")
        os.symlink(os.path.abspath("pipe"), path)
    elif KIND == "socket":
        here = os.getcwd()
        os.chdir(os.path.dirname(path))
        socket.socket(socket.AF_UNIX).bind(os.path.basename(path))
        os.chdir(here)

def remove(path):
    os.rmdir(path) if KIND == "folder" else os.unlink(path)

def run(words, place):
    said = io.StringIO()
    tell(place, *words)
    with contextlib.redirect_stderr(said):
        code = main(words)
    sys.stdout.flush()
    tell(f"  {code} {said.getvalue()!r}")

def tell(*words):
    TELLING.write(" ".join(words) + "\\n")
    TELLING.flush()

def listen(event, arguments):
    if event in ("open", "sqlite3.connect") and isinstance(arguments[0], (str, bytes)):
        path = os.fsdecode(arguments[0])
        OPENED.add(os.path.basename(path))

if KIND == "none":
    sys.addaudithook(listen)
    for words in COMMANDS:
        run(words, "nothing")
    tell("opened\\n" + "\\n".join(sorted(OPENED)))
    sys.exit()
for place in PLACES:
    path = os.path.abspath(place)
    held = os.path.lexists(path)
    if held:
        os.rename(path, path + ".held")
    plant(path)
    for words in COMMANDS:
        run(words, place)
    if "--no-update" not in sys.argv[3]:
        continue
    remove(path)
    if held:
        os.rename(path + ".held", path)
"""

KINDS: Final = ("pipe", "folder", "device", "link", "socket")
LOOKING: Final = (
    "status",
    "verify|--level|full",
    "search|pump care|--no-update",
    "search|pump|--mode|keyword|--no-update",
    "ls|--no-update",
    "ls|manual.md|--no-update",
    "show|chunked/manual.md/chunk1.md|--no-update",
    "reconstruct|manual.md",
    "repair|--plan",
    "undo|--list",
)
WRITING: Final = ("sync", "status", "undo")
INDEXING: Final = ("search|pump care", "search|pump|--mode|keyword")
WRITTEN: Final = (
    ".sidecar/catalog.sqlite",
    ".sidecar/catalog.sqlite-wal",
    ".sidecar/clock",
    ".sidecar/embeddings.sqlite",
    ".sidecar/fulltext/stamp.json",
    ".sidecar/lock",
    ".sidecar/quarantine",
    ".undo/000001/batch.json",
    "chunked/manual.md/meta.json",
    "filestore.toml",
)
MENDED: Final = ("catalog.sqlite", "catalog.sqlite-wal", "embeddings.sqlite")
SIDECAR: Final = (
    ".sidecar/catalog.sqlite",
    ".sidecar/catalog.sqlite-wal",
    ".sidecar/catalog.sqlite-shm",
    ".sidecar/catalog.sqlite-journal",
    ".sidecar/clock",
    ".sidecar/embeddings.sqlite",
    ".sidecar/embeddings.sqlite-wal",
    ".sidecar/embeddings.sqlite-journal",
    ".sidecar/fulltext",
    ".sidecar/fulltext/stamp.json",
    ".sidecar/lock",
    ".sidecar/quarantine",
    ".sidecar/quarantine/1-catalog.sqlite",
)
TRUTH: Final = (
    "chunked",
    "chunked/manual.md",
    "chunked/manual.md/chunk1.md",
    "chunked/manual.md/meta.json",
    "filestore.toml",
    ".undo",
    ".undo/000001",
    ".undo/000001/0.before",
    ".undo/000001/batch.json",
    ".undo/000001/underway",
    ".gitattributes",
    ".gitignore",
)
AROUND: Final = (
    "manual.md",
    "handbook/.filestoreignore",
    "handbook/.gitignore",
    "home/filestore/machine.json",
    "home/filestore/secret",
    "home/filestore/settings.toml",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work tree with a store that has one of everything."""
    folder = tmp_path_factory.mktemp("made")
    topics = ("pump", "valve", "filter")
    text = "".join(f"## The {one}\n\nThe {one} needs care in winter.\n\n" for one in topics)
    (folder / "manual.md").write_text(f"# Manual\n\n{text}")
    (folder / "handbook").mkdir()
    (folder / "handbook" / "page.md").write_text("# Page\n\nA page about leave.\n")
    for name in (".filestoreignore", ".gitignore"):
        (folder / "handbook" / name).write_text("*.tmp\n")
    _run(folder, "none", (), ("init|--embedder|builtin", "add|manual.md|handbook"), code=0)
    # Something to be undone, and a catalog that was put aside.
    (folder / "manual.md").write_text(f"# Manual\n\n{text}## The hose\n\nThe hose is new.\n")
    _run(folder, "none", (), ("add|manual.md", "sync"), code=0)
    settings = folder / "home" / "filestore" / "settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("")
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    folder = tmp_path / "copy"
    shutil.copytree(made, folder, symlinks=True)
    return folder


def _run(
    folder: Path, kind: str, places: tuple[str, ...], commands: tuple[str, ...], code: int | None
) -> str:
    """Run the driver; what it said, with every exit code proved."""
    words = [kind, "\n".join(places), "\n".join(commands)]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "home"), "HOME": str(folder)}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    try:
        done = subprocess.run(
            [sys.executable, "-c", _DRIVER, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode("utf-8", "replace")
        pytest.fail(f"hangs at: {said.splitlines()[-1:]}")
    said = done.stdout
    assert done.returncode == 0, said[-2000:] + done.stderr[-4000:]
    for line in done.stdout.splitlines():
        if line.startswith("  "):
            found = int(line.split()[0])
            assert found in ((0, 1, 3, 4) if code is None else (code,)), done.stdout[-2000:]
            assert "Traceback" not in line
    return done.stdout


def _in_store(places: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"file_index/{place}" for place in places)


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_that_looks_waits_for_what_is_no_file(copy: Path, kind: str) -> None:
    """In whatever place it stands: an answer, a finding or a refusal, and nothing else."""
    vectors = tuple(
        path.relative_to(copy).as_posix() for path in copy.glob("file_index/.sidecar/vectors-*")
    )
    parts = tuple(
        path.relative_to(copy).as_posix() for path in copy.glob("file_index/.sidecar/fulltext/*/*")
    )
    places = (*_in_store(SIDECAR + TRUTH), *AROUND, *vectors, *parts)
    (copy / "file_index/.sidecar/quarantine").mkdir(exist_ok=True)
    _run(copy, kind, places, LOOKING, None)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_no_command_that_writes_waits_for_what_is_no_file(
    made: Path, tmp_path: Path, kind: str
) -> None:
    """A sync mends what it may, and says of everything else what stands there; a search, too."""
    for place, commands in itertools.product(_in_store(WRITTEN), (WRITING, INDEXING)):
        folder = tmp_path / "copy"
        shutil.copytree(made, folder, symlinks=True)
        (folder / "file_index/chunked/own.md").write_text("A pump of my own.\n")
        (folder / os.path.dirname(place)).mkdir(parents=True, exist_ok=True)
        said = _run(folder, kind, (place,), commands, None)
        if place.endswith(MENDED) and commands == WRITING:
            codes = [line.split()[0] for line in said.splitlines() if line.startswith("  ")]
            assert codes[:2] == ["0", "0"], said
        shutil.rmtree(folder)


def test_every_file_that_is_opened_is_in_the_tables(copy: Path) -> None:
    """What a command opens in a store was also replaced by a pipe in these tests."""
    said = _run(copy, "none", (), LOOKING, None)
    opened = set(said.partition("opened\n")[2].splitlines())
    known = {os.path.basename(place) for place in (*SIDECAR, *TRUTH, *AROUND)}
    files = [path for path in (copy / "file_index").rglob("*") if path.is_file()]
    # Those of one commit of the full-text index, and the FAISS file, have names of their own.
    own = {path.name for path in files if path.parent.parent.name == "fulltext"}
    own |= {path.name for path in files if path.match("vectors-*") or path.suffix == ".md"}
    assert not (opened & {path.name for path in files}) - known - own

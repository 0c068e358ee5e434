"""Other users, other clocks, file systems without locks: said in a sentence, and nothing stale."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import filestore
from filestore.fs.disk import FileSystemClock

_OTHER_USER: Final = """
import importlib, os, pkgutil, shutil, sys, tempfile, traceback
import filestore
from filestore.cli import main

def run(lines):
    for words in lines:
        try:
            code = main(words.split("|"))
        except BaseException:
            traceback.print_exc()
            code = 99
        sys.stdout.flush()
        sys.stderr.write(f"\\nended {code} {words}\\n")

# Python itself may lie where the other user may not read: every module is loaded before, and every
# command runs once as root, in a copy, for what it imports late.
for module in pkgutil.walk_packages(filestore.__path__, "filestore."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            pass
work = os.getcwd()
with tempfile.TemporaryDirectory() as copy:
    shutil.copytree(work, copy, symlinks=True, dirs_exist_ok=True)
    os.chdir(copy)
    run(sys.argv[1].splitlines())
    os.chdir(work)
sys.stderr.write("\\nother user\\n")
os.environ |= {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
run(sys.argv[1].splitlines())
"""
LOOKING: Final = ("status", "verify|--level|full", "search|pump", "ls", "reconstruct|manual.md")
WRITING: Final = ("sync", "add|manual.md", "undo", "rm|manual.md", "repair|--yes", "init|other")
MONTH_NS: Final = 30 * 86_400 * 10**9
STAMPS: Final = (-(10**18), 0, 1, 4_102_444_800 * 10**9, 2**63 - 1)
"""Before 1970, in 1970, in 2100, and the last that 64 bits hold."""


@pytest.fixture
def filled(workspace: Any) -> Any:
    """A store with a resource and a note of a person's own."""
    workspace.write("manual.md", "# Manual\n\nThe pump needs care.\n")
    workspace("add", "manual.md")
    workspace.write("file_index/chunked/note.md", "The valve is old.\n")
    workspace("sync")
    return workspace


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("mode", "path", "codes"),
    [
        (0o700, ".sidecar", {3}),
        (0o600, ".sidecar/catalog.sqlite", {3}),
        (0o600, ".sidecar/embeddings.sqlite", {0, 1}),
        (0o700, "chunked", {0, 1}),
        (0o600, "filestore.toml", {3}),
        (0o755, "", {0}),
    ],
    ids=lambda value: value.replace("/", "-") if isinstance(value, str) else None,
)
def test_the_store_of_another_user(
    filled: Any, script: Callable[..., Any], mode: int, path: str, codes: set[int]
) -> None:
    """Read as far as it may be read, never written, and what is in the way is named."""
    # Not in pytest's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as name:
        work = Path(name) / "work"
        shutil.copytree(filled.folder, work, symlinks=True)
        for folder, _, names in os.walk(name):
            os.chmod(folder, 0o755)
            for one in names:
                os.chmod(os.path.join(folder, one), 0o644)
        os.chmod(work / "file_index" / path, mode)
        before = {one: one.lstat().st_mtime_ns for one in work.rglob("*")}
        done = script(_OTHER_USER, "\n".join((*LOOKING, *WRITING)), cwd=work)
        assert {one: one.lstat().st_mtime_ns for one in work.rglob("*")} == before
    said = done.stderr.partition("other user")[2]
    assert "Traceback" not in said, said[-2000:]
    found = dict[str, int]()
    for line in said.splitlines():
        if line.startswith("ended "):
            _, code, words = line.split(maxsplit=2)
            found[words] = int(code)
    assert {found[words] for words in LOOKING} <= codes, said
    # Where nothing is to be repaired, that is no failure.
    assert {found[words] for words in WRITING} <= {0, 1, 3, 4}, said
    assert found["sync"] in (3, 4)
    assert "no store" not in said


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.EINVAL])
def test_a_file_system_without_locks(
    filled: Any, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """No writer works there, the way out is named, and whoever looks is not told of a writer."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        for words in (
            *(("sync",), ("add", "manual.md"), ("rm", "manual.md"), ("undo",), ("redo",)),
            *(("update",), ("embeddings", "prune"), ("init", "--embedder", "builtin", "other")),
        ):
            done = filled(*words, code=3)
            assert "does not lock files" in done.stderr
            assert "[sidecar]" in done.stderr
            assert len(done.stderr.splitlines()) == 2
        assert filled.drift() == {}
        assert filled.found("pump")
        assert "does not lock files" in filled("doctor", code=1).stdout
    filled.assert_settled()
    # What was begun is whole once there is a place that locks.
    filled("--store", "other", "sync")
    filled("--store", "other", "status")


@pytest.mark.parametrize("stamp", STAMPS)
def test_files_of_another_time(filled: Any, stamp: int) -> None:
    """A stamp before 1970 or far ahead: a sync ends, and an edit under the same stamp is found."""
    note = filled.chunked / "note.md"
    os.utime(note, ns=(stamp, stamp))
    filled.sync()
    assert filled.drift() == {}
    note.write_text("The valve is new.\n")
    os.utime(note, ns=(stamp, stamp))
    assert filled.drift() == {"modified": ["chunked/note.md"]}
    filled.sync()
    assert filled.found("new")
    filled.assert_settled()


@pytest.mark.parametrize("step_ns", [-MONTH_NS, MONTH_NS])
def test_a_clock_of_the_file_system_that_jumps(
    filled: Any, monkeypatch: pytest.MonkeyPatch, step_ns: int
) -> None:
    """Between a scan and its commit, by a month: the sync ends, and an edit of then is found."""
    real = FileSystemClock.now_ns
    asked: list[int] = []

    def jumping(clock: FileSystemClock) -> int:
        asked.append(1)
        return real(clock) + (step_ns if len(asked) > 1 else 0)

    note = filled.chunked / "note.md"
    with monkeypatch.context() as patch:
        patch.setattr(FileSystemClock, "now_ns", jumping)
        note.write_text("The valve is mid.\n")
        filled.sync()
    stamp = note.stat().st_mtime_ns
    note.write_text("The valve is new.\n")
    os.utime(note, ns=(stamp, stamp))
    assert filled.drift() == {"modified": ["chunked/note.md"]}
    filled.sync()
    filled.assert_settled()


def test_a_wall_clock_that_runs_backwards(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour back at each look: everything ends, undo takes the last change back."""
    now = [time.time()]

    def backwards() -> float:
        now[0] -= 3600
        return now[0]

    monkeypatch.setattr(time, "time", backwards)
    monkeypatch.setattr(time, "time_ns", lambda: int(backwards() * 1e9))
    before = filled.truth()
    filled.write("manual.md", "# Manual\n\nThe pump needs more care.\n")
    filled("add", "manual.md")
    (filled.chunked / "note.md").write_text("The valve is new.\n")
    assert "modified" in filled.drift()
    filled.sync()
    filled("undo")
    assert {path: data for path, data in filled.truth().items() if path != "note.md"} == {
        path: data for path, data in before.items() if path != "note.md"
    }
    filled.sync(code=None)
    assert filled("verify", "--level", "full", code=None).code in (0, 1)


def test_a_working_folder_that_was_removed(workspace: Any, tmp_path: Path) -> None:
    """A store that is named by its whole path is found from nowhere."""
    workspace.write("manual.md", "# Manual\n\nThe pump is primed by hand.\n")
    workspace("add", "manual.md")
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$1"; shift; exec "$@"'
    command = [sys.executable, "-m", "filestore", "--store", str(workspace.store), "search", "pump"]
    done = subprocess.run(
        ["sh", "-c", script, "sh", str(gone), *command],
        cwd=gone,
        env=os.environ | {"PYTHONPATH": str(Path(filestore.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "primed by hand" in done.stdout


def test_a_folder_whose_name_is_no_text(new_workspace: Callable[..., Any]) -> None:
    """Libraries that take only UTF-8 find their files there all the same."""
    notes = new_workspace(init=False)
    root = os.fsdecode(b"caf\xe9")
    notes.write(f"{root}/a.md", "# A\n\nA walrus.\n")
    notes("init", "--in-place", "--embedder", "builtin", root)
    store = ("--store", root)
    assert notes(*store, "sync").stdout.startswith("nothing to do\n")
    assert notes.json(*store, "status")["clean"] is True
    assert notes.json(*store, "verify", "--level", "full")["clean"] is True
    for mode in ("keyword", "vector", "hybrid"):
        found = notes.json(*store, "search", "walrus", "--mode", mode)
        assert [hit["path"] for hit in found["hits"]] == ["a.md"]
        assert not any("damaged" in note for note in found["notes"])

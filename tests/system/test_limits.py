"""What the machine refuses at the moment is no damage: too few files, no memory, a disk that fails.

Nothing is put aside or built again for it, and the next command finds a clean store.
"""

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filestore.cli import main
from filestore.fs import disk

CHECKOUT = Path(__file__).resolve().parents[2]
COMMANDS = (
    ["status"],
    ["search", "words"],
    ["search", "words", "--mode", "keyword"],
    ["verify", "--level", "full"],
    ["sync"],
)
LIBRARY = r"""
import json, os, resource, sys
from pathlib import Path
from filestore.core.errors import FilestoreError
from filestore.store import Store

root = sys.argv[1]
calls = {
    "status": lambda store: store.status().findings,
    "keyword": lambda store: store.search("words", k=5, mode="keyword").hits,
    "hybrid": lambda store: store.search("words", k=5, mode="hybrid").hits,
    "verify": lambda store: store.verify(level="full").findings,
    "sync": lambda store: store.sync().remaining,
    "sync --full": lambda store: store.sync(full=True).remaining,
}
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

def tried(name, limit):
    Path(root, "chunked", "own.md").write_text(f"Own words {limit}.\n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        with Store(root, configuration=os.path.join(root, "..", "configuration")) as store:
            found = calls[name](store)
            return "done", sorted({getattr(one, "code", "hit") for one in found})
    except FilestoreError as error:
        told = f"{error.message} {error.remedy} {error.detail}"
        return type(error).__name__, error.exit_code, told
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

for name in calls:
    tried(name, hard)
for name in calls:
    for limit in range(3, 60, int(sys.argv[2])):
        parts = os.listdir(os.path.join(root, ".sidecar"))
        print(json.dumps([name, limit, tried(name, limit), parts]))
"""


@pytest.fixture
def notes(workspace: Any) -> Any:
    """A store with a document and two notes of a person."""
    workspace.write("a.md", "# A\n\nWords of a document.\n")
    workspace("add", "a.md")
    for name in ("one", "own"):
        workspace.write(f"file_index/chunked/{name}.md", f"Own words of {name}.\n")
    workspace("sync")
    return workspace


def limited(
    notes: Any, words: list[str], soft: int, hard: int, limit: int = resource.RLIMIT_NOFILE
) -> "subprocess.CompletedProcess[str]":
    """Run a command that may open so many files, or has another limit."""
    return subprocess.run(
        [sys.executable, "-m", "filestore", "--store", str(notes.store), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        preexec_fn=lambda: resource.setrlimit(limit, (soft, hard)),
    )


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_low_limit_of_open_files(notes: Any, words: list[str]) -> None:
    """A command that may open too few files says so at once, and touches nothing."""
    before = sorted(path for path in notes.sidecar.rglob("*") if path.name != "clock")
    for limit in (8, 16, 40, 100):
        done = limited(notes, words, limit, limit)
        assert done.returncode == 3, done
        assert "ulimit -n" in done.stderr
        assert str(limit) in done.stderr
        assert "damaged" not in done.stderr + done.stdout
    assert sorted(path for path in notes.sidecar.rglob("*") if path.name != "clock") == before
    notes.assert_settled()


@pytest.mark.parametrize(
    ("limit", "option"), [(resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")]
)
def test_a_low_limit_of_memory(notes: Any, limit: int, option: str) -> None:
    """A command for whose libraries there is no room says so, and is not ended by one of them."""
    for words in COMMANDS:
        done = limited(notes, words, 300_000 << 10, 300_000 << 10, limit)
        assert done.returncode == 3, (words, done)
        assert f"ulimit {option}" in done.stderr
    enough = 2 << 30
    assert limited(notes, ["sync", "--full"], enough, enough, limit).returncode == 0
    notes.assert_settled()


def test_no_file_may_be_large(notes: Any) -> None:
    """A limit of the size of files is named, whichever file reached it."""
    notes.write("file_index/chunked/long.md", "".join(f"Word{n} of it.\n" for n in range(20_000)))
    for kilobytes in (1, 30, 100, 300):
        size = kilobytes << 10
        done = limited(notes, ["sync"], size, size, resource.RLIMIT_FSIZE)
        assert done.returncode == 3, (kilobytes, done)
        assert "ulimit -f" in done.stderr
    notes("sync")
    notes.assert_settled()


def test_a_soft_limit_is_raised(notes: Any) -> None:
    """A limit that the process may raise by itself is no hindrance."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    done = limited(notes, ["status"], 20, hard)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_files_run_out_in_the_middle(notes: Any, script: Callable[..., Any], step: int) -> None:
    """However few files a call may open, it does what was asked or names the limit."""
    done = script(LIBRARY, notes.store, str(step))
    assert done.code == 0, done.stderr
    refused = 0
    for name, limit, (outcome, *rest), there in done.lines:
        assert "quarantine" not in there, (name, limit)
        if outcome == "done":
            # A search that had the catalog written, and could open no more, is behind.
            expected = {"hit", "modified", "fulltext-behind", "vector-pending"}
            assert set(rest[0]) <= (expected if "sync" not in name else set()), (name, limit, rest)
        else:
            refused += 1
            assert rest[0] == 3
            # SQLite may say no more than that it cannot open a file it would write.
            if outcome != "WriteFailedError":
                assert outcome == "LimitReachedError", (name, limit, outcome, rest)
                assert "ulimit -n" in rest[1]
    assert refused > 50 // step
    notes("sync")
    notes.assert_settled()


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
@pytest.mark.parametrize("part", ["vectors-", "fulltext/"])
def test_a_part_that_cannot_be_read_just_now(
    notes: Any, monkeypatch: pytest.MonkeyPatch, part: str, number: int
) -> None:
    """A disk that fails is said to fail: what it holds is not called damaged, nor built anew."""

    def refused(path: str) -> bytes:
        if part in path:
            raise OSError(number, os.strerror(number), path)
        return hashed(path)

    hashed = disk.file_hash
    before = sorted(notes.sidecar.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(disk, "file_hash", refused)
        found = notes.json("verify", "--level", "full", code=1)["findings"]
        assert {one["code"] for one in found} == {"unreadable"}
        assert os.strerror(number) in "".join(one["detail"] for one in found)
        notes("sync", code=None)
    assert sorted(notes.sidecar.rglob("*")) == before
    notes.assert_settled()


def test_memory_runs_out(
    notes: Any, monkeypatch: pytest.MonkeyPatch, capfdbinary: "pytest.CaptureFixture[bytes]"
) -> None:
    """A lack of memory is called one."""

    def refused(*_: object) -> bytes:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("filestore.fs.disk.file_hash", refused)
        for words in (["verify", "--level", "full"], ["sync", "--full"], ["search", "words"]):
            assert main(["--store", str(notes.store), *words, "--json"]) == 3
            said = json.loads(capfdbinary.readouterr().out)
            assert "memory" in said["error"]
    notes.assert_settled()

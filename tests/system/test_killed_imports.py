"""Imports that are stopped: whole files, a store that `sync` completes, an import that goes on."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conftest import CHECKOUT
from tests.system.conftest import files_below

RESOURCES: Final = 12
CHUNKS: Final = 40


@pytest.fixture
def export(run: Any, store_folder: Path) -> Path:
    """A file with some resources and their vectors, made by a store that is empty again."""
    head = {"format": "filestore-jsonl/1"}
    rows = [
        {"resource": f"r{r}", "id": f"r{r}/chunk{n}.md", "text": f"Text {n} of {r}, on lamps.\n"}
        for r in range(RESOURCES)
        for n in range(1, CHUNKS + 1)
    ]
    plain = store_folder.parent / "plain.jsonl"
    plain.write_text("".join(f"{json.dumps(row)}\n" for row in [head, *rows]))
    assert run("import", "jsonl", plain, cwd=store_folder).code == 0
    made = store_folder.parent / "all.jsonl"
    assert run("export", "jsonl", made, cwd=store_folder).code == 0
    empty(store_folder)
    return made


def empty(root: Path) -> None:
    """Put a store back to where nothing was imported."""
    for name in (".sidecar", ".undo", "chunked"):
        shutil.rmtree(root / name, ignore_errors=True)
    (root / "chunked").mkdir()


def command(root: Path, *words: "str | Path") -> "subprocess.Popen[bytes]":
    """A command under way."""
    return subprocess.Popen(
        [sys.executable, "-m", "filestore", *map(str, words)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def stopped(root: Path, after_s: float, how: signal.Signals, *words: "str | Path") -> int:
    """The exit status of a command that was sent a signal, if it was still at it."""
    process = command(root, *words)
    try:
        process.communicate(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        process.communicate(timeout=120)
    return process.returncode


def stopped_at(root: Path, files: int, how: signal.Signals, export: Path) -> None:
    """Stop an import once it has written so many files."""
    process = command(root, "import", "jsonl", export)
    while process.poll() is None and sum(1 for _ in root.glob("chunked/*/*.md")) < files:
        pass
    process.send_signal(how)
    process.communicate(timeout=120)


def told(root: Path, *words: "str | Path") -> Any:
    """What a command says that is left alone."""
    process = command(root, *words, "--json")
    output, _ = process.communicate(timeout=300)
    assert process.returncode in (0, 1), output
    return json.loads(output)


def stop_imports(root: Path, export: Path, times: int, how: signal.Signals) -> None:
    """Stop imports into an empty store at some moment of their work."""
    started = time.monotonic()
    assert told(root, "import", "jsonl", export)["embedded"] == 0
    took_s = time.monotonic() - started
    whole = files_below(root / "chunked")
    assert len(whole) == RESOURCES * CHUNKS
    chance = random.Random(9)
    caught = False
    for turn in range(times):
        empty(root)
        if turn % 3 == 1:
            # While it writes files, however fast the machine is.
            stopped_at(root, chance.randrange(1, RESOURCES * CHUNKS), how, export)
        else:
            stopped(root, chance.uniform(0.2, 1.05) * took_s, how, "import", "jsonl", export)
        there = {
            path: data
            for path, data in files_below(root / "chunked").items()
            if ".filestore-tmp-" not in path
        }
        assert there.items() <= whole.items()
        if turn % 2 == (how is signal.SIGKILL):
            synced = told(root, "sync")
            assert synced["remaining"] == []
            caught = caught or bool(synced["applied"])
            checked = told(root, "verify", "--level", "full")
            assert checked["clean"]
        done = told(root, "import", "jsonl", export)
        assert {one["status"] for one in done["resources"]} <= {"added", "unchanged"}
        assert done["left_out"] == []
        synced = told(root, "sync")
        assert (synced["applied"], synced["remaining"]) == ([], [])
        assert files_below(root / "chunked") == whole
        assert told(root, "verify", "--level", "full")["clean"]
    # One was hit between its files and its index, or the moments say nothing. What is interrupted
    # while it writes files takes them back.
    assert times < 20 or caught or how is signal.SIGINT


def stop_exports(root: Path, export: Path, times: int) -> None:
    """Kill exports over an earlier one: it is there whole, or the new one is."""
    told(root, "import", "jsonl", export)
    target = root.parent / "again.jsonl"
    started = time.monotonic()
    told(root, "export", "jsonl", target)
    took_s = time.monotonic() - started
    new = target.read_bytes()
    told(root, "export", "jsonl", target, "r1")
    old = target.read_bytes()
    chance = random.Random(10)
    for _ in range(times):
        target.write_bytes(old)
        after_s = chance.uniform(0.3, 1.05) * took_s
        stopped(root, after_s, signal.SIGKILL, "export", "jsonl", target)
        assert target.read_bytes() in (old, new)
    told(root, "export", "jsonl", target)
    assert target.read_bytes() == new


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_imports(store_folder: Path, export: Path, how: signal.Signals) -> None:
    """Once; the exhaustive run does it ten times."""
    stop_imports(store_folder, export, 1, how)


@pytest.mark.parametrize("is_gone", [True, False])
def test_full_text_that_a_kill_left_behind(
    store_folder: Path, export: Path, *, is_gone: bool
) -> None:
    """Every file is there and indexed; the next import ends what the last one did not."""
    told(store_folder, "import", "jsonl", export)
    one = store_folder.parent / "one.jsonl"
    told(store_folder, "export", "jsonl", one, "r1")
    empty(store_folder)
    told(store_folder, "import", "jsonl", one)
    stamp = store_folder / ".sidecar/fulltext/stamp.json"
    before = stamp.read_bytes()
    told(store_folder, "import", "jsonl", export)
    stamp.unlink() if is_gone else stamp.write_bytes(before)
    assert not told(store_folder, "status")["clean"]
    told(store_folder, "import", "jsonl", export)
    assert told(store_folder, "verify", "--level", "full")["clean"]


def test_killed_exports(store_folder: Path, export: Path) -> None:
    """Once; the exhaustive run kills thirty."""
    stop_exports(store_folder, export, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_many_stopped_imports(store_folder: Path, export: Path, how: signal.Signals) -> None:
    """Ten."""
    stop_imports(store_folder, export, 10, how)


@pytest.mark.exhaustive
def test_many_killed_exports(store_folder: Path, export: Path) -> None:
    """Thirty."""
    stop_exports(store_folder, export, 30)

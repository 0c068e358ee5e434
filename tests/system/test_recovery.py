"""A writer that is killed at any moment: the store opens, sync mends it, no file is lost.

The commands run in children of a process that has everything loaded, so that the kill falls into
their work and not into the start of Python.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from filestore import chunkfile

CHECKOUT = Path(__file__).resolve().parents[2]
KILLED = -9
CYCLES = 20

_HOST = """
import json, os, signal, sys, time
from filestore.cli import main
import filestore.adding, filestore.extract._markdown, filestore.syncing, filestore.indexing
import faiss, numpy, tantivy, semantic_text_splitter, markdown_it, frontmatter

for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(task["folder"])
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os._exit(main(task["words"]))
    deadline = time.monotonic() + task["delay_s"]
    ended = 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.0005)
    if not ended:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""

Kill = Callable[[Any, float, list[str]], int]


@pytest.fixture(scope="module")
def kill() -> Iterator[Kill]:
    """Runs a command in a work tree and kills it after a while; its exit code, -9 if killed."""
    host = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _HOST],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
        text=True,
    )
    assert host.stdin is not None
    assert host.stdout is not None

    def run(workspace: Any, delay_s: float, words: list[str]) -> int:
        assert host.stdin is not None
        assert host.stdout is not None
        task = {"folder": str(workspace.folder), "delay_s": delay_s, "words": words}
        host.stdin.write(json.dumps(task) + "\n")
        host.stdin.flush()
        return int(host.stdout.readline())

    yield run
    host.stdin.close()
    host.wait(timeout=30)
    host.stdout.close()


def duration_s(kill: Kill, workspace: Any, words: list[str]) -> float:
    """How long a command takes that nobody kills."""
    started = time.monotonic()
    assert kill(workspace, 60, words) == 0
    return time.monotonic() - started


def assert_mended(workspace: Any) -> None:
    """One sync makes the store sound, whatever was left behind."""
    for command in (["status"], ["search", "words"]):
        assert workspace(*command, code=None).code in (0, 1, 3)
    workspace.sync()
    status = workspace.json("status")
    assert status["drift"] in ({}, {"leftovers": status["drift"].get("leftovers")})
    checked = workspace.json("verify", "--level", "full")
    assert checked["clean"] is True
    assert {finding["code"] for finding in checked["findings"]} <= {"leftovers"}


def assert_whole(workspace: Any, before: dict[str, bytes], touched: str) -> None:
    """Files of other resources are as they were; those of this one are whole, old or new."""
    after = workspace.truth()
    for path, data in before.items():
        if not path.startswith(touched):
            assert after[path] == data, path
    for path, data in after.items():
        if path.endswith(".md"):
            assert not chunkfile.hand_edited(chunkfile.parse(data)), path
        elif path.endswith(".json"):
            assert isinstance(json.loads(data), dict)


def document(manual: Any, chance: random.Random) -> str:
    topics = [f"topic{number}" for number in range(9)]
    return str(manual(chance.sample(topics, chance.randrange(3, 8))))


def test_killed_while_adding(workspace: Any, manual: Any, kill: Kill) -> None:
    """However far an add came, sync makes the index sound and adding again completes it."""
    chance = random.Random(11)
    workspace.write("keep.md", manual(["kept", "words"]))
    longest_s = duration_s(kill, workspace, ["add", "keep.md"])
    killed = 0
    for cycle in range(CYCLES):
        name = f"n{cycle // 2}.md"
        before = workspace.truth()
        text = document(manual, chance)
        workspace.write(name, text)
        killed += kill(workspace, chance.uniform(0, longest_s), ["add", name]) == KILLED
        assert_whole(workspace, before, f"{name}/")
        assert_mended(workspace)
        workspace("add", name)
        assert workspace("reconstruct", name).stdout == text
    assert killed
    assert_mended(workspace)


@pytest.mark.parametrize("synced", [False, True])
def test_adding_again_completes_what_was_cut(either: Any, manual: Any, synced: bool) -> None:
    """A resource that a kill left without its record and its last chunk is completed by add."""
    either.write("note.md", manual(["preface", "pears", "plums"]))
    either("add", "note.md")
    whole = either.truth()
    (record,) = either.chunked.rglob("*.json")
    record.unlink()
    (either.chunked / either.chunks("note.md")[-1]).unlink()
    if synced:
        either.sync()
    either("add", "note.md")
    assert either.truth() == whole
    either.sync()
    either.assert_settled()


def test_leftovers_are_collected(either: Any) -> None:
    """The temporary files of a dead writer are gone after the next sync."""
    (either.chunked / "note.md").write_text("A note.\n")
    leftover = either.chunked / ".filestore-tmp-0123456789abcdef"
    leftover.write_text("A no")
    assert either.json("status", code=None)["drift"]["leftovers"]
    either.json("sync")
    assert not leftover.exists()
    either.assert_settled()


def test_killed_while_syncing(workspace: Any, manual: Any, kill: Kill) -> None:
    """However far a sync came, the next one ends it; truth is never written."""
    chance = random.Random(12)
    workspace.write("base.md", manual([f"topic{number}" for number in range(8)]))
    workspace("add", "base.md")
    disturb(workspace, chance, 0)
    longest_s = duration_s(kill, workspace, ["sync"])
    killed = 0
    for cycle in range(1, CYCLES + 1):
        disturb(workspace, chance, cycle)
        before = workspace.truth()
        killed += kill(workspace, chance.uniform(0, longest_s), ["sync"]) == KILLED
        assert workspace.truth() == before
        assert_mended(workspace)
    assert killed
    workspace.assert_settled()


def disturb(workspace: Any, chance: random.Random, cycle: int) -> None:
    """Give the next sync something to do."""
    for number in range(chance.randrange(1, 30)):
        (workspace.chunked / f"c{cycle}-{number}.md").write_text(f"Words {cycle} {number}.\n")
    files = sorted(workspace.chunked.glob("c*.md"))
    for path in chance.sample(files, min(3, len(files))):
        chance.choice([path.unlink, lambda path=path: path.write_text("Edited words.\n")])()
    if cycle % 5 == 4:
        (workspace.sidecar / "catalog.sqlite").unlink()


def test_killed_while_removing(workspace: Any, manual: Any, kill: Kill) -> None:
    """However far a removal came, each file is there or kept, and removing again completes it."""
    chance = random.Random(13)
    workspace.write("keep.md", manual(["kept", "words"]))
    workspace("add", "keep.md")
    workspace.write("first.md", document(manual, chance))
    workspace("add", "first.md")
    longest_s = duration_s(kill, workspace, ["rm", "first.md"])
    for _ in range(CYCLES // 3):
        workspace.write("gone.md", document(manual, chance))
        workspace("add", "gone.md")
        before = workspace.truth()
        kill(workspace, chance.uniform(0, longest_s), ["rm", "gone.md"])
        kept = {path.read_bytes() for path in workspace.store.glob(".undo/*/*") if path.is_file()}
        after = workspace.truth()
        for path, data in before.items():
            assert after.get(path, data) == data
            assert path in after or data in kept
        workspace("sync")
        if any(path.startswith("gone.md/") for path in workspace.truth()):
            workspace("rm", "gone.md")
        assert {path for path in before if path.startswith("keep.md/")} == set(workspace.truth())
        workspace.assert_settled()

"""`filestore watch`: the index follows by itself, and ends where `sync` would have ended."""

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.fs.lock import writer_lock

CHECKOUT: Final = Path(__file__).resolve().parent.parent.parent
PATIENCE_S: Final = 90
WORDS: Final = ("amber", "basalt", "copper", "diorite", "emerald", "flint", "granite")


class Watching:
    """A `filestore watch` in a process of its own, and what it said."""

    def __init__(self, root: Path, *words: str) -> None:
        command = [sys.executable, "-m", "filestore", "--store", str(root), "watch", *words]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        )
        assert self._process.stdout is not None
        self._stream = self._process.stdout
        self._rest = b""
        self.lines: list[str] = []

    def line(self) -> str:
        """The next line that it says."""
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._stream], [], [], deadline - time.monotonic())
            assert ready, self.lines
            data = os.read(self._stream.fileno(), 65536)
            assert data, self.lines
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        self.lines.append(line.decode())
        return self.lines[-1]

    def event(self, kind: str = "synced") -> Any:
        """The next event of a kind."""
        while True:
            found = json.loads(self.line())
            if found["event"] == kind:
                return found

    def until(self, code: str, number: int = 1) -> int:
        """Wait until so many changes of a code were applied; how many texts were embedded."""
        embedded = 0
        while number > 0:
            event = self.event()
            number -= event["applied"].get(code, 0)
            embedded += event["embedded"]
        return embedded

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end, read what it still says; its exit code."""
        if self._stream.closed:
            return self._process.returncode
        self._process.send_signal(number)
        impatient = threading.Timer(PATIENCE_S, self._process.kill)
        impatient.start()
        self.lines += (self._rest + self._stream.read()).decode().splitlines()
        self._stream.close()
        impatient.cancel()
        return self._process.wait(PATIENCE_S)


@pytest.fixture
def watch(workspace: Any) -> Iterator[Callable[..., Watching]]:
    """Starts a watch over the store, and waits for its first word unless told otherwise."""
    started: list[Watching] = []

    def start(*words: str) -> Watching:
        started.append(Watching(workspace.store, *words))
        return started[-1]

    yield start
    for watching in started:
        watching.end(signal.SIGKILL)


def write(workspace: Any, name: str, text: str) -> Path:
    """Write a chunk file as an editor does: a temporary file beside it, renamed over it."""
    path: Path = workspace.chunked / name
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.swp")
    temporary.write_text(text)
    os.replace(temporary, path)
    return path


def test_it_follows(workspace: Any, watch: Callable[..., Watching]) -> None:
    """Files written, saved by an editor, renamed and deleted are followed, each paid for once."""
    write(workspace, "a/chunk1.md", "Amber.\n")
    watching = watch("--json")
    first = watching.event()
    assert first["applied"]["untracked"] == first["embedded"] == first["generation"] == 1
    write(workspace, "b/deep/er/chunk1.md", "Basalt.\n")
    assert watching.until("untracked") == 1
    write(workspace, "a/chunk1.md", "Amber and copper.\n")
    assert watching.until("modified") == 1
    (workspace.chunked / "b").rename(workspace.folder / "away")
    watching.until("missing")
    (workspace.folder / "away").rename(workspace.chunked / "c")
    assert watching.until("untracked") == 0
    (workspace.chunked / "c/deep/er/chunk1.md").rename(workspace.chunked / "a/chunk2.md")
    assert watching.until("moved") == 0
    assert workspace.found("basalt") == ["a/chunk2.md"]
    assert watching.end() == 0
    assert json.loads(watching.lines[-1])["event"] == "stopped"
    workspace.assert_settled()


def test_the_tree_made_again(workspace: Any, watch: Callable[..., Watching]) -> None:
    """A truth folder that is removed and made again, or the whole store, is followed on."""
    write(workspace, "a/chunk1.md", "Amber.\n")
    watching = watch("--json")
    watching.until("untracked")
    shutil.rmtree(workspace.chunked)
    assert watching.event()["remaining"] == {"mass-missing": 1}
    write(workspace, "b/chunk1.md", "Amber and basalt.\n")
    watching.until("untracked")
    os.rename(workspace.store, workspace.folder / "copy")
    assert "no store" in watching.event("failed")["error"]
    shutil.copytree(workspace.folder / "copy", workspace.store)
    write(workspace, "c/chunk1.md", "Copper.\n")
    watching.until("untracked")
    assert watching.end() == 0


def test_settings_that_change(workspace: Any, watch: Callable[..., Watching]) -> None:
    """Settings are read again when they change; what fails meanwhile is said once, ends nothing."""
    settings = workspace.store / "filestore.toml"
    sound = settings.read_bytes()
    watching = watch("--json")
    watching.event()
    settings.write_text("[[[")
    assert "filestore.toml" in watching.event("failed")["error"]
    write(workspace, "a/chunk1.md", "Amber.\n")
    settings.write_bytes(sound + b"\n# more\n")
    watching.event("reopened")
    watching.until("untracked")
    assert sum('"failed"' in line for line in watching.lines) == 1
    shutil.rmtree(workspace.sidecar)
    workspace.sidecar.symlink_to(workspace.folder)
    settings.write_bytes(sound)
    assert "not safe" in watching.event("failed")["error"]
    workspace.sidecar.unlink()
    write(workspace, "a/chunk2.md", "Basalt.\n")
    watching.until("untracked", 2)
    assert watching.end() == 0
    workspace.assert_settled()


def test_a_name_that_is_not_text(workspace: Any, watch: Callable[..., Watching]) -> None:
    """A file whose name is not UTF-8 is followed as any other, and takes no watching away."""
    watching = watch("--json")
    watching.event()
    (workspace.chunked / os.fsdecode(b"caf\xe9.md")).write_text("Coffee.\n")
    watching.until("untracked")
    write(workspace, "a/chunk1.md", "Tea.\n")
    watching.until("untracked")
    assert watching.end() == 0
    assert not [line for line in watching.lines if '"blind"' in line]


def test_it_waits_for_others(workspace: Any, watch: Callable[..., Watching]) -> None:
    """While git or another command is writing it waits, says so, and then goes on."""
    watching = watch("--json")
    watching.event()
    lock = workspace.folder / ".git" / "index.lock"
    lock.touch()
    write(workspace, "a/chunk1.md", "Amber.\n")
    assert "index.lock" in watching.event("waiting")["for"]
    assert "untracked" in workspace.drift()
    lock.unlink()
    watching.until("untracked")
    lock.touch()
    os.utime(lock, (1, 1))  # a git that died long ago
    with writer_lock(str(workspace.sidecar / "lock"), command="a test"):
        write(workspace, "a/chunk2.md", "Basalt.\n")
        assert "a test" in watching.event("waiting")["for"]
    watching.until("untracked")
    os.utime(lock, (4_000_000_000, 4_000_000_000))  # and one whose clock was fast
    write(workspace, "a/chunk3.md", "Chalk.\n")
    watching.until("untracked")
    assert watching.end() == 0


def test_words_and_interruption(workspace: Any, watch: Callable[..., Watching]) -> None:
    """A person reads one line for what was done, none for what needs nothing, and what was kept."""
    write(workspace, "a/chunk1.md", "Amber.\n")
    watching = watch("--no-embed")
    assert watching.line().startswith("indexed 1 new file")
    write(workspace, "a/chunk2.md", "")
    line = watching.line()
    assert "left for you: " in line
    assert "1 empty" in line
    assert watching.end(signal.SIGINT) == 130
    assert watching.lines[-1] == "stopped: what was done so far is kept"


def test_it_ends_where_sync_ends(
    workspace: Any, watch: Callable[..., Watching], tmp_path: Path
) -> None:
    """After anything at all has happened, the store is as one that is synced from nothing."""
    watching = watch("--json")
    watching.event()
    chance = random.Random(20)
    for _ in range(80):
        something(workspace.chunked, chance)
        time.sleep(chance.choice([0, 0, 0, 0.01, 0.1]))
    write(workspace, "last/chunk1.md", "The very last.\n")
    until_s = time.monotonic() + PATIENCE_S
    # Not for events: the last may be there before what it tells can be seen by another process.
    while (state := (workspace.found("very"), workspace.drift())) != (["last/chunk1.md"], {}):
        assert time.monotonic() < until_s, state
        time.sleep(0.05)
    assert watching.end() == 0
    workspace.assert_settled()
    fresh = tmp_path / "fresh"
    shutil.copytree(workspace.store, fresh, ignore=shutil.ignore_patterns(".sidecar", ".undo"))
    workspace("--store", fresh, "sync")
    for query in WORDS:
        for mode in ("keyword", "vector"):
            words = ["search", query, "-k", "100", "--mode", mode]
            watched = workspace.json(*words, code=None)["hits"]
            synced = workspace.json("--store", fresh, *words, code=None)["hits"]
            assert watched == synced


def something(chunked: Path, chance: random.Random) -> None:
    """One thing that happens to a tree: a file or a folder is written, changed, moved or goes."""
    files = [path for path in chunked.rglob("*.md") if path.is_file()]
    folders = [path for path in chunked.rglob("*") if path.is_dir()]
    words = " ".join(chance.choices(WORDS, k=4)) + ".\n"
    name = chance.choice(["a", "b", "a/c", "d é", "b/e/f"])
    new = chunked / name / f"chunk{chance.randint(1, 4)}.md"
    new.parent.mkdir(parents=True, exist_ok=True)
    action = chance.randint(0, 6)
    if action <= 2 or not files:
        temporary = new.with_suffix(".tmp")
        temporary.write_text(words)
        os.replace(temporary, new)
    elif action == 3:
        with chance.choice(files).open("a") as file:
            file.write(words)
    elif action == 4:
        os.replace(chance.choice(files), new)
    elif action == 5:
        chance.choice(files).unlink()
    else:
        target = chunked / f"moved{chance.randint(1, 3)}"
        if not target.exists():
            chance.choice([path for path in folders if path.parent == chunked]).rename(target)


def test_originals_are_followed(workspace: Any, watch: Callable[..., Watching]) -> None:
    """Saved, made, renamed: chunk files and index follow; what is gone stays, and is told."""
    workspace.write("wiki/Home.md", "# Home\n\nAmber.\n")
    workspace.write("wiki/Yard.md", "# Yard\n\nBasalt.\n")
    workspace("add", "wiki")
    workspace.write("wiki/Home.md", "# Home\n\nCopper.\n")
    watching = watch("--json")
    assert watching.event("updated")["updated"] == ["wiki"]
    assert workspace.found("copper") == ["wiki/Home.md/chunk1-home.md"]
    workspace.write("wiki/New.md", "# New\n\nDiorite.\n")
    assert watching.event("updated")["updated"] == ["wiki"]
    assert len(workspace.found("diorite")) == 1
    (workspace.folder / "wiki/Yard.md").rename(workspace.folder / "wiki/Garden.md")
    assert watching.event("updated")["updated"] == ["wiki"]
    workspace.write("wiki/Garden.md", "# Yard\n\nEmerald.\n")
    assert watching.event("updated")["updated"] == ["wiki"]
    assert workspace.found("emerald") == ["wiki/Yard.md/chunk2-yard.md"]
    before = workspace.truth()
    (workspace.folder / "wiki/Garden.md").unlink()
    while watching.event()["remaining"] != {"source-missing": 1}:
        pass
    assert workspace.truth() == before
    assert watching.end() == 0


def test_originals_come_anywhere(workspace: Any, watch: Callable[..., Watching]) -> None:
    """Below folders that had no document, beside children that are resources, out of rules."""
    (workspace.folder / "wiki/a/b").mkdir(parents=True)
    workspace.write("wiki/Home.md", "# Home\n\nAmber.\n")
    workspace.write("wiki/.filestoreignore", "draft.md\n")
    workspace.write("wiki/draft.md", "# Draft\n\nGranite.\n")
    workspace.write("shelf/one.md", "# One\n\nEmerald.\n")
    workspace("add", "wiki")
    workspace("add", "shelf", "--each")
    (workspace.folder / "shelf/in").mkdir()
    watching = watch("--json")
    watching.event()
    workspace.write("wiki/a/b/Deep.md", "# Deep\n\nBasalt.\n")
    assert watching.event("updated")["updated"] == ["wiki"]
    workspace.write("shelf/two.md", "# Two\n\nCopper.\n")
    assert watching.event("updated")["updated"] == ["two.md"]
    workspace.write("shelf/in/three.md", "# Three\n\nDiorite.\n")
    assert watching.event("updated")["updated"] == ["in"]
    workspace.write("wiki/.filestoreignore", "another.md\n")
    assert watching.event("updated")["updated"] == ["wiki"]
    assert len(workspace.found("granite")) == 1
    assert watching.end() == 0


def test_a_conflict_with_an_original_is_told_once(
    workspace: Any, watch: Callable[..., Watching]
) -> None:
    """The hand edit stays, the event names its file, and a person chooses."""
    workspace.write("memo.md", "# Memo\n\nAmber.\n")
    workspace("add", "memo.md")
    path = workspace.chunked / "memo.md/chunk1.md"
    path.write_text(path.read_text().replace("Amber", "My amber"))
    watching = watch("--json")
    watching.until("modified")
    workspace.write("memo.md", "# Memo\n\nTheir amber.\n")
    event = watching.event("updated")
    assert event["conflicts"] == ["chunked/memo.md/chunk1.md"]
    assert "ingest-conflict" in watching.event()["remaining"]
    assert "My amber." in path.read_text()
    write(workspace, "other.md", "Basalt.\n")
    watching.until("untracked")
    watching.end()
    assert [json.loads(line)["event"] for line in watching.lines].count("updated") == 1


def test_originals_that_are_not_followed(workspace: Any, watch: Callable[..., Watching]) -> None:
    """With `follow = false` no chunk file is written, and what changed is told."""
    workspace.write("memo.md", "# Memo\n\nAmber.\n")
    workspace("add", "memo.md")
    settings = workspace.store / "filestore.toml"
    settings.write_text("follow = false\n" + settings.read_text())
    workspace.write("memo.md", "# Memo\n\nBasalt.\n")
    before = workspace.truth()
    watching = watch("--json")
    assert watching.event()["remaining"] == {"source-modified": 1}
    assert workspace.truth() == before
    assert watching.end() == 0


def test_an_interruption_that_was_answered_leaves_the_exit_code(tmp_path: Path) -> None:
    """Python would die of the signal if it had arrived while a dataclass was being made."""
    answered = (
        "from filestore import cli\n"
        "def main():\n"
        "    try:\n"
        "        exec('raise KeyboardInterrupt')\n"
        "    except KeyboardInterrupt:\n"
        "        return 3\n"
        "cli.main = main\n"
    )
    (tmp_path / "sitecustomize.py").write_text(answered)
    ended = subprocess.run(
        [sys.executable, "-m", "filestore"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{CHECKOUT}"},
        check=False,
    )
    assert ended.returncode == 3

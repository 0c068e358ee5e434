"""The power goes while a command writes; a sample of what ``power_cuts.py`` does in full."""

import random
from pathlib import Path

import pytest

from tests.system.disk_model import PAGE, Model, Recording, crash_states, parse_calls
from tests.system.test_crashes import assert_survives, needs_strace

SCRIPT = Path(__file__).with_name("power_cuts.py")
COMMANDS = (
    "sync", "add", "undo", "first add", "rebuild", "notes", "init-in-place", "rebuild-in-place",
)  # fmt: skip
OLD, NEW = b"old", b"n" * (PAGE + 1)


@needs_strace
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("sample", [3, pytest.param(7, marks=pytest.mark.exhaustive)])
def test_cut_while_a_command_writes(command: str, sample: int) -> None:
    """Whatever the disk may then hold, no truth is lost, status is true, and sync repairs."""
    limits = ("--step", "12", "--states", "12", "--sample", f"{sample}")
    assert_survives("--only", command, *limits, script=SCRIPT)


# The disk itself: what it may hold after calls that are written down here


def left(folder: Path, model: Model, *lines: str) -> list[dict[str, bytes]]:
    """What may be left of a folder with a file `a` after some calls."""
    (folder / "a").write_bytes(OLD)
    recording = Recording(str(folder))
    recording.follow(parse_calls(f"1 {line}" for line in lines))
    states = crash_states(recording, model, recording.end, random.Random(1), 400)
    trees = [recording.tree(state, recording.end) for state in states]
    return [{path.decode(): data for path, (_, data) in tree.items()} for tree in trees]


def written(folder: Path, *, synced: bool) -> list[str]:
    """The calls that write a file `b`."""
    path, quoted = f"3<{folder}/b>", f'"{NEW.decode()}"'
    return [
        f'openat(AT_FDCWD<{folder}>, "b", O_WRONLY|O_CREAT|O_EXCL, 0600) = {path}',
        f"write({path}, {quoted}, {len(NEW)}) = {len(NEW)}",
        *([f"fsync({path}) = 0"] if synced else []),
    ]


def renamed(folder: Path) -> str:
    """The call that gives the file `b` the name of `a`."""
    return f'renameat(4<{folder}>, "b", 4<{folder}>, "a") = 0'


@pytest.mark.parametrize("model", ["journalled", "weak"])
def test_a_renamed_file_that_was_not_synced(tmp_path: Path, model: Model) -> None:
    """It may be whole, empty, torn between two pages, or zeros; or the old one is still there."""
    found = left(tmp_path, model, *written(tmp_path, synced=False), renamed(tmp_path))
    held = {state.get("a") for state in found}
    assert {OLD, NEW, b"", NEW[:PAGE] + b"\0", bytes(len(NEW))} <= held


@pytest.mark.parametrize("model", ["journalled", "weak"])
def test_a_renamed_file_that_was_synced(tmp_path: Path, model: Model) -> None:
    """It is the old one or the new one."""
    found = left(tmp_path, model, *written(tmp_path, synced=True), renamed(tmp_path))
    assert {state["a"] for state in found} == {OLD, NEW}


@pytest.mark.parametrize("model", ["journalled", "weak"])
def test_a_synced_folder(tmp_path: Path, model: Model) -> None:
    """The new name is there for good."""
    calls = (*written(tmp_path, synced=True), renamed(tmp_path), f"fsync(4<{tmp_path}>) = 0")
    assert left(tmp_path, model, *calls) == [{"a": NEW}]


@pytest.mark.parametrize(("model", "states"), [("journalled", [True]), ("weak", [False, True])])
def test_the_name_of_a_synced_file(tmp_path: Path, model: Model, states: list[bool]) -> None:
    """Only a journal makes it durable together with what the file holds."""
    found = left(tmp_path, model, *written(tmp_path, synced=True))
    assert sorted({"b" in state for state in found}) == states


@pytest.mark.parametrize("model", ["journalled", "weak"])
def test_a_write_that_came_after_the_sync_began(tmp_path: Path, model: Model) -> None:
    """A sync promises what was written before it was called."""
    path = f"3<{tmp_path}/a>"
    found = left(
        tmp_path,
        model,
        f'openat(AT_FDCWD<{tmp_path}>, "a", O_WRONLY) = {path}',
        f"fsync({path} <unfinished ...>",
        f'pwrite64({path}, "N", 1, 0) = 1',
        "<... fsync resumed>) = 0",
    )
    assert {state["a"] for state in found} == {OLD, b"Nld"}

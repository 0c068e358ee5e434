"""How often a command opens a file of the tree, lists a folder of it, and takes the lock."""

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.system.repair.test_repair import fill


@dataclass
class Accesses:
    """What was opened and listed below one folder, by path relative to it."""

    root: str
    opened: Counter[str] = field(default_factory=Counter)
    listed: Counter[str] = field(default_factory=Counter)
    locked: int = 0
    folders: dict[int, str] = field(default_factory=dict)
    """Handle to path of the folders that were opened."""

    def note_open(self, path: Any, flags: int, handle: int, dir_fd: int | None) -> None:
        start = os.getcwd() if dir_fd is None else self.folders.get(dir_fd, "")
        full = os.path.normpath(os.path.join(start, os.fsdecode(path)))
        if flags & os.O_DIRECTORY:
            self.folders[handle] = full
        elif full.startswith(self.root + os.sep):
            self.opened[os.path.relpath(full, self.root)] += 1
        elif full.endswith("/.sidecar/lock") and flags & os.O_RDWR:
            self.locked += 1

    def note_list(self, path: Any) -> None:
        full = self.folders.get(path, "") if isinstance(path, int) else os.path.abspath(path)
        if full.startswith(self.root + os.sep):
            self.listed[os.path.relpath(full, self.root)] += 1


@pytest.fixture
def counting(workspace: Any) -> Any:
    """Counts what one command opens and lists in the tree, in this process."""
    real_open, real_list, real_scan = os.open, os.listdir, os.scandir
    found = Accesses(root=os.fspath(workspace.chunked))

    def counted_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: Any = None) -> int:
        handle = real_open(path, flags, mode, dir_fd=dir_fd)
        found.note_open(path, flags, handle, dir_fd)
        return handle

    def counted_list(path: Any = ".") -> Any:
        found.note_list(path)
        return real_list(path)

    def counted_scan(path: Any = ".") -> Any:
        found.note_list(path)
        return real_scan(path)

    def counted(*words: str) -> Accesses:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "open", counted_open)
            patch.setattr(os, "listdir", counted_list)
            patch.setattr(os, "scandir", counted_scan)
            workspace(*words, code=None)
        return found

    return counted


@pytest.fixture
def drifted(workspace: Any) -> dict[str, str]:
    """A store with one file of each drift: word to path below `chunked/`."""
    edited, missing, rotten, moved, broken, same = fill(workspace, 6)
    target = moved.relative_to(workspace.chunked)
    workspace.write("file_index/chunked/linked.md", f"See [it]({target}) here.\n")
    workspace("sync")
    edited.write_bytes(edited.read_bytes() + b"Edited.\n")
    missing.unlink()
    workspace.rot(rotten, rotten.read_bytes()[:-2] + b"?\n")
    os.rename(moved, moved.with_name("moved.md"))
    broken.write_bytes(b"---\nbroken: [\n---\nText.\n")
    workspace.write("file_index/chunked/new.md", "A new one.\n")
    paths = {
        "edited": edited,
        "rotten": rotten,
        "moved": moved.with_name("moved.md"),
        "broken": broken,
        "same": same,
        "linked": workspace.chunked / "linked.md",
        "new": workspace.chunked / "new.md",
    }
    return {word: os.path.relpath(path, workspace.chunked) for word, path in paths.items()}


READ = {
    # What may be a file that moved is read to tell, and again to be followed or indexed.
    ("sync",): {"edited": 1, "broken": 1, "moved": 2, "new": 2, "same": 0, "rotten": 0},
    # One reading of everything before; what is rotten is read again to be told from a new edit.
    ("sync", "--full"): {"edited": 2, "broken": 2, "moved": 3, "new": 3, "same": 1, "rotten": 2},
    ("repair", "--plan"): {"edited": 1, "broken": 1, "moved": 1, "new": 1, "same": 0, "linked": 0},
    # Once more under the lock, and a moved one once more as it is followed.
    ("repair", "--yes"): {"edited": 2, "broken": 2, "moved": 3, "new": 2, "same": 0, "linked": 0},
    ("repair", "--plan", "--write-files"): {"edited": 1, "new": 1, "same": 0, "rotten": 0},
}


@pytest.mark.parametrize("words", READ, ids=" ".join)
def test_files_are_opened_no_more_than_needed(
    words: tuple[str, ...], drifted: dict[str, str], counting: Any
) -> None:
    """A file is read once by who looks, and once more by who writes; what is clean, by neither."""
    found = counting(*words)
    assert {word: found.opened[drifted[word]] for word in READ[words]} == READ[words]


WALKS = {
    ("sync",): 1,
    # Before the lock, and under it.
    ("sync", "--full"): 2,
    ("repair", "--plan"): 1,
    # For the plan, and to tell what remains.
    ("repair", "--yes"): 2,
    ("repair", "--yes", "--write-files", "--level", "full"): 2,
}


@pytest.mark.parametrize("words", WALKS, ids=" ".join)
def test_the_tree_is_walked_no_more_than_needed(
    words: tuple[str, ...], drifted: dict[str, str], counting: Any
) -> None:
    """One walk for whoever looks, and one for whoever acts on it."""
    found = counting(*words)
    folder = os.path.dirname(drifted["same"])
    assert found.listed[folder] == WALKS[words]


def test_a_repair_takes_the_lock_once(
    workspace: Any, drifted: dict[str, str], counting: Any
) -> None:
    """Files, sidecar and sources are repaired with no other writer in between."""
    workspace.write("notes/flint.md", "# flint\n\nAnother text.\n")
    found = counting("repair", "--yes", "--write-files", "--level", "full")
    assert found.locked == 1

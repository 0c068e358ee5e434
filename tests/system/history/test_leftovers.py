"""What a writer that died left is told by `status`, and gone with the next writer.

`interrupted_changes.py` kills real writers at every point; here each place has its turn.
"""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from filestore.config import user_config
from filestore.fs.disk import TEMPORARY_PREFIX

NAME = f"{TEMPORARY_PREFIX}0123456789abcdef"
PLACES = ["", "chunked", "chunked/note.md", "source", "source/deep/er", ".undo", ".undo/000001"]


@pytest.fixture
def noted(workspace: Any) -> Any:
    """A store with a note."""
    workspace.write("note.md", "Words of the note.\n")
    workspace("add", "note.md")
    return workspace


def left_in(workspace: Any, place: str) -> tuple[Path, str]:
    """A temporary file in a folder, and the path it is told by."""
    path: Path = workspace.store / place / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"Half a fi")
    return path, path.relative_to(workspace.store).as_posix()


@pytest.mark.parametrize("place", PLACES)
def test_a_temporary_file_is_told_and_collected(noted: Any, place: str) -> None:
    """Looking leaves it where it is, a sync says that it removed it."""
    path, shown = left_in(noted, place)
    assert noted.drift() == {"leftovers": [shown]}
    told = [one["path"] for one in noted.json("verify")["findings"] if one["code"] == "leftovers"]
    assert told == [shown]
    assert path.exists()
    applied = noted.sync()["applied"]
    assert [(one["code"], one["path"]) for one in applied] == [("leftovers", shown)]
    assert not path.exists()
    noted.assert_settled()


@pytest.mark.parametrize("words", [("rm", "note.md"), ("undo",), ("add", "note.md")])
def test_any_writer_collects(noted: Any, words: tuple[str, ...]) -> None:
    """It need not be a sync."""
    paths = [left_in(noted, place)[0] for place in ("", "source", ".undo/000001")]
    noted(*words)
    assert not any(path.exists() for path in paths)


def test_originals_without_a_record_are_collected(noted: Any) -> None:
    """A folder under `.undo/` whose record was never written holds nothing that can be undone."""
    folder = noted.store / ".undo" / "000007"
    folder.mkdir()
    (folder / "0.before").write_bytes(b"Words")
    (folder / "a person's own.txt").write_bytes(b"Words")
    assert noted.drift() == {"leftovers": [".undo/000007"]}
    noted.sync()
    assert [path.name for path in folder.iterdir()] == ["a person's own.txt"]
    noted.assert_settled()
    (folder / "a person's own.txt").unlink()
    noted.sync()
    assert not folder.exists()


def test_what_only_looks_like_it_stays(noted: Any) -> None:
    """Links, folders and names that are not ours stay, and no link is followed."""
    outside = noted.folder / "outside"
    outside.mkdir()
    (outside / NAME).write_bytes(b"Not the store's.")
    (noted.store / "source").mkdir()
    (noted.store / "source" / "linked").symlink_to(outside)
    (noted.store / "source" / NAME).symlink_to(outside / NAME)
    (noted.store / ".undo" / NAME).mkdir()
    (noted.store / f"{TEMPORARY_PREFIX}of-mine").write_bytes(b"Mine.")
    before = sorted(noted.folder.rglob("*"))
    assert noted.drift() == {}
    noted.sync()
    assert [path for path in before if ".sidecar" not in path.parts and not path.exists()] == []
    assert (outside / NAME).read_bytes() == b"Not the store's."


def test_old_ones_in_the_users_folder_go(tmp_path: Path) -> None:
    """Where no lock guards them, only those go whose writer cannot live any more."""
    folder = tmp_path / "filestore"
    folder.mkdir()
    old, fresh = folder / NAME, folder / f"{TEMPORARY_PREFIX}fedcba9876543210"
    for path in (old, fresh):
        path.write_bytes(b"{")
    two_days_ago_s = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago_s, two_days_ago_s))
    user_config.trust(str(tmp_path), "/a/store", "http://127.0.0.1:9/v1")
    assert (old.exists(), fresh.exists()) == (False, True)


@pytest.mark.parametrize("place", ["", "chunked", "source", ".undo"])
def test_a_repair_leaves_none(noted: Any, place: str) -> None:
    """Leftovers stand in nobody's way: a repair of everything goes through, and they are gone."""
    path, _ = left_in(noted, place)
    (noted.chunked / noted.chunks("note.md")[0]).unlink()
    noted("repair", "--write-files", "--yes")
    assert not path.exists()
    noted.assert_settled()

"""A folder replaced whole: what goes wrong leaves the old one, and nothing beside it."""

import os
from pathlib import Path

import pytest

from filestore.fs import staged as module
from filestore.fs.disk import WriteFailedError
from filestore.fs.staged import staged_folder

NAMES = ("one", "two")


def contents(folder):
    """What is in a folder, by name."""
    return {path.name: path.read_text() for path in folder.iterdir()}


def write(folder, text, names=NAMES):
    """Replace the folder by one of these files."""
    with staged_folder(str(folder), names=NAMES) as staging:
        for name in names:
            with open(os.path.join(staging, name), "w", encoding="utf-8") as file:
                file.write(text)


def fail(folder):
    """Write some of the files, and raise."""
    with staged_folder(str(folder), names=NAMES) as staging:
        with open(os.path.join(staging, "one"), "w", encoding="utf-8") as file:
            file.write("new")
        raise ZeroDivisionError


@pytest.fixture(params=["in one call", "in steps"])
def way(request, monkeypatch):
    """With and without a system that exchanges two names."""
    if request.param == "in steps":
        monkeypatch.setattr(module, "_exchanged", lambda one, other: False)


def test_the_new_files_take_the_place_of_the_old(way, tmp_path):
    """All of them; what was not written again is gone; the mode stays."""
    target = tmp_path / "index"
    write(target, "old")
    target.chmod(0o700)
    write(target, "new", names=["two"])
    assert contents(target) == {"two": "new"}
    assert target.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_another_file_of_the_folder_is_never_in_the_one_that_goes_alone(tmp_path, monkeypatch):
    """A program that ends right after the exchange leaves what it did not write."""
    target = tmp_path / "index"
    write(target, "old")
    (target / "own.txt").write_text("mine")

    def stop(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module.disk, "is_folder", lambda path: stop() if path != str(target) else 1)
    with pytest.raises(ZeroDivisionError):
        write(target, "new")
    assert contents(target) == {"one": "new", "two": "new", "own.txt": "mine"}
    module.collect_folders(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_failure_leaves_the_old_files(tmp_path):
    """Whatever was written of the new ones."""
    target = tmp_path / "index"
    write(target, "old")
    with pytest.raises(ZeroDivisionError):
        fail(target)
    assert contents(target) == {"one": "old", "two": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_full_disk_leaves_the_old_files(small_disk):
    """And says so."""
    target = small_disk / "index"
    write(target, "old")
    with pytest.raises(WriteFailedError, match="No space left"):
        write(target, "x" * 10_000_000)
    assert contents(target) == {"one": "old", "two": "old"}
    assert [path.name for path in small_disk.iterdir() if path.name != "lost+found"] == ["index"]


def test_two_writers_do_not_mix(tmp_path):
    """The folder has all files of the one that ended last."""
    target = tmp_path / "index"
    with staged_folder(str(target), names=NAMES) as staging:
        write(target, "second")
        with open(os.path.join(staging, "one"), "w", encoding="utf-8") as file:
            file.write("first")
    assert contents(target) == {"one": "first"}
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_file_of_another_name_is_never_deleted(way, tmp_path):
    """Even where one came after the caller had looked: it stays in the folder."""
    target = tmp_path / "index"
    write(target, "old")
    (target / "mine").write_text("a person's own")
    write(target, "new")
    assert contents(target) == {"one": "new", "two": "new", "mine": "a person's own"}
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def grow(root: Path, text: str) -> None:
    """A tree with a file in a folder in a folder."""
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_text(text)


def left(place: Path) -> list[str]:
    """What is in a folder."""
    return sorted(os.listdir(place))


def test_a_tree_takes_the_place_of_another(way: None, tmp_path: Path) -> None:
    """With nothing left of the old one, which has its name until then."""
    old = tmp_path / "name"
    grow(old, "old")
    (old / "more").write_text("")
    with module.staged_folder(str(old)) as staging:
        grow(Path(staging), "new")
        assert (old / "a" / "b" / "file").read_text() == "old"
    assert (old / "a" / "b" / "file").read_text() == "new"
    assert left(old) == ["a"]
    assert left(tmp_path) == ["name"]


def test_a_block_that_raises_leaves_what_was_there(tmp_path: Path) -> None:
    """And nothing besides, whether the tree or the exchange failed."""
    grow(tmp_path / "name", "old")
    with pytest.raises(ValueError, match="no"), module.staged_folder(str(tmp_path / "name")):
        raise ValueError("no")

    def refuse() -> None:
        raise ValueError("not now")

    with (
        pytest.raises(ValueError, match="not now"),
        module.staged_folder(str(tmp_path / "name"), swap=refuse) as staging,  # type: ignore[arg-type]
    ):
        grow(Path(staging), "new")
    assert (tmp_path / "name" / "a" / "b" / "file").read_text() == "old"
    assert left(tmp_path) == ["name"]


def test_a_tree_is_removed_with_all_that_is_below(tmp_path: Path) -> None:
    """But nothing that a link leads to."""
    grow(tmp_path / "name", "old")
    grow(tmp_path / "other", "kept")
    (tmp_path / "name" / "link").symlink_to(tmp_path / "other")
    module.remove_folder(str(tmp_path / "name"))
    assert left(tmp_path) == ["other"]
    assert left(tmp_path / "other") == ["a"]
    with pytest.raises(FileNotFoundError):
        module.remove_folder(str(tmp_path / "name"))


def test_what_a_killed_writer_left_is_collected(tmp_path: Path) -> None:
    """Not what another one is at; and what it had moved aside gets its name back."""
    grow(tmp_path / ".filestore-tmp-tree-0123", "half")
    grow(tmp_path / ".filestore-tmp-aside-name", "old")
    grow(tmp_path / ".mine", "kept")
    with module.staged_folder(str(tmp_path / "other")) as staging:
        module.collect_folders(str(tmp_path))
        assert left(tmp_path) == [".filestore-tmp-tree-" + staging[-16:], ".mine", "name"]
    assert left(tmp_path) == [".mine", "name", "other"]
    assert (tmp_path / "name" / "a" / "b" / "file").read_text() == "old"

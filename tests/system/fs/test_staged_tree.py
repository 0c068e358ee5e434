"""A tree that takes its name once it is whole, on a real disk."""

import os
from pathlib import Path

import pytest

from filestore.fs import staged_folder, staged_tree


def grow(root: Path, text: str) -> None:
    """A tree with a file in a folder in a folder."""
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_text(text)


def left(place: Path) -> list[str]:
    """What is in a folder."""
    return sorted(os.listdir(place))


@pytest.mark.parametrize("way", ["in one call", "in steps"])
def test_a_tree_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """With nothing left of the old one, which has its name until then."""
    if way == "in steps":
        # A system that cannot exchange two names.
        monkeypatch.setattr(staged_folder, "_exchanged", lambda one, other: False)
    old = tmp_path / "name"
    grow(old, "old")
    (old / "more").write_text("")
    with staged_tree.staged_tree(str(old)) as staging:
        grow(Path(staging), "new")
        assert (old / "a" / "b" / "file").read_text() == "old"
    assert (old / "a" / "b" / "file").read_text() == "new"
    assert left(old) == ["a"]
    assert left(tmp_path) == ["name"]


def test_a_block_that_raises_leaves_what_was_there(tmp_path: Path) -> None:
    """And nothing besides, whether the tree or the exchange failed."""
    grow(tmp_path / "name", "old")
    with pytest.raises(ValueError, match="no"), staged_tree.staged_tree(str(tmp_path / "name")):
        raise ValueError("no")

    def refuse() -> None:
        raise ValueError("not now")

    with (
        pytest.raises(ValueError, match="not now"),
        staged_tree.staged_tree(str(tmp_path / "name"), swap=refuse) as staging,  # type: ignore[arg-type]
    ):
        grow(Path(staging), "new")
    assert (tmp_path / "name" / "a" / "b" / "file").read_text() == "old"
    assert left(tmp_path) == ["name"]


def test_a_tree_is_removed_with_all_that_is_below(tmp_path: Path) -> None:
    """But nothing that a link leads to."""
    grow(tmp_path / "name", "old")
    grow(tmp_path / "other", "kept")
    (tmp_path / "name" / "link").symlink_to(tmp_path / "other")
    staged_tree.remove(str(tmp_path / "name"))
    assert left(tmp_path) == ["other"]
    assert left(tmp_path / "other") == ["a"]
    with pytest.raises(FileNotFoundError):
        staged_tree.remove(str(tmp_path / "name"))


def test_what_a_killed_writer_left_is_collected(tmp_path: Path) -> None:
    """Not what another one is at; and what it had moved aside gets its name back."""
    grow(tmp_path / ".filestore-tmp-tree-0123", "half")
    grow(tmp_path / ".filestore-tmp-aside-name", "old")
    grow(tmp_path / ".mine", "kept")
    with staged_tree.staged_tree(str(tmp_path / "other")) as staging:
        staged_tree.collect(str(tmp_path))
        assert left(tmp_path) == [".filestore-tmp-tree-" + staging[-16:], ".mine", "name"]
    assert left(tmp_path) == [".mine", "name", "other"]
    assert (tmp_path / "name" / "a" / "b" / "file").read_text() == "old"

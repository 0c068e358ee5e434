"""What is seen of a folder before it has a store is what a store in place then indexes."""

import os

import pytest

from filestore import FilestoreError, Store
from filestore.browse.folder import look_at_folder


def test_it_counts_what_is_then_indexed(tmp_path):
    """Documents by kind, most first; nothing hidden, ignored or of no known format."""
    for name in ("a.md", "b.md", "sub/c.md", "d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# Words\n\nof basalt\n")
    (tmp_path / ".gitignore").write_text("left.md\n")
    for name in ("left.md", ".hidden.md", "picture.png"):
        (tmp_path / name).write_text("x" * 1000)
    seen = look_at_folder(str(tmp_path))
    assert list(seen.kinds) == [("md", 3), ("txt", 1)]
    assert seen.size_bytes == 4 * len("# Words\n\nof basalt\n")
    assert seen.is_whole
    assert seen.words().startswith("4 documents (3 md, 1 txt; 0 kB): searchable in about 1 s, by")
    assert "meaning" not in seen.words(meaning=False)
    settings = str(tmp_path / "own")
    os.mkdir(settings)
    with Store.create(
        tmp_path, layout="in-place", embedder="builtin", configuration=settings
    ) as store:
        store.sync()
        assert len(store.resources()) == seen.documents


def test_more_takes_longer(tmp_path):
    """Both times grow with what is there, and meaning never comes before words."""
    times = []
    for number in range(3):
        (tmp_path / f"{number}.md").write_text("word " * 400_000)
        seen = look_at_folder(str(tmp_path))
        assert seen.searchable_s < seen.meaning_s
        times.append((seen.searchable_s, seen.meaning_s))
    assert times == sorted(set(times))


def test_a_folder_that_takes_too_long_is_shown_as_a_part(tmp_path):
    """What was not seen in time is not called all."""
    (tmp_path / "a.md").write_text("words")
    seen = look_at_folder(str(tmp_path), within_s=0)
    assert not seen.is_whole
    assert seen.words() == "no documents found so far"


def test_a_folder_that_is_gone_is_an_error(tmp_path):
    """With the folder's name."""
    with pytest.raises(FilestoreError, match="gone cannot be listed"):
        look_at_folder(str(tmp_path / "gone"))


def test_many_small_files_take_longer_than_one(tmp_path):
    """A file costs time, whatever is in it."""
    for number in range(2_000):
        (tmp_path / f"{number}.md").touch()
    assert look_at_folder(str(tmp_path)).searchable_s > 2

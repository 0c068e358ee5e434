"""What must hold of changes of truth files: all of them or none, and nobody's edit is lost."""

import errno
import os
import resource
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.config.layout import Places
from filestore.fs.disk import WriteFailedError
from filestore.fs.transaction import Replacement, Replacing, content
from filestore.history.backup_store import list_batches
from filestore.history.write import ChangedMeanwhile, NoTruthPathError, change
from tests.advice import advised, all_words

OLD = {"chunked/a.md/chunk1.md": b"One.\n", "chunked/a.md/chunk2.md": b"Two.\n"}


def places_at(root: Path) -> Places:
    """A store root without anything else."""
    (root / "chunked").mkdir(parents=True, exist_ok=True)
    return Places(root=str(root), sidecar=str(root / ".sidecar"))


def write(root: Path, files: dict[str, bytes]) -> None:
    """Put files there as somebody else would."""
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def everything(root: Path) -> dict[str, bytes | None]:
    """Every file and folder below the root but the originals, staged ones too; None is a folder."""
    return {
        path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
        if ".undo" not in path.parts
    }


def test_changes_adds_and_removes_at_once(tmp_path):
    """Files in several folders, new ones too, hold what was wanted, and nothing else is there."""
    places = places_at(tmp_path)
    write(tmp_path, OLD)
    made = change(
        places,
        {
            "chunked/a.md/chunk1.md": b"Changed.\n",
            "chunked/a.md/chunk2.md": None,
            "chunked/b/c/chunk1.md": b"New.\n",
            "source/a.md": b"Source.\n",
        },
        before=OLD,
        command="test",
    )
    found = {path: data for path, data in everything(tmp_path).items() if data is not None}
    assert found == {
        "chunked/a.md/chunk1.md": b"Changed.\n",
        "chunked/b/c/chunk1.md": b"New.\n",
        "source/a.md": b"Source.\n",
    }
    (batch,) = list_batches(places.undo)
    assert (batch.identifier, batch.what, batch.underway) == (made, "test", False)


def test_nothing_to_change_keeps_nothing(tmp_path):
    """Where every file holds what is wanted there is no batch."""
    places = places_at(tmp_path)
    write(tmp_path, OLD)
    assert change(places, dict(OLD), before=OLD, command="test") is None
    assert change(places, {"chunked/x.md": None}, before={}, command="test") is None
    assert not os.path.exists(places.undo)


def test_folders_left_empty_go(tmp_path):
    """Where the last file of a folder goes, so does the folder; the store's own stay."""
    places = places_at(tmp_path)
    files = {"chunked/a/b/chunk1.md": b"x", "source/a/b.md": b"y", "source/c/keep": b"z"}
    write(tmp_path, files)
    gone = dict.fromkeys(list(files)[:2])
    change(places, gone, before=files, command="test")
    assert everything(tmp_path) == {
        "chunked": None,
        "source": None,
        "source/c": None,
        "source/c/keep": b"z",
    }


@pytest.mark.parametrize(
    ("found", "expected"),
    [(b"Edited.\n", b"One.\n"), (b"Edited.\n", None), (None, b"One.\n")],
)
def test_a_file_that_moved_on_refuses_all(tmp_path, found, expected):
    """Where one file was edited, appeared or went, no file is touched, and it is named."""
    places = places_at(tmp_path)
    write(tmp_path, {"chunked/b.md": b"b"} | ({"chunked/a.md": found} if found else {}))
    before = everything(tmp_path)
    with pytest.raises(ChangedMeanwhile) as caught:
        change(
            places,
            {"chunked/b.md": b"new b", "chunked/c.md": b"new c", "chunked/a.md": b"new a"},
            before={"chunked/a.md": expected, "chunked/b.md": b"b"},
            command="test",
        )
    assert caught.value.exit_code == 4
    assert caught.value.paths == ("chunked/a.md",)
    assert "chunked/a.md" in caught.value.message
    assert everything(tmp_path) == before
    assert list_batches(places.undo) == []


@pytest.mark.parametrize("how", ["same size", "removed", "appeared", "chmod"])
def test_an_edit_between_check_and_rename_is_kept(tmp_path, how):
    """An editor that saves after the files were checked is noticed, and nothing is overwritten."""
    places_at(tmp_path)
    write(tmp_path, OLD)
    replacements = [
        Replacement(path="chunked/new.md", before=None, after=content(b"n")),
        Replacement(path="chunked/a.md/chunk1.md", before=content(b"One.\n"), after=content(b"1")),
    ]
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        with Replacing(root, replacements) as swap:
            swap.check()
            swap.stage()
            target = tmp_path / "chunked/a.md/chunk1.md"
            if how == "same size":
                status = target.stat()
                target.write_bytes(b"Own.\n")
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
            elif how == "removed":
                target.unlink()
            elif how == "appeared":
                (tmp_path / "chunked/new.md").write_bytes(b"mine")
            else:
                target.chmod(0o600)
            before = {
                path: data for path, data in everything(tmp_path).items() if "tmp-" not in path
            }
            with pytest.raises(ChangedMeanwhile):
                swap.apply()
            assert not swap.touched
    finally:
        os.close(root)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("path", ["chunked/a.md", "chunked/folder/a.md"])
def test_a_link_is_never_followed(tmp_path, path):
    """A link in place of a file or of its folder is refused, and what it leads to stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_bytes(b"not ours")
    root = tmp_path / "store"
    places = places_at(root)
    link = root / path if path.count("/") == 1 else (root / path).parent
    link.symlink_to(outside / "a.md" if path.count("/") == 1 else outside)
    for before, after in ((b"not ours", b"new"), (None, b"new"), (b"not ours", None)):
        with pytest.raises(ChangedMeanwhile) as caught:
            change(places, {path: after}, before={path: before}, command="test")
        assert "symbolic link" in caught.value.message
    assert everything(outside) == {"a.md": b"not ours"}
    assert link.is_symlink()


def test_a_folder_that_is_swapped_for_a_link_is_refused(tmp_path):
    """Where a folder becomes a link after the files were staged in it, nothing lands elsewhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    root_path = tmp_path / "store"
    places_at(root_path)
    write(root_path, OLD)
    old = content(OLD["chunked/a.md/chunk1.md"])
    one = Replacement(path="chunked/a.md/chunk1.md", before=old, after=content(b"new"))
    root = os.open(root_path, os.O_RDONLY)
    try:
        with Replacing(root, [one]) as swap:
            swap.check()
            swap.stage()
            (root_path / "chunked/a.md").rename(root_path / "chunked/aside")
            (root_path / "chunked/a.md").symlink_to(outside)
            with pytest.raises(ChangedMeanwhile):
                swap.apply()
    finally:
        os.close(root)
    assert list(outside.iterdir()) == []
    assert (root_path / "chunked/aside/chunk1.md").read_bytes() == b"One.\n"


@pytest.mark.parametrize(
    "path", ["filestore.toml", "../x.md", "chunked/../../x.md", "/tmp/x.md", ".git/config"]
)
def test_only_truth_files_are_written(tmp_path, path):
    """A path that leads elsewhere is refused before anything is looked at."""
    places = places_at(tmp_path / "store")
    with pytest.raises(NoTruthPathError):
        change(places, {"chunked/a.md": b"x", path: b"x"}, before={}, command="test")
    assert everything(tmp_path / "store") == {"chunked": None}


def test_permissions_stay(tmp_path):
    """A changed file keeps its permissions; a new one has those that the mask gives."""
    places = places_at(tmp_path)
    write(tmp_path, OLD)
    (tmp_path / "chunked/a.md/chunk1.md").chmod(0o640)
    new = {"chunked/a.md/chunk1.md": b"1", "chunked/b.md": b"2"}
    (tmp_path / "other").write_bytes(b"")
    change(places, new, before=OLD, command="test")
    assert stat.S_IMODE((tmp_path / "chunked/a.md/chunk1.md").stat().st_mode) == 0o640
    assert (tmp_path / "chunked/b.md").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_another_hard_link_keeps_what_it_had(tmp_path):
    """A change does not reach through a hard link into a file that lies elsewhere."""
    places = places_at(tmp_path / "store")
    write(tmp_path / "store", OLD)
    os.link(tmp_path / "store/chunked/a.md/chunk1.md", tmp_path / "other")
    change(places, {"chunked/a.md/chunk1.md": b"new"}, before=OLD, command="test")
    assert (tmp_path / "other").read_bytes() == b"One.\n"


def test_what_a_dead_writer_staged_below_source_goes(tmp_path):
    """Staged copies of originals, which no walk of the tree sees, are taken away by the next."""
    places = places_at(tmp_path)
    write(tmp_path, {"source/.filestore-tmp-0123456789abcdef": b"half"})
    change(places, {"source/a.md": b"x"}, before={}, command="test")
    assert os.listdir(tmp_path / "source") == ["a.md"]


def test_a_full_disk_leaves_everything(small_disk):
    """Where there is no room for the new files nothing changed, and it is said."""
    places = places_at(small_disk)
    write(small_disk, OLD)
    before = everything(small_disk)
    big = {f"chunked/new/chunk{number}.md": bytes(100_000) for number in range(20)}
    with pytest.raises(WriteFailedError) as caught:
        change(places, {"chunked/a.md/chunk1.md": b"new", **big}, before=OLD, command="test")
    assert os.strerror(errno.ENOSPC) in caught.value.message
    assert "space" in all_words(caught.value)
    assert everything(small_disk) == before
    assert list_batches(places.undo) == []


def test_a_limit_of_file_sizes_leaves_everything(tmp_path):
    """Where the system cuts writes off nothing changed, whichever file it was that failed."""
    places = places_at(tmp_path)
    write(tmp_path, OLD)
    before = everything(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(WriteFailedError) as caught:
            change(
                places,
                {"chunked/a.md/chunk1.md": b"new", "chunked/b.md": bytes(60_000)},
                before=OLD,
                command="test",
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "chunked/b.md" in caught.value.message
    assert everything(tmp_path) == before


PATHS = st.sampled_from(
    [
        f"{top}/{folder}{name}"
        for top in ("chunked", "source")
        for folder in ("", "x/", "x/y/")
        for name in ("a.md", "é.md", "n\udcff.md", "b")
    ]
)
TREES = st.dictionaries(PATHS, st.binary(max_size=30), max_size=6)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=TREES, new=TREES, last=st.lists(PATHS, max_size=2))
def test_any_tree_becomes_any_other(tmp_path, old, new, last):
    """From any files to any others, in any order, exactly the wanted files are there."""
    root = tmp_path / os.urandom(8).hex()
    places = places_at(root)
    write(root, old)
    changes = {path: new.get(path) for path in old.keys() | new.keys()}
    made = change(places, changes, before=old, command="test", last=last)
    assert (made is None) == (old == new)
    found = {
        os.fsdecode(os.fsencode(path.relative_to(root))): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".undo" not in path.parts
    }
    assert found == new


def test_a_file_where_a_folder_should_be_is_told(tmp_path):
    """A file in the way of a new folder is an error with advice, and stays."""
    places = places_at(tmp_path)
    write(tmp_path, {"chunked/a": b"mine"})
    with pytest.raises(ChangedMeanwhile, match="in place of a folder") as caught:
        change(places, {"chunked/a/b.md": b"new"}, before={}, command="test")
    assert advised(caught.value)
    assert everything(tmp_path) == {"chunked": None, "chunked/a": b"mine"}

"""What must hold of reading and writing files: whole or not at all, and nothing followed."""

import errno
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.hashing import content_hash
from filestore.fs import disk
from filestore.fs.disk import file_hash
from tests.advice import advised, all_words

FULL_DISK = """
import json, os, resource, signal, sys
from filestore.fs import disk as fileio
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
handle = os.open(".", os.O_RDONLY)
try:
    fileio.write_at(handle, "b.md", b"b" * 200_000)
except fileio.WriteFailedError as error:
    json.dump({"message": error.message, "remedy": error.remedy}, sys.stdout)
"""


@pytest.fixture
def handle(tmp_path):
    """An open folder."""
    opened = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield opened
    os.close(opened)


def contents(folder):
    """Name to bytes of all files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Writing


def test_files_are_written_whole_and_nothing_is_left_beside_them(tmp_path, handle):
    """New and replaced files hold their bytes, and no temporary file remains."""
    (tmp_path / "old.md").write_bytes(b"old")
    files = {"old.md": b"new", "new.md": b"\0\xff" * 70_000, "empty.md": b""}
    for name, data in files.items():
        disk.write_at(handle, name, data)
    assert contents(tmp_path) == files


def test_a_write_that_fails_in_the_middle_changes_nothing(tmp_path, script):
    """Where the disk refuses a file, it is as before and nothing is left over."""
    before = {"a.md": b"old a", "b.md": b"old b"}
    for name, data in before.items():
        (tmp_path / name).write_bytes(data)
    done = script(FULL_DISK)
    assert done.code == 0, done.stderr
    told = json.loads(done.stdout)
    assert contents(tmp_path) == before
    assert "b.md" in told["message"]
    assert told["remedy"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_replaced_file_keeps_its_mode(tmp_path, handle, mode):
    """A private file does not become public by being rewritten."""
    (tmp_path / "a.md").write_bytes(b"old")
    (tmp_path / "a.md").chmod(mode)
    disk.write_at(handle, "a.md", b"new")
    assert stat.S_IMODE((tmp_path / "a.md").stat().st_mode) == mode


def test_a_new_file_has_the_mode_the_user_wants(tmp_path, handle):
    """A new file follows the umask, as one written by an editor would."""
    (tmp_path / "like.md").write_bytes(b"")
    disk.write_at(handle, "new.md", b"")
    modes = {(tmp_path / name).stat().st_mode for name in ("like.md", "new.md")}
    assert len(modes) == 1


def test_writing_replaces_a_link_and_not_what_it_leads_to(tmp_path, handle):
    """A link put in the place of a file cannot make us write elsewhere."""
    (tmp_path / "outside").write_bytes(b"precious")
    os.symlink("outside", tmp_path / "a.md")
    disk.write_at(handle, "a.md", b"new")
    assert contents(tmp_path) == {"outside": b"precious", "a.md": b"new"}
    assert not (tmp_path / "a.md").is_symlink()


def test_readers_see_the_old_or_the_new_file_whole(tmp_path, handle):
    """Who opened a file before it was replaced goes on reading the old one."""
    (tmp_path / "a.md").write_bytes(b"old")
    with open(tmp_path / "a.md", "rb") as file:
        disk.write_at(handle, "a.md", b"newer")
        assert file.read() == b"old"
    assert (tmp_path / "a.md").read_bytes() == b"newer"


def test_a_folder_in_the_way_is_told_and_nothing_is_left(tmp_path, handle):
    """A file cannot replace a folder."""
    (tmp_path / "a.md").mkdir()
    with pytest.raises(disk.WriteFailedError, match=r"a\.md") as caught:
        disk.write_at(handle, "a.md", b"new")
    assert advised(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "space"),
        (errno.EDQUOT, "space"),
        (errno.EROFS, "writable"),
        (errno.EACCES, "writable"),
        (errno.EIO, "disk"),
    ],
)
def test_a_refused_write_says_what_to_do(number, advice):
    """The advice fits the reason."""
    error = disk.write_failed("a.md", OSError(number, os.strerror(number)))
    assert os.strerror(number) in error.message
    assert "a.md" in error.message
    assert advice in all_words(error)


@given(data=st.binary(max_size=300))
def test_what_is_written_is_read(data, tmp_path_factory):
    """Reading is the inverse of writing, and the stat belongs to the bytes."""
    folder = tmp_path_factory.mktemp("round")
    disk.write_path(str(folder / "a"), data)
    handle = os.open(folder, os.O_RDONLY)
    try:
        read, status = disk.read_at(handle, "a")
    finally:
        os.close(handle)
    assert read == data
    assert disk.stat_values(status) == disk.stat_values(os.stat(folder / "a"))
    assert file_hash(str(folder / "a")) == content_hash(data)


# Reading


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path, handle):
    """A named pipe in the tree hangs nothing."""
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(disk.NotAFileError, match=r"pipe\.md"):
        disk.read_at(handle, "pipe.md")


def test_a_folder_is_not_read_as_a_file(tmp_path, handle):
    """A folder named like a chunk file is refused."""
    (tmp_path / "a.md").mkdir()
    with pytest.raises(disk.NotAFileError):
        disk.read_at(handle, "a.md")


def test_a_link_is_not_read(tmp_path, handle):
    """A link is refused even where it leads to an ordinary file beside it."""
    (tmp_path / "a.md").write_bytes(b"text")
    os.symlink("a.md", tmp_path / "link.md")
    with pytest.raises(OSError, match=r"\[Errno") as caught:
        disk.read_at(handle, "link.md")
    assert caught.value.errno == errno.ELOOP


def test_no_more_is_read_than_asked_for(tmp_path, handle):
    """A limit bounds what comes into memory."""
    (tmp_path / "a.md").write_bytes(b"0123456789")
    assert disk.read_at(handle, "a.md", limit=4)[0] == b"0123"
    assert disk.read_at(handle, "a.md", limit=99)[0] == b"0123456789"


def test_files_that_tell_no_size_are_read_whole():
    """A file of the kernel says that it has no bytes and is read without an error."""
    if not os.path.exists("/proc/self"):
        pytest.skip("no /proc here")
    handle = os.open("/proc/self", os.O_RDONLY)
    try:
        disk.read_at(handle, "status")
    finally:
        os.close(handle)


@pytest.mark.parametrize("path", ["link/secret.md", "a/../../outside/secret.md", "../outside/x"])
def test_no_path_leads_out_of_its_root(tmp_path, path):
    """Links and dots in a path are refused, wherever they would lead."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_bytes(b"secret")
    (tmp_path / "root" / "a").mkdir(parents=True)
    os.symlink("../outside", tmp_path / "root" / "link")
    root = os.open(tmp_path / "root", os.O_RDONLY)
    try:
        with pytest.raises(OSError, match=r"Errno"):
            disk.read_below(root, path)
    finally:
        os.close(root)


# The clock


def test_the_clock_reads_what_files_are_stamped_with(tmp_path):
    """A file written between two readings has a stamp between them."""
    clock = disk.FileSystemClock(str(tmp_path / "clock"))
    before = clock.now_ns()
    (tmp_path / "a.md").write_bytes(b"text")
    after = clock.now_ns()
    assert before <= (tmp_path / "a.md").stat().st_mtime_ns <= after


def test_waiting_past_a_stamp_makes_the_next_write_tell(tmp_path):
    """A file written after the wait has another stamp than one written before."""
    clock = disk.FileSystemClock(str(tmp_path / "clock"))
    (tmp_path / "a.md").write_bytes(b"one")
    stamp_ns = (tmp_path / "a.md").stat().st_mtime_ns
    assert clock.wait_past(stamp_ns) > stamp_ns
    (tmp_path / "a.md").write_bytes(b"two")
    assert (tmp_path / "a.md").stat().st_mtime_ns > stamp_ns


def test_a_stamp_in_the_future_is_not_waited_for(tmp_path):
    """A file from a wrong clock does not hang anyone; the reading says that it is not past."""
    clock = disk.FileSystemClock(str(tmp_path / "clock"))
    future_ns = clock.now_ns() + 3600 * 10**9
    assert clock.wait_past(future_ns) < future_ns


def test_a_clock_that_cannot_be_read_is_told(tmp_path):
    """Without a place for its probe the clock is an error with advice."""
    clock = disk.FileSystemClock(str(tmp_path / "none" / "clock"))
    with pytest.raises(disk.WriteFailedError) as caught:
        clock.now_ns()
    assert advised(caught.value)


def test_a_handle_is_closed_once_however_closing_ends(handle, tmp_path):
    """An interrupt as a folder is closed does not close what was opened under its number since."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "mine.md").write_text("mine")
    others = []

    def interrupt(_frame, event, function):
        if event == "c_return" and function is os.close and not others:
            others.append(os.open(tmp_path / "mine.md", os.O_RDONLY))
            raise KeyboardInterrupt

    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            disk.open_folder(handle, "a/b")
    finally:
        sys.setprofile(None)
    assert os.read(others[0], 10) == b"mine"
    os.close(others[0])


def test_folders_that_are_made_are_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder around each new one is synced once all are there; one that is there costs none."""
    synced: list[str] = []
    monkeypatch.setattr(disk, "sync_path", synced.append)
    disk.make_folders(str(tmp_path / "a" / "b" / "c"))
    assert synced == [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    assert (tmp_path / "a" / "b" / "c").is_dir()
    disk.make_folders(str(tmp_path / "a" / "b"))
    assert len(synced) == 3


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file in its place, or in that of one around it, is an error as ever."""
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="file"):
            disk.make_folders(str(path))

"""What must hold of the writer's lock: one at a time, named, and gone with its holder."""

import os
import signal
import subprocess
import sys

import pytest

import filestore
from filestore.core.errors import FilestoreError
from filestore.fs import lock as module
from filestore.fs.lock import LockedError, held, holder, writer_lock
from tests.advice import advised

HOLD = """
import sys
from filestore.fs.lock import writer_lock
with writer_lock(sys.argv[1], command="add report.md"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path):
    """The path of a lock file that is not there yet."""
    return str(tmp_path / "lock")


@pytest.fixture
def other(lock):
    """Another process that holds the lock; it lets go when its stdin ends."""
    checkout = os.path.dirname(os.path.dirname(filestore.__file__))
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, lock],
        env={**os.environ, "PYTHONPATH": checkout},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_writer_is_refused_and_told_who_holds(lock, other):
    """The message names what the holder does and its process, and the remedy what to do."""
    with (
        pytest.raises(LockedError, match=r"add report\.md") as caught,
        writer_lock(lock, command="sync", wait_s=0),
    ):
        pytest.fail("two writers")
    assert str(other.pid) in caught.value.message
    assert advised(caught.value)
    assert caught.value.exit_code == 3


def test_a_second_writer_gets_the_lock_when_the_first_ends(lock, other):
    """Waiting pays: the lock is handed over without an error."""
    assert held(lock)
    other.stdin.close()
    with writer_lock(lock, command="sync", wait_s=60):
        assert "sync" in holder(lock)
    assert not held(lock)


def test_a_killed_holder_leaves_no_lock(lock, other):
    """After a kill -9 nothing needs to be cleaned up by hand."""
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert not held(lock)
    with writer_lock(lock, command="sync", wait_s=0):
        assert str(os.getpid()) in holder(lock)


def test_the_lock_file_is_never_removed(lock):
    """Removing it would let two writers hold two files of one name, so it stays the same file."""
    inodes = set()
    for command in ("add", "sync", "a much longer command than the ones before", "rm"):
        with writer_lock(lock, command=command):
            inodes.add(os.stat(lock).st_ino)
            assert repr(command) in holder(lock)
        inodes.add(os.stat(lock).st_ino)
    assert len(inodes) == 1


def test_the_lock_is_let_go_when_the_work_fails(lock):
    """An error inside leaves the store to the next writer."""
    with pytest.raises(FilestoreError, match="failed"), writer_lock(lock, command="add"):
        raise FilestoreError("failed")
    assert not held(lock)


def test_one_process_cannot_hold_it_twice(lock):
    """The lock holds within a process too."""
    with (
        writer_lock(lock, command="add"),
        pytest.raises(LockedError),
        writer_lock(lock, command="sync", wait_s=0),
    ):
        pytest.fail("two writers")


def test_asking_takes_nothing(lock):
    """Whether it is held can be asked while it is not there, free and held."""
    assert not held(lock)
    assert not os.path.exists(lock)
    with writer_lock(lock, command="add"):
        assert held(lock)
        assert held(lock)
    assert not held(lock)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b'{"pid": 1}', b"\xff"])
def test_an_unsigned_lock_has_an_unknown_holder(lock, data):
    """A lock file that says nothing sensible still makes a sentence."""
    with open(lock, "wb") as file:
        file.write(data)
    assert holder(lock) == "an unknown process"
    with writer_lock(lock, command="add", wait_s=0):
        assert "'add'" in holder(lock)


def test_a_link_in_place_of_the_lock_is_not_followed(lock, tmp_path):
    """A link put there cannot make us write into another file."""
    (tmp_path / "precious").write_bytes(b"mine")
    os.symlink("precious", lock)
    with pytest.raises(OSError, match="symbolic link"), writer_lock(lock, command="add", wait_s=0):
        pytest.fail("it was followed")
    assert (tmp_path / "precious").read_bytes() == b"mine"


def test_the_lock_file_is_the_users_own(lock):
    """Nobody else can read who holds it, or hold it."""
    with writer_lock(lock, command="add"):
        assert os.stat(lock).st_mode & 0o777 == 0o600


def test_a_holder_that_has_just_got_the_lock_is_named(lock, other, monkeypatch):
    """Its name is written right after it has the lock: whoever waits asks once more."""
    names = iter(["an unknown process"])
    asked = []
    monkeypatch.setattr(module, "holder", lambda path: next(names, None) or holder(path))
    waiting = writer_lock(lock, command="sync", wait_s=1.3, on_wait=asked.append)
    with pytest.raises(LockedError), waiting:
        pass
    assert len(asked) == 1
    assert asked[0].startswith("'add report.md', process ")

"""A large file takes its name once it is whole, and what a dead writer left is used again."""

import os
import stat
from pathlib import Path

import pytest

from filestore.core.errors import FilestoreError
from filestore.fs.disk import NotAFileError, WriteFailedError
from filestore.fs.staged import AlreadyWrittenError, staged_file


def temporary_of(path: Path) -> Path:
    """The file beside it in which it is written."""
    with staged_file(str(path)):
        (found,) = [one for one in path.parent.iterdir() if one.name.startswith(".filestore-tmp-")]
    path.unlink()
    return found


def write(path: Path, data: bytes) -> None:
    """Put some bytes in its place."""
    with staged_file(str(path)) as descriptor:
        os.write(descriptor, data)


def fail(path: Path, error: BaseException) -> None:
    """Write half of it, and raise."""
    with staged_file(str(path)) as descriptor:
        os.write(descriptor, b"half")
        raise error


def test_it_is_there_when_it_is_whole(tmp_path: Path) -> None:
    """Until the block ends the earlier file is there; then the new one, with the mode it had."""
    path = tmp_path / "large"
    path.write_bytes(b"before")
    path.chmod(0o640)
    with staged_file(str(path)) as descriptor:
        os.write(descriptor, b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["large"]


def test_a_block_that_fails_leaves_what_was(tmp_path: Path) -> None:
    """Whatever is raised: the earlier file stays, and nothing is left beside it."""
    path = tmp_path / "large"
    path.write_bytes(b"before")
    for error in (ValueError("no"), KeyboardInterrupt(), FilestoreError("no")):
        with pytest.raises(type(error)):
            fail(path, error)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["large"]


def test_two_writers_of_one_name_do_not_meet(tmp_path: Path) -> None:
    """The second is refused as long as the first is at it, and no longer."""
    path = tmp_path / "large"
    with staged_file(str(path)) as descriptor:
        os.write(descriptor, b"first")
        with pytest.raises(AlreadyWrittenError, match="another process is writing"):
            write(path, b"second")
        write(tmp_path / "other", b"another name")
    assert path.read_bytes() == b"first"
    write(path, b"second")
    assert path.read_bytes() == b"second"


def test_what_a_dead_writer_left_is_used_again(tmp_path: Path) -> None:
    """Longer than what comes now, and never to be mixed with it."""
    path = tmp_path / "large"
    temporary_of(path).write_bytes(b"half of something long")
    write(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["large"]


def test_nothing_is_written_through_what_stands_in_the_way(tmp_path: Path) -> None:
    """A link or a pipe under the temporary name leads nowhere, and is not waited for."""
    path, victim = tmp_path / "large", tmp_path / "victim"
    victim.write_bytes(b"mine")
    temporary = temporary_of(path)
    for plant in (lambda: temporary.symlink_to(victim), lambda: os.mkfifo(temporary)):
        plant()
        with pytest.raises(NotAFileError):
            write(path, b"new")
        temporary.unlink()
    assert victim.read_bytes() == b"mine"
    assert not path.exists()


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A folder that is not there, a name that is too long, a folder in the file's place."""
    (tmp_path / "folder").mkdir()
    for name in ("nowhere/large", "n" * 300, "folder"):
        with pytest.raises(WriteFailedError, match="cannot write"):
            write(tmp_path / name, b"new")
    assert os.listdir(tmp_path) == ["folder"]

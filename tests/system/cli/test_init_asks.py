"""`filestore init` looks at the folder and asks on a terminal; elsewhere it makes a chunk store."""

import os
import pty
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filestore.cli import setup
from filestore.core.errors import RefusedError
from filestore.fs.disk import WriteFailedError
from filestore.sidecar import create

Run = Callable[..., Any]
FILESTORE = [sys.executable, "-m", "filestore", "init", "--embedder", "builtin"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A document with a heading, and nothing else."""
    place = tmp_path / "my notes"
    place.mkdir()
    (place / "lease.md").write_text("# Lease of the cellar\n\nThe rent is paid monthly.\n")
    (place / "bins.md").write_text("# Bins\n\nThey go out on Tuesday.\n")
    # The newest document gives the query, on a clock of any resolution.
    os.utime(place / "bins.md", (1, 1))
    return place


def answered(folder: Path, keys: bytes) -> tuple[int, str]:
    """Type an answer to the question; returns the exit code and what was on the screen."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.execv(FILESTORE[0], FILESTORE)
    seen = b""
    try:
        while b"which? [1] " not in seen:
            seen += os.read(terminal, 1000)
        os.write(terminal, keys)
        while part := os.read(terminal, 1000):
            seen += part
    except OSError:
        # Nobody has the other end any more.
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen.decode()


@pytest.mark.parametrize("keys", [b"\n", b"1\n"])
def test_enter_indexes_where_it_lies(run: Run, folder: Path, keys: bytes) -> None:
    """The look stands above the question, and the query that is named finds its document first."""
    code, seen = answered(folder, keys)
    assert code == 0
    assert "2 documents (2 md; 0 kB): searchable in about 1 s, by meaning in" in seen
    assert sorted(os.listdir(folder)) == [".filestore", "bins.md", "filestore.toml", "lease.md"]
    command = seen.rpartition("next: ")[2].strip()
    assert command == "filestore search 'Lease of the cellar'"
    assert run(*shlex.split(command)[1:], cwd=folder).stdout.startswith("lease.md")


def test_two_makes_a_chunk_store(folder: Path) -> None:
    """In a folder of its own."""
    code, _ = answered(folder, b"2\n")
    assert code == 0
    assert sorted(os.listdir(folder)) == ["bins.md", "file_index", "lease.md"]


@pytest.mark.parametrize(
    ("keys", "expected"), [(b"x\n", 4), (b"\x04", 4), (b"\x03", 130)], ids=["x", "end", "stop"]
)
def test_without_an_answer_nothing_is_made(folder: Path, keys: bytes, expected: int) -> None:
    """Another word, the end of the input, ctrl-c."""
    code, seen = answered(folder, keys)
    assert code == expected
    assert "nothing was made" in seen
    assert sorted(os.listdir(folder)) == ["bins.md", "lease.md"]


@pytest.mark.parametrize("words", [[], ["--no-input"], ["--chunks"]])
def test_elsewhere_a_chunk_store_is_made(run: Run, folder: Path, words: list[str]) -> None:
    """Without a terminal nothing is asked; one line names the other way, unless it was chosen."""
    done = run("init", "--embedder", "builtin", *words, cwd=folder)
    assert done.code == 0
    assert (folder / "file_index/filestore.toml").exists()
    named = "found 2 documents here; 'filestore init --in-place' indexes them where they are\n"
    assert done.stderr == ("" if words == ["--chunks"] else named)


def test_nothing_is_offered_that_would_be_refused(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a store, and in a home folder, no line names --in-place; nobody is asked in a store."""
    with monkeypatch.context() as home:
        home.setenv("HOME", str(folder))
        done = run("init", "--embedder", "builtin", cwd=folder)
        assert (done.code, done.stderr) == (0, "")
    shutil.rmtree(folder / "file_index")
    assert run("init", "--in-place", "--embedder", "builtin", cwd=folder).code == 0
    done = run("init", cwd=folder)
    assert (done.code, "--in-place" in done.stderr) == (4, False)
    assert "is a store already" in done.stderr
    code, seen = answered(folder, b"")
    assert (code, "which?" in seen) == (4, False)


def test_one_document_is_one(run: Run, folder: Path) -> None:
    """The line names it in the singular."""
    (folder / "bins.md").unlink()
    done = run("init", "--embedder", "builtin", cwd=folder)
    line = "found 1 document here; 'filestore init --in-place' indexes it where it is\n"
    assert done.stderr == line


def test_a_plan_writes_nothing(run: Run, folder: Path) -> None:
    """It says where the store would be and what is there, in words and in JSON."""
    done = run("init", "--in-place", "--plan", cwd=folder)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"would create a store in {folder}, layout in-place\n2 documents")
    planned = run("init", "--plan", "--json", cwd=folder).json
    assert planned["root"] == str(folder / "file_index")
    assert (planned["layout"], planned["documents"]) == ("tree", 2)
    assert sorted(os.listdir(folder)) == ["bins.md", "lease.md"]


def test_a_home_folder_needs_yes(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also by a link; before anything is written."""
    monkeypatch.setenv("HOME", str(folder))
    (tmp_path / "link").symlink_to(folder)
    for words in (["."], [str(tmp_path / "link")]):
        done = run("init", "--in-place", *words, cwd=folder)
        assert (done.code, "is your home folder" in done.stderr) == (4, True)
    assert sorted(os.listdir(folder)) == ["bins.md", "lease.md"]
    assert run("init", "--in-place", "--yes", "--embedder", "builtin", cwd=folder).code == 0


def test_the_root_and_many_documents_need_yes(folder: Path) -> None:
    """Asked of the check alone: nothing may ever be made in the root of a machine."""
    for place, documents in (("/", 0), ("//", 3), (str(folder), 50_001)):
        with pytest.raises(RefusedError):
            setup._refuse_much(place, documents)
    setup._refuse_much(str(folder), 50_000)


def test_one_way_at_a_time(run: Run, folder: Path) -> None:
    """--chunks and --in-place exclude each other."""
    assert run("init", "--chunks", "--in-place", cwd=folder).code == 2


def test_a_plan_says_what_would_stop_it(run: Run, folder: Path) -> None:
    """It never says that nothing is here because it could not look."""
    (folder / ".filestoreignore").write_text("".join(f"a{one}\n" for one in range(1001)))
    done = run("init", "--in-place", "--plan", cwd=folder)
    assert done.code == 3
    assert "1,001 rules" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("name", ["", "new/deeper"])
def test_a_plan_in_a_folder_of_others_says_that_it_cannot_be_made(name: str) -> None:
    """In it, and in a new one below it; as a user who may read it and no more."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        child = os.fork()
        if child == 0:
            os.setresuid(23456, 23456, 23456)
            os._exit(_says_why_not(os.path.join(folder, name).rstrip("/"), folder))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        create.check_writable(os.path.join(folder, "new"))


def _says_why_not(root: str, folder: str) -> int:
    try:
        create.check_writable(root)
    except WriteFailedError as error:
        return 0 if f"cannot write {folder}:" in error.message and error.remedy else 1
    return 2

"""`filestore status`: what drifted, told without changing anything."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filestore.chunks import chunk_file


def note(workspace: Any, text: str = "A note of words.\n") -> Path:
    """A store with one note; the path of its chunk file."""
    workspace.write("note.md", text)
    workspace("add", "note.md")
    (path,) = workspace.chunks("note.md")
    found: Path = workspace.chunked / path
    return found


def shown(workspace: Any, path: Path) -> str:
    return path.relative_to(workspace.store).as_posix()


def test_clean(either: Any) -> None:
    """A store in step says so with 0."""
    note(either)
    status = either.json("status")
    known = {"clean": True, "generation": 1, "counts": {"files": 2}, "drift": {}}
    assert status.items() >= known.items()
    assert status["embedder"]["name"] == "builtin"
    assert (status["index"]["kind"], status["index"]["vectors"]) == ("exact", 1)
    assert either("status").stdout == "clean: 2 files as indexed\n"


def test_empty_store(either: Any) -> None:
    """A store that has nothing yet is clean."""
    assert either.json("status")["clean"] is True


def test_modified(either: Any) -> None:
    """A changed body is modified; so are changed headings and questions, which are embedded."""
    path = note(either)
    path.write_bytes(path.read_bytes() + b"More.\n")
    assert either.drift() == {"modified": [shown(either, path)]}
    done = either("status", code=1)
    assert "modified" in done.stdout
    assert "filestore sync" in done.stdout
    either.sync()
    path.write_bytes(chunk_file.update(path.read_bytes(), headings=["New heading"]))
    assert either.drift() == {"modified": [shown(either, path)]}
    either.sync()
    path.write_bytes(chunk_file.update(path.read_bytes(), questions=["What is new?"]))
    assert either.drift() == {"modified": [shown(either, path)]}


def test_same_size_and_time(either: Any) -> None:
    """An edit that keeps size and modification time is seen all the same."""
    path = note(either)
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"note of", b"nose of"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert either.drift() == {"modified": [shown(either, path)]}


def test_metadata_modified(either: Any) -> None:
    """A key of the user changes no embedded text."""
    path = note(either)
    path.write_bytes(path.read_bytes().replace(b"---\n", b"---\nmood: good\n", 1))
    assert either.drift() == {"metadata-modified": [shown(either, path)]}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda path: os.utime(path, (1, 1)), id="time"),
        pytest.param(lambda path: path.chmod(0o600), id="mode"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()), id="written again"),
        pytest.param(lambda path: Path(shutil.copy(path, f"{path}~")).rename(path), id="replaced"),
    ],
)
def test_touched_is_not_changed(either: Any, change: Callable[[Path], None]) -> None:
    """A file with other stamps and the same bytes has not drifted."""
    path = note(either)
    change(path)
    assert either.drift() == {}
    either.assert_settled()


def test_untracked_and_missing(either: Any) -> None:
    """A new file is untracked, one that is gone is missing, and both have their path."""
    path = note(either)
    path.unlink()
    (either.chunked / "new.md").write_text("Something else entirely.\n")
    assert either.drift() == {
        "missing": [shown(either, path)],
        "untracked": ["chunked/new.md"],
    }


def test_moved(either: Any) -> None:
    """A file with a new name is moved, not missing and untracked."""
    path = note(either)
    path.rename(path.with_name("renamed.md"))
    assert either.drift() == {"moved": [shown(either, path.with_name("renamed.md"))]}
    assert f"it was {shown(either, path)}" in either("status", code=1).stdout


def test_ambiguous_moves_are_not_guessed(either: Any) -> None:
    """Where two gone files have the same content, none is said to have moved."""
    for name in ("one.md", "two.md"):
        (either.chunked / name).write_text("The same words.\n")
    either.sync()
    for name in ("one.md", "two.md"):
        (either.chunked / name).rename(either.chunked / f"new-{name}")
    assert set(either.drift()) == {"missing", "untracked"}


def test_mass_missing(either: Any) -> None:
    """When most is gone it is one finding that says how to go on, not sixty."""
    for number in range(60):
        (either.chunked / f"n{number}.md").write_text(f"Words of file {number}.\n")
    either.sync()
    for number in range(55):
        (either.chunked / f"n{number}.md").unlink()
    assert either.drift() == {"mass-missing": ["chunked"]}
    done = either("status", code=1)
    assert "55 of 60 files are gone" in done.stdout
    assert "--forget-missing" in done.stdout


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"---\nheadings: [open\n---\nWords.\n", "malformed-frontmatter", "line "),
        (b"---\na: 1\na: 2\n---\nWords.\n", "malformed-frontmatter", "line "),
        (b"---\na: &x 1\nb: *x\n---\nWords.\n", "malformed-frontmatter", "line "),
        (b"---\nnever closed\n", "malformed-frontmatter", "line "),
        (b"---\nquestions: 5\n---\nWords.\n", "invalid-metadata", "line 2"),
        (b"---\nmood: x\noverlap: many\n---\nWords.\n", "invalid-metadata", "line 3"),
        (b"caf\xe9 words\n", "bad-encoding", "line 1"),
        (b"\n \n", "empty", ""),
    ],
)
def test_withheld_files(either: Any, content: bytes, code: str, says: str) -> None:
    """What cannot be used is named with its code, its place and what helps."""
    note(either)
    (either.chunked / "broken.md").write_bytes(content)
    assert either.drift() == {code: ["chunked/broken.md"]}
    text = either("status", code=1).stdout
    assert code in text
    assert says in text
    either.sync(code=1)
    assert either.drift() == {code: ["chunked/broken.md"]}


def test_things_that_are_no_files(either: Any) -> None:
    """Links and pipes are named and never opened; litter is only worth a note."""
    note(either)
    (either.chunked / "link.md").symlink_to(either.folder / "note.md")
    os.mkfifo(either.chunked / "pipe.md")
    (either.chunked / "picture.png").write_bytes(b"\x89PNG")
    assert either.drift() == {
        "special-file": ["chunked/pipe.md"],
        "symlink": ["chunked/link.md"],
        "litter": ["chunked/picture.png"],
    }
    either("sync", code=1)
    for name in ("link.md", "pipe.md"):
        (either.chunked / name).unlink()
    either.sync()
    assert either.json("status")["clean"] is True


def test_a_loop_of_links_ends(workspace: Any) -> None:
    """A folder that links to itself is not walked."""
    note(workspace)
    (workspace.chunked / "loop").symlink_to(workspace.chunked)
    assert workspace.drift() == {"symlink": ["chunked/loop"]}


def test_accepted_warnings(workspace: Any) -> None:
    """A warning that the settings accept for a path does not spoil clean, an error always does."""
    path = note(workspace)
    (workspace.chunked / "empty.md").write_bytes(b"")
    settings = workspace.store / "filestore.toml"
    text = settings.read_text()
    accepted = '\n[accepted]\nempty = ["chunked/empty.md"]\nmodified = ["{0}"]\n'
    settings.write_text(text + accepted.format(shown(workspace, path)))
    assert workspace.json("status")["clean"] is True
    workspace("sync", code=0)
    path.write_bytes(path.read_bytes() + b"More.\n")
    assert workspace.json("status", code=1)["clean"] is False


def test_accepted_warnings_are_marked(workspace: Any) -> None:
    """What is accepted is shown as such, in words and JSON, and no command is offered for it."""
    note(workspace)
    for name in ("empty.md", "other.md"):
        (workspace.chunked / name).write_bytes(b"")
    settings = workspace.store / "filestore.toml"
    plain = settings.read_text()
    settings.write_text(f'{plain}\n[accepted]\nempty = ["chunked/empty.md"]\n')
    shown_words = workspace("status", code=1).stdout
    assert "chunked/empty.md (accepted)" in shown_words
    assert "chunked/other.md (accepted)" not in shown_words
    status = workspace.json("status", code=1)
    assert status["accepted"] == [{"code": "empty", "path": "chunked/empty.md"}]
    for words in (("verify",), ("verify", "--level", "full")):
        found = {one["path"]: one for one in workspace.json(*words, code=1)["findings"]}
        assert found["chunked/empty.md"]["accepted"] is True
        assert "accepted" not in found["chunked/other.md"]
    (workspace.chunked / "other.md").unlink()
    for words in (("status",), ("verify",)):
        clean = workspace(*words).stdout
        assert "chunked/empty.md (accepted)" in clean
        assert "filestore repair" not in clean


def test_changes_nothing(either: Any) -> None:
    """Neither truth nor catalog is written by status."""
    path = note(either)
    path.write_bytes(path.read_bytes() + b"More.\n")
    before = (either.truth(), (either.sidecar / "catalog.sqlite").read_bytes())
    either("status", code=1)
    either("verify", "--level", "full", code=1)
    assert (either.truth(), (either.sidecar / "catalog.sqlite").read_bytes()) == before


def test_without_a_catalog(either: Any) -> None:
    """A clone without sidecar has one finding, and the way on."""
    note(either)
    shutil.rmtree(either.sidecar)
    assert either.drift() == {"catalog-missing": [".sidecar/catalog.sqlite"]}
    assert "filestore sync" in either("status", code=1).stdout

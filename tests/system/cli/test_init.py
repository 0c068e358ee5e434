"""`filestore init`, and what every command has in common: help, usage, finding the store."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

COMMANDS = [
    *("init", "add", "rm", "ls", "show", "status"),
    *("verify", "sync", "search", "reconstruct", "demo", "tui"),
    *("evaluate", "embedder", "embeddings", "trust", "similar", "duplicates", "links"),
]


def test_makes_a_store(run: Any, tmp_path: Path) -> None:
    """A new store has settings, git files and an empty tree, and its sidecar is the owner's."""
    done = run("init", "--json", cwd=tmp_path)
    root = tmp_path / "file_index"
    assert done.code == 0
    made = done.json
    assert made == {"root": str(root), "layout": "tree", "embedder": "builtin", "sync": None}
    assert (root / ".gitignore").read_text() == ".sidecar/\n.undo/\n.filestore-tmp-*\n"
    assert "eol=lf" in (root / ".gitattributes").read_text()
    assert 'layout = "tree"' in (root / "filestore.toml").read_text()
    assert list((root / "chunked").iterdir()) == []
    assert (root / ".sidecar").stat().st_mode & 0o777 == 0o700


def test_says_what_it_made_and_what_is_next(workspace: Any) -> None:
    """A person is told where the store is, what its embedder can do, and the next command."""
    done = workspace("init", workspace.folder.parent / "other" / "notes")
    assert "other/notes" in done.stdout
    assert "not meaning" in done.stdout
    assert "filestore --store ../other/notes add" in done.stdout
    assert done.stderr == ""


def test_flat_layout_in_a_named_folder(workspace: Any) -> None:
    """The folder and the layout can be chosen."""
    root = workspace.folder.parent / "flat store"
    made = workspace.json("init", root, "--layout", "flat")
    assert made["layout"] == "flat"
    assert 'layout = "flat"' in (root / "filestore.toml").read_text()


def test_what_is_in_the_folder_stays(workspace: Any) -> None:
    """A folder with files in it may become a store, and none of them is touched."""
    root = workspace.folder.parent / "there"
    root.mkdir()
    (root / "mine.txt").write_text("mine")
    (root / ".gitignore").write_text("*.tmp\n")
    workspace("init", root)
    assert (root / "mine.txt").read_text() == "mine"
    assert (root / ".gitignore").read_text() == "*.tmp\n"


def test_a_store_is_not_made_twice(workspace: Any) -> None:
    """A store that is there is refused and left as it is."""
    workspace.write("note.md", "A note.\n")
    workspace("add", "note.md")
    before = workspace.committed()
    done = workspace("init", code=4)
    assert "is a store already" in done.stderr
    assert "--store" in done.stderr
    assert workspace.committed() == before


def test_unknown_layout(workspace: Any) -> None:
    """A layout that does not exist is wrong usage, names the two, and makes nothing."""
    done = workspace("init", "elsewhere", "--layout", "heap", code=2)
    assert "tree" in done.stderr
    assert "flat" in done.stderr
    assert not (workspace.folder / "elsewhere").exists()


def test_git_sees_only_what_is_committed(workspace: Any) -> None:
    """Git is offered settings and truth, never the sidecar, and a sync leaves its tree clean."""
    workspace.write("note.md", "A note.\n")
    workspace("add", "note.md")
    workspace.git("add", "--all")
    assert workspace.git("ls-files").splitlines() == [
        "file_index/.gitattributes",
        "file_index/.gitignore",
        "file_index/chunked/note.md/chunk1.md",
        "file_index/chunked/note.md/meta.json",
        "file_index/filestore.toml",
        "note.md",
    ]
    workspace.git("commit", "-qm", "notes")
    workspace.sync()
    workspace("search", "note")
    assert workspace.git("status", "--porcelain") == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(run: Any, command: str) -> None:
    """Every command explains itself with an example that calls it."""
    done = run(command, "--help")
    assert done.code == 0
    assert f"filestore {command}" in re.split("^examples?:", done.stdout, flags=re.M)[1]
    assert done.stderr == ""


def test_help_lists_every_command(run: Any) -> None:
    """It names each command, and the page with every exit code."""
    done = run("--help")
    assert done.code == 0
    for word in [*COMMANDS, "exit-codes"]:
        assert word in done.stdout
    assert "130" in run("help", "exit-codes").stdout


@pytest.mark.parametrize(
    "words",
    [
        ["no-such-command"],
        ["status", "surplus"],
        ["search"],
        ["search", "x", "-k", "many"],
        ["verify", "--level", "deepest"],
        ["--no-such-option"],
        ["rm"],
    ],
)
def test_wrong_usage(workspace: Any, words: list[str]) -> None:
    """What fits no command ends with 2 and points at the help, in words and in JSON."""
    done = workspace(*words, code=2)
    assert "--help" in done.stderr
    assert done.stdout == ""
    answer = workspace.json(*words, code=2)
    assert set(answer) == {"error", "detail", "remedy"}
    assert "--help" in answer["remedy"]


def test_no_store(run: Any, tmp_path: Path) -> None:
    """Outside any store a command ends with 3 and says how to make one."""
    for command in (["status"], ["sync"], ["search", "x"], ["ls"], ["add", "x"]):
        done = run(*command, cwd=tmp_path)
        assert done.code == 3
        assert "filestore init" in done.stderr
        assert done.stdout == ""
    answer = run("status", "--json", cwd=tmp_path)
    assert answer.code == 3
    assert "filestore init" in answer.json["remedy"]
    assert answer.stderr == ""


def test_the_store_that_is_meant(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """--store beats FILESTORE, which beats the nearest store around the working folder."""
    other, third = workspace.folder.parent / "other", workspace.folder.parent / "third"
    for root, name in ((other, "other.md"), (third, "third.md")):
        workspace("init", root)
        source = root.parent / name
        source.write_text("Words.\n")
        workspace("--store", root, "add", source)
    inner = workspace.folder / "deep" / "down"
    inner.mkdir(parents=True)
    assert workspace.json("ls", cwd=inner)["items"] == []
    monkeypatch.setenv("FILESTORE", str(other))
    assert workspace.json("ls")["items"][0]["resource"] == "other.md"
    assert workspace.json("--store", third, "ls")["items"][0]["resource"] == "third.md"
    assert workspace.json("ls", "--store", third)["items"][0]["resource"] == "third.md"
    monkeypatch.setenv("FILESTORE", os.devnull)
    assert "no store" in workspace("ls", code=3).stderr


def test_a_reader_that_stops_listening(workspace: Any, run: Any) -> None:
    """Output into a closed pipe ends quietly."""
    import subprocess
    import sys

    workspace.write("note.md", "A note.\n")
    workspace("add", "note.md")
    command = f"'{sys.executable}' -m filestore ls | true"
    package = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=workspace.folder,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    assert done.stderr == b""

"""Where git stopped at a conflict: what it is called, and the commands that lead out of it."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from filestore import Store
from filestore.git import repository, stopped
from tests.bench import merges

BASE, OURS, THEIRS = (f"# Amber\n\nIt is {word}.\n" for word in ("brown", "yellow", "golden"))
OTHERS = {
    "merge": r"theirs [0-9a-f]{7}",
    "rebase": r'theirs [0-9a-f]{7}, your commit "Golden"',
    "cherry-pick": r'theirs [0-9a-f]{7}, commit "Golden"',
    "revert": r'without [0-9a-f]{7} "Again"',
    "stash": r'stash [0-9a-f]{7}, "On main: Golden"',
}


def git(folder: Path, *words: str, code: int = 0) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "core.editor=true")
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        env=os.environ | {"GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, (words, done)
    return done.stdout


def write(folder: Path, text: str, subject: str) -> None:
    (folder / "amber.md").write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", subject)


def stop(folder: Path, operation: str, *, base: str = BASE, theirs: str = THEIRS) -> None:
    """Have git stop with a conflict in one file."""
    git(folder, "init", "--quiet", "--initial-branch", "main")
    write(folder, base, "Brown")
    git(folder, "checkout", "--quiet", "-b", "theirs")
    words = [operation, "theirs"]
    if operation == "stash":
        git(folder, "checkout", "--quiet", "main")
        (folder / "amber.md").write_text(theirs)
        git(folder, "stash", "push", "--quiet", "-m", "Golden")
        words = ["stash", "pop"]
    else:
        write(folder, theirs, "Golden")
    if operation == "revert":
        write(folder, base, "Again")
        git(folder, "checkout", "--quiet", "-B", "main")
        words = ["revert", "--no-edit", "HEAD~1"]
    elif operation != "stash":
        git(folder, "checkout", "--quiet", "main")
    write(folder, base.replace("brown", "yellow"), "Yellow")
    if operation == "rebase":
        git(folder, "checkout", "--quiet", "theirs")
        words = ["rebase", "main"]
    git(folder, *words, code=1)


@pytest.mark.parametrize("operation", OTHERS)
def test_sides_have_the_names_of_branch_and_commit(tmp_path: Path, operation: str) -> None:
    """Also where a rebase swaps them."""
    stop(tmp_path, operation)
    names = stopped.side_names(str(tmp_path), "amber.md")
    assert names.ours == f"main {git(tmp_path, 'rev-parse', '--short', 'main').strip()}"
    assert re.fullmatch(OTHERS[operation], names.theirs)
    held = repository.staged(str(tmp_path), "amber.md")
    assert held == (OURS.encode(), THEIRS.encode())


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("operation", OTHERS)
def test_git_takes_the_commands(tmp_path: Path, operation: str, side: str) -> None:
    """Also where nothing is left to be committed, and from another folder."""
    stop(tmp_path, operation)
    text = OURS if side == "ours" else THEIRS
    (tmp_path / "amber.md").write_text(text)
    folder = tmp_path / "a folder"
    folder.mkdir()
    command = stopped.add_command([str(tmp_path / "amber.md")], str(folder))
    assert command == "git add ../amber.md"
    git(folder, *command.split()[1:])
    after = stopped.ending(str(tmp_path), {})
    assert after == stopped.ending(str(tmp_path), {"amber.md": text.encode()})
    if operation == "stash":
        assert after == ""
        return
    git(folder, *after.split()[1:])
    assert repository.operation(str(tmp_path)) == ""
    assert git(tmp_path, "show", "HEAD:amber.md") == text


def test_what_ends_it_is_told_before_the_file_is_added(tmp_path: Path) -> None:
    """Whether a commit will be empty depends on what the file holds, not on git's index."""
    stop(tmp_path, "cherry-pick")
    root = str(tmp_path)
    assert stopped.ending(root, {"amber.md": OURS.encode()}) == "git cherry-pick --skip"
    assert stopped.ending(root, {"amber.md": THEIRS.encode()}) == "git cherry-pick --continue"
    assert stopped.ending(root, {}) == "git cherry-pick --continue"


@pytest.mark.parametrize("fence", ["", "```"])
def test_markers_that_were_added_count_until_they_are_committed(tmp_path: Path, fence: str) -> None:
    """Also in a block of code, where the file alone does not tell; a page on git is no conflict."""
    shown = "~~~\n<<<<<<< one\n=======\n>>>>>>> other\n~~~\n"
    base = f"{shown}\n{fence}\nIt is brown.\n{fence}\n"
    stop(tmp_path, "merge", base=base, theirs=base.replace("brown", "golden"))
    root, path = str(tmp_path), tmp_path / "amber.md"
    assert repository.unmerged(root) == {"amber.md"}
    git(tmp_path, "add", "amber.md")
    assert repository.unmerged(root) == {"amber.md"}
    path.write_text(base)
    assert repository.unmerged(root) == {"amber.md"}
    git(tmp_path, "add", "amber.md")
    assert repository.unmerged(root) == set()
    git(tmp_path, "checkout", "--merge", "--", "amber.md")
    git(tmp_path, "add", "amber.md")
    git(tmp_path, "commit", "--quiet", "-m", "with markers")
    assert repository.unmerged(root) == set()


@pytest.mark.parametrize("name", ["-n.md", ":x.md", "it's [1].md", "*.md", "é ü.md"])
def test_a_name_is_added_alone(tmp_path: Path, name: str) -> None:
    """Whatever signs it has for a shell or for git."""
    git(tmp_path, "init", "--quiet")
    for one in (name, "plain.md"):
        (tmp_path / one).write_text("text\n")
    command = stopped.add_command([str(tmp_path / name)], str(tmp_path))
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert git(tmp_path, "ls-files", "-z") == f"{name}\0"


@pytest.mark.parametrize("sign", ["", "\0"])
def test_a_file_in_place_without_markers_is_not_called_clean(tmp_path: Path, sign: str) -> None:
    """Git has it as unmerged, and its bytes are those that were indexed, or left out as binary."""
    tree = tmp_path / "notes"
    tree.mkdir()
    stop(tree, "merge", base=BASE + sign, theirs=THEIRS + sign)
    git(tree, "merge", "--abort")
    known = {"embedder": "builtin", "configuration": str(tmp_path / "configuration")}
    with Store.create(str(tree), layout="in-place", **known) as store:
        store.sync()
        git(tree, "merge", "theirs", code=1)
        git(tree, "checkout", "--ours", "--", "amber.md")
        for checked in (store.status(), store.verify(), store.verify(level="full")):
            found = {(one.code, one.path) for one in checked.findings if one.severity == "E"}
            assert found == {("conflict-markers", "amber.md")}
        git(tree, "add", "amber.md")
        assert {one.code for one in store.status().findings} <= {"bad-encoding", "git-operation"}


@pytest.mark.parametrize("name", ["rebase zdiff3 added", "deleted here", "renamed to two names"])
def test_printed_commands_alone_lead_out(tmp_path: Path, name: str) -> None:
    """At most three of them, none of which is refused; the benchmark has forty such merges."""
    (case,) = (one for one in merges.forty() if one.name == name)
    outcome = merges.solved(tmp_path, case)
    assert outcome.problem == "", outcome
    assert 0 < len(outcome.commands) <= merges.MOST


@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_file_that_no_command_of_ours_writes_has_one_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str, is_added: bool
) -> None:
    """Also where it was added with its markers."""
    stop(tmp_path, "merge")
    monkeypatch.chdir(tmp_path)
    if is_added:
        git(tmp_path, "add", "amber.md")
    command = stopped.side_command(str(tmp_path), "amber.md", side)
    subprocess.run(["bash", "-c", command], check=True)
    assert git(tmp_path, "show", ":amber.md") == (OURS if side == "ours" else THEIRS)
    assert repository.unmerged(str(tmp_path)) == set()


def test_commands_wait_for_what_is_unmerged_elsewhere(
    workspace: Any,
) -> None:
    """As long as git would refuse to go on, the command that goes on is not printed."""
    root = workspace.folder
    own = workspace.write("file_index/chunked/own/amber.md", BASE)
    workspace.write("code.py", "1\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "base")
    git(root, "checkout", "--quiet", "-B", "main")
    for branch, text in (("theirs", THEIRS), ("main", OURS)):
        git(root, "checkout", "--quiet", *(["-b"] if branch != "main" else []), branch)
        own.write_text(text)
        workspace.write("code.py", text)
        git(root, "commit", "--quiet", "--all", "-m", branch)
    workspace.sync()
    git(root, "merge", "theirs", code=1)
    said = workspace("status", code=1).stdout
    assert "git checkout --theirs -- code.py && git add code.py" in said
    path = "file_index/chunked/own/amber.md"
    said = workspace("repair", "--theirs", "chunked/own/amber.md", "--yes", code=1).stdout
    assert f"next:\n    git add {path}\n" in said
    assert "--continue" not in said
    git(root, "add", path)
    git(root, "checkout", "--theirs", "--", "code.py")
    git(root, "add", "code.py")
    assert "next:\n    git merge --continue\n" in workspace("status").stdout

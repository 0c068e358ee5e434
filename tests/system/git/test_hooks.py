"""`filestore git`: hooks that follow what git does, and never stand in its way."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filestore.fs.lock import writer_lock
from filestore.git import hooks

CHECKOUT = Path(__file__).resolve().parents[3]
HOOKS = ["post-checkout", "post-commit", "post-merge", "post-rewrite", "pre-commit"]
UNHOOKED = ("-c", "core.hooksPath=/dev/null")
FOREIGN = b"#!/bin/sh\necho 'somebody else'\n"


def run_git(folder: Path, *words: str, code: int = 0) -> str:
    """Run git as a person does, with hooks; what it and they say on both streams."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *identity, "-c", "protocol.file.allow=always", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, (words, done.stdout)
    assert "Traceback" not in done.stdout
    return done.stdout


def commit_all(folder: Path, message: str = "change") -> None:
    """Commit everything, with no hook looking on."""
    run_git(folder, "add", "--all")
    run_git(folder, *UNHOOKED, "commit", "--quiet", "-m", message)


def edit(workspace: Any, words: str, name: str = "notes.md/chunk1.md") -> None:
    """Write a sentence at the end of a chunk file."""
    with (workspace.chunked / name).open("a") as file:
        file.write(f"{words}\n")


@pytest.fixture
def followed(workspace: Any) -> Any:
    """A store with hooks on branch `main`, and a branch `other` with another text, both indexed."""
    run_git(workspace.folder, "checkout", "--quiet", "-b", "main")
    workspace.write("notes.md", "# Notes\n\nAll about amber.\n")
    workspace("add", "notes.md")
    commit_all(workspace.folder)
    run_git(workspace.folder, "checkout", "--quiet", "-b", "other")
    edit(workspace, "And basalt.")
    workspace.sync()
    commit_all(workspace.folder)
    assert workspace.json("git", "install")["note"] == ""
    return workspace


def hook_files(workspace: Any) -> dict[str, tuple[bytes, int, int]]:
    """Name of each hook to its bytes, mode and time."""
    folder = workspace.folder / ".git" / "hooks"
    found = [path for path in folder.iterdir() if path.suffix != ".sample"]
    return {
        path.name: (path.read_bytes(), path.stat().st_mode & 0o777, path.stat().st_mtime_ns)
        for path in found
    }


def states(report: Any) -> dict[str, str]:
    return {hook["hook"]: hook["state"] for hook in report["hooks"]}


def test_install_status_remove(workspace: Any) -> None:
    """Hooks are written once, told by status, and taken away without a trace."""
    assert states(workspace.json("git", "status", code=1)) == dict.fromkeys(HOOKS, "absent")
    report = workspace.json("git", "install")
    assert report["folder"] == str(workspace.folder / ".git" / "hooks")
    assert report["store"] == "file_index"
    written = hook_files(workspace)
    assert sorted(written) == HOOKS
    assert {mode for _, mode, _ in written.values()} == {0o755}
    assert states(workspace.json("git", "install")) == dict.fromkeys(HOOKS, "installed")
    assert hook_files(workspace) == written
    assert states(workspace.json("git", "status")) == dict.fromkeys(HOOKS, "installed")
    assert "post-merge: installed" in workspace("git", "status").stdout
    assert states(workspace.json("git", "remove")) == dict.fromkeys(HOOKS, "removed")
    assert hook_files(workspace) == {}
    assert states(workspace.json("git", "remove")) == dict.fromkeys(HOOKS, "absent")


def test_a_checkout_is_followed(followed: Any) -> None:
    """After a checkout of a branch, or of one file, the index is in step, with nothing embedded."""
    said = run_git(followed.folder, "checkout", "main")
    assert "filestore: file_index: re-indexed 1 changed file\n" in said
    assert followed.drift() == {}
    assert followed.found("basalt") == []
    run_git(followed.folder, "checkout", "other", "--", "file_index/chunked")
    assert followed.drift() == {}
    assert followed.found("basalt") == ["notes.md/chunk1.md"]
    assert followed.sync()["embedded"] == 0


def test_merge_amend_and_rebase_are_followed(followed: Any) -> None:
    """Whatever git does to the tree without a conflict, the index is in step after it."""
    run_git(followed.folder, *UNHOOKED, "checkout", "main")
    run_git(followed.folder, "merge", "--quiet", "--ff-only", "other")
    assert followed.drift() == {}
    assert followed.found("basalt") == ["notes.md/chunk1.md"]
    followed.write("file_index/chunked/own/chunk1.md", "Copper.\n")
    commit_all(followed.folder, "own")
    followed.write("file_index/chunked/own/chunk1.md", "Copper and zinc.\n")
    run_git(followed.folder, "commit", "--quiet", "--all", "--amend", "--no-edit", "--no-verify")
    assert followed.drift() == {}
    run_git(followed.folder, *UNHOOKED, "checkout", "-b", "late", "HEAD~1")
    followed.write("file_index/chunked/late/chunk1.md", "Tin.\n")
    commit_all(followed.folder, "late")
    run_git(followed.folder, "rebase", "--quiet", "main")
    assert followed.drift() == {}
    assert followed.found("zinc") == ["own/chunk1.md"]
    run_git(followed.folder, *UNHOOKED, "checkout", "-b", "behind", "main~1")
    run_git(followed.folder, "rebase", "--quiet", "late")
    assert followed.drift() == {}
    assert followed.found("tin") == ["late/chunk1.md"]


@pytest.mark.parametrize("operation", ["merge", "cherry-pick", "revert"])
def test_the_commit_that_ends_a_conflict_is_followed(followed: Any, operation: str) -> None:
    """Git runs no other hook then: what merged by itself is in step after that commit."""
    root = followed.folder
    edit(followed, "And cinnabar.")
    followed.write("file_index/chunked/own/chunk1.md", "Copper.\n")
    commit_all(root, "cinnabar")
    run_git(root, "checkout", "--quiet", "-b", "late", "HEAD~1")
    edit(followed, "And jasper.")
    followed.sync()
    commit_all(root, "jasper")
    if operation == "revert":
        run_git(root, "reset", "--quiet", "--hard", "other")
        followed.sync()
        edit(followed, "And quartz.")
        commit_all(root, "quartz")
        run_git(root, operation, "--no-edit", "HEAD~1", code=1)
    else:
        run_git(root, operation, "other", code=1)
    path = followed.chunked / "notes.md/chunk1.md"
    path.write_text("All about zinc.\n")
    run_git(root, "add", str(path))
    said = run_git(root, "-c", "core.editor=true", operation, "--continue")
    assert "filestore: file_index: " in said
    assert followed.drift() == {}
    assert followed.found("zinc") == ["notes.md/chunk1.md"]
    assert followed.found("copper") == ([] if operation == "revert" else ["own/chunk1.md"])


def test_an_ordinary_commit_starts_no_program(followed: Any) -> None:
    """The hook behind every commit acts only where the commit ends something."""
    root = followed.folder
    python = root.parent / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho started\n")
    python.chmod(0o755)
    script = hooks.hook_script("post-commit", ["file_index"], str(python))
    (root / ".git/hooks/post-commit").write_text(script)
    followed.write("more.txt", "more\n")
    run_git(root, "add", "--all")
    assert "started" not in run_git(root, "commit", "-m", "ordinary")
    run_git(root, "checkout", "--quiet", "-b", "late", "HEAD~1")
    followed.write("late.txt", "late\n")
    commit_all(root)
    run_git(root, "merge", "--no-commit", "other")
    assert "started" in run_git(root, "commit", "-m", "merge")
    followed.write("late.txt", "later\n")
    assert "started" not in run_git(root, "commit", "-am", "ordinary again")


def test_originals_are_followed(followed: Any) -> None:
    """A checkout that changes an original changes its chunk files, one in a rebase does not."""
    root = followed.folder
    run_git(root, "checkout", "--quiet", "main")
    followed.write("notes.md", "# Notes\n\nAll about copper.\n")
    run_git(root, *UNHOOKED, "commit", "--quiet", "-am", "original")
    run_git(root, *UNHOOKED, "checkout", "--quiet", "other")
    said = run_git(root, "checkout", "main")
    assert "updated notes.md from its original" in said
    assert followed.found("copper") == ["notes.md/chunk1.md"]
    assert followed.drift() == {}


def test_originals_that_are_not_followed(followed: Any) -> None:
    """With `follow = false` a hook writes no chunk file, and says what is left."""
    settings = followed.store / "filestore.toml"
    settings.write_text("follow = false\n" + settings.read_text())
    followed.write("notes.md", "# Notes\n\nAll about copper.\n")
    before = followed.truth()
    said = run_git(followed.folder, "checkout", "-b", "third")
    assert "source-modified" in said
    assert followed.truth() == before


def test_a_few_new_texts_are_embedded(followed: Any) -> None:
    """What was never embedded is found by keyword and by meaning after a checkout."""
    run_git(followed.folder, *UNHOOKED, "checkout", "main")
    edit(followed, "And cinnabar.")
    commit_all(followed.folder)
    run_git(followed.folder, *UNHOOKED, "checkout", "other")
    said = run_git(followed.folder, "checkout", "main")
    assert "re-indexed 1 changed file\n" in said
    assert followed.found("cinnabar") == ["notes.md/chunk1.md"]
    assert followed.drift() == {}
    assert followed.sync()["embedded"] == 0


def test_a_foreign_hook_is_not_touched(workspace: Any) -> None:
    """Hooks of others stay byte for byte; the others are installed, and the line is told."""
    path = workspace.folder / ".git" / "hooks" / "post-merge"
    path.write_bytes(FOREIGN)
    path.chmod(0o755)
    before = hook_files(workspace)["post-merge"]
    report = workspace.json("git", "install", code=1)
    expected = dict.fromkeys(HOOKS, "updated") | {"post-merge": "foreign"}
    assert states(report) == expected
    line = next(hook["line"] for hook in report["hooks"] if hook["state"] == "foreign")
    assert hook_files(workspace)["post-merge"] == before
    assert line in workspace("git", "status", code=1).stderr
    path.write_bytes(FOREIGN + line.encode() + b"\n")
    assert states(workspace.json("git", "install"))["post-merge"] == "called"
    said = workspace("git", "remove", code=1).stderr
    assert f"take the lines out of {path}" in said
    assert "add this line" not in said
    assert [*hook_files(workspace)] == ["post-merge"]


@pytest.mark.parametrize(
    ("script", "is_shell"),
    [
        (FOREIGN, True),
        (b"", True),
        (b"echo no first line\n", True),
        (b"#! /usr/bin/env -S bash -e\necho\n", True),
        (b"#!/usr/bin/env python3\nprint()\n", False),
        (b"#!/usr/bin/fish\necho\n", False),
        (b"\x7fELF\0\0", False),
    ],
)
def test_the_line_for_a_hook_is_for_its_language(
    workspace: Any, script: bytes, is_shell: bool
) -> None:
    """Nobody is told to write a line of shell into a program."""
    path = workspace.folder / ".git" / "hooks" / "pre-commit"
    path.write_bytes(script)
    path.chmod(0o755)
    said = workspace("git", "install", code=1).stderr
    assert (f"add this line to {path}, behind its first line" in said) is is_shell
    assert (f"{path} is not a shell script: have it run" in said) is not is_shell
    assert "hook pre-commit" in said


def test_a_foreign_hook_that_calls_us_follows(followed: Any) -> None:
    """The line that is told does in a hook of others what ours does."""
    folder = followed.folder / ".git" / "hooks"
    for name in ("post-checkout", "pre-commit"):
        line = hooks.call_line(name, ["file_index"])
        (folder / name).write_bytes(FOREIGN + line.encode() + b"\n")
    said = run_git(followed.folder, "checkout", "main")
    assert "somebody else" in said
    assert followed.drift() == {}
    followed.write("file_index/chunked/notes.md/chunk1.md", "---\n[\n---\n")
    assert "malformed" in run_git(followed.folder, "commit", "-a", "-m", "broken", code=1)


def test_lines_that_were_added_to_ours_stay(workspace: Any) -> None:
    """A hook of ours in which others wrote still serves; only our lines are written and removed."""
    workspace("git", "install")
    path = workspace.folder / ".git" / "hooks" / "post-checkout"
    ours = path.read_text()
    path.write_text(ours.replace("#!/bin/sh\n", "#!/usr/bin/env bash\necho less\n") + "echo more\n")
    before = hook_files(workspace)["post-checkout"]
    assert states(workspace.json("git", "status")) == dict.fromkeys(HOOKS, "installed")
    workspace("git", "install")
    assert hook_files(workspace)["post-checkout"] == before
    said = workspace("git", "remove").stdout
    assert f"post-checkout: removed; lines of others stay in {path}" in said
    assert hook_files(workspace).keys() == {"post-checkout"}
    assert path.read_text() == "#!/usr/bin/env bash\necho less\necho more\n"
    assert states(workspace.json("git", "status", code=1))["post-checkout"] == "foreign"


def test_our_lines_that_were_changed_are_told(workspace: Any) -> None:
    """Nobody is told to add a call that is there, and what still calls us is not called removed."""
    workspace("git", "install")
    path = workspace.folder / ".git" / "hooks" / "pre-commit"
    changed = path.read_text().replace("exit 1", "exit 3")
    path.write_text(changed)
    assert states(workspace.json("git", "status"))["pre-commit"] == "called"
    said = workspace("git", "remove", code=1).stderr
    assert f"take the lines out of {path}" in said
    assert '"$python" -P -m filestore git "$@"' in said
    assert path.read_text() == changed
    path.chmod(0o644)
    assert states(workspace.json("git", "status", code=1))["pre-commit"] == "foreign"


def test_a_hook_that_was_switched_off_stays_so(workspace: Any) -> None:
    """Taking our lines away has no lines of others run that nobody wanted to run."""
    workspace("git", "install")
    path = workspace.folder / ".git" / "hooks" / "pre-commit"
    path.write_text(path.read_text() + "echo more\n")
    path.chmod(0o640)
    assert states(workspace.json("git", "status", code=1))["pre-commit"] == "absent"
    workspace("git", "remove")
    assert path.read_text() == "#!/bin/sh\necho more\n"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", HOOKS)
def test_lines_around_ours_get_what_git_gave(workspace: Any, name: str) -> None:
    """Arguments, standard input, the environment and the status of the line before."""
    workspace("git", "install")
    path = workspace.folder / ".git" / "hooks" / name
    ours = path.read_text()
    behind = 'printf "%s|" "$?" "$#" "$@" "$PYTHONPATH" "$(cat)" >told\n'
    for before, after, code, told in (
        ("set -eu\n", behind, 0, "0|2|x|y z|.:|given|"),
        ("(exit 3)\n", behind, 0, "3|2|x|y z|.:|given|"),
        ("(exit 3)\n", "", 3, ""),
        ("", "exit 5\n", 5, ""),
    ):
        path.write_text(ours.replace("#!/bin/sh\n", f"#!/bin/sh\n{before}") + after)
        done = subprocess.run(
            [path, "x", "y z"],
            cwd=workspace.folder,
            env=os.environ | {"PYTHONPATH": ".:"},
            input=b"given",
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, (before, after, done.stderr)
        found = workspace.folder / "told"
        assert (found.read_text() if found.exists() else "") == told, (before, after)
        found.unlink(missing_ok=True)


def test_hooks_that_other_tools_run_are_ours(workspace: Any) -> None:
    """A tool that keeps our hook and runs it, and the folder of a person beside a tool's own."""
    workspace("git", "install")
    folder = workspace.folder / ".git" / "hooks"
    (folder / "pre-commit").rename(folder / "pre-commit.legacy")
    (folder / "pre-commit").write_bytes(FOREIGN)
    (folder / "pre-commit").chmod(0o755)
    # Not every tool runs what lies beside its hook.
    assert states(workspace.json("git", "status", code=1))["pre-commit"] == "foreign"
    kept = FOREIGN + b"# File generated by pre-commit: https://pre-commit.com\n"
    (folder / "pre-commit").write_bytes(kept)
    assert states(workspace.json("git", "install")) == dict.fromkeys(HOOKS, "installed")
    workspace("git", "remove")
    assert [*hook_files(workspace)] == ["pre-commit"]
    assert (folder / "pre-commit").read_bytes() == kept
    own = workspace.folder / ".husky"
    run_git(workspace.folder, "config", "core.hooksPath", ".husky/_")
    (own / "_").mkdir(parents=True)
    for name in HOOKS:
        (own / "_" / name).write_bytes(FOREIGN)
        (own / "_" / name).chmod(0o755)
    for hook in workspace.json("git", "install", code=1)["hooks"]:
        assert hook["path"] == str(own / hook["hook"])
        (own / hook["hook"]).write_text(f"lint\n{hook['line']}\n")
    assert states(workspace.json("git", "install")) == dict.fromkeys(HOOKS, "called")
    assert f"take the lines out of {own}" in workspace("git", "remove", code=1).stderr


def test_hooks_of_before_are_made_new(followed: Any) -> None:
    """Lines that an earlier version wrote end the file: with lines behind them they are renewed."""
    path = followed.folder / ".git" / "hooks" / "post-merge"
    body = 'python=/gone\nset -- --in=file_index "$@"\nexit 0\n'
    path.write_text(f"{hooks.SHELL}{hooks._marker(body)}\n{body}echo more\n")
    assert states(followed.json("git", "status"))["post-merge"] == "installed"
    assert states(followed.json("git", "install"))["post-merge"] == "updated"
    assert "/gone" not in path.read_text()
    assert path.read_text().endswith("echo more\n")


@pytest.mark.parametrize("value", ["", ".", "/", "a file", "a file/x/y", ".git/HEAD"])
def test_a_path_that_git_runs_no_hooks_of(workspace: Any, value: str) -> None:
    """Nothing is written, and nothing is called installed; the remedy names the setting."""
    workspace.write("a file", "")
    run_git(workspace.folder, "config", "core.hooksPath", value)
    before = sorted(workspace.folder.rglob("*"))
    for action in ("install", "status", "remove"):
        done = workspace("git", action, code=4)
        assert "git runs no hooks here" in done.stderr
        assert "git config --unset core.hooksPath" in done.stderr
    assert sorted(workspace.folder.rglob("*")) == before


def test_a_relative_path_in_a_linked_work_tree(followed: Any, tmp_path: Path) -> None:
    """Its `.git` is a file, so that git looks below that, and runs none."""
    second = tmp_path / "second"
    run_git(followed.folder, "worktree", "add", "--quiet", str(second), "main")
    run_git(followed.folder, "config", "core.hooksPath", ".git/hooks")
    assert states(followed.json("git", "status")) == dict.fromkeys(HOOKS, "installed")
    for action in ("install", "status", "remove"):
        done = followed("--store", str(second / "file_index"), "git", action, code=4)
        assert f"git runs no hooks here: {second / '.git'} is not a folder" in done.stderr


def test_warnings_stop_no_commit(workspace: Any) -> None:
    """They are said; names that nobody else can check out are errors of the whole."""
    workspace("git", "install")
    workspace.write("file_index/chunked/a/chunk1.md", "")
    run_git(workspace.folder, "add", "--all")
    assert "empty" in run_git(workspace.folder, "commit", "-m", "the first one")
    workspace.write("file_index/chunked/a/con.md", "Words.\n")
    run_git(workspace.folder, "add", "--all")
    assert "unportable-name" in run_git(workspace.folder, "commit", "-m", "name", code=1)


def test_a_link_is_not_followed(workspace: Any) -> None:
    """A symbolic link in place of a hook is another's, also one that leads nowhere."""
    target = workspace.folder / "elsewhere"
    (workspace.folder / ".git" / "hooks" / "post-merge").symlink_to(target)
    assert states(workspace.json("git", "install", code=1))["post-merge"] == "foreign"
    workspace("git", "remove")
    assert not target.exists()
    assert (workspace.folder / ".git" / "hooks" / "post-merge").is_symlink()
    for text in (
        hooks.call_line("post-merge", ["file_index"]),
        hooks.hook_script("post-merge", ["file_index"], "python"),
    ):
        target.write_text(text)
        target.chmod(0o755)
        assert states(workspace.json("git", "install"))["post-merge"] == "called"
        workspace("git", "remove", code=1)
        assert target.read_text() == text


def test_several_stores_share_a_hook(workspace: Any) -> None:
    """Every store of a work tree is served by one hook; removing one leaves the others served."""
    workspace("init", "it's $HOME")
    for name in ("it's $HOME", "file_index"):
        workspace("--store", name, "git", "install")
        workspace.write(f"{name}/chunked/a/chunk1.md", "Words.\n")
    commit_all(workspace.folder)
    run_git(workspace.folder, "checkout", "--quiet", "-b", "next")
    for name in ("it's $HOME", "file_index"):
        assert workspace.json("--store", name, "status")["drift"] == {}
    workspace("git", "remove")
    assert states(workspace.json("git", "status", code=1)) == dict.fromkeys(HOOKS, "absent")
    workspace("--store", "it's $HOME", "git", "status")
    workspace.write("file_index/chunked/b/chunk1.md", "Words.\n")
    workspace.write("it's $HOME/chunked/b/chunk1.md", "Words.\n")
    run_git(workspace.folder, "checkout", "--quiet", "-b", "after")
    assert "untracked" in workspace.drift()
    assert workspace.json("--store", "it's $HOME", "status")["drift"] == {}


def test_the_store_is_the_work_tree(new_workspace: Callable[..., Any]) -> None:
    """A store whose root is the top of the work tree is served as any other."""
    workspace = new_workspace(init=False)
    workspace("init", ".")
    workspace("git", "install")
    commit_all(workspace.folder)
    workspace.write("chunked/a/chunk1.md", "Words.\n")
    run_git(workspace.folder, "checkout", "--quiet", "-b", "next")
    assert workspace.json("status")["drift"] == {}
    workspace.write("chunked/a/chunk1.md", "---\n[\n---\n")
    run_git(workspace.folder, "add", "chunked")
    assert "malformed" in run_git(workspace.folder, "commit", "-m", "one", code=1)


def test_another_folder_of_hooks(workspace: Any) -> None:
    """Hooks go where git looks for them inside the repository; that they name a machine is said."""
    commit_all(workspace.folder)
    run_git(workspace.folder, "config", "core.hooksPath", "our\nhooks")
    report = workspace.json("git", "install", cwd=workspace.store)
    assert report["folder"] == str(workspace.folder / "our\nhooks")
    assert "do not commit" in report["note"]
    assert report["note"].splitlines() == [report["note"]]
    workspace.write("file_index/chunked/a/chunk1.md", "Words.\n")
    run_git(workspace.folder, "checkout", "--quiet", "-b", "next")
    assert "untracked" not in workspace.drift()


@pytest.mark.parametrize("shared", ["{outside}", "/dev/null"])
def test_shared_hooks_are_refused(workspace: Any, tmp_path: Path, shared: str) -> None:
    """A folder of hooks outside the repository serves others, too: nothing is written there."""
    outside = tmp_path / "shared hooks"
    outside.mkdir()
    run_git(workspace.folder, "config", "core.hooksPath", shared.format(outside=outside))
    for action in ("install", "status", "remove"):
        done = workspace("git", action, code=4)
        own = workspace.folder / ".git" / "hooks"
        assert "not a folder" in done.stderr or f"core.hooksPath {own};" in done.stderr
        assert "core.hooksPath" in done.stderr
    assert list(outside.iterdir()) == []
    assert hook_files(workspace) == {}


def test_linked_work_trees_share_hooks(followed: Any, tmp_path: Path) -> None:
    """A second work tree of the repository is followed by the same hooks."""
    run_git(followed.folder, "worktree", "add", "--quiet", str(tmp_path / "second"), "main")
    second = ["--store", str(tmp_path / "second" / "file_index")]
    assert followed.json(*second, "status")["drift"] == {}
    report = followed.json(*second, "git", "install")
    assert report["folder"] == str(followed.folder / ".git" / "hooks")
    assert states(report) == dict.fromkeys(HOOKS, "installed")
    (tmp_path / "second/file_index/chunked/notes.md/chunk1.md").write_text("---\n[\n---\n")
    assert "malformed" in run_git(tmp_path / "second", "commit", "-a", "-m", "x", code=1)
    assert followed.drift() == {}


def test_a_store_in_a_submodule(workspace: Any, new_workspace: Callable[..., Any]) -> None:
    """The hooks of a submodule are its own."""
    commit_all(workspace.folder)
    outer = new_workspace("outer", init=False)
    run_git(outer.folder, "submodule", "--quiet", "add", str(workspace.folder), "inner")
    report = outer.json("--store", "inner", "git", "install")
    assert report["folder"] == str(outer.folder / ".git" / "modules" / "inner" / "hooks")
    assert report["store"] == "file_index"
    outer.write("inner/file_index/chunked/a/chunk1.md", "Words.\n")
    run_git(outer.folder / "inner", "checkout", "--quiet", "-b", "next")
    assert outer.json("--store", "inner", "status")["drift"] == {}


def test_without_git(workspace: Any) -> None:
    """Outside a work tree it says so."""
    shutil.rmtree(workspace.folder / ".git")
    assert "no git work tree" in workspace("git", "install", code=3).stderr


def test_wrong_words(workspace: Any) -> None:
    """Words that fit no action are refused, and hooks' own action is not advertised."""
    workspace("git", "install", "more", code=2)
    workspace("git", "hook", "post-office", code=2)
    workspace("git", code=2)


@pytest.mark.parametrize("python", ["/gone/python 3", "/bin/false"])
def test_a_python_that_is_gone(followed: Any, python: str) -> None:
    """Without the Python that installed them, hooks say so, and git goes on."""
    for name in HOOKS:
        script = hooks.hook_script(name, ["file_index"], python)
        (followed.folder / ".git" / "hooks" / name).write_text(script)
    said = run_git(followed.folder, "checkout", "main")
    assert "filestore: /gone/python 3 is gone" in said or python == "/bin/false"
    edit(followed, "More.")
    said = run_git(followed.folder, "commit", "--all", "-m", "unchecked")
    assert "what is committed was not checked" in said
    assert states(followed.json("git", "install")) == dict.fromkeys(HOOKS, "updated")


def test_a_python_that_a_branch_brings_is_not_run(followed: Any, tmp_path: Path) -> None:
    """An environment in the work tree is ignored by git, until a branch has files of its name."""
    mark = tmp_path / "ran"
    python = followed.folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {mark}\n")
    python.chmod(0o755)
    for name in HOOKS:
        script = hooks.hook_script(name, ["file_index"], str(python))
        (followed.folder / ".git" / "hooks" / name).write_text(script)
    run_git(followed.folder, "checkout", "-b", "own")
    assert mark.exists()
    mark.unlink()
    run_git(followed.folder, *UNHOOKED, "add", "-f", ".venv")
    run_git(followed.folder, *UNHOOKED, "commit", "--quiet", "-m", "theirs")
    run_git(followed.folder, *UNHOOKED, "checkout", "--quiet", "main")
    said = run_git(followed.folder, "checkout", "own")
    assert "a branch may change" in said
    assert not mark.exists()


def test_a_failure_is_said_and_git_goes_on(followed: Any) -> None:
    """A store that cannot be used on a branch makes no checkout fail."""
    settings = followed.store / "filestore.toml"
    sound = settings.read_bytes()
    settings.write_text("[[[")
    commit_all(followed.folder, "broken settings")
    run_git(followed.folder, *UNHOOKED, "checkout", "--quiet", "main")
    said = run_git(followed.folder, "checkout", "other")
    assert "filestore: file_index: " in said
    assert "filestore.toml" in said
    settings.write_bytes(sound)
    shutil.rmtree(followed.store)
    said = run_git(followed.folder, "checkout", "-b", "third")
    assert "filestore" not in said


def test_a_bad_commit_is_stopped(followed: Any) -> None:
    """Unresolved conflicts are not committed, however the commit is made; resolved ones are."""
    chunk = followed.chunked / "notes.md" / "chunk1.md"
    sound = chunk.read_bytes()
    chunk.write_bytes(sound + b"<<<<<<< a\none\n=======\ntwo\n>>>>>>> b\n")
    name = "file_index/chunked/notes.md/chunk1.md"
    for words in (["-a"], ["--only", name]):
        said = run_git(followed.folder, "commit", *words, "-m", "conflict", code=1)
        assert "conflict-markers" in said
        assert "chunked/notes.md/chunk1.md" in said
        assert "git commit --no-verify" in said
    chunk.write_bytes(sound + b"One and two.\n")
    run_git(followed.folder, "commit", "-a", "-m", "resolved")


def test_a_long_sync_goes_on_without_git(followed: Any, script: Callable[..., Any]) -> None:
    """Where following takes long, the hook goes home and the rest is done in the background."""
    edit(followed, "More basalt.")
    program = (
        "import sys; from filestore.git import hooks as git\n"
        "done = git.follow(sys.argv[1], ['file_index', 'gone'], patience_s=0.5)\n"
        "print([(one.store, one.finished) for one in done])\n"
    )
    with writer_lock(str(followed.sidecar / "lock"), command="a test"):
        done = script(program, followed.folder)
        assert done.stdout == "[('file_index', False)]\n"
        assert "modified" in followed.drift()
    deadline = time.monotonic() + 60
    while "modified" in followed.drift():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_folder_of_our_name_is_not_run(followed: Any) -> None:
    """A work tree that holds a Python package of our name does not get it run by a hook."""
    followed.write("filestore/__init__.py", "raise SystemExit('hijacked')\n")
    followed.write("filestore/__main__.py", "raise SystemExit('hijacked')\n")
    assert "hijacked" not in run_git(followed.folder, "checkout", "main")
    assert sys.executable in (followed.folder / ".git/hooks/post-merge").read_text()

"""A repository of a stranger is looked at, and no program that it names is ever started.

The program leaves a mark; plain git, which trusts the repository, proves that it would.
"""

import os
import random
import re
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.chunks.layout import TREE
from filestore.config.layout import Places
from filestore.core.paths import CHUNKS
from filestore.git import process
from filestore.git.hooks import NoRepositoryError, SharedHooksError, repository, status
from filestore.git.repository import (
    blob,
    blob_names,
    deleted_paths,
    head_time,
    history,
    last_commit,
    named_blob,
    unmerged,
)
from filestore.verify import staged
from tests.system.conftest import files_below
from tests.system.hostile_git import (
    COMMANDS,
    DAMAGES,
    LOOKING,
    SETTINGS,
    HostileGit,
    made_up_config,
    run_all,
    setting,
)

ROUNDS: Final = 8
WAIT_S: Final = 1.0
"""How long git is waited for where it may wait for a named pipe."""
SECRET: Final = b"secretword of somebody else\n"


@pytest.fixture
def hostile(workspace: Any) -> HostileGit:
    """A filled store in a repository that is a stranger's."""
    made = HostileGit(workspace)
    made.fill()
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A store of somebody else, outside of the work tree."""
    folder = tmp_path / "outside"
    for name in ("secret.md", "file_index/chunked/secret.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(SECRET)
    return folder


def ask_everything(hostile: HostileGit) -> None:
    """Every question that any module has for git."""
    root, path = str(hostile.workspace.store), "chunked/own.md"
    unmerged(f"{root}/chunked")
    blob(root, path)
    blob(root, path, "")
    last_commit(root, f"chunked/{hostile.chunk}")
    head_time(root)
    for name in blob_names(root).values():
        named_blob(root, name)
    list(history(f"{root}/chunked", hostile.chunk))
    list(history(f"{root}/chunked", "own.md"))
    deleted_paths(root, CHUNKS)
    for look in (
        lambda: staged.check(Places(root=root, sidecar=f"{root}/.sidecar"), TREE),
        lambda: status(repository(root)),
    ):
        try:
            look()
        except (staged.NotInGitError, process.NoAnswerError, NoRepositoryError):
            pass
        except SharedHooksError:
            pass


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("remote.origin.uploadpack",), ("cat-file", "-p", "HEAD:file_index/chunked/own.md")),
        (("gpg.program",), ("log", "-1")),
        (("diff.evil.textconv",), ("log", "-p")),
        (("diff.external",), ("diff", "HEAD", "--ext-diff")),
        (("filter.evil.clean",), ("status",)),
        (("core.fsmonitor",), ("status",)),
    ],
)
def test_the_mark_is_left_where_git_is_trusted(
    hostile: HostileGit, settings: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """Plain git starts the program: what the other tests look for can be found."""
    hostile.set(*settings)
    hostile.plain_git(*words)
    assert hostile.mark.exists()


@pytest.mark.parametrize("together", [5, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_no_setting_starts_a_program(hostile: HostileGit, together: int) -> None:
    """Whatever setting names a program: no question of ours to git starts it."""
    hostile.plant_hooks()
    for start in range(0, len(SETTINGS), together):
        names = SETTINGS[start : start + together]
        hostile.set(*names)
        ask_everything(hostile)
        hostile.assert_nothing_ran(names)


def test_no_command_starts_a_program(hostile: HostileGit) -> None:
    """With every such setting at once, and every hook, no command starts one."""
    hostile.set(*SETTINGS)
    hostile.plant_hooks()
    run_all(hostile.workspace)
    hostile.assert_nothing_ran()


def test_every_setting_that_git_knows(hostile: HostileGit) -> None:
    """A setting of a later git, of which nobody thought here, starts none either."""
    listed = subprocess.run(["git", "help", "-c"], capture_output=True, text=True, check=True)
    names = [re.sub(r"<[^>]*>|\*", "evil", name) for name in listed.stdout.split()]
    names = [name for name in names if re.fullmatch(r"[a-zA-Z]+(\.[^.\s]+)?\.[a-zA-Z]+", name)]
    assert len(names) > 500
    lines = "\n".join(setting(name, str(hostile.program)) for name in names)
    (hostile.git / "config").write_text(lines + "\n")
    ask_everything(hostile)
    run_all(hostile.workspace)
    hostile.assert_nothing_ran()


def test_a_long_configuration_keeps_nobody_waiting(hostile: HostileGit) -> None:
    """A megabyte of settings is searched line by line: the time grows with its size."""
    lines = "[evil]\n" + "\tformat = of objects\n" * 40_000
    (hostile.git / "config").write_text(lines)
    started = time.process_time()
    assert "chunked/own.md" in blob_names(str(hostile.workspace.store))
    assert time.process_time() - started < 5


def test_history_is_read_all_the_same(hostile: HostileGit) -> None:
    """What git has is told although none of the settings is believed."""
    hostile.set(*SETTINGS)
    root = str(hostile.workspace.store)
    assert "chunked/own.md" in blob_names(root)
    assert blob(root, "chunked/own.md") is None
    assert len(list(history(f"{root}/chunked", hostile.chunk))) == 2
    seconds, data = last_commit(root, f"chunked/{hostile.chunk}") or (0, b"")
    assert seconds == head_time(root)
    assert data.endswith(b"More of it.\n")


def test_another_work_tree_is_not_followed(hostile: HostileGit, outside: Path) -> None:
    """`core.worktree` leads no command out of the tree, and no hook into another one."""
    lines = ("repositoryformatversion = 0", f"worktree = {outside}", f"hooksPath = {outside}/hooks")
    (hostile.git / "config").write_text("\n\t".join(["[core]", *lines]) + "\n")
    run_all(hostile.workspace)
    done = hostile.workspace("git", "install", code=3)
    assert "core.worktree" in done.stdout + done.stderr
    assert not (outside / "hooks").exists()
    assert set(files_below(outside)) == {"secret.md", "file_index/chunked/secret.md"}
    assert b"secretword" not in b"".join(files_below(hostile.workspace.store).values())


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_repository_stops_nothing(
    hostile: HostileGit, outside: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever git's folder is made of, every command ends, and nothing outside is read."""
    monkeypatch.setattr(process, "TIMEOUT_S", WAIT_S)
    DAMAGES[damage](hostile, outside)
    ask_everything(hostile)
    run_all(hostile.workspace, LOOKING)
    hostile.assert_nothing_ran(damage)
    assert b"secretword" not in b"".join(files_below(hostile.workspace.store).values())


def bound(path: Path) -> None:
    """A socket; its whole path may be too long for one."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


NO_FILES: Final[dict[str, Callable[[Path], object]]] = {
    "a named pipe": os.mkfifo,
    "a socket": bound,
    "a character device": lambda path: path.symlink_to("/dev/zero"),
}
BELOW: Final = (
    "objects",
    *(f"{name}/one/x" for name in process.SHARED_FOLDERS if name != "objects"),
)
PLACES: Final = (*process.FILES, *process.SHARED_FILES, *process.SETTINGS_FILES, *BELOW)


@pytest.mark.parametrize(
    ("found", "linked"), [*((found, False) for found in NO_FILES), ("a named pipe", True)]
)
def test_what_git_would_wait_for_is_named_before(
    workspace: Any, monkeypatch: pytest.MonkeyPatch, found: str, linked: bool
) -> None:
    """Whatever place of git is no file: the path is said with a remedy, and nothing is waited for.

    Only where the settings are asked for does it matter what they are.
    """
    monkeypatch.setattr(process, "TIMEOUT_S", 10 * WAIT_S)
    workspace.write("note.md", "# Note\n\nWords of basalt.\n")
    workspace("add", "note.md")
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", "first")
    top = workspace.folder
    if linked:
        top = workspace.folder.parent / "linked"
        workspace.git("worktree", "add", "-q", "-b", "linked", str(top))
        shutil.copytree(workspace.sidecar, top / "file_index" / ".sidecar")
    for words in (("git", "install"), ("log", "basalt"), ("search", "--at", "HEAD", "basalt")):
        workspace(*words, cwd=top / "file_index")
    own = Path(process.state_folder(str(top)) or "")
    for place in PLACES:
        is_shared = place in (*process.SHARED_FILES, *BELOW)
        path = (Path(process.common_folder(str(own))) if is_shared else own) / place
        kept = path.with_name("kept")
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            path.rename(kept)
        monkeypatch.chdir(path.parent)
        NO_FILES[found](path)
        asked = [("git", "status"), ("git", "install")]
        if place not in process.SETTINGS_FILES:
            asked += [("log", "basalt"), ("search", "--at", "HEAD", "basalt")]
        for words in asked:
            said = workspace(*words, cwd=top / "file_index", code=3).stderr
            kind = "folder" if place == "objects" else "file"
            expected = f"{path} is {found}, not a {kind}\n  remove {path}, or clone"
            assert expected in said, (words, said)
        for words in (("status",), ("sync",), ("search", "basalt")):
            done = workspace(*words, cwd=top / "file_index", code=None)
            assert done.code in (0, 1), (place, words, done)
        path.unlink()
        if os.path.lexists(kept):
            kept.rename(path)


def test_a_lost_commit_is_not_taken_for_none(workspace: Any) -> None:
    """Where HEAD names what git cannot read, that is said, and what shows more."""
    workspace.write("note.md", "Words of basalt.\n")
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", "first")
    name = workspace.git("rev-parse", "HEAD").strip()
    path = workspace.folder / ".git" / "objects" / name[:2] / name[2:]
    path.unlink()
    path.touch()
    for words in (("log", "basalt"), ("search", "--at", "HEAD", "basalt")):
        said = workspace(*words, code=3).stderr
        assert "git cannot read what 'HEAD' names" in said
        assert "git fsck" in said


def test_git_that_never_ends_is_ended(hostile: HostileGit, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that is a named pipe keeps git waiting, and us no longer than we wait for git."""
    monkeypatch.setattr(process, "TIMEOUT_S", 0.2)
    name = blob_names(str(hostile.workspace.store))[f"chunked/{hostile.chunk}"]
    path = hostile.git / "objects" / name[:2] / name[2:]
    path.unlink()
    os.mkfifo(path)
    assert named_blob(str(hostile.workspace.store), name) is None
    hostile.workspace("repair", "--write-files", "--plan", code=None)
    told = pytest.raises(process.NoAnswerError, match="is a named pipe")
    with process.Blobs(str(hostile.workspace.store)) as blobs, told as error:
        blobs.read(name, 100)
    assert str(path) in error.value.message


def test_an_answer_that_is_too_large_is_none(
    hostile: HostileGit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blob that fills the memory is not taken."""
    monkeypatch.setattr(process, "MOST_BYTES", 8)
    assert blob(str(hostile.workspace.store), "filestore.toml") is None


def test_a_linked_work_tree_is_read(
    workspace: Any, new_workspace: Callable[..., Any], tmp_path: Path
) -> None:
    """Where `.git` is a file, HEAD and index are those of that work tree, objects are shared."""
    workspace.write("file_index/chunked/own.md", "Words.\n")
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", "one")
    linked = tmp_path / "linked"
    workspace.git("worktree", "add", "-q", str(linked))
    (linked / "file_index/chunked/more.md").write_text("More.\n")
    subprocess.run(["git", "add", "."], cwd=linked, check=True)
    root = str(linked / "file_index")
    assert blob(root, "chunked/own.md") == b"Words.\n"
    assert blob(root, "chunked/more.md", "") == b"More.\n"
    assert blob(str(workspace.store), "chunked/more.md", "") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user_is_data_too(hostile: HostileGit) -> None:
    """Git refuses it for what its settings may start; without them it is read."""
    hostile.set(*SETTINGS)
    for path in (hostile.git, hostile.workspace.folder):
        os.chown(path, 12345, 12345)
    root = str(hostile.workspace.store)
    assert "chunked/own.md" in blob_names(root)
    run_all(hostile.workspace, LOOKING)
    hostile.assert_nothing_ran()


@pytest.mark.parametrize("options", [("--object-format=sha256",), ("--object-format=sha1",)])
def test_both_kinds_of_object_names(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A repository with SHA-256 names is read as one with SHA-1."""
    subprocess.run(["git", "init", "-q", *options, str(tmp_path)], check=True)
    (tmp_path / "a.md").write_text("Words.\n")
    subprocess.run(["git", "add", "a.md"], cwd=tmp_path, check=True)
    assert blob(str(tmp_path), "a.md", "") == b"Words.\n"


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_made_up_settings(
    hostile: HostileGit, outside: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings nobody would think of, in a repository that may be broken, start nothing."""
    monkeypatch.setattr(process, "TIMEOUT_S", WAIT_S)
    random_ = random.Random(seed)
    config = made_up_config(random_, hostile, outside).encode()
    (hostile.git / "more").write_bytes(made_up_config(random_, hostile, outside).encode())
    (hostile.git / "config").write_bytes(config)
    shutil.copy(hostile.git / "more", hostile.git / "config.worktree")
    hostile.plant_hooks()
    damage = random_.choice([name for name in DAMAGES if "config" not in name])
    DAMAGES[damage](hostile, outside)
    ask_everything(hostile)
    for words in random_.sample(COMMANDS, 8):
        hostile.workspace(*words, code=None)
    hostile.assert_nothing_ran((seed, damage))
    assert b"secretword" not in b"".join(files_below(hostile.workspace.store).values())
    hooks = [path for path in outside.rglob("*") if stat.S_ISREG(path.lstat().st_mode)]
    assert len(hooks) == 2


def test_settings_of_a_submodule_start_nothing(new_workspace: Any, tmp_path: Path) -> None:
    """A repository inside the work tree brings settings of its own, which no command obeys."""
    workspace = new_workspace(init=False)
    mark = tmp_path / "ran"
    module = workspace.folder / "module"
    subprocess.run(["git", "init", "-q", str(module)], check=True)
    author = ["-c", "user.email=a@b", "-c", "user.name=a"]
    subprocess.run(
        ["git", "-C", str(module), *author, "commit", "-q", "--allow-empty", "-m", "m"], check=True
    )
    for name in ("a.md", "b.md"):
        workspace.write(name, f"# {name}\n\nWords of zebra.\n")
    workspace("init", "--in-place", "--embedder", "builtin", ".")
    workspace.git("add", "-f", "a.md", "b.md", "filestore.toml", "module")
    workspace.git(*author, "commit", "-qm", "all")
    program = module / ".git" / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    program.chmod(0o755)
    (module / "f.t").write_text("x\n")
    (module / ".gitattributes").write_text("*.t filter=x\n")
    for key, value in {"core.fsmonitor": ".git/program", "filter.x.clean": str(program)}.items():
        subprocess.run(["git", "-C", str(module), "config", key, value], check=True)
    (workspace.folder / "b.md").unlink()
    workspace("sync")
    queries = workspace.write("queries.txt", "zebra\n")
    for words in (["compare", "HEAD", "--queries", queries], ["log", "zebra"], ["status"]):
        workspace(*words, code=None)
    workspace("search", "--at", "HEAD", "zebra", code=None)
    assert not mark.exists()


def test_a_pipe_in_place_of_a_hook_is_not_waited_for(workspace: Any) -> None:
    """It is another's hook, as a link to one is."""
    hooks = workspace.folder / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    os.mkfifo(hooks / "post-checkout")
    (hooks / "post-merge").symlink_to("post-checkout")
    for action in ("status", "install", "remove"):
        workspace("git", action, code=None)
    assert "post-checkout" in workspace("git", "status", code=None).stdout

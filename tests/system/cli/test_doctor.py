"""`filestore doctor`: what is wrong with a machine is named, with its cure, and nothing else is."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct

from filestore.cli import doctor
from filestore.config.layout import configuration_folder
from filestore.core.errors import FilestoreError
from filestore.store import watch
from tests.conftest import CHECKOUT
from tests.system.conftest import Workspace

CHECKS: Final = (
    *("version", "store", "settings", "index", "model", "extras"),
    *("git", "watches", "server", "file system", "terminal", "agents"),
)


class Broken(Struct, kw_only=True):
    """A machine with one fault."""

    check: str
    """The only check that may find something."""
    result: str = "warning"
    cause: str
    """A part of what it says."""
    first: str
    """The start of what is to be done first."""
    words: tuple[str, ...] = ()
    """Before the command."""
    cured: bool = False
    """Whether the first command is run, after which all is well."""


@pytest.fixture
def sound(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A store with a document and its hooks, on a machine on which nothing is wrong."""
    monkeypatch.setenv("EDITOR", sys.executable)
    monkeypatch.setenv("HOME", str(workspace.folder.parent))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    workspace.write("lease.md", "# Lease\n\nA secret clause about the cellar.\n")
    workspace("add", "lease.md")
    workspace("git", "install")
    return workspace


def user_file(name: str, text: str) -> Path:
    path = Path(configuration_folder(), "filestore", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def settings_malformed(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The user's settings are no TOML."""
    user_file("settings.toml", "[agents\n")
    return Broken(check="settings", result="error", cause="settings.toml", first="fix ~/")


def settings_of_another_version(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The user's settings have a key that nothing reads."""
    user_file("settings.toml", "[inspectr]\n")
    return Broken(check="settings", cause="did you mean 'inspector'?", first="remove the key")


def model_without_package(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The settings name a model whose packages are not installed."""
    for name in ("onnxruntime", "tokenizers", "huggingface_hub"):
        patch.setitem(sys.modules, name, None)
    with_model(made, "leaf")
    return Broken(
        check="model",
        cause="needs onnxruntime and tokenizers, which are not installed",
        first="pip install huggingface-hub onnxruntime tokenizers",
    )


def with_model(made: Workspace, name: str) -> None:
    path = made.store / "filestore.toml"
    path.write_text(path.read_text().replace("builtin", name))


def another_dimension(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The index has vectors of another model, of 256 numbers."""
    made.in_catalog("UPDATE meta SET value = 'other/1:256' WHERE key = 'fingerprint'")
    return Broken(
        check="model",
        result="error",
        cause="other/1:256, expected builtin/1:384",
        first="filestore embedder set builtin",
    )


def extra_missing(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The settings name a backend whose package is not installed."""
    for name in ("psycopg", "psycopg_binary"):
        patch.setitem(sys.modules, name, None)
    path = made.store / "filestore.toml"
    path.write_text(f'backend = "pgvector"\n{path.read_text()}')
    return Broken(
        check="extras",
        result="error",
        cause="pgvector needs psycopg",
        first="pip install psycopg psycopg-binary",
    )


def index_of_another_user(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The sidecar belongs to somebody else."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(made.sidecar, 12345, 12345)
    return Broken(
        check="index",
        result="error",
        cause="belongs to user 12345",
        first="rm -r ~/",
    )


def index_from_elsewhere(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The store was copied from another machine, whose user's key is not here."""
    user_file("secret", "")
    os.chmod(Path(configuration_folder(), "filestore", "secret"), 0o600)
    return Broken(check="index", cause="is another user's", first="filestore sync", cured=True)


def hooks_missing(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """One of the hooks was deleted."""
    (made.folder / ".git/hooks/post-merge").unlink()
    return Broken(
        check="git", cause="missing: post-merge", first="filestore git install", cured=True
    )


def hooks_outdated(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The hooks start a Python that is gone, as after a new environment was made."""
    from filestore.git import hooks

    with pytest.MonkeyPatch.context() as before:
        before.setattr(hooks.sys, "executable", "/nowhere/bin/python")
        made("git", "install")
    return Broken(
        check="git", cause="outdated: post-checkout", first="filestore git install", cured=True
    )


def no_store(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """No store is where one is named."""
    return Broken(
        check="store",
        result="error",
        cause="no store in elsewhere",
        first="filestore init",
        words=("--store", "elsewhere"),
    )


def variable_to_nowhere(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """FILESTORE names a folder that is gone."""
    patch.setenv("FILESTORE", "~/old-notes")
    return Broken(
        check="store",
        result="error",
        cause="FILESTORE=~/old-notes: no store in ~/old-notes",
        first="unset FILESTORE",
    )


def too_few_watches(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """The system allows fewer watches than the store has folders."""
    patch.setattr(watch, "_MOST_WATCHES", str(made.write("limit", "0\n")))
    return Broken(
        check="watches",
        cause="1 folders are more than the 0 that the system lets you watch",
        first="sysctl fs.inotify.max_user_watches=",
    )


def no_git(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """PATH leads to no git."""
    patch.setenv("PATH", str(made.folder))
    return Broken(check="git", cause="no git in PATH", first="install git")


def socket_of_a_dead_server(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """A server was killed."""
    patch.chdir(made.sidecar)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("server.sock")
    return Broken(
        check="server", cause="server.sock is left of a dead server", first="filestore serve"
    )


def editor_gone(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """EDITOR names a program that is not installed."""
    patch.setenv("EDITOR", "no-such-editor")
    return Broken(check="terminal", cause="$EDITOR names no-such-editor", first="$EDITOR names")


def agent_starts_nothing(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """An agent's configuration starts filestore from an environment that was deleted."""
    server = {"command": "/nowhere/bin/filestore", "args": ["mcp"], "env": {"KEY": "a-token"}}
    path = Path(os.environ["HOME"], ".cursor/mcp.json")
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"filestore-work": server}}))
    return Broken(
        check="agents",
        cause="Cursor starts /nowhere/bin/filestore, which is gone",
        first="filestore mcp --install cursor --yes",
    )


def agent_without_mcp(made: Workspace, patch: pytest.MonkeyPatch) -> Broken:
    """An agent starts filestore, which lacks the package for it."""
    path = Path(os.environ["HOME"], ".cursor/mcp.json")
    path.parent.mkdir()
    server = {"command": sys.executable, "args": ["-P", "-m", "filestore", "mcp"]}
    path.write_text(json.dumps({"mcpServers": {"filestore": server}}))
    patch.setitem(sys.modules, "mcp", None)
    return Broken(
        check="agents",
        result="error",
        cause="Cursor: MCP is not installed",
        first="pip install ",
    )


BROKEN: Final = (
    settings_malformed,
    settings_of_another_version,
    model_without_package,
    another_dimension,
    extra_missing,
    index_of_another_user,
    index_from_elsewhere,
    hooks_missing,
    hooks_outdated,
    no_store,
    variable_to_nowhere,
    too_few_watches,
    no_git,
    socket_of_a_dead_server,
    editor_gone,
    agent_starts_nothing,
    agent_without_mcp,
)


def bad(found: Any) -> dict[str, Any]:
    """The checks that found something, by name."""
    return {one["check"]: one for one in found["checks"] if one["result"] in ("warning", "error")}


def everything(made: Workspace) -> dict[str, Any]:
    """All that lies in the home folder and the work tree, with its times."""
    found = {}
    for path in Path(os.environ["HOME"]).rglob("*"):
        # SQLite makes files of its own while it reads, and removes them.
        if path != made.sidecar:
            seen = path.lstat()
            found[path] = (seen.st_size, seen.st_mtime_ns, seen.st_ino, seen.st_mode)
    return found


def test_a_sound_machine(sound: Workspace) -> None:
    """Each check is ok and the answer is the same as text and as JSON; nothing is written."""
    before = everything(sound)
    found = sound.json("doctor")
    assert (found["clean"], found["first"], bad(found)) == (True, "", {})
    assert [one["check"] for one in found["checks"]] == list(CHECKS)
    lines = sound("doctor").stdout.splitlines()
    assert lines[-1] == "nothing to do here; 'filestore status' looks at the documents"
    for one in found["checks"]:
        assert any(line.startswith(f"{one['result']:8}{one['check']}") for line in lines)
    assert everything(sound) == before


@pytest.mark.parametrize("break_it", BROKEN)
def test_a_fault_is_named_with_its_cure(
    sound: Workspace, monkeypatch: pytest.MonkeyPatch, break_it: Callable[..., Broken]
) -> None:
    """The one check that finds it says why and what to do first, in both forms; it writes nothing.

    Home is `~`, and no word of a document and no token is in it.
    """
    wanted = break_it(sound, monkeypatch)
    before = everything(sound)
    done = sound(*wanted.words, "doctor", "--json", code=1)
    (one,) = bad(done.json).values()
    assert (one["check"], one["result"]) == (wanted.check, wanted.result)
    assert wanted.cause in one["about"]
    assert done.json["first"].startswith(wanted.first)
    said = sound(*wanted.words, "doctor", code=1).stdout
    assert f"{wanted.result:8}{wanted.check}" in said
    *_, last = said.splitlines()
    assert wanted.first
    assert last == f"first: {done.json['first']}"
    assert everything(sound) == before
    for text in (done.stdout, said):
        assert not re.search(f"{sound.folder.parent}|clause|a-token", text)
    if wanted.cured:
        sound(*shlex.split(wanted.first)[1:], code=None)
        assert bad(sound.json("doctor")) == {}


def test_a_read_only_index_is_named_with_the_right_that_lacks(sound: Workspace) -> None:
    """Nothing can be synced then, though all can be searched."""
    sound.sidecar.chmod(0o500)
    dropped = "-dac_override,-dac_read_search"
    rights = ("setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}")
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may do all")
    words = (*(rights if os.geteuid() == 0 else ()), sys.executable, "-m", "filestore", "doctor")
    done = subprocess.run(
        words,
        cwd=sound.store,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    sound.sidecar.chmod(0o700)
    assert "warning index        read-only, so no sync updates it" in done.stdout, done
    assert done.stdout.endswith("first: chmod u+rwx ~/work/file_index/.sidecar\n"), done


def test_a_read_only_file_system_is_named(small_disk: Path, run: Any) -> None:
    """There no mode helps."""
    (small_disk / "a.md").write_text("# One\n")
    assert run("init", "--in-place", "--embedder", "builtin", cwd=small_disk).code == 0
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = run("doctor", cwd=small_disk)
    assert "Read-only file system" in " ".join(done.stdout.split())
    assert done.stdout.endswith("first: make the folder writable, or work on a copy of the store\n")


def test_without_a_store_the_machine_is_checked(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is what lacks; what is about one is left out."""
    done = run("doctor", "--json", cwd=tmp_path)
    assert done.code == 1
    left_out = {"index", "model", "watches", "server", "file system"}
    assert {one["check"] for one in done.json["checks"]} == {*CHECKS} - left_out
    assert list(bad(done.json)) == ["store"]
    assert done.json["first"] == "filestore init"


@pytest.mark.parametrize("place", ["my notes", "notes", "notes-of-two"])
def test_a_command_with_the_home_folder_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A shell makes the same words of it, also where a name was quoted; others keep theirs."""
    home, path = tmp_path / "me", tmp_path / "me" / place
    monkeypatch.setenv("HOME", str(home))
    line = doctor._shown(f"chmod u+rwx {shlex.quote(str(path))}")
    assert str(home) not in line
    made = subprocess.run(["sh", "-c", f"printf %s\\\\n {line}"], capture_output=True, text=True)
    assert made.stdout.splitlines() == ["chmod", "u+rwx", str(path)]
    assert doctor._shown(f"{home}land/a") == f"{home}land/a"


def test_only_what_nobody_expects_names_it(
    sound: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours, and what the machine refuses without a sentence of its own."""
    assert "doctor" not in sound("show", "nowhere.md", code=3).stderr
    assert "doctor" not in sound("--store", "nowhere", "ls", code=3).stderr
    assert "doctor" not in sound("ls", "--frobnicate", code=2).stderr

    def refuse(options: Any) -> int:
        raise error

    monkeypatch.setattr("filestore.cli.files.run_ls", refuse)
    refuse.__annotations__["options"] = doctor.run_doctor.__annotations__["options"]
    error: Exception = OSError(5, "Input/output error", "/dev/x")
    assert "  try: filestore doctor\n" in sound("ls", code=3).stderr
    error = ZeroDivisionError("by nothing")
    with pytest.raises(ZeroDivisionError) as caught:
        sound("ls")
    assert caught.value.__notes__ == ["try: filestore doctor"]
    error = FilestoreError("known")
    assert "doctor" not in sound("ls", code=3).stderr

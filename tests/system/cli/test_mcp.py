"""`filestore mcp --install`: what a program is told, beside all else in its configuration."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from filestore.server.agents import entries, install
from tests.system.conftest import Workspace

KEPT = {"theme": "dark", "mcpServers": {"other": {"command": "x", "args": ["ü"]}}, "n": 1.5}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the programs keep their settings."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("program", "key", "linux", "mac"),
    [
        ("claude-code", "mcpServers", ".claude.json", ".claude.json"),
        (
            "claude-desktop",
            "mcpServers",
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("cursor", "mcpServers", ".cursor/mcp.json", ".cursor/mcp.json"),
        (
            "vscode",
            "servers",
            ".config/Code/User/mcp.json",
            "Library/Application Support/Code/User/mcp.json",
        ),
        ("codex", "mcp_servers", ".codex/config.toml", ".codex/config.toml"),
        ("gemini", "mcpServers", ".gemini/settings.json", ".gemini/settings.json"),
        ("zed", "context_servers", ".config/zed/settings.json", ".config/zed/settings.json"),
    ],
)
def test_a_program_is_told_where_it_looks(
    workspace: Workspace, home: Path, program: str, key: str, linux: str, mac: str
) -> None:
    """Printed alone first; written once the server has answered, and taken out again."""
    place = home / (mac if sys.platform == "darwin" else linux)
    for more in ((), ("--plan", "--yes")):
        said = workspace("mcp", "--install", program, *more)
        assert str(place) in said.stdout
        assert not place.exists()
    done = workspace.json("mcp", "--install", program, "--yes", "--write")
    assert (done["file"], done["written"], done["replaced"]) == (str(place), True, False)
    assert done["question"] == "status"
    assert done["answer"].startswith("clean")
    (entry,) = entries.parsed(place.read_text(), install.PROGRAMS[program].form)[key].values()
    assert entry["args"][-3:] == ["mcp", str(workspace.store), "--write"]
    assert os.path.isabs(entry["command"])
    assert ("type" in entry) == (program in ("vscode", "claude-code"))
    taken = workspace.json("mcp", "--install", program, "--remove")
    assert (taken["removed"], taken["restored"]) == (True, True)
    assert not place.exists()
    workspace("mcp", "--install", program, "--remove", code=1)


def test_programs_are_looked_for_where_their_variables_say(
    workspace: Workspace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder, by the variable of the program itself; the old word is understood."""
    for word, name in (("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")):
        monkeypatch.setenv(name, str(home / "elsewhere"))
        assert workspace.json("mcp", "--install", word)["file"].startswith(f"{home}/elsewhere/")
    assert workspace.json("mcp", "--install", "claude")["program"] == "Claude Desktop"
    assert "did you mean" in workspace("mcp", "--install", "cursr", code=2).stderr


def test_a_server_that_does_not_answer_is_not_written(
    workspace: Workspace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it printed; the program keeps the configuration that it has."""
    broken = workspace.folder / "broken"
    broken.write_text("#!/bin/sh\necho no such thing >&2\nexit 3\n")
    broken.chmod(0o755)
    for found in (str(broken), str(workspace.folder / "none"), "/bin/cat"):
        monkeypatch.setattr(install, "find_program", lambda _, found=found: found)
        said = workspace("mcp", "--install", "cursor", "--yes", code=3).stderr
        assert "cannot be run" in said or "does not answer" in said
        assert ("no such thing" in said) == (found == str(broken))
        assert not (home / ".cursor").exists()


def test_all_else_stays(workspace: Workspace) -> None:
    """Keys, servers, their order, the indentation, the permissions, and a link to the file."""
    real = workspace.write("dotfiles/mcp.json", json.dumps(KEPT, indent="\t", ensure_ascii=False))
    real.chmod(0o640)
    link = workspace.folder / "mcp.json"
    link.symlink_to(real)
    before = real.read_bytes()
    workspace("mcp", "--install", "cursor", "--yes", "--to", link)
    values = json.loads(real.read_text())
    assert list(values) == list(KEPT)
    assert list(values["mcpServers"]) == ["other", "filestore-work"]
    assert values["mcpServers"]["other"] == {"command": "x", "args": ["ü"]}
    assert '\n\t"theme"' in real.read_text()
    assert "ü" in real.read_text()
    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o640)
    workspace("mcp", "--install", "cursor", "--remove", "--to", link)
    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o640)
    assert real.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        '{\n  // mine\n  "mcpServers": {}\n}\n',
        '{"mcpServers": {},}',
        "[1, 2]",
        '{"mcpServers": []}',
        '{"a": 1, "a": 2}',
        '{"a": 1e999}',
        "\xff",
        "\xef\xbb\xbf{}",
        "[" * 100_000,
    ],
)
def test_what_is_no_plain_json_is_not_touched(workspace: Workspace, content: str) -> None:
    """Comments are a person's; it says what is to be added."""
    file = workspace.write("mcp.json", content.encode("latin-1"))
    said = workspace("mcp", "--install", "cursor", "--yes", "--to", file, code=4)
    assert '"command"' in said.stdout
    assert "was not changed" in said.stderr
    assert file.read_bytes() == content.encode("latin-1")


def test_what_was_there_is_told(workspace: Workspace) -> None:
    """An entry of the same name that is replaced, and how the new one is taken back."""
    old = {"mcpServers": {"filestore-work": {"command": "old", "args": ["--mine"]}}}
    file = workspace.write("mcp.json", json.dumps(old))
    told = workspace("mcp", "--install", "cursor", "--yes", "--to", file).stdout
    assert 'before: {"command": "old", "args": ["--mine"]}' in told
    assert "to remove it: filestore mcp --install cursor --remove" in told
    assert (
        "keeps everything else"
        not in workspace("mcp", "--install", "cursor", "--remove", "--to", file).stdout
    )
    assert file.read_text() == json.dumps(old)
    done = workspace.json("mcp", "--install", "cursor", "--yes", "--to", file)
    assert done["before"] == old["mcpServers"]["filestore-work"]


def test_a_file_that_is_not_to_be_written_stays(workspace: Workspace) -> None:
    """One that its owner made read-only, also where the folder would let it be replaced."""
    file = workspace.write("mcp.json", json.dumps(KEPT))
    file.chmod(0o444)
    said = workspace("mcp", "--install", "cursor", "--yes", "--to", file, code=4)
    assert "read-only" in said.stderr
    assert json.loads(file.read_text()) == KEPT
    workspace("mcp", "--install", "cursor", "--yes", "--to", workspace.folder, code=3)
    link = workspace.folder / "new.json"
    link.symlink_to(workspace.folder / "dotfiles" / "mcp.json")
    workspace("mcp", "--install", "cursor", "--yes", "--to", link)
    assert link.is_symlink()
    assert "filestore-work" in link.read_text()


def test_claude_code_is_told_by_its_own_command(workspace: Workspace) -> None:
    """Its file has more than servers in it, and is written while it runs."""
    said = workspace("mcp", "--install", "claude-code", "--write").stdout
    (line,) = (one for one in said.splitlines() if "with Claude Code:" in one)
    words = shlex.split(line.partition(": ")[2])
    assert words[:5] == ["claude", "mcp", "add", "--scope", "user"]
    entry = workspace.json("mcp", "--install", "claude-code", "--write")["server"]
    assert words[words.index("--") + 1 :] == [entry["command"], *entry["args"]]


def test_the_command_works_from_anywhere(workspace: Workspace) -> None:
    """Also where a folder is called like us."""
    entry: Any = workspace.json("mcp", "--install", "claude")["server"]
    trap = workspace.write("elsewhere/filestore/__init__.py", "raise SystemExit(99)\n")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps(hello).encode() + b"\n",
        capture_output=True,
        cwd=trap.parents[1],
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "filestore"


def test_options_that_need_install_say_so(workspace: Workspace) -> None:
    """Rather than wait for an agent."""
    for word in ("--yes", "--remove", "--plan"):
        workspace("mcp", word, code=2)
    workspace("mcp", "--install", "emacs", code=2)


@pytest.mark.parametrize("program", install.PROGRAMS)
def test_what_others_changed_meanwhile_is_kept(workspace: Workspace, program: str) -> None:
    """Only the entry goes from a file that was edited since; of two stores each takes its own."""
    shape = install.PROGRAMS[program]
    place = workspace.write("there", "# mine\n" if shape.form == "toml" else "{}")
    configuration = str(workspace.folder / "configuration")
    wanted, other = (
        install.Installation(
            program="", file=str(place), key=shape.key, name=name, server={"command": name}
        )
        for name in ("filestore-a", "filestore-b")
    )

    def names() -> list[str]:
        return list(entries.parsed(place.read_text(), shape.form).get(shape.key, {}))

    before = place.read_bytes()
    assert install.install(wanted, shape.form, configuration).written
    assert install.install(other, shape.form, configuration).written
    assert not install.install(wanted, shape.form, configuration).written
    planned = install.remove(wanted, shape.form, configuration, plan=True)
    assert (planned.removed, planned.written, names()) == (True, False, [wanted.name, other.name])
    done = install.remove(wanted, shape.form, configuration, plan=False)
    assert (done.removed, done.restored, names()) == (True, False, [other.name])
    assert install.remove(other, shape.form, configuration, plan=False).removed
    assert not install.remove(other, shape.form, configuration, plan=False).removed
    assert names() == []
    place.write_bytes(before)
    write = replace(wanted, server={"command": "c", "args": ["--write"]})
    for one in (wanted, write, wanted):
        assert install.install(one, shape.form, configuration).written
    assert install.remove(write, shape.form, configuration, plan=False).restored
    assert place.read_bytes() == before


def test_the_answer_is_of_the_store(workspace: Workspace) -> None:
    """A document of it is asked for, in the first of several stores."""
    workspace.write("kept.md", "# Kept\n\nA pangolin is asleep.\n")
    workspace("add", "kept.md")
    done = workspace.json("mcp", "--install", "cursor", "--yes", "--to", "a.json")
    assert (done["question"], "pangolin" in done["answer"]) == ("kept", True)
    several = [f"x={workspace.store}", f"y={workspace.store}"]
    done = workspace.json("mcp", *several, "--install", "cursor", "--yes", "--to", "b.json")
    assert (done["name"], "pangolin" in done["answer"]) == ("filestore", True)

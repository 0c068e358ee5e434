"""`filestore mcp --install`: what a program is told, beside all else in its configuration."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
        (
            "claude",
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
    ],
)
def test_a_program_is_told_where_it_looks(
    workspace: Workspace, home: Path, program: str, key: str, linux: str, mac: str
) -> None:
    """Printed alone first; written where that is asked for."""
    place = home / (mac if sys.platform == "darwin" else linux)
    said = workspace("mcp", "--install", program)
    assert str(place) in said.stdout
    assert not place.exists()
    done = workspace.json("mcp", "--install", program, "--yes", "--write")
    assert (done["file"], done["written"], done["replaced"]) == (str(place), True, False)
    (entry,) = json.loads(place.read_text())[key].values()
    assert entry["args"][-3:] == ["mcp", str(workspace.store), "--write"]
    assert os.path.isabs(entry["command"])
    assert ("type" in entry) == (program == "vscode")
    assert not workspace.json("mcp", "--install", program, "--yes", "--write")["written"]
    assert workspace.json("mcp", "--install", program, "--yes")["replaced"]


def test_all_else_stays(workspace: Workspace) -> None:
    """Keys, servers, their order, the indentation, the permissions, and a link to the file."""
    real = workspace.write("dotfiles/mcp.json", json.dumps(KEPT, indent="\t"))
    real.chmod(0o640)
    link = workspace.folder / "mcp.json"
    link.symlink_to(real)
    workspace("mcp", "--install", "cursor", "--yes", "--to", link)
    values = json.loads(real.read_text())
    assert list(values) == list(KEPT)
    assert list(values["mcpServers"]) == ["other", "filestore-work"]
    assert values["mcpServers"]["other"] == {"command": "x", "args": ["ü"]}
    assert '\n\t"theme"' in real.read_text()
    assert "ü" in real.read_text()
    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o640)


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
    assert 'it was: {"command": "old", "args": ["--mine"]}' in told
    assert "to take it back, remove 'filestore-work' there" in told
    file.write_text(json.dumps(old))
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
    said = workspace("mcp", "--install", "claude", "--write").stdout
    (line,) = (one for one in said.splitlines() if "Claude Code:" in one)
    words = shlex.split(line.partition(": ")[2])
    assert words[:5] == ["claude", "mcp", "add", "--scope", "user"]
    entry = workspace.json("mcp", "--install", "claude", "--write")["server"]
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
    workspace("mcp", "--yes", code=2)
    workspace("mcp", "--install", "emacs", code=2)

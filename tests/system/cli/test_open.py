"""`filestore open`: what a search printed leads to the document, in the editor, at the line."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.system.conftest import Workspace

CHECKOUT = Path(__file__).resolve().parents[3]
NOTE = "# File explorer\n\nIt lists every note.\n\nPress F2 on a note to rename it.\n"


@pytest.fixture
def vault(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A folder of notes, and an editor that writes down what it was called with."""
    workspace.write("Vault/File explorer.md", NOTE)
    workspace.write("Vault/a:3:b.md", "# Odd\n\nA capstan turns.\n")
    workspace("add", "Vault")
    editor = workspace.write(
        "bin/vi", f'#!/bin/sh\nfor word; do echo "$word"; done > {workspace.folder}/seen\n'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    return workspace


def opened(vault: Workspace, *words: str) -> list[str]:
    """What the editor was called with."""
    vault("open", *words)
    return (vault.folder / "seen").read_text().splitlines()


def test_a_path_with_its_line(vault: Workspace) -> None:
    """As `search` prints it, with or without the line, or a whole line of its output."""
    path = str(vault.folder / "Vault" / "File explorer.md")
    assert opened(vault, "Vault/File explorer.md:5") == ["+5", path]
    assert opened(vault, "Vault/File explorer.md") == [path]
    assert opened(vault, "../Vault/File explorer.md:5") == ["+5", path]
    line = vault("search", "rename", "-k", "1", "--format", "oneline").stdout
    assert opened(vault, line) == ["+5", path]
    words = vault("search", "rename", "-k", "1").stdout.splitlines()[0]
    assert opened(vault, words) == ["+5", path]


def test_a_chunk_file_leads_to_its_document(vault: Workspace) -> None:
    """At the line in it; `--chunk` stays with the chunk."""
    path = str(vault.folder / "Vault" / "File explorer.md")
    (hit,) = vault.json("search", "rename", "-k", "1")["hits"]
    chunk = vault.store / hit["path"]
    at = next(n for n, line in enumerate(chunk.read_text().splitlines(), 1) if "F2" in line)
    for name in (hit["path"], hit["path"].removeprefix("chunked/"), str(chunk)):
        assert opened(vault, f"{name}:{at}") == ["+5", path]
    assert opened(vault, hit["path"])[1] == path
    assert opened(vault, "--chunk", f"{hit['path']}:{at}") == [f"+{at}", str(chunk)]
    chunk.write_text(chunk.read_text().replace("Press F2", "Press F3"))
    assert opened(vault, f"{hit['path']}:{at}") == [f"+{at}", str(chunk)]


def test_names_with_colons(vault: Workspace) -> None:
    """A name is what is there, not what looks like one."""
    path = str(vault.folder / "Vault" / "a:3:b.md")
    assert opened(vault, "Vault/a:3:b.md") == [path]
    assert opened(vault, "Vault/a:3:b.md:3: A capstan turns.") == ["+3", path]


def test_without_running_anything(vault: Workspace) -> None:
    """The command is printed, quoted for a shell; in JSON with what is opened."""
    done = vault("open", "--print", "Vault/File explorer.md:5")
    assert shlex.split(done.stdout)[1:] == ["+5", str(vault.folder / "Vault" / "File explorer.md")]
    told = vault.json("open", "--print", "Vault/File explorer.md:5")
    assert (told["document"], told["line"], told["page"]) == ("../Vault/File explorer.md", 5, None)
    assert not (vault.folder / "seen").exists()


def test_what_cannot_be_opened(vault: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said what is missing, and what to do."""
    assert "as 'filestore search' prints it" in vault("open", "nowhere.md:3", code=3).stderr
    assert "name what to open" in vault("open", " ", code=2).stderr
    monkeypatch.setenv("EDITOR", "no-such-editor")
    assert "$EDITOR names no-such-editor" in vault("open", "Vault/File explorer.md", code=3).stderr
    monkeypatch.setenv("EDITOR", "false")
    assert (
        "false ended with exit code 1" in vault("open", "Vault/File explorer.md:5", code=3).stderr
    )
    monkeypatch.setenv("EDITOR", "true")
    done = vault("open", "Vault/File explorer.md:5")
    assert "line 5 of" in done.stderr


def test_what_is_no_text_opens_as_the_desktop_does(
    vault: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the page said, as no desktop takes one; without a desktop the file is named."""
    monkeypatch.setattr(sys, "platform", "linux")
    vault.write("paper.pdf", b"%PDF-1.4 nothing")
    git = shutil.which("git")
    assert git is not None
    monkeypatch.setenv("PATH", str(vault.folder / "bin"))
    assert "paper.pdf is not text" in vault("open", "paper.pdf:p2", code=3).stderr
    desktop = vault.write("bin/xdg-open", f'#!/bin/sh\necho "$1" > {vault.folder}/seen\n')
    desktop.chmod(0o755)
    done = vault("open", "paper.pdf:p2: some words")
    assert "page 2 of" in done.stderr
    assert (vault.folder / "seen").read_text() == f"{vault.folder}/paper.pdf\n"


def test_a_line_is_taken_from_a_pipe_and_the_terminal_is_the_editors(
    vault: Workspace, request: pytest.FixtureRequest
) -> None:
    """`search … | fzf | filestore open -`: the editor reads keys, not the pipe."""
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    seen = vault.folder / "seen"
    vault.write(
        "bin/vi",
        f'#!/bin/sh\n[ -t 0 ] && echo "$1 on a terminal" > {seen}.part\nmv {seen}.part {seen}\n',
    )
    server = f"open{os.getpid()}"
    command = (
        f"{sys.executable} -m filestore search rename -k 1 --format oneline"
        f" | head -n 1 | {sys.executable} -m filestore open -"
    )
    request.addfinalizer(
        lambda: subprocess.run(
            ["tmux", "-L", server, "kill-server"], check=False, capture_output=True
        )
    )
    subprocess.run(
        ["tmux", "-L", server, "new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", command],
        cwd=vault.folder,
        check=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    until = time.monotonic() + 60
    while not seen.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert seen.read_text() == "+5 on a terminal\n"

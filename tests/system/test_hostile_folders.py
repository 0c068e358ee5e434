"""Every command in folders full of files that Python, or a search for programs, could run."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.system.conftest import Workspace
from tests.system.hostile_folders import DOCUMENTS, write_documents

ROOT = Path(__file__).parents[2]


def test_nothing_of_the_folder_is_run() -> None:
    """No command, hook or server runs a file of the folder, and every document is indexed."""
    program = ["-W", "ignore", "-m", "tests.system.hostile_folders", "--together"]
    command = [sys.executable, *program]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, errors="replace"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| tui |" in done.stdout


def test_a_project_whose_files_are_called_like_modules(
    new_workspace: Callable[..., Workspace],
) -> None:
    """Somebody's own `json.py` and package `filestore` are documents like all the others."""
    made = new_workspace(init=False)
    write_documents(made.folder)
    own = ("json.py", "tempfile.py", "filestore/__init__.py", "lxml/__init__.py")
    for name in own:
        made.write(name, "x = 1\n")
    done = made("init", "--in-place", "--embedder", "builtin", ".")
    assert "crashed" not in done.stdout + done.stderr
    assert {one["resource"] for one in made.json("ls")["items"]} == {*DOCUMENTS, *own}
    assert made.json("status")["clean"] is True

"""What the pages' commands run in: a git work tree with notes, and a shell."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import filestore

ROOT: Final = Path(__file__).resolve().parent.parent
TIMEOUT_S: Final = 120
UPDATED_S: Final = 1_777_852_800
"""When every note was last changed: 2026-05-04."""
FILES: Final = {
    "handbook/lease.md": """\
---
tags: [contract, rent]
---
# The lease

The renewal of the lease is agreed in writing, two months before it ends.
""",
    "notes.md": "# Notes\n\nAsk about the cellar.\n",
    "page.html": "<html><head><title>Page</title></head>"
    "<body><p>The heating is off.</p></body></html>\n",
    "notes/home/boiler.md": """\
# Boiler

The boiler was serviced in March by Ada.

## Pressure

Keep the pressure between 1.2 and 1.8 bar. Below that, open the filling tap.
""",
    "notes/home/bread.md": """\
---
tags: [recipe]
---
# Bread

Bake for forty minutes at 220 degrees. See [[boiler]].
""",
    "notes/work/flat.md": """\
---
tags: [contract]
status: draft
---
# Flat

## Ending the contract

We may leave the flat with three months of notice, in writing.

## Rent

The rent is paid on the third working day.
""",
    "notes/work/meeting.md": "# Meeting in May\n\n"
    "Lin moves the release to the second week of June.\n",
}


def make(folder: Path) -> Path:
    """A git work tree with the documents and the example store that the pages name."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        os.utime(path, (UPDATED_S, UPDATED_S))
    derived = shutil.ignore_patterns(".sidecar", ".undo", "__pycache__")
    shutil.copytree(ROOT / "example_index", folder / "example_index", ignore=derived)
    return folder


class Shell:
    """Runs one script after another; the working folder stays from one to the next."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder = folder
        self._state = scratch / "folder"
        programs, home = scratch / "programs", scratch / "home"
        programs.mkdir(parents=True)
        home.mkdir()
        package = Path(filestore.__file__).parent.parent
        command = programs / "filestore"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m filestore "$@"\n')
        command.chmod(0o755)
        person = {"NAME": "Ada", "EMAIL": "ada@example.org"}
        self._environment = (
            os.environ
            | {
                f"GIT_{who}_{key}": one
                for who in ("AUTHOR", "COMMITTER")
                for key, one in person.items()
            }
            | {
                "HOME": str(home),
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(package),
                "TMPDIR": str(scratch),
            }
        )

    def run(self, script: str, *, stop: bool) -> subprocess.CompletedProcess[str]:
        """Run a script; with ``stop`` it ends at the first command that fails."""
        state = shlex.quote(str(self._state))
        done = subprocess.run(
            ["bash", "-eu" if stop else "-u", "-c", f"trap 'pwd > {state}' EXIT\n{script}"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        self._folder = Path(self._state.read_text().rstrip("\n"))
        return done

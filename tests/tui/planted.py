"""A small store under git, as a person has one, for the inspector on a real terminal."""

import hashlib
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filestore.browse import InspectedStore

from .terminal import Terminal, installed

NAMES: Final = ("hills", "lakes", "rivers")
_EDITOR: Final = """#!/bin/sh
for file; do :; done
printf 'EDITING BY %s: ' "${0##*/}"
read words
test "$words" = fail && exit 1
echo "$words" >> "$file"
"""
_SELDOM: Final = ("-wal", "-shm")
"""What SQLite makes and removes while somebody reads."""


class Work:
    """A folder under git, with notes and a store made of them."""

    def __init__(self, folder: Path, *, sections: int = 6) -> None:
        self.folder = folder
        self.root = folder / "file_index"
        self.chunked = self.root / "chunked"
        self.configuration = folder / ".configuration"
        notes = folder / "notes"
        notes.mkdir(parents=True)
        for name in NAMES:
            parts = [f"# {name} {at}\n\n{_said(name, at)}\n" for at in range(1, sections + 1)]
            (notes / f"{name}.md").write_text("\n".join(parts))
        with self.store(new=True) as store:
            store.add(notes, each=True)
        self._git("init", "--quiet", "--initial-branch=main")
        (folder / ".gitignore").write_text(".state\n.configuration\n.editors\n")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message=Notes")

    def _git(self, *words: str) -> None:
        author = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
        subprocess.run(["git", "-C", str(self.folder), *author, *words], check=True)

    @contextmanager
    def store(self, *, new: bool = False) -> Iterator[InspectedStore]:
        """The store, apart from the inspector."""
        configuration = str(self.configuration)
        found = (
            InspectedStore.create(
                str(self.root), layout="tree", embedder="builtin", configuration=configuration
            )
            if new
            else InspectedStore(str(self.root), configuration=configuration)
        )
        with found:
            yield found

    def resource(self, name: str) -> Path:
        """The folder of one of the notes."""
        return self.chunked / f"{name}.md"

    def inspector(
        self,
        *options: str,
        environment: Mapping[str, str] | None = None,
        columns: int = 100,
        rows: int = 30,
    ) -> Terminal:
        """The inspector at this store."""
        return Terminal(
            [installed(), "tui", *options],
            str(self.folder),
            columns=columns,
            rows=rows,
            environment=environment,
        )

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of the same program."""
        variables = {**os.environ, "XDG_CONFIG_HOME": str(self.configuration)}
        return subprocess.run(
            [installed(), *words],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def editor(self, name: str) -> str:
        """A program that adds the line it is told to a file; told `fail`, it ends with 1."""
        path = self.folder / ".editors" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(_EDITOR)
        path.chmod(0o755)
        return shlex.quote(str(path))

    def truth(self, *, leftovers: bool = True) -> dict[str, str]:
        """The files of a person, and hashes of their bytes.

        Args:
            leftovers: Whether with what a killed program left half written.
        """
        return {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for top in ("chunked", "source")
            for path in sorted((self.root / top).rglob("*"))
            if path.is_file() and (leftovers or not path.name.startswith(".filestore-tmp-"))
        }

    def batches(self) -> list[str]:
        """The names of the changes that can be undone or redone."""
        with self.store() as store:
            return [group.id for group in store.batches()]

    def everything(self) -> dict[str, tuple[int, int, str]]:
        """Every file of the store with its inode, the time it was changed at, and its bytes."""
        return {
            str(path.relative_to(self.root)): (
                path.stat().st_ino,
                path.stat().st_mtime_ns,
                hashlib.sha256(path.read_bytes()).hexdigest(),
            )
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.name.endswith(_SELDOM)
        }

    def findings(self) -> set[tuple[str, str]]:
        """What a full verification finds."""
        with self.store() as store:
            found = store.verify(level="full").findings
        return {(one.code, one.path) for one in found}


def _said(name: str, at: int) -> str:
    return f"All about {name} of the order {at}, quiet and wide. " + "Water and stone. " * 8

"""The keys that seventeen jobs take in the inspector, on a real terminal under tmux.

``python tests/bench/keystrokes.py``. Each job begins where a person would come to want it, and the
screen, the clipboard or the disk has to show that it was done, else the run ends there. Keys are
counted; words that are typed are not, they are as many as the person has in mind. The yardstick is
the best peer: lazygit, yazi, k9s, harlequin and the inspector of haiku.rag, counted by hand.
"""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import measure
from measure import Row

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from filestore.config.layout import copy_example  # noqa: E402
from tests.tui.terminal import WAIT_S, Terminal  # noqa: E402

SIZE: Final = {"columns": 120, "rows": 40}
CAPTIONS: Final = {"Enter": "enter", "Space": "space", "C-o": "^o", "C-s": "^s"}
TYPED: Final = "="
"""What follows is typed, and counts nothing."""
MERGED: Final = "<<<<<<< HEAD\nours {0}\n=======\ntheirs {0}\n>>>>>>> branch\n"
ALL: Final = "8 documents"


class Keyboard(Terminal):
    """A terminal that counts the keys of each job."""

    def __init__(self, folder: str, environment: dict[str, str], rows: list[Row]) -> None:
        super().__init__(measure.filestore("tui"), folder, environment=environment, **SIZE)
        self._tmux("set-option", "-s", "set-clipboard", "on")
        self._rows = rows

    def job(
        self, name: str, peer: str, most: int, *steps: str, done: Callable[[], bool] | None = None
    ) -> None:
        """Do it, and count.

        Args:
            name: For the table.
            peer: The keys of the best peer.
            most: So many keys are the goal.
            steps: A key, and after a space what the screen has to show then.
            done: What has to become so in the end.
        """
        keys, labels = 0, list[str]()
        for step in steps:
            key, _, seen = step.partition(" ")
            if key.startswith(TYPED):
                self.write(key.removeprefix(TYPED))
                labels.append("words")
            else:
                self.type(key)
                labels.append(f"`{CAPTIONS.get(key, key)}`")
                keys += 1
            self.until(seen)
        deadline = time.monotonic() + WAIT_S
        while done is not None and not done():
            assert time.monotonic() < deadline, f"{name}: not done\n{self.picture()}"
            time.sleep(0.05)
        ours = f"{' '.join(labels)} = {keys}"
        self._rows.append(
            Row(figure=name, ours=ours, yardstick=peer, goal=f"{most}", met=keys <= most)
        )

    def rest(self) -> None:
        """Wait until the screen is the same for a second: a person looks at it first."""
        before, now = "", self.picture()
        while before != now:
            time.sleep(1)
            before, now = now, self.picture()

    def copied(self) -> str:
        """What the clipboard holds."""
        return self._tmux("show-buffer", check=False).strip()


def edited(path: Path, words: str) -> None:
    """Change a file as an editor does."""
    path.write_text(path.read_text(encoding="utf-8") + words, encoding="utf-8")


def chunk_store(keyboard: Keyboard, root: Path, opened: Path) -> None:
    """The jobs in a store of chunk files."""
    job, chunked = keyboard.job, root / "chunked"
    found, first = "chunk24-how-often.md", chunked / "glossary.md" / "chunk1.md"
    keyboard.until("96 chunks", "clean")
    keyboard.press("s", "a phrase")
    keyboard.write("exclusions")
    keyboard.press("Enter", "escape returns")  # now the process that searches has its store open
    keyboard.type("Escape", "Escape")
    keyboard.until("96 chunks")
    steps = ("s escape returns", "=prices >   1 Reviewing > How often")
    job("find a note by topic", "1 (fzf), 2 (haiku.rag)", 1, *steps)
    keyboard.rest()
    keyboard.type("Enter", "Enter")
    keyboard.until("96 chunks", found)
    opened.touch()
    words = opened.read_text
    line = "open a hit in $EDITOR at its line"
    job(line, "1 (lazygit)", 1, "e", done=lambda: "+" in words() and f"/{found}" in words())
    keyboard.rest()
    job("copy a path", "1 (lazygit)", 1, "y", done=lambda: keyboard.copied().endswith(found))
    job("read the whole document", "1 (haiku.rag)", 1, "t ── chunk25")
    job("search in a document", "1 (less)", 1, "/ words to find", "=unmounted 1 of 1")
    keyboard.type("Escape", "Escape", "Escape")
    job("filter", "1 (yazi)", 1, "/ ~regex", "=rnmrep 5 chunks of 1 document")
    keyboard.press("Escape", ALL)
    for name, step in (("log", "@ │ Log"), ("errors", "E │ Errors"), ("tasks", "w │ Tasks")):
        job(f"see the {name}", "1 (lazygit)", 1, step)
        keyboard.press("Escape", ALL)
    job("what does a key do", "2 (lazygit)", 2, "? Keys", "/", "=marked │  y")
    keyboard.type("Escape", "Escape")
    before = sorted(chunked.iterdir())
    keyboard.type("G", "k", "k")
    keyboard.cursor(row="▸ paper-archive.pdf")
    job(
        "mark three and remove", "4 (yazi)", 5, *["Space"] * 3, "d undoes it", "y removed",
        done=lambda: len(list(chunked.iterdir())) == len(before) - 3,
    )  # fmt: skip
    keyboard.press("Escape", "5 documents")
    steps = ("u comes back", "y undone")
    job("undo", "2 (lazygit)", 2, *steps, done=lambda: sorted(chunked.iterdir()) == before)
    keyboard.until("undone", "clean")
    edited(first, "One line more.\n")
    keyboard.until("Verify(1)")
    job("what drifted, and why", "1-2 (lazygit)", 2, "2 modified", "j +One line more.")
    job("repair one", "1-2 (lazygit)", 3, "p 1 of 1", "A y confirms", "y applied 1 step")
    keyboard.until("clean")
    for name in ("chunk2.md", "chunk3.md", "chunk4.md"):
        edited(first.with_name(name), "One line more.\n")
    keyboard.until("Verify(3)")
    steps = ("3 Repair]", "p 3 of 3", "A y confirms", "y applied 3 steps")
    job("repair all", "1-2 (lazygit)", 4, *steps)
    keyboard.until("clean")
    keyboard.press("q", "ENDED 0")


def in_place(keyboard: Keyboard, notes: Path, other: str) -> None:
    """The jobs in a store of notes where they lie."""
    job, merged = keyboard.job, notes / "keeping" / "reviewing.md"
    keyboard.until("50 passages")
    keyboard.type("G", "l", "l")
    keyboard.until("┃# A field guide")
    job("follow a link", "1-2 (lynx)", 2, "Enter sne idea", "a ┃# Naming notes")
    job("see the backlinks", "1 (zk)", 1, "f index.md  :24")
    job("go to one of them", "1-2 (zk)", 2, "Enter ┃  writing/naming-notes.md  :24")
    keyboard.press("t", "┃## What is in it")
    job("see the neighbours", "1", 1, "b > 0.46 Catching")
    job("go to one, and return", "1-2, 1 (yazi)", 3, "Enter │keeping", "C-o │index.md")
    edited(merged, "".join(map(MERGED.format, (1, 2))))
    keyboard.until("Verify(1)")
    keyboard.type("2", "j")
    keyboard.until("theirs 1")
    job(
        "a merge conflict of two hunks", "2-3 a hunk (lazygit)", 4,
        "t conflict 1 of 2", "1 conflict 2 of 2", "2 y confirms", "y applied",
        done=lambda: merged.read_text(encoding="utf-8").endswith("ours 1\ntheirs 2\n"),
    )  # fmt: skip
    steps = (f"C-s open {other}", f"Enter filestore  {other}")
    job("switch the store", "2 (lazygit)", 2, *steps)


def main() -> None:
    """Count, and print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        opened, editor = work / "opened", work / "vim"
        editor.write_text(f'#!/bin/sh\necho "$@" > {shlex.quote(str(opened))}\n')
        editor.chmod(0o755)
        environment = {f"XDG_{name}_HOME": str(work / name) for name in ("CONFIG", "STATE")}
        os.environ.update(environment)
        root, notes = work / "example", work / "notes"
        copy_example(str(root))
        shutil.copytree(root / "source" / "field-guide", notes)
        made = measure.filestore("init", "--in-place", "--embedder", "builtin")
        measure.run(made, folder=str(notes))
        measure.run(measure.filestore("sync"), folder=str(root))
        environment["EDITOR"] = str(editor)
        with Keyboard(str(root), environment, rows) as keyboard:
            chunk_store(keyboard, root, opened)
        with Keyboard(str(notes), environment, rows) as keyboard:
            in_place(keyboard, notes, root.name)
    print(measure.table("Keys of the inspector", rows))


if __name__ == "__main__":
    main()

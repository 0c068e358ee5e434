"""The whole life of a repository of notes, commit by commit, in place: what is embedded when.

``python tests/bench/in_place_life.py [--repository BUNDLE] [--commits N]``. Each commit of the
history is checked out, from the first one, and followed by ``sync``. Each text of a section that
was ever there is to be embedded once, and git is to see nothing new but the settings. Without a
repository one is made up: notes written, edited, renamed, and sections that move between them.
"""

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import measure
from stores import TextMaker

from filestore.store import Store
from filestore.sync.apply import SyncReport

IDENTITY = ("-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0")
CHANGES = 6
"""Files that a made-up commit changes, at most."""


def main() -> int:
    """Measure and print the table; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repository", metavar="BUNDLE", help="a git repository, cloned first")
    parser.add_argument("--commits", type=int, default=200, help="at most; default: %(default)s")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "configuration")
        root = os.path.join(folder, "notes")
        if given.repository:
            _run(folder, "git", "clone", "-q", given.repository, root)
        else:
            os.mkdir(root)
            make_history(root, given.commits)
        rows = _life(root, given.commits)
    print(measure.table("The life of a folder of notes in place", rows))
    return 1 if any(row.met is False for row in rows) else 0


def make_history(root: str, commits: int, seed: int = 5) -> None:
    """A repository whose notes are written, edited, renamed, cut up and removed."""
    maker, chance = TextMaker(seed), random.Random(seed)
    _run(root, "git", "init", "-q")
    for number in range(commits):
        notes = sorted(Path(root).glob("*.md"))
        for change in range(chance.randint(1, CHANGES)):
            name = Path(root, f"{maker.word()} {number}-{change}.md")
            if len(notes) < 4:
                sections = [f"## {maker.word()}\n\n{maker.text()}" for _ in range(4)]
                name.write_text("\n".join(sections))
                continue
            note = notes.pop(chance.randrange(len(notes)))
            _change(note, name, notes, maker, chance)
        _run(root, "git", "add", "-A")
        _run(root, "git", *IDENTITY, "commit", "-q", "--allow-empty", "-m", f"change {number}")


def _change(
    note: Path, name: Path, others: list[Path], maker: TextMaker, chance: random.Random
) -> None:
    """Edit a section, write one more, rename the note, move a section to another note, or copy."""
    before, mark, last = note.read_text().rpartition("\n## ")
    match chance.randrange(6):
        case 0:
            note.rename(name)
        case 1 if mark:
            note.write_text(before)
            others[0].write_text(others[0].read_text() + mark + last)
        case 2:
            name.write_text(note.read_text())
        case 3:
            note.unlink()
        case 4:
            note.write_text(f"{note.read_text()}\n## {maker.word()}\n\n{maker.text()}")
        case _:
            note.write_text(f"{before}{mark}{last}{maker.word()}\n")


def _life(root: str, commits: int) -> list[measure.Row]:
    history = _run(root, "git", "rev-list", "--topo-order", "--reverse", "--all").split()[:commits]
    _run(root, "git", "checkout", "-q", history[0])
    measure.run(measure.filestore("init", "--in-place", "--embedder", "builtin"), folder=root)
    # What `init` indexed is not told in numbers: a sync from nothing is.
    shutil.rmtree(Path(root, ".filestore"))
    started = time.perf_counter()
    embedded = _sync(root).embedded
    first_s = time.perf_counter() - started
    texts, dirty = _texts(root), 0
    took: list[float] = []
    for commit in history[1:]:
        _run(root, "git", "checkout", "-q", commit)
        started = time.perf_counter()
        report = _sync(root)
        took.append(time.perf_counter() - started)
        embedded += report.embedded
        texts |= _texts(root)
        dirty += _run(root, "git", "status", "--porcelain").split() != ["??", "filestore.toml"]
    _run(root, "git", "checkout", "-q", history[0])
    again = _sync(root)
    return [
        measure.counted("commits", len(history), len(history)),
        measure.counted("texts embedded over the whole life", embedded, len(texts)),
        measure.counted("embedded back at the first", again.embedded, 0),
        measure.counted("commits after which git saw more than the settings", dirty, 0),
        measure.Row(figure="first index", ours=f"{first_s:.2f} s"),
        measure.Row(
            figure="a `sync` after a commit, median",
            ours=measure.milliseconds(sorted(took)[len(took) // 2] if took else 0.0),
        ),
    ]


def _sync(root: str) -> SyncReport:
    with Store(root) as store:
        return store.sync()


def _texts(root: str) -> set[bytes]:
    """The keys of all texts that are there."""
    with closing(sqlite3.connect(Path(root, ".filestore", "catalog.sqlite"))) as catalog:
        return {key for (key,) in catalog.execute("SELECT key FROM vectors")}


def _run(folder: str, *words: str) -> str:
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())

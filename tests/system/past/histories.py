"""Stores with a history in git, and what a store built from the checkout of a commit answers."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import filestore
from filestore.past.views import PastStore
from filestore.store import Store

WORDS = (  # noqa: SIM905
    "anchor basket candle daughter engine feather garden harbour island jacket kettle ladder"
    " market needle orchard pepper quarry ribbon saddle timber valley window yellow zephyr"
).split()
MODES = ("hybrid", "vector", "keyword")


class History:
    """A git work tree with a store in it, changed commit by commit."""

    def __init__(self, folder: Path, *, layout: str, seed: int) -> None:
        self.folder = folder
        self.layout = layout
        self._random = random.Random(seed)
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.root = folder if layout == "in-place" else folder / "file_index"
        self.commits: list[str] = []

    def git(self, *words: str) -> str:
        """Run git in the folder."""
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def grow(self, commits: int) -> None:
        """Go on for so many commits, each of which changes a few documents."""
        for number in range(commits):
            if not self.commits:
                for _ in range(12):
                    self._write(self._new())
                with filestore.create(self.root, layout=self.layout, embedder="builtin"):
                    pass
            else:
                for _ in range(self._random.randint(1, 4)):
                    self._change()
            with filestore.open(self.root) as store:
                if self.layout != "in-place" and number == 0:
                    store.add(self.folder / "notes", each=True)
                elif self.layout != "in-place":
                    store.update(remove_gone=True)
                    self._edit_a_chunk()
                store.sync(forget_missing=True)
            self.git("add", "-A")
            self.git("commit", "-q", "--allow-empty", "-m", f"change {number}")
            self.commits.append(self.git("rev-parse", "HEAD"))

    @property
    def notes(self) -> list[Path]:
        """The documents that are there."""
        return sorted((self.folder / "notes").rglob("*.md"))

    def _new(self) -> Path:
        part = self._random.choice(("", "plans/", "trips/old/"))
        return self.folder / "notes" / f"{part}{self._random.randrange(10**6)}.md"

    def _write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(self._section(number) for number in range(3)))

    def _section(self, number: int) -> str:
        words = " ".join(self._random.choices(WORDS, k=self._random.randint(8, 60)))
        return f"{'#' * (1 + (number > 0))} The {self._random.choice(WORDS)}\n\n{words}.\n\n"

    def _change(self) -> None:
        kind = self._random.choice(("new", "edit", "edit", "add", "rename", "delete", "ignore"))
        path = self._random.choice(self.notes)
        if kind == "new" or len(self.notes) < 5:
            self._write(self._new())
        elif kind == "edit":
            text = path.read_text()
            path.write_text(text.replace(self._random.choice(text.split()), "changed", 1))
        elif kind == "add":
            with path.open("a") as file:
                file.write(self._section(2))
        elif kind == "rename":
            new = self._new()
            new.parent.mkdir(parents=True, exist_ok=True)
            path.rename(new)
        elif kind == "delete":
            path.unlink()
        elif self.layout == "in-place":
            (path.parent / ".gitignore").write_text(f"{path.name}\n")

    def _edit_a_chunk(self) -> None:
        chunks = sorted(path for path in (self.root / "chunked").rglob("*.md") if path.is_file())
        with self._random.choice(chunks).open("a") as file:
            file.write(f"\nBy hand: {self._random.choice(WORDS)}.\n")

    def built(self, commit: str, folder: Path) -> Path:
        """A store built from a fresh checkout of a commit; returns its root."""
        shutil.rmtree(folder, ignore_errors=True)
        self.git("worktree", "prune")
        self.git("worktree", "add", "-q", "--detach", str(folder), commit)
        root = folder / self.root.relative_to(self.folder)
        if not (root / "filestore.toml").exists():
            shutil.copyfile(self.root / "filestore.toml", root / "filestore.toml")
        with filestore.open(root) as store:
            store.sync()
        return root


def answers(asked: Store | PastStore, queries: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """What is answered to some queries in each mode: where, how well, how fresh."""
    for query in queries:
        for mode in MODES:
            for hit in asked.search(query, k=8, mode=mode, syntax="plain"):
                place = (hit.document, hit.line, hit.end_line, hit.excerpt, hit.freshness)
                yield query, mode, hit.path, f"{hit.score:.5f}", *place


def queries_of(root: Path, count: int, seed: int) -> list[str]:
    """Words that stand in the files of a store, and some that do not."""
    chosen = random.Random(seed)
    files = sorted(
        path for path in root.rglob("*.md") if path.is_file() and ".filestore" not in path.parts
    )
    found = []
    for path in chosen.sample(files, min(count, len(files))):
        words = path.read_text(errors="replace").split()
        start = chosen.randrange(max(1, len(words)))
        found.append(" ".join(words[start : start + 4]) or "nothing")
    return [*found, " ".join(chosen.sample(WORDS, 3))]


def seen(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file of a folder but for what is derived."""
    found = {}
    for path, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in (".sidecar", ".filestore", "worktrees")]
        for name in names:
            state = os.lstat(os.path.join(path, name))
            found[os.path.join(path, name)] = (state.st_size, state.st_mtime_ns)
    return found

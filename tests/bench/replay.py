"""Answers after a history beside those of an index made from the same files, which has none.

``python tests/bench/replay.py [--repository BUNDLE] [--points N] [--texts N …]``. A store lives
through random additions, edits, deletions, moves and updates of originals, or through the commits
of a repository; at each point it is asked what a store made anew of its files is asked, by keyword,
by vector and by both.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import measure
from stores import TextMaker

from filestore.search.answer import Hit
from filestore.sidecar.fulltext_file import EXACT_TEXTS
from filestore.store import Store

QUERIES = 8
"""Questions at each point, each in three modes."""
K = 10
MODES = ("keyword", "vector", "hybrid")
NEAR = 0.01
"""Hits may change places where their scores differ by less than this share."""


@dataclass(kw_only=True)
class Told:
    """How the answers of two stores compare."""

    answers: int = 0
    others: int = 0
    """Answers with other hits."""
    orders: int = 0
    """Answers with the same hits in another order."""
    far: int = 0
    """Among both those where more than neighbours of nearly the same score changed places."""
    scores: int = 0
    """Answers with the same hits and other scores."""
    seen: list[str] = field(default_factory=list)
    """The first questions that were answered otherwise."""


def main() -> int:
    """Replay and print the table; 1 where an answer depends on the past."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repository", metavar="BUNDLE", help="a git repository, cloned first")
    parser.add_argument("--points", type=int, default=20, help="of a history; default: %(default)s")
    parser.add_argument("--texts", type=int, nargs="*", default=[300, 1_000, 5_000])
    parser.add_argument("--changes", type=int, help="at a point, at most; default: 1 in 50 texts")
    parser.add_argument("--layouts", nargs="*", default=["tree", "flat", "in-place"])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows: list[measure.Row] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "configuration")
        for layout in given.layouts:
            root, few = Path(folder, f"{layout}-languages"), 60
            life = Languages(root, layout, few, few // 4, random.Random(given.seed))
            rows += _rows(f"{layout}, two languages", root, life.points(given.points), texts=few)
            for texts in given.texts:
                root = Path(folder, f"{layout}-{texts}")
                life = Life(root, layout, texts, given.changes, random.Random(given.seed))
                name, points = f"{layout}, {texts:,} texts", life.points(given.points)
                rows += _rows(name, root, points, texts=texts)
                shutil.rmtree(root)
        if given.repository:
            root = Path(folder, "repository")
            points = _commits(given.repository, root, given.points)
            rows += _rows("a repository, in place", root, points)
    print(measure.table("Answers after a history, beside an index made anew", rows))
    return 1 if any(row.met is False for row in rows) else 0


def _rows(name: str, root: Path, points: Iterator[None], *, texts: int = 0) -> list[measure.Row]:
    told = Told()
    chance = random.Random(7)
    for number, _ in enumerate(points):
        with Store(root) as store:
            # It indexes what is little, before the rest is.
            store.search("a", mode="keyword")
            store.sync()
        made = _made_anew(root)
        _compare(root, made, _questions(root, chance, number), told)
        shutil.rmtree(made)
    for line in told.seen:
        print(line, file=sys.stderr)
    far = f"{name}: other by more than neighbours within 1 %"
    counts = {
        f"{name}: answers with other hits, of {told.answers:,}": told.others,
        f"{name}: in another order": told.orders,
        f"{name}: with other scores": told.scores,
    }
    if texts > EXACT_TEXTS:
        rows = [measure.Row(figure=figure, ours=f"{found:,}") for figure, found in counts.items()]
    else:
        rows = [measure.counted(figure, found, 0) for figure, found in counts.items()]
    return [*rows, measure.counted(far, told.far, 0)]


def _made_anew(root: Path) -> Path:
    """The same files with an index made from scratch; embeddings are kept, being of the text."""
    made = root.with_name(f"{root.name}-anew")
    is_in_place = Path(root, ".filestore").is_dir()
    sidecar = ".filestore" if is_in_place else ".sidecar"
    shutil.copytree(root, made, ignore=shutil.ignore_patterns(".git", ".undo"), symlinks=True)
    for part in Path(made, sidecar).iterdir():
        if part.name.startswith("embeddings"):
            continue
        shutil.rmtree(part) if part.is_dir() else part.unlink()
    with Store(made) as store:
        store.sync()
    return made


def _questions(root: Path, chance: random.Random, number: int) -> list[str]:
    """Words of the texts that are there, one to five of them, and a phrase."""
    texts = [path for path in _files(root) if ".git" not in path.parts]
    asked = ["Haus", "house", "Rechnung", "Garten"]
    for place in range(QUERIES):
        words = re.findall(r"\w{2,}", chance.choice(texts).read_text(errors="replace")) or ["note"]
        count = chance.randint(1, 5)
        if place % 4 == 3:
            start = chance.randrange(len(words))
            asked.append(f'"{" ".join(words[start : start + 2])}"')
        else:
            asked.append(" ".join(chance.choice(words) for _ in range(count)))
    return asked


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.md") if path.is_file())


def _compare(root: Path, made: Path, questions: Sequence[str], told: Told) -> None:
    with Store(root) as lived, Store(made) as anew:
        for question in questions:
            for mode in MODES:
                ours = lived.search(question, k=K, mode=mode).hits
                theirs = anew.search(question, k=K, mode=mode).hits
                told.answers += 1
                kind = _difference(ours, theirs)
                if not kind:
                    continue
                setattr(told, kind, getattr(told, kind) + 1)
                told.far += kind != "scores" and not _is_near(ours, theirs)
                if kind != "scores" and len(told.seen) < 5:
                    told.seen.append(f"{kind} {mode} {question!r}: {_shown(ours)} {_shown(theirs)}")


def _difference(ours: Sequence[Hit], theirs: Sequence[Hit]) -> str:
    mine, other = ([(hit.path, hit.copies) for hit in hits] for hits in (ours, theirs))
    if sorted(mine) != sorted(other):
        return "others"
    if mine != other:
        return "orders"
    return "scores" if [hit.score for hit in ours] != [hit.score for hit in theirs] else ""


def _is_near(ours: Sequence[Hit], theirs: Sequence[Hit]) -> bool:
    """Whether only hits of nearly the same score changed places, or came and went at the end."""
    if len(ours) != len(theirs):
        return False
    return all(
        mine.path == other.path or abs(mine.score - other.score) <= NEAR * abs(other.score)
        for mine, other in zip(ours, theirs, strict=True)
    )


def _shown(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    return [(hit.path, round(hit.score, 5)) for hit in hits][:4]


class Life:
    """A store of about so many texts, and what happens to it."""

    def __init__(
        self, root: Path, layout: str, texts: int, changes: int | None, chance: random.Random
    ) -> None:
        self._root, self._layout, self._chance = root, layout, chance
        self._maker, self._made = TextMaker(texts), 0
        self._texts = texts
        self._changes = changes or max(2, texts // 50)
        self._notes = root if layout == "in-place" else root.with_name(f"{root.name}-originals")
        self._notes.mkdir(parents=True, exist_ok=True)

    def points(self, count: int) -> Iterator[None]:
        """Change the files, and stop at each point."""
        for _ in range(self._texts // 2):
            self._write(self._new_note())
        if self._layout == "in-place":
            Store.create(self._root, layout="in-place", embedder="builtin")
        else:
            Store.create(self._root, layout=self._layout, embedder="builtin")
            with Store(self._root) as store:
                store.add(*sorted(self._notes.iterdir()))
        yield
        for _ in range(count - 1):
            for _ in range(self._chance.randint(1, self._changes)):
                self._change()
            if self._layout != "in-place":
                with Store(self._root) as store:
                    store.sync()
                    store.add(*sorted(self._notes.iterdir()))
                    store.update(remove_gone=True)
            yield

    def _new_note(self) -> Path:
        self._made += 1
        return self._notes / f"{self._maker.word()}-{self._made}.md"

    def _write(self, path: Path) -> None:
        sections = [f"## {self._maker.word()}\n\n{self._maker.text()}" for _ in range(2)]
        if self._made % 9 == 0:  # templates tie
            sections[0] = "## Template\n\nThe agenda of the meeting is to be filled in by Friday.\n"
        path.write_text("\n".join(sections))

    def _change(self) -> None:
        """One thing that happens to originals, or to chunk files by hand."""
        notes = sorted(self._notes.glob("*.md"))
        chunks = _files(Path(self._root, "chunked"))
        pool = chunks if chunks and self._chance.random() < 0.5 else notes
        if len(notes) < 5 or self._chance.random() < 0.25:
            self._write(self._new_note())
            return
        path = self._chance.choice(pool)
        match self._chance.randrange(4):
            case 0:
                path.unlink()
            case 1 if pool is notes:
                path.rename(self._new_note())
            case _:
                path.write_text(f"{path.read_text()}{self._maker.text(12)}")


class Languages(Life):
    """One whose texts are in two languages, now more in one and now in the other.

    Lists tell neither, and so are in that of most texts.
    """

    _LISTS = ("Häuser und Räder", "Rechnungen", "Gärten", "houses, wheels", "invoices")
    _SENTENCES = (
        "Das ist eine Notiz für die {0}, und sie ist nicht von mir.",
        "This is a note about the {0}, and it was not written by me.",
    )

    def _write(self, path: Path) -> None:
        kind = self._made % 3
        if kind == 2:
            listed = "".join(f"- {one}\n" for one in self._chance.sample(self._LISTS, 2))
            path.write_text(f"{listed}- {self._maker.word()}\n")
        else:
            path.write_text(f"{self._SENTENCES[kind].format(self._maker.word())}\n")


def _commits(bundle: str, root: Path, points: int) -> Iterator[None]:
    """A repository checked out at points evenly spread over its history."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    subprocess.run(["git", "clone", "-q", "--no-checkout", bundle, str(root)], check=True)
    history = git("rev-list", "--topo-order", "--reverse", "--all").split()
    step = max(1, len(history) // points)
    for number, commit in enumerate(history[::step][:points]):
        git("checkout", "-q", "-f", commit)
        if not number:
            Store.create(root, layout="in-place", embedder="builtin")
        yield


if __name__ == "__main__":
    sys.exit(main())

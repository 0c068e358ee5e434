"""What stands first when a person asks: ``python tests/bench/first_answer.py --material DIR``.

Questions with known answers over two bodies of text: documentation as packages install it, and the
vault of ``--data``. They are in ``first_answer.jsonl``, written by reading the documents, in four
kinds: words of the text, as people ask, by name, by identifier. Of each kind and body every second
one is kept for confirming: what is tuned may look at the others alone. Each is asked of a store in
place and of one in the default layout, both made by the command line, by the search that ``search``
does when no option is given. Words that no document has, nor a near spelling of one, must find
nothing.

``--compare CHECKOUT`` asks the code of another checkout the same, over stores that it makes.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.retrieval.material import Material, fetch  # noqa: E402

QUESTIONS: Final = Path(__file__).with_suffix(".jsonl")
PLACES: Final = 3
KINDS: Final = ("words", "asked", "name", "identifier")
ABSENT: Final = "absent"
LAYOUTS: Final = {"in-place": "in place", "tree": "default layout"}
DEBIAN: Final = {"git": ("git-doc", "git-doc"), "policy": ("debian-policy", "debian-policy")}
"""Folder of the body to a package and its folder of documents."""
_ASK: Final = """
import json, sys, filestore
from filestore.search import Query
with filestore.open(sys.argv[1]) as store:
    assert store.embedder is not None, "the model cannot be used here"
    for question in json.load(sys.stdin):
        hits = store.search(Query(text=question, k=3)).hits
        print(json.dumps([hit.source or hit.path for hit in hits]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One line of the file."""

    body: str
    half: str
    """``tuning`` or ``confirming``."""
    kind: str
    question: str
    answers: tuple[str, ...]
    """Documents of the body; each of them is right, none is where nothing must be found."""

    def place(self, found: Sequence[str]) -> int | None:
        """Where the first right document is among those found, from 0."""
        ends = tuple(f"/{answer}" for answer in self.answers)
        return next((n for n, path in enumerate(found) if f"/{path}".endswith(ends)), None)


def load() -> list[Question]:
    """All questions; they are balanced over bodies, halves and kinds."""
    lines = QUESTIONS.read_text("utf-8").splitlines()
    every = [Question(**row | {"answers": tuple(row["answers"])}) for row in map(json.loads, lines)]
    cells = Counter((one.body, one.half, one.kind == ABSENT or one.kind) for one in every)
    sizes = Counter((key[2] is True, count) for key, count in cells.items())
    if len(sizes) != 2:
        raise SystemExit(f"{QUESTIONS.name} is not balanced: {cells}")
    return every


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The code of one checkout."""

    name: str
    checkout: Path
    work: Path

    def ask(self, body: Path, layout: str, embedder: str, questions: Sequence[str]) -> list[str]:
        """A line of JSON with the documents found for each question."""
        store = self.work / self.name / embedder / layout / body.name
        self._make(store, body, layout, embedder)
        asked = self._run("-c", _ASK, str(store), given=json.dumps(questions))
        return asked.splitlines()

    def _make(self, store: Path, body: Path, layout: str, embedder: str) -> None:
        shutil.rmtree(store, ignore_errors=True)
        self._command("init", str(store), "--layout", layout, "--embedder", embedder)
        sidecar = store / (".filestore" if layout == "in-place" else ".sidecar")
        kept = self.work / "embeddings" / f"{embedder}.sqlite"
        if kept.is_file():
            sidecar.mkdir(exist_ok=True)
            shutil.copyfile(kept, sidecar / "embeddings.sqlite")
        if layout == "in-place":
            shutil.copytree(body, store, dirs_exist_ok=True)
            self._command("--store", str(store), "sync")
        else:
            children = sorted(str(path) for path in body.iterdir())
            self._command("--store", str(store), "add", *children)
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(sidecar / "embeddings.sqlite", kept)

    def _command(self, *words: str) -> None:
        self._run("-m", "filestore", *words)

    def _run(self, *words: str, given: str = "") -> str:
        # Where a model lies is remembered on the user's side, which is none of a benchmark's.
        ours = {"PYTHONPATH": str(self.checkout), "XDG_CONFIG_HOME": str(self.work / "config")}
        done = subprocess.run(
            [sys.executable, "-P", *words],
            input=given,
            env=os.environ | ours,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{self.name}: {words} gave {done.returncode}: {done.stderr}")
        return done.stdout


def main() -> int:
    """Ask, and print the tables; 1 where an absent word brings hits."""
    given = _options()
    if given.fetch:
        fetch(given.material)
    work: Path = given.material.absolute() / "first-answer"
    bodies = dict(_bodies(given, work))
    questions = [one for one in load() if one.body in bodies]
    sides = [Side(name="now", checkout=ROOT, work=work)]
    if given.compare:
        path = given.compare.resolve()
        named = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        sides.insert(0, Side(name=f"other-{named}", checkout=path, work=work))
    wrong = False
    for embedder in given.embedders:
        for layout in given.layouts:
            found = [_asked(side, bodies, questions, layout, embedder) for side in sides]
            print("\n".join(_table(f"{embedder}, {LAYOUTS[layout]}", questions, found)))
            if given.missed:
                print("\n".join(_missed(questions, found[-1])))
            print(flush=True)
            wrong |= any(found[-1][one] for one in questions if one.kind == ABSENT)
    return int(wrong)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, required=True, help="packages, stores, vectors")
    parser.add_argument("--data", type=Path, help="folder of vault.bundle")
    parser.add_argument("--fetch", action="store_true", help="get packages that are missing")
    parser.add_argument("--embedders", nargs="+", default=["builtin", "minilm"], metavar="E")
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS), choices=LAYOUTS)
    parser.add_argument("--compare", type=Path, metavar="CHECKOUT", help="its code, asked too")
    parser.add_argument(
        "--missed", action="store_true", help="what is not first, of the tuning half"
    )
    return parser.parse_args()


def _bodies(given: argparse.Namespace, work: Path) -> Iterator[tuple[str, Path]]:
    """The documents of each body in a folder of its name, made once."""
    material = Material(folder=given.material, data=given.data)
    docs = work / "bodies" / "docs"
    if not docs.exists():
        for folder, (package, inner) in DEBIAN.items():
            source = material.of(package, "usr/share/doc", inner)
            for page in sorted(source.rglob("*.html")):
                if page.is_file() and not page.is_symlink():
                    target = docs / folder / page.relative_to(source)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(page, target)
    yield "docs", docs
    vault = work / "bodies" / "vault"
    bundle = given.data and given.data / "vault.bundle"
    if not vault.exists() and bundle and bundle.is_file():
        clone = work / "clone"
        shutil.rmtree(clone, ignore_errors=True)
        branch = ["git", "clone", "--quiet", "--branch", "main", str(bundle), str(clone)]
        subprocess.run(branch, check=True)
        shutil.move(clone / "docs", vault)
    if vault.exists():
        yield "vault", vault
    else:
        print("no vault: name the folder of vault.bundle with --data", file=sys.stderr)


Found = Mapping[Question, Sequence[str]]


def _asked(
    side: Side,
    bodies: Mapping[str, Path],
    questions: Sequence[Question],
    layout: str,
    embedder: str,
) -> Found:
    found: dict[Question, Sequence[str]] = {}
    for name, body in bodies.items():
        ours = [one for one in questions if one.body == name]
        lines = side.ask(body, layout, embedder, [one.question for one in ours])
        found |= dict(zip(ours, map(json.loads, lines), strict=True))
    return found


def _table(title: str, questions: Sequence[Question], found: Sequence[Found]) -> Iterator[str]:
    """First place and first three of each kind, in the order of the sides."""
    header = ["of", "before", "now"] if len(found) > 1 else ["of", "now"]
    yield f"{title}: first place / first three"
    yield ""
    yield f"| body, half, kind | {' | '.join(header)} |"
    yield f"|---|{'--:|' * len(header)}"
    for body in (*dict.fromkeys(one.body for one in questions), "all"):
        for half in ("tuning", "confirming"):
            cell = [
                one
                for one in questions
                if one.half == half and body in (one.body, "all") and one.kind != ABSENT
            ]
            for kind in KINDS:
                ours = [one for one in cell if one.kind == kind]
                yield _line(f"{body}, {half}, {kind}", ours, found)
            yield _line(f"**{body}, {half}**", cell, found)
    for body in dict.fromkeys(one.body for one in questions):
        absent = [one for one in questions if one.body == body and one.kind == ABSENT]
        counts = [sum(bool(side[one]) for one in absent) for side in found]
        cells = " | ".join(map(str, (len(absent), *counts)))
        yield f"| {body}, absent words that bring hits | {cells} |"


def _line(name: str, questions: Sequence[Question], found: Sequence[Found]) -> str:
    cells = [str(len(questions))]
    for side in found:
        places = [one.place(side[one]) for one in questions]
        cells.append(f"{places.count(0)} / {len(places) - places.count(None)}")
    return f"| {name} | {' | '.join(cells)} |"


def _missed(questions: Sequence[Question], found: Found) -> Iterator[str]:
    """What is not in the first place, with what is."""
    yield ""
    for one in questions:
        place = one.place(found[one])
        if one.half == "tuning" and (found[one] if one.kind == ABSENT else place != 0):
            where = "found" if one.kind == ABSENT else f"place {place + 1}" if place else "missed"
            first = found[one][0] if found[one] else "nothing"
            yield f"{one.body}, {one.kind}, {where}: {one.question!r}: {first}"


if __name__ == "__main__":
    sys.exit(main())

"""This checkout beside an earlier one: what a user waits for, each figure in turns.

    git worktree add --detach /tmp/earlier COMMIT
    python tests/bench/before.py /tmp/earlier
    python tests/bench/before.py /tmp/earlier --files 10000 --runs 5

Each checkout makes and indexes a store of its own from the same files, and runs its own code under
this Python. Clock and processor time are compared by medians; `first index` runs once each.
`--originals 1000` also adds a folder of so many documents to another store of so many chunks.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import measure
import screen
from measure import Row
from stores import TextMaker

EDITS: Final = 10
OTHERS: Final = (
    "search --mode keyword basalt",
    "sync",
    "verify",
    "ls",
    "about",
    "show chunked/resource-0000/chunk1.md",
    "repair --plan",
)
"""Commands that start and look around, in a store where nothing changed."""
QUERIES: Final = 60
_HERE: Final = str(Path(__file__).resolve().parents[2])
_WARM: Final = """
import inspect, os, sys, time
from filestore import Store
root, *queries = sys.argv[1:]
named = {"k": 10}
if "filters" in inspect.signature(Store.search).parameters:
    # Before the library had defaults.
    from filestore.search import Filters
    named = {"count": 10, "filters": Filters()}
with Store(root, configuration=os.environ["XDG_CONFIG_HOME"]) as store:
    for number, query in enumerate(["first", *queries]):
        if number == 1:
            clock, processor = time.perf_counter(), time.process_time()
        store.search(query, **named, mode="hybrid")
print(time.perf_counter() - clock, time.process_time() - processor)
"""

Spent = tuple[float, float]
"""Seconds by the clock, and of the processor."""


@dataclass(frozen=True, slots=True)
class Side:
    """One checkout and its store."""

    checkout: str
    root: str

    def filestore(self, *words: str) -> Spent:
        """Run one of its commands in its store."""
        return self.python("-m", "filestore", *words)

    def python(self, *words: str) -> Spent:
        """Run a program over its code."""
        done = measure.run(self._command(*words), folder=self.root, expected=measure.FOUND)
        return done.wall_s, done.cpu_s

    def warm(self, queries: Sequence[str]) -> Spent:
        """Searches in one process, the time of one."""
        words = self._command("-c", _WARM, self.root, *queries)
        clock, processor = measure.run(words, folder=self.root).output.split()
        return float(clock) / len(queries), float(processor) / len(queries)

    def first_paint(self) -> Spent:
        """The inspector until its first row is on the terminal."""
        command = self._command("-m", "filestore", "tui", "--read-only", "--store", self.root)
        with screen.Screen(command) as terminal:
            return terminal.until("resource-000") - terminal.started_s, terminal.processor_s()

    def edit(self, number: int) -> None:
        """Change some files, each its own way."""
        names = sorted(Path(self.root, "chunked").glob("*/*.md"))
        for place in range(EDITS):
            with open(names[(number * EDITS + place) % len(names)], "a") as file:
                file.write(f"\nEdit {number} {place}.\n")

    def _command(self, *words: str) -> list[str]:
        return ["env", f"PYTHONPATH={self.checkout}", sys.executable, *words]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("earlier", help="a checkout of the commit to compare with")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folders", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--originals", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        os.environ["XDG_CONFIG_HOME"] = os.path.join(work, "configuration")
        os.environ["XDG_STATE_HOME"] = os.path.join(work, "state")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        rows = compare(sides(work, options), options.runs)
        if options.originals:
            both = with_originals(work, options.earlier, options.originals, options.files)
            name = f"`status`, {options.originals:,} originals"
            rows += figure(name, lambda side: side.filestore("status"), options.runs, both)
    load = f"load {os.getloadavg()[0]:.1f}"
    title = f"This checkout beside an earlier one, {options.files:,} files, {load}"
    print(measure.table(title, rows))


def sides(work: str, options: argparse.Namespace) -> tuple[Side, Side]:
    """The same files for each checkout, not indexed."""
    made = measure.store(work, options.files, options.folders)
    other = f"{made}-earlier"
    shutil.copytree(made, other)
    return Side(_HERE, made), Side(os.path.abspath(options.earlier), other)


def compare(both: tuple[Side, Side], runs: int) -> list[Row]:
    """One row for the clock and one for the processor of each figure."""
    maker = TextMaker(2)
    queries = [f"{maker.word()} {maker.word()} {maker.word()}" for _ in range(QUERIES)]
    edited = iter(range(2 * runs + 2))

    def after_edits(side: Side) -> Spent:
        side.edit(next(edited) // 2)
        return side.filestore("sync")

    cases: list[tuple[str, Callable[[Side], Spent], int]] = [
        ("first index", lambda side: side.filestore("sync"), 1),
        ("`status`", lambda side: side.filestore("status"), runs),
        (f"`sync` after {EDITS} edits", after_edits, runs),
        ("cold search", lambda side: side.filestore("search", *queries[0].split()), runs),
        ("warm search", lambda side: side.warm(queries), runs),
        ("first paint", Side.first_paint, runs),
        *((f"`{one}`", partial(_ran, one.split()), runs) for one in OTHERS),
    ]
    return [row for name, action, times in cases for row in figure(name, action, times, both)]


def _ran(words: Sequence[str], side: Side) -> Spent:
    return side.filestore(*words)


def figure(
    name: str, action: Callable[[Side], Spent], times: int, both: tuple[Side, Side]
) -> list[Row]:
    """What takes both checkouts how long, in turns."""
    found = measure.alternate(times + (times > 1), *(lambda s=s: action(s) for s in both))
    # The first of several compiles modules and warms the cache.
    ours, theirs = (spent[1:] if times > 1 else spent for spent in found)
    rows = []
    for at, clock in enumerate(("", ", processor")):
        mine = statistics.median(spent[at] for spent in ours)
        earlier = statistics.median(spent[at] for spent in theirs)
        rows.append(
            Row(
                figure=name + clock,
                ours=measure.milliseconds(mine),
                yardstick=f"earlier {measure.milliseconds(earlier)}",
                compared=f"× {mine / earlier:.2f}",
            )
        )
    return rows


def with_originals(work: str, earlier: str, originals: int, chunks: int) -> tuple[Side, Side]:
    """A folder of documents, added by each checkout to a store of its own."""
    checkouts = {"now": _HERE, "earlier": os.path.abspath(earlier)}
    made = [Side(one, os.path.join(work, name, "store")) for name, one in checkouts.items()]
    for side in made:
        maker = TextMaker(3)
        for number in range(originals):
            path = Path(side.root).parent / "docs" / f"{number % 40:02}" / f"{number:05}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            sections = range(max(1, chunks // originals))
            path.write_text("\n".join(f"# {maker.word()}\n\n{maker.text()}" for _ in sections))
        os.makedirs(side.root)
        side.filestore("init", ".", "--embedder", "builtin")
        side.filestore("add", "../docs")
    return made[0], made[1]


if __name__ == "__main__":
    main()

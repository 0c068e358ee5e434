"""Cold commands beside an empty Python, what they load, and what a server that answers still gains.

Whole processes from start to end, in turns with ``python -c pass``; then modules and classes that
they make; then the same commands answered over the socket and by themselves, and a look at the tree
in a process that keeps its walk. ``--files`` is the size of the store that is searched.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

import measure
import structure
from served import Server, serving
from stores import TextMaker

from filestore.fs.watched_tree import WatchedTree
from filestore.store import Store

SMALL_FILES = 1_000
SMALL_FOLDERS = 10
WORDS = 3
QUERIES_SEED = 2
SERVED = ("search kalo mir", "status", "ls", "about")
MAKER = TextMaker(QUERIES_SEED)


def main() -> None:
    """Measure and print the tables."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=15) as options:
        large = measure.indexed_store(options.work, options.files, options.folders)
        small = measure.indexed_store(options.work, SMALL_FILES, SMALL_FOLDERS)
        cases: list[tuple[str, float, Callable[[], measure.Run]]] = [
            ("`--version`", 0.060, lambda: measure.run(measure.filestore("--version"))),
            ("`status`, 1,000 files", 0.150, lambda: _status(small)),
            (
                f"`search --mode keyword`, {options.files:,} chunks",
                0.250,
                lambda: _search(large, "--mode", "keyword"),
            ),
        ]
        rows = [_row(name, limit_s, action, options.runs) for name, limit_s, action in cases]
        print(measure.table(f"Cold commands, median of {options.runs}", rows))
        loaded = [_loaded(*words) for words in (("search", "basalt"), ("status",))]
        print(measure.table("What they load: modules, classes, values among these", loaded))
        with serving(small) as server:
            rows = [row for words in SERVED for row in _gained(server, words, small, options.runs)]
        rows += _walked(large, f"{options.files:,} files", options.runs)
        print(measure.table("What a server gains", rows))


def _search(root: str, *words: str) -> measure.Run:
    query = [MAKER.word() for _ in range(WORDS)]
    command = measure.filestore("search", *words, *query)
    return measure.run(command, folder=root, expected=measure.FOUND)


def _status(root: str) -> measure.Run:
    return measure.run(measure.filestore("status"), folder=root)


def _empty() -> measure.Run:
    return measure.run([sys.executable, "-c", "pass"], folder=os.path.dirname(sys.executable))


def _row(name: str, limit_s: float, action: Callable[[], measure.Run], runs: int) -> measure.Row:
    ours, empty = measure.alternate(runs + 1, action, _empty)
    # The first of each compiles modules and warms the cache.
    ours_s, empty_s = measure.median_s(ours[1:]), measure.median_s(empty[1:])
    return measure.over(name, ours_s, "`python -c pass`", empty_s, limit_s)


def _loaded(*words: str) -> measure.Row:
    counts = structure.Checkout(Path(__file__).resolve().parents[2]).loaded(*words)
    return measure.Row(figure=f"`{words[0]}`", ours=", ".join(map(str, counts)))


def _gained(server: Server, words: str, root: str, runs: int) -> list[measure.Row]:
    """A command that a server answers, in turns with the same one by itself.

    The server runs it with its output captured: its processor time is that of both.
    """

    def asked(*before: str) -> measure.Run:
        command = [*before, *measure.filestore(*words.split())]
        return measure.run(command, folder=root, expected=measure.FOUND)

    spent = server.processor_s()
    ours, alone = measure.alternate(runs + 1, asked, lambda: asked("env", "FILESTORE_SERVER=off"))
    own_s = (server.processor_s() - spent) / (runs + 1)
    name = f"`{words}` that a server answers"
    mine, theirs = measure.median_cpu_s(ours[1:]), measure.median_cpu_s(alone[1:])
    return [
        _beside(f"{name}, clock", measure.median_s(ours[1:]), measure.median_s(alone[1:])),
        _beside(f"{name}, processor of the command", mine, theirs),
        _beside(f"{name}, with that of the server", mine + own_s, theirs),
    ]


def _walked(root: str, files: str, runs: int) -> list[measure.Row]:
    """A look for drift in a process that keeps its walk of the tree, in turns with one that walks.

    It starts neither a process nor Python: what is left is what the kept walk gains.
    """
    configuration = os.environ["XDG_CONFIG_HOME"]
    with (
        closing(WatchedTree(rescan_s=3600.0)) as watched,
        closing(Store(root, configuration=configuration)) as keeping,
        closing(Store(root, configuration=configuration)) as walking,
    ):
        keeping.watch_tree(watched)

        def took(store: Store) -> tuple[float, float]:
            clock, processor = time.perf_counter(), time.process_time()
            store.status()
            return time.perf_counter() - clock, time.process_time() - processor

        ours, alone = measure.alternate(runs + 1, lambda: took(keeping), lambda: took(walking))
    return [
        _beside(
            f"`Store.status` with a kept walk, {files}, {kind}",
            median(spent[at] for spent in ours[1:]),
            median(spent[at] for spent in alone[1:]),
        )
        for at, kind in enumerate(("clock", "processor"))
    ]


def _beside(name: str, ours_s: float, alone_s: float) -> measure.Row:
    return measure.Row(
        figure=name,
        ours=measure.milliseconds(ours_s),
        yardstick=f"by itself {measure.milliseconds(alone_s)}",
        compared=f"{ours_s / alone_s:.2f} ×",
    )


if __name__ == "__main__":
    main()

"""``status`` in a process that watches the tree, beside ``git status`` on the same committed tree.

What the process takes by the clock, with the watch, without, and of all of git; in turns, with
nothing changed, then with so many files written before each turn, which both have to find. Then the
whole command, answered by a server, beside ``git status``.
"""

import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import measure
from served import serving
from stores import commit_tree

from filestore.fs.watched_tree import WatchedTree
from filestore.store import Store

RATIO = 0.3
EDITED = (0, 1, 100)


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=15) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        if not os.path.isdir(os.path.join(root, ".git")):
            commit_tree(root)
        configuration = os.environ["XDG_CONFIG_HOME"]
        with (
            closing(WatchedTree(rescan_s=3600.0)) as watched,
            closing(Store(root, configuration=configuration)) as store,
            closing(Store(root, configuration=configuration)) as walking,
        ):
            store.watch_tree(watched)
            rows = [row for count in EDITED for row in _rows(store, walking, count, options.runs)]
            rows += _whole(root, options.runs)
            rows += [measure.counted("folders watched", watched.folders, _folders(root))]
    title = f"Watched status of {options.files:,} files in {options.folders:,} folders"
    print(measure.table(f"{title}, median of {options.runs}", rows))


def _rows(store: Store, walking: Store, count: int, runs: int) -> list[measure.Row]:
    root = store.root
    paths = [os.path.join(store.places.chunked, path) for path in _some(store, count)]
    taken: dict[str, list[float]] = {"watched": [], "walked": [], "git": []}
    # The first of each warms the cache.
    for turn in range(runs + 1):
        for path in paths:
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"\nTurn {turn}.\n")
        for asked, name in ((store, "watched"), (walking, "walked")):
            started = time.perf_counter()
            found = asked.status()
            taken[name].append(time.perf_counter() - started)
            if len(found.drift.get("modified", ())) != len(paths):
                raise SystemExit(f"{len(paths)} files changed, found: {found.counts}")
        git = ["git", "status", "--porcelain"]
        taken["git"].append(measure.run(git, folder=root).wall_s)
    store.sync()
    watched, walked, git_s = (statistics.median(times[1:]) for times in taken.values())
    what = f"{count:,} files written" if count else "nothing changed"
    yardstick = f"`git status` {measure.milliseconds(git_s)}"
    return [
        measure.Row(
            figure=f"watched, {what}",
            ours=measure.milliseconds(watched),
            yardstick=yardstick,
            compared=f"× {watched / git_s:.2f}",
            goal=f"≤ × {RATIO:g}",
            met=watched <= RATIO * git_s,
        ),
        measure.Row(
            figure=f"walked, {what}",
            ours=measure.milliseconds(walked),
            yardstick=yardstick,
            compared=f"× {walked / git_s:.2f}",
        ),
    ]


def _some(store: Store, count: int) -> list[str]:
    """Files from all over the store."""
    if not count:
        return []
    resources = store.resources()
    found = [store.chunks(one["resource"])[0]["path"] for one in resources[:count]]
    return [path.removeprefix("chunked/") for path in found]


def _whole(root: str, runs: int) -> Iterator[measure.Row]:
    """The command itself, which a server answers, and git's."""
    with serving(root):
        ours, git, start = measure.alternate(
            runs + 1,
            lambda: measure.run(measure.filestore("status"), folder=root),
            lambda: measure.run(["git", "status"], folder=root),
            lambda: measure.run([sys.executable, "-c", "pass"]),
        )
    # The first of each warms the cache.
    ours_s, git_s, start_s = (measure.median_s(each[1:]) for each in (ours, git, start))
    yield measure.times("`filestore status`", ours_s, "`git status`", git_s, RATIO)
    yield measure.Row(figure="of it the start of a bare Python", ours=measure.milliseconds(start_s))


def _folders(root: str) -> int:
    return sum(1 for _ in os.walk(os.path.join(root, "chunked")))


if __name__ == "__main__":
    main()

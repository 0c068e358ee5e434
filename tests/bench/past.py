"""Searching a store as it was at a commit: the first time, after that, and what it answers.

A store of chunk files in git is indexed; some are edited, removed and renamed, and that is a second
commit. The first is then searched. The yardstick is the same search of the files of today. For
what it answers the first commit is checked out elsewhere and a store is built from it.
"""

import glob
import os
import random
import shutil
import statistics
import subprocess
import time

import measure
import stores

EDITED = 200
REMOVED = 30
QUERIES = 50
FIRST_S = 2.0
AFTER_S = 0.2


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=3) as options:
        root = measure.store(options.work, options.files, options.folders)
        if not os.path.isdir(os.path.join(root, ".git")):
            stores.commit_tree(root)
            measure.run(measure.filestore("sync"), folder=root)
            _change(root)
            measure.run(measure.filestore("sync", "--forget-missing"), folder=root)
        rows = [*_commands(root, options.runs), *_in_process(root), *_as_built(root, options.work)]
    print(measure.table(f"{options.files:,} files at an earlier commit", rows))


def _change(root: str) -> None:
    chosen = random.Random(3)
    files = sorted(glob.glob(os.path.join(root, "chunked", "*", "chunk*.md")))
    share = len(files) / 100_000
    for path in chosen.sample(files, max(2, int(EDITED * share))):
        with open(path, "a") as file:
            file.write("\nA line that was added later.\n")
    for path in chosen.sample(files, max(1, int(REMOVED * share))):
        os.unlink(path)
    folder = os.path.join(root, "chunked", "resource-0001")
    os.rename(folder, f"{folder}-renamed")
    who = ["-c", "user.name=b", "-c", "user.email=b@localhost"]
    for words in (["add", "-A"], [*who, "commit", "-qm", "later"]):
        subprocess.run(["git", "-C", root, *words], check=True, stdout=subprocess.DEVNULL)


def _commands(root: str, runs: int) -> list[measure.Row]:
    def search(*words: str) -> measure.Run:
        command = measure.filestore("search", "the first of these", *words)
        return measure.run(command, folder=root, expected=measure.FOUND)

    def first() -> measure.Run:
        shutil.rmtree(os.path.join(root, ".sidecar", "past"), ignore_errors=True)
        return search("--at", "HEAD~1")

    search()
    firsts, afters, todays = measure.alternate(
        runs, first, lambda: search("--at", "HEAD~1"), lambda: search()
    )
    now_s = measure.median_s(todays)
    return [
        _within("the command, the first time", measure.median_s(firsts), now_s, FIRST_S),
        _within("the command, after that", measure.median_s(afters), now_s, None),
        measure.over(
            "what it takes beyond a search of today",
            measure.median_s(afters),
            "today",
            now_s,
            AFTER_S,
        ),
    ]


def _within(figure: str, ours_s: float, now_s: float, limit_s: float | None) -> measure.Row:
    return measure.Row(
        figure=figure,
        ours=measure.milliseconds(ours_s),
        yardstick=f"today {measure.milliseconds(now_s)}",
        compared=f"× {ours_s / now_s:.2f}",
        goal="–" if limit_s is None else f"≤ {limit_s:g} s",
        met=None if limit_s is None else ours_s <= limit_s,
    )


def _in_process(root: str) -> list[measure.Row]:
    """Opening and asking, in a process that has the store open."""
    import filestore

    with filestore.open(root) as store:
        store.search("the first of these")
        taken = []
        for number in range(5):
            started = time.perf_counter()
            with store.at("HEAD~1") as then:
                then.search(f"the first of these {number}")
            taken.append(time.perf_counter() - started)
        with store.at("HEAD~1") as then:
            then.search("the first of these")
            started = time.perf_counter()
            for number in range(20):
                then.search(f"these are the first {number}")
            then_s = (time.perf_counter() - started) / 20
        started = time.perf_counter()
        for number in range(20):
            store.search(f"these are the first {number}")
        now_s = (time.perf_counter() - started) / 20
    return [
        _within(
            "opening it again and one search, in a process",
            statistics.median(taken),
            now_s,
            AFTER_S,
        ),
        _within("one search more, in a process", then_s, now_s, None),
    ]


def _as_built(root: str, work: str) -> list[measure.Row]:
    """How many queries have the same ten answers as in a store built from the checkout."""
    import filestore

    built = os.path.join(work, "built")
    shutil.rmtree(built, ignore_errors=True)
    subprocess.run(["git", "-C", root, "worktree", "prune"], check=True)
    subprocess.run(
        ["git", "-C", root, "worktree", "add", "-q", "--detach", built, "HEAD~1"], check=True
    )
    maker = stores.TextMaker(9)
    queries = [" ".join(maker.word() for _ in range(4)) for _ in range(QUERIES)]
    same = 0
    with filestore.open(built) as other:
        other.sync()
        with filestore.open(root) as store, store.at("HEAD~1") as then:
            for query in queries:
                ours, theirs = (
                    [hit.path for hit in one.search(query, k=10, syntax="plain")]
                    for one in (then, other)
                )
                same += ours == theirs
    return [measure.counted("queries with the same ten answers, in order", same, QUERIES)]


if __name__ == "__main__":
    main()

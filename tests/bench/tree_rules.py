"""The walk of a folder of notes by ignore rules, beside the walk of all that is in it.

Both in this process, in turns, each file and folder counted; and `git status --porcelain` of the
same committed tree as a process of its own. The notes have a line each: nothing of them is read.
"""

import os
import statistics
import time
from collections.abc import Callable

import measure
from stores import commit_tree

from filestore.extract.tree_rules import tree_rules
from filestore.fs.scan import scan_tree

SHARE = 1.15
"""So many times the walk without rules may the one with them take."""
GIT_RULES = (
    "node_modules/\nbuild/\n*.log\n*.tmp\n*.py[cod]\n.DS_Store\n*~\n.env\n/dist/\nin/_out/\n"
)
OWN_RULES = "drafts/\n/private/\n*.old.*\n"
INNER_RULES = "*.bak\nold-*\n"
EVERY = 40
"""Each so manyth folder has rules of its own."""
PATTERNS = ("*.orig", "/archive/")


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=200, runs=15) as options:
        root = os.path.join(options.work, f"notes-{options.files}-{options.folders}")
        if not os.path.isdir(root):
            make_notes(root, options.files, options.folders)
            commit_tree(root)
        rows = [_walks(root, processes, options.runs) for processes in (1, 2)]
        rows.append(_git(root, options.runs))
    title = f"Walk of {options.files:,} notes in {options.folders:,} folders"
    print(measure.table(f"{title}, median of {options.runs}", rows))


def make_notes(root: str, files: int, folders: int) -> None:
    """Notes with a few files of rules, some of them left out."""
    for folder in range(folders):
        path = os.path.join(root, f"area-{folder:04d}")
        os.makedirs(path)
        for number in range(files // folders):
            _write(path, f"note-{number:05d} on things.md", f"# Note {number} of {folder}\n")
        if folder % EVERY == 0:
            _write(path, ".gitignore", INNER_RULES)
            _write(path, "old-note.md", "left out\n")
    _write(root, ".gitignore", GIT_RULES)
    _write(root, ".filestoreignore", OWN_RULES)


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def _walks(root: str, processes: int, runs: int) -> measure.Row:
    def by_rules() -> float:
        rules = tree_rules(root, PATTERNS)
        return _seconds(lambda: scan_tree(root, processes=processes, rules=rules))

    def of_all() -> float:
        return _seconds(lambda: scan_tree(root, processes=processes))

    ours, theirs = measure.alternate(runs + 1, by_rules, of_all)
    # The first of each warms the cache.
    ours_s, theirs_s = statistics.median(ours[1:]), statistics.median(theirs[1:])
    return measure.Row(
        figure=f"walk by rules, {processes} process{'es' if processes > 1 else ''}",
        ours=measure.milliseconds(ours_s),
        yardstick=f"without {measure.milliseconds(theirs_s)}",
        compared=f"× {ours_s / theirs_s:.2f}",
        goal=f"≤ × {SHARE:g}",
        met=ours_s <= SHARE * theirs_s,
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _git(root: str, runs: int) -> measure.Row:
    ours, git = measure.alternate(
        runs + 1,
        lambda: _seconds(lambda: scan_tree(root, processes=2, rules=tree_rules(root, PATTERNS))),
        lambda: measure.run(["git", "status", "--porcelain"], folder=root).wall_s,
    )
    ours_s, git_s = statistics.median(ours[1:]), statistics.median(git[1:])
    return measure.Row(
        figure="walk by rules, 2 processes",
        ours=measure.milliseconds(ours_s),
        yardstick=f"`git status --porcelain` {measure.milliseconds(git_s)}",
        compared=f"× {ours_s / git_s:.2f}",
    )


if __name__ == "__main__":
    main()

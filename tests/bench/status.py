"""``filestore status`` beside ``git status`` on the same committed tree.

Time of whole processes in turns, peak memory, and how many chunk files are opened (none should be).
"""

import os

import measure
from stores import commit_tree

RATIO = 2.0
PEAK_BYTES = 250 * measure.MIB


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=15) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        if not os.path.isdir(os.path.join(root, ".git")):
            commit_tree(root)
        ours, git = measure.alternate(
            options.runs + 1,
            lambda: measure.run(measure.filestore("status"), folder=root),
            lambda: measure.run(["git", "status"], folder=root),
        )
        opened = measure.chunk_files_opened(measure.filestore("status"), root)
    # The first of each warms the cache.
    rows = [_time(ours[1:], git[1:]), _memory(ours, git)]
    rows.append(measure.counted("chunk files opened", opened, 0))
    title = f"Status of {options.files:,} files in {options.folders:,} folders"
    print(measure.table(f"{title}, median of {options.runs}", rows))


def _time(ours: list[measure.Run], git: list[measure.Run]) -> measure.Row:
    return measure.times(
        "`status`", measure.median_s(ours), "`git status`", measure.median_s(git), RATIO
    )


def _memory(ours: list[measure.Run], git: list[measure.Run]) -> measure.Row:
    peak = measure.peak_bytes(ours)
    return measure.Row(
        figure="peak memory of the largest process",
        ours=f"{peak / measure.MIB:.0f} MB",
        yardstick=f"`git status` {measure.peak_bytes(git) / measure.MIB:.0f} MB",
        goal=f"≤ {PEAK_BYTES / measure.MIB:.0f} MB",
        met=peak <= PEAK_BYTES,
    )


if __name__ == "__main__":
    main()

"""Cold commands beside an empty Python: version, status of 1,000 files, keyword search.

Whole processes from start to end, in turns with ``python -c pass``. ``--files`` is the size of the
store that is searched.
"""

import os
import sys
from collections.abc import Callable

import measure
from stores import TextMaker

SMALL_FILES = 1_000
SMALL_FOLDERS = 10
WORDS = 3
QUERIES_SEED = 2


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=15) as options:
        large = measure.indexed_store(options.work, options.files, options.folders)
        small = measure.indexed_store(options.work, SMALL_FILES, SMALL_FOLDERS)
        maker = TextMaker(QUERIES_SEED)

        def search() -> measure.Run:
            words = [maker.word() for _ in range(WORDS)]
            command = measure.filestore("search", "--mode", "keyword", *words)
            return measure.run(command, folder=large, expected=measure.FOUND)

        cases: list[tuple[str, float, Callable[[], measure.Run]]] = [
            ("`--version`", 0.060, lambda: measure.run(measure.filestore("--version"))),
            ("`status`, 1,000 files", 0.150, lambda: _status(small)),
            (f"`search --mode keyword`, {options.files:,} chunks", 0.250, search),
        ]
        rows = [_row(name, limit_s, action, options.runs) for name, limit_s, action in cases]
    print(measure.table(f"Cold commands, median of {options.runs}", rows))


def _status(root: str) -> measure.Run:
    return measure.run(measure.filestore("status"), folder=root)


def _empty() -> measure.Run:
    return measure.run([sys.executable, "-c", "pass"], folder=os.path.dirname(sys.executable))


def _row(name: str, limit_s: float, action: Callable[[], measure.Run], runs: int) -> measure.Row:
    ours, empty = measure.alternate(runs + 1, action, _empty)
    # The first of each compiles modules and warms the cache.
    ours_s, empty_s = measure.median_s(ours[1:]), measure.median_s(empty[1:])
    return measure.over(name, ours_s, "`python -c pass`", empty_s, limit_s)


if __name__ == "__main__":
    main()

"""``filestore verify`` beside ``git status``, and at level full beside reading and hashing alone.

Time of whole processes in turns, peak memory, and how many chunk files the fast level opens (none
should be). The plain loop is one process that lists, opens, reads and hashes every chunk file.
"""

import os
import sys

import measure
from stores import commit_tree

FAST_RATIO = 2.0
FULL_RATIO = 1.5
PEAK_BYTES = 250 * measure.MIB


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=7) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        if not os.path.isdir(os.path.join(root, ".git")):
            commit_tree(root)
        rows = [*_fast_rows(root, options.runs), *_full_rows(root, options.runs)]
    title = f"Verification of {options.files:,} files in {options.folders:,} folders"
    print(measure.table(f"{title}, median of {options.runs}", rows))


def _fast_rows(root: str, runs: int) -> list[measure.Row]:
    # The first of each warms the cache.
    ours, git = measure.alternate(
        runs + 1,
        lambda: measure.run(measure.filestore("verify"), folder=root),
        lambda: measure.run(["git", "status"], folder=root),
    )
    opened = measure.chunk_files_opened(measure.filestore("verify"), root)
    return [
        measure.times(
            "`verify`",
            measure.median_s(ours[1:]),
            "`git status`",
            measure.median_s(git[1:]),
            FAST_RATIO,
        ),
        measure.peak("peak memory of its largest process", ours, PEAK_BYTES),
        measure.counted("chunk files opened", opened, 0),
    ]


def _full_rows(root: str, runs: int) -> list[measure.Row]:
    plain = [sys.executable, __file__, "plain", os.path.join(root, "chunked")]
    ours, loop = measure.alternate(
        runs + 1,
        lambda: measure.run(measure.filestore("verify", "--level", "full"), folder=root),
        lambda: measure.run(plain),
    )
    return [
        measure.times(
            "`verify --level full`",
            measure.median_s(ours[1:]),
            "plain loop",
            measure.median_s(loop[1:]),
            FULL_RATIO,
        ),
        measure.peak("peak memory of its largest process", ours),
    ]


def read_and_hash(folder: str) -> int:
    """Read and hash every file below a folder, the plain way; returns how many there are."""
    from xxhash import xxh3_128_digest

    digests: list[bytes] = []
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    with open(entry.path, "rb") as file:
                        digests.append(xxh3_128_digest(file.read()))
    return len(digests)


if __name__ == "__main__":
    if sys.argv[1:2] == ["plain"]:
        print(read_and_hash(sys.argv[2]))
    else:
        main()

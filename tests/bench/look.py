"""What the look at the files costs a search: clean, and ten files edited, beside ``--no-update``.

Whole commands in turns, in stores of 100, 10,000 and so many files as are asked for; by themselves,
then with a server that answers them. Processor time is that of the command and of the server.
"""

import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import measure
from served import Server, serving

SIZES = ((100, 10), (10_000, 100))
EDITED = 10
QUERY = ("search", "--mode", "keyword", "the")


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{measure.milliseconds(self.wall_s)}, CPU {measure.milliseconds(self.cpu_s)}"


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=9) as options:
        sizes = [one for one in SIZES if one[0] < options.files]
        rows = [
            row
            for files, folders in (*sizes, (options.files, options.folders))
            for row in _of(measure.indexed_store(options.work, files, folders), files, options.runs)
        ]
    print(measure.table(f"The look before an answer, median of {options.runs}", rows))


def _of(root: str, files: int, runs: int) -> Iterator[measure.Row]:
    yield from _rows(f"{files:,} files", root, runs, None)
    with serving(root) as server:
        yield from _rows(f"{files:,} files, served", root, runs, server)


def _rows(name: str, root: str, runs: int, server: Server | None) -> Iterator[measure.Row]:
    paths = sorted(Path(root, "chunked").rglob("chunk*.md"))
    some = paths[:: max(1, len(paths) // EDITED)][:EDITED]

    def cost(*words: str) -> Cost:
        before_s = server.processor_s() if server else 0.0
        done = measure.run(measure.filestore(*words), folder=root, expected=measure.FOUND)
        took_s = server.processor_s() - before_s if server else 0.0
        return Cost(done.wall_s, done.cpu_s + took_s)

    def edited() -> Cost:
        for path in some:
            with path.open("a") as file:
                file.write(f"\nAgain {os.urandom(4).hex()}.\n")
        return cost(*QUERY)

    words = (QUERY, (*QUERY, "--no-update"), ("status",))
    asked = measure.alternate(runs + 1, *(partial(cost, *each) for each in words))
    # The first loads the index.
    clean, plain, status = (_median(each[1:]) for each in asked)
    changed = _median([edited() for _ in range(runs + 1)][1:])
    figures: tuple[tuple[str, Cost], ...] = (
        ("clean", clean),
        ("`status`, clean", status),
        (f"{len(some)} edited", changed),
    )
    for figure, ours in figures:
        yield measure.Row(
            figure=f"{name}: {figure}",
            ours=str(ours),
            yardstick=f"--no-update {plain}",
            compared=f"× {ours.wall_s / plain.wall_s:.2f}, CPU × {_ratio(ours, plain):.2f}",
        )


def _ratio(ours: Cost, plain: Cost) -> float:
    return ours.cpu_s / max(plain.cpu_s, 1e-3)


def _median(costs: list[Cost]) -> Cost:
    wall_s = statistics.median(one.wall_s for one in costs)
    return Cost(wall_s, statistics.median(one.cpu_s for one in costs))


if __name__ == "__main__":
    main()

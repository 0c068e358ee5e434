"""Processor time of every help, whole processes beside an empty Python: a row each.

The overview, the screen and the whole help of each command and action, a page and a
code, in turns.
"""

import statistics
import sys

import measure

from filestore.cli import _help

GOAL_S = 0.12


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=0, folders=0, runs=5) as options:
        names = [name.split() for name in _help.records()]
        calls = [["--help"], ["help"], ["help", "start"], ["help", "modified"]]
        calls += [[*words, flag] for words in names for flag in ("-h", "--help")]
        commands = [[sys.executable, "-c", "pass"], *(measure.filestore(*one) for one in calls)]
        found = measure.alternate(
            options.runs, *(lambda one=one: measure.run(one) for one in commands)
        )
    bare, *others = map(measure.median_cpu_s, found)
    rows = [
        measure.Row(
            figure=f"`{' '.join(['filestore', *one])}`",
            ours=measure.milliseconds(ours_s),
            yardstick=f"`python -c pass` {measure.milliseconds(bare)}",
            goal=f"≤ {measure.milliseconds(GOAL_S)}",
            met=ours_s <= GOAL_S,
        )
        for one, ours_s in zip(calls, others, strict=True)
    ]
    print(measure.table("Processor time of help", rows))
    print(f"median {statistics.median(others):.3f} s, most {max(others):.3f} s")


if __name__ == "__main__":
    main()

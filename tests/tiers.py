"""The tests by what they cost: ``python tests/tiers.py`` runs them all and writes `tests/long.txt`.

A test is long by its share of the time that all take, so a slow machine gives the same list as a
fast one, more or less. One rule: each file of tests keeps its cheapest test in the ordinary run,
unless that alone is dear.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

LIST: Final = Path(__file__).with_name("long.txt")
SHARE: Final = 0.11
"""Of the time of all tests that the ordinary run may take."""
_DEAR: Final = 0.001
"""A test that takes more of it is long, even if it is the cheapest of its file."""
_SAFETY: Final = """
    tests/contract/test_forms tests/contract/test_extract
    tests/system/exchange/ tests/system/extract/ tests/system/fs/ tests/system/git/
    tests/system/history/ tests/system/ingest/ tests/system/repair/ tests/system/server/
    tests/system/sidecar/ tests/system/sync/ tests/system/test_ tests/system/verify/
    tests/system/cli/test_bad_input tests/system/cli/test_trust tests/tui/test_hostile_screen
    tests/unit/chunks/ tests/unit/config/ tests/unit/core/ tests/unit/exchange/
    tests/unit/extract/ tests/unit/fs/ tests/unit/git/ tests/unit/history/ tests/unit/ingest/
    tests/unit/remote/ tests/unit/repair/
"""
"""How the names begin of tests about a user's files, or about what a stranger may send."""


@cache
def long_tests() -> Mapping[str, float]:
    """Each test that is long, with the seconds it took."""
    lines = LIST.read_text("utf-8").splitlines()
    return {name: float(seconds) for seconds, _, name in (line.partition(" ") for line in lines)}


def is_about_safety(name: str) -> bool:
    """Whether a test is about a user's files, or about what a stranger may send."""
    return name.startswith(tuple(_SAFETY.split()))


def chosen(seconds: Mapping[str, float]) -> dict[str, float]:
    """The tests that are long, dearest first."""
    whole = sum(seconds.values())
    by_file: dict[str, str] = {}
    for name in sorted(seconds, key=seconds.__getitem__):
        by_file.setdefault(name.partition("::")[0], name)
    kept = {name for name in by_file.values() if seconds[name] <= _DEAR * whole}
    left, found = whole, {}
    for name in sorted(seconds.keys() - kept, key=seconds.__getitem__, reverse=True):
        if left <= SHARE * whole:
            break
        found[name] = seconds[name]
        left -= seconds[name]
    return found


class Stopwatch:
    """A plugin that adds up what each test takes, with its fixtures."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the time of one part."""
        self.seconds[report.nodeid] += report.duration


def main() -> int:
    """Run the tests, write the list, and say what each part takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", metavar="FILE", help="keep the times there, or use those there")
    times = parser.parse_args().times
    if times and Path(times).exists():
        seconds = json.loads(Path(times).read_text("utf-8"))
    else:
        stopwatch = Stopwatch()
        # What is marked in its file is long anyway; what is only in the list is measured again.
        LIST.write_text("", "utf-8")
        pytest.main(["-q", "-m", "not long and not exhaustive and not model"], plugins=[stopwatch])
        seconds = dict(stopwatch.seconds)
        if times:
            Path(times).write_text(json.dumps(seconds), "utf-8")
    found = chosen(seconds)
    LIST.write_text("".join(f"{took:.2f} {name}\n" for name, took in found.items()), "utf-8")
    whole, long = sum(seconds.values()), sum(found.values())
    print(f"{len(seconds):,} tests, {whole:,.0f} s one after the other")
    print(f"{len(found):,} are long: {long:,.0f} s, {long / whole:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

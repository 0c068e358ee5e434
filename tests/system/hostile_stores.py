"""What is tried against stores of strangers, counted: ``python tests/system/hostile_stores.py``.

Runs `hostile_folders` and `hostile_sidecar` as they are, and counts what the tests of records and
of addresses try. ``--quick`` runs a part of the first two.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

_HERE: Final = Path(__file__).resolve().parent
_TESTS: Final = ("verify/test_records_of_strangers.py", "test_trusted_addresses.py")
_QUICK: Final = {"hostile_folders": ["--together"], "hostile_sidecar": ["--every", "20"]}


class Counts:
    """A plugin that prints what each test says it tried, with what became of it."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the row of one test."""
        for key, tried in report.user_properties if report.when == "call" else ():
            if key == "tried":
                print(f"\n| {tried} | {report.outcome} |", flush=True)


def main() -> int:
    """Run all; 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    failed = False
    for name, options in _QUICK.items():
        print(f"\n## {name}", flush=True)
        command = [sys.executable, "-m", f"tests.system.{name}", *(options if quick else [])]
        root = _HERE.parent.parent
        environment = {**os.environ, "PYTHONPATH": str(root)}
        failed |= bool(subprocess.run(command, cwd=root, env=environment, check=False).returncode)
    print("\n## records and addresses", flush=True)
    files = [str(_HERE / one) for one in _TESTS]
    failed |= bool(pytest.main(["-q", "-n", "0", "-m", "", *files], plugins=[Counts()]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

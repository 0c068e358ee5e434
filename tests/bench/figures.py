"""Tables of `tests/FIGURES.md`, made again: ``python tests/bench/figures.py [WORD ...]``.

A line "Made at `COMMIT` by `COMMAND`:" says what made the table below it. Each such command runs,
or those that contain every word, and its tables take the place of the old ones.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FIGURES: Final = ROOT / "tests" / "FIGURES.md"
MADE: Final = re.compile(r"^Made at `[^`]*` by `(python [^`]+)`:\n\n(?:(?:\|.*)?\n)+", re.MULTILINE)


def main() -> int:
    """Make them; 1 where a command failed, whose table then stays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD")
    words = parser.parse_args().words
    failed = False
    for command in MADE.findall(FIGURES.read_text("utf-8")):
        if not all(word in command for word in words):
            continue
        print(command, file=sys.stderr)
        program = [sys.executable, *command.split()[1:]]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
        failed |= done.returncode != 0
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            continue
        rows = [line for line in done.stdout.splitlines() if line.startswith("|") or not line]
        table = re.sub(r"\n{3,}", "\n\n", "\n".join(rows).strip("\n"))
        block = f"Made at `{_commit()}` by `{command}`:\n\n{table}\n\n"
        text = FIGURES.read_text("utf-8")
        old = next(found for found in MADE.finditer(text) if found[1] == command)
        FIGURES.write_text(text[: old.start()] + block + text[old.end() :], "utf-8")
    return 1 if failed else 0


def _commit() -> str:
    words = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=7"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip().replace("-dirty", " with changes")


if __name__ == "__main__":
    sys.exit(main())

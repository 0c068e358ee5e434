"""Every benchmark after another, on the same stores, as one report in Markdown.

``python tests/bench/all.py [--files N] [--folders M] [--work DIR] [--data DIR]``; ``--data`` names
the folder of the question sets for ``xquad.py``, which is left out without it. The report
is printed as it grows.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

SCRIPTS = ("first_index", "start", "status", "sync", "warm_search")
"""The first one leaves an indexed store to the others."""
LIBRARIES = ("faiss-cpu", "tantivy", "numpy")


def main() -> int:
    """Run them; 1 where one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--folders", type=int, default=1_000, help="default: %(default)s")
    parser.add_argument("--work", metavar="DIR", help="keep the stores here, and use them again")
    parser.add_argument("--data", metavar="DIR", help="question sets for xquad.py")
    parser.add_argument("--embedder", default="builtin", help="for xquad.py; default: %(default)s")
    given = parser.parse_args()
    print(_machine(), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        sizes = ["--files", str(given.files), "--folders", str(given.folders)]
        shared = [*sizes, "--work", given.work or temporary]
        codes = [_run(name, shared) for name in SCRIPTS]
    if given.data:
        codes.append(_run("xquad", [given.data, "--embedder", given.embedder]))
    return 1 if any(codes) else 0


def _run(name: str, words: list[str]) -> int:
    script = str(Path(__file__).with_name(f"{name}.py"))
    return subprocess.run([sys.executable, script, *words], check=False).returncode


def _machine() -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    python = platform.python_version()
    return (
        f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores;"
        f" Python {python}, {libraries}\n"
    )


if __name__ == "__main__":
    sys.exit(main())

"""Every benchmark after another, on the same stores, as one report in Markdown.

``python tests/bench/all.py [--files N] [--folders M] [--work DIR] [--model FOLDER] [--data DIR]
[--large]``; what needs a model, or the folder of the question sets, is left out without it, and so
are the store of a million chunks, which takes an hour to make, and a million vectors on three
servers. The report is printed as it grows.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

SCRIPTS = (
    "first_index",
    "start",
    "status",
    "watched_status",
    "tree_rules",
    "verify",
    "sync",
    "renames",
    "query_cost",
    "served_commands",
    "enriched_search",
    "inspector",
    "in_place",
)
"""The first one leaves an indexed store to the others."""
LIBRARIES = ("faiss-cpu", "tantivy", "numpy")


def main() -> int:
    """Run them; 1 where one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--folders", type=int, default=1_000, help="default: %(default)s")
    parser.add_argument("--work", metavar="DIR", help="keep the stores here, and use them again")
    parser.add_argument(
        "--data", metavar="DIR", help="question sets of xquad, fusion, query_syntax"
    )
    parser.add_argument("--model", metavar="FOLDER", help="a model with its graph for ONNX")
    parser.add_argument("--large", action="store_true", help="a store of a million chunks, too")
    given = parser.parse_args()
    print(_machine(), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        sizes = ["--files", str(given.files), "--folders", str(given.folders)]
        shared = [*sizes, "--work", given.work or temporary]
        codes = [_run(name, shared) for name in SCRIPTS]
        codes += [_run(name, words) for name, words in _others(given)]
    return 1 if any(codes) else 0


def _others(given: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """The scripts that make what they need themselves, with their options."""
    model = given.model or "builtin"
    scripts: list[tuple[str, list[str]]] = [
        ("pdf", []),
        ("large_index", []),
        ("duplicates", []),
        ("code_chunks", []),
        ("in_place_life", []),
        ("moves", []),
        ("packs", []),
        ("backends", []),
    ]
    if given.model:
        scripts.append(("embedding", []))
    if given.data:
        scripts.append(("query_syntax", ["--xquad", given.data]))
        scripts.append(("misspelt", [given.data]))
        scripts.append(("layouts", [given.data, "--embedder", model]))
        scripts.append(("xquad", [given.data, "--embedder", model]))
        scripts.append(("fusion", ["--xquad", given.data, "--model", model]))
    if given.large:
        scripts.append(("large_store", []))
        scripts.append(("three_servers", []))
        scripts.append(("inspector", ["--files", "1000000", "--folders", "1000"]))
    return scripts


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

"""What an installation takes, and what serving adds: packages and MB on disk.

    python tests/bench/packages.py

pip resolves what the project needs without either, with HTTP, and with MCP on top, as if nothing
were installed, and puts what each adds into a temporary folder. It asks pip's package index. Sizes
are of files as installed, without the bytecode that Python writes later.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_MB = 15
"""What the base may grow by for either."""
BASE_LIMIT_MB = 400
"""The most that an installation without extras may take."""
PROJECT_MB = sum(one.stat().st_size for one in (ROOT / "filestore").rglob("*")) / 1e6
HTTP = ["inotify_simple", "prometheus-client", "python-multipart", "starlette", "uvicorn"]
MCP = ["mcp"]


def plain(name: str) -> str:
    """A package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pip(*words: str) -> str:
    """What pip prints."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    pipe = subprocess.PIPE
    return subprocess.run(command, check=True, stdout=pipe, stderr=pipe, text=True).stdout


def resolved(wanted: list[str]) -> dict[str, str]:
    """Name to version of all that pip would install."""
    report = pip("install", "--dry-run", "--ignore-installed", "--report", "-", *wanted)
    found = [one["metadata"] for one in json.loads(report)["install"]]
    return {plain(one["name"]): one["version"] for one in found}


def sizes_mb(pinned: dict[str, str]) -> dict[str, float]:
    """The size of each package, without what it needs."""
    with tempfile.TemporaryDirectory() as folder:
        words = [f"{name}=={version}" for name, version in pinned.items()]
        pip("install", "--no-deps", "--no-compile", "--target", folder, *words)
        found = {}
        for one in distributions(path=[folder]):
            paths = [str(one.locate_file(path)) for path in one.files or ()]
            sizes = [os.stat(path).st_size for path in paths if os.path.isfile(path)]
            found[plain(one.metadata["Name"])] = sum(sizes) / 1e6
    return found


def main() -> None:
    """Print a table for each."""
    form = argparse.RawTextHelpFormatter
    argparse.ArgumentParser(description=__doc__, formatter_class=form).parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    served = {plain(name) for name in (*HTTP, *MCP)}
    wanted = [
        one for one in project["dependencies"] if plain(re.split(r"[^\w.-]", one)[0]) not in served
    ]
    known = resolved(wanted)
    print(f"{len(known)} packages without serving")
    for title, more in (("HTTP", HTTP), ("MCP", MCP)):
        wanted += more
        found = resolved(wanted)
        added = {name: version for name, version in found.items() if name not in known}
        sizes = sizes_mb(added)
        for name in sorted(sizes, key=lambda one: -sizes[one]):
            print(f"{sizes[name]:8.2f} MB  {name} {added[name]}")
        total = sum(sizes.values())
        verdict = "within" if total <= LIMIT_MB else "over"
        print(f"{total:8.2f} MB  {title}: {len(sizes)} packages, {verdict} {LIMIT_MB} MB")
        known |= added
        if title == "HTTP":
            total = sum(sizes_mb(known).values()) + PROJECT_MB
            verdict = "within" if total <= BASE_LIMIT_MB else "over"
            print(f"{total:8.2f} MB  the base with this project, {verdict} {BASE_LIMIT_MB} MB")


if __name__ == "__main__":
    main()

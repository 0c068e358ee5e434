"""What each extra takes: MB on disk and seconds to install, in an environment of its own.

    python tests/bench/extras.py [EXTRA…]

Makes one wheel of the checkout, and for the base and each extra a fresh virtual environment, in
which pip installs it; pip may take packages from its cache and asks its index for the others. MB
are what the environment has more than an empty one, without the bytecode that Python writes later;
seconds are those of pip alone. `all` is what it says but torch and frameworks; what is only for
developers is left out.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
BASE_LIMIT_MB: Final = 400
"""The most that an installation without extras may take."""
_FOR_DEVELOPERS: Final = "dev"
"""How the names of extras begin that no user needs."""


def extras() -> list[str]:
    """The extras for users, as pyproject.toml names them; "" is the base."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = project["optional-dependencies"]
    return ["", *(name for name in names if not name.startswith(_FOR_DEVELOPERS))]


def size_mb(folder: Path) -> float:
    """What the files of a folder take, each once, in millions of bytes."""
    seen = (os.lstat(path) for path in folder.rglob("*") if path.suffix != ".pyc")
    return sum({one.st_ino: one.st_size for one in seen}.values()) / 1e6


def pip(python: Path | str, *words: str) -> None:
    """Run the pip of an environment, quietly."""
    command = [python, "-m", "pip", "-qq", "--disable-pip-version-check", *words]
    subprocess.run(command, check=True)


def measured(wheel: Path, extra: str, folder: Path) -> tuple[float, float, int]:
    """Install into a new environment: MB, seconds and packages more than it had."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python, before = folder / "bin" / "python", size_mb(folder)
    begun = time.perf_counter()
    pip(python, "install", "--no-compile", f"{wheel}[{extra}]" if extra else str(wheel))
    seconds = time.perf_counter() - begun
    # pip itself is there from the start.
    packages = len(list(folder.rglob("*.dist-info"))) - 1
    return size_mb(folder) - before, seconds, packages


def main() -> None:
    """Print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="only these; 'base' for none")
    chosen = [name if name != "base" else "" for name in parser.parse_args().extras]
    if unknown := set(chosen) - set(extras()):
        parser.error(f"no extra {', '.join(sorted(unknown))}")
    print("| Extra | MB | Packages | Seconds |\n|---|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory() as made:
        pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", made, str(ROOT))
        (wheel,) = Path(made).glob("*.whl")
        for extra in chosen or extras():
            with tempfile.TemporaryDirectory() as folder:
                size, seconds, packages = measured(wheel, extra, Path(folder))
            name = f"`{extra}`" if extra else "none"
            print(f"| {name} | {size:,.0f} | {packages} | {seconds:.0f} |", flush=True)
            if not extra and size > BASE_LIMIT_MB:
                raise SystemExit(f"the base takes {size:.0f} MB, allowed are {BASE_LIMIT_MB}")


if __name__ == "__main__":
    main()

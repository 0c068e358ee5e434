"""A file of gigabytes that cost its maker nothing is never read whole, wherever it lies.

The commands run in a process of their own, whose largest memory is read after each.
"""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

GIGABYTE: Final = 1024**3
VECTORS: Final = "file_index/.sidecar/{vectors}"
"""Hashed, block by block, by each command that reads vectors: five gigabytes take 20 s."""
MOST_BYTES: Final = 700 * 1024**2
"""Enough for every library that is loaded, and far from the file."""
COMMANDS: Final = (
    ("status",),
    ("verify", "--level", "full"),
    ("ls", "manual.md"),
    ("search", "pump", "--mode", "keyword"),
    ("reconstruct", "manual.md"),
    ("repair", "--plan"),
    ("undo", "--list"),
    ("show", "chunked/manual.md/{chunk}"),
    ("about", "chunked/manual.md/{chunk}"),
    ("sync",),
    ("rm", "manual.md"),
    ("undo",),
)
PLACES: Final = (
    "file_index/chunked/manual.md/{chunk}",
    "file_index/chunked/manual.md/meta.json",
    "file_index/chunked/manual.md/other.md",
    "file_index/filestore.toml",
    "file_index/.undo/000001/batch.json",
    "file_index/.undo/000001/0.before",
    "file_index/.sidecar/fulltext/stamp.json",
    "file_index/.sidecar/lock",
    "file_index/.sidecar/catalog.sqlite",
    "file_index/.sidecar/embeddings.sqlite",
    VECTORS,
    "manual.md",
    ".filestoreignore",
    ".git/hooks/post-merge",
    "home/filestore/machine.json",
    "home/filestore/settings.toml",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work tree with a store that has one of everything."""
    folder = tmp_path_factory.mktemp("made")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "manual.md").write_text("# Manual\n\nThe pump needs care.\n")
    _run(folder, ("init", "--embedder", "builtin"), ("add", "manual.md"))
    (folder / "manual.md").write_text("# Manual\n\nThe pump needs more care.\n")
    _run(folder, ("add", "manual.md"))
    (folder / "home" / "filestore").mkdir(parents=True, exist_ok=True)
    return folder


_LIMITED: Final = """
import resource, sys
from filestore.cli import main
from filestore.core.errors import FilestoreError
from filestore.store.inspected import InspectedStore

def peak_bytes():
    # What the kernel counts for getrusage began with the process that started this one.
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

for words in sys.argv[1].splitlines():
    if words.startswith("about|"):
        try:
            with InspectedStore("file_index", configuration="home") as store:
                store.about_file(words.partition("|")[2])
        except FilestoreError as error:
            sys.stderr.write(error.message)
        code = 0
    else:
        code = main(words.split("|"))
    sys.stdout.flush()
    peak = peak_bytes()
    sys.stderr.write(f"\\nended {code} {peak} {words}\\n")
"""


def _run(folder: Path, *commands: Sequence[str]) -> str:
    """Run commands in one process; what they said, with every code and the memory proved."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, "\n".join("|".join(words) for words in commands)],
        cwd=folder,
        env={
            **os.environ,
            "XDG_CONFIG_HOME": str(folder / "home"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=_limit,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    for line in done.stderr.splitlines():
        if line.startswith("ended "):
            _, code, peak, words = line.split(maxsplit=3)
            assert int(code) in (0, 1, 3, 4), (words, said[-3000:])
            assert int(peak) < MOST_BYTES, (words, peak)
    return said


def _limit() -> None:
    # What a command writes that takes a hole for data would fill the disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024**3, 1024**3))


@pytest.mark.parametrize(
    ("place", "gigabytes"),
    [
        *((place, 1 if place == VECTORS else 5) for place in PLACES),
        pytest.param(VECTORS, 5, marks=pytest.mark.exhaustive),
    ],
)
def test_no_command_reads_a_sparse_file_whole(
    made: Path, tmp_path: Path, place: str, gigabytes: int
) -> None:
    """Every command ends with an answer, and with little memory."""
    folder = tmp_path / "copy"
    shutil.copytree(made, folder, symlinks=True)
    chunk = next((folder / "file_index/chunked/manual.md").glob("chunk*.md")).name
    vectors = next((folder / "file_index/.sidecar").glob("vectors-*")).name
    path = folder / place.format(chunk=chunk, vectors=vectors)
    with path.open("r+b" if path.exists() else "wb") as file:
        file.truncate(gigabytes * GIGABYTE)
    said = _run(folder, *([word.format(chunk=chunk) for word in words] for words in COMMANDS))
    if place == PLACES[0]:
        assert f"cannot show chunked/manual.md/{chunk}: oversized" in said
    if place == "manual.md":
        assert "the limit is" in _run(folder, ("add", "manual.md"))

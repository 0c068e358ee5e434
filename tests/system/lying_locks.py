"""Two writers at once on a file system that locks within one machine only.

``python tests/system/lying_locks.py [--rounds 20] [--pair "sync and add"]``. Each pair of commands
runs in two children that both hold the lock, as on two machines. Afterwards every truth file is one
that the commands leave when they run alone or in turns, none is lost, and with locks that lock one
sync brings the sidecar in step. Prints a table; exits with 1 where anything failed.
"""

import argparse
import fcntl
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import crashes

WRITERS: Final = {
    "sync and sync": (("sync",), ("sync",)),
    "add and add": (("add", "stones.md"), ("add", "lease.md", "more.md")),
    "add and add of one": (("add", "stones.md"), ("add", "stones.md")),
    "sync and add": (("sync",), ("add", "stones.md", "more.md")),
    "repair and undo": (("repair", "--yes"), ("undo",)),
}


class OneMachine:
    """`flock` as on a file system that tells no other machine; each process is one of those."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._real = fcntl.flock
        self._own: dict[int, tuple[tuple[int, int], int]] = {}
        """By descriptor: the file it was of, and the descriptor that stands for it."""

    def __call__(self, descriptor: int, operation: int) -> None:
        """Lock a file that only this process has."""
        for held, (file, own) in [*self._own.items()]:
            if held == descriptor or not self._is_of(held, file):
                os.close(own)
                del self._own[held]
        status = os.fstat(descriptor)
        file = (status.st_dev, status.st_ino)
        name = "-".join(map(str, ("lock", *file, os.getpid())))
        own = os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)
        self._own[descriptor] = file, own
        self._real(own, operation)

    @staticmethod
    def _is_of(descriptor: int, file: tuple[int, int]) -> bool:
        try:
            status = os.fstat(descriptor)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == file


def make(folder: Path) -> None:
    """A work tree in which every command has something to do."""
    crashes.new_tree(folder)
    for name in ("stones.md", "lease.md", "more.md"):
        (folder / name).write_text(f"# {name}\n\n" + "The valve was renewed in June.\n" * 20)
    (folder / "file_index" / "chunked" / "own.md").write_text("A note of a person.\n")


def truth(folder: Path) -> dict[str, bytes]:
    chunked = folder / "file_index" / "chunked"
    found = {path.relative_to(chunked).as_posix(): path for path in chunked.rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if path.is_file() and not path.name.startswith(".filestore-tmp-")
    }


def alone(made: Path, folder: Path, orders: Any) -> list[dict[str, bytes]]:
    """What the truth is after some of the commands, one after another."""
    found = []
    for number, words in enumerate(orders):
        place = folder / f"alone{number}"
        shutil.copytree(made, place)
        for one in words:
            crashes.run(place, *one)
        found.append(truth(place))
    return found


def pair_at_once(made: Path, work: Path, name: str, rounds: int) -> tuple[int, list[str]]:
    """How often a writer was refused, and what went wrong."""
    first, second = WRITERS[name]
    orders = ((), (first,), (second,), (first, second), (second, first))
    possible = alone(made, work, orders)
    refused, wrong = 0, list[str]()
    for number in range(rounds):
        folder = work / f"both{number}"
        shutil.copytree(made, folder)
        real, fcntl.flock = fcntl.flock, OneMachine(work)
        try:
            children = [crashes.Child(folder, words) for words in (first, second)]
        finally:
            fcntl.flock = real
        ended = [child.wait() for child in children]
        refused += sum("got the lock while" in one.err for one in ended)
        wrong += [
            str(one) for one in ended if one.code not in (0, 1, 3, 4, 5) or "Traceback" in one.err
        ]
        wrong += lost(truth(folder), possible) + not_mended(folder)
        shutil.rmtree(folder)
    return refused, wrong


def lost(found: dict[str, bytes], possible: list[dict[str, bytes]]) -> list[str]:
    """The files that no order of the commands leaves so."""
    torn = [
        path for path, data in found.items() if not any(one.get(path) == data for one in possible)
    ]
    gone = set.intersection(*(set(one) for one in possible)) - found.keys()
    return [f"torn: {path}" for path in torn] + [f"lost: {path}" for path in gone]


def not_mended(folder: Path) -> list[str]:
    """What is wrong with the sidecar after one sync, with locks that lock."""
    status, synced = crashes.run(folder, "status"), crashes.run(folder, "sync")
    wrong = [str(one) for one in (status, synced) if one.code not in (0, 1)]
    verified = crashes.run(folder, "verify", "--level", "full", "--json")
    if verified.code not in (0, 1):
        return [*wrong, str(verified)]
    checked = json.loads(verified.out)
    wrong += [f"verify: {one}" for one in checked["findings"] if one["path"].startswith(".sidecar")]
    again = json.loads(crashes.run(folder, "sync", "--json").out)["applied"]
    return wrong + [f"a second sync: {one}" for one in again]


def main() -> int:
    """Run it; 1 where something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--pair", choices=WRITERS, action="append")
    given = parser.parse_args()
    crashes.warm()
    failed = 0
    # Flushed each time, or the children would print it once more.
    print("| pair | rounds | refused | failures |\n|---|---:|---:|---:|", flush=True)
    for name in given.pair or WRITERS:
        with tempfile.TemporaryDirectory() as work:
            made = Path(work) / "made"
            make(made)
            refused, wrong = pair_at_once(made, Path(work), name, given.rounds)
        failed += len(wrong)
        print(f"| {name} | {given.rounds} | {refused} | {len(wrong)} |", flush=True)
        for one in wrong[:10]:
            print(f"  {one}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

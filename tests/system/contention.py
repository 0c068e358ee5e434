"""Many writers and readers on one store: no update is lost, no reader sees half of anything.

``python tests/system/contention.py [--seconds 30] [--writers 8] [--readers 4]``. Each writer edits
chunk files of its own, syncs, and looks for what it wrote as soon as the sync has returned; now and
then it adds a source. Readers search and ask for the status all the time. At the end every
acknowledged edit is in the store, and a full verification is clean. Prints a table; exits with 1
where anything failed.
"""

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILES = 12
"""Chunk files of each writer."""
_COUNT = re.compile(r"count (\d+) of writer (\d+)")


def body(writer: int, count: int) -> str:
    """A chunk that says one thing three times: who, how often, and a word that only it has."""
    return (
        f"---\ncount: {count}\n---\nThis is count {count} of writer {writer}, "
        f"known as {word(writer, count)}.\n"
    )


def word(writer: int, count: int) -> str:
    """A word that stands in one version of one file."""
    return f"w{writer}n{count}x"


def replace(path: Path, text: str) -> None:
    """Save as an editor does: a temporary file takes the place of the old one."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.rename(path)


class Part:
    """A process of the crowd: what it did, and what went wrong."""

    def __init__(self, folder: Path, number: int, until: float) -> None:
        self.folder, self.number, self.until = folder, number, until
        self.did: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.acknowledged: dict[str, int] = {}
        self.chance = random.Random(number)

    def store(self) -> Any:
        """Open the store anew, as a command does."""
        from filestore.store import Store

        root = str(self.folder / "file_index")
        return Store(root, configuration=str(self.folder / "configuration"))

    def write(self) -> None:
        """Edit, sync, and look for it, until the time is up."""
        own = self.folder / "file_index" / "chunked" / f"writer{self.number}"
        own.mkdir(parents=True, exist_ok=True)
        count = 0
        while time.monotonic() < self.until:
            count += 1
            path = own / f"chunk{count % FILES}.md"
            replace(path, body(self.number, count))
            with self.store() as store:
                store.sync(wait_s=60)
                self.did["synced"] += 1
                self.acknowledged[str(path)] = count
                wanted = word(self.number, count)
                answer = store.search(wanted, mode="keyword", k=3)
            paths = [hit.path for hit in answer.hits]
            if f"chunked/writer{self.number}/{path.name}" not in paths:
                self.wrong.append(f"acknowledged {wanted} is not found")
            if self.chance.random() < 0.1:
                self.add(count)

    def add(self, count: int) -> None:
        """Bring a source in, or up to date."""

        source = self.folder / f"source{self.number}.md"
        source.write_text(
            f"# Source {self.number}\n\nVersion {count}, {word(self.number, count)}.\n"
        )
        with self.store() as store:
            report = store.add(source, wait_s=60)
        self.did["added"] += 1
        if report.outcomes[0].error is not None:
            self.wrong.append(f"add: {report.outcomes[0].error}")

    def read(self) -> None:
        """Search and look, until the time is up."""
        generation = 0
        with self.store() as store:
            while time.monotonic() < self.until:
                mode = self.chance.choice(("keyword", "vector", "hybrid"))
                query = f"count of writer {self.chance.randrange(8)}"
                answer = store.search(query, mode=mode, k=20)
                self.did["searched"] += 1
                if answer.generation < generation:
                    self.wrong.append(f"generation went back to {answer.generation}")
                generation = answer.generation
                for hit in answer.hits:
                    self.judge(hit)
                if self.chance.random() < 0.1:
                    self.did["status"] += 1
                    store.status()

    def judge(self, hit: Any) -> None:
        """A file is whole, and its own."""
        if hit.freshness == "gone" or not hit.path.startswith("chunked/writer"):
            return
        found = _COUNT.search(hit.text)
        if found is None:
            self.wrong.append(f"torn: {hit.path}: {hit.text!r}")
        elif (
            word(int(found[2]), int(found[1])) not in hit.text
            or f"writer{found[2]}/" not in hit.path
        ):
            self.wrong.append(f"mixed: {hit.path}: {hit.text!r}")


def start(part: Part, work: Callable[[], None]) -> tuple[int, int]:
    """Do something in a child; its process and the pipe on which it reports."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        work()
    except BaseException:
        part.wrong.append(traceback.format_exc())
    report = {"did": part.did, "wrong": part.wrong, "acknowledged": part.acknowledged}
    with os.fdopen(writer, "w") as pipe:
        json.dump(report, pipe)
    os._exit(0)


def crowd(folder: Path, writers: int, readers: int, seconds: float) -> int:
    """Let them all loose, and look at what is left; the exit code."""
    from filestore.store import Store

    root, configuration = str(folder / "file_index"), str(folder / "configuration")
    Store.create(root, layout="tree", embedder="builtin", configuration=configuration).close()
    with Store(root, configuration=configuration) as store:
        store.sync()
    until = time.monotonic() + seconds
    started = []
    for number in range(writers + readers):
        part = Part(folder, number, until)
        started.append(start(part, part.write if number < writers else part.read))
    did: Counter[str] = Counter()
    wrong: list[str] = []
    acknowledged: dict[str, int] = {}
    for pid, reader in started:
        with os.fdopen(reader) as pipe:
            report = json.load(pipe)
        os.waitpid(pid, 0)
        did.update(report["did"])
        wrong += report["wrong"]
        acknowledged |= report["acknowledged"]
    wrong += after_all(root, configuration, acknowledged)
    print(f"{writers} writers and {readers} readers for {seconds:g} s\n")
    print("| did | times |\n|---|---:|")
    for what, times in did.items():
        print(f"| {what} | {times:,} |")
    print(f"| failures | {len(wrong):,} |")
    for one in wrong[:20]:
        print(f"  {one}")
    return 1 if wrong or not did["synced"] or (readers and not did["searched"]) else 0


def after_all(root: str, configuration: str, acknowledged: dict[str, int]) -> list[str]:
    """What is wrong once everybody is gone."""
    from filestore.store import Store

    wrong = []
    with Store(root, configuration=configuration) as store:
        store.sync()
        checked = store.verify(level="full")
        wrong += [
            f"verify: {one.code} {one.path}" for one in checked.findings if one.severity != "I"
        ]
        for path, count in acknowledged.items():
            if f"count {count} of" not in Path(path).read_text():
                wrong.append(f"{path} is not at {count} any more")
    return wrong


def main() -> int:
    """Run it; 1 where something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--readers", type=int, default=4)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as work:
        return crowd(Path(work), given.writers, given.readers, given.seconds)


if __name__ == "__main__":
    sys.exit(main())

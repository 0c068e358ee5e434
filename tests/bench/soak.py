"""Two agents, a person and `watch` on one store, for `--minutes`: nothing lost, nothing trampled.

One agent speaks MCP over standard input and output, the other over HTTP. Each reads a document,
waits, and adds a line, replaces a line of its own, or writes a note, naming the revision that it
read. The person edits the same documents as an editor does: it reads, waits, looks whether the file
is still the one it read, and puts a new one in its place. Every line has a word that occurs nowhere
else. In the end a line that was written and was not replaced must be there (else it is lost), a
line that was replaced must be gone (else it is trampled), every refusal must name the revision, and
the store must be clean.

    python -m tests.bench.soak --minutes 10
"""

import argparse
import asyncio
import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import filestore
from tests.system.server.serving import serving

DOCUMENTS: Final = 6
REVISION: Final = re.compile(r"^revision: ([0-9a-f]{16})$", re.M)
REFUSED: Final = re.compile(r"has revision [0-9a-f]{16}, not ")
PAUSE_S: Final = 0.6
"""The longest between reading and writing."""
COMMAND: Final = [sys.executable, "-P", "-m", "filestore"]


class Writer:
    """Who writes lines, and what became of each."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.chance = random.Random(seed)
        self.there: dict[str, str] = {}
        """Word to its document."""
        self.replaced: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.strange: list[str] = []
        """Refusals that name no revision."""

    def word(self) -> str:
        """A new one."""
        self.counts["words"] += 1
        return f"{self.name}{self.counts['words']:06d}"

    def own(self, path: str) -> str | None:
        """A word of its own in a document."""
        found = [word for word, place in self.there.items() if place == path]
        return self.chance.choice(found) if found else None


async def agent(client: Any, writer: Writer, until_s: float) -> None:
    """Read and write until it is time."""
    while time.monotonic() < until_s:
        path = f"{writer.chance.randrange(DOCUMENTS)}.md"
        word, old = writer.word(), writer.own(path)
        if writer.chance.random() < 0.05:
            done = await client.call_tool("add_note", {"text": f"- {word}\n", "title": word})
            path, old = f"notes/{word}.md", None
        else:
            shown = await client.call_tool("show", {"path": path})
            revision = REVISION.search(shown.content[0].text)
            if shown.is_error or revision is None:
                writer.strange.append(shown.content[0].text[:200])
                continue
            await asyncio.sleep(writer.chance.random() * PAUSE_S)
            given = {"path": path, "revision": revision[1]}
            if old is not None and writer.chance.random() < 0.5:
                given |= {"old": f"- {old}\n", "new": f"- {word}\n"}
                done = await client.call_tool("edit", given)
            else:
                old = None
                done = await client.call_tool("append", {**given, "text": f"- {word}"})
        if not done.is_error:
            writer.counts["written"] += 1
            writer.there[word] = path
            if old is not None:
                writer.replaced.add(old)
                del writer.there[old]
        elif REFUSED.search(done.content[0].text):
            writer.counts["refused"] += 1
        else:
            writer.strange.append(done.content[0].text[:200])


def person(root: Path, writer: Writer, until_s: float) -> None:
    """Edit as an editor does, which writes only over what it read."""
    while time.monotonic() < until_s:
        name = f"{writer.chance.randrange(DOCUMENTS)}.md"
        place, word, old = root / name, writer.word(), writer.own(name)
        before = place.read_bytes()
        time.sleep(writer.chance.random() * PAUSE_S)
        line = f"- {word}\n".encode()
        if old is not None and writer.chance.random() < 0.5:
            after = before.replace(f"- {old}\n".encode(), line)
        else:
            old, after = None, before + line
        temporary = root / f".{name}.swp"
        temporary.write_bytes(after)
        if place.read_bytes() != before:
            writer.counts["refused"] += 1
            temporary.unlink()
            continue
        temporary.replace(place)
        writer.counts["written"] += 1
        writer.there[word] = name
        if old is not None:
            writer.replaced.add(old)
            del writer.there[old]


@contextlib.contextmanager
def watching(root: Path) -> Iterator[None]:
    """`filestore watch` until the block ends."""
    with subprocess.Popen(
        [*COMMAND, "--store", str(root), "watch"], stdout=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield
        finally:
            process.terminate()


async def soak(root: Path, address: str, minutes: float) -> list[Writer]:
    """Let all of them write at once."""
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp_types import Implementation

    writers = [Writer("stdio", 1), Writer("http", 2), Writer("person", 3)]
    words = [*COMMAND[1:], "mcp", str(root), "--write"]
    started = StdioServerParameters(command=COMMAND[0], args=words, env=dict(os.environ))
    until_s = time.monotonic() + minutes * 60
    editing = threading.Thread(target=person, args=(root, writers[2], until_s))
    names = [Implementation(name=one.name, version="1") for one in writers]
    async with (
        Client(stdio_client(started), client_info=names[0]) as first,
        Client(address, client_info=names[1]) as second,
    ):
        editing.start()
        await asyncio.gather(agent(first, writers[0], until_s), agent(second, writers[1], until_s))
    editing.join()
    return writers


def judged(root: Path, writers: list[Writer]) -> int:
    """Print what became of every line; how much is wrong."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text()
        for path in root.rglob("*.md")
        if ".filestore" not in path.parts
    }
    wrong = 0
    print(f"{'writer':8} {'written':>8} {'refused':>8} {'lost':>6} {'trampled':>9} {'unnamed':>8}")
    for one in writers:
        lost = [
            word for word, path in one.there.items() if f"- {word}\n" not in texts.get(path, "")
        ]
        back = [
            word for word in one.replaced if any(f"- {word}\n" in text for text in texts.values())
        ]
        counts = one.counts["written"], one.counts["refused"], len(lost), len(back)
        print(f"{one.name:8} {counts[0]:8,} {counts[1]:8,} {counts[2]:6,} {counts[3]:9,} ", end="")
        print(f"{len(one.strange):8,}")
        print("".join(f"  {text!r}\n" for text in dict.fromkeys(one.strange)), end="")
        wrong += len(lost) + len(back) + len(one.strange)
    with filestore.open(root) as store:
        store.sync()
        kept = Counter(one.group.by or "you" for one in store.changes().changes)
        findings = [one for one in store.verify(level="full").findings if one.severity != "I"]
    print(f"changes kept, by program: {dict(kept)}; findings: {len(findings)}")
    written = sum(one.counts["written"] for one in writers[:2])
    return wrong + len(findings) + abs(kept.total() - written)


def main() -> int:
    """Make a store, let them write, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "vault")
        root.mkdir()
        os.environ["XDG_CONFIG_HOME"] = folder
        for number in range(DOCUMENTS):
            (root / f"{number}.md").write_text(f"# Document {number}\n\n- first\n")
        with filestore.create(root, layout="in-place", embedder="builtin") as store:
            store.sync()
        given = Path(folder), root, "--write", "--no-token", "--insecure"
        with watching(root), serving(*given) as served:
            writers = asyncio.run(soak(root, f"{served.url.rstrip('/')}/mcp", options.minutes))
        wrong = judged(root, writers)
    print("all there" if not wrong else f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""A server asked by fifty clients at once, with and without a writer beside them.

``filestore serve`` runs as a process of its own; each client asks the next as soon as it is
answered, over a connection that stays. First one asks alone, then fifty, then fifty beside a writer
who edits a file each second and has the store synced; each for ``--runs`` seconds. What is compared
is the time within which 95 of 100 are answered beside the writer with the median of fifty alone:
what one gets who asks alone says how much of it is waiting for a processor. Memory is that of the
server after the first quarter of the time with the writer, and at the end.

Then a folder of 300 notes is served in place, and each operation that reads is asked ``SHOWS``
times (fewer where ``--runs`` is small): memory after the first twentieth, and at the end.
"""

import asyncio
import contextlib
import glob
import json
import os
import statistics
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import measure
from in_place import make_notes
from served import TOKEN, Server, serving
from stores import TextMaker

CLIENTS = 50
ALLOWED = 3.0
GROWTH = 1.1
WORDS = 4
WRITE_EVERY_S = 1.0
NOTES = 300
SHOWS = 20_000
SHOWS_A_RUN = 50
READING = ("show", "document", "links", "similar", "search", "about", "status", "mcp")


@dataclass
class Asked:
    """What clients were answered."""

    times_s: list[float] = field(default_factory=list)
    errors: int = 0

    @property
    def median_s(self) -> float:
        """Half of the requests were answered within."""
        return statistics.median(self.times_s)

    @property
    def p95_s(self) -> float:
        """95 of 100 were."""
        return sorted(self.times_s)[int(0.95 * (len(self.times_s) - 1))]


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=10_000, folders=100, runs=60) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        with serving(root, "--write") as server:
            rows = asyncio.run(_rows(server, root, float(options.runs)))
        notes = os.path.join(options.work, "notes")
        make_notes(notes, NOTES, 3)
        measure.run(measure.filestore("init", "--in-place", "--embedder", "builtin", notes))
        times = min(SHOWS, SHOWS_A_RUN * options.runs)
        for operation in READING:
            with serving(notes) as server:
                rows.append(asyncio.run(_grown(server, notes, operation, times)))
    load = f"load {os.getloadavg()[0]:.1f}"
    title = f"A server of {options.files:,} chunks, {options.runs} s each, {load}"
    print(measure.table(title, rows))


async def _rows(server: Server, root: str, seconds: float) -> list[measure.Row]:
    maker = TextMaker(5)
    queries = [" ".join(maker.word() for _ in range(WORDS)) for _ in range(997)]
    # The first of each thread opens the store.
    await _ask(server, queries, CLIENTS, min(seconds, 5.0))
    one = await _ask(server, queries, 1, min(seconds, 10.0))
    alone = await _ask(server, queries, CLIENTS, seconds)
    writing = asyncio.create_task(_write(server, root, seconds))
    early = asyncio.create_task(_memory(server, seconds / 4))
    beside = await _ask(server, queries, CLIENTS, seconds)
    writes, failed = await writing
    before, after = await early, server.memory_bytes
    ratio = beside.p95_s / alone.median_s
    rate = len(beside.times_s) / seconds
    return [
        measure.Row(figure="one client, median", ours=measure.milliseconds(one.median_s)),
        measure.Row(
            figure=f"{CLIENTS} clients beside {writes:,} writes, 95 of 100 within",
            ours=measure.milliseconds(beside.p95_s),
            yardstick=f"median without writes {measure.milliseconds(alone.median_s)}",
            compared=f"× {ratio:.2f}",
            goal=f"≤ × {ALLOWED:g}",
            met=ratio <= ALLOWED,
        ),
        measure.Row(figure="answers a second beside writes", ours=f"{rate:,.0f}"),
        measure.counted("errors", one.errors + alone.errors + beside.errors + failed, 0),
        measure.Row(
            figure="memory of the server at the end",
            ours=f"{after / measure.MIB:.0f} MB",
            yardstick=f"after a quarter {before / measure.MIB:.0f} MB",
            compared=f"× {after / before:.2f}",
            goal=f"≤ × {GROWTH:g}",
            met=after <= GROWTH * before,
        ),
    ]


async def _grown(server: Server, notes: str, operation: str, times: int) -> measure.Row:
    """The memory of a server after many requests of one kind, all over one connection."""
    paths = sorted(glob.glob("**/*.md", root_dir=notes, recursive=True))
    before = 0
    async with _connection(server) as connection:
        for number in range(times):
            given: dict[str, object] = {"path": paths[number % len(paths)]}
            if operation in ("search", "about"):
                given = {"query" if operation == "search" else "asked": f"note {number}"}
            elif operation == "status":
                given = {}
            elif operation == "mcp":
                asked = {"name": "show", "arguments": given}
                given = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asked}
            status, _ = await connection.post(f"/{operation}", given)
            assert status == 200, (operation, status)
            before = server.memory_bytes if number == times // 20 else before
    after = server.memory_bytes
    return measure.Row(
        figure=f"memory after {times:,} times {operation}",
        ours=f"{after / measure.MIB:.0f} MB",
        yardstick=f"after {times // 20:,} {before / measure.MIB:.0f} MB",
        compared=f"× {after / before:.2f}",
        goal=f"≤ × {GROWTH:g}",
        met=after <= GROWTH * before,
    )


async def _memory(server: Server, after_s: float) -> int:
    await asyncio.sleep(after_s)
    return server.memory_bytes


async def _ask(server: Server, queries: list[str], clients: int, seconds: float) -> Asked:
    """Let so many clients search, each one question after the other."""
    asked = Asked()
    end_s = time.perf_counter() + seconds

    async def client(number: int) -> None:
        async with _connection(server) as connection:
            at = number
            while time.perf_counter() < end_s:
                query = {"query": queries[at % len(queries)], "k": 10}
                began_s = time.perf_counter()
                status, answer = await connection.post("/search", query)
                asked.times_s.append(time.perf_counter() - began_s)
                asked.errors += status != 200 or "hits" not in answer
                at += clients

    await asyncio.gather(*(client(number) for number in range(clients)))
    return asked


async def _write(server: Server, root: str, seconds: float) -> tuple[int, int]:
    """Edit a file each second, and have it indexed; how many times, and how many of it failed."""
    files = sorted(glob.glob(os.path.join(root, "chunked", "*", "chunk*.md")))
    end_s = time.perf_counter() + seconds
    done = failed = 0
    async with _connection(server) as connection:
        while time.perf_counter() < end_s:
            due_s = time.perf_counter() + WRITE_EVERY_S
            with open(files[done % len(files)], "a") as file:
                file.write(f"A line that was added as number {done}.\n")
            status, answer = await connection.post("/sync", {})
            failed += status != 200 or not answer["applied"]
            done += 1
            await asyncio.sleep(max(0.0, min(due_s, end_s) - time.perf_counter()))
    return done, failed


@dataclass
class Connection:
    """One that stays."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def post(self, path: str, given: dict[str, object]) -> tuple[int, dict[str, object]]:
        """Status and JSON of an answer."""
        body = json.dumps(given).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        told = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        data = await self.reader.readexactly(int(told["content-length"]))
        return int(lines[0].split()[1]), json.loads(data)


@contextlib.asynccontextmanager
async def _connection(server: Server) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


if __name__ == "__main__":
    main()

"""Search by an agent, beside the same search in an open store of the library.

A real `filestore mcp` is started, and asked over its standard input and output by the SDK's own
client, one question after the other; each in turns with ``store.search`` here. What is more is the
protocol: JSON there and back, checks, threads, the text for the agent. Then the same with server
and client in this process, for the processor time of all of it, as other programs wait for the
processor, too. ``--runs`` is the number of queries. The store in ``--work`` may have any model; a
new one has the built-in.
"""

import asyncio
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final

import measure
from stores import TextMaker

from filestore.search import Mode
from filestore.store import Store

WORDS: Final = 4
COUNT: Final = 10
ALLOWED_S: Final = 0.040
QUERIES_SEED: Final = 3
MODES: Final[tuple[Mode, ...]] = ("hybrid", "vector", "keyword")

Times = list[tuple[float, float]]
"""Seconds of each query: by an agent, in the library."""
Clock = Callable[[], float]


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=200) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        maker = TextMaker(QUERIES_SEED)
        queries = [" ".join(maker.word() for _ in range(WORDS)) for _ in range(options.runs)]
        # The user's configuration that the index was written under: another's is not trusted.
        configuration = os.environ["XDG_CONFIG_HOME"]
        with closing(Store(root, configuration=configuration)) as store:
            model = store.status().embedder["name"]
            found = asyncio.run(_ask_process(root, store, queries))
            spent = asyncio.run(_ask_here(root, configuration, store, queries))
    load = f"load {os.getloadavg()[0]:.1f}"
    title = f"Search by an agent: {options.files:,} chunks, {model}, {options.runs} queries, {load}"
    rows = [_row(mode, times, ALLOWED_S) for mode, times in found.items()]
    rows += [_row(f"{mode}, processor", times) for mode, times in spent.items()]
    print(measure.table(title, rows))


async def _ask_process(root: str, store: Store, queries: Sequence[str]) -> dict[Mode, Times]:
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = ["-m", "filestore", "mcp", root]
    started = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(stdio_client(started)) as client:
        return await _ask(client, store, queries, time.perf_counter)


async def _ask_here(
    root: str, configuration: str, store: Store, queries: Sequence[str]
) -> dict[Mode, Times]:
    from mcp.client import Client

    from filestore.server.agents.server import make_server
    from filestore.server.stores import Access, Stores

    with Stores.open([root], Access(), configuration=configuration, readers=1) as stores:
        async with Client(make_server(stores)) as client:
            return await _ask(client, store, queries, time.process_time)


async def _ask(
    client: Any, store: Store, queries: Sequence[str], clock: Clock
) -> dict[Mode, Times]:
    found: dict[Mode, Times] = {}
    for mode in MODES:
        times = []
        for query in [queries[0], *queries]:
            before = clock()
            answer = await client.call_tool("search", _given(query, mode))
            between = clock()
            own = store.search(query, k=COUNT, mode=mode)
            times.append((between - before, clock() - between))
            _require_same(answer, own.to_dict())
        # The first query opens and loads.
        found[mode] = times[1:]
    return found


def _given(query: str, mode: Mode) -> dict[str, Any]:
    return {"query": query, "k": COUNT, "mode": mode}


def _require_same(answer: Any, own: dict[str, Any]) -> None:
    theirs = re.findall(r"^[0-9]+\. (\S+) ", answer.content[0].text, re.MULTILINE)
    if theirs != [hit["path"] for hit in own["hits"]]:
        raise SystemExit("an agent is answered otherwise than the library")


def _row(name: str, times: Times, allowed_s: float | None = None) -> measure.Row:
    ours, theirs = ([one[at] for one in times] for at in (0, 1))
    median_s, base_s = statistics.median(ours), statistics.median(theirs)
    p95 = measure.milliseconds(statistics.quantiles(ours, n=20)[-1])
    return measure.Row(
        figure=f"{name} (p95 {p95})",
        ours=measure.milliseconds(median_s),
        yardstick=f"store.search {measure.milliseconds(base_s)}",
        compared=f"× {median_s / base_s:.2f}",
        goal="–" if allowed_s is None else f"≤ {measure.milliseconds(allowed_s)}",
        met=None if allowed_s is None else median_s <= allowed_s,
    )


if __name__ == "__main__":
    main()

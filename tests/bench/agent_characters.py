"""What an agent pays in characters: tool list, instructions, a list of all, a search; two servers.

    python tests/bench/agent_characters.py BUNDLE [--other 'PATH/basic-memory mcp']

Over a clone of a vault that is indexed where it lies. The other server is basic-memory, in an
environment of its own (Python 3.12 or newer); where its command is not found its column is empty.
Searches are the questions of ``agent_questions.json``, typed as they are; the mean is printed.
"""

import argparse
import asyncio
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import agent_answers

ROWS: Final = ("tool list", "without output schemas", "instructions", "list", "search")
LISTS: Final = (("list", {}), ("list_directory", {"dir_name": "/", "depth": 10}))
SEARCHES: Final = ("search", "search_notes")
_MORE: Final = {"tool list": 12_000, "list": 4_000, "search": 6_000}
"""What ours may have at most."""


async def counted(
    command: Sequence[str], variables: Mapping[str, str], queries: Sequence[str]
) -> dict[str, int]:
    """Characters by row."""
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    given = {**os.environ, **variables}
    started = StdioServerParameters(command=command[0], args=list(command[1:]), env=given)
    async with Client(stdio_client(started)) as client:
        tools = (await client.list_tools()).tools
        names = {one.name for one in tools}
        dumped = [one.model_dump(by_alias=True, exclude_none=True) for one in tools]
        bare = [{key: one[key] for key in one if key != "outputSchema"} for one in dumped]

        async def called(name: str, values: Mapping[str, Any]) -> int:
            done = await client.call_tool(name, dict(values))
            return sum(len(getattr(one, "text", "")) for one in done.content)

        listing = [await called(name, values) for name, values in LISTS if name in names]
        search = next(name for name in SEARCHES if name in names)
        found = [await called(search, {"query": query}) for query in queries]
        return {
            "tool list": len(json.dumps(dumped)),
            "without output schemas": len(json.dumps(bare)),
            "instructions": len(client.instructions or ""),
            "list": sum(listing),
            "search": sum(found) // len(found),
        }


def main() -> None:
    """Count and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle")
    parser.add_argument("--other", default="basic-memory mcp", metavar="COMMAND")
    options = parser.parse_args()
    given = json.loads((Path(agent_answers.__file__).parent / "agent_questions.json").read_text())
    queries = [one["question"] for one in given["questions"]]
    with tempfile.TemporaryDirectory() as folder:
        root = agent_answers.cloned(options.bundle, Path(folder))
        own = [sys.executable, "-m", "filestore", "mcp", str(root), "--write"]
        columns = {"filestore": asyncio.run(counted(own, {}, queries))}
        other = shlex.split(options.other)
        if shutil.which(other[0]):
            variables = {"HOME": folder, "BASIC_MEMORY_HOME": str(root)}
            columns["basic-memory"] = asyncio.run(counted(other, variables, queries))
    print(f"{'characters':24}" + "".join(f"{name:>14}" for name in columns))
    for row in ROWS:
        most = f"  (at most {_MORE[row]:,})" if row in _MORE else ""
        print(f"{row:24}" + "".join(f"{one[row]:14,}" for one in columns.values()) + most)


if __name__ == "__main__":
    main()

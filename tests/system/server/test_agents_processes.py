"""Agents: `filestore mcp` as a process of its own, and the same over HTTP from a real server."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import mcp_types as types
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from starlette.applications import Starlette

import filestore
from filestore.server.agents.server import HttpDoor
from filestore.server.stores import Access, Stores
from tests.system.server.conftest import RENT
from tests.system.server.serving import serving

T = TypeVar("T")


def started(place: Path, *words: str) -> StdioServerParameters:
    """How a program starts the server."""
    arguments = ["-m", "filestore", "mcp", str(place), *words]
    return StdioServerParameters(
        command=sys.executable, args=arguments, env=dict(os.environ), cwd=str(place.parent)
    )


def ask(place: Path, use: Callable[[Client], Awaitable[T]], *words: str, mode: str = "auto") -> T:
    """What somebody does who started it."""

    async def connected() -> T:
        async with Client(stdio_client(started(place, *words)), mode=mode) as client:
            return await use(client)

    return asyncio.run(asyncio.wait_for(connected(), 60))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_program_that_starts_it_is_answered(place: Path, mode: str) -> None:
    """By the protocol of now and that before."""

    async def search(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "sync" in names
        assert "edit" not in names
        return await client.call_tool("search", {"query": "rent", "k": 1})

    done = ask(place, search, mode=mode)
    assert RENT.strip() in done.content[0].text
    assert done.content[0].text.startswith("1. chunked/notes/rent.md:")


@contextmanager
def process(place: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The server with pipes to it; it is ended at the end."""
    given = started(place, *words)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [given.command, *given.args], stdin=pipe, stdout=pipe, stderr=pipe, cwd=given.cwd
    ) as found:
        try:
            yield found
        finally:
            found.kill()


def message(number: int, method: str, **params: Any) -> bytes:
    """One request as it is sent."""
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(asked).encode() + b"\n"


HELLO = message(
    1,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "test", "version": "1"},
)
ASKED = {"query": "rent", "k": 1}
READY = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'


def test_nothing_but_the_protocol_is_printed(place: Path) -> None:
    """Whatever is sent: each line of the output is an answer."""
    words = [
        HELLO,
        READY,
        b"no JSON\n",
        b"\xff\xfe\n",
        b"[" * 10_000 + b"\n",
        message(2, "tools/call", name="sync", arguments={}),
        message(3, "tools/call", name="search", arguments={"query": "\ud800 rent"}),
        message(4, "tools/call", name="search", arguments=[1]),
        message(5, "no/such/method"),
        message(6, "tools/call", name="status", arguments={}),
    ]
    with process(place, "--write") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"".join(words))
        server.stdin.flush()
        answers: dict[Any, Any] = {}
        while 6 not in answers:
            line = json.loads(server.stdout.readline())
            assert line["jsonrpc"] == "2.0"
            answers[line.get("id")] = line
        out, err = server.communicate()
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert server.returncode == 0
    assert b"Traceback" not in err
    assert answers[6]["result"]["content"][0]["text"].startswith("clean")


BROKEN: list[tuple[bytes, list[Any]]] = [
    (b'{"jsonrpc": "2.0", "id": 21, "method": "ping", "params": {"a": "\\ud800"}}', [21]),
    (
        b'{"jsonrpc": "2.0", "method": "ping", "params": {"id": 1, "b": "\\udfff"}, "id": "x"}',
        ["x"],
    ),
    (b'{"jsonrpc": "2.0", "id": "\xff", "method": "ping"}', [None]),
    (b'{"jsonrpc": "2.0", "id": 22, "method": "ping", "params": {"a": "\xff"}}', [22]),
    (b'\xef\xbb\xbf{"jsonrpc": "2.0", "id": 23, "method": "ping"}', [23]),
    (b'{"jsonrpc": "2.0", "id": 2.5, "method": "ping"}', [2.5]),
    (b'{"jsonrpc": "2.0", "id": 4.0, "method": "ping"}', [4.0]),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', [None]),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', [None]),
    (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', [None]),
    (b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}', [None]),
    (b'{"jsonrpc": "1.0", "id": 24, "method": "ping"}', [24]),
    (b'{"id": 25, "method": "ping"}', [25]),
    (b'{"jsonrpc": "2.0", "id": 26, "method": 5}', [26]),
    (b'{"jsonrpc": "2.0", "id": 27, "method": "ping", "params": [1]}', [27]),
    (b'{"jsonrpc": "2.0", "id": 28}', [28]),
    (b'{"jsonrpc": "2.0", "id": 29, "method": "ping", "params": {"a": ', [29]),
    (b'{"jsonrpc": "2.0", "id": 30, "method": "ping"} x', [30]),
    (b'{"jsonrpc": "2.0", "id": 31, "method": "ping", "params": ' + b'{"a":' * 2_000, [31]),
    (b'[{"jsonrpc": "2.0", "id": 32, "method": "ping"}, {"id": "y"}, {"method": "z"}]', [32, "y"]),
    (b"[]", [None]),
    (b"5", [None]),
    (b'"id": 5', [None]),
    (b"no JSON", [None]),
    (b"{}", [None]),
    (b"\xff\xfe{\x00}\x00", [None]),
    (b'{"jsonrpc": "2.0", "id": 33, "method": "ping", "params": {"a": "' + b"a" * 4_200_000, [33]),
    (b'{"jsonrpc": "2.0", "id": 34, "method": "tools/call", "params": {}}', [34]),
    (b'{"jsonrpc": "2.0", "id": 35, "method": "tools/call", "params": {"name": [1]}}', [35]),
    (b'{"jsonrpc": "2.0", "id": 36, "method": "ping", "params": {"_meta": 5}}', [36]),
]
"""Messages that are broken, and the ids of what is answered."""


def known(line: "bytes | str") -> Any:
    """An answer, which the SDK's reader takes where its id is one."""
    answer = json.loads(line)
    if not isinstance(answer["id"], float):
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    return answer


def test_whoever_sends_a_broken_message_is_answered(place: Path) -> None:
    """Under its id where it has one, and so is the next message."""
    with process(place) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(HELLO + READY + b"\n\r\n")
        server.stdin.flush()
        assert known(server.stdout.readline())["id"] == 1
        for number, (broken, ids) in enumerate(BROKEN, start=1_000):
            server.stdin.write(broken + b"\n" + message(number, "ping"))
            server.stdin.flush()
            answers = [known(server.stdout.readline()) for _ in (*ids, None)]
            found = {one["id"]: one for one in answers}
            assert found.keys() == {*ids, number}, broken[:100]
            assert "result" in found[number]
            assert all(found[one]["error"]["message"] for one in ids)
        assert server.communicate() == (b"", b"")


def test_a_broken_message_is_answered_over_http(stores: Stores) -> None:
    """By a status and an error with its id."""
    import httpx

    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    with (
        over_http(stores) as address,
        httpx.Client(headers=headers, trust_env=False, timeout=60) as client,
    ):
        for broken, ids in BROKEN:
            done = client.post(address, content=broken)
            answers = done.json() if isinstance(done.json(), list) else [done.json()]
            assert [one["id"] for one in answers] == ids, broken[:100]
            assert all(known(json.dumps(one))["error"]["message"] for one in answers)
            found = client.post(address, content=message(1, "ping"))
            assert (found.status_code, found.json()["id"]) == (200, 1)


NOISY = """
import os, subprocess, sys
from filestore.server.agents.server import run_stdio
from filestore.server.stores import Access, Stores

def opened():
    print("a library prints")
    os.write(1, b"so does one in C\\n")
    subprocess.run(["echo", "and a child process"], check=True)
    assert sys.stdin.read() == "", "nor does anybody read what is meant for the protocol"
    return Stores.open(sys.argv[1:], Access())

sys.exit(run_stdio(opened))
"""


def test_what_others_print_is_no_part_of_the_protocol(place: Path) -> None:
    """It goes to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", NOISY, str(place)],
        input=HELLO,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "filestore"
    for said in (b"a library prints", b"so does one in C", b"and a child process"):
        assert said in done.stderr


def loaded(server: "subprocess.Popen[bytes]") -> bool:
    """Whether a process has what searches the texts in its memory."""
    return "tantivy" in Path(f"/proc/{server.pid}/maps").read_text()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_it_is_ready_before_it_is_asked(place: Path) -> None:
    """An agent's first search waits for nothing, nor does the handshake wait for that."""
    with process(place) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert not loaded(server)
        server.stdin.write(HELLO)
        server.stdin.flush()
        assert server.stdout.readline()
        ends_s = time.monotonic() + 60
        while not loaded(server):
            assert time.monotonic() < ends_s
            assert server.poll() is None
        server.stdin.write(READY + message(2, "tools/call", name="search", arguments=ASKED))
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        assert answer["result"]["content"][0]["text"].startswith("1. ")
        assert server.communicate() == (b"", b"")
    assert server.returncode == 0


def test_who_leaves_in_the_middle_leaves_a_whole_store(place: Path) -> None:
    """A note that was asked for is written whole or not at all, and the process ends."""
    note = {"text": "The key hangs by the door.\n", "title": "Key"}
    with process(place, "--write") as server:
        assert server.stdin is not None
        server.stdin.write(
            HELLO + READY + message(2, "tools/call", name="add_note", arguments=note)
        )
        server.stdin.close()
        assert server.wait(60) == 0
    with filestore.open(place) as store:
        assert store.status().clean
        assert store.verify(level="full").clean


def test_who_reads_no_more_is_no_fault(place: Path) -> None:
    """A program that died is not told about it in a page of words."""
    with process(place) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(HELLO)
        server.stdin.flush()
        assert server.stdout.readline()
        server.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            for number in range(2, 6):
                server.stdin.write(message(number, "tools/list"))
                server.stdin.flush()
        with contextlib.suppress(BrokenPipeError):
            server.stdin.close()
        assert server.stderr.read() == b""
        assert server.wait(60) == 0


def test_what_was_asked_last_is_answered_before_the_end(place: Path) -> None:
    """Input from a file ends with the last request; one that is cancelled holds nothing up."""
    search = [message(number, "tools/call", name="search", arguments=ASKED) for number in (2, 3)]
    cancels = b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": %s}\n'
    odd = [cancels % one for one in (b'{"requestId": [1]}', b'{"requestId": true}', b"{}")]
    for more, ids in (
        (b"", [1, 2, 3]),
        (search[1], [1, 2, 3]),
        (cancels % b'{"requestId": 3}', [1, 2]),
        (b"".join(odd), [1, 2, 3]),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "no/such"}', [1, 2, 3, 9]),
    ):
        given = started(place)
        done = subprocess.run(
            [given.command, *given.args],
            input=HELLO + READY + b"".join(search) + more,
            capture_output=True,
            cwd=given.cwd,
            timeout=60,
            check=True,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert {one["id"] for one in answers} >= set(ids), more
        for one in answers:
            assert "result" in one or one["id"] in (3, 9), one


def test_it_ends_once_nobody_reads(place: Path) -> None:
    """Though a wrapper holds its input open, at the first answer that cannot be given."""
    with process(place) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(HELLO)
        server.stdin.flush()
        assert server.stdout.readline()
        server.stdout.close()
        server.stdin.write(message(2, "ping"))
        server.stdin.flush()
        assert server.wait(60) == 0


def test_a_signal_ends_it(place: Path) -> None:
    """Though whoever started it keeps its input open."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with process(place) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(HELLO)
            server.stdin.flush()
            assert server.stdout.readline()
            server.send_signal(number)
            assert server.wait(30) == 128 + number


def test_where_no_store_is_it_says_so(tmp_path: Path) -> None:
    """In words, not in the protocol."""
    with process(tmp_path / "none") as server:
        out, err = server.communicate()
    assert (server.returncode, out) == (3, b"")
    assert b"Traceback" not in err
    assert b"filestore init" in err


@contextmanager
def over_http(stores: Stores) -> Iterator[str]:
    """The address of a real server on loopback."""
    door = HttpDoor(stores)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        async with door.running():
            yield

    app = Starlette(routes=door.routes("/mcp"), lifespan=lifespan)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_same_over_http(stores: Stores, mode: str) -> None:
    """By the SDK's own client, several at once."""

    async def search(address: str, query: str) -> Any:
        async with Client(address, mode=mode) as client:
            return await client.call_tool("search", {"query": query, "k": 1})

    async def everyone(address: str) -> Any:
        return await asyncio.gather(*(search(address, word) for word in ["rent", "gas"] * 4))

    with over_http(stores) as address:
        answers = asyncio.run(everyone(address))
    found = [one.content[0].text.split(" ")[1] for one in answers]
    assert found == ["chunked/notes/rent.md:4", "chunked/notes/gas.md:4"] * 4


def test_two_servers_serve_one_store(place: Path) -> None:
    """What one writes the other finds."""

    async def both() -> Any:
        words = stdio_client(started(place, "--write"))
        async with Client(words) as one, Client(stdio_client(started(place))) as other:
            (place / "chunked" / "notes" / "lamp.md").write_text("A lamp burns.\n")
            done = await one.call_tool("sync", {})
            assert not done.is_error
            return await other.call_tool("search", {"query": "lamp", "k": 1})

    found = asyncio.run(asyncio.wait_for(both(), 60))
    assert found.content[0].text.startswith("1. chunked/notes/lamp.md:1 ")
    with filestore.open(place) as store:
        assert store.status().clean


def test_the_stores_are_let_go(place: Path) -> None:
    """Once the door is closed."""
    with Stores.open([str(place)], Access()) as stores, over_http(stores):
        pass
    assert not [one for one in threading.enumerate() if one.name == "filestore"]


INSPECTOR = shutil.which("mcp-inspector")


needs_inspector = pytest.mark.skipif(
    INSPECTOR is None, reason="needs mcp-inspector: npm install -g @modelcontextprotocol/inspector"
)


@needs_inspector
def test_the_inspector_understands_it(place: Path) -> None:
    """The protocol's own program, which is not ours nor the SDK's: what it prints is an answer."""

    def inspected(method: str, *words: str) -> Any:
        start = started(place, "--write")
        assert INSPECTOR is not None
        command = [INSPECTOR, "--cli", start.command, *start.args, "--method", method, *words]
        done = subprocess.run(command, capture_output=True, timeout=100, check=True)
        return json.loads(done.stdout)

    assert "search" in [tool["name"] for tool in inspected("tools/list")["tools"]]
    words = ("--tool-name", "search", "--tool-arg", "query=rent", "--tool-arg", "k=1")
    (found,) = inspected("tools/call", *words)["content"]
    assert found["text"].startswith("1. chunked/notes/rent.md:")
    (listed,) = inspected("resources/list")["resources"]
    (content,) = inspected("resources/read", "--uri", listed["uri"])["contents"]
    assert RENT.strip() in content["text"]
    assert len(inspected("resources/templates/list")["resourceTemplates"]) == 2
    words = ("--tool-name", "add_note", "--tool-arg", "text=The key hangs by the door.")
    (wrote,) = inspected("tools/call", *words)["content"]
    assert (place / json.loads(wrote["text"].splitlines()[0].removeprefix("wrote "))).exists()


@needs_inspector
def test_the_inspector_understands_it_over_http(place: Path, tmp_path: Path) -> None:
    """Of a real server; without a token, as not every version of it can send one."""
    assert INSPECTOR is not None
    with serving(tmp_path, place, "--no-token", "--insecure") as server:
        start = [INSPECTOR, "--cli", f"{server.url}mcp", "--method"]
        words = ["tools/call", "--tool-name", "search", "--tool-arg", "query=rent"]
        done = subprocess.run([*start, *words], capture_output=True, timeout=100, check=True)
        (found,) = json.loads(done.stdout)["content"]
        assert found["text"].startswith("1. chunked/notes/rent.md:")
        done = subprocess.run(
            [*start, "resources/list"], capture_output=True, timeout=100, check=True
        )
        assert [one["name"] for one in json.loads(done.stdout)["resources"]] == ["notes"]
    assert server.errors == []

"""A served inspector: the server as a process, and the sockets that a browser would open to it."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

WAIT_S: Final = 30.0
_SEQUENCE: Final = re.compile(r"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07]*\x07|[()].|.)")


def shown(drawn: str) -> str:
    """The words in what is sent to a terminal."""
    return _SEQUENCE.sub("", drawn)


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def address(self) -> str:
        """Of its page."""
        return f"http://127.0.0.1:{self.port}"

    def end(self) -> int:
        """Interrupt it as Ctrl-C does; returns its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(WAIT_S)


@contextmanager
def served(folder: Path, *words: str) -> Iterator[Served]:
    """Serve the store in a folder."""
    port = free_port()
    command = [sys.executable, "-m", "tui", "--serve", "--port", str(port), *words]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder / "example_index", stdout=out, stderr=out)
    try:
        until_s = time.monotonic() + WAIT_S
        while f":{port}" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until_s, "the server does not say where it is"
            time.sleep(0.02)
        yield Served(process=process, port=port)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(WAIT_S)


@dataclass(slots=True, kw_only=True)
class Page:
    """What a page of the browser has: keys go out, what is drawn comes in."""

    socket: aiohttp.ClientWebSocketResponse
    drawn: str = field(default="")

    async def type(self, *keys: str) -> None:
        """Press keys; what was drawn before does not count any more."""
        self.drawn = ""
        for key in keys:
            await self.socket.send_json(["stdin", key])

    async def until(self, words: str) -> None:
        """Wait until words are drawn."""
        async with asyncio.timeout(WAIT_S):
            while words not in shown(self.drawn):
                message = await self.socket.receive()
                assert message.type is aiohttp.WSMsgType.BINARY, (message, self.drawn)
                self.drawn += message.data.decode(errors="replace")

    async def press(self, key: str, words: str) -> None:
        """Press a key and wait until words are drawn."""
        await self.type(key)
        await self.until(words)


@asynccontextmanager
async def page_of(address: str, **options: Any) -> AsyncIterator[Page]:
    """Open the socket that the page of a server opens."""
    async with aiohttp.ClientSession() as session:
        origin = options.pop("origin", address)
        url = f"{address.replace('http', 'ws', 1)}/ws?width=100&height=30"
        async with session.ws_connect(url, origin=origin, **options) as opened:
            yield Page(socket=opened)

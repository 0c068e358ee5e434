"""The inspector in a real browser: Chromium without a screen, driven through its own protocol."""

import asyncio
import base64
import json
import re
import shutil
import subprocess
import time
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.tui.browsing_by_socket import WAIT_S, served, shown
from tests.tui.looks import make_store

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SWITCHES = (
    *("--headless=new", "--no-sandbox", "--no-first-run", "--disable-background-networking"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--window-size=1200,700"),
    *("--remote-debugging-port=0", "about:blank"),
)
NAMED = {
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Escape": {"code": "Escape", "windowsVirtualKeyCode": 27},
}


class Browser:
    """One page of a browser."""

    def __init__(self, protocol):
        self.protocol = protocol
        self.drawn = ""
        self.asked = []
        """The addresses that the page asked for."""
        self.complaints = []
        """What the page said on the console that is an error."""
        self.number = 0

    async def call(self, method, **parameters):
        """Have the browser do something; returns what it answers."""
        self.number += 1
        number = self.number
        await self.protocol.send_json({"id": number, "method": method, "params": parameters})
        return (await self.listen(lambda message: message.get("id") == number))["result"]

    async def listen(self, is_wanted):
        """Take what the browser tells until something is among it."""
        async with asyncio.timeout(WAIT_S):
            while True:
                message = json.loads((await self.protocol.receive()).data)
                self.hear(message)
                if is_wanted(message):
                    return message

    def hear(self, message):
        """Keep what the page drew and asked for."""
        told = message.get("params", {})
        if message.get("method") == "Network.webSocketFrameReceived":
            data = told["response"]["payloadData"]
            if told["response"]["opcode"] == 2:
                self.drawn += base64.b64decode(data).decode(errors="replace")
        elif message.get("method") == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])
        elif message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(told)

    async def press(self, *keys, words):
        """Press keys and wait until words are drawn."""
        self.drawn = ""
        for key in keys:
            more = NAMED.get(key, {"text": key})
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        await self.until(words)

    async def until(self, words):
        """Wait until words are drawn."""
        if words not in shown(self.drawn):
            await self.listen(lambda _: words in shown(self.drawn))


@asynccontextmanager
async def browser_of(profile):
    """A browser with one page, ended with the context."""
    command = [CHROMIUM, f"--user-data-dir={profile}", *SWITCHES]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        port = profile / "DevToolsActivePort"
        until_s = time.monotonic() + WAIT_S
        while not port.exists() or "\n" not in port.read_text():
            assert time.monotonic() < until_s, "the browser does not start"
            await asyncio.sleep(0.05)
        address = f"http://127.0.0.1:{port.read_text().split()[0]}"
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{address}/json") as answer:
                pages = [one for one in await answer.json() if one["type"] == "page"]
            debugger = pages[0]["webSocketDebuggerUrl"]
            async with session.ws_connect(debugger, max_msg_size=0) as protocol:
                yield Browser(protocol)
    finally:
        process.terminate()
        process.wait(WAIT_S)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_browser_shows_and_works_the_inspector(tmp_path):
    """The tree is seen, keys move and search, `e` and applying are refused; nothing comes from
    elsewhere, and what is painted is no empty page."""
    make_store(tmp_path)

    async def act(server):
        async with browser_of(tmp_path / "profile") as browser:
            for domain in ("Network", "Page", "Runtime", "Log"):
                await browser.call(f"{domain}.enable")
            await browser.call("Page.navigate", url=server.address)
            await browser.until("field-guide")
            await browser.until("3 errors")
            await browser.press("j", "j", words="source/glossary.md")
            await browser.press("e", words="browser")
            await browser.press("s", words="a phrase")
            await browser.press(*"sensors", "Enter", words="hybrid")
            # Together with a key that follows at once, it would be another key.
            await browser.press("Escape", words="8 resources")
            await browser.press("3", words="nothing is planned")
            # The first may come before the page has the keys.
            await browser.press("3", "A", words="--serve --write")
            picture = await browser.call("Page.captureScreenshot", format="png")
        assert browser.complaints == []
        assert {re.match(r"\w+://[^/]*", one)[0] for one in browser.asked} == {server.address}
        # A page of one colour is a few kilobytes.
        assert len(base64.b64decode(picture["data"])) > 10_000

    with served(tmp_path) as server:
        asyncio.run(act(server))

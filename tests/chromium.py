"""Chromium without a screen, driven through its own protocol."""

import asyncio
import base64
import json
import shutil
import subprocess
import time
from contextlib import asynccontextmanager

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_S = 60
SWITCHES = (
    *("--headless=new", "--no-sandbox", "--no-first-run", "--disable-background-networking"),
    *("--disable-gpu", "--window-size=1200,700"),
    *("--remote-debugging-port=0", "about:blank"),
)
KEYS = {
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Escape": {"code": "Escape", "windowsVirtualKeyCode": 27},
    "Tab": {"code": "Tab", "windowsVirtualKeyCode": 9},
    "ArrowDown": {"code": "ArrowDown", "windowsVirtualKeyCode": 40},
    "ArrowUp": {"code": "ArrowUp", "windowsVirtualKeyCode": 38},
    "ArrowLeft": {"code": "ArrowLeft", "windowsVirtualKeyCode": 37},
    "ArrowRight": {"code": "ArrowRight", "windowsVirtualKeyCode": 39},
    " ": {"code": "Space", "windowsVirtualKeyCode": 32, "text": " "},
}


class Browser:
    """One page of a browser."""

    def __init__(self, protocol):
        self.protocol = protocol
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
        message = await self.listen(lambda message: message.get("id") == number)
        assert "result" in message, (method, message)
        return message["result"]

    async def listen(self, is_wanted):
        """Take what the browser tells until something is among it."""
        async with asyncio.timeout(WAIT_S):
            while True:
                message = json.loads((await self.protocol.receive()).data)
                self.hear(message)
                if is_wanted(message):
                    return message

    def hear(self, message):
        """Keep what the page asked for, and complained about."""
        told = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])
        elif message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(told)

    async def evaluate(self, expression):
        """The value of a piece of JavaScript in the page."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    async def until(self, condition):
        """Wait until a condition in JavaScript holds."""
        until_s = time.monotonic() + WAIT_S
        while not await self.evaluate(f"Promise.resolve({condition}).then(Boolean)"):
            assert time.monotonic() < until_s, (condition, await self.evaluate(SEEN))
            await self.evaluate("new Promise((done) => setTimeout(done, 20))")

    async def press(self, *keys):
        """Press keys, one after the other."""
        for key in keys:
            more = KEYS.get(key, {"text": key})
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def write(self, text):
        """Write where the focus is."""
        await self.call("Input.insertText", text=text)

    async def picture(self, path=None):
        """What is painted, as PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        data = base64.b64decode(answer["data"])
        if path is not None:
            path.write_bytes(data)
        return data


SEEN = "document.body ? document.body.innerText.slice(0, 2000) : ''"


@asynccontextmanager
async def browser_of(profile, kind=Browser):
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
                browser = kind(protocol)
                for domain in ("Network", "Page", "Runtime", "Log"):
                    await browser.call(f"{domain}.enable")
                yield browser
    finally:
        process.terminate()
        process.wait(WAIT_S)

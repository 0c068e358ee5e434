"""The inspector in a real browser: Chromium without a screen, driven through its own protocol."""

import asyncio
import base64
import re

import pytest

from tests import chromium
from tests.tui.browsing_by_socket import served, shown
from tests.tui.looks import make_store


class Browser(chromium.Browser):
    """A page that shows a terminal."""

    def __init__(self, protocol):
        super().__init__(protocol)
        self.drawn = ""

    def hear(self, message):
        """Keep what the page drew, too."""
        super().hear(message)
        if message.get("method") == "Network.webSocketFrameReceived":
            response = message["params"]["response"]
            if response["opcode"] == 2:
                self.drawn += base64.b64decode(response["payloadData"]).decode(errors="replace")

    async def press(self, *keys, words):
        """Press keys and wait until words are drawn."""
        self.drawn = ""
        await super().press(*keys)
        await self.until(words)

    async def until(self, words):
        """Wait until words are drawn."""
        if words not in shown(self.drawn):
            await self.listen(lambda _: words in shown(self.drawn))


@pytest.mark.skipif(chromium.CHROMIUM is None, reason="there is no Chromium")
def test_a_browser_shows_and_works_the_inspector(tmp_path):
    """The tree is seen, keys move and search, `e` and applying are refused; nothing comes from
    elsewhere, and what is painted is no empty page."""
    make_store(tmp_path)

    async def act(server):
        async with chromium.browser_of(tmp_path / "profile", Browser) as browser:
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
            picture = await browser.picture()
        assert browser.complaints == []
        assert {re.match(r"\w+://[^/]*", one)[0] for one in browser.asked} == {server.address}
        # A page of one colour is a few kilobytes.
        assert len(picture) > 10_000

    with served(tmp_path) as server:
        asyncio.run(act(server))

"""What all clients together may take of a server, without a network."""

import asyncio
from typing import Any

import pytest

from filestore.server.http import limits
from filestore.server.http.limits import Limits
from filestore.store.threads import BusyError

POST = {"type": "http", "method": "POST", "path": "/search", "headers": []}


async def nothing(_: Any) -> None:
    """Takes what is sent."""


def test_all_bodies_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many at once is told to come again; once another is answered there is room."""
    monkeypatch.setattr(limits, "MOST_HELD_BYTES", 250)
    answered = asyncio.Event()
    waiting = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal waiting
        while (await receive()).get("more_body"):
            pass
        waiting += 1
        await answered.wait()

    async def body() -> Any:
        return {"type": "http.request", "body": b"a" * 100, "more_body": False}

    async def ask() -> None:
        guarded = Limits(app, asyncio.Event())
        first = [asyncio.ensure_future(guarded(POST, body, nothing)) for _ in range(2)]
        while waiting < 2:
            await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await guarded(POST, body, nothing)
        answered.set()
        await asyncio.gather(*first)
        await guarded(POST, body, nothing)

    asyncio.run(ask())

"""Who asks, as the doors pass it on to what is asked."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp_types import Implementation

from filestore.server import requests
from filestore.server.agents.server import make_server
from filestore.server.operations import LONGEST_NAME, ROUTES
from filestore.server.stores import Access, Caller, Stores, caller_name
from filestore.store.threads import ReadOnlyError
from tests.advice import all_words
from tests.system.server.conftest import RENT


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> list[Caller]:
    """Whoever asked for a file, in their order."""
    found: list[Caller] = []

    def answer_to(self: requests.Show, store: Any, caller: Caller) -> Any:
        found.append(caller)
        return self.answer(store)

    monkeypatch.setattr(requests.Show, "answer_to", answer_to)
    return found


@pytest.mark.parametrize("writes", [False, True])
def test_an_agent_is_known_by_its_program(
    place: Path, callers: list[Caller], *, writes: bool
) -> None:
    """By the name that it gives itself, on one line; a program, whatever it is called."""

    async def ask() -> None:
        with Stores.open([str(place)], Access(writes=writes)) as stores:
            info = Implementation(name="Ag\n\x1b[31ment \u202e", version="1")
            async with Client(make_server(stores), client_info=info) as client:
                done = await client.call_tool("show", {"path": "chunked/notes/rent.md"})
                assert RENT in done.content[0].text

    asyncio.run(ask())
    (caller,) = callers
    assert (caller.writes, caller.person) == (writes, False)
    assert caller.name.startswith("Ag")
    assert caller.name.isprintable()


@pytest.mark.parametrize(
    "name", ["", " ", "a" * 10_000, "a\nb", "\x1b]0;x\x07", "\u202eb", "\ud800"]
)
def test_a_name_is_short_and_on_one_line(name: str) -> None:
    """It is printed, and kept in files."""
    found = caller_name(name)
    assert len(found) <= LONGEST_NAME
    assert found.isprintable()
    assert "\ud800" not in found
    assert found == found.strip()


def test_who_may_only_read_changes_nothing(place: Path) -> None:
    """Where the store is served to be written, too; and it says how that would be."""
    reader = Caller(name="reader", writes=False, person=False)
    with Stores.open([str(place)], Access(writes=True)) as stores:
        store = stores.named(None)
        for operation in ROUTES.values():
            if operation.writes and operation.name != "sync":
                known = operation.schema["properties"]
                wanted = {
                    key: ["a"] if known[key].get("type") == "array" else "a"
                    for key in operation.schema["required"]
                }
                with pytest.raises(ReadOnlyError, match="reader may read only") as caught:
                    asyncio.run(store.ask(operation, wanted, reader))
                assert "filestore token add reader --write" in all_words(caught.value)

"""Agents: the tools over MCP, asked by the SDK's own client in this process."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp.client import Client

import filestore
from filestore.server.agents.server import make_server
from filestore.server.stores import Access, Stores
from tests.system.server.conftest import RENT

T = TypeVar("T")

READING = ["search", "show", "similar", "about", "status"]


def with_client(stores: Stores, use: Callable[[Client], Awaitable[T]]) -> T:
    """What somebody does who is connected."""

    async def connected() -> T:
        async with Client(make_server(stores)) as client:
            return await use(client)

    return asyncio.run(connected())


def call(stores: Stores, name: str, **given: Any) -> Any:
    """What a tool answers."""
    return with_client(stores, lambda client: client.call_tool(name, given))


def test_a_hit_says_where_it_is(stores: Stores, place: Path) -> None:
    """In few words, and as the JSON of the command line."""
    done = call(stores, "search", query="rent", k=1)
    with filestore.open(place) as store:
        assert done.structured_content == store.search("rent", k=1).to_dict()
    assert "chunked/notes/rent.md" in done.content[0].text
    assert RENT.strip() in done.content[0].text
    assert "[" not in done.content[0].text


def test_what_is_not_fresh_says_so(stores: Stores, place: Path) -> None:
    """Where the hit is named."""
    (place / "chunked" / "notes" / "rent.md").write_text("The rent is paid in gold.\n")
    done = call(stores, "search", query="rent", k=1)
    assert "[edited]" in done.content[0].text
    assert done.structured_content["hits"][0]["freshness"] == "edited"


@pytest.mark.parametrize("writes", [True, False])
def test_tools_say_what_they_do(place: Path, writes: bool) -> None:
    """Those that write are there for who may write alone."""
    with Stores.open([str(place)], Access(writes=writes)) as stores:
        tools = with_client(stores, lambda client: client.list_tools()).tools
    found = {tool.name: tool for tool in tools}
    assert set(READING) <= set(found)
    for name in ("sync", "add_note", "edit_note"):
        assert (name in found) == writes
    for name, tool in found.items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint == (name in READING)
        assert "store" not in tool.input_schema["properties"]


def test_a_refusal_says_what_helps(stores: Stores) -> None:
    """As a result that the agent reads."""
    for name, given in (
        ("search", {"query": "rent", "k": -1}),
        ("search", {}),
        ("show", {"path": "../../etc/passwd"}),
        ("show", {"path": "nowhere.md"}),
        ("nothing", {}),
    ):
        done = call(stores, name, **given)
        assert done.is_error
        assert "Try: " in done.content[0].text
        assert "Traceback" not in done.content[0].text
        assert "root:" not in done.content[0].text


def test_who_may_read_cannot_write(place: Path) -> None:
    """Though the tool is called by its name."""
    with Stores.open([str(place)], Access()) as stores:
        assert "--write" in call(stores, "sync").content[0].text


def test_a_note_is_written_and_found(stores: Stores, place: Path) -> None:
    """At once; the answer names what undoes it."""
    done = call(stores, "add_note", text="The key hangs by the door.\n", title="Key")
    note = done.structured_content
    assert f"filestore undo {note['undo']}" in done.content[0].text
    found = call(stores, "search", query="key door", k=1).structured_content["hits"][0]
    assert (found["path"], found["freshness"]) == (note["path"], "fresh")
    edited = call(stores, "edit_note", path=note["path"], old="door", new="stairs")
    assert "by the stairs" in (place / note["path"]).read_text()
    with filestore.open(place) as store:
        store.undo(edited.structured_content["undo"])
        store.undo(note["undo"])
    assert not (place / note["path"]).exists()


def test_an_edit_says_what_it_replaces(stores: Stores) -> None:
    """One passage, or all of a note; nothing in between."""
    note = call(stores, "add_note", text="The key hangs by the door.\n").structured_content["path"]
    wrong: list[dict[str, str]] = [
        {},
        {"old": "key"},
        {"new": "x"},
        {"old": "key", "text": "x"},
        {"old": "", "new": "x"},
    ]
    for given in wrong:
        assert call(stores, "edit_note", path=note, **given).is_error
    assert call(stores, "edit_note", path=note, old="a lamp", new="x").is_error
    assert not call(stores, "edit_note", path=note, text="All new.\n").is_error
    assert not call(stores, "edit_note", path=note, old="new", new="old").is_error


def test_several_stores_are_named(place: Path, tmp_path: Path) -> None:
    """By a parameter that is there only then."""
    with filestore.create(tmp_path / "other", embedder="builtin") as store:
        store.put("Whales sing.\n", into="sea")
    with Stores.open([str(place), str(tmp_path / "other")], Access()) as stores:
        done = call(stores, "search", store="other", query="whales", k=1)
        assert "Whales sing." in done.content[0].text
        assert call(stores, "search", query="whales").is_error
        assert call(stores, "search", store="kbb", query="whales").is_error


def test_a_store_that_vanished_is_said_to_be(stores: Stores, place: Path) -> None:
    """And answers again once it is back."""
    place.rename(place.parent / "away")
    done = call(stores, "search", query="rent")
    assert done.is_error
    (place.parent / "away").rename(place)
    assert not call(stores, "search", query="rent").is_error


def test_a_change_from_outside_is_answered(stores: Stores, place: Path) -> None:
    """Once it was synced there, by whoever."""
    (place / "chunked" / "notes" / "lamp.md").write_text("A lamp burns in the hall.\n")
    with filestore.open(place) as store:
        store.sync()
    found = call(stores, "search", query="lamp hall", k=1).structured_content
    assert found["hits"][0]["path"] == "chunked/notes/lamp.md"
    assert found["hits"][0]["freshness"] == "fresh"

"""Agents that send anything, and stores that hold anything: an answer or a refusal, in words."""

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import filestore
from filestore.core.safe_text import safe_text
from filestore.server import operations
from filestore.server.agents import server, tools
from filestore.server.stores import Access, Stores
from tests.system.conftest import files_below
from tests.system.server.conftest import AGENT
from tests.system.server.test_agents import RENT_PATH, asked, call, with_client

SECRET = "nobody is to read this"
TOOLS = ["search", "show", "similar", "about", "status", "sync", "add_note", "append", "edit"]
LURES = st.sampled_from(
    [
        "../secret.md",
        "/etc/passwd",
        "chunked/link.md",
        "chunked/notes/rent.md",
        "chunked/../../secret.md",
        "filestore.toml",
        ".sidecar/catalog.sqlite",
        "~/x",
        "a\0b",
        "rent.md:99999999999999999999",
        "%2e%2e/secret.md",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | LURES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "query",
        "k",
        "mode",
        "where",
        "source",
        "kind",
        "path",
        "old",
        "new",
        "text",
        "title",
        "folder",
        "metadata",
        "asked",
        "depth",
    ]
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tool=st.sampled_from([*TOOLS, "undo", "", "../x"]), data=st.data())
def test_any_arguments_are_answered_or_refused(
    stores: Stores, place: Path, tool: str, data: st.DataObject
) -> None:
    """Nothing of this process, and nothing from outside the store, is in what is said."""
    secret = place.parent / "secret.md"
    if not secret.exists():
        secret.write_text(SECRET)
        (place / "chunked" / "link.md").symlink_to(secret)
    given_values = data.draw(st.dictionaries(NAMES, VALUES, max_size=4))
    done = asyncio.run(tools.call(stores, tool, given_values, AGENT))
    said = done.model_dump_json()
    assert SECRET not in said
    assert "root:x:" not in said
    assert "internal error" not in said
    assert "Traceback" not in said
    assert secret.read_text() == SECRET
    assert {path.name for path in place.parent.iterdir()} == {"kb", "secret.md"}


@pytest.mark.parametrize("what", [None, [], "words", 3, {"query": {}}])
def test_arguments_that_are_no_object_are_refused(stores: Stores, what: Any) -> None:
    """Also before the protocol has looked at them."""
    done = asyncio.run(tools.call(stores, "search", what, AGENT))
    assert done.is_error
    assert "internal" not in done.model_dump_json()


def test_hidden_signs_of_a_text_are_seen(stores: Stores, place: Path) -> None:
    """What a person does not see an agent is not told unseen; the JSON has it as it is."""
    hidden = "".join(chr(0xE0000 + ord(sign)) for sign in "obey")
    text = f"A lamp{hidden} burns.\x1b[31m\n"
    (place / "chunked" / "notes" / "lamp.md").write_text(text)
    assert not call(stores, "sync").is_error
    done = call(stores, "search", query="lamp", k=1)
    assert hidden not in done.content[0].text
    assert "\\U000e006f" in done.content[0].text
    assert safe_text(done.content[0].text) == done.content[0].text
    assert hidden in asked(stores, "search", query="lamp", k=1)["hits"][0]["text"]


def test_names_of_any_bytes_are_told(stores: Stores, place: Path) -> None:
    """As every command shows them, and understood again."""
    name = os.fsencode(place / "chunked" / "notes") + b"/\xff \xf0\x9f\x90\xb3.md"
    with open(name, "wb") as file:
        file.write(b"Whales sing.\n")
    assert not call(stores, "sync").is_error
    (hit,) = asked(stores, "search", query="whales", k=1)["hits"]
    assert "\\xff" in hit["path"]
    json.dumps(hit).encode()
    assert "Whales sing." in call(stores, "show", path=hit["path"]).content[0].text


def test_a_store_that_is_another_one_is_answered(stores: Stores, place: Path) -> None:
    """Whoever moved one away and made another gets the new one's answers."""
    assert not call(stores, "search", query="rent").is_error
    place.rename(place.parent / "old")
    with filestore.create(place, embedder="builtin") as store:
        store.put("Whales sing.\n", into="sea", names="whales")
    (hit,) = asked(stores, "search", query="whales", k=1)["hits"]
    assert hit["path"] == "chunked/sea/whales.md"


def test_answers_are_of_one_generation_while_others_write(stores: Stores, place: Path) -> None:
    """The next sync is seen whole or not at all."""
    stop = threading.Event()

    def writes() -> None:
        with filestore.open(place) as store:
            number = 0
            while not stop.is_set():
                number += 1
                for name in ("one", "two"):
                    file = place / "chunked" / "notes" / f"{name}.md"
                    file.write_text(f"lantern {name} number {number}\n")
                store.sync()

    async def asks(_: Any) -> list[dict[str, Any]]:
        (store,) = stores
        given = {"query": "lantern", "mode": "keyword"}
        return [await store.ask(operations.TOOLS["search"], given, AGENT) for _ in range(40)]

    thread = threading.Thread(target=writes)
    thread.start()
    try:
        answers = with_client(stores, asks)
    finally:
        stop.set()
        thread.join()
    generations = [one["generation"] for one in answers]
    assert generations == sorted(generations)
    assert not call(stores, "sync").is_error
    found = asked(stores, "search", query="lantern", mode="keyword")["hits"]
    assert {hit["freshness"] for hit in found} == {"fresh"}


def test_nothing_is_written_by_who_may_only_read(place: Path) -> None:
    """Whatever is called, the folder stays byte for byte."""
    before = files_below(place / "chunked")
    with Stores.open([str(place)], Access()) as stores:
        for name, asked in (
            ("add_note", {"text": "x"}),
            ("edit", {"path": RENT_PATH, "old": "rent", "new": "y", "revision": ""}),
            ("append", {"path": RENT_PATH, "text": "y", "revision": ""}),
        ):
            assert call(stores, name, **asked).is_error
        assert not call(stores, "sync").is_error
    assert files_below(place / "chunked") == before


def test_instructions_say_what_is_here_in_lines_of_ours(tmp_path: Path) -> None:
    """How much, in which folders; whatever they are called, and however many they are."""
    for number, name in enumerate(["a\nNote: obey", "x" * 200, *(f"f{n}" for n in range(40))]):
        folder = tmp_path / "vault" / name
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(f"# A{number}\n\nText {number}.\n")
    with filestore.create(tmp_path / "vault", layout="in-place", embedder="builtin") as store:
        store.sync()
    with Stores.open([str(tmp_path / "vault")], Access()) as stores:
        text = server.instructions(stores)
    first, second = text.split("\n")
    assert first.startswith("Notes and documents kept as files.")
    assert second.startswith("vault: 42 documents; folders ")
    assert second.endswith("read only.")
    assert len(text) <= 1_500

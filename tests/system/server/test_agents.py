"""Agents: the tools over MCP, asked by the SDK's own client in this process."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
from mcp.client import Client

import filestore
from filestore.server.agents import tools
from filestore.server.agents.server import make_server
from filestore.server.operations import TOOLS
from filestore.server.stores import Access, Stores
from tests.advice import advised
from tests.system.server.conftest import AGENT, RENT

T = TypeVar("T")

RENT_PATH = "chunked/notes/rent.md"
READING = ["list", "search", "show", "similar", "about", "status"]


def with_client(stores: Stores, use: Callable[[Client], Awaitable[T]]) -> T:
    """What somebody does who is connected."""

    async def connected() -> T:
        async with Client(make_server(stores)) as client:
            return await use(client)

    return asyncio.run(connected())


def call(stores: Stores, name: str, **given: Any) -> Any:
    """What a tool answers."""
    return with_client(stores, lambda client: client.call_tool(name, given))


def asked(stores: Stores, name: str, **given: Any) -> dict[str, Any]:
    """The JSON of what a tool answers, as it is over HTTP."""
    return asyncio.run(next(iter(stores)).ask(TOOLS[name], given, AGENT))


def test_a_hit_says_where_it_is(stores: Stores, place: Path) -> None:
    """In few words, and as the JSON of the command line."""
    done = call(stores, "search", query="rent", k=1)
    with filestore.open(place) as store:
        assert asked(stores, "search", query="rent", k=1) == store.search("rent", k=1).to_dict()
    assert done.structured_content is None
    assert "chunked/notes/rent.md" in done.content[0].text
    assert RENT.strip() in done.content[0].text
    assert "[" not in done.content[0].text


def test_a_hit_begins_with_what_shows_it(stores: Stores, place: Path) -> None:
    """Its path, as it stands there or with the lines that another text has behind it."""
    source = place.parent / "house.md"
    source.write_text("# House\n\n## Lamps\n\nA lamp burns in the hall.\n")
    with filestore.open(place) as store:
        store.add(source)
    for tool, given in (("search", {"query": "lamp hall"}), ("similar", {"path": RENT_PATH})):
        done = call(stores, tool, k=2, **given)
        hit = asked(stores, tool, k=2, **given)["hits"][0]
        first = done.content[0].text.splitlines()[0]
        assert first.startswith(f"1. {hit['path']} ")
        assert isinstance(hit["line"], int)
        assert hit["freshness"] == "fresh"
    found = call(stores, "search", query="lamp hall", k=1)
    assert "house.md:5)" in found.content[0].text
    path = asked(stores, "search", query="lamp hall", k=1)["hits"][0]["path"]
    for one in (path, "../house.md:5", "../house.md:5-6"):
        shown = call(stores, "show", path=one).content[0].text
        assert "A lamp burns in the hall." in shown
    now = asked(stores, "show", path=path)["revision"]
    edited = call(stores, "edit", path=f"{path}:5", old="hall", new="yard", revision=now)
    assert f"wrote {path}" in edited.content[0].text


def test_a_heading_stands_once_above_its_passage(tmp_path: Path) -> None:
    """Where the passage begins with it; another one gets the title it is under."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "house.md").write_text("# House\n\nA lamp burns.\n")
    (vault / "shed.md").write_text("---\ntitle: Shed\n---\nA lamp burns there, too.\n")
    with filestore.create(vault, layout="in-place", embedder="builtin") as store:
        store.sync()
    with Stores.open([str(vault)], Access()) as stores:
        of_house, of_shed = (
            call(stores, "search", query=query, k=1).content[0].text for query in ("house", "shed")
        )
    assert of_house.count("> # House\n") == 1
    assert "> # Shed\n> A lamp burns there" in of_shed


def test_a_path_is_taken_as_it_is_written(tmp_path: Path) -> None:
    """Also one in quotes, which has blanks and brackets in it, and line ends."""
    vault = tmp_path / "vault"
    vault.mkdir()
    names = ["a lamp.md", "(lamp) [1].md", 'the "lamp".md', "lamp\n2. b.md", "lamp: x.md"]
    for name in names:
        (vault / name).write_text(f"# Lamp\n\nA lamp burns. {names.index(name)}\n")
    with filestore.create(vault, layout="in-place", embedder="builtin") as store:
        store.sync()
    with Stores.open([str(vault)], Access()) as stores:
        lines = call(stores, "search", query="lamp", k=9).content[0].text.splitlines()
        heads = [line for line in lines if not line.startswith("> ")]
        assert len(heads) == len(names)
        for line in heads:
            path = re.match(r'[0-9]+\. ("(?:[^"\\]|\\.)*"\S*|\S+)', line)[1]
            shown = call(stores, "show", path=path)
            assert not shown.is_error, path
            assert "A lamp burns." in shown.content[0].text


def test_in_place_a_hit_is_shown_by_its_line(tmp_path: Path) -> None:
    """The section alone, not the whole document."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "house.md").write_text(
        f"# House\n\n{'Old. ' * 400}\n\n## Lamps\n\nA lamp burns in the hall.\n"
    )
    with filestore.create(vault, layout="in-place", embedder="builtin") as store:
        store.sync()
    with Stores.open([str(vault)], Access()) as stores:
        first = call(stores, "search", query="lamp hall", k=1).content[0].text.splitlines()[0]
        path = first.split()[1]
        assert path.startswith("house.md:")
        for one in (path, f"{path}-9"):
            shown = call(stores, "show", path=one).content[0].text
            assert "A lamp burns" in shown
            assert shown.count("Old.") < 400
        near = call(stores, "similar", path="house.md:1", k=3).content[0].text
        assert "(house.md)" not in near


def test_the_answer_is_short_and_plain(stores: Stores) -> None:
    """No word of a command line that an agent does not have, no empty names, no bare zeros."""
    assert call(stores, "sync").content[0].text == "nothing to do: the index is up to date"
    about = call(stores, "about").content[0].text
    assert "1 document, 2 passages" in about
    assert "- notes" in about.splitlines()
    given = {"text": "The key hangs by the door.\n", "metadata": {"tags": ["key", "door"]}}
    note = asked(stores, "add_note", **given)["path"]
    assert "> tags: key, door" in call(stores, "show", path=note).content[0].text.splitlines()
    gone = call(stores, "show", path="chunked/notes/gone.md").content[0].text
    assert "Try: use a path exactly as search returned it" in gone


def test_what_a_large_store_is_about_is_short(tmp_path: Path) -> None:
    """However many documents, folders and headings there are, and however long their names."""
    for number in range(120):
        folder = tmp_path / f"{number % 40} {'f' * 150}"
        folder.mkdir(exist_ok=True)
        text = f"# {'Long ' * 100}{number}\n\nWords.\n"
        (folder / f"{number} {'n' * 150}.md").write_text(text, "utf-8")
        (tmp_path / f"{number}.md").write_text(text, "utf-8")
    (tmp_path / "deep.md").write_text("\n\n".join(f"## Head {one}\n\nA." for one in range(900)))
    with filestore.create(tmp_path, layout="in-place", embedder="builtin") as store:
        store.sync()
        assert len(store.about("deep.md").outline) <= 100
    with Stores.open([str(tmp_path)], Access()) as stores:
        for asked_of in ("", f"1 {'f' * 150}", "deep.md", "words"):
            said = call(stores, "about", asked=asked_of).content[0].text
            assert len(said) <= 4_000
            assert asked_of == "words" or " more: " in said or "documents" in said


@pytest.mark.parametrize("layout", ["tree", "flat", "in-place"])
def test_notes_in_every_layout(tmp_path: Path, layout: Literal["tree", "flat", "in-place"]) -> None:
    """Named by an agent as it likes; what undoes it names the store, wherever a person sits."""
    with filestore.create(tmp_path / "a b", layout=layout, embedder="builtin") as store:
        store.sync()
    with Stores.open([str(tmp_path / "a b")], Access(writes=True)) as stores:
        done = call(stores, "add_note", text="日本語 of the key.\n", title="Größe 🐳: 1/2")
        assert not done.is_error, done.content[0].text
        path = json.loads(done.content[0].text.splitlines()[0].removeprefix("wrote "))
        assert path.endswith("Größe 🐳 1 2.md")
        with filestore.open(tmp_path / "a b") as store:
            (undo,) = (one.id for one in store.batches())
        assert f"--store '{tmp_path}/a b' undo {undo}" in done.content[0].text
        for tool, given in (
            ("edit", {"old": "日本語", "new": "Words"}),
            ("append", {"text": "More."}),
        ):
            now = asked(stores, "show", path=path)["revision"]
            assert now in call(stores, "show", path=path).content[0].text
            assert not call(stores, tool, path=path, revision=now, **given).is_error
        assert "Words of the key." in call(stores, "search", query="key").content[0].text
        assert asked(stores, "status")["clean"]


def test_what_is_not_fresh_says_so(stores: Stores, place: Path) -> None:
    """Where the hit is named; a search that may look at the files finds them as they are."""
    (place / "chunked" / "notes" / "rent.md").write_text("The rent is paid in gold.\n")
    # Without a client: what greets one looks at the files.
    given = {"query": "rent", "k": 1, "update": False}
    done = asyncio.run(tools.call(stores, "search", given, AGENT))
    assert "[edited]" in done.content[0].text
    found = asked(stores, "search", query="rent", k=1, update=False)
    assert found["hits"][0]["freshness"] == "edited"
    for name in ("tin", "lead"):
        (place / "chunked" / "notes" / f"{name}.md").write_text(f"The rent is paid in {name}.\n")
        found = asked(stores, "search", query=f"paid in {name}", k=1)
        assert found["hits"][0]["path"] == f"chunked/notes/{name}.md"
        assert found["hits"][0]["freshness"] == "fresh"


@pytest.mark.parametrize("writes", [True, False])
def test_tools_say_what_they_do(place: Path, writes: bool) -> None:
    """Those that write are there for who may write alone."""
    with Stores.open([str(place)], Access(writes=writes)) as stores:
        tools = with_client(stores, lambda client: client.list_tools()).tools
    found = {tool.name: tool for tool in tools}
    assert set(READING) <= set(found)
    for name in ("add_note", "append", "edit"):
        assert (name in found) == writes
    for name, tool in found.items():
        assert tool.annotations is not None
        is_read = name in READING or (name == "sync" and not writes)
        assert tool.annotations.read_only_hint == is_read
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
        assert "Try: " in done.content[0].text or advised(done.content[0].text)
        assert "Traceback" not in done.content[0].text
        assert "root:" not in done.content[0].text


def test_who_may_read_cannot_write(place: Path) -> None:
    """Though the tool is called by its name."""
    with Stores.open([str(place)], Access()) as stores:
        assert "--write" in call(stores, "add_note", text="x").content[0].text


def test_a_note_is_written_and_found(stores: Stores, place: Path) -> None:
    """At once; the answer names what undoes it."""
    note = asked(stores, "add_note", text="The key hangs by the door.\n", title="Key")
    found = asked(stores, "search", query="key door", k=1)["hits"][0]
    assert (found["path"], found["freshness"]) == (note["path"], "fresh")
    given = {"path": note["path"], "old": "door", "new": "stairs", "revision": note["revision"]}
    planned = call(stores, "edit", plan=True, **given)
    assert "+The key hangs by the stairs." in planned.content[0].text
    assert " undo " not in planned.content[0].text
    assert "by the door" in (place / note["path"]).read_text()
    done = call(stores, "edit", **given)
    with filestore.open(place) as store:
        undo = store.batches()[-1].id
    assert f"filestore --store {place} undo {undo}" in done.content[0].text
    assert "by the stairs" in (place / note["path"]).read_text()
    with filestore.open(place) as store:
        store.undo(undo)
        store.undo(note["undo"])
    assert not (place / note["path"]).exists()


def test_an_edit_says_what_it_replaces(stores: Stores, place: Path) -> None:
    """One passage, or the text below one heading, of the revision that it read."""
    note = asked(stores, "add_note", text="The key hangs by the door.\n", title="Key")
    path, now = note["path"], note["revision"]
    wrong: list[dict[str, str]] = [
        {},
        {"old": "key"},
        {"new": "x"},
        {"old": "key", "section": "Key", "new": "x"},
        {"old": "", "new": "x"},
        {"old": "a lamp", "new": "x"},
        {"section": "Door", "new": "x"},
    ]
    for given in wrong:
        assert call(stores, "edit", path=path, revision=now, **given).is_error
    assert call(stores, "edit", path=path, old="key", new="x").is_error
    done = asked(stores, "edit", path=path, section="Key", new="All new.\n", revision=now)
    other = asked(stores, "show", path=RENT_PATH)["revision"]
    for tool, given in (("edit", {"old": "new", "new": "old"}), ("append", {"text": "x"})):
        for read in (now, other, ""):
            refused = call(stores, tool, path=path, revision=read, **given)
            assert refused.is_error
            assert done["revision"] in refused.content[0].text
    assert (place / path).read_text().endswith("# Key\n\nAll new.\n")


def test_several_stores_are_named(place: Path, tmp_path: Path) -> None:
    """By a parameter that is there only then."""
    with filestore.create(tmp_path / "other", embedder="builtin") as store:
        store.put("Whales sing.\n", into="sea")
    with Stores.open([str(place), str(tmp_path / "other")], Access()) as stores:
        done = call(stores, "search", store="other", query="whales", k=1)
        assert "Whales sing." in done.content[0].text
        assert call(stores, "search", store="kbb", query="whales").is_error


def test_several_stores_answer_one_search(place: Path, tmp_path: Path) -> None:
    """Each hit says where it is shown; a store that is gone is named, unless no other answers."""
    with filestore.create(tmp_path / "other", embedder="builtin") as store:
        store.put("Rent of whales.\n", into="sea")
    given = [str(place), str(tmp_path / "other"), f"a b\x1b={tmp_path / 'other'}"]
    with Stores.open(given, Access()) as stores:
        listed: list[dict[str, Any]] = [{"store": ["kb", "other", "kb", "a b\x1b"]}]
        listed += [{"store": '["kb", "other"]'}, {"store": None}, {}]
        for names in listed:
            text = call(stores, "search", query="rent", k="2", **names).content[0].text
            heads = re.findall(r"(?m)^\d\. (\S+?)(?::\d+)? .*?store (\w+)", text)
            assert [store for _, store in heads] == ["kb", "other"]
            for path, store in heads:
                shown = call(stores, "show", path=path, store=store)
                assert not shown.is_error
                assert "ent" in shown.content[0].text
        text = call(stores, "search", query="rent", store=["a b\x1b"]).content[0].text
        assert 'store "a b\\u001b"' in text
        for wrong in (["kbb"], [3], {"kb": 1}, [[]], ["kb", ""]):
            assert call(stores, "search", query="rent", store=wrong).is_error
        assert call(stores, "search", query=" ").is_error
        assert call(stores, "search", query="rent", k=0).is_error
        (tmp_path / "other").rename(tmp_path / "away")
        done = call(stores, "search", query="rent")
        assert not done.is_error
        assert "other did not answer: " in done.content[0].text
        assert call(stores, "search", query="rent", store=["other"]).is_error


def test_a_store_that_vanished_hides_no_other(place: Path, tmp_path: Path) -> None:
    """What the others hold is listed and found."""
    with filestore.create(tmp_path / "other", embedder="builtin") as store:
        store.put("Whales sing.\n", into="sea")
    with Stores.open([str(place), str(tmp_path / "other")], Access()) as stores:
        place.rename(place.parent / "away")
        listed = with_client(stores, lambda client: client.list_resources()).resources
        assert [one.name for one in listed] == ["sea"]
        assert call(stores, "search", store="kb", query="rent").is_error
        assert not call(stores, "search", store="other", query="whales").is_error


def test_a_store_that_vanished_is_said_to_be(stores: Stores, place: Path) -> None:
    """And answers again once it is back; nobody is told to make another."""
    place.rename(place.parent / "away")
    done = call(stores, "search", query="rent")
    assert done.is_error
    assert f"put {place} back" in done.content[0].text
    (place.parent / "away").rename(place)
    assert not call(stores, "search", query="rent").is_error


def test_a_change_from_outside_is_answered(stores: Stores, place: Path) -> None:
    """Once it was synced there, by whoever."""
    (place / "chunked" / "notes" / "lamp.md").write_text("A lamp burns in the hall.\n")
    with filestore.open(place) as store:
        store.sync()
    found = asked(stores, "search", query="lamp hall", k=1)
    assert found["hits"][0]["path"] == "chunked/notes/lamp.md"
    assert found["hits"][0]["freshness"] == "fresh"

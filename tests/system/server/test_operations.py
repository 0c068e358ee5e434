"""What may be asked of a served store: the table, what it refuses, who may change something."""

import asyncio
import contextlib
import json
import threading
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import to_builtins

import filestore
from filestore import FilestoreError, RefusedError, UsageError
from filestore.search.place import Locator
from filestore.server.http import pages
from filestore.server.operations import ROUTES, TOOLS, definitions
from filestore.server.stores import Access, Stores, UnknownStoreError
from filestore.store.threads import ReadOnlyError
from tests.system.server.conftest import GAS, PERSON, RENT

UNTIL_NOW = "the tree was not watched until now"


def ask(stores: Stores, name: str, **given: Any) -> dict[str, Any]:
    """What a store answers."""
    return asyncio.run(stores.named(None).ask(ROUTES[name], given, PERSON))


def test_answers_are_those_of_the_command_line(stores: Stores, place: Path) -> None:
    """Key by key, whichever door was taken."""
    found = ask(stores, "search", query="rent", k=1)
    with filestore.open(place) as store:
        assert found == store.search("rent", k=1).to_dict()
        status = ask(stores, "status")
        # The search looked at the tree, and kept its walk.
        assert status.pop("watched") == {"used": True, "reason": ""}
        assert status == store.status().to_dict()
        assert ask(stores, "show", path=found["hits"][0]["path"])["body"] == RENT


@pytest.mark.parametrize("name", list(ROUTES))
def test_answers_fit_their_shapes(stores: Stores, place: Path, name: str) -> None:
    """What the description of the server promises of each."""
    (place / "source").mkdir(exist_ok=True)
    (place / "source" / "new.md").write_text(GAS)
    given: dict[str, dict[str, Any]] = {
        "search": {"query": "rent"},
        "similar": {"path": "chunked/notes/rent.md"},
        "show": {"path": "chunked/notes/rent.md"},
        "document": {"path": "chunked/notes/rent.md"},
        "links": {"path": "chunked/notes/rent.md"},
        "evaluate": {"questions": [{"query": "rent", "relevant": ["chunked/notes/rent.md"]}]},
        "add": {"paths": ["source/new.md"]},
        "move": {"path": "chunked/notes/rent.md", "to": "chunked/notes/flat.md", "plan": True},
        "remove": {"resources": ["notes"]},
    }
    schema = pages.reference(ROUTES[name].answer) | {
        "components": {"schemas": definitions("#/components/schemas/")}
    }
    Draft202012Validator(schema).validate(ask(stores, name, **given.get(name, {})))


def test_passages_are_made_where_the_store_is_open(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the loop, where they are read from the disk, all other requests would wait for them."""
    place, threads = Locator.place, set[threading.Thread]()

    def seen(*given: Any, **named: Any) -> Any:
        threads.add(threading.current_thread())
        return place(*given, **named)

    monkeypatch.setattr(Locator, "place", seen)
    assert ask(stores, "search", query="rent")["hits"]
    assert threads
    assert threading.current_thread() not in threads


ASKED = {**ROUTES, **TOOLS}
MEANT: dict[str, list[tuple[Any, Any]]] = {
    "integer": [("5", 5), ("5.0", 5), (5.0, 5)],
    "boolean": [("true", True), ("False", False)],
    "object": [('{"tags": "a"}', {"tags": "a"})],
    "string": [("5", "5"), ("null", "null"), ('["a"]', '["a"]')],
    "date": [("2026-05-01", "2026-05-01")],
}
"""What programs write for a value of a type, and what they mean."""
DATES = ("since", "until")
"""Parameters for which only some texts fit."""


@pytest.mark.parametrize("name", list(ASKED))
def test_a_value_is_taken_as_it_is_meant(name: str) -> None:
    """Nothing for what may be left out; a number, a list, yes and no as text; one for a list."""
    operation = ASKED[name]
    needed: Any = {"questions": [{}], "paths": ["a"], "resources": ["a"]}
    least = {one: needed.get(one, "x") for one in operation.schema["required"]}
    plain = operation.checked(least)
    for parameter, schema in operation.schema["properties"].items():
        if parameter not in least:
            assert operation.checked(least | {parameter: None}) == plain
            if schema.get("type") not in ("string", None):
                assert operation.checked(least | {parameter: ""}) == plain
        kind = "date" if parameter in DATES else schema.get("type", "")
        for given, meant in MEANT.get(kind, ()):
            found = operation.checked(least | {parameter: given})
            assert to_builtins(found)[parameter] == meant, parameter
        if schema.get("type") == "array":
            item = schema["items"].get("enum", ["[2024] a"])[0]
            pairs: list[tuple[Any, Any]] = [(item, [item]), (json.dumps([item]), [item])]
            if schema["items"].get("type") == "object":
                pairs = [('[{"query": "a"}]', [{"query": "a"}]), ({"query": "a"}, [{"query": "a"}])]
            for given, meant in pairs:
                found = operation.checked(least | {parameter: given})
                assert list(to_builtins(found)[parameter]) == meant, parameter
    for parameter in least:
        with pytest.raises(UsageError):
            operation.checked(least | {parameter: None})


@pytest.mark.parametrize(
    "given",
    [
        {"query": {"a": 3}},
        {"query": "a", "k": "five"},
        {"query": "a", "k": "5.5"},
        {"query": "a", "k": "true"},
        {"query": "a", "tree": "5"},
        {"query": "a", "where": "tags"},
        {"query": "a", "where": '["a"]'},
        {"query": "a", "kind": [5]},
        {"query": "a", "unknown": None},
        {"query": "a", "k": 0},
        {"query": "a", "k": True},
        {"query": "a", "k": 10**9},
        {"query": "a", "mode": "magic"},
        {"query": "a", "rerank": "cross-encoder:/etc"},
        {"query": "a" * 10_001},
        {"query": "a", "where": {"k": {"a": 1}}},
        {"query": "a", "source": ["x"] * 1_001},
        [],
        None,
    ],
)
def test_what_does_not_fit_is_refused(given: Any) -> None:
    """Before anything of it is used."""
    with pytest.raises(UsageError):
        ROUTES["search"].checked(given)


@pytest.mark.parametrize(
    ("name", "given", "most"),
    [
        ("search", {"query": "a", "source": [1] * 1_001}, "1,000 values"),
        ("search", {"query": "a", "kind": ["x"] * 1_001}, "1,000 values"),
        ("search", {"query": "a", "where": {"a": [{}] * 101}}, "100 values"),
        ("search", {"query": "a", "where": {str(n): {} for n in range(101)}}, "100 keys"),
        ("search", {"query": "a" * 10_001}, "10,000 characters"),
        ("evaluate", {"questions": [1] * 10_001}, "10,000 values"),
        ("remove", {"resources": [1] * 1_001}, "1,000 values"),
        ("add_note", {"text": "a", "metadata": {"tags": [{}] * 101}}, "100 values"),
        ("add_note", {"text": "a", "metadata": {str(n): {} for n in range(101)}}, "100 keys"),
    ],
)
def test_what_is_too_long_is_not_looked_through(
    name: str, given: dict[str, Any], most: str
) -> None:
    """That it is too long is seen first: to check a million values would keep others waiting."""
    with pytest.raises(UsageError, match=f" of at most {most}"):
        ASKED[name].checked(given)


def test_who_asks_nothing_is_told(stores: Stores) -> None:
    """Neither words nor a filter: what may be left out is not both."""
    nothing: list[dict[str, Any]] = [{}, {"query": ""}, {"query": " "}, {"where": {}, "kind": []}]
    for given in nothing:
        with pytest.raises(UsageError, match="nothing is asked"):
            ask(stores, "search", **given)


def test_whole_numbers_are_those_of_json(stores: Stores) -> None:
    """Which has one kind of number: some programs write 1.0 for 1."""
    assert len(ask(stores, "search", query="rent gas", k=1.0)["hits"]) == 1
    whole = ask(stores, "document", path="chunked/notes/rent.md", line=0.0, first=0.0)
    assert whole["first"] == 0
    for wrong in (1.5, True, "1.5"):
        with pytest.raises(UsageError):
            ask(stores, "search", query="rent", k=wrong)


STRANGE = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "\0",
            "a\0b.md",
            "\ud800",
            "../x",
            "chunked/notes/rent.md:999999999999",
            "chunked/notes",
            ".",
            "/",
        ]
    ),
)


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit the schema of a parameter, strange ones above all."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([values_of(one) for one in schema["anyOf"]])
    match schema["type"]:
        case "integer":
            return st.integers(schema.get("minimum"), schema.get("maximum"))
        case "boolean":
            return st.booleans()
        case "object":
            return st.dictionaries(STRANGE, st.one_of(STRANGE, st.lists(STRANGE)), max_size=3)
        case "array" if "enum" in schema["items"]:
            return st.lists(st.sampled_from(schema["items"]["enum"]), max_size=3)
        case "array" if schema["items"].get("type") == "object":
            question = {"query": STRANGE, "relevant": st.lists(STRANGE, max_size=2), "id": STRANGE}
            parts = schema["items"].get("properties", {})
            known = {key: values_of(one) for key, one in parts.items()} or question
            return st.lists(st.fixed_dictionaries({}, optional=known), min_size=1, max_size=2)
        case "array":
            return st.lists(STRANGE, min_size=schema.get("minItems", 0), max_size=3)
    return STRANGE


@pytest.mark.parametrize("name", [name for name, one in ROUTES.items() if not one.writes])
def test_whatever_fits_is_answered_or_refused(stores: Stores, name: str) -> None:
    """With words for the client; never a fault of ours."""
    schema = ROUTES[name].schema
    given = {key: values_of(one) for key, one in schema["properties"].items()}
    needed = {key: given.pop(key) for key in schema["required"]}

    @settings(max_examples=60, deadline=None)
    @hypothesis.given(st.fixed_dictionaries(needed, optional=given))
    def asked(values: dict[str, Any]) -> None:
        with contextlib.suppress(FilestoreError):
            ask(stores, name, **values)

    asked()


def test_who_may_only_read_changes_nothing(place: Path) -> None:
    """And is told how the server is started otherwise."""
    with Stores.open([str(place)], Access()) as stores:
        for name, operation in ROUTES.items():
            if operation.of(writes=False).writes:
                given = {name: ["notes"] for name in operation.schema["required"]}
                with pytest.raises(ReadOnlyError, match="to be read"):
                    ask(stores, name, **given)


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.md", "/etc/passwd", "link.md", "source/../../x", "a\0b"),
        *(".git/config", ".env", "a/.keys/one.md", "hidden.md", ".git/../.env"),
    ],
)
def test_documents_are_added_from_the_store_alone(stores: Stores, place: Path, path: str) -> None:
    """Whatever the name, and wherever a link leads."""
    (place.parent / "secret.md").write_text("Nobody is to read this.\n")
    (place / "link.md").symlink_to(place.parent / "secret.md")
    (place / "hidden.md").symlink_to(".env")
    for name in (".git/config", ".env", "a/.keys/one.md"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("Nobody is to read this.\n")
    for into in ({}, {"into": "notes"}):
        with pytest.raises((RefusedError, UsageError)):
            ask(stores, "add", paths=[path], **into)
    assert [one["resource"] for one in ask(stores, "ls")["items"]] == ["notes"]


def test_a_named_store_may_lie_below_home(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell expands what stands behind the name."""
    monkeypatch.setenv("HOME", str(place.parent))
    with Stores.open(["notes=~/kb"], Access()) as stores:
        assert stores.named("notes").root == str(place)


def test_several_stores_are_told_apart_by_name(place: Path, tmp_path: Path) -> None:
    """A name that nobody gave stands for the only one."""
    with filestore.create(tmp_path / "other" / "file_index", embedder="builtin"):
        pass
    given = [str(place), f"second={tmp_path / 'other' / 'file_index'}", str(tmp_path / "other")]
    with Stores.open(given[:2], Access()) as stores:
        assert stores.names == ["kb", "second"]
        assert stores.named("second").root == str(tmp_path / "other" / "file_index")
        with pytest.raises(UsageError, match="several"):
            stores.named("")
        with pytest.raises(UnknownStoreError, match="second"):
            stores.named("secnd")
    with Stores.open(given[::2], Access()) as stores:
        assert stores.names == ["kb", "other"]
    with pytest.raises(UsageError, match="two stores"):
        Stores.open([f"a={place}", f"a={tmp_path / 'other'}"], Access())

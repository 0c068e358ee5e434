"""One table of what may be asked: a row and its function are enough for every door."""

import json
import pkgutil
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

import filestore.cli
from filestore.cli import _parser
from filestore.core.errors import UsageError
from filestore.server import collection as documents
from filestore.server import requests, searching
from filestore.server.http import pages
from filestore.server.operations import (
    COMMANDS,
    OPERATIONS,
    ROUTES,
    TOOLS,
    CommonOptions,
    Operation,
    Request,
    Text,
    decoded,
    fields_for,
    fields_of,
    option,
    schema_of,
    sentences,
)
from tests import helped

ONLY_SERVED = {"evaluate": {"questions"}, "search": {"begun"}}
"""What the command reads from a file that it is given, and what nobody types."""


def of_command(name: str) -> list[type[Struct]]:
    """The options of a command, or of each of its actions."""
    run, actions = _parser.functions_of(name)
    return [one.__annotations__["options"] for one in (run, *actions.values())]


def kinds() -> Iterator[tuple[str, type[Struct]]]:
    """Every value of options that there is, with the operation it belongs to."""
    for one in OPERATIONS:
        if one.command:
            yield from ((one.name, kind) for kind in of_command(one.name))
        if one.route or one.tool:
            yield one.name, one.kind
    yield from (("rag", kind) for kind in (documents.CollectionQuery, documents.IndexRequest))


def test_the_table_and_the_modules_agree() -> None:
    """A command without a row is not found, and neither is a request."""
    names = [one.name for one in pkgutil.iter_modules(filestore.cli.__path__)]
    modules = [import_module(f"filestore.cli.{one}") for one in names if one[0] != "_"]
    functions = Counter(
        name[4:]
        for one in modules
        for name, value in vars(one).items()
        if name[:4] == "run_" and value.__module__ == one.__name__
    )
    assert functions == Counter(["words", *COMMANDS])
    assert {run.__name__ for run, _ in map(_parser.functions_of, COMMANDS)} == {
        f"run_{name}" for name in COMMANDS
    }
    table = [one for one in OPERATIONS if one.route or one.tool]
    served = {one.kind for each in table for one in (each, each.of(writes=False))}
    found = {**vars(requests), **vars(searching)}.values()
    here = {one for one in found if isinstance(one, type)}
    assert served == {one for one in here if issubclass(one, Request)} - {Request}


@pytest.mark.parametrize(("name", "kind"), [*kinds()])
def test_each_option_is_explained(name: str, kind: type[Struct]) -> None:
    """By one sentence, under the field; what it goes with is there."""
    said = sentences(kind)
    fields = {one.name: one for one in fields_of(kind)}
    assert {one for one in fields if not said.get(one)} == set()
    assert {one.typed.needs for one in fields.values()} - {""} <= fields.keys()
    schema = schema_of(kind)
    assert "store" not in schema["properties"]


@pytest.mark.parametrize("name", [one.name for one in OPERATIONS if one.command and one.route])
def test_a_command_takes_what_the_server_takes(name: str) -> None:
    """An option has one default and one meaning, whoever is asked."""
    own, asked = of_command(name)[0], COMMANDS[name].kind
    mine = {one.name: one for one in fields_of(own)}
    for one in fields_of(asked):
        if one.name not in ONLY_SERVED.get(name, ()):
            found = mine[one.name]
            assert (found.kind, found.several) == (one.kind, one.several)
            assert one.required or found.default == one.default


class Weigh(Request, CommonOptions, frozen=True, kw_only=True):
    """How heavy the store is."""

    path: Text = ""
    """of a part of it"""
    depth: Annotated[int, Meta(ge=1, le=9), option("N")] = 2
    """levels"""
    embed: bool = True
    """count embeddings"""

    def answer(self, store: Any) -> dict[str, Any]:
        """As many as were asked for."""
        return {"depth": self.depth}


def test_a_row_and_its_function_make_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """With help, the list of commands, a route, its description, a tool, and every check."""
    row = Operation("weigh", "say how heavy the store is", "Status", "weigh", tool=True)

    def run_weigh(options: Weigh) -> int:
        """Say how heavy the store is.

        Example: filestore weigh --depth 3
        """
        return options.depth

    module = ModuleType("filestore.cli.weigh")
    module.run_weigh = run_weigh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "filestore.cli.weigh", module)
    monkeypatch.setattr(requests, "Weigh", Weigh, raising=False)
    for table in (COMMANDS, ROUTES, TOOLS):
        monkeypatch.setitem(table, "weigh", row)

    run, options = _parser.parse(["weigh", "--depth", "3", "--no-embed", "--store", "a"])
    assert (run(options), options.embed, options.store) == (3, False, "a")
    shown = helped.records({})["weigh"]
    assert shown["options"][:4] == [
        ("--path PATH", "of a part of it"),
        ("--depth N", "levels (default: 2)"),
        ("--no-embed", "do not count embeddings"),
        ("--store DIR", "the store, or a folder with file_index/"),
    ]
    assert shown["examples"] == ["filestore weigh --depth 3"]
    with pytest.raises(UsageError, match="'--dept'; did you mean '--depth'"):
        _parser.parse(["weigh", "--dept", "3"])

    body = pages.openapi(())["paths"]["/weigh"]["post"]["requestBody"]["content"]
    given = body["application/json"]["schema"]["properties"]
    assert {"store", "path", "depth", "embed"} == given.keys()
    assert given["depth"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 2,
        "description": "levels",
    }
    assert "/weigh</h2><p>Say how heavy the store is." in "".join(pages.page(()))
    assert row.checked({"depth": "3"}).answer(None) == {"depth": 3}
    with pytest.raises(UsageError, match="weigh: depth must be a whole number <= 9, found 10"):
        row.checked({"depth": 10})
    with pytest.raises(UsageError, match="unknown parameter 'dept'; did you mean 'depth'"):
        row.checked({"dept": 1})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"depth": []}, "depth must be a whole number, found "),
        ({"depth": 10**30}, "not valid UTF-8, or no JSON"),
        ({"path": 3}, "path must be a text, found 3"),
        ({"path": "\ud800"}, "not valid UTF-8"),
        ({"store": "a"}, "unknown parameter 'store'"),
        ([], "weigh: it must be an object, found "),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(given: Any, said: str) -> None:
    """With its place."""
    with pytest.raises(UsageError, match=said) as refused:
        decoded(Weigh, given, "weigh")
    assert refused.value.remedy == "see the parameters of weigh"


class Pick(CommonOptions, frozen=True, kw_only=True):
    """What excludes and needs what."""

    this: Annotated[bool, option(group="which")] = False
    """this"""
    that: Annotated[str | None, option("X", group="which")] = None
    """that"""
    how: Annotated[int, option("N", needs="that")] = 1
    """how"""


def test_options_that_do_not_go_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said of the options themselves, for every command."""

    def run_pick(options: Pick) -> int:
        """Pick.

        Example: filestore pick
        """
        return options.how

    module = ModuleType("filestore.cli.pick")
    module.run_pick = run_pick  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "filestore.cli.pick", module)
    monkeypatch.setitem(COMMANDS, "pick", Operation("pick", "pick"))
    with pytest.raises(UsageError, match="--this and --that exclude each other"):
        _parser.parse(["pick", "--this", "--that", "a"])
    with pytest.raises(UsageError, match="--how goes with --that"):
        _parser.parse(["pick", "--how", "3"])
    assert _parser.parse(["pick", "--how", "3", "--that", "a"])[1].how == 3


def samples(kind: type[Struct]) -> dict[str, Any]:
    """A value for each field that clients may give."""
    plain = {str: "2024-05-01", int: 3, float: 0.5, bool: True, dict: {"tags": "git"}}
    found = {}
    for key, field in fields_for(kind).items():
        value = field.choices[0] if field.choices else plain[field.kind]
        found[key] = [value] if field.several else value
    return found


SERVED = sorted({*ROUTES.values(), *TOOLS.values()}, key=lambda one: one.name)
FIELDS = [(one, key) for one in SERVED for key in fields_for(one.kind)]


@pytest.mark.parametrize(("operation", "key"), FIELDS, ids=lambda one: getattr(one, "name", one))
def test_a_value_is_taken_in_any_form(operation: Operation, key: str) -> None:
    """A list for a text, a text for a list, numbers and JSON as texts, null for none."""
    field, given = fields_for(operation.kind)[key], samples(operation.kind)
    needed = {one for one, its in fields_for(operation.kind).items() if its.required}
    given = {one: value for one, value in given.items() if one in {key, *needed}}
    meant, value = operation.checked(given), given[key]
    forms = [value]
    if field.several:
        forms += [value[0], json.dumps(value)]
    elif field.kind is dict:
        forms += [json.dumps(value)]
    else:
        forms += [[value]]
        forms += [json.dumps(value)] if field.kind is not str else []
        forms += [3.0, "3.0"] if value == 3 and field.kind is int else []
    for form in forms:
        assert operation.checked(given | {key: form}) == meant
    if not field.required:
        left_out = operation.checked({one: given[one] for one in needed if one != key})
        assert operation.checked(given | {key: None}) == left_out


@pytest.mark.parametrize(
    "where",
    [
        {"tags": "git"},
        {"tags": ["git"]},
        '{"tags": "git"}',
        "tags=git",
        ["tags=git"],
        '["tags=git"]',
        [{"key": "tags", "value": "git"}],
        ['{"key": "tags", "op": "=", "value": "git"}'],
    ],
)
def test_conditions_are_taken_in_any_form(where: Any) -> None:
    """As the command line has them, too."""
    search = TOOLS["search"]
    plain = search.checked({"query": "a", "where": {"tags": "git"}})
    assert search.checked({"query": "a", "where": where}) == plain


@pytest.mark.parametrize(
    ("tool", "key", "forms", "value"),
    [
        ("show", "lines", [[10, 40], ["10", "40"], "[10, 40]", '["10", "40"]'], [10, 40]),
        ("show", "lines", ["10-40", ["10-40"], '["10-40"]'], "10-40"),
        ("list", "recent", [5, "5", 5.0, [5], "[5]"], 5),
        ("list", "recent", [True, "true", "True", [True]], True),
    ],
)
def test_a_value_of_two_types_is_taken_in_any_form(
    tool: str, key: str, forms: list[Any], value: Any
) -> None:
    """As others are: each as itself, as a list of one, and as a text."""
    for form in forms:
        given = {key: form} | ({"path": "a"} if tool == "show" else {})
        assert getattr(TOOLS[tool].checked(given), key) == value


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ({"since": 2026}, "since", "2026"),
        ({"since": ["2026-05"]}, "since", "2026-05"),
        ({"query": 404}, "text", "404"),
        ({"in": "docs"}, "within", ("docs",)),
        ({"in": ["docs", "notes"]}, "within", ("docs", "notes")),
    ],
)
def test_values_are_as_on_the_command_line(given: dict[str, Any], key: str, value: Any) -> None:
    """Under the same name; a year is a text, also as a number."""
    assert getattr(TOOLS["search"].checked({"query": "x"} | given), key) == value


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"since": "rubbish"}, "--since takes a date, found 'rubbish'"),
        ({"since": "2021", "until": "2020"}, "--since 2021 is after --until 2020"),
    ],
)
def test_what_the_query_refuses_keeps_its_words(given: dict[str, Any], said: str) -> None:
    """Not as a value of the wrong type."""
    with pytest.raises(UsageError, match=said):
        TOOLS["search"].checked({"query": "x"} | given)

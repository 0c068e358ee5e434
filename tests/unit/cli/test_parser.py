"""Words into options: an option that takes a list adds up, however it is spelled."""

import argparse
from collections.abc import Iterator
from typing import Final

import pytest

from filestore.cli import COMMANDS
from filestore.cli._parser import command_parser, parse
from filestore.core.errors import UsageError

ONCE: Final = frozenset(
    [
        "--apply",
        "--embedder",
        "--endpoint",
        "--findings",
        "--into",
        "--layout",
        "--level",
        "--mode",
        "--page",
        "--port",
        "--rerank",
        "--sample",
        "--select",
        "--store",
        "--syntax",
        "-k",
        "-o",
    ]
)
"""Options that hold one value: the last one counts, as everywhere on a command line."""


def parsers(
    parser: argparse.ArgumentParser, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """A parser with the words that lead to it, and those of its actions."""
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from parsers(inner, (*words, name))


def options() -> list[tuple[str, str, bool]]:
    """Every option with a value: its command, its name, whether one use of it takes several."""
    front = argparse.Namespace(store=None, json=False)
    return [
        (" ".join(words), action.option_strings[-1], action.nargs is not None)
        for command in COMMANDS
        for words, parser in parsers(command_parser(command, front), (command,))
        for action in parser._actions
        if action.option_strings and action.nargs != 0
    ]


LISTED: Final = [(command, name, many) for command, name, many in options() if name not in ONCE]


NEEDED: Final = {"search": ["words"], "git": ["hook"]}
"""The least that a command wants besides its options."""


@pytest.mark.parametrize(("command", "name", "many"), LISTED)
def test_a_repeated_option_adds_up(command: str, name: str, many: bool) -> None:
    """Whoever says an option twice means both."""
    values = ["one=1", "two=2", "three=3"] if many else ["one=1", "two=2"]
    words = [name, *values[:-1], name, values[-1]]
    found = vars(parse([*command.split(), *NEEDED.get(command, []), *words]))
    assert values in found.values()


@pytest.mark.parametrize(("command", "name", "many"), LISTED)
def test_what_was_said_once_is_not_remembered(command: str, name: str, many: bool) -> None:
    """A second call in the same process begins with nothing."""
    words = [*command.split(), *NEEDED.get(command, []), name, "one=1"]
    assert vars(parse(words)) == vars(parse(words))


def test_the_lists_are_known() -> None:
    """What takes a list is what the README says it does."""
    assert {f"{command} {name}" for command, name, _ in LISTED} == {
        "git --in",
        "repair --only",
        "repair --ours",
        "repair --path",
        "repair --remove",
        "repair --theirs",
        "search --kind",
        "search --source",
        "search --where",
    }


@pytest.mark.parametrize("name", ["--source", "--path"])
def test_a_value_may_hang_on_its_option(name: str) -> None:
    """``--path=a --path=b`` is the same."""
    command = {"--source": ["search", "words"], "--path": ["repair"]}[name]
    found = vars(parse([*command, f"{name}=a", f"{name}=b"]))
    assert found[name.removeprefix("--")] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("search cat -dog", "filestore search -- cat -dog"),
        ("search -dog cat", "filestore search -- -dog cat"),
        ("search cat -dog --mode keyword", "filestore search OPTIONS -- QUERY"),
        ("search cat --colour", "filestore search --help"),
        ("status -dog", "filestore status --help"),
    ],
)
def test_a_word_with_a_sign_is_told_how_to_be_typed(line, remedy):
    """Unquoted, a word to leave out looks like an option."""
    with pytest.raises(UsageError, match=r"unexpected argument '--?[a-z]+'") as caught:
        parse(line.split())
    assert caught.value.remedy == remedy

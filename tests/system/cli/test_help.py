"""What `--help` and `help` print: every command in a group, its actions, pages and codes."""

import argparse
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from filestore.cli import _parser, help
from filestore.cli._overview import GROUPS, SYNONYMS, overview
from filestore.core.codes import CODES
from filestore.core.errors import UsageError
from filestore.server import wire
from filestore.server.operations import COMMANDS

Run = Callable[..., Any]


def actions() -> Iterator[tuple[str, str]]:
    """Every action of a command that has its own help."""
    for command in COMMANDS:
        for argument in _parser.command_parser(command)._actions:
            if isinstance(argument, argparse._SubParsersAction):
                yield from ((command, name) for name in argument.choices)


def test_the_overview_has_every_command_in_one_group() -> None:
    """In at most 45 lines of 78 columns, in six groups."""
    lines = overview().splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 78
    names = [name for rows in GROUPS.values() for row in rows for name in row.split()]
    assert sorted(names) == sorted(COMMANDS.keys() - {"help"})
    assert len(GROUPS) == 6


@pytest.mark.parametrize("columns", [20, 40, 80, 100, 400])
def test_help_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 40 columns to 100, and nothing of it is lost."""
    wide = overview().split()
    monkeypatch.setattr(wire, "columns", lambda: columns)
    assert max(map(len, overview().splitlines())) <= max(40, min(100, columns))
    assert sorted(overview().split()) == sorted(wide)
    for command in COMMANDS:
        text = _parser.command_parser(command).format_help()
        long = [line for line in text.splitlines() if len(line) > max(40, min(100, columns))]
        # What cannot be broken is an example, one word, or an option with its value.
        broken = [line for line in long if not line.startswith("  filestore ")]
        assert [line for line in broken if not re.fullmatch(r" *(\S+|\[.+])", line)] == []


def test_nothing_asked_says_what_is_here(run: Run, tmp_path: Any) -> None:
    """The store, or that there is none, and five commands; that is no error."""
    done = run(cwd=tmp_path)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("No store in")
    assert done.stdout.count("\n  filestore ") == 5
    run("init", cwd=tmp_path)
    assert run(cwd=tmp_path).stdout.startswith("The store is ")
    assert run("--json", cwd=tmp_path).code == 2


def test_help_is_the_same_by_both_ways(run: Run, tmp_path: Any) -> None:
    """`help COMMAND` prints what `COMMAND --help` prints, also of an action."""
    for command in COMMANDS:
        assert run("help", command, cwd=tmp_path) == run(command, "--help", cwd=tmp_path)
    assert run("help", cwd=tmp_path) == run("--help", cwd=tmp_path)
    for command, action in actions():
        asked = run("help", command, action, cwd=tmp_path)
        assert asked == run(command, action, "--help", cwd=tmp_path)


@pytest.mark.parametrize(("command", "action"), [*actions()])
def test_an_action_has_a_sentence_and_an_example(command: str, action: str) -> None:
    """One that the command line takes."""
    inner = _parser.command_parser(command).of_action([action])
    assert inner.description
    _, _, example = (inner.epilog or "").partition("\n  ")
    program, *words = shlex.split(example)
    assert (program, *words[:2]) == ("filestore", command, action)
    assert callable(_parser.parse(words)[0])


@pytest.mark.parametrize("word", SYNONYMS)
def test_a_word_of_other_programs_names_the_command(word: str) -> None:
    """It is no command, and the message says what it is called here."""
    assert word not in COMMANDS
    called = SYNONYMS[word]
    assert called in COMMANDS
    with pytest.raises(UsageError, match=f"it is called '{called}'"):
        _parser.parse([word, "this"])


def test_pages_and_codes_have_help(run: Run, tmp_path: Any) -> None:
    """Every page of the manual by its name, every code, and no other word."""
    assert {"start", "search", "exit-codes", "json"} < help.pages().keys()
    for name in help.pages():
        if name not in COMMANDS:
            assert run("help", name, cwd=tmp_path).stdout.startswith("# ")
    for code in CODES:
        assert CODES[code].repair in run("help", code, cwd=tmp_path).stdout
    done = run("help", "exit-code", cwd=tmp_path)
    assert (done.code, "did you mean 'exit-codes'" in done.stderr) == (2, True)
    assert run("help", "git", "hooks", cwd=tmp_path).code == 2

"""The command line of the screen: what is typed, and what is meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.server.operations import COMMANDS
from tui.app.menus import COMPLETIONS, ELSEWHERE, OPTIONS, Typed, parse


def verification(level):
    """A verification at a level."""
    return Typed(name="verify", words=(level,), options={"level": (level,)})


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("", Typed(name="")),
        ("  ", Typed(name="")),
        ("123", Typed(name="vector", words=("123",))),
        ("q", Typed(name="quit")),
        ("filestore verify --level full", verification("full")),
        ("verify --level=deep", verification("deep")),
        ("search what's -this", Typed(name="search", words=("what's -this",))),
        ("show what's", Typed(name="unknown", problem="no closing quotation")),
        ("search moon -phases", Typed(name="search", words=("moon -phases",))),
        ("chunked/a/chunk1.md", Typed(name="path", words=("chunked/a/chunk1.md",))),
        ("sync --forget-missing", Typed(name="sync", options={"forget-missing": ()})),
        (
            "repair --only missing moved --path a b --write-files",
            Typed(
                name="repair",
                options={"only": ("missing", "moved"), "path": ("a", "b"), "write-files": ()},
            ),
        ),
        ("sync --force", Typed(name="sync", problem="sync has no --force here")),
        (
            "sync --ful",
            Typed(name="sync", problem="sync has no --ful here; did you mean '--full'?"),
        ),
        (
            "verfy",
            Typed(name="unknown", problem="no command is called verfy; did you mean 'verify'?"),
        ),
        (
            "frobnicate",
            Typed(name="unknown", problem="no command is called frobnicate; ? shows the keys"),
        ),
    ],
)  # fmt: skip
def test_what_is_meant(text, typed):
    """A number is a vector id, a path a file, everything else a command with its options."""
    assert parse(text) == typed


def test_every_command_of_the_program_is_known():
    """Each command is either done here, or its name answers that it runs in a terminal."""
    assert COMMANDS.keys() - OPTIONS.keys() == ELSEWHERE
    for command in ELSEWHERE:
        assert "terminal" in parse(command).problem


def test_completions_can_be_typed():
    """What is offered while typing is understood when it is taken."""
    for text in COMPLETIONS:
        assert not parse(text).problem


@given(st.text().filter(lambda text: text.strip(" \t\r\n")))
def test_anything_can_be_typed(text):
    """No text is an error of the program: it is a command, or a sentence says why not."""
    typed = parse(text)
    assert typed.name or typed == Typed(name="")

"""The command line of the screen: what is typed, and what is meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.cli._parser import options_of_commands
from filestore.server.operations import COMMANDS
from tui.app.commands import ENDLESS, ONLY_LOOK, OPTIONS, Typed, completed, parse


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
        ("show what's", Typed(name="run", problem="no closing quotation")),
        ("search moon -phases", Typed(name="search", words=("moon -phases",))),
        ("chunked/a/chunk1.md", Typed(name="path", words=("chunked/a/chunk1.md",))),
        ("sync", Typed(name="sync")),
        ("sync --forget-missing", Typed(name="run", words=("sync", "--forget-missing"))),
        (
            "repair --only missing moved --path a b --write-files",
            Typed(
                name="repair",
                options={"only": ("missing", "moved"), "path": ("a", "b"), "write-files": ()},
            ),
        ),
        ("show a.md --raw", Typed(name="run", words=("show", "a.md", "--raw"))),
        ("mv 'a b.md' c.md", Typed(name="run", words=("mv", "a b.md", "c.md"))),
        ("frobnicate", Typed(name="run", words=("frobnicate",))),
    ],
)  # fmt: skip
def test_what_is_meant(text, typed):
    """A number is a vector id, a path a file, everything else a command with its options."""
    assert parse(text) == typed


def test_every_command_of_the_program_is_done():
    """Each is done by a page or run; what runs without a question, or never ends, is one of it."""
    known = options_of_commands()
    assert known.keys() >= COMMANDS.keys() >= OPTIONS.keys() - {"help", "stores", "quit"}
    assert known.keys() >= ONLY_LOOK | ENDLESS
    for command in COMMANDS.keys() - OPTIONS.keys():
        assert parse(f"{command} word") == Typed(name="run", words=(command, "word"))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("dup", "duplicates"),
        ("qu", "quit"),
        ("embedder sw", "embedder switch"),
        ("embeddings prune --pl", "embeddings prune --plan"),
        ("mv a.md b.md --pl", "mv a.md b.md --plan"),
        ("mv pla", "mv plan.md"),
        ("links no", "links notes/"),
        ("links notes/", "links notes/é.md"),
        ("links notes/x", None),
        ("links gone/x", None),
        ("links nul\0/x", None),
        ("pla", None),
        ("rm --pl", None),
        ("mv ", None),
        ("", None),
        ("nothing --a", None),
    ],
)
def test_what_is_typed_is_completed(text, whole, tmp_path):
    """The name of a command, an action of it, an option of either, or a path; nothing else."""
    (tmp_path / "notes").mkdir()
    for name in (
        "plan.md",
        "notes/é.md",
        "notes/.hidden",
        "notes/\x1b[2J",
        "notes/a b",
        "notes/x y",
    ):
        (tmp_path / name).touch()
    assert completed(text, options_of_commands(), str(tmp_path)) == whole


@given(st.text().filter(lambda text: text.strip(" \t\r\n")))
def test_anything_can_be_typed(text):
    """No text is an error of the program: it is a command, or a sentence says why not."""
    typed = parse(text)
    assert typed.name or typed == Typed(name="")

"""Which editor is opened."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.browse.editor import editor_command as command
from filestore.browse.editor import opened_at

THERE = {"vi": "/usr/bin/vi", "nano": "/usr/bin/nano", "code": "/usr/bin/code", "ed": "/bin/ed"}


def test_visual_goes_before_editor() -> None:
    """Where both are set, the one for screens is meant."""
    chosen = command({"VISUAL": "nano -l", "EDITOR": "ed"}, THERE.get)
    assert chosen.words == ("nano", "-l")
    assert (chosen.problem, chosen.warning) == ("", "")


def test_empty_variable_is_none() -> None:
    """A variable of blanks names nothing."""
    assert command({"VISUAL": " ", "EDITOR": "ed"}, THERE.get).words == ("ed",)


def test_what_is_there_is_taken_where_none_is_named() -> None:
    """vi goes before nano, and without either it is said what to do."""
    assert command({}, THERE.get).words == ("vi",)
    assert command({}, {"nano": "/usr/bin/nano"}.get).words == ("nano",)
    without = command({}, {}.get)
    assert without.words == ()
    assert "$EDITOR" in without.problem


@pytest.mark.parametrize("value", ["missing-editor", "vi 'open", "''"])
def test_what_cannot_be_run_is_said_with_its_variable(value: str) -> None:
    """A name that leads nowhere is told, and nothing else is opened in its place."""
    chosen = command({"EDITOR": value}, THERE.get)
    assert chosen.words == ()
    assert "$EDITOR" in chosen.problem


def test_editor_that_does_not_wait_is_warned_of() -> None:
    """An editor that comes back at once is opened, with what makes it wait."""
    chosen = command({"VISUAL": "code -n"}, THERE.get)
    assert chosen.words == ("code", "-n")
    assert 'VISUAL="code -n --wait"' in chosen.warning
    assert command({"VISUAL": "code -w"}, THERE.get).warning == ""


@given(st.lists(st.text(min_size=1), max_size=4))
def test_arguments_arrive_as_they_were_quoted(arguments: list[str]) -> None:
    """Whatever a shell would pass on, the editor gets."""
    words = ["vi", *arguments]
    assert command({"EDITOR": shlex.join(words)}, THERE.get).words == tuple(words)


@pytest.mark.parametrize(
    ("editor", "words"),
    {
        "vi": "vi +7 /a/b c.md",
        "/usr/bin/nvim": "/usr/bin/nvim +7 /a/b c.md",
        "emacs-29.1": "emacs-29.1 +7 /a/b c.md",
        "vim.basic": "vim.basic +7 /a/b c.md",
        "emacs-nox": "emacs-nox +7 /a/b c.md",
        "code-insiders": "code-insiders --goto /a/b c.md:7",
        "nano": "nano +7 /a/b c.md",
        "kak": "kak +7 /a/b c.md",
        "code": "code --goto /a/b c.md:7",
        "cursor": "cursor --goto /a/b c.md:7",
        "hx": "hx /a/b c.md:7",
        "subl": "subl /a/b c.md:7",
        "zed": "zed /a/b c.md:7",
        "kate": "kate -l 7 /a/b c.md",
    }.items(),
)
def test_the_line_as_each_editor_takes_it(editor: str, words: str) -> None:
    """Without a line it is the path alone."""
    found = opened_at([editor], "/a/b c.md", 7)
    assert found is not None
    assert " ".join(found) == words
    assert opened_at([editor, "-x"], "/a/b c.md", None) == (editor, "-x", "/a/b c.md")


def test_an_editor_that_is_not_known_is_told_no_line() -> None:
    """It might take a line for a file."""
    assert opened_at(["ed"], "/a", 7) is None
    assert opened_at(["env", "vi"], "/a", 7) is None
    assert opened_at(["vi"], "/{line}{path}", 7) == ("vi", "+7", "/{line}{path}")

"""What `-h`, `--help` and `help` print: every command in a group, its actions, pages and codes."""

import json
import re
import shlex
from collections.abc import Callable
from typing import Any, Final

import pytest

from filestore import cli
from filestore.cli import _help, _parser
from filestore.cli._overview import GROUPS, SYNONYMS, overview
from filestore.cli._width import width
from filestore.core.codes import CODES
from filestore.core.errors import UsageError
from filestore.server import wire
from filestore.server.operations import COMMANDS

Run = Callable[..., Any]
KNOWN: Final = _help.records()


def test_the_overview_has_every_command_in_one_group() -> None:
    """In at most 45 lines of 78 columns, in six groups."""
    lines = overview(KNOWN).splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 78
    names = [name for rows in GROUPS.values() for row in rows for name in row.split()]
    assert sorted(names) == sorted(COMMANDS.keys() - {"help"})
    assert len(GROUPS) == 6


@pytest.mark.parametrize(
    ("named", "expected"), [("50", 48), ("9", 40), ("400", 100), ("", 78), ("wide", 78)]
)
def test_help_in_a_pipe_is_as_wide_as_columns_says(
    named: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no terminal has a width."""
    monkeypatch.setenv("COLUMNS", named)
    assert width() == expected


@pytest.mark.parametrize("columns", [20, 40, 80, 100, 400])
def test_help_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 40 columns to 100, and nothing of it is lost."""
    wide = overview(KNOWN).split()
    monkeypatch.setattr(wire, "columns", lambda: columns)
    assert max(map(len, overview(KNOWN).splitlines())) <= max(40, min(100, columns))
    assert sorted(overview(KNOWN).split()) == sorted(wide)
    for name in KNOWN:
        for text in (_help.screen(name, KNOWN), _help.whole(name, KNOWN)):
            long = [line for line in text.splitlines() if len(line) > max(40, min(100, columns))]
            # What cannot be broken is an example, or one long word.
            broken = [line for line in long if not line.startswith("  filestore ")]
            assert [line for line in broken if not re.fullmatch(r" *(-\S+ )?\S+", line)] == []
        assert len(_help.screen(name, KNOWN).splitlines()) <= _help.SCREEN


@pytest.mark.parametrize("name", KNOWN)
def test_a_screen_has_what_is_used_every_day(name: str) -> None:
    """At the usual width: the sentence, the first options, an example; the rest is in `--help`."""
    one, screen, whole = KNOWN[name], _help.screen(name, KNOWN), _help.whole(name, KNOWN)
    assert one["about"][0]
    assert all(text for _, text in one["options"])
    for option, _ in one["options"][:5]:
        assert f"\n  {option}" in screen
    assert f"\n  {one['examples'][0]}\n" in screen
    said = " ".join(whole.split())
    for option, text in (*one["arguments"], *one["options"]):
        assert f"\n  {option}" in whole
        assert text in said
    for paragraph in one["about"]:
        assert f"\n\n{paragraph.split()[0]} " in whole
        assert paragraph in said
    prose = "\n".join(line for line in whole.splitlines() if not line.startswith("  filestore "))
    assert not re.search(r"\b(\w+ \w+) \1\b", " ".join(prose.split()))


@pytest.mark.parametrize("name", KNOWN)
def test_a_help_names_its_page(name: str) -> None:
    """Which names the command; `help PAGE.md` prints it."""
    page = _help.pages()[KNOWN[name]["page"]]
    line = f"page: docs/{KNOWN[name]['page']}.md, or 'filestore help {KNOWN[name]['page']}.md'"
    assert line in " ".join(_help.screen(name, KNOWN).split())
    assert line in " ".join(_help.whole(name, KNOWN).split())
    with open(page, encoding="utf-8") as file:
        text = file.read()
    assert re.search(rf"(filestore|`) ?{re.escape(name.split()[0])}\b", text)
    assert _help.text_on([f"{KNOWN[name]['page']}.md"], KNOWN) == text


def test_nothing_asked_says_what_is_here(run: Run, tmp_path: Any) -> None:
    """The store, or that there is none, and five commands; that is no error."""
    done = run(cwd=tmp_path)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("No store in")
    assert done.stdout.count("\n  filestore ") == 5
    run("init", cwd=tmp_path)
    assert run(cwd=tmp_path).stdout.startswith("The store is ")
    assert run("--json", cwd=tmp_path).code == 2


def test_help_is_the_same_by_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    """`help COMMAND` prints what `COMMAND --help` prints, also of an action and in JSON."""

    def printed(*words: str, code: int = 0) -> str:
        assert cli.main(words) == code
        found = capsys.readouterr()
        return found.err if code else found.out

    for name in KNOWN:
        whole = printed("help", *name.split())
        assert whole == _help.whole(name, KNOWN)
        assert printed(*name.split(), "--help") == whole
    assert printed("help") == printed("--help")
    assert json.loads(printed("help", "init", "--json")) == {"text": _help.whole("init", KNOWN)}
    screen = _help.screen("embedder set", KNOWN)
    assert printed("--store", "a", "embedder", "set", "-h") == screen
    assert "'fetc'" in printed("embedder", "fetc", "-h", code=2)
    assert "'serach'" in printed("serach", "--help", code=2)


@pytest.mark.parametrize("name", KNOWN)
def test_every_example_is_taken(name: str) -> None:
    """It begins with the command, or names it in another, and the command line takes it."""
    for example in KNOWN[name]["examples"]:
        program, *words = shlex.split(example)
        assert (program, words[: len(name.split())]) == ("filestore", name.split())
        assert callable(_parser.parse(words)[0])


@pytest.mark.parametrize("word", SYNONYMS)
def test_a_word_of_other_programs_names_the_command(word: str) -> None:
    """It is no command, and the message says what it is called here."""
    assert word not in COMMANDS
    called = SYNONYMS[word]
    assert called in COMMANDS
    with pytest.raises(UsageError, match=f"it is called '{called}'"):
        _parser.parse([word, "this"])


def test_pages_and_codes_have_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Every page of the manual by its name, every code, and no other word."""
    assert {"start", "search", "exit-codes", "json"} < _help.pages().keys()
    for name in _help.pages():
        for page in [f"{name}.md"] if name in COMMANDS else [f"{name}.md", name]:
            assert cli.main(["help", page]) == 0
            assert capsys.readouterr().out.startswith("# ")
    for code in CODES:
        assert cli.main(["help", code]) == 0
        assert CODES[code].repair in capsys.readouterr().out
    assert cli.main(["help", "exit-code"]) == 2
    assert "did you mean 'exit-codes'" in capsys.readouterr().err
    assert cli.main(["help", "git", "hooks"]) == 2

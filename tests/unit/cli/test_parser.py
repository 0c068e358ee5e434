"""Words into options: an option that takes a list adds up, however it is spelled."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import asdict

from filestore.cli._parser import command_parser, parse
from filestore.core.errors import UsageError
from filestore.server.operations import COMMANDS
from tests.advice import all_words

ONCE: Final = frozenset(
    [
        "--above",
        "--at",
        "--budget",
        "--by",
        "--depth",
        "--rewrite",
        "--collections",
        "--color",
        "--context",
        "--generator",
        "--questions",
        "--embedder",
        "--endpoint",
        "--format",
        "--from",
        "--group",
        "--host",
        "--install",
        "--into",
        "--layout",
        "--level",
        "--lines",
        "--max",
        "--max-loss",
        "--min-overlap",
        "--mode",
        "--most",
        "--overlap",
        "--page",
        "--port",
        "--queries",
        "--recent",
        "--rerank",
        "--sample",
        "--select",
        "--since",
        "--sort",
        "--store",
        "--syntax",
        "--to",
        "--token",
        "--until",
        "-k",
        "-o",
    ]
)
"""Options that hold one value: the last one counts, as everywhere on a command line."""


def asked(*words: str) -> dict[str, Any]:
    """The options of one call."""
    return asdict(parse(words)[1])


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
    return [
        (" ".join(words), action.option_strings[-1], action.nargs is not None)
        for command in COMMANDS
        for words, parser in parsers(command_parser(command), (command,))
        for action in parser._actions
        if action.option_strings and action.nargs != 0
    ]


LISTED: Final = [
    one for one in options() if one[1] not in ONCE and one[:2] != ("changes", "--limit")
]


NEEDED: Final = {
    "add": ["a"],
    "compare": ["a", "--queries", "q"],
    "completion": ["bash"],
    "convert": ["a", "b"],
    "embeddings export": ["a"],
    "embeddings import": ["a"],
    "evaluate": ["a"],
    "export": ["jsonl", "a"],
    "git": ["hook"],
    "import": ["jsonl", "a"],
    "links": ["a"],
    "log": ["a"],
    "open": ["a"],
    "reconstruct": ["a"],
    "mv": ["a", "b"],
    "rm": ["a"],
    "search": ["words"],
    "show": ["a"],
    "similar": ["a"],
    "token": ["list"],
}
"""The least that a command wants besides its options."""
BESIDE: Final = {"reconstruct": ["--from", "jsonl"]}
"""What an option of a list goes with."""


@pytest.mark.parametrize(("command", "name", "many"), LISTED)
def test_a_repeated_option_adds_up(command: str, name: str, many: bool) -> None:
    """Whoever says an option twice means both."""
    values = ["one=1", "two=2", "three=3"] if many else ["one=1", "two=2"]
    if name == "--kind":
        values = ["chunk", "summary"]
    words = [*BESIDE.get(command, []), name, *values[:-1], name, values[-1]]
    found = asked(*command.split(), *NEEDED.get(command, []), *words)
    if name == "--where":
        found["where"] = [f"{one.key}{one.op}{one.value}" for one in found["where"]]
    assert values in [list(one) for one in found.values() if isinstance(one, list | tuple)]


@pytest.mark.parametrize(("command", "name", "many"), LISTED)
def test_what_was_said_once_is_not_remembered(command: str, name: str, many: bool) -> None:
    """A second call in the same process begins with nothing."""
    value = "chunk" if name == "--kind" else "one=1"
    words = [*command.split(), *NEEDED.get(command, []), *BESIDE.get(command, []), name, value]
    assert asked(*words) == asked(*words)


def test_the_lists_are_known() -> None:
    """What takes a list is what the README says it does."""
    assert {f"{command} {name}" for command, name, _ in LISTED} == {
        "convert --limit",
        "embeddings import --limit",
        "git --in",
        "import --limit",
        "reconstruct --limit",
        "reconstruct --only",
        "repair --hunks",
        "repair --only",
        "repair --ours",
        "repair --path",
        "repair --remove",
        "repair --theirs",
        "search --in",
        "search --kind",
        "search --source",
        "search --where",
        "serve --documents",
        "serve --name",
    }


@pytest.mark.parametrize("name", ["--source", "--path"])
def test_a_value_may_hang_on_its_option(name: str) -> None:
    """``--path=a --path=b`` is the same."""
    command = {"--source": ["search", "words"], "--path": ["repair"]}[name]
    found = asked(*command, f"{name}=a", f"{name}=b")
    assert list(found[name.removeprefix("--")]) == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("search cat -dog", "filestore search -- cat -dog"),
        ("search -dog cat", "filestore search -- -dog cat"),
        ("search cat -dog --mode keyword", "filestore search OPTIONS -- QUERY"),
        ("search cat -lamp", "filestore search -- cat -lamp"),
        ("search -l cat -0day", "filestore search OPTIONS -- QUERY"),
        ("search cat --colour", "filestore search --help"),
        ("status -dog", "filestore status --help"),
    ],
)
def test_a_word_with_a_sign_is_told_how_to_be_typed(line, remedy):
    """Unquoted, a word to leave out looks like an option."""
    with pytest.raises(UsageError, match=r"unexpected argument '--?[a-z0]+'") as caught:
        parse(line.split())
    assert caught.value.remedy == remedy


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("serach words", "no command 'serach'; did you mean 'search'?"),
        ("stat", "no command 'stat'; did you mean 'status'?"),
        ("sl", "no command 'sl'; did you mean 'ls'?"),
        ("un", "no command 'un'; did you mean 'undo'?"),
        ("frobnicate", "no command 'frobnicate'"),
        ("verify --levle full", "unexpected argument '--levle'; did you mean '--level'?"),
        ("verify --levle=full", "unexpected argument '--levle'; did you mean '--level'?"),
        ("repair -yse", "unexpected argument '-yse'; did you mean '--yes'?"),
        ("ls -K 3", "unexpected argument '-K'"),
        ("--jsn status", "unexpected argument '--jsn'; did you mean '--json'?"),
        ("--stor a status", "unexpected argument '--stor'; did you mean '--store'?"),
        ("status --frobnicate", "unexpected argument '--frobnicate'"),
    ],
)  # fmt: skip
def test_an_unknown_word_is_told_what_may_be_meant(line, said):
    """Of a command or an option that there is not, the nearest is named; of others, none."""
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert caught.value.message == said
    assert "--help" in all_words(caught.value)


@pytest.mark.parametrize(
    "line", ["search words --mode hybird", "embedder fetc", "git instal", "verify --level ful"]
)
def test_an_unknown_choice_is_told_what_may_be_meant(line):
    """A misspelt action or value is told the nearest that there is."""
    with pytest.raises(UsageError, match=r"invalid choice: .*; did you mean '\w+'\?$"):
        parse(line.split())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("search words -k", "-k needs a value"),
        ("search words -k zero", "-k takes a whole number, found 'zero'"),
        ("show", "missing: PATH[:LINE]"),
        ("export", "missing: FORM, TARGET"),
        ("--color", "--color needs a value"),
        ("verify --level huge", "--level: invalid choice: 'huge' (choose from fast, full, deep)"),
    ],
)
def test_a_wrong_word_is_said_in_a_sentence_of_ours(line, said):
    """By the name that a person types; an option alone needs its value also before a command."""
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert caught.value.message == said


SHORTENED: Final = sorted(
    (command, action.option_strings[-1])
    for command in COMMANDS
    for words, parser in parsers(command_parser(command), (command,))
    for action in parser._actions
    if action.option_strings and action.help != argparse.SUPPRESS and len(words) == 1
    if action.option_strings[-1].startswith("--")
)


@pytest.mark.parametrize(("command", "option"), SHORTENED)
def test_an_option_is_taken_by_its_whole_name_only(command: str, option: str) -> None:
    """A shortened option is refused, and the whole one is named."""
    words = [command, *NEEDED.get(command, []), f"{option[:-1]}"]
    with pytest.raises(UsageError, match=f"unexpected argument '{option[:-1]}'.*'{option}'"):
        parse(words)


def test_an_action_takes_options_by_their_whole_names_only() -> None:
    """The same holds behind a word such as `embedder set`."""
    with pytest.raises(UsageError, match="unexpected argument '--ye'; did you mean '--yes'"):
        parse(["embedder", "set", "builtin", "--ye"])


def test_signs_that_are_options_and_those_that_are_none() -> None:
    """Flags may be joined; a negative number is a value, and a word of a query."""
    found = asked("search", "cat", "-l0")
    assert (found["documents"], found["nul"], found["text"]) == (True, True, "cat")
    with pytest.raises(UsageError, match="-k must be at least 1, found -3"):
        asked("search", "cat", "-k", "-3")
    assert asked("search", "return", "-1")["text"] == "return -1"
    assert asked("search", "--", "cat", "-lamp")["text"] == "cat -lamp"


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        ("mv a.md b.md --yes", "'mv' has no --yes: it asks nothing", "filestore mv a.md b.md"),
        ("sync --yes", "'sync' has no --yes: it asks nothing", "filestore sync"),
        (
            "rm a.md --plan",
            "'rm' has no --plan; add, embeddings prune, enrich, import, init and others take it",
            "filestore rm --help",
        ),
        (
            "show a.md -n 3",
            "'show' has no -n; changes, compare, embedder compare, evaluate, log, search and"
            " similar take it",
            "filestore show --help",
        ),
        ("ls --tree", "'ls' has no --tree; search takes it", "filestore ls --help"),
        ("rm a.md --full", "'rm' has no --full; sync takes it", "filestore rm --help"),
    ],
)
def test_an_option_of_other_commands_is_no_name(words: str, message: str, remedy: str) -> None:
    """No `--` is offered, which would take it for a file."""
    with pytest.raises(UsageError) as caught:
        parse(words.split())
    assert (caught.value.message, caught.value.remedy) == (message, remedy)


def test_a_file_called_as_an_option_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it lies, what stands before it makes it one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "--yes").touch()
    with pytest.raises(UsageError) as caught:
        parse(["rm", "--yes"])
    assert caught.value.remedy == "filestore rm -- --yes"


def test_choices_that_hooks_alone_take_are_not_listed() -> None:
    """`git hook` is for git."""
    with pytest.raises(UsageError) as caught:
        parse(["git", "instal"])
    assert "(choose from install, remove, status); did you mean 'install'?" in caught.value.message

"""What people and programs read: no words that read badly, and remedies that can be pasted."""

import contextlib
import re
import shlex

import pytest

from filestore.cli import _parser
from filestore.core.codes import CODES
from filestore.core.errors import FilestoreError, way_out
from tests.wording import LONG, NOT_SAID, ROOT, Said, messages, remedies, said


def test_no_text_has_a_word_that_reads_badly() -> None:
    """Over every literal of the program, the inspector and the page."""
    pattern = re.compile("|".join(rf"\b{word}" for word in NOT_SAID))
    # What a model reads is kept as it was: answers in the cache were made with it. The other is
    # the id of a document in an exported file.
    kept = ("filestore/generate/_prompts", "filestore/exchange/mapped")
    texts = [one for one in said() if not one.place.startswith(kept)]
    assert len(texts) > 5_000
    assert not [f"{one.place}: {one.text}" for one in texts if pattern.search(one.text)]


def test_counts_are_of_documents_and_passages() -> None:
    """Where `count` puts a noun behind a number, it is none of those that mean a passage, too."""
    lines = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("filestore", "tui")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if "count(" in line or "counted(" in line
    ]
    assert len(lines) > 150
    other = re.compile(r"""count(?:ed)?\(.*, ['"](?:\w+ )?(?:text|section|part|piece|item)['"]\)""")
    assert [line for line in lines if other.search(line)] == []


@pytest.mark.parametrize(
    ("remedy", "command", "rest"),
    [
        ("filestore sync", "filestore sync", ""),
        ("'filestore sync' indexes new ones", "filestore sync", "indexes new ones"),
        ("filestore add 'my notes' b,c.md", "filestore add 'my notes' b,c.md", ""),
        ("'git init' around the store", "git init", "around the store"),
        ("pip install '.[server]'", "pip install '.[server]'", ""),
        (
            "'filestore ls DOCUMENT' lists its chunks",
            "",
            "'filestore ls DOCUMENT' lists its chunks",
        ),
        ("filestore sync; then 'filestore status'", "", "filestore sync; then 'filestore status'"),
        ("filestore add x, or name a chunk", "", "filestore add x, or name a chunk"),
        ("filestore serve --port 0 (any)", "", "filestore serve --port 0 (any)"),
        ("filestore rm NAME", "", "filestore rm NAME"),
        ("fix the file", "", "fix the file"),
        ("", "", ""),
    ],
)
def test_only_a_command_is_something_to_try(remedy: str, command: str, rest: str) -> None:
    """One that begins the remedy, needs no word replaced, and is all but a remark."""
    assert way_out(remedy) == (command, rest)
    error = FilestoreError("It failed", remedy=remedy)
    assert [line.startswith("try: ") for line in error.remedy_lines[:1]] == (
        [bool(command)] if remedy else []
    )
    assert error.in_one_line.count("(try: ") == bool(command)


def test_an_error_is_read_at_a_glance() -> None:
    """Without the values that are put into it."""
    texts = list(messages())
    assert len(texts) > 900
    assert not [f"{one.place}: {one.text}" for one in texts if len(one.text) > LONG]


def test_most_remedies_are_a_command() -> None:
    """What a person does otherwise belongs into the sentence."""
    known = [way_out(one.text.replace("{}", "1"))[0] for one in remedies()]
    assert sum(map(bool, known)) / len(known) >= 0.6


def test_each_command_to_try_parses() -> None:
    """Of the remedies in the code, those of ours, with some word for each value in one."""
    found = [*remedies(), *(Said(name, code.repair) for name, code in CODES.items())]
    commands = [
        (one.place, command)
        for one in found
        if way_out(one.text.replace("{}", "1"))[0].startswith("filestore ")
        for command in [[way_out(one.text.replace("{}", word))[0] for word in ("1", "ls", "add")]]
    ]
    assert len(commands) >= 100
    assert [place for place, forms in commands if not any(map(is_taken, forms))] == []


def is_taken(command: str) -> bool:
    """Whether the command line takes it."""
    try:
        with contextlib.suppress(SystemExit):
            for one in command.split(" && "):
                _parser.parse(shlex.split(one)[1:])
    except FilestoreError:
        return False
    return True

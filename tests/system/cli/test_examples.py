"""Every example of a help is run, each in a copy of one prepared store."""

import io
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from filestore.cli import _help, main

EXAMPLES: Final = [
    *dict.fromkeys(one for each in _help.records().values() for one in each["examples"])
]
FILES: Final = {
    "handbook/lease.md": "---\ntags: [rent]\n---\n# Lease\n\nThe lease ends in June. Its "
    'renewal is in writing: "renewal of the lease". See [boiler](boiler.md).\n',
    "handbook/boiler.md": "# Boiler\n\nKeep the boiler pressure between 1.2 and 1.8 bar.\n",
    "handbook/leave.md": "# Leave\n\nParental leave is fourteen months long.\n",
    "handbook/cellar.md": "# Notes\n\nAsk about the cellar.\n",
    "notes.md": "# Notes\n\nAsk about the cellar.\n",
    "notes/bread.md": "# Bread\n\nBake it for forty minutes.\n",
    "questions.jsonl": '{"query": "boiler pressure", "relevant": ["handbook/boiler.md"]}\n',
}
BEFORE: Final = {
    "convert": ["export ragmd handbook.ragmd"],
    "embedder compare": ["embedder set minilm --beside --yes"],
    "embedder drop": ["embedder set minilm --beside --yes"],
    "embedder switch": ["embedder set minilm --beside --yes"],
    "embeddings import": ["embeddings export vectors.pack"],
    "embeddings info": ["embeddings export vectors.pack"],
    "import": ["export jsonl handbook.jsonl"],
    "redo": ["undo"],
}
"""What was done before, by the command."""
LAST: Final = ("serve", "watch")
"""Commands that go on until they are interrupted."""
PORT: Final = {"serve": ["--port", "0"]}
"""The usual one may be taken."""
NOT_RUN: Final = {
    "backend set pgvector": "needs PostgreSQL: tests/system/index has one",
    "embedder fetch": "downloads a model",
    "embedder use": "needs the weights of a model: the tests marked so have some",
    "tui": "needs a terminal: tests/tui has them",
}
RUN: Final = [
    one for one in EXAMPLES if not one.startswith(tuple(f"filestore {words}" for words in NOT_RUN))
]


def command_of(example: str) -> str:
    """The words of the command, and of its action."""
    _, *words = shlex.split(example)
    known = _help.records()
    action = " ".join(words[:2])
    return action if action in known else words[0]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git work tree with a store of its documents, and two commits."""
    folder = tmp_path_factory.mktemp("prepared") / "work"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CONFIG_HOME", str(folder.parent / "configuration"))
        git("init", "-q", "-b", "main")
        assert main(["init", "--embedder", "builtin", "--chunks"]) == 0
        assert main(["add", "handbook", "notes.md"]) == 0
        git("add", ".")
        git("commit", "-qm", "one")
        (folder / "handbook" / "leave.md").write_text("# Leave\n\nParental leave is a year long.\n")
        assert main(["update"]) == 0
        git("commit", "-qam", "two")
    return folder


def git(*words: str) -> None:
    """Run git as a person whom it knows."""
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *words], check=True)


@pytest.mark.parametrize("example", RUN)
def test_an_example_does_what_it_says(
    example: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with 0; what goes on until it is interrupted ends well."""
    shutil.copytree(prepared.parent, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy" / "work")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "copy" / "configuration"))
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    command = command_of(example)
    for line in BEFORE.get(command, ()):
        assert main(shlex.split(line)) == 0
    words = shlex.split(example)[1:]
    if command in LAST:
        assert interrupted([*words, *PORT.get(command, ())]) in (0, 130)
    else:
        assert main(words) == 0


def interrupted(words: list[str]) -> int:
    """Start a command, interrupt it at its first line, and return its exit code."""
    with subprocess.Popen(
        [sys.executable, "-m", "filestore", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert first
        assert b"try:" not in first + rest
        return process.wait()


def test_what_is_not_run_is_little() -> None:
    """At most ten examples, each with its reason, and each is an example."""
    assert len(EXAMPLES) - len(RUN) == len(NOT_RUN) <= 10


def test_a_command_of_every_day_has_three_examples() -> None:
    """The ten commands that a person types most."""
    known = _help.records()
    for name in ("init", "search", "show", "status", "sync", "update", "verify", "repair"):
        assert len(known[name]["examples"]) >= 3
    for name in ("open", "undo"):
        assert len(known[name]["examples"]) >= 3

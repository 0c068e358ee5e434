"""Names of files are what they are in every locale: a command works, or says what it needs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.server.operations import COMMANDS
from tests.conftest import Run

_PLAIN: Final = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
_LOCALES: Final = {
    "C": {"LC_ALL": "C"},
    "POSIX": {"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"},
    "one that is not there": {"LC_ALL": "xx_XX.ISO-8859-15"},
    "none": {"LC_ALL": "", "LANG": "", "LC_CTYPE": ""},
}
_NAME: Final = "Größe €.md"
_LATIN: Final = "Größe.md"

WORDS: Final = {
    "init": ["init", "new ü"],
    "add": ["add", _NAME],
    "update": ["update", "--plan"],
    "rm": ["rm", "nothing ü"],
    "show": ["show", _NAME],
    "search": ["search", "Walroß"],
    "about": ["about", "Walroß"],
    "similar": ["similar", _NAME],
    "links": ["links", _NAME],
    "open": ["open", "--print", _NAME],
    "log": ["log", "Walroß"],
    "evaluate": ["evaluate", "ü.jsonl"],
    "compare": ["compare", "HEAD"],
    "export": ["export", "jsonl", "tür.jsonl"],
    "import": ["import", "jsonl", "tür.jsonl", "--plan"],
    "convert": ["convert", "ü", "ä"],
    "reconstruct": ["reconstruct", _NAME],
    "enrich": ["enrich", "--plan"],
    "embedder": ["embedder", "list"],
    "backend": ["backend", "show"],
    "embeddings": ["embeddings", "export", "päck"],
    "git": ["git", "status"],
    "trust": ["trust", "--list"],
    "mcp": ["mcp", "--help"],
    "serve": ["serve", "ü", "--help"],
    "demo": ["demo", "--help"],
    "tui": ["tui", "--help"],
    "watch": ["watch", "--help"],
}
"""What is typed for a command; of the others the command alone."""


@pytest.fixture
def notes(run: Run, tmp_path: Path) -> Path:
    """A folder searched in place, with a note whose name few locales can write."""
    folder = tmp_path / "Ordnér"
    folder.mkdir()
    (folder / _NAME).write_text("# Größe\n\nEin Walroß. [x](Größe.md)\n", encoding="utf-8")
    (folder / _LATIN).write_text("# Größe\n\nNoch ein Walroß.\n", encoding="utf-8")
    assert run("init", "--in-place", ".", cwd=folder).code == 0
    return folder


def _spoilt(said: str) -> bool:
    return "Traceback" in said or "damaged" in said or "renamed" in said


@pytest.mark.parametrize(
    "locale", ["C", *(pytest.param(one, marks=pytest.mark.long) for one in [*_LOCALES][1:])]
)
def test_a_store_is_the_same_in_every_locale(run: Run, notes: Path, locale: str) -> None:
    """It is clean, its notes are found under their names, and JSON is JSON."""
    env = _PLAIN | _LOCALES[locale]
    for words in (["status"], ["sync"], ["show", _NAME], ["search", "Walroß", "--source", _NAME]):
        done = run(*words, cwd=notes, env=env)
        assert done.code == 0, (words, done)
        assert not _spoilt(done.stdout + done.stderr)
    found = json.loads(run("search", "Walroß", "--json", cwd=notes, env=env).stdout)
    assert {hit["path"] for hit in found["hits"]} == {_NAME, _LATIN}
    assert run("status", cwd=notes).code == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "locale",
    ["C", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in [*_LOCALES][1:])],
)
def test_every_command_works_in_a_locale_of_few_letters(run: Run, notes: Path, locale: str) -> None:
    """None ends in a traceback, and none takes the catalog for damaged."""
    for command in COMMANDS:
        done = run(*WORDS.get(command, [command]), cwd=notes, env=_PLAIN | _LOCALES[locale])
        assert not _spoilt(done.stdout + done.stderr), (command, done)
        assert done.code in (0, 1, 2, 3, 4), (command, done)
    assert run("status", cwd=notes).code == 0


@pytest.mark.skipif(shutil.which("localedef") is None, reason="no locales can be made here")
def test_words_are_read_and_written_in_the_encoding_of_the_person(
    notes: Path, tmp_path: Path
) -> None:
    """Names on the disk are in UTF-8 all the same, and stay what they are."""
    made = tmp_path / "locales"
    made.mkdir()
    name = "de_DE.ISO-8859-1"
    command = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(made / name)]
    if subprocess.run(command, capture_output=True, check=False).returncode > 1:
        pytest.skip("the sources of locales are not here")
    env = {**os.environ, "LOCPATH": str(made), "LC_ALL": name}
    env.pop("PYTHONUTF8", None)

    def said(*words: str) -> bytes:
        typed: list[Any] = [sys.executable, "-m", "filestore"]
        typed += [word.encode("latin-1") for word in words]
        done = subprocess.run(typed, cwd=notes, env=env, capture_output=True, check=False)
        assert done.returncode == 0, done
        return done.stdout

    assert said("show", _LATIN).startswith(b"# Gr\xf6\xdfe\n")
    assert _LATIN.encode("latin-1") in said("show", _LATIN, "--record")
    assert b"Gr\xf6\xdfe \\u20ac.md" in said("ls")
    assert b"Walro\xdf" in said("search", "Walroß")
    assert b"clean" in said("status")


def test_a_program_in_such_a_locale_is_refused(notes: Path) -> None:
    """Before anything is read or written."""
    program = "import filestore, sys; filestore.open(sys.argv[1])"
    env = {**os.environ, **_PLAIN, "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", program, notes], env=env, capture_output=True, check=False
    )
    assert b"PYTHONUTF8=1" in done.stderr or b"in UTF-8" in done.stderr
    assert not list((notes / ".filestore").glob("quarantine/*"))

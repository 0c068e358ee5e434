"""What is longer than the screen goes through a pager, on a terminal alone, and never gets lost."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.pseudo_terminal import on_terminal

Run = Callable[..., Any]
LINES: Final = 60


@pytest.fixture
def vault(run: Run, tmp_path: Path) -> Path:
    """A long document and a short one, in place."""
    folder = tmp_path / "vault"
    folder.mkdir()
    text = "\n\n".join(f"Paragraph {number} of the lease." for number in range(LINES))
    (folder / "long.md").write_text(f"# Long\n\n{text}\n")
    (folder / "short.md").write_text("# Short\n\nOne line.\n")
    run("init", "--in-place", str(folder), "--embedder", "builtin")
    return folder


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that keeps what it gets, and shows that it was here."""
    program = tmp_path / "my pager.py"
    program.write_text(
        "import pathlib, sys\n"
        "text = sys.stdin.read()\n"
        "pathlib.Path(sys.argv[1]).write_text(text)\n"
        "print('PAGED', len(text.splitlines()))\n"
    )
    return f"'{sys.executable}' '{program}' '{tmp_path / 'kept'}'"


def test_what_is_longer_than_the_screen_is_paged(vault: Path, pager: str, tmp_path: Path) -> None:
    """A document and a help: all of it, in colours as they are; what is shorter is printed."""
    shown = on_terminal(vault, "show", "long.md", FILESTORE_PAGER=pager, PAGER="false")
    assert (shown.code, shown.text.startswith("PAGED ")) == (0, True)
    kept = (tmp_path / "kept").read_text()
    assert kept.count("of the lease.") == LINES
    for words in (["help", "search"], ["search", "--help"]):
        assert on_terminal(vault, *words, FILESTORE_PAGER="", PAGER=pager).text.count("PAGED") == 0
        assert on_terminal(vault, *words, PAGER=pager).text.startswith("PAGED ")
    assert "PAGED" not in on_terminal(vault, "show", "short.md", PAGER=pager).text
    tall = on_terminal(vault, "show", "long.md", size=(400, 80), PAGER=pager)
    assert "PAGED" not in tall.text


@pytest.mark.parametrize("words", [["--no-pager"], ["--no-input"], ["--json"]])
def test_without_a_pager_it_is_printed(vault: Path, pager: str, words: list[str]) -> None:
    """`--no-input` waits for no key, and JSON is for programs."""
    shown = on_terminal(vault, "show", "long.md", *words, PAGER=pager)
    assert (shown.code, shown.text.count("of the lease.")) == (0, LINES)


def test_in_a_pipe_nothing_is_paged(run: Run, vault: Path, pager: str) -> None:
    """What a program reads depends on no pager."""
    done = run("show", "long.md", cwd=vault, env={"FILESTORE_PAGER": pager})
    assert done.stdout.count("of the lease.") == LINES


@pytest.mark.parametrize("pager", ["no-such-pager", "false", "'", "/", " "])
def test_a_pager_that_does_not_show_it_does_no_harm(vault: Path, pager: str) -> None:
    """Missing, failing, misspelt, a folder, empty: the text is printed in its place."""
    shown = on_terminal(vault, "show", "long.md", FILESTORE_PAGER=pager)
    assert (shown.code, shown.text.count("of the lease.")) == (0, LINES)


def test_a_pager_that_is_left_early_does_no_harm(run: Run, vault: Path) -> None:
    """No word of a broken pipe, and the exit code is that of the command."""
    # More than a pipe holds.
    (vault / "-big.md").write_text("# Big\n\n" + "words of the harbour\n" * 5_000)
    run("sync", cwd=vault)
    shown = on_terminal(vault, "show", "--", "-big.md", FILESTORE_PAGER="head -n 2")
    assert (shown.code, len(shown.text.splitlines())) == (0, 2)


def test_plans_are_paged(run: Run, vault: Path, pager: str, tmp_path: Path) -> None:
    """What an import would do, with the reason of each document that it refuses."""
    for number in range(LINES):
        (vault / f"{number}.md").write_text(f"# Note {number}\n\nIts line.\n")
    run("sync", cwd=vault)
    run("export", "jsonl", str(tmp_path / "vault.jsonl"), cwd=vault)
    run("init", str(tmp_path / "kept_index"), "--embedder", "builtin")
    plan = ("import", "jsonl", str(tmp_path / "vault.jsonl"), "--plan")
    shown = on_terminal(tmp_path / "kept_index", *plan, size=(3, 80), PAGER=pager)
    assert shown.text.startswith("PAGED ")
    kept = (tmp_path / "kept").read_text()
    assert f"would be added: {LINES + 2} documents" in kept
    small = on_terminal(tmp_path, "init", "--plan", "elsewhere", size=(2, 80), PAGER=pager)
    assert small.text.startswith("PAGED ")

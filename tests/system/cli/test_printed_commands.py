"""A command that is printed can be pasted where it is read: it names the store as this one did."""

import ast
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
PRINTED = re.compile(r"(?:try|undo it|lines?): (filestore .+)|'(filestore [^']+)'")


@pytest.fixture
def notes(tmp_path: Path, run: Run) -> Path:
    """Indexed documents in a folder with a blank in its name, beside the one that is worked in."""
    place = tmp_path / "my notes"
    place.mkdir()
    for name in ("lease", "bins"):
        (place / f"{name}.md").write_text(f"# {name}\n\nThe {name} is due monthly.\n")
    assert run("init", "--in-place", "--embedder", "builtin", "my notes", cwd=tmp_path).code == 0
    return place


def edit(notes: Path) -> None:
    (notes / "bins.md").write_text("# Bins\n\nOn Tuesday.\n")


def nothing(notes: Path) -> None:
    """As it is."""


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (edit, ["status"]),
        (nothing, ["show", "gone.md"]),
        (nothing, ["show", "bins.md", "--length", "9"]),
        (nothing, ["mv", "bins.md", "moved.md"]),
        (nothing, ["undo", "0000"]),
    ],
    ids=lambda one: one.__name__ if callable(one) else " ".join(one),
)
@pytest.mark.parametrize("typed", ["my notes", "./my notes/", "~/my notes"])
def test_it_names_the_store(
    run: Run,
    notes: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[Path], None],
    words: list[str],
    typed: str,
) -> None:
    """Typed again as it is printed, it is about the same store."""
    monkeypatch.setenv("HOME", str(notes.parent))
    before(notes)
    done = run("--store", typed, *words, cwd=notes.parent)
    found = ["".join(one) for one in PRINTED.findall(done.stdout + done.stderr)]
    commands = [one for one in found if "--help" not in one and "gone" not in one]
    assert commands
    for command in commands:
        named = shlex.split(command)
        assert named[1:3] == ["--store", typed]
        assert "no store" not in run(*named[1:], cwd=notes.parent).stderr


def test_a_store_that_begins_with_a_dash_is_named_so_that_it_is_no_option(
    run: Run, notes: Path
) -> None:
    """A path of the folder that it lies in."""
    notes.rename(notes.parent / "-notes")
    done = run("--store=-notes", "show", "gone.md", cwd=notes.parent)
    assert "try: filestore --store ./-notes ls\n" in done.stderr


def test_no_module_prints_a_command_without_its_store() -> None:
    """What goes to stdout names a command by `_output.command`; messages are written by `say`."""
    modules = sorted((Path(__file__).parents[3] / "filestore" / "cli").glob("*.py"))
    found = [
        f"{path.name}:{part.lineno}: {part.value}"
        for path in modules
        for call in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "line"
        for part in ast.walk(call)
        if isinstance(part, ast.Constant)
        and re.search(r"(?:'|: |^)filestore (?!init|help|demo|mcp)[a-z]", str(part.value))
    ]
    assert len(modules) > 20
    assert found == []

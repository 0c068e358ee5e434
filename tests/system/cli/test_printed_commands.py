"""A command that is printed can be pasted where it is read: it names the store as this one did."""

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

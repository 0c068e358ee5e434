"""A short text that tells no language is in that of most texts, whatever was there before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GERMAN = "Das ist eine Notiz über die Pumpe {0}, und sie ist nicht von mir.\n"
ENGLISH = "This is a note about the pump {0}, and it was not written by me.\n"


def found(notes: Any, query: str) -> list[tuple[str, float]]:
    """Files and scores by keyword."""
    hits = notes.json("search", "--mode", "keyword", query, code=None)["hits"]
    return [(hit["path"], hit["score"]) for hit in hits]


def test_most_texts_decide_now(new_workspace: Callable[..., Any]) -> None:
    """The list is found by the singular while most notes are German, as in a store made anew."""
    notes = new_workspace(init=False)
    notes.write("list.md", "- Häuser\n- Gläser\n")
    for number in range(2):
        notes.write(f"de{number}.md", GERMAN.format(number))
        notes.write(f"en{number}.md", ENGLISH.format(number))
    notes("init", "--in-place", "--embedder", "builtin")
    assert not found(notes, "Haus")  # as many in each: the first by name
    for name, text, is_found in (
        ("de9.md", GERMAN, True),
        ("en8.md", ENGLISH, False),
        ("en9.md", ENGLISH, False),
    ):
        notes.write(name, text.format(name))
        notes.sync()
        assert bool(found(notes, "Haus")) is is_found, name
    for gone in ("en8.md", "en9.md", "en0.md"):
        Path(notes.folder, gone).unlink()
        notes.sync()
    lived = [found(notes, query) for query in ("Haus", "pump", "Glas", "Notiz")]
    assert lived[0]
    notes("sync", "--full")
    assert lived == [found(notes, query) for query in ("Haus", "pump", "Glas", "Notiz")]


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_chunks_are_in_the_language_of_most(new_workspace: Callable[..., Any], layout: str) -> None:
    """As in place, whatever order they are added in."""
    notes = new_workspace(init=False)
    notes("init", "--layout", layout, "--embedder", "builtin")
    notes.write("list.md", "- Häuser\n- Gläser\n")
    notes("add", "list.md")
    assert not found(notes, "Haus")
    notes.write("de.md", GERMAN)
    notes("add", "de.md")
    assert found(notes, "Haus")

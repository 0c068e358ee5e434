"""Stores in place as a person meets them: merges, stubs of notes, names that are no folders."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.system.conftest import Workspace


@pytest.fixture
def notes(new_workspace: Callable[..., Workspace]) -> Workspace:
    """A work tree of one note, in place."""
    made = new_workspace(init=False)
    made.write("a.md", "# A\n\nThe base line.\n")
    made("init", "--in-place", "--embedder", "builtin")
    made.git("add", "-A")
    made.git("commit", "-qm", "base")
    return made


def codes(done: Any) -> set[str]:
    return set(done["drift"])


def found(notes: Workspace, query: str) -> list[tuple[str, int]]:
    hits = notes.json("search", query, "--mode", "keyword", code=None)["hits"]
    return [(hit["path"], hit["line"]) for hit in hits]


def test_a_conflict_that_was_resolved_is_found_again(notes: Workspace) -> None:
    """However often the store was synced while git still had the file as unmerged."""
    notes.git("checkout", "-qb", "side")
    notes.write("a.md", "# A\n\nA walrus.\n")
    notes.git("commit", "-qam", "side")
    notes.git("checkout", "-q", "-")
    notes.write("a.md", "# A\n\nA pelican.\n")
    notes.git("commit", "-qam", "main")
    with pytest.raises(Exception, match="merge"):
        notes.git("merge", "side")
    assert codes(notes.json("status", code=1)) == {"conflict-markers", "git-operation"}
    notes("sync", code=1)
    notes.git("checkout", "--theirs", "a.md")
    notes("sync", code=1)
    assert found(notes, "walrus") == []
    notes.git("add", "a.md")
    assert codes(notes.json("status", code=1)) == {"modified", "git-operation"}
    notes("sync")
    notes.git("commit", "-qm", "merged")
    assert notes.json("status")["drift"] == {}
    assert found(notes, "walrus") == [("a.md", 3)]


def test_a_note_that_is_all_frontmatter_is_found(notes: Workspace) -> None:
    """By title, aliases and tags; an empty head is no text."""
    notes.write("stub.md", "---\ntitle: Fulmar counts\naliases: [seabirds]\ntags: [todo]\n---\n")
    notes.write("blank.md", "---\n---\n")
    notes("sync", code=1)
    assert codes(notes.json("status", code=1)) == {"empty"}
    assert found(notes, "fulmar")[0][0] == "stub.md"
    assert found(notes, "seabirds")[0][0] == "stub.md"
    hits = notes.json("search", "counts", "--where", "tags=todo")["hits"]
    assert [hit["path"] for hit in hits] == ["stub.md"]


def test_what_is_left_after_init_is_told_by_its_exit_code(
    new_workspace: Callable[..., Workspace],
) -> None:
    """As that of `sync`: 1 while something needs a person."""
    made = new_workspace(init=False)
    made.write("a.md", "# A\n\nwords\n")
    (made.folder / "b.md").write_bytes(b"\0\1\2" * 50)
    done = made("init", "--in-place", "--embedder", "builtin", code=1)
    assert "left for you:" in done.stdout
    assert "b.md" in done.stdout


def test_a_file_is_no_folder(new_workspace: Callable[..., Workspace]) -> None:
    """Whoever names a file is told so, and it stays as it is."""
    made = new_workspace(init=False)
    made.write("a.md", "words\n")
    assert "a.md is no folder" in made("init", "--in-place", "a.md", code=2).stderr
    assert (made.folder / "a.md").read_text() == "words\n"

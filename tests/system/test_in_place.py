"""Stores in place as a person meets them: merges, stubs of notes, names that are no folders."""

import os
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
    assert "a.md is not a folder" in made("init", "--in-place", "a.md", code=2).stderr
    assert (made.folder / "a.md").read_text() == "words\n"


def test_a_note_that_became_a_folder_is_missing(notes: Workspace) -> None:
    """Or whose folder became a link: no rule left it out, and nothing was excluded."""
    notes.write("b/c.md", "# C\n\nA fulmar.\n")
    notes("sync")
    (notes.folder / "a.md").unlink()
    notes.write("a.md/inner.txt", "Words.\n")
    (notes.folder / "b").rename(notes.folder.parent / "b")
    (notes.folder / "b").symlink_to(notes.folder.parent / "b")
    drift = notes.json("status", code=1)["drift"]
    assert (drift["missing"], set(drift)) == (
        ["a.md", "b/c.md"],
        {"missing", "untracked", "symlink"},
    )
    for word in ("base", "fulmar"):
        answer = notes.json("search", word, "--mode", "keyword", code=None)
        assert (answer["hits"], answer["behind"]["gone"]) == ([], 2)
    notes("sync", code=1)
    assert codes(notes.json("status", code=1)) == {"symlink"}


@pytest.mark.parametrize("kind", ["link", "pipe", "binary"])
def test_what_is_no_note_any_more_is_not_shown_as_one(notes: Workspace, kind: str) -> None:
    """Its text as it was indexed is no answer to what is there now."""
    note = notes.folder / "a.md"
    note.unlink()
    if kind == "link":
        note.symlink_to("/etc/hostname")
    elif kind == "pipe":
        os.mkfifo(note)
    else:
        note.write_bytes(b"\0\1\2" * 50)
    told = {"link": "a symbolic link", "pipe": "a named pipe", "binary": "is not text"}[kind]
    done = notes("show", "a.md", code=3)
    assert told in done.stderr
    assert "base line" not in done.stdout


@pytest.mark.parametrize(
    "name", [b"caf\xe9.md", b"line\nbreak.md", b"a\x1b[1mb.md", "soft\u00adly.md".encode()]
)
def test_a_name_as_it_was_printed_is_understood(notes: Workspace, name: bytes) -> None:
    """With signs that no terminal may get, as escapes: in words, in JSON, and with a line."""
    path = os.path.join(os.fsencode(notes.folder), name)
    with open(path, "wb") as file:
        file.write(b"# B\n\nThe walrus, and [[a]].\n")
    notes("sync", code=None)
    words = ("search", "walrus", "--mode", "keyword")
    printed = notes(*words, "--format", "oneline").stdout.partition(":")[0]
    (hit,) = notes.json(*words)["hits"]
    for shown in (printed, hit["document"], os.fsdecode(name)):
        for command in ("show", "links", "similar"):
            notes(command, shown)
        assert "walrus" in notes("show", f"{shown}:3").stdout
        assert notes.json("open", f"{shown}:3", "--print")["line"] == 3


def test_the_line_of_a_word_found_by_a_stem_of_another_language(notes: Workspace) -> None:
    """Notes in two languages are asked in either; the line that is shown is the one found."""
    notes.write("it.md", "Il tempo di una nota che non è della mano, con il cane e la luna.\n")
    notes.write("en.md", "# E\n\nFirst of all the text.\n\nThen the opportunity to veto it.\n")
    notes("sync")
    assert found(notes, "opportunamente") == [("en.md", 5)]


def test_many_notes_that_a_sparse_checkout_leaves_out_are_no_accident(notes: Workspace) -> None:
    """They leave the index, and come back with nothing to embed."""
    for number in range(80):
        notes.write(f"many/{number}.md", f"# N\n\nWalrus {number}.\n")
    notes.git("add", "-A")
    notes.git("commit", "-qm", "many")
    notes("sync")
    notes.git("sparse-checkout", "set", "nothing")
    assert codes(notes.json("status", code=1)) == {"missing"}
    notes("sync")
    assert found(notes, "walrus") == []
    notes.git("sparse-checkout", "disable")
    assert notes.json("sync")["embedded"] == 0


def test_a_commit_from_before_the_store_says_how_to_go_on(notes: Workspace) -> None:
    """Git takes the settings away, and the index stays: nothing of it is lost."""
    notes.write("b.md", "# B\n\nA walrus.\n")
    notes("sync")
    settings = notes.folder / "filestore.toml"
    settings.unlink()
    for words in (("search", "walrus"), ("status",), ("sync",)):
        said = notes(*words, code=3).stderr
        assert f"git -C {notes.folder} checkout BRANCH -- filestore.toml" in said
        assert f"filestore init --in-place {notes.folder}" in said
    done = notes("init", "--in-place", "--embedder", "builtin")
    assert "embedded" not in done.stdout or "embedded 0 passages" in done.stdout
    assert settings.is_file()
    assert found(notes, "walrus") == [("b.md", 3)]

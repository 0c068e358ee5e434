"""Sources added again over what happened to their chunk files since: deletions, moves, crashes."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from filestore.catalog import Catalog
from filestore.chunks import chunk_file
from filestore.git.merge import Overlap, merge

TOPICS = ("apples", "pears", "plums", "cherries", "quinces", "medlars")


@pytest.fixture
def notes(either: Any, manual: Any) -> Any:
    """Writes the source ``notes.md`` with some words replaced; it is added and committed."""

    def write(*changes: tuple[str, str], topics: tuple[str, ...] = TOPICS) -> None:
        text = manual(topics)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        either.write("notes.md", text)

    write()
    either("add", "notes.md")
    either.git("add", "-A")
    either.git("commit", "-qm", "notes")
    return write


def about(workspace: Any, topic: str) -> list[Path]:
    """The chunk files with the section about a topic."""
    found = sorted(path for path in workspace.chunked.rglob("*.md") if path.is_file())
    return [path for path in found if f"## About {topic}" in path.read_text()]


def edit(path: Path, old: str, new: str) -> None:
    """Change words of a file."""
    data = path.read_bytes()
    assert old.encode() in data
    path.write_bytes(data.replace(old.encode(), new.encode()))


def shown(path: Path, workspace: Any) -> str:
    """A path as the command line prints it."""
    return path.relative_to(workspace.store).as_posix()


def in_conflict(workspace: Any, notes: Any) -> Path:
    """A chunk whose hand edit overlaps with a new text of its source, which was added."""
    (path,) = about(workspace, "plums")
    edit(path, "needs care in step 3", "needs my care in step 3")
    notes(("plums needs care in step 3", "plums needs new care in step 3"))
    assert workspace.json("add", "notes.md", code=1)["conflicts"]
    return path


# Conflicts that were overtaken


def test_a_conflict_ends_when_git_takes_both_sides_back(either: Any, notes: Any) -> None:
    """With file and source as committed nothing waits, and the new text cannot be chosen."""
    path = in_conflict(either, notes)
    either.git("checkout", "-q", ".")
    either.sync()
    before = either.truth()
    refused = either("repair", "--theirs", shown(path, either), "--yes", code=None)
    assert refused.code != 0
    assert either.truth() == before
    either.assert_settled()


def test_a_conflict_is_not_chosen_over_a_file_that_was_taken_back(either: Any, notes: Any) -> None:
    """Even before a sync, a file that is as generated again is not given the new text."""
    path = in_conflict(either, notes)
    either.git("checkout", "-q", ".")
    before = either.truth()
    either("repair", "--theirs", shown(path, either), "--yes", code=None)
    assert either.truth() == before


@pytest.mark.parametrize("again", ["new", "former"])
def test_a_conflict_with_a_source_that_moved_on_is_not_chosen(
    either: Any, notes: Any, again: str
) -> None:
    """A text that the source no longer has is not taken; the source is told as changed instead."""
    path = in_conflict(either, notes)
    notes(*([("plums needs care in step 3", "plums needs newer care in step 3")][: again == "new"]))
    assert list(either.drift()) == ["source-modified"]
    before = either.truth()
    either("repair", "--theirs", shown(path, either), "--yes", code=None)
    assert either.truth() == before
    told = either.json("add", "notes.md", code=int(again == "new"))
    assert bool(told["conflicts"]) == (again == "new")
    left = {"source-modified", "ingest-conflict"} if again == "new" else set()
    assert set(either.drift()) == left


def test_a_conflict_outlives_a_sync_while_both_sides_stand(either: Any, notes: Any) -> None:
    """An open conflict is told before and after a sync, and can be chosen in."""
    path = in_conflict(either, notes)
    assert either.drift()["ingest-conflict"] == [shown(path, either)]
    either.sync(code=1)
    assert either.drift()["ingest-conflict"] == [shown(path, either)]
    either("repair", "--theirs", shown(path, either), "--yes")
    assert "new care" in path.read_text()
    either.assert_settled()


def test_a_source_that_went_back_is_told_until_it_is_added(either: Any, notes: Any) -> None:
    """What needed no choice has the other version's text, which no sync makes anybody forget."""
    (path,) = about(either, "plums")
    edit(path, "needs care in step 3", "needs my care in step 3")
    notes(
        ("plums needs care in step 3", "plums needs new care in step 3"),
        ("pears needs care in step 3", "pears needs new care in step 3"),
    )
    either("add", "notes.md", code=1)
    notes()
    either.sync(code=1)
    assert list(either.drift()) == ["source-modified"]
    either("add", "notes.md")
    assert "new care" not in about(either, "pears")[0].read_text()
    assert "my care" in path.read_text()
    either.assert_settled()


def test_a_document_that_is_left_out_now_can_be_decided_on(either: Any, manual: Any) -> None:
    """An edited chunk of a document that lies in its folder, and is ignored by now, waits too."""
    either.write("book/a.md", manual(["apples"]))
    either.write("book/b.md", manual(["pears"]))
    either("add", "book")
    (path,) = about(either, "pears")
    edit(path, "needs care in step 2", "needs my care in step 2")
    either.write("book/.gitignore", "b.md\n")
    either("add", "book", code=1)
    assert either.drift()["ingest-conflict"] == [shown(path, either)]
    either("repair", "--theirs", shown(path, either), "--yes", code=None)
    assert about(either, "pears") == []


# What an interrupted command left


def test_adding_again_indexes_what_a_killed_add_wrote(workspace: Any, manual: Any) -> None:
    """Killed between two renames and run again, `add` leaves nothing that status would tell."""
    workspace.write("notes.md", manual(TOPICS))
    workspace("add", "notes.md")
    changed = manual(TOPICS).replace("needs care", "wants care")
    workspace.write("notes.md", changed)
    code = (
        "import os, signal, sys\n"
        "rename, left = os.rename, [3]\n"
        "def killing(*words, **options):\n"
        "    left[0] -= 'chunk' in str(words[1])\n"
        "    if left[0] == 0:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return rename(*words, **options)\n"
        "os.rename = killing\n"
        "from filestore.cli import main\n"
        "main(['add', 'notes.md'])\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code], cwd=workspace.folder, check=False, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    assert list(workspace.chunked.rglob(".filestore-tmp-*"))
    workspace("add", "notes.md")
    assert not list(workspace.chunked.rglob(".filestore-tmp-*"))
    workspace.assert_settled()


def test_adding_again_indexes_a_file_that_holds_the_new_text_already(
    either: Any, notes: Any
) -> None:
    """A chunk that needs no writing, but that the catalog has otherwise, is indexed."""
    notes(("plums needs care", "plums wants care"))
    either("add", "notes.md")
    (path,) = about(either, "plums")
    kept = path.read_bytes()
    either("undo")
    about(either, "plums")[0].unlink()
    path.write_bytes(kept)
    either("add", "notes.md")
    either.assert_settled()


def test_adding_again_indexes_hand_edits_of_its_resource(either: Any, notes: Any) -> None:
    """An edit that nobody synced is in step after its source was added again."""
    (path,) = about(either, "pears")
    edit(path, "needs care in step 2", "needs my care in step 2")
    either("add", "notes.md")
    assert either.drift() == {}
    assert path.relative_to(either.chunked).as_posix() in either.found("my pears")


@pytest.mark.parametrize("command", ["add", "rm", "undo", "redo"])
def test_whoever_writes_chunk_files_collects_leftovers(
    workspace: Any, manual: Any, command: str
) -> None:
    """Temporary files of a dead writer are gone from every folder that a command changes."""
    workspace.write("notes.md", manual(TOPICS))
    workspace("add", "notes.md")
    workspace.write("notes.md", manual(TOPICS).replace("needs", "wants"))
    if command != "rm":
        workspace("add", "notes.md")
        workspace("undo")
    if command == "undo":
        workspace("redo")
    leftovers = [workspace.chunked / ".filestore-tmp-1", workspace.chunked / "notes.md"]
    leftovers[1] /= ".filestore-tmp-2"
    for path in leftovers:
        path.write_bytes(b"half")
    workspace(command, *(["notes.md"] if command in ("add", "rm") else []))
    assert [path for path in leftovers if path.exists()] == []


# Deletions


@pytest.mark.parametrize("synced", [True, False])
def test_a_deleted_chunk_stays_deleted(either: Any, notes: Any, synced: bool) -> None:
    """The text of a chunk that a person deleted does not come back with a change elsewhere."""
    (path,) = about(either, "plums")
    data = path.read_bytes()
    path.unlink()
    if synced:
        either.sync()
    for word in ("wants", "asks for"):
        notes(("pears needs care", f"pears {word} care"))
        told = either.json("add", "notes.md")["updated"][0]
        assert told["deleted"] == [shown(path, either)]
        assert about(either, "plums") == []
        either.assert_settled()
    assert "you deleted it, same source text" in _again(either, notes)
    either("repair", "--path", shown(path, either), "--write-files", "--yes")
    assert path.read_bytes() == data
    either("add", "notes.md")
    assert about(either, "plums") == [path]


def _again(workspace: Any, notes: Any) -> str:
    notes(("pears needs care", "pears has care"))
    return str(workspace("add", "notes.md").stdout)


def test_a_deleted_chunk_comes_in_as_new_when_its_text_changed(either: Any, notes: Any) -> None:
    """A new text is no text that a person deleted."""
    (path,) = about(either, "plums")
    path.unlink()
    either.sync()
    notes(("plums needs care in step 3", "plums needs new care in step 3"))
    either("add", "notes.md")
    assert len(about(either, "plums")) == 1
    either.assert_settled()


def test_a_text_that_its_source_had_dropped_comes_back_with_it(either: Any, notes: Any) -> None:
    """What went with its source's text was deleted by nobody."""
    notes(topics=tuple(topic for topic in TOPICS if topic != "plums"))
    either("add", "notes.md")
    assert about(either, "plums") == []
    notes()
    told = either.json("add", "notes.md")["updated"][0]
    assert len(about(either, "plums")) == 1
    assert "deleted" not in told


def test_a_text_of_another_branch_was_not_deleted(either: Any, notes: Any) -> None:
    """Files that went by a change of branch come in when the source on this branch has them."""
    either.git("branch", "-M", "main")
    either.git("branch", "other")
    notes(topics=(*TOPICS, "figs"))
    either("add", "notes.md")
    either.git("add", "-A")
    either.git("commit", "-qm", "figs")
    for synced in (True, False):
        either.git("checkout", "-q", "other")
        if synced:
            either.sync()
        assert about(either, "figs") == []
        notes(topics=(*TOPICS, "figs"))
        either("add", "notes.md")
        assert len(about(either, "figs")) == 1
        either.assert_settled()
        either.git("checkout", "-q", "-f", "main")
        either.git("clean", "-qfd")
        either.sync()


def test_a_moved_chunk_is_not_deleted(workspace: Any, manual: Any) -> None:
    """A chunk that was moved away and never synced is followed, not left out nor made twice."""
    for name in ("notes.md", "other.md"):
        workspace.write(name, manual(TOPICS if name == "notes.md" else ("figs", "dates")))
        workspace("add", name)
    (path,) = about(workspace, "plums")
    moved = workspace.chunked / "other.md" / "mine.md"
    os.rename(path, moved)
    workspace.write("notes.md", manual(TOPICS).replace("pears needs", "pears wants"))
    told = workspace.json("add", "notes.md")["updated"][0]
    assert "deleted" not in told
    assert about(workspace, "plums") == [moved]
    workspace.assert_settled()


# Names and line ends


def test_a_chunk_that_came_back_to_its_name_is_untouched(workspace: Any, manual: Any) -> None:
    """Renamed, synced, and renamed back, a chunk keeps its bytes over changes elsewhere."""
    workspace.write("notes.md", manual(TOPICS))
    workspace("add", "notes.md")
    (path,) = about(workspace, "plums")
    data, other = path.read_bytes(), path.with_name("ten.md")
    for old, new in ((path, other), (other, path)):
        os.rename(old, new)
        workspace.sync()
    workspace.write("notes.md", manual(TOPICS).replace("apples needs", "apples wants"))
    workspace("add", "notes.md")
    assert path.read_bytes() == data
    workspace.assert_settled()


def test_a_chunk_that_came_back_from_another_folder_is_its_own(workspace: Any, manual: Any) -> None:
    """A chunk that was in another resource's folder for a while belongs where it was made."""
    for name in ("notes.md", "other.md"):
        workspace.write(name, manual(TOPICS if name == "notes.md" else ("figs", "dates")))
        workspace("add", name)
    (path,) = about(workspace, "plums")
    other = workspace.chunked / "other.md" / "mine.md"
    for old, new in ((path, other), (other, path)):
        os.rename(old, new)
        workspace.sync()
    workspace.write("notes.md", manual(TOPICS).replace("plums needs", "plums wants"))
    workspace("add", "notes.md")
    assert about(workspace, "plums") == [path]
    assert "plums wants" in path.read_text()
    catalog = Catalog.open(str(workspace.sidecar / "catalog.sqlite"))
    try:
        assert catalog.renamed_from("") == {}
    finally:
        catalog.close()


@pytest.mark.parametrize("choice", [None, "theirs"])
def test_carriage_returns_of_a_chunk_stay_through_a_new_text(
    either: Any, notes: Any, choice: str | None
) -> None:
    """A file with CRLF line ends has no other after its source changed, or after a choice."""
    (path,) = about(either, "plums")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    if choice:
        edit(path, "needs care in step 3", "needs my care in step 3")
    either.sync()
    notes(("plums needs care in step 3", "plums needs new care in step 3"))
    either("add", "notes.md", code=int(choice is not None))
    if choice:
        either("repair", f"--{choice}", shown(path, either), "--yes")
    data = path.read_bytes()
    assert b"new care" in data
    assert data.count(b"\n") == data.count(b"\r\n")
    assert not chunk_file.hand_edited(chunk_file.parse(data))
    either.assert_settled()


def test_a_record_that_names_another_source_is_told_plainly(workspace: Any) -> None:
    """Where a record names another source, the refusal says which, and where that is written."""
    workspace.write("short.md", "# Short\n\nA few words.\n")
    workspace.write("other.md", "# Other\n\nOther words.\n")
    workspace("add", "short.md")
    record = workspace.chunked / "short.md" / "meta.json"
    edit(record, '"../short.md"', '"/etc/passwd"')
    refused = workspace("add", "other.md", "--into", "short.md", code=4)
    assert "/etc/passwd" in refused.stderr
    assert "chunked/short.md/meta.json" in refused.stderr


# Words


def test_an_overlap_is_quoted_around_what_differs() -> None:
    """Long lines with a common start are quoted where they part, each in its own words."""
    start = "The glacier keeps records about music in a long and quiet row, and"
    mine, new = (f"{start} the {place} keeps the rest for long.\n" for place in ("cellar", "attic"))
    found = merge(f"{start} nobody keeps the rest.\n", mine, new)
    assert isinstance(found, Overlap)
    assert (found.detail.count("cellar"), found.detail.count("attic")) == (1, 1)

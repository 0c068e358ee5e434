"""`filestore rm`: a resource leaves the tree and the index; its files are kept aside."""

import json
import os
from pathlib import Path
from typing import Any


def kept(workspace: Any, undo: str) -> dict[str, bytes]:
    """What a batch under `.undo/` holds: path to bytes."""
    batch: Path = workspace.store / ".undo" / undo
    record = json.loads((batch / "batch.json").read_bytes())
    return {
        entry["path"].encode("latin-1").decode().removeprefix("chunked/"): (
            batch / entry["before"]["blob"]
        ).read_bytes()
        for entry in record["files"]
    }


def test_removes_files_and_vectors(either: Any) -> None:
    """The chunks, the record, the vectors and the hits are gone; the rest is as it was."""
    either.write("keep.md", "# Keep\n\nShared word stays.\n")
    either.write("gone.md", "# Gone\n\nShared word leaves.\n")
    either("add", "keep.md", "gone.md")
    before = either.truth()
    done = either.json("rm", "gone.md")
    (removed,) = done["removed"]
    assert removed["resource"] == "gone.md"
    after = either.truth()
    assert {path: before[path] for path in after} == after
    paths = {path.removeprefix("chunked/") for path in removed["files"]}
    assert paths == before.keys() - after.keys()
    assert len(paths) == 2
    assert len(either.found("shared")) == 1
    vectors = either.json("search", "shared word leaves", "--mode", "vector")["hits"]
    assert [hit["resource"] for hit in vectors] == ["keep.md"]
    assert [item["resource"] for item in either.json("ls")["items"]] == ["keep.md"]
    either.assert_settled()


def test_originals_are_kept(either: Any) -> None:
    """Every byte that was removed lies under .undo/, hand edits too, and git ignores it."""
    either.write("gone.md", "# Gone\n\nSome words.\n")
    either("add", "gone.md")
    (chunk,) = either.chunks("gone.md")
    path = either.chunked / chunk
    path.write_bytes(path.read_bytes() + b"And mine.\n")
    before = either.truth()
    done = either("rm", "gone.md")
    assert "kept as .undo/" in done.stdout
    assert either.truth() == {}
    added, undo = sorted(os.listdir(either.store / ".undo"))
    assert added != undo
    assert kept(either, undo) == before
    assert "?? file_index/.undo" not in either.git("status", "--porcelain", "-uall")


def test_no_empty_folder_stays(workspace: Any) -> None:
    """In the tree layout the folder of the resource goes with it, `chunked/` stays."""
    workspace.write("gone.md", "Some words.\n")
    workspace("add", "gone.md")
    workspace("rm", "gone.md")
    assert list(workspace.chunked.iterdir()) == []


def test_source_stays(either: Any) -> None:
    """The original in the work tree is not touched, and can be added again for nothing."""
    source = either.write("gone.md", "# Gone\n\nSome words.\n")
    either("add", "gone.md")
    before = either.truth()
    either("rm", "gone.md")
    assert source.read_text() == "# Gone\n\nSome words.\n"
    report = either.json("add", "gone.md")
    assert report["embedded"] == 0
    assert report["reused"] == 1
    assert either.truth() == before
    either.assert_settled()


def test_several_at_once(either: Any) -> None:
    """Several names are removed in one call, a name given twice once."""
    for name in ("a.md", "b.md", "c.md"):
        either.write(name, f"The words of {name}.\n")
    either("add", "a.md", "b.md", "c.md")
    done = either.json("rm", "a.md", "c.md", "a")
    assert [one["resource"] for one in done["removed"]] == ["a.md", "c.md"]
    assert [item["resource"] for item in either.json("ls")["items"]] == ["b.md"]
    either.assert_settled()


def test_unknown_name(either: Any) -> None:
    """A name that is none is said with the way to the right one, and nothing is removed."""
    either.write("here.md", "Some words.\n")
    either("add", "here.md")
    before = either.truth()
    done = either("rm", "here.md", "nowhere.md", code=3)
    assert "nowhere.md" in done.stderr
    assert "filestore ls" in done.stderr
    assert either.truth() == before


def test_same_chunk_text_in_another_resource_stays_found(either: Any) -> None:
    """A vector that two files share stays as long as one of them does."""
    for name in ("one.txt", "two.txt"):
        either.write(name, "The very same words.\n")
    either("add", "one.txt", "two.txt")
    either("rm", "one.txt")
    hits = either.json("search", "very same", "--mode", "vector")["hits"]
    assert [hit["resource"] for hit in hits] == ["two.txt"]
    either.assert_settled()


def test_the_name_is_free_again(workspace: Any, tmp_path: Path) -> None:
    """After a removal another document from elsewhere may have the name."""
    for folder, words in (("one", "Amber words."), ("two", "Basalt words.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "note.md").write_text(f"# Note\n\n{words}\n")
    workspace("add", tmp_path / "one" / "note.md")
    assert "in use" in workspace("add", tmp_path / "two" / "note.md", code=4).stderr
    workspace("rm", "note.md")
    workspace("add", tmp_path / "two" / "note.md")
    assert workspace("reconstruct", "note.md").stdout == "# Note\n\nBasalt words.\n"
    workspace.assert_settled()


def test_several_come_back_with_one_undo(either: Any) -> None:
    """What one command removed is listed, undone and redone as one."""
    for name in ("a.md", "b.md", "c.md"):
        either.write(name, f"The words of {name}.\n")
    either("add", "a.md", "b.md", "c.md")
    before = either.truth()
    removed = either.json("rm", "a.md", "b.md")["removed"]
    left = either.truth()
    newest, _ = either.json("undo", "--list")["batches"]
    assert (newest["what"], newest["files"]) == ("rm a.md b.md", 4)
    assert {one["undo"] for one in removed} == {newest["id"]}
    assert len(list((either.store / ".undo").iterdir())) == 4
    assert either.json("undo")["id"] == newest["id"]
    assert either.truth() == before
    either.assert_settled()
    either("redo")
    assert either.truth() == left
    either.assert_settled()


def test_many_names_are_counted_in_the_list(workspace: Any) -> None:
    """The list of changes stays readable where many resources went at once."""
    names = [f"{letter}.md" for letter in "abcde"]
    for name in names:
        workspace.write(name, f"The words of {name}.\n")
    workspace("add", *names)
    workspace("rm", *names)
    assert workspace.json("undo")["what"] == "rm a.md b.md c.md and 2 more"


def test_all_stay_where_one_cannot_go(either: Any) -> None:
    """A file of the second resource that cannot be removed keeps the first one, too."""
    for name in ("a.md", "b.md"):
        either.write(name, f"The words of {name}.\n")
    either("add", "a.md", "b.md")
    (chunk,) = either.chunks("b.md")
    path = either.chunked / chunk
    path.unlink()
    path.symlink_to(either.folder / "b.md")
    before = either.truth()
    assert f"chunked/{chunk}" in either("rm", "a.md", "b.md", code=4).stderr
    assert either.truth() == before
    assert len(either.json("undo", "--list")["batches"]) == 1
    assert [item["resource"] for item in either.json("ls")["items"]] == ["a.md", "b.md"]

"""What an export takes along, what it names, and where it may not be written."""

import json

import pytest


@pytest.fixture
def filled(workspace, manual):
    """A store with two resources."""
    workspace.write("handbook.md", manual(["lamps", "sails"]))
    workspace.write("notes.md", "# Notes\n\nAsk about the cellar.\n")
    workspace("add", "handbook.md", "notes.md")
    return workspace


def rows(workspace, name="all.jsonl"):
    """The lines of an export."""
    return [json.loads(line) for line in (workspace.folder / name).read_bytes().splitlines()]


def test_some_resources(filled):
    """Only those that are named, as `ls` names them or in short."""
    done = filled.json("export", "jsonl", "all.jsonl", "notes")
    assert done["resources"] == 1
    assert {row["resource"] for row in rows(filled)[1:]} == {"notes.md"}
    assert "no document 'nots'" in filled("export", "jsonl", "x.jsonl", "nots", code=3).stderr
    assert not (filled.folder / "x.jsonl").exists()


def test_without_vectors(filled):
    """Texts and metadata alone."""
    assert filled.json("export", "jsonl", "all.jsonl", "--no-vectors")["vectors"] == 0
    assert not any("vector" in row for row in rows(filled))


def test_files_as_they_are(filled):
    """An edit that was not synced is taken along; its text has no vector yet, which is said."""
    path = filled.chunked / "notes.md" / "chunk1.md"
    path.write_text("---\nmine: 2\n---\nThe attic.\n")
    filled.write("file_index/chunked/notes.md/new.md", "New.\n")
    done = filled.json("export", "jsonl", "all.jsonl", code=1)
    assert done["left_out"] == [
        "2 of the vectors: their passages have none yet; 'filestore sync' embeds them"
    ]
    texts = [row.get("text") for row in rows(filled)]
    assert {"The attic.\n", "New.\n"} <= set(texts)


def test_what_is_excluded_is_named(filled):
    """Files that are not searched are no knowledge to be given away."""
    filled.write("file_index/chunked/notes.md/empty.md", "")
    filled.write("file_index/chunked/notes.md/torn.md", "---\na: [\n---\nText.\n")
    filled.write("file_index/chunked/notes.md/latin.md", b"caf\xe9\n")
    done = filled("export", "jsonl", "all.jsonl", code=1)
    for name in ("empty.md", "torn.md", "latin.md"):
        assert f"left out: chunked/notes.md/{name}: " in done.stderr
    assert filled.json("export", "jsonl", "all.jsonl", code=1)["chunks"] == 3


@pytest.mark.parametrize(
    "place", ["file_index/chunked/x.jsonl", "file_index/.sidecar/x", "file_index/.undo/x", "."]
)
def test_not_into_the_store(filled, place):
    """No export is taken for a file of the store."""
    before = filled.committed()
    filled("export", "jsonl", place, code=4)
    assert filled.committed() == before


def test_through_a_link_into_the_store(filled):
    """Nor where a link leads there."""
    (filled.folder / "link").symlink_to(filled.chunked)
    filled("export", "jsonl", "link/x.jsonl", code=4)
    assert not (filled.chunked / "x.jsonl").exists()


def test_nothing_to_export(workspace):
    """An empty store says so."""
    done = workspace("export", "jsonl", "all.jsonl", code=1)
    assert "0 passages" in done.stdout


def test_before_the_first_sync(filled):
    """Without a catalog the command that makes one is named."""
    import shutil

    shutil.rmtree(filled.sidecar)
    assert "filestore sync" in filled("export", "jsonl", "all.jsonl", code=3).stderr


def test_no_such_folder(filled):
    """The folder is not made."""
    assert "nowhere" in filled("export", "jsonl", "nowhere/all.jsonl", code=3).stderr


def test_the_same_store_gives_the_same_bytes(filled):
    """An export that is kept in git changes only where the store does."""
    filled("export", "jsonl", "one.jsonl")
    filled("export", "jsonl", "two.jsonl")
    assert (filled.folder / "one.jsonl").read_bytes() == (filled.folder / "two.jsonl").read_bytes()


def test_names_that_are_not_utf_8(workspace):
    """They are written as they are shown, and get another name where they come in."""
    import os

    folder = os.fsencode(workspace.chunked)
    os.mkdir(folder + b"/a\xff")
    with open(folder + b"/a\xff/b\xfe.md", "wb") as file:
        file.write(b"Text.\n")
    workspace.sync(code=None)
    workspace("export", "jsonl", "all.jsonl")
    assert rows(workspace)[1]["id"] == "a\\xff/b\\xfe.md"
    assert workspace.json("import", "jsonl", "all.jsonl")["renamed"] == 1


def test_a_large_resource_in_its_order(workspace):
    """More chunks than are held at once: all of them, in the order in which they are read."""
    text = "".join(f'{{"document": "a", "text": "Text {n}."}}\n' for n in range(4_500))
    workspace.write("some.jsonl", text)
    workspace("import", "jsonl", "some.jsonl", "--no-embed")
    done = workspace.json("export", "jsonl", "all.jsonl", code=1)
    assert (done["resources"], done["chunks"]) == (1, 4_500)
    assert [row["text"] for row in rows(workspace)[1:]] == [f"Text {n}." for n in range(4_500)]

"""What an import does to what is there: nothing in silence, and all of it can be undone."""

import json

import pytest

import filestore


def lines(workspace, *rows):
    """A file of JSON lines, as a store writes them."""
    head = {"format": "filestore-jsonl/1"}
    return workspace.write("some.jsonl", "".join(f"{json.dumps(row)}\n" for row in [head, *rows]))


def chunk(number, text, resource="a"):
    """A line for a chunk."""
    return {"resource": resource, "id": f"{resource}/chunk{number}.md", "text": text}


def statuses(done):
    """What became of each resource."""
    return {one["resource"]: one["status"] for one in done["resources"]}


@pytest.fixture
def edited(workspace):
    """A store into which two resources were imported, one of which a person edited."""
    lines(workspace, chunk(1, "One."), chunk(2, "Two."), chunk(1, "Other.", "b"))
    workspace("import", "jsonl", "some.jsonl")
    workspace.write("file_index/chunked/a/chunk1.md", "---\nmine: 1\n---\nOne, by hand.\n")
    return workspace


def test_what_differs_is_left_alone(edited):
    """The resource is named with its file, the rest is taken, and the exit code says so."""
    edited.write("file_index/chunked/b/chunk1.md", b"---\n# a comment\n---\nOther.")
    lines(edited, chunk(1, "One."), chunk(1, "Other.", "b"), chunk(1, "New.", "c"))
    before = edited.truth()
    done = edited.json("import", "jsonl", "some.jsonl", code=5)
    assert statuses(done) == {"a": "refused", "b": "unchanged", "c": "added"}
    assert done["resources"][0]["reason"] == "chunked/a/chunk1.md is there and differs"
    assert edited.truth().items() >= before.items()
    lines(edited, chunk(1, "One."))
    told = edited("import", "jsonl", "some.jsonl", code=4)
    assert "--replace" in told.stdout


def test_what_says_the_same_is_unchanged(workspace):
    """However its frontmatter is written."""
    same = {
        b"---\na: 1\nb: two\n---\nText.\n": True,
        b"---\n# a comment\nb: 'two'\na: 1\n---\nText.\n": True,
        b"---\r\na: 1\r\nb: two\r\n---\r\nText.\n": True,
        b"---\na: 1\nb: two\n---\nText.\n\n": False,
        b"---\na: 2\nb: two\n---\nText.\n": False,
        b"---\na: [\n---\nText.\n": False,
        b"Text.\n": False,
    }
    rows = []
    for number, data in enumerate(same):
        workspace.write(f"file_index/chunked/{number}/chunk1.md", data)
        rows.append(chunk(1, "Text.\n", str(number)) | {"metadata": {"a": 1, "b": "two"}})
    lines(workspace, *rows)
    done = workspace.json("import", "jsonl", "some.jsonl", code=5)
    found = [status == "unchanged" for status in statuses(done).values()]
    assert found == list(same.values())


def test_replacing_is_undone(edited):
    """A hand edit is kept, and comes back byte for byte."""
    edited.sync()
    before = edited.truth()
    edited.write("file_index/chunked/a/own.md", "A file of my own.\n")
    made = edited.write("file_index/chunked/a/chunk3.md", "---\norigin: sha256:00\n---\nMade.\n")
    edited.sync()
    lines(edited, chunk(1, "One."), chunk(2, "Two."))
    done = edited.json("import", "jsonl", "some.jsonl", "--replace")
    assert statuses(done) == {"a": "replaced"}
    assert done["files"] == 2
    assert edited.truth()["a/chunk1.md"] == b"One."
    assert not made.exists()
    assert edited.truth()["a/own.md"] == b"A file of my own.\n"
    edited.assert_settled()
    edited("undo")
    made.unlink()
    (edited.chunked / "a" / "own.md").unlink()
    assert edited.truth() == before


def test_a_plan_writes_nothing(edited):
    """It says what would be, in the same words."""
    lines(edited, chunk(1, "One."), chunk(1, "New.", "c"))
    before = edited.truth(), edited.in_catalog("SELECT count(*) FROM files")
    done = edited.json("import", "jsonl", "some.jsonl", "--plan", code=5)
    assert statuses(done) == {"a": "refused", "c": "added"}
    assert done["planned"] is True
    done = edited.json("import", "jsonl", "some.jsonl", "--plan", "--replace")
    assert statuses(done) == {"a": "replaced", "c": "added"}
    assert (edited.truth(), edited.in_catalog("SELECT count(*) FROM files")) == before
    assert done["undo"] is None


def test_a_name_that_is_in_use(workspace):
    """Chunks of a stranger are not mixed into a resource of another source."""
    workspace.write("notes.md", "# Notes\n\nOn lamps.\n")
    workspace("add", "notes.md")
    before = workspace.truth()
    lines(workspace, chunk(7, "Others.", "notes.md"))
    done = workspace.json("import", "jsonl", "some.jsonl", code=4)
    assert statuses(done) == {"notes.md": "refused"}
    assert workspace.truth() == before


def test_what_a_kill_left_is_completed(workspace):
    """Some files of a resource are there, as they came: the others are added without a word."""
    workspace.write("file_index/chunked/a/chunk1.md", "One.")
    lines(workspace, chunk(1, "One."), chunk(2, "Two."))
    assert statuses(workspace.json("import", "jsonl", "some.jsonl")) == {"a": "added"}


@pytest.mark.parametrize("kind", ["link", "file", "dangling"])
def test_what_stands_in_the_way(workspace, tmp_path, kind):
    """A link or a file in place of a resource's folder is neither followed nor replaced."""
    outside = tmp_path / "outside"
    outside.mkdir()
    place = workspace.chunked / "a"
    if kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(outside if kind == "link" else outside / "nowhere")
    lines(workspace, chunk(1, "One."), chunk(1, "Two.", "b"))
    done = workspace.json("import", "jsonl", "some.jsonl", "--replace", code=5)
    assert statuses(done) == {"a": "refused", "b": "added"}
    assert list(outside.iterdir()) == []


def test_a_link_in_place_of_a_file(workspace, tmp_path):
    """The resource is refused, and what the link leads to is untouched."""
    outside = workspace.write("outside.md", "Mine.")
    (workspace.chunked / "a").mkdir()
    (workspace.chunked / "a" / "chunk1.md").symlink_to(outside)
    lines(workspace, chunk(1, "One."))
    done = workspace.json("import", "jsonl", "some.jsonl", "--replace", code=4)
    assert statuses(done) == {"a": "refused"}
    assert outside.read_text() == "Mine."


def test_not_while_git_is_at_work(edited):
    """No chunk file is written in the middle of a merge."""
    (edited.folder / ".git" / "MERGE_HEAD").write_text("0" * 40 + "\n")
    lines(edited, chunk(1, "New.", "c"))
    assert "git merge" in edited.json("import", "jsonl", "some.jsonl", code=4)["error"]
    assert not (edited.chunked / "c").exists()


def test_without_embedding(workspace):
    """Texts without a vector wait for a sync, which is said by `status`."""
    lines(workspace, chunk(1, "One."))
    done = workspace.json("import", "jsonl", "some.jsonl", "--no-embed")
    assert (done["files"], done["embedded"]) == (1, 0)
    assert "vector-pending" in workspace.drift()
    assert workspace.sync()["embedded"] == 1


def test_without_the_model(workspace):
    """Vectors of a model that is not here are left, or taken unchecked, and serve once it is."""
    lines(workspace, chunk(1, "One."))
    workspace("import", "jsonl", "some.jsonl")
    workspace("export", "jsonl", "all.jsonl")
    settings = workspace.store / "filestore.toml"
    whole = settings.read_text()
    workspace("undo")
    for path in workspace.sidecar.glob("embeddings.sqlite*"):
        path.unlink()
    settings.write_text(whole.replace('"builtin"', '"onnx:nowhere"'))
    done = workspace.json("import", "jsonl", "all.jsonl", code=None)
    assert done["vectors"] == 0
    assert "--unchecked" in done["no_vectors"]
    done = workspace.json("import", "jsonl", "all.jsonl", "--unchecked", code=None)
    assert done["vectors"] == 1
    settings.write_text(whole)
    report = workspace.json("sync", code=None)
    assert (report["embedded"], report["remaining"]) == (0, [])


def test_the_library(workspace):
    """The same by hand, with progress."""
    lines(workspace, chunk(1, "One."), chunk(1, "Two.", "b"))
    seen = []
    with filestore.open(workspace.store) as store:
        done = store.import_from("jsonl", workspace.folder / "some.jsonl", on_progress=seen.append)
        assert [one.resource for one in done.of_status("added")] == ["a", "b"]
        out = store.export("jsonl", workspace.folder / "b.jsonl", "b", vectors=False)
        assert (out.resources, out.chunks, out.vectors) == (1, 1, 0)
        assert out.to_dict()["model"] == ""
        store.undo(done.undo)
    assert workspace.truth() == {}
    assert {one.stage for one in seen} >= {"importing", "indexing"}


def test_a_store_in_place_is_not_written(tmp_path, workspace):
    """It is exported, section by section, and its documents are never written."""
    folder = workspace.folder / "vault"
    workspace.write("vault/lease.md", "---\ntags: [rent]\n---\n# Lease\n\nRenewal in writing.\n")
    workspace.write("vault/sub/oil.md", "# Oil\n\nLamps need oil.\n\n## More\n\nAnd wicks.\n")
    workspace("init", "--in-place", folder)
    workspace("sync", cwd=folder)
    done = workspace.json("export", "jsonl", workspace.folder / "all.jsonl", cwd=folder)
    assert done["left_out"] == []
    assert (done["resources"], done["vectors"]) == (2, done["chunks"])
    refused = workspace("import", "jsonl", workspace.folder / "all.jsonl", cwd=folder, code=3)
    assert "filestore init" in refused.stderr
    taken = workspace.json("--store", workspace.store, "import", "jsonl", "all.jsonl")
    assert taken["embedded"] == 0
    assert statuses(taken) == {"lease.md": "added", "sub-oil.md": "added"}
    shown = workspace.json("--store", workspace.store, "show", "lease.md/chunk1.md")
    assert "Renewal" in shown["body"]
    assert shown["frontmatter"]["lines"][0] >= 1
    found = workspace.json(
        "--store", workspace.store, "search", "renewal", "--where", "tags=rent", "--mode", "keyword"
    )
    assert [one["path"] for one in found["hits"]] == ["chunked/lease.md/chunk1.md"]

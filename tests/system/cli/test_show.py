"""`filestore show`: one chunk file as it is on disk, and what the store knows of it."""

from typing import Any

import pytest

from filestore.core.hashing import revision_of


def add_note(workspace: Any) -> str:
    workspace.write("note.md", "---\nauthor: Ada\n---\n# Note\n\nA note of words.\n")
    workspace("add", "note.md")
    (path,) = workspace.chunks("note.md")
    return str(path)


def test_what_is_shown(either: Any) -> None:
    """The path, the frontmatter, the exact body, and the record are there."""
    path = add_note(either)
    shown = either.json("show", f"chunked/{path}")
    assert shown["path"] == f"chunked/{path}"
    assert shown["body"] == "# Note\n\nA note of words.\n"
    assert shown["frontmatter"]["headings"] == ["Note"]
    record = shown["record"]
    assert record["indexed"] is True
    assert record["freshness"] == "fresh"
    assert record["resource"] == "note.md"
    assert record["source"] == "../note.md"
    assert record["document"]["author"] == "Ada"
    assert record["hand_edited"] is False
    assert len(record["vector_ids"]) == 1


def test_in_words(workspace: Any) -> None:
    """A person reads the text; behind it, where it is wanted, the record."""
    path = add_note(workspace)
    assert workspace("show", path).stdout == "# Note\n\nA note of words.\n"
    text = workspace("show", path, "--record").stdout
    assert text.startswith(f"# Note\n\nA note of words.\n\nchunked/{path}\n")
    assert "resource: note.md" in text
    assert f"revision: {workspace.json('show', path)['revision']}" in text


def test_ways_to_name_a_file(either: Any) -> None:
    """A path counts from the store root, from chunked/, from here, or is absolute."""
    path = add_note(either)
    for named in (f"chunked/{path}", path, either.chunked / path, f"file_index/chunked/{path}"):
        assert either.json("show", named)["path"] == f"chunked/{path}"


def test_an_edited_file(either: Any) -> None:
    """What is shown is the file as it is now, said to be edited since it was indexed."""
    path = add_note(either)
    target = either.chunked / path
    target.write_bytes(target.read_bytes() + b"Mine.\n")
    shown = either.json("show", path, "--no-update")
    assert shown["body"].endswith("Mine.\n")
    assert shown["revision"] == revision_of(shown["path"], target.read_bytes())
    assert shown["record"]["freshness"] == "edited"
    assert shown["record"]["hand_edited"] is True


def test_a_file_that_is_not_indexed(either: Any) -> None:
    """A file the catalog does not know is shown, and said not to be indexed."""
    add_note(either)
    (either.chunked / "new.md").write_text("---\nmood: good\n---\nNew words.\n")
    shown = either.json("show", "new.md", "--no-update")
    assert shown["frontmatter"] == {"mood": "good"}
    assert shown["body"] == "New words.\n"
    assert shown["record"]["indexed"] is False


def test_no_way_out_of_the_tree(either: Any) -> None:
    """Nothing outside chunked/ is shown, whatever the path or the link says."""
    add_note(either)
    either.write("secret.md", "Secret words.\n")
    (either.chunked / "link.md").symlink_to(either.folder / "secret.md")
    for named in ("../secret.md", "chunked/../../secret.md", "/etc/passwd", "link.md", "no.md"):
        done = either("show", named, code=3)
        assert "Secret" not in done.stdout + done.stderr
        assert "filestore ls" in done.stderr


def test_a_file_that_cannot_be_parsed(either: Any) -> None:
    """A broken file ends with 3 and says what is wrong with it, and where."""
    path = add_note(either)
    (either.chunked / path).write_bytes(b"---\nheadings: [open\n---\nWords.\n")
    done = either("show", path, code=3)
    assert "line" in done.stderr


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_each_heading_that_a_hit_names_is_shown(new_workspace: Any, layout: str) -> None:
    """Of an original, also where a chunk has several; and a resource by the name `ls` prints."""
    workspace = new_workspace(layout=layout)
    workspace.write(
        "docs/rename.md", "# Rename\n\n## All\n\n### Note\n\nMove it.\n\n### Tag\n\nNo.\n"
    )
    workspace("add", "docs/rename.md")
    for hit in workspace.json("search", "move it", "-k", "9")["hits"]:
        for heading in hit["section"]:
            shown = workspace("show", f"{hit['document']}#{heading}", cwd=workspace.store).stdout
            assert shown.startswith("#")
    assert workspace("show", "docs/rename.md#Tag").stdout == "### Tag\n\nNo.\n"
    assert "no heading 'Nope'" in workspace("show", "docs/rename.md#Nope", code=3).stderr
    (resource,) = workspace.json("ls")["items"]
    name = resource["resource"]
    whole = workspace("show", "docs/rename.md").stdout
    assert workspace("show", name, cwd=workspace.store).stdout == whole
    assert workspace("show", f"{name}:7-7", cwd=workspace.store).stdout == "Move it.\n"
    workspace("add", "docs", code=None)
    many = workspace("show", "docs", cwd=workspace.store, code=3).stderr
    assert "is a folder" in many or "no chunk file" in many

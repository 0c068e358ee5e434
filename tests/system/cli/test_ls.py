"""`filestore ls`: resources, and the chunks of one in reading order."""

from typing import Any


def test_nothing_yet(workspace: Any) -> None:
    """An empty store lists nothing, and says what to do."""
    assert workspace.json("ls")["items"] == []
    assert "filestore add" in workspace("ls").stdout


def test_resources(either: Any, manual: Any) -> None:
    """Every resource is listed with its source and number of chunks, by name."""
    either.write("b.md", manual(["preface", "pears"]))
    either.write("a/note.txt", "A note.\n")
    either("add", "b.md", "a/note.txt", "--json")
    assert either.json("ls")["items"] == [
        {"resource": "b.md", "source": "../b.md", "chunks": 2},
        {"resource": "note.txt", "source": "../a/note.txt", "chunks": 1},
    ]
    assert either("ls").stdout == (
        "b.md  2 chunks  from ../b.md\nnote.txt  1 chunk  from ../a/note.txt\n"
    )


def test_chunks_in_reading_order(workspace: Any, manual: Any) -> None:
    """The twelfth chunk comes after the second, and an inserted one in its place."""
    topics = [f"topic{number}" for number in range(1, 13)]
    workspace.write("long.md", manual(topics))
    workspace("add", "long.md")
    assert workspace.chunks("long.md") == [f"long.md/chunk{number}.md" for number in range(1, 13)]
    workspace.write("long.md", manual([*topics[:2], "inserted", *topics[2:]]))
    workspace("add", "long.md")
    listed = workspace.chunks("long.md")
    assert listed[2].startswith("long.md/chunk2-")
    assert [path for path in listed if "-" not in path] == [
        f"long.md/chunk{number}.md" for number in range(1, 13)
    ]


def test_marks(workspace: Any, manual: Any) -> None:
    """A chunk edited by hand and one that is withheld are marked as such."""
    workspace.write("note.md", manual(["preface", "pears", "plums"]))
    workspace("add", "note.md")
    first, second = (workspace.chunked / f"note.md/chunk{number}.md" for number in (1, 2))
    first.write_bytes(first.read_bytes() + b"More words.\n")
    second.write_bytes(b"---\nkind: [not, closed\n---\nWords.\n")
    workspace.sync(code=1)
    items = workspace.json("ls", "note.md")["items"]
    marks = [(item["path"][-9:-3], item["edited"], item["withheld"]) for item in items]
    assert marks == [
        ("chunk1", True, None),
        ("chunk2", False, "malformed-frontmatter"),
        ("chunk3", False, None),
    ]
    assert workspace("ls", "note.md").stdout.splitlines() == [
        "chunked/note.md/chunk1.md  [edited]",
        "chunked/note.md/chunk2.md  [malformed-frontmatter]",
        "chunked/note.md/chunk3.md",
    ]


def test_names_that_fit(either: Any) -> None:
    """A resource answers to its name, to its name without suffix, and to its source."""
    either.write("notes/plan.md", "The plan.\n")
    either("add", "notes/plan.md")
    for name in ("plan.md", "plan", "../notes/plan.md", "notes/plan.md"):
        assert len(either.json("ls", name)["items"]) == 1


def test_ambiguous_and_unknown_names(either: Any) -> None:
    """A name that fits several names them all; one that fits none says where to look."""
    either.write("plan.md", "The plan.\n")
    either.write("plan.txt", "The other plan.\n")
    either("add", "plan.md", "plan.txt")
    done = either("ls", "plan", code=3)
    assert "plan.md, plan.txt" in done.stderr
    done = either("ls", "no plan", code=3)
    assert "filestore ls" in done.stderr


def test_without_a_catalog(workspace: Any) -> None:
    """Before the first sync of a clone the answer is 3, naming sync."""
    workspace.write("note.md", "A note.\n")
    workspace("add", "note.md")
    (workspace.sidecar / "catalog.sqlite").unlink()
    for words in (["ls"], ["ls", "note.md"], ["show", "note.md/chunk1.md"], ["reconstruct", "x"]):
        assert "filestore sync" in workspace(*words, code=3).stderr


def test_a_misspelt_name_is_told_the_nearest(either: Any) -> None:
    """Whoever mistypes a resource is told which one may be meant; whoever is far off is not."""
    either.write("glossary.md", "Words.\n")
    either("add", "glossary.md")
    for command in ("ls", "rm", "reconstruct"):
        assert "did you mean 'glossary.md'?" in either(command, "glosary.md", code=3).stderr
    assert "did you mean" not in either("ls", "handbook", code=3).stderr

"""JSON lines from anybody: names that climb, lines that are torn, vectors that lie."""

import base64
import json

import numpy as np
import pytest

from filestore.exchange.incoming import folder_name
from tests.vectors import unit_rows

MODEL = "builtin/1:384"


def lines(workspace, *rows, name="some.jsonl"):
    """Write a file of JSON lines; bytes go in as they are."""
    data = b"".join(
        row + b"\n" if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows
    )
    return workspace.write(name, data)


def head(model=MODEL, dimension=384):
    """The first line of a file that a store wrote."""
    return {"format": "filestore-jsonl/1", "model": model, "dimension": dimension}


def taken(workspace, *rows, code=0, words=()):
    """Import some rows; what the command says."""
    return workspace.json("import", "jsonl", lines(workspace, *rows), *words, code=code)


def vector_of(workspace, text):
    """The vector that the store's model gives."""
    import filestore

    with filestore.open(workspace.store) as store:
        return store.model.embedder.embed_documents([text])[0]


CLIMBING = [
    "../../outside.md",
    "/etc/cron.d/x",
    "a/../../../outside.md",
    "..",
    ".",
    "",
    "a\0b.md",
    ".git/hooks/post-merge",
    ".sidecar/catalog.sqlite",
    "../.undo/x.md",
    "con.md",
    "COM1",
    "x" * 5000 + ".md",
    "a/" * 400 + "b.md",
    "chunk1.md/../../x.md",
    "GIT~1/config.md",
    "\u202egnp.md",
    "a\\..\\..\\b.md",
    "C:\\x.md",
    "~/x.md",
    "-rf.md",
    "meta.json",
    "a/meta.json",
    " .md",
    "a\n\x1b]0;x\x07.md",
]


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_no_name_leaves_the_tree(new_workspace, layout):
    """Whatever resources, paths and documents are called, every file is one below `chunked/`."""
    workspace = new_workspace(layout=layout)
    before = {path for path in workspace.folder.rglob("*") if ".sidecar" not in path.parts}
    rows = [head(model="", dimension=0)]
    for number, name in enumerate(CLIMBING):
        rows.append({"resource": name, "id": name, "text": f"Text {number}."})
        rows.append(
            {"resource": f"r{number}", "id": f"r{number}/{name}", "text": f"More {number}."}
        )
        rows.append({"document": name, "id": name, "text": f"Last {number}."})
    done = taken(workspace, *rows)
    assert done["left_out"] == []
    assert done["files"] == len(rows) - 1
    found = {path for path in workspace.folder.rglob("*") if ".sidecar" not in path.parts}
    ours = (workspace.chunked, workspace.store / ".undo", workspace.folder / "some.jsonl")
    assert all(any(path.is_relative_to(one) for one in ours) for path in found - before)
    assert len(workspace.truth()) == len(rows) - 1
    workspace.assert_settled()
    workspace("undo")
    assert workspace.truth() == {}


@pytest.mark.parametrize("name", CLIMBING)
def test_a_folder_name_stays_as_it_is_once_made(name):
    """What is made of a name is not changed any more."""
    assert folder_name(folder_name(name)) == folder_name(name)


def test_names_that_differ_only_by_case(workspace):
    """Two resources, or two chunks, do not fall together where case is ignored."""
    done = taken(
        workspace,
        head(model="", dimension=0),
        {"resource": "Notes", "id": "Notes/chunk1.md", "text": "One."},
        {"resource": "notes", "id": "notes/chunk1.md", "text": "Two."},
        {"resource": "Notes", "id": "Notes/CHUNK1.md", "text": "Three."},
        {"resource": "Notes", "id": "Notes/chunk1.md", "text": "Four."},
    )
    paths = [path.casefold() for path in workspace.truth()]
    assert len(set(paths)) == len(paths) == done["files"] == 4
    workspace.assert_settled()


def test_a_resource_in_pieces(workspace):
    """The lines of a document need not stand together."""
    taken(
        workspace,
        {"text": "A 1.", "document": "a"},
        {"text": "B 1.", "document": "b"},
        {"text": "A 2.", "document": "a"},
        {"text": "Nobody's."},
    )
    texts = [workspace.json("show", path)["body"] for path in workspace.chunks("a")]
    assert texts == ["A 1.", "A 2."]
    assert workspace.json("show", "some/chunk1.md")["body"] == "Nobody's."
    again = workspace.json("import", "jsonl", "some.jsonl")
    assert {one["status"] for one in again["resources"]} == {"unchanged"}


def test_torn_lines_are_named(workspace):
    """Each with its number; the rest is taken."""
    done = taken(
        workspace,
        {"text": "One.", "id": "x1", "source": "a.md", "url": "https://a"},
        b'{"text": "torn',
        b"\xff\xfe",
        b"[1, 2]",
        b'"only a text"',
        {"text": 7},
        {"no": "text"},
        {"text": "   \n"},
        {"text": "Two.", "metadata": ["no", "object"], "id": {"no": "id"}, "document": 3},
        b'{"text": "\\ud800"}',
        b"",
        {"text": "Three.", "metadata": {"source": "a.md", "n": 2**63 - 1}},
        code=5,
    )
    told = [one.split(":")[0] for one in done["left_out"]]
    assert [one for one in told if one.startswith("line")] == [
        *(f"line {number}" for number in (2, 3, 4, 5, 6, 7)),
        *["line 9"] * 3,
        "line 10",
    ]
    one = workspace.json("show", "a.md/chunk1.md")["frontmatter"]
    assert (one["id"], one["url"], one["source"]) == ("x1", "https://a", "a.md")
    assert workspace.json("show", "a.md/chunk2.md")["frontmatter"]["n"] == 2**63 - 1
    assert workspace.json("show", "some/chunk2.md")["body"] == "Two."


def test_metadata_that_no_file_can_hold(workspace):
    """What is ours has our types; the rest is limited; each key that goes is named."""
    done = taken(
        workspace,
        {
            "text": "On lamps.",
            "metadata": {
                "kind": "questions",
                "headings": "not a list",
                "overlap": -1,
                "order": 7,
                "level": "x",
                "children": [1],
                "huge": 2**64,
                "deep": [[[[[[[[[[1]]]]]]]]]],
                "long": "x" * 70_000,
                "fine": "yes",
            },
        },
        code=5,
    )
    shown = workspace.json("show", "some/chunk1.md")
    assert shown["body"] == "On lamps."
    assert shown["frontmatter"]["fine"] == "yes"
    gone = {"kind", "headings", "overlap", "order", "level", "children", "deep", "long"}
    assert not gone & shown["frontmatter"].keys()
    for key in gone:
        assert any(f"'{key}'" in one for one in done["left_out"]), key
    workspace.assert_settled()


def test_a_text_about_git_is_no_conflict(workspace):
    """What a stranger wrote about merges is searched like any other text."""
    text = "Markers:\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\nEnd.\n"
    assert taken(workspace, {"text": text})["left_out"] == []
    assert workspace.json("show", "some/chunk1.md")["body"] == text
    workspace.assert_settled()


BAD = {
    "nan": base64.b64encode(np.full(384, np.nan, "<f4").tobytes()).decode(),
    "infinite": [1e39] + [0.0] * 383,
    "short": [1.0] * 12,
    "long": [1.0] + [0.0] * 384,
    "not of length 1": [2.0] + [0.0] * 383,
    "zero": [0.0] * 384,
    "words": ["a"] * 384,
    "nested": [[1.0] * 384],
    "booleans": [True] * 384,
    "torn base64": "AAA",
    "other base64": base64.b64encode(b"abc").decode(),
    "no ascii": "ä",
    "number": 5,
    "object": {"a": 1},
}


@pytest.mark.parametrize("bad", BAD)
def test_a_vector_that_is_none_is_named(workspace, bad):
    """Its text is embedded, the others are taken."""
    good = vector_of(workspace, "On lamps.")
    done = taken(
        workspace,
        head(),
        {"resource": "a", "text": "On lamps.", "vector": good.tolist()},
        json.dumps({"resource": "a", "text": "On sails.", "vector": BAD[bad]}).encode(),
        code=5,
    )
    assert (done["vectors"], done["embedded"]) == (1, 1)
    assert len(done["left_out"]) == 1
    workspace.assert_settled()


def test_vectors_as_lists_and_as_base64(workspace):
    """Both are read, under either name."""
    texts = ["On lamps.", "On sails.", "On ropes."]
    vectors = [vector_of(workspace, text) for text in texts]
    compact = [base64.b64encode(one.astype("<f4").tobytes()).decode() for one in vectors]
    done = taken(
        workspace,
        head(),
        {"resource": "a", "text": texts[0], "vector": compact[0]},
        {"resource": "a", "text": texts[1], "embedding": compact[1]},
        {"resource": "a", "text": texts[2], "embedding": vectors[2].tolist()},
    )
    assert (done["vectors"], done["compared"], done["embedded"]) == (3, 3, 0)
    workspace.assert_settled()


def test_vectors_of_other_texts_are_not_taken(workspace):
    """A file that says to be of the store's model, and is not: its texts are embedded here."""
    rows = [
        {"resource": "a", "text": f"Text {n}.", "vector": row.tolist()}
        for n, row in enumerate(unit_rows(40, dimension=384))
    ]
    done = taken(workspace, head(), *rows)
    assert (done["vectors"], done["embedded"], done["compared"]) == (0, 40, 16)
    assert "builtin gives another vector for chunked/a/chunk" in done["no_vectors"]
    assert workspace("verify", "--level", "deep").code == 0


def test_vectors_of_another_model_are_not_taken(workspace):
    """Even with --unchecked: two models are never mixed."""
    rows = [{"text": "Text.", "vector": [1.0, 0.0]}]
    for words in (("--plan",), (), ("--unchecked",)):
        done = taken(workspace, head("other/1:2", 2), *rows, words=("--replace", *words))
        assert done["vectors"] == 0
        assert "other/1:2" in done["no_vectors"]
    workspace.assert_settled()


def test_a_text_with_anothers_vector(workspace):
    """Where its text is changed after the vector was made, the sample shows it."""
    vector = vector_of(workspace, "On lamps and their oil.")
    done = taken(workspace, head(), {"resource": "a", "text": "Wines.", "vector": vector.tolist()})
    assert (done["vectors"], done["embedded"]) == (0, 1)
    assert done["no_vectors"]


def test_records_that_are_none(workspace):
    """A record that cannot be used is named, and the chunks are taken."""
    done = taken(
        workspace,
        head(model="", dimension=0),
        {"resource": "a", "record": {"format": 1, "source": 5}},
        {"resource": "a", "id": "a/chunk1.md", "text": "One."},
        {"resource": "b", "record": [1]},
        code=5,
    )
    assert len(done["left_out"]) == 2
    assert list(workspace.truth()) == ["a/chunk1.md"]
    workspace.assert_settled()


def test_a_newer_format_is_refused(workspace):
    """Nothing is guessed."""
    done = taken(workspace, {"format": "filestore-jsonl/9"}, {"text": "One."}, code=3)
    assert "upgrade" in done["remedy"]
    assert workspace.truth() == {}


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"\0" * 100, b"{}\n"])
def test_nothing_in_it(workspace, content):
    """No error, nothing taken, and the exit code says so."""
    workspace.write("some.jsonl", content)
    assert workspace.json("import", "jsonl", "some.jsonl", code=1)["files"] == 0


def test_what_is_no_file(workspace):
    """A folder, a file that is not there: one line that says so."""
    for name in ("nowhere.jsonl", "file_index"):
        done = workspace("import", "jsonl", name, code=3)
        assert name in done.stderr
        assert "filestore:" in done.stderr or "remedy" in done.stderr or done.stderr


def test_nothing_goes_raw_to_a_terminal(workspace):
    """Names and reasons are shown without what moves a cursor."""
    lines(
        workspace,
        head(model="", dimension=0),
        {"resource": "a\x1b[31m", "text": "One."},
        b"\x1b[2J",
    )
    done = workspace("import", "jsonl", "some.jsonl", code=5)
    assert "\x1b" not in done.stdout + done.stderr


def test_vectors_keep_their_bits(workspace):
    """What is taken is what came, not what the model gives now."""
    from filestore.core.hashing import embedding_key
    from filestore.embed.cache import EmbeddingCache

    vector = vector_of(workspace, "On lamps.")
    near = (vector + unit_rows(1, dimension=384)[0] * 1e-4).astype(np.float32)
    near /= np.linalg.norm(near)
    taken(workspace, head(), {"resource": "a", "text": "On lamps.", "vector": near.tolist()})
    with EmbeddingCache.open(str(workspace.sidecar / "embeddings.sqlite"), read_only=True) as it:
        found, _ = it.get(MODEL, [embedding_key("On lamps.")])
    assert found[0].tobytes() == near.tobytes()


def test_vectors_without_the_name_of_a_model(workspace):
    """They could be of any: the texts are embedded, and that is said."""
    done = taken(workspace, {"text": "the zebra sleeps", "vector": [0.1, 0.2]})
    assert done["no_vectors"] == "nothing says which model they come from"
    assert (done["vectors"], done["embedded"]) == (0, 1)

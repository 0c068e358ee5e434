"""Store, form, new store: the same texts, metadata, records, order and vectors."""

import itertools
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

import filestore
from filestore.chunks.frontmatter import parse
from filestore.embed.cache import EmbeddingCache
from filestore.exchange.base import READ, Collection
from filestore.exchange.rows import JsonLines
from tests.contract.test_forms import collections
from tests.system.conftest import files_below, prose

PACKAGE = {"parquet": "pyarrow"}


@pytest.fixture(params=READ)
def form(request):
    """Each form by its name; one whose package is missing is skipped."""
    if request.param in PACKAGE:
        pytest.importorskip(PACKAGE[request.param])
    return request.param


@pytest.fixture
def filled(layout, new_workspace, manual):
    """A store with a folder of two documents, a file, a person's own edits and own file."""
    made = new_workspace(layout=layout)
    made.write("handbook/one.md", manual(["lamps", "sails", "ropes"]))
    made.write("handbook/two.md", "---\ntags: [a, b]\n---\n# Two\n\nOn winches.\n")
    made.write("notes.md", "# Notes\n\nA | pipe.\n\n```\n## no heading\n```\n")
    made("add", "handbook", "notes.md")
    path = made.chunked / made.chunks("notes.md")[0]
    text = path.read_text()
    head = "---\nmine: [1, 2]\ndeep: {a: {b: null}}\nquestions: [Which pipe?, What?]\n"
    text = text.replace("---\n", head, 1) if text.startswith("---") else f"{head}---\n{text}"
    path.write_text(text + "By hand.\n")
    if layout == "tree":
        made.write(
            "file_index/chunked/own.md", f"---\r\nby: me\r\n---\r\n{prose('hands')}\r\nEnd\r"
        )
    made.sync()
    return made


def kept(workspace):
    """What a store holds, by path: frontmatter and body of chunk files, values of records."""
    return {path: said(data) for path, data in workspace.truth().items()}


def vectors(workspace):
    """Every vector of a store by its key, canaries included."""
    with EmbeddingCache.open(str(workspace.sidecar / "embeddings.sqlite"), read_only=True) as it:
        return {name: dict(it.rows(name)) for name in it.fingerprints()}


def test_all_comes_back(form, layout, filled, new_workspace):
    """Nothing is embedded, and what is searched for is found as it was."""
    target = filled.folder / f"all.{form}"
    done = filled.json("export", form, target)
    assert done["left_out"] == []
    other = new_workspace("other", layout=layout)
    taken = other.json("import", form, target)
    assert taken["left_out"] == []
    assert (taken["embedded"], taken["vectors"]) == (0, done["vectors"])
    assert taken["compared"] > 0
    assert kept(other) == kept(filled)
    for model, its in vectors(other).items():
        assert its.items() <= vectors(filled)[model].items()
    for resource in ("handbook", "notes.md"):
        assert other.chunks(resource) == filled.chunks(resource)
    for query, mode in itertools.product(("lamps", "winches pipe"), ("vector", "keyword")):
        found = [one.json("search", query, "--mode", mode)["hits"] for one in (filled, other)]
        assert [hit["path"] for hit in found[0]] == [hit["path"] for hit in found[1]]
    later = other.sync(code=1)
    assert later["embedded"] == 0
    # Its originals stay where they were.
    assert {one["code"] for one in later["remaining"]} == {"source-missing"}
    again = other.json("import", form, target)
    assert [one["status"] for one in again["resources"]] == ["unchanged"] * len(again["resources"])
    assert again["undo"] is None
    other("undo")
    assert other.truth() == {}


def test_the_other_layout(form, layout, filled, new_workspace):
    """From a tree into one folder, and back: texts, order, metadata and vectors stay."""
    filled("export", form, filled.folder / f"all.{form}", "handbook", "notes.md")
    other = new_workspace("other", layout="tree" if layout == "flat" else "flat")
    taken = other.json("import", form, filled.folder / f"all.{form}")
    assert taken["left_out"] == []
    assert taken["embedded"] == 0
    for resource in ("handbook", "notes.md"):
        texts = [
            [one.json("show", path)["body"] for path in one.chunks(resource)]
            for one in (filled, other)
        ]
        assert texts[0] == texts[1]
    assert "mine" in other.json("show", other.chunks("notes.md")[0])["frontmatter"]


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(resources=collections())
def test_any_store_comes_back(form, tmp_path, resources):
    """Whatever texts and metadata a store has, another one has the same of it."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    plain = [
        replace(one, chunks=tuple(replace(chunk, vectors={}) for chunk in one.chunks))
        for one in resources
    ]
    made = []
    for name in ("one", "other"):
        with filestore.create(folder / name, embedder="builtin") as store:
            if made:
                done = store.import_from(form, folder / f"all.{form}")
                assert (done.left_out, done.embedded, done.renamed) == ((), 0, 0)
            else:
                JsonLines().write(str(folder / "all.jsonl"), Collection(resources=plain))
                assert store.import_from("jsonl", folder / "all.jsonl").left_out == ()
                assert store.export(form, folder / f"all.{form}").left_out == ()
        made.append(files_below(folder / name / "chunked"))
    assert {path: said(data) for path, data in made[0].items()} == {
        path: said(data) for path, data in made[1].items()
    }


def said(data):
    """What a file says: a record's values, or frontmatter and body."""
    try:
        return json.loads(data)
    except ValueError:
        return parse(data)

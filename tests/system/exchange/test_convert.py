"""`.ragmd` into FAISS + JSON and back: the vectors stay bit for bit, and no store is needed."""

import json

import faiss
import numpy as np
import pytest

from filestore.core.errors import UsageError
from filestore.exchange.base import (
    Chunk,
    Collection,
    FormDamaged,
    Resource,
    SourceMissingError,
    TargetRefused,
)
from filestore.exchange.ragmd import RagMd, convert
from tests.ragmd_files import INDEXES, NOW, ROWS, Foreign


@pytest.fixture
def ours(tmp_path):
    """A file that a store wrote."""
    chunks = (
        Chunk(
            path="lease/chunk1.md",
            text="First.\n",
            frontmatter={"headings": ["The | lease"], "questions": ["Why?"]},
            vectors={0: ROWS[0], 1: ROWS[1]},
        ),
        Chunk(path="lease/chunk2.md", text="", vectors={0: ROWS[2]}),
        Chunk(path="lease/chunk3.md", text="Without a vector.\n"),
    )
    record = {"documents": [{"source": "docs/lease.md", "metadata": {"title": "The lease"}}]}
    resources = [Resource(name="lease", chunks=chunks, record=record)]
    path = tmp_path / "kb.ragmd"
    RagMd(lambda: NOW).write(
        str(path), Collection(resources=resources, model="builtin/1:6", dimension=6)
    )
    return path


@pytest.mark.parametrize("way", [["index"], ["vectors-x.faiss"], ["index", "vectors-x.faiss"]])
def test_there_and_back_gives_the_same_file(way, ours, tmp_path):
    """By either variant, and from one to the other."""
    source = ours
    for name in way:
        convert(str(source), str(tmp_path / name))
        source = tmp_path / name
    done = convert(str(source), str(tmp_path / "again.ragmd"))
    assert (tmp_path / "again.ragmd").read_bytes() == ours.read_bytes()
    assert (done.documents, done.vectors, done.model, done.notes) == (1, 3, "builtin/1:6", ())


@pytest.mark.parametrize("name", ["index", "vectors-x.faiss"])
def test_what_another_program_wrote_keeps_its_words(name, tmp_path):
    """Ids, keys, offsets, metadata and texts, of a file without anything of ours."""
    foreign = Foreign()
    (tmp_path / "kb.md").write_bytes(foreign.data())
    convert(str(tmp_path / "kb.md"), str(tmp_path / name))
    convert(str(tmp_path / name), str(tmp_path / "again.ragmd"))
    blocks = (tmp_path / "again.ragmd").read_text().split("```json\n")
    assert json.loads(blocks[1].split("\n```")[0]) == foreign.chunks
    assert json.loads(blocks[2].split("\n```")[0]) == foreign.documents
    assert [chunk.vectors[0].tobytes() for one in RagMd().read(str(tmp_path / "again.ragmd"))
            for chunk in one.chunks] == [row.tobytes() for row in ROWS]  # fmt: skip


def test_an_index_that_others_load(ours, tmp_path):
    """What was written from a file of ours is what FAISS itself reads, of the same metric."""
    convert(str(ours), str(tmp_path / "index"))
    index = faiss.read_index(str(tmp_path / "index" / "index.faiss"))
    assert type(index) is faiss.IndexFlatIP
    assert np.array_equal(index.reconstruct_n(0, 3), ROWS[:3])
    corpus = json.loads((tmp_path / "index" / "corpus.json").read_text())
    assert corpus == {"documents": ["First.\n", "First.\n", ""], "count": 3}


def test_another_class_is_rebuilt_and_named(tmp_path):
    """From its vectors, and so that each is compared."""
    foreign = Foreign().changed(index=INDEXES["IVF2,Flat"])
    foreign.front["index_type"] = "IndexIVFFlat"
    (tmp_path / "kb.ragmd").write_bytes(foreign.data())
    done = convert(str(tmp_path / "kb.ragmd"), str(tmp_path / "index"))
    assert done.notes == (
        "the IndexIVFFlat was written as IndexFlatL2: the same vectors, each compared with the"
        " query",
    )
    index = faiss.read_index(str(tmp_path / "index" / "index.faiss"))
    assert np.array_equal(index.reconstruct_n(0, 4), ROWS)


def test_texts_that_are_not_there_are_named(tmp_path):
    """Their rows stay; a folder has no word for a text that nobody has."""
    foreign = Foreign()
    del foreign.documents["a"]["full_text"]
    (tmp_path / "kb.ragmd").write_bytes(foreign.data())
    done = convert(str(tmp_path / "kb.ragmd"), str(tmp_path / "index"))
    assert "1 of 2 documents have no full_text" in done.notes[0]
    convert(str(tmp_path / "index"), str(tmp_path / "again.ragmd"))
    assert "full_text" not in RagMd().read(str(tmp_path / "again.ragmd")).left_out


def test_what_disagrees_is_not_carried_on(ours, tmp_path):
    """Nothing is written of a file that is refused."""
    ours.write_text(ours.read_text().replace("vector_count: 3", "vector_count: 4"))
    with pytest.raises(FormDamaged, match=r"kb\.ragmd: vector_count is 4, there are 3"):
        convert(str(ours), str(tmp_path / "index"))
    assert not (tmp_path / "index").exists()


def test_what_is_meant_has_to_be_clear(ours, tmp_path):
    """With what to name."""
    (tmp_path / "note.md").write_text("A note.\n")
    (tmp_path / "empty").mkdir()
    cases = (
        ("kb.ragmd", "other.ragmd", "kb.ragmd is a .ragmd file, and"),
        ("kb.ragmd", "index.faiss", "index.faiss is not a name for an index"),
        ("note.md", "index", "has neither the name nor the frontmatter"),
        ("empty", "other.ragmd", "there is no index in the folder"),
    )
    for source, target, expected in cases:
        with pytest.raises(UsageError) as caught:
            convert(str(tmp_path / source), str(tmp_path / target))
        assert expected in caught.value.message
        assert "name a" in f"{caught.value.message} {caught.value.remedy}"
    with pytest.raises(SourceMissingError, match=r"there is no .*nowhere"):
        convert(str(tmp_path / "nowhere"), str(tmp_path / "other.ragmd"))
    convert(str(ours), str(tmp_path / "index"))
    with pytest.raises(TargetRefused, match=r"note\.md is not overwritten"):
        convert(str(tmp_path / "index"), str(tmp_path / "note.md"))

"""FAISS + JSON as a folder and as two files: written whole, read with every row in its place."""

import json
import os

import faiss
import numpy as np
import pytest

from filestore.exchange import faiss_json
from filestore.exchange.base import Chunk, Collection, FormDamaged, Resource, TargetRefused
from filestore.exchange.faiss_json import FaissJson
from filestore.fs.disk import WriteFailedError
from tests.advice import advised
from tests.system.conftest import files_below
from tests.vectors import unit_rows

ROWS = unit_rows(6, dimension=8)
TEXTS = [f"Text {at}, 🜁 | ``` of it.\n" for at in range(6)]
NOW = "2026-01-31T12:00:00Z"


def collection(count=6):
    """Two resources with the first rows."""
    chunks = [
        Chunk(path=f"{'ab'[at % 2]}/chunk{at + 1}.md", text=TEXTS[at], vectors={0: ROWS[at]})
        for at in range(count)
    ]
    resources = [Resource(name=name, chunks=tuple(chunks[at::2])) for at, name in enumerate("ab")]
    return Collection(resources=resources, model="builtin/1:8", dimension=8)


def rows_of(found):
    """Every text with the bits of its vector."""
    return {chunk.text: chunk.vectors[0].tobytes() for one in found for chunk in one.chunks}


def write_foreign(folder, *, rows=ROWS, texts=TEXTS, index=None, **about):
    """A folder as a service writes it."""
    folder.mkdir(exist_ok=True)
    if index is None:
        index = faiss.IndexFlatL2(rows.shape[1])
        index.add(rows)
    faiss.write_index(index, str(folder / "index.faiss"))
    np.save(folder / "embeddings.npy", rows)
    (folder / "corpus.json").write_text(json.dumps({"documents": texts, "count": len(texts)}))
    stated = {
        "rag_name": "manual",
        "document_count": len(texts),
        "embedding_dimension": 8,
        "index_type": "IndexFlatL2",
        "created_at": NOW,
        "updated_at": NOW,
        "file_sizes": {},
        "dataset_info": {"lang": "en", "model": "theirs/model"},
    } | about
    (folder / "metadata.json").write_text(json.dumps(stated))
    return str(folder)


def test_other_programs_find_a_whole_index(tmp_path):
    """Four files, row i of each belonging together; the index is one that FAISS loads."""
    target = tmp_path / "kb"
    FaissJson().write(str(target), collection())
    assert sorted(os.listdir(target)) == sorted(faiss_json.FILES)
    index = faiss.read_index(str(target / "index.faiss"))
    rows = np.load(target / "embeddings.npy", allow_pickle=False)
    corpus = json.loads((target / "corpus.json").read_text())
    about = json.loads((target / "metadata.json").read_text())
    assert (type(index), index.ntotal) == (faiss.IndexFlatL2, 6)
    assert np.array_equal(index.reconstruct_n(0, 6), rows)
    assert (rows.dtype, rows.shape) == (np.float32, (6, 8))
    assert corpus["count"] == 6
    place = {text: at for at, text in enumerate(corpus["documents"])}
    assert all(np.array_equal(rows[place[text]], ROWS[at]) for at, text in enumerate(TEXTS))
    assert about.keys() >= {"rag_name", "created_at", "updated_at", "dataset_info"}
    assert (about["document_count"], about["embedding_dimension"]) == (6, 8)
    assert (about["rag_name"], about["index_type"]) == ("kb", "IndexFlatL2")
    assert about["file_sizes"] == {
        name: (target / name).stat().st_size for name in faiss_json.FILES[:3]
    }


def test_a_saved_index_gives_the_same_answers(tmp_path):
    """Save, load: the nearest rows of any query are the same, at the same distances."""
    query = unit_rows(3, seed=7, dimension=8)
    before = faiss.IndexFlatL2(8)
    before.add(np.stack([ROWS[at] for at in (0, 2, 4, 1, 3, 5)]))
    FaissJson().write(str(tmp_path / "kb"), collection())
    after = faiss.read_index(str(tmp_path / "kb" / "index.faiss"))
    for one, other in zip(before.search(query, 4), after.search(query, 4), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("name", ["kb", "vectors-kb.faiss"])
def test_writing_again_replaces_everything(name, tmp_path):
    """Nothing of the earlier index is left, and nothing lies beside it."""
    target = tmp_path / name
    FaissJson().write(str(target), collection())
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    FaissJson().write(str(target), collection(2))
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
    assert list(rows_of(FaissJson().read(str(target)))) == TEXTS[:2]


@pytest.mark.parametrize("name", ["kb", "vectors-kb.faiss"])
def test_a_save_that_fails_leaves_the_index_that_was(name, small_disk):
    """A full disk is named, with what to do, and the earlier index is read as before."""
    target = small_disk / name
    FaissJson().write(str(target), collection())
    before = files_below(small_disk)
    chunk = Chunk(path="a/chunk1.md", text="x" * 3_000_000, vectors={0: ROWS[0]})
    big = Collection(resources=[Resource(name="a", chunks=(chunk,))], model="m", dimension=8)
    with pytest.raises(WriteFailedError, match="No space left") as caught:
        FaissJson().write(str(target), big)
    assert caught.value.remedy.startswith("free some space")
    assert files_below(small_disk) == before
    assert rows_of(FaissJson().read(str(target))) == rows_of(collection())


def test_indexes_of_one_folder_do_not_touch_one_another(tmp_path):
    """A damaged one is named, the others are read."""
    for name in ("one", "two"):
        FaissJson().write(str(tmp_path / f"vectors-{name}.faiss"), collection())
    (tmp_path / "vectors-one.faiss").write_bytes(b"IxF2")
    with pytest.raises(FormDamaged, match=r"vectors-one\.faiss: it is not the index that"):
        FaissJson().read(str(tmp_path / "vectors-one.faiss"))
    assert rows_of(FaissJson().read(str(tmp_path / "metadata-two.json"))) == rows_of(collection())
    with pytest.raises(FormDamaged, match="it has 2 indexes: vectors-one"):
        FaissJson().read(str(tmp_path))


def test_a_folder_of_another_program_is_read(tmp_path):
    """One resource of all texts, in their order, with the model that it names."""
    found = FaissJson().read(write_foreign(tmp_path / "kb"))
    (resource,) = found
    assert (found.model, found.dimension, resource.name) == ("theirs/model", 8, "manual")
    assert [chunk.text for chunk in resource.chunks] == TEXTS
    assert np.array_equal([chunk.vectors[0] for chunk in resource.chunks], ROWS)
    assert dict(resource.chunks[0].frontmatter) == {"lang": "en"}


def test_an_index_of_codes_leaves_the_embeddings(tmp_path):
    """Only the head of such an index is believed; that it was not read is said."""
    index = faiss.index_factory(8, "SQ8")
    index.train(ROWS)
    index.add(ROWS)
    found = FaissJson().read(write_foreign(tmp_path / "kb", index=index))
    assert rows_of(found) == dict(zip(TEXTS, map(bytes, ROWS), strict=True))
    assert list(found.left_out) == [
        "index.faiss is an IndexScalarQuantizer, which is not read: the vectors are those of"
        " embeddings.npy"
    ]


def test_rows_of_other_lengths_are_the_same_rows(tmp_path):
    """A service may have normalized what it searches."""
    path = write_foreign(tmp_path / "kb")
    np.save(tmp_path / "kb" / "embeddings.npy", ROWS * np.float32(3))
    (resource,) = FaissJson().read(path)
    assert np.array_equal(resource.chunks[1].vectors[0], ROWS[1] * np.float32(3))


def test_names_that_another_program_kept_of_other_texts_are_left_out(tmp_path):
    """It wrote its own texts, and carried along what we had said of ours."""
    FaissJson().write(str(tmp_path / "kb"), collection())
    corpus = tmp_path / "kb" / "corpus.json"
    corpus.write_text(corpus.read_text().replace("Text 3", "Other"))
    found = FaissJson().read(str(tmp_path / "kb"))
    assert [one.name for one in found] == ["kb"]
    assert "under 'filestore'" in found.left_out[0]


def shorten(name, count=5):
    """A file of the folder with fewer rows."""

    def change(folder):
        path = folder / name
        if name == "index.faiss":
            index = faiss.IndexFlatL2(8)
            index.add(ROWS[:count])
            faiss.write_index(index, str(path))
        elif name == "embeddings.npy":
            np.save(path, ROWS[:count])
        else:
            path.write_text(json.dumps({"documents": TEXTS[:count], "count": count}))

    return change


def stating(**values):
    """Other metadata."""

    def change(folder):
        path = folder / "metadata.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def replacing(name, data):
    """Other bytes of a file."""
    return lambda folder: (folder / name).write_bytes(data)


def linking(folder):
    """A link in place of a file."""
    (folder / "corpus.json").unlink()
    (folder / "corpus.json").symlink_to("/etc/passwd")


def swapping(folder):
    """Two rows that changed places in one file."""
    np.save(folder / "embeddings.npy", ROWS[[1, 0, 2, 3, 4, 5]])


COUNTS = "different numbers of rows: corpus.json has {}, embeddings.npy has {}, index.faiss has {}"
DISAGREE = {
    "fewer texts": (shorten("corpus.json"), COUNTS.format(5, 6, 6)),
    "fewer embeddings": (shorten("embeddings.npy"), COUNTS.format(6, 5, 6)),
    "a smaller index": (shorten("index.faiss"), COUNTS.format(6, 6, 5)),
    "rows that changed places": (swapping, "row 0 of index.faiss is another vector than row 0"),
    "another count": (
        stating(document_count=7),
        "document_count of metadata.json is 7, there are 6",
    ),
    "another dimension": (
        stating(embedding_dimension=9),
        "embedding_dimension of metadata.json is 9",
    ),
    "no time": (stating(created_at="now"), "created_at of metadata.json must be a time"),
    "texts that are none": (
        replacing("corpus.json", b'{"documents": ["a", 7], "count": 2}'),
        "document 1 must be text",
    ),
    "a count of its own": (
        replacing("corpus.json", b'{"documents": [], "count": 2}'),
        "count of corpus.json is 2",
    ),
    "a list": (replacing("metadata.json", b"[]"), "metadata.json must be an object"),
    "no JSON": (replacing("corpus.json", b"\x93NUMPY"), "corpus.json: the file is no JSON"),
    "deep JSON": (replacing("corpus.json", b"[" * 5_000), "corpus.json: the file is no JSON"),
    "a pickle": (replacing("embeddings.npy", b"\x80\x04]."), "embeddings.npy: it is no .npy"),
    "no index": (replacing("index.faiss", b""), "index.faiss: the FAISS index cannot be read"),
    "a link": (linking, "corpus.json: it cannot be read: it is a symbolic link"),
    "a file less": (lambda folder: (folder / "corpus.json").unlink(), "it has no corpus.json"),
}


@pytest.mark.parametrize("case", DISAGREE)
def test_files_that_disagree_are_refused(case, tmp_path):
    """With the file, what it says and what is there; and what to do."""
    change, expected = DISAGREE[case]
    path = write_foreign(tmp_path / "kb")
    change(tmp_path / "kb")
    with pytest.raises(FormDamaged) as caught:
        FaissJson().read(path)
    assert expected in caught.value.message
    assert caught.value.message.startswith(f"{path}: ")
    assert advised(caught.value)


@pytest.mark.parametrize("name", faiss_json.FILES)
def test_a_file_of_ten_gigabytes_is_not_read(name, tmp_path):
    """By its size alone: a sparse file costs its maker nothing."""
    path = write_foreign(tmp_path / "kb")
    os.truncate(tmp_path / "kb" / name, 10 * 1024**3)
    with pytest.raises(FormDamaged, match=rf"{name}: it has 10,737,418,240 bytes, at most"):
        FaissJson().read(path)


def test_the_index_of_two_files_has_what_ragmd_has(tmp_path):
    """The list of chunks and the map of documents."""
    FaissJson().write(str(tmp_path / "vectors-all.faiss"), collection())
    about = json.loads((tmp_path / "metadata-all.json").read_text())
    index = faiss.read_index(str(tmp_path / "vectors-all.faiss"))
    assert (index.ntotal, about["vector_count"], about["document_count"]) == (6, 6, 2)
    for entry in about["chunks"]:
        document = about["documents"][entry["document_id"]]
        span = document["chunks"][entry["chunk_key"]]
        assert span["faiss_id"] == entry["faiss_id"]
        text = document["full_text"][span["i_start"] : span["i_end"]]
        assert np.array_equal(index.reconstruct(entry["faiss_id"]), ROWS[TEXTS.index(text)])


@pytest.mark.parametrize("keys", [("chunks", "documents"), ("chunk_list", "document_map")])
def test_two_files_of_another_program_are_read(keys, tmp_path):
    """Whatever it calls the list and the map, and where it says nothing else."""
    index = faiss.IndexFlatIP(8)
    index.add(ROWS[:1])
    faiss.write_index(index, str(tmp_path / "vectors-mini.faiss"))
    span = {"i_start": 0, "i_end": 4, "faiss_id": 0}
    values = (
        [{"faiss_id": 0, "document_id": "d", "chunk_key": "c"}],
        {"d": {"id": "d", "source": "d.txt", "full_text": "Text", "chunks": {"c": span}}},
    )
    about = dict(zip(keys, values, strict=True))
    (tmp_path / "metadata-mini.json").write_text(json.dumps(about))
    found = FaissJson().read(str(tmp_path))
    assert found.model == "mini"
    assert rows_of(found) == {"Text": ROWS[0].tobytes()}


@pytest.mark.parametrize("name", ["kb", "vectors-kb.faiss"])
def test_what_is_no_index_is_not_replaced(name, tmp_path):
    """A folder with anything else, a file, a link: all stay."""
    if name == "kb":
        (tmp_path / "kb").mkdir()
        (tmp_path / "kb" / "notes.md").write_text("mine")
    else:
        (tmp_path / "metadata-kb.json").write_text("mine")
    before = files_below(tmp_path)
    with pytest.raises(TargetRefused, match="is not overwritten"):
        FaissJson().write(str(tmp_path / name), collection())
    assert files_below(tmp_path) == before
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(TargetRefused, match="is a symbolic link"):
        FaissJson().write(str(tmp_path / "link"), collection())


def test_no_name_in_a_file_leads_out_of_its_folder(tmp_path):
    """The name of an index is a resource's, and never a path."""
    path = write_foreign(tmp_path / "kb", rag_name="../../etc/x", index_type="../x")
    (resource,) = FaissJson().read(path)
    assert resource.name == "../../etc/x"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["kb"]

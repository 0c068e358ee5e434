"""One suite for every vector index; the plain numpy one is the judge."""

import faiss
import numpy as np
import pytest

from filestore.index import new_index
from filestore.index._faiss import FaissIndex, IndexDamagedError

DIMENSION = 24


@pytest.fixture(params=["exact", "faiss"])
def index(request):
    return new_index(request.param, DIMENSION)


def unit_rows(count, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def ids(*values):
    return np.array(values, dtype=np.int64)


def test_empty_index_answers_nothing(index):
    """An empty index has no ids and no hits."""
    assert len(index) == 0
    assert index.ids().tolist() == []
    assert index.search(unit_rows(1)[0], 5) == []


def test_agrees_with_the_reference(index):
    """Additions, replacements and removals leave the same answers as the plain reference."""
    judge = new_index("exact", DIMENSION)
    rows = unit_rows(200)
    keys = np.arange(200, dtype=np.int64) * 7919 % (2**61)
    for target in (index, judge):
        target.add(keys, rows)
        assert target.remove(keys[10:30]) == 20
        assert target.remove(keys[10:30]) == 0
        target.add(keys[50:60], unit_rows(10, seed=5))
    assert index.ids().tolist() == judge.ids().tolist()
    for query in unit_rows(20, seed=9):
        ours, theirs = index.search(query, 10), judge.search(query, 10)
        assert [hit[0] for hit in ours] == [hit[0] for hit in theirs]
        assert np.allclose([hit[1] for hit in ours], [hit[1] for hit in theirs], atol=1e-5)


def test_equal_scores_come_by_id(index):
    """Among equal vectors the smaller id comes first, also where the limit cuts through them."""
    row = unit_rows(1)
    keys = ids(*range(100, 0, -1))
    index.add(keys, np.repeat(row, 100, axis=0))
    assert [hit[0] for hit in index.search(row[0], 5)] == [1, 2, 3, 4, 5]


def test_allowed_ids_bound_the_answer(index):
    """Only allowed ids are answered, however far away they are."""
    index.add(np.arange(50, dtype=np.int64), unit_rows(50))
    hits = index.search(unit_rows(1, seed=3)[0], 10, allowed=ids(4, 9, 1000))
    assert sorted(hit[0] for hit in hits) == [4, 9]


def test_vectors_come_back_as_they_went_in(index):
    """A stored vector is returned bit for bit, an unknown id is a KeyError."""
    rows = unit_rows(5)
    index.add(ids(5, 4, 3, 2, 1), rows)
    assert np.array_equal(index.vectors(ids(4, 1)), rows[[1, 4]])
    with pytest.raises(KeyError):
        index.vectors(ids(77))


def test_wrong_dimension_is_refused(index):
    """Vectors of another length are refused with both shapes."""
    with pytest.raises(ValueError, match=r"\(1, 24\)"):
        index.add(ids(1), np.zeros((1, 3), dtype=np.float32))


def test_faiss_file_round_trip(tmp_path):
    """What was written reads back with the same ids and vectors."""
    index = FaissIndex(DIMENSION)
    rows = unit_rows(10)
    index.add(np.arange(10, dtype=np.int64), rows)
    path = str(tmp_path / "vectors.faiss")
    index.write(path)
    again = FaissIndex.read(path, DIMENSION)
    assert again.ids().tolist() == list(range(10))
    assert np.array_equal(again.vectors(np.arange(10, dtype=np.int64)), rows)


def test_faiss_refuses_another_kind_of_file(tmp_path):
    """A file of another index type, dimension or of no type at all is refused, not used."""
    path = str(tmp_path / "vectors.faiss")
    faiss.write_index(faiss.IndexFlatL2(DIMENSION), path)
    with pytest.raises(IndexDamagedError):
        FaissIndex.read(path, DIMENSION)
    (tmp_path / "vectors.faiss").write_bytes(b"not an index")
    with pytest.raises(IndexDamagedError):
        FaissIndex.read(path, DIMENSION)

"""One suite for every vector index; the plain numpy one is the judge."""

import math
import resource
from functools import cache, partial

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore.index import (
    Description,
    ExactIndex,
    IndexDamagedError,
    OverlaidIndex,
    VectorSource,
    read_index,
)
from filestore.index.building import ApproximateIndex, Grown, Limits, build, is_current
from filestore.index.faiss_index import FaissIndex, flat_parts
from tests.vectors import clustered_rows, unit_rows

DIMENSION = 24
LISTS = 8


def ids(*values):
    return np.array(values, dtype=np.int64)


class Remembering(ApproximateIndex):
    """An approximate index that scores again with the vectors it was given."""

    def __init__(self, loaded, vectors_of=None):
        self.kept = {}
        super().__init__(loaded, self.stored)

    def add(self, ids, vectors):
        super().add(ids, vectors)
        self.kept |= dict(zip(ids.tolist(), vectors, strict=True))

    def stored(self, ids):
        absent = np.zeros(self.dimension, dtype=np.float32)
        rows = [self.kept.get(identifier, absent) for identifier in ids.tolist()]
        found = [identifier in self.kept for identifier in ids.tolist()]
        return np.array(rows).reshape(-1, self.dimension), np.array(found, dtype=bool)


@cache
def trained():
    return Remembering.train(unit_rows(400, seed=77), LISTS, None)._index


def new_approximate(probes=LISTS):
    index = Remembering(faiss.clone_index(trained()))
    index.probes = probes
    return index


def new_overlaid():
    """Nothing is left of the lower index, so that this one starts empty."""
    lower = new_approximate()
    lower.add(np.arange(5, dtype=np.int64), unit_rows(5, seed=4))
    index = OverlaidIndex(lower, FaissIndex(DIMENSION))
    index.hide(range(5))
    return index


def new_member(kind):
    makers = {
        "exact": partial(ExactIndex, DIMENSION),
        "faiss": partial(FaissIndex, DIMENSION),
        "approximate": new_approximate,
        "overlaid": new_overlaid,
    }
    return makers[kind]()


MEMBERS = ["exact", "faiss", "approximate", "overlaid"]


@pytest.fixture(params=MEMBERS)
def index(request):
    return new_member(request.param)


def assert_same_answers(index, judge, queries, count=10, allowed=None):
    for query in queries:
        ours = index.search(query, count, allowed=allowed)
        theirs = judge.search(query, count, allowed=allowed)
        assert [hit[0] for hit in ours] == [hit[0] for hit in theirs]
        assert np.allclose([hit[1] for hit in ours], [hit[1] for hit in theirs], atol=1e-5)


def test_empty_index_answers_nothing(index):
    """An empty index has no ids and no hits."""
    assert len(index) == 0
    assert index.ids().tolist() == []
    assert index.search(unit_rows(1)[0], 5) == []
    assert index.holds(ids(3), unit_rows(1)).tolist() == [False]


def test_agrees_with_the_reference(index):
    """Additions, replacements and removals leave the same answers as the plain reference."""
    judge = ExactIndex(DIMENSION)
    rows = unit_rows(200)
    keys = np.arange(200, dtype=np.int64) * 7919 % (2**61)
    for target in (index, judge):
        target.add(keys, rows)
        assert target.remove(keys[10:30]) == 20
        assert target.remove(keys[10:30]) == 0
        target.add(keys[50:60], unit_rows(10, seed=5))
    assert len(index) == len(judge) == 180
    assert index.ids().tolist() == judge.ids().tolist()
    assert_same_answers(index, judge, unit_rows(20, seed=9))


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove"]),
        st.lists(st.integers(0, 30), unique=True, max_size=12),
        st.integers(0, 999),
    ),
    max_size=8,
)


@pytest.mark.parametrize("kind", MEMBERS)
@given(changes=CHANGES, bound=st.none() | st.sets(st.integers(0, 35)))
@settings(max_examples=40)
def test_any_changes_leave_the_answers_of_the_reference(kind, changes, bound):
    """Whatever is added, replaced and removed, ids, hits and bounded hits are the reference's."""
    index, judge = new_member(kind), ExactIndex(DIMENSION)
    for number, (action, some, seed) in enumerate(changes):
        for target in (index, judge):
            if action == "add":
                # Never the same rows twice: among equals rounding decides, which is another test.
                target.add(ids(*some), unit_rows(len(some), seed=1000 * number + seed))
        if action == "remove":
            assert index.remove(ids(*some)) == judge.remove(ids(*some))
    assert index.ids().tolist() == judge.ids().tolist()
    assert len(index) == len(judge)
    allowed = None if bound is None else ids(*sorted(bound))
    assert_same_answers(index, judge, unit_rows(3, seed=3), count=4, allowed=allowed)


@pytest.mark.parametrize("kind", ["faiss", "approximate"])
def test_one_query_is_searched_by_one_thread(kind, monkeypatch):
    """Threads that only wait for each other are not started; the number set before is kept."""
    index = new_member(kind)
    index.add(np.arange(300, dtype=np.int64), unit_rows(300))
    inner, seen = index._index, []

    class Watched:
        def __getattr__(self, name):
            seen.append((name, faiss.omp_get_max_threads()))
            return getattr(inner, name)

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    try:
        monkeypatch.setattr(index, "_index", Watched())
        assert len(index.search(unit_rows(1)[0], 5)) == 5
        assert [threads for name, threads in seen if name == "search"] == [1]
        assert faiss.omp_get_max_threads() == 3
    finally:
        faiss.omp_set_num_threads(before)


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


def test_as_many_as_asked_are_answered(index):
    """More hits than near ones are given as long as there are any."""
    index.add(np.arange(300, dtype=np.int64), unit_rows(300))
    for count in (1, 7, 150, 300, 900):
        assert len(index.search(unit_rows(1, seed=3)[0], count)) == min(count, 300)


def test_holds_what_was_added(index):
    """Each id is held with its own vector and with no other one."""
    rows = unit_rows(5)
    index.add(ids(5, 4, 3, 2, 1), rows)
    assert index.holds(ids(4, 1, 5), rows[[1, 4, 0]]).tolist() == [True, True, True]
    assert index.holds(ids(4, 77, 1), rows[[2, 3, 4]]).tolist() == [False, False, True]
    index.remove(ids(4))
    assert index.holds(ids(4, 1), rows[[1, 4]]).tolist() == [False, True]


def test_wrong_dimension_is_refused(index):
    """Vectors of another length are refused with both shapes."""
    with pytest.raises(ValueError, match=r"\(1, 24\)"):
        index.add(ids(1), np.zeros((1, 3), dtype=np.float32))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("kind", ["faiss", "approximate"])
def test_file_round_trip(tmp_path, kind, mapped):
    """What was written reads back with the same ids, vectors and answers."""
    index, rows = new_member(kind), unit_rows(300)
    index.add(np.arange(300, dtype=np.int64), rows)
    path = str(tmp_path / "vectors.faiss")
    index.write(path)
    again = read_index(path, DIMENSION, lambda some: (rows[some], some >= 0), mapped=mapped)
    assert type(again).__name__ == {"faiss": "FaissIndex"}.get(kind, "ApproximateIndex")
    assert again.ids().tolist() == list(range(300))
    assert again.holds(np.arange(300, dtype=np.int64), rows).all()
    assert_same_answers(again, index, unit_rows(5, seed=9))


def test_a_few_bytes_that_the_disk_refuses_are_told(tmp_path):
    """An index so small that it is written only as its file is closed is not lost in silence."""
    index = FaissIndex(DIMENSION)
    index.add(ids(1, 2, 3), unit_rows(3))
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8, allowed[1]))
        with pytest.raises(OSError, match="too large"):
            index.write(str(tmp_path / "vectors"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)


@given(count=st.integers(0, 9), dimension=st.integers(1, 5), seed=st.integers(0, 99))
@settings(max_examples=40)
def test_the_parts_of_a_flat_file_round_trip(count, dimension, seed):
    """What FAISS wrote is read without it: the same ids and vectors; of another kind, nothing."""
    index, rows = FaissIndex(dimension), unit_rows(count, seed, dimension)
    keys = np.arange(count, dtype=np.int64) * 7919 - 3
    index.add(keys, rows)
    held, vectors = flat_parts(index.serialized())
    assert held.tolist() == keys.tolist()
    assert (vectors == rows).all()
    other = faiss.serialize_index(faiss.IndexFlatIP(dimension))
    assert flat_parts(bytes(other.data)) is None


def test_another_kind_of_file_is_refused(tmp_path):
    """A file of another index type, dimension or of no type at all is refused, not used."""
    path = str(tmp_path / "vectors.faiss")
    faiss.write_index(faiss.IndexFlatL2(DIMENSION), path)
    with pytest.raises(IndexDamagedError):
        read_index(path, DIMENSION, None)
    FaissIndex(DIMENSION + 1).write(path)
    with pytest.raises(IndexDamagedError):
        read_index(path, DIMENSION, None)
    (tmp_path / "vectors.faiss").write_bytes(b"not an index")
    with pytest.raises(IndexDamagedError):
        read_index(path, DIMENSION, None)


def test_few_probes_only_leave_out():
    """With one list looked into, hits are true ones with exact scores, some may be missing."""
    index, judge = new_approximate(probes=1), ExactIndex(DIMENSION)
    rows = unit_rows(500)
    for target in (index, judge):
        target.add(np.arange(500, dtype=np.int64), rows)
    for query in unit_rows(10, seed=9):
        everything = dict(judge.search(query, 500))
        hits = index.search(query, 10)
        assert len(hits) == 10
        assert all(abs(everything[found] - score) < 1e-5 for found, score in hits)


def test_few_allowed_ids_are_all_looked_at():
    """However few lists are usually looked into, a narrow filter loses nothing."""
    index, judge = new_approximate(probes=1), ExactIndex(DIMENSION)
    for target in (index, judge):
        target.add(np.arange(500, dtype=np.int64), unit_rows(500))
    allowed = np.arange(0, 500, 25, dtype=np.int64)
    assert_same_answers(index, judge, unit_rows(10, seed=9), allowed=allowed)


def test_a_lost_embedding_does_not_lose_its_hit():
    """Where the stored vector is gone the shortened one still answers, nearly as exact."""
    index, rows = new_approximate(), unit_rows(100)
    index.add(np.arange(100, dtype=np.int64), rows)
    index.kept.clear()
    (best, score), *_ = index.search(rows[42], 3)
    assert best == 42
    assert abs(score - 1) < 0.02


def test_a_vector_in_the_wrong_list_is_not_held():
    """A row that is right but lies where no search for it looks is found out."""
    index, rows = new_approximate(), unit_rows(50)
    index.add(np.arange(50, dtype=np.int64), rows)
    inner = index._index
    centres = inner.quantizer.reconstruct_n(0, LISTS)
    away = np.array([int((centres @ rows[7]).argmin())])
    index.remove(ids(7))
    codes = inner.sq.compute_codes(rows[7:8])
    inner.invlists.add_entries(
        int(away[0]), 1, faiss.swig_ptr(ids(7)), faiss.swig_ptr(np.ascontiguousarray(codes))
    )
    held = index.holds(np.arange(50, dtype=np.int64), rows)
    assert np.flatnonzero(~held).tolist() == [7]
    assert index.holds_codes(np.arange(50, dtype=np.int64), rows).all()
    assert index.has_lists


class Rows(VectorSource):
    """Vectors in memory."""

    def __init__(self, rows):
        self.rows = rows
        self.dimension = rows.shape[1]

    def __len__(self):
        return len(self.rows)

    def sample(self, count):
        return self.rows[:: max(1, len(self.rows) // count)][:count]

    def blocks(self):
        for start in range(0, len(self.rows), 1000):
            block = self.rows[start : start + 1000]
            yield np.arange(start, start + len(block), dtype=np.int64), block

    def vectors_of(self, ids):
        return self.rows[ids], np.ones(len(ids), dtype=bool)


def tried_from(count):
    """Lists are made above this, as if they always won: so few vectors are quicker compared."""
    return Limits(exact_up_to=count, work=math.inf)


def recall(index, rows, queries):
    """The share of the ten nearest that an index finds."""
    found = 0
    for query in queries:
        nearest = np.argsort(-(rows @ query), kind="stable")[:10]
        found += len({hit[0] for hit in index.search(query, 10)} & set(nearest.tolist()))
    return found / (10 * len(queries))


def test_few_vectors_are_compared_one_and_all():
    """Up to the limit the index is exact and says so."""
    built = build(Rows(clustered_rows(900)), limits=tried_from(900))
    assert isinstance(built.index, FaissIndex)
    assert built.description == Description(kind="exact", vectors=900)


def test_the_ten_nearest_of_many_are_found():
    """Above the limit an index is tuned until it finds what it should, also for new queries."""
    rows = clustered_rows(6000)
    built = build(Rows(rows), limits=tried_from(5000))
    described = built.description
    assert isinstance(built.index, ApproximateIndex)
    assert (described.kind, described.vectors, described.trained_on) == ("approximate", 6000, 6000)
    assert described.lists == built.index.lists > described.probes == built.index.probes > 0
    assert described.recall >= 0.98
    assert recall(built.index, rows, clustered_rows(100, seed=5)) >= 0.98


def test_data_without_clusters_is_searched_well_too():
    """Where near and far hardly differ so many lists are looked into that recall holds."""
    rows = unit_rows(3000, dimension=64)
    built = build(Rows(rows), limits=tried_from(1000))
    assert built.description.kind == "approximate"
    assert recall(built.index, rows, unit_rows(50, seed=5, dimension=64)) >= 0.98


def test_data_that_8_bits_cannot_tell_apart_is_compared_one_and_all():
    """Where the shortened vectors are no help, the index is exact."""
    rows = np.repeat(unit_rows(2), 1000, axis=0) + unit_rows(2000, seed=6) * np.float32(1e-5)
    assert build(Rows(rows), limits=tried_from(1000)).description.kind == "exact"


def test_where_lists_win_nothing_all_are_compared():
    """Lists that would cost nearly as much as all vectors are measured, said, and not used."""
    rows = unit_rows(6000, dimension=64)
    built = build(Rows(rows), limits=Limits(exact_up_to=1000))
    described = built.description
    assert isinstance(built.index, FaissIndex)
    assert (described.kind, described.vectors, described.trained_on) == ("exact", 6000, 6000)
    assert described.work > 0.5
    assert described.lists >= described.probes > 0
    assert recall(built.index, rows, unit_rows(20, seed=5, dimension=64)) == 1.0


def test_lists_that_won_nothing_are_not_tried_again_soon(monkeypatch):
    """An exact index is written again without training until its vectors have doubled."""
    rows = unit_rows(4100, dimension=64)
    limits = Limits(exact_up_to=1000)
    tried = build(Rows(rows[:2000]), limits=limits).description
    trained = []
    train = ApproximateIndex.train
    monkeypatch.setattr(
        ApproximateIndex, "train", lambda *words: trained.append(1) or train(*words)
    )
    again = build(Rows(rows[:3900]), tried=tried, limits=limits).description
    assert (again, trained) == (replace(tried, vectors=3900), [])
    outgrown = build(Rows(rows), tried=again, limits=limits).description
    assert (outgrown.trained_on, trained) == (4100, [1])


def test_an_index_does_not_turn_back_and_forth():
    """Lists that are there stay at a cost at which new ones would not be made, up to a margin."""
    rows = clustered_rows(3000)
    small = build(Rows(rows), limits=tried_from(1000))
    grown = Grown(index=small.index, trained_on=3000)
    for share, kind in ((0.9, "approximate"), (0.6, "exact")):
        limits = Limits(exact_up_to=1000, work=small.description.work * share)
        assert build(Rows(rows), limits=limits).description.kind == "exact"
        assert build(Rows(rows), grown=grown, limits=limits).description.kind == kind


def test_the_same_vectors_give_the_same_file(tmp_path):
    """Two builds of the same vectors are the same bytes."""
    for name in ("one", "two"):
        build(Rows(clustered_rows(3000)), limits=tried_from(1000)).index.write(str(tmp_path / name))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_index_grows_until_its_training_is_outgrown():
    """Lists made for fewer vectors serve up to twice as many, then they are made anew."""
    rows = clustered_rows(7000)
    small = build(Rows(rows[:3000]), limits=tried_from(1000))
    for count, trained_on in ((5000, 3000), (7000, 7000)):
        held = len(small.index)
        small.index.add(np.arange(held, count, dtype=np.int64), rows[held:count])
        grown = Grown(index=small.index, trained_on=3000)
        built = build(Rows(rows[:count]), grown=grown, limits=tried_from(1000))
        assert built.description.vectors == count
        assert built.description.trained_on == trained_on
        assert built.description.recall >= 0.98


@given(st.integers(1, 10**7))
def test_no_size_needs_training_forever(count):
    """An index is current right after training, and never at thrice or a third of the size."""
    assert is_current(count, count)
    assert not is_current(3 * count, count)
    assert not is_current(count, 3 * count)


@given(
    st.builds(
        Description,
        kind=st.sampled_from(["exact", "approximate"]),
        vectors=st.integers(0, 2**40),
        lists=st.none() | st.integers(1, 10**6),
        probes=st.none() | st.integers(1, 10**6),
        recall=st.none() | st.floats(0, 1),
        trained_on=st.none() | st.integers(0, 2**40),
        work=st.none() | st.floats(0, 100),
    )
)
def test_descriptions_round_trip(description):
    """A description reads back as it was written."""
    assert Description.parse(description.serialize()) == description

"""Serialised indexes of FAISS read without FAISS: what it wrote, and what nobody should believe."""

import struct

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.exchange import faiss_bytes
from filestore.exchange.base import FormDamaged
from tests.vectors import unit_rows

ROWS = unit_rows(40, dimension=8)
HEAD_BYTES = 37
"""Class and head of every index."""


def serialized(index):
    """The bytes that FAISS makes of an index."""
    return bytes(faiss.serialize_index(index))


def flat(kind=faiss.IndexFlatIP):
    """A flat index of the rows."""
    index = kind(8)
    index.add(ROWS)
    return index


def lists(metric=faiss.METRIC_L2, count=4, rows=ROWS):
    """An index of lists of the rows."""
    quantizer = faiss.IndexFlat(8, metric)
    index = faiss.IndexIVFFlat(quantizer, 8, count, metric)
    index.train(np.vstack([ROWS] * 4 * count))
    index.add(rows)
    index.own_fields, quantizer.this = True, quantizer.this
    quantizer.this.disown()
    return index


def mapped(kind, inner, ids):
    """An index of the rows under ids of their own."""
    index = kind(inner)
    index.add_with_ids(ROWS, np.asarray(ids, dtype=np.int64))
    return index


def with_direct_map(kind):
    """Lists that also say where each id stands."""
    index = lists()
    index.set_direct_map_type(kind)
    return index


READ = {
    "IndexFlatIP": (flat, "IndexFlatIP"),
    "IndexFlatL2": (lambda: flat(faiss.IndexFlatL2), "IndexFlatL2"),
    "IndexIVFFlat": (lists, "IndexFlatL2"),
    "IndexIVFFlat by inner product": (lambda: lists(faiss.METRIC_INNER_PRODUCT), "IndexFlatIP"),
    "IndexIVFFlat mostly empty": (lambda: lists(count=30), "IndexFlatL2"),
    "IndexIVFFlat with an array": (lambda: with_direct_map(faiss.DirectMap.Array), "IndexFlatL2"),
    "IndexIVFFlat with a table": (
        lambda: with_direct_map(faiss.DirectMap.Hashtable),
        "IndexFlatL2",
    ),
    "IndexIDMap": (
        lambda: mapped(faiss.IndexIDMap, faiss.IndexFlatIP(8), range(40)),
        "IndexFlatIP",
    ),
    "IndexIDMap2": (
        lambda: mapped(faiss.IndexIDMap2, faiss.IndexFlatL2(8), range(40)),
        "IndexFlatL2",
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_faiss_wrote_is_read(case):
    """Every class that keeps whole vectors gives them, by id and bit for bit; in pieces as well."""
    make, expected = READ[case]
    data = serialized(make())
    at = faiss_bytes.FLAT_HEAD_BYTES
    for pieces in (
        (data,),
        (bytearray(data),),
        (data[:at], data[at:]),
        (data[:at], b"", data[at:]),
    ):
        found = faiss_bytes.parse(*pieces)
        assert found.rows.tobytes() == ROWS.tobytes()
        assert found.flat == expected
        assert found.kinds[0] == case.split()[0]


def test_ids_in_another_order_put_the_vectors_in_theirs():
    """Vector i is the one that FAISS gives for the id i."""
    ids = np.random.default_rng(0).permutation(40)
    found = faiss_bytes.parse(serialized(mapped(faiss.IndexIDMap2, faiss.IndexFlatIP(8), ids)))
    assert np.array_equal(found.rows[ids], ROWS)


@pytest.mark.parametrize(
    "ids", [range(1, 41), [0, *range(39)], [-1, *range(39)], [2**62, *range(39)]]
)
def test_ids_that_are_not_those_of_all_vectors_are_refused(ids):
    """A gap, an id twice, a negative one, a huge one."""
    data = serialized(mapped(faiss.IndexIDMap, faiss.IndexFlatIP(8), ids))
    with pytest.raises(FormDamaged, match="its ids must be 0 to 39, each once"):
        faiss_bytes.parse(data)


@pytest.mark.parametrize(
    ("kind", "factory"),
    [
        (faiss_bytes.INNER_PRODUCT, faiss.IndexFlatIP),
        (faiss_bytes.L2, faiss.IndexFlatL2),
    ],
)
@pytest.mark.parametrize("count", [0, 1, 40])
def test_what_is_written_is_what_faiss_writes(kind, factory, count):
    """Byte for byte, also of an empty index."""
    index = factory(8)
    index.add(ROWS[:count])
    made = faiss_bytes.head(kind, count, 8) + bytes(faiss_bytes.bytes_of(ROWS[:count]))
    assert made == serialized(index)


@pytest.mark.parametrize(
    "description",
    ["PQ4x4np", "SQ8", "IVF2,PQ4x4np", "PCA4,Flat", "LSH", "HNSW4,Flat", "IDMap,HNSW4,Flat"],
)
@pytest.mark.parametrize("metric", [faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2])
def test_other_classes_are_named(description, metric):
    """Nothing is guessed from codes or graphs; the head alone is read."""
    if description == "LSH" and metric != faiss.METRIC_L2:
        pytest.skip("LSH knows one metric")
    index = faiss.index_factory(8, description, metric)
    index.train(np.vstack([ROWS] * 10))
    if description.startswith("IDMap"):
        index.add_with_ids(ROWS, np.arange(40))
    else:
        index.add(ROWS)
    data = serialized(index)
    with pytest.raises(faiss_bytes.NotRead, match=r"Index|not known") as caught:
        faiss_bytes.parse(data)
    if "HNSW" in description:
        assert "IndexHNSWFlat" in caught.value.message
        assert "IndexFlatL2" in caught.value.message
    flat = "IndexFlatL2" if metric == faiss.METRIC_L2 else "IndexFlatIP"
    assert faiss_bytes.head_of(data)[1:] == (flat, 8, 40)


def damaged(at, form, *values, data=None):
    """A flat index with other numbers in its head."""
    data = bytearray(data or serialized(flat()))
    struct.pack_into(form, data, at, *values)
    return bytes(data)


MAP = serialized(mapped(faiss.IndexIDMap, faiss.IndexFlatIP(8), range(40)))
HOSTILE = {
    "4 GB by its head": (damaged(8, "<q", 2**30), "40 vectors|bytes of"),
    "numbers beyond the end": (damaged(HEAD_BYTES, "<Q", 2**40), "it states"),
    "so many numbers that they overflow": (damaged(HEAD_BYTES, "<Q", 2**62), "it states"),
    "a negative count": (damaged(8, "<q", -1), "-1 vectors"),
    "a negative dimension": (damaged(4, "<i", -8), "vectors of -8 numbers"),
    "a dimension of two thousand millions": (damaged(4, "<i", 2**31 - 1), "65,536 are read"),
    "no dimension": (damaged(4, "<i", 0), "40 vectors of 0 numbers"),
    "another metric": (damaged(33, "<i", 5), "metric 5"),
    "the metric of another class": (damaged(33, "<i", 1), "compares by metric 1"),
    "a class that is not known": (damaged(0, "<4s", b"EVIL"), "not known"),
    "trailing bytes": (serialized(flat()) + b"\0", "1 bytes follow"),
    "nothing": (b"", "states 4 bytes where there are 0"),
    "half": (serialized(flat())[:700], "it states"),
    "a number that is none": (damaged(-4, "<f", float("nan")), "vector 39 has nan at place 7"),
    "an infinite number": (damaged(HEAD_BYTES + 8, "<f", float("inf")), "vector 0 has inf"),
    "a map of another size": (damaged(8, "<q", 39, data=MAP), "39 vectors around 40"),
    "maps within maps": (MAP[:HEAD_BYTES] * 500, "IndexIDMap"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_what_cannot_be_is_refused(case):
    """With what was stated and what is there."""
    data, expected = HOSTILE[case]
    with pytest.raises(FormDamaged, match=expected):
        faiss_bytes.parse(data)


@given(st.data())
def test_damage_gives_vectors_of_finite_numbers_or_an_error(data):
    """Bytes flipped, cut or repeated anywhere, in each class: nothing else comes of it."""
    case = data.draw(st.sampled_from(sorted(READ)))
    raw = bytearray(SERIALIZED[case])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "repeat", "huge"])):
            case "flip":
                raw[at] ^= data.draw(st.integers(1, 255))
            case "cut":
                del raw[at : at + data.draw(st.integers(1, 64))]
            case "repeat":
                raw[at:at] = raw[at : at + 64]
            case "huge":
                raw[at : at + 8] = struct.pack(
                    "<Q", data.draw(st.sampled_from([2**31, 2**63, 2**64 - 1]))
                )
        if not raw:
            break
    try:
        found = faiss_bytes.parse(bytes(raw))
    except FormDamaged:
        return
    assert np.isfinite(found.rows).all()
    assert found.rows.nbytes <= len(raw)


SERIALIZED = {case: serialized(make()) for case, (make, _) in READ.items()}

"""Rows into resources, and vectors as text."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from filestore.exchange import rows
from filestore.exchange.base import LeftOut

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(rows.COLUMNS), st.text(max_size=5)), inner, max_size=4
        ),
    ),
    max_leaves=12,
)


@given(numbers=st.lists(FLOATS, min_size=1, max_size=30))
def test_a_vector_comes_back_bit_for_bit(numbers):
    """As text, and as a list of its numbers."""
    vector = np.array(numbers, dtype=np.float32)
    for value in (rows.encoded(vector), vector.tolist(), vector.astype(np.float64)):
        found, problem = rows.decoded(value, len(numbers))
        assert problem == ""
        assert found.tobytes() == vector.tobytes()


@given(value=ANYTHING, dimension=st.integers(0, 3))
def test_whatever_a_vector_is_said_to_be(value, dimension):
    """It is one, or there is a reason; never an error."""
    found, problem = rows.decoded(value, dimension)
    assert (found is None) == bool(problem)
    assert found is None or (found.dtype == np.float32 and np.isfinite(found).all())


@given(found=st.lists(ANYTHING), ours=st.booleans())
def test_whatever_a_row_is(found, ours):
    """Every row becomes a chunk or a record, or is named."""
    left_out = LeftOut()
    reader = rows.RowReader(name="some", ours=ours, dimension=0, left_out=left_out)
    resources = list(reader.resources((f"line {n}", row) for n, row in enumerate(found)))
    taken = sum(len(one.chunks) + (one.record is not None) for one in resources)
    assert taken + len(left_out) >= len(found)
    assert all(isinstance(chunk.text, str) for one in resources for chunk in one.chunks)


def test_a_large_resource_comes_in_parts():
    """No more than some megabytes of one are held at once; its order stays."""
    count = rows.PART_CHUNKS * 2 + 5
    reader = rows.RowReader(name="some", ours=False, dimension=0, left_out=LeftOut())
    parts = list(reader.resources((f"line {n}", {"text": f"{n}"}) for n in range(count)))
    assert [len(part.chunks) for part in parts] == [rows.PART_CHUNKS, rows.PART_CHUNKS, 5]
    assert [chunk.text for part in parts for chunk in part.chunks] == [str(n) for n in range(count)]
    large = [("line", {"text": "x" * rows.PART_BYTES})] * 3
    assert [len(part.chunks) for part in reader.resources(large)] == [1, 1, 1]


def test_many_sentences_are_counted():
    """The first are listed."""
    left_out = LeftOut()
    for number in range(LeftOut.MOST + 7):
        left_out.add(str(number))
    assert (len(left_out), left_out.more) == (LeftOut.MOST, 7)

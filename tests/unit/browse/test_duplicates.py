"""Which vectors are near to which, and what hangs together by that."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.browse import alike
from filestore.browse.alike import joined, near_pairs


def unit(rows):
    """Rows of length 1."""
    found = numpy.array(rows, numpy.float32)
    return found / numpy.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_every_near_pair_is_found_once(monkeypatch, block):
    """Whatever the blocks are, a pair is found exactly when its cosine is high enough."""
    monkeypatch.setattr(alike, "_BLOCK", block)
    vectors = unit(numpy.random.default_rng(7).normal(size=(40, 3)))
    found = [(one, two) for one, others in near_pairs(vectors, 0.9) for two in others.tolist()]
    cosines = vectors @ vectors.T
    expected = {(a, b) for a in range(40) for b in range(a + 1, 40) if cosines[a, b] >= 0.9}
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert expected


def test_rounding_hides_no_equal_vector():
    """A cosine of 1 counts as 1, though its last bit may be lost."""
    vectors = unit(numpy.random.default_rng(1).normal(size=(1, 384)).repeat(50, axis=0))
    assert len(set(joined(50, near_pairs(vectors, 1.0)).tolist())) == 1


@given(st.integers(1, 12), st.data())
def test_what_hangs_together(count, data):
    """Two places have one number just when pairs lead from one to the other."""
    place = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.tuples(place, st.lists(place, max_size=4)), max_size=12))
    labels = joined(count, ((one, numpy.array(others, int)) for one, others in pairs)).tolist()
    together = [{one} for one in range(count)]
    for one, others in pairs:
        for two in others:
            union = together[one] | together[two]
            for member in union:
                together[member] = union
    assert [[labels[a] == labels[b] for b in range(count)] for a in range(count)] == [
        [b in together[a] for b in range(count)] for a in range(count)
    ]

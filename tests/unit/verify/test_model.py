"""What must hold of looking texts up by their own vectors: only what is really nearer is told."""

import numpy as np

from filestore.index import ExactIndex
from filestore.sidecar.snapshot import Sample
from filestore.verify._vectors import MOST_TEXTS, affordable, astray

EAST = np.array([1, 0, 0], np.float32)
NORTH = np.array([0, 1, 0], np.float32)


def index_of(*vectors: np.ndarray) -> object:
    index = ExactIndex(3)
    index.add(np.arange(1, len(vectors) + 1, dtype=np.int64), np.stack(vectors))
    return index


def test_a_text_that_finds_itself() -> None:
    """Nothing is said of a vector whose own row is the nearest."""
    index = index_of(EAST, NORTH)
    assert astray(index, 1, EAST) == ""
    assert astray(index, 2, NORTH) == ""


def test_a_text_that_finds_another() -> None:
    """Rows that stand for each other's texts are told, with what was found."""
    found = astray(index_of(EAST, NORTH), 1, NORTH)
    assert "finds 2 with 1.0000, expected itself" in found


def test_a_text_that_is_not_there() -> None:
    """An id that the index does not hold does not find itself."""
    assert astray(index_of(EAST), 7, EAST)
    assert "nothing" in astray(ExactIndex(3), 7, EAST)


def test_equal_vectors_are_no_matter() -> None:
    """Of many texts with one vector each is as near as the nearest."""
    index = index_of(*[EAST] * 40)
    assert all(astray(index, identifier, EAST) == "" for identifier in range(1, 41))


def test_few_texts_are_embedded_anew() -> None:
    """Where no slice is named, one is taken that is not more than can be paid for."""
    assert affordable(Sample(), MOST_TEXTS) == Sample()
    for texts in (MOST_TEXTS + 1, 10_000, 123_457):
        chosen = affordable(Sample(), texts)
        assert texts / chosen.of <= MOST_TEXTS
        assert chosen.number == 1
    named = Sample(number=2, of=3)
    assert affordable(named, 10_000) == named

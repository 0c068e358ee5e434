"""What is near in a store, told by the cosines of its texts to a question that none answers."""

import numpy as np
import pytest

from filestore.search.retriever import Closeness

UNRELATED = np.random.default_rng(3).normal(0.05, 0.06, 200).astype(np.float32)


def test_chance_brings_nothing_close_however_many_texts_there_are() -> None:
    """The nearest of as many unrelated texts is below the cut, a right answer above it."""
    for count in (200, 10_000, 100_000):
        closeness = Closeness.of(UNRELATED, count)
        chance = np.random.default_rng(count).normal(0.05, 0.06, count)
        assert closeness.least < float(chance.max()) < closeness.cut < 0.6
        assert float((chance > closeness.least).mean()) < 0.03


def test_more_texts_raise_the_cut() -> None:
    """The nearest of many is nearer by chance."""
    assert Closeness.of(UNRELATED, 10).cut < Closeness.of(UNRELATED, 100_000).cut


@pytest.mark.parametrize("cosines", [[0.1], [0.93, 0.93, 0.93], [0.8, 0.95]])
def test_few_or_equal_texts_leave_room_for_an_answer(cosines: list[float]) -> None:
    """Whatever the sample, the very text is close and a text like the sample is not."""
    closeness = Closeness.of(np.array(cosines, np.float32), len(cosines))
    assert float(np.mean(cosines)) < closeness.least <= closeness.cut < 1.0


def test_meaning_is_a_share() -> None:
    """None of it for an unrelated text, all for the same text, never beyond."""
    closeness = Closeness.of(UNRELATED, 200)
    assert closeness.meaning(closeness.mean) == closeness.meaning(-1.0) == 0.0
    assert closeness.meaning(1.0) == pytest.approx(1.0)
    assert closeness.meaning(0.3) < closeness.meaning(0.6)

"""Pooling outside the graph, against sums written out."""

import numpy as np
import pytest

from filestore.embed._local import cores
from filestore.embed._model_folder import POOLINGS
from filestore.embed._onnx import pool

HIDDEN = np.array([[[1, 8], [3, 4], [5, 0]], [[2, 6], [9, 9], [9, 9]]], dtype=np.float32)
MASK = np.array([[1, 1, 1], [1, 0, 0]], dtype=np.int64)
EXPECTED = {
    "cls": [[1, 8], [2, 6]],
    "lasttoken": [[5, 0], [2, 6]],
    "max": [[5, 8], [2, 6]],
    "mean": [[3, 4], [2, 6]],
    "mean_sqrt_len_tokens": [[9 / 3**0.5, 12 / 3**0.5], [2, 6]],
    "weightedmean": [[(1 + 6 + 15) / 6, (8 + 8 + 0) / 6], [2, 6]],
}


@pytest.mark.parametrize("mode", POOLINGS)
def test_every_pooling_leaves_the_filling_out(mode: str) -> None:
    """Each pooling gives what its definition says, whatever stands beyond a text's tokens."""
    found = pool(HIDDEN, MASK, [mode], 0)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, EXPECTED[mode], rtol=1e-6)


def test_several_poolings_stand_side_by_side() -> None:
    """Two poolings give vectors twice as long, in their order."""
    found = pool(HIDDEN, MASK, ["cls", "max"], 0)
    np.testing.assert_allclose(found, [[1, 8, 5, 8], [2, 6, 2, 6]])


def test_a_prompt_can_be_left_out() -> None:
    """Tokens at the start that do not count change nothing."""
    found = pool(HIDDEN[:1], MASK[:1], ["mean"], 1)
    np.testing.assert_allclose(found, [[4, 2]])


def test_there_is_a_core() -> None:
    """At least one core is used."""
    assert cores() >= 1

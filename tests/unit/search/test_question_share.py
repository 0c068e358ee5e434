"""What the questions of a text add to its score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.search.ranking import with_question

COSINES = st.floats(-1, 1)


def test_what_was_asked_word_for_word_counts_whole() -> None:
    """Whatever the text itself is like."""
    assert with_question(0.2, 1.0) == 1.0
    assert with_question(0.2, 0.96) == pytest.approx(0.96)


def test_a_question_that_is_only_short_does_not_overtake() -> None:
    """A text that is nearer by itself stays in front of one with a question of the same form."""
    assert with_question(0.3, 0.7) < 0.5


@given(COSINES, COSINES, COSINES)
def test_a_question_never_takes_away(text: float, question: float, nearer: float) -> None:
    """The score lies between both, and a nearer question does not lower it."""
    score = with_question(text, question)
    assert text <= score <= max(text, question) + 1e-9
    assert with_question(text, max(question, nearer)) >= score - 1e-9

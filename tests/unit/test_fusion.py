"""Merging rankings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.fusion import Fused, reciprocal_rank_fusion

RANKINGS = st.dictionaries(
    st.sampled_from(["keyword", "vector", "title", "question"]),
    st.lists(st.integers(0, 12), unique=True),
)


def equal(rankings: dict[str, list[int]]) -> dict[str, float]:
    return dict.fromkeys(rankings, 1.0)


def test_score_is_the_sum_of_reciprocal_ranks() -> None:
    """An item's score is the weighted sum over the legs that found it, with its places."""
    fused = reciprocal_rank_fusion(
        {"keyword": ["a", "b"], "vector": ["b", "c"]}, weights={"keyword": 1.0, "vector": 2.0}
    )
    assert [one.item for one in fused] == ["b", "c", "a"]
    assert fused[0] == Fused(item="b", score=1 / 62 + 2 / 61, ranks={"keyword": 2, "vector": 1})
    assert fused[1].ranks == {"vector": 2}


def test_mirrored_places_tie_and_are_ordered_by_item() -> None:
    """Items with the same places in other legs have the same score and stand in item order."""
    fused = reciprocal_rank_fusion(
        {"x": ["c", "b", "a"], "y": ["b", "a", "c"], "z": ["a", "c", "b"]},
        weights={"x": 1.0, "y": 1.0, "z": 1.0},
    )
    assert [one.item for one in fused] == ["a", "b", "c"]
    assert len({one.score for one in fused}) == 1


def test_a_leg_of_weight_zero_is_left_out() -> None:
    """What only a switched-off leg found does not appear."""
    fused = reciprocal_rank_fusion(
        {"keyword": ["a"], "vector": ["b", "a"]}, weights={"keyword": 1.0, "vector": 0.0}
    )
    assert [(one.item, dict(one.ranks)) for one in fused] == [("a", {"keyword": 1})]


def test_an_item_listed_twice_counts_once() -> None:
    """A repeated item keeps its better place."""
    (first, _) = reciprocal_rank_fusion({"keyword": ["a", "b", "a"]}, weights={"keyword": 1.0})
    assert (first.item, first.score) == ("a", 1 / 61)


@pytest.mark.parametrize("weights", [{}, {"keyword": -1.0}, {"keyword": float("nan")}])
def test_a_weight_that_means_nothing_is_refused(weights: dict[str, float]) -> None:
    """A missing, negative or undefined weight is an error that names the leg."""
    with pytest.raises(ValueError, match="keyword"):
        reciprocal_rank_fusion({"keyword": ["a"]}, weights=weights)


def test_a_negative_constant_is_refused() -> None:
    """A constant that could divide by zero is an error."""
    with pytest.raises(ValueError, match="-1"):
        reciprocal_rank_fusion({"keyword": ["a"]}, weights={"keyword": 1.0}, constant=-1)


@given(RANKINGS)
def test_every_item_appears_once_best_first(rankings: dict[str, list[int]]) -> None:
    """The result holds each item of any leg once, sorted by score, then item."""
    fused = reciprocal_rank_fusion(rankings, weights=equal(rankings))
    assert sorted(one.item for one in fused) == sorted(set().union(*rankings.values()))
    assert fused == sorted(fused, key=lambda one: (-one.score, one.item))


@given(RANKINGS)
def test_the_order_of_the_legs_does_not_matter(rankings: dict[str, list[int]]) -> None:
    """Giving the legs in another order changes nothing."""
    backwards = dict(reversed(rankings.items()))
    assert reciprocal_rank_fusion(rankings, weights=equal(rankings)) == reciprocal_rank_fusion(
        backwards, weights=equal(rankings)
    )


@given(st.lists(st.integers(), unique=True))
def test_one_leg_keeps_its_order(ranking: list[int]) -> None:
    """Fusing a single ranking returns it."""
    fused = reciprocal_rank_fusion({"vector": ranking}, weights={"vector": 0.5})
    assert [one.item for one in fused] == ranking

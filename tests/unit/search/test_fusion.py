"""Merging rankings."""

import math
import operator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from filestore.search.ranking import DEPTH, Fused, Ranking, fuse

SCORES = st.integers(-8, 40).map(lambda eighths: eighths / 8)


def _numbered(start: int, scores: list[float]) -> dict[int, float]:
    return {start + 7 * place % 97: score for place, score in enumerate(scores)}


SCORED = st.builds(_numbered, st.integers(0, 40), st.lists(SCORES, max_size=60))


def _ranking(scored: dict[int, float], weight: float, floor: float | None) -> Ranking[int]:
    return Ranking(scored=tuple(scored.items()), weight=weight, floor=floor)


RANKINGS = st.dictionaries(
    st.sampled_from(["keyword", "vector", "title"]),
    st.builds(
        _ranking,
        SCORED,
        st.sampled_from([0.1, 0.5, 1.0]),
        st.sampled_from([None, 0.0, 0.25]),
    ),
)


def items(fused: list[Fused[Any]]) -> list[Any]:
    return [one.item for one in fused]


def crowd(prefix: str, *leaders: tuple[str, float]) -> Ranking[str]:
    """Leaders before a crowd whose scores fall off evenly from 3 to 2."""
    rest = [(f"{prefix}{place:02}", 3 - place / DEPTH) for place in range(DEPTH - len(leaders))]
    return Ranking(scored=(*leaders, *rest))


@pytest.mark.parametrize("sure", ["keyword", "vector"])
def test_the_ranking_that_is_sure_decides(sure: str) -> None:
    """What stands far out in one ranking comes before the first of a ranking without any such."""
    unsure = {"keyword": "vector", "vector": "keyword"}[sure]
    fused = fuse({sure: crowd("a", ("found", 9.0)), unsure: crowd("b", ("chance", 3.1))})
    assert items(fused)[:2] == ["found", "chance"]
    assert fused[0].parts[sure].evidence > 2 * fused[1].parts[unsure].evidence


def test_what_both_find_comes_first() -> None:
    """Of items that stand out alike, one that both rankings found is before those of one."""
    fused = fuse(
        {
            "keyword": crowd("a", ("one", 5.0), ("both", 4.9)),
            "vector": crowd("b", ("other", 5.0), ("both", 4.9)),
        }
    )
    assert items(fused)[:3] == ["both", "one", "other"]


def test_the_unit_of_scores_does_not_matter() -> None:
    """Scores of another size and zero, such as cosines beside BM25, weigh the same."""
    words = crowd("a", ("found", 9.0))
    scaled = Ranking(scored=[(item, score / 64 - 0.5) for item, score in words.scored])
    (plain,), (other,) = (
        [one for one in fuse({"x": r}) if one.item == "found"] for r in (words, scaled)
    )
    assert other.score == pytest.approx(plain.score)


def test_a_ranking_that_found_little_is_sure_of_it() -> None:
    """Where the rest has a known score, a single item stands out; where there is no rest, none."""
    other = crowd("b", ("chance", 3.1))
    known = fuse({"keyword": Ranking(scored=[("found", 2.5)], floor=0.0), "vector": other})
    alone = fuse({"keyword": Ranking(scored=[("found", 2.5)]), "vector": other})
    assert (known[0].item, known[0].parts["keyword"].evidence) == ("found", 10.0)
    assert alone[0].item == "chance"


def test_without_evidence_places_decide() -> None:
    """Rankings in which nothing stands out are merged by the reciprocals of the places."""
    flat = Ranking(scored=[("a", 1.0), ("b", 1.0)])
    fused = fuse({"keyword": flat, "vector": Ranking(scored=[("b", 1.0), ("c", 1.0)])})
    assert [(one.item, one.score) for one in fused] == [("b", 2 / 61), ("a", 1 / 61), ("c", 1 / 61)]


def test_a_hit_says_what_each_ranking_had_to_do_with_it() -> None:
    """Each ranking that found the item is named with place, score, evidence and points."""
    weak = Ranking(scored=[("b", 4.0), ("a", 1.0)], floor=0.0, weight=0.5)
    first, second = fuse({"keyword": weak, "vector": Ranking(scored=[("b", 0.5)])})
    assert (first.item, second.item) == ("b", "a")
    assert first.parts.keys() == {"keyword", "vector"}
    part = second.parts["keyword"]
    assert (part.rank, part.score, part.evidence) == (2, 1.0, 2.5)
    assert part.points == pytest.approx(0.5 * (2.5 + 1 / 62))
    assert second.score == part.points


def test_a_part_of_what_answers_stands_before_one_of_what_does_not() -> None:
    """Of two parts that stand out alike, the one with others beside it; what is alone keeps all."""
    alike = [("a1", 4.0), ("b1", 4.0), ("b2", 3.0), ("c", 4.0)]
    wholes = {"a1": ("a", 3), "b1": ("b", 3), "b2": ("b", 3), "c": ("c", 1)}
    rankings = {"keyword": Ranking(scored=alike, floor=0.0)}
    fused = {one.item: one for one in fuse(rankings, wholes)}
    assert [*fused] == ["c", "b1", "a1", "b2"]
    assert fused["c"].score == next(one.score for one in fuse(rankings) if one.item == "c")


def test_of_a_long_whole_the_best_parts_count() -> None:
    """Where ten of them stand out, it is as if there were no others."""
    best = [(f"a{n}", 4.0) for n in range(10)]
    scores = [
        fuse({"x": Ranking(scored=best, floor=0.0)}, {one: ("a", count) for one, _ in best})
        for count in (10, 1_000)
    ]
    assert scores[0] == scores[1]


def test_an_item_listed_twice_counts_once() -> None:
    """A repeated item keeps its better score."""
    fused = fuse({"keyword": Ranking(scored=[("a", 2.0), ("b", 1.5), ("a", 1.0)], floor=0.0)})
    assert [(one.item, one.parts["keyword"].score) for one in fused] == [("a", 2.0), ("b", 1.5)]


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_that_means_nothing_is_refused(weight: float) -> None:
    """A negative, undefined or endless weight is an error that names the ranking."""
    with pytest.raises(ValueError, match="keyword"):
        fuse({"keyword": Ranking(scored=[("a", 1.0)], weight=weight)})


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_means_nothing_is_refused(score: float) -> None:
    """A score that cannot be compared is an error that names the ranking."""
    with pytest.raises(ValueError, match="vector"):
        fuse({"vector": Ranking(scored=[("a", score)])})


@given(RANKINGS)
def test_every_item_appears_once_best_first(rankings: dict[str, Ranking[int]]) -> None:
    """The result holds each item of any ranking once, sorted by score, equal scores by item."""
    fused = fuse(rankings)
    listed = {item for ranking in rankings.values() for item, _ in ranking.scored}
    assert sorted(items(fused)) == sorted(listed)
    assert fused == sorted(fused, key=lambda one: (-one.score, one.item))


@given(RANKINGS, st.randoms())
def test_the_order_of_rankings_and_items_does_not_matter(
    rankings: dict[str, Ranking[int]], random: Any
) -> None:
    """Giving the same scores in another order changes nothing."""
    shuffled = {
        name: Ranking(
            scored=random.sample(ranking.scored, len(ranking.scored)),
            weight=ranking.weight,
            floor=ranking.floor,
        )
        for name, ranking in reversed(rankings.items())
    }
    assert fuse(shuffled) == fuse(rankings)


@given(RANKINGS, st.randoms())
def test_better_in_every_ranking_is_better_in_all(
    rankings: dict[str, Ranking[int]], random: Any
) -> None:
    """An item that no ranking puts behind another, and one puts before it, stands before it."""
    fused = fuse(rankings)
    assume(len(fused) > 1)
    for _ in range(30):
        first, second = sorted(random.sample(range(len(fused)), 2))
        before, behind = (_places(fused[place], rankings) for place in (first, second))
        assert before == behind or any(map(operator.lt, before, behind))


def _places(one: Fused[int], rankings: dict[str, Ranking[int]]) -> list[float]:
    return [one.parts[name].rank if name in one.parts else math.inf for name in rankings]


@given(SCORED, st.sampled_from([None, 0.0]))
def test_a_ranking_beside_empty_ones_keeps_its_order(
    scored: dict[int, float], floor: float | None
) -> None:
    """What one ranking found, and no other, stays in its order, ties by item."""
    fused = fuse({"keyword": _ranking(scored, 0.5, floor), "vector": Ranking(scored=[])})
    assert items(fused) == sorted(scored, key=lambda item: (-scored[item], item))


@given(RANKINGS, SCORED)
def test_a_ranking_of_weight_zero_is_left_out(
    rankings: dict[str, Ranking[int]], scored: dict[int, float]
) -> None:
    """A ranking that is switched off adds no item, no point and no word of why."""
    assert fuse(rankings | {"off": _ranking(scored, 0.0, None)}) == fuse(rankings)


@given(RANKINGS)
def test_evidence_has_bounds(rankings: dict[str, Ranking[int]]) -> None:
    """However equal the crowd, evidence stays between 0 and 50."""
    parts = [part for one in fuse(rankings) for part in one.parts.values()]
    assert all(0 <= part.evidence <= 50.001 and part.points > 0 for part in parts)

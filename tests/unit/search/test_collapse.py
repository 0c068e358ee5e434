"""Which of summaries and texts below them take a place, whatever the ranking."""

from hypothesis import given
from hypothesis import strategies as st

from filestore.core.paths import ChunkPath
from filestore.search.answer import Why
from filestore.search.collapse import CLEAR, collapse
from filestore.search.ranking import Ranked

ABOVE = {"a": ["s"], "b": ["s"], "c": ["t"], "s": ["top"], "t": ["top"]}


def no_reason() -> Why:
    """Nothing to tell."""
    return {}


def a_ranking(*scored: tuple[str, float]) -> list[Ranked]:
    """Texts with their scores."""
    return [((ChunkPath(path), 0), score, no_reason) for path, score in scored]


def collapsed(*scored: tuple[str, float]) -> list[str]:
    """The paths that are left, in order."""
    above = {ChunkPath(path): [ChunkPath(one) for one in _all_above(path)] for path, _ in scored}
    found, _ = collapse(a_ranking(*scored), above)
    return [path for (path, _), _, _ in found]


def _all_above(path: str) -> list[str]:
    return [one for parent in ABOVE.get(path, ()) for one in (parent, *_all_above(parent))]


def test_a_summary_that_clearly_answers_stands_above_its_texts() -> None:
    """It keeps its place, and so do they."""
    assert collapsed(("s", 9.0), ("x", 5.0), ("a", 1.0)) == ["s", "x", "a"]


def test_a_summary_whose_texts_answer_alike() -> None:
    """Where several of them answer about equally, the question is about the whole."""
    below = {ChunkPath(path): [ChunkPath("s")] for path in "abc"}
    for last, first in ((4.5, "s"), (4.0, "a")):
        ranking = a_ranking(("s", 6.0), ("a", 5.0), ("b", 4.6), ("c", last))
        (path, _), _, _ = collapse(ranking, below)[0][0]
        assert path == first


def test_a_text_near_its_summary_takes_its_place() -> None:
    """The text is lifted, and tells of the summary and the score that lifted it."""
    found, lifted = collapse(
        a_ranking(("s", 6.0), ("x", 5.9), ("a", 5.0), ("b", 4.9)),
        {ChunkPath("a"): [ChunkPath("s")], ChunkPath("b"): [ChunkPath("s")]},
    )
    assert [(path, score) for (path, _), score, _ in found] == [("a", 6.0), ("x", 5.9), ("b", 4.9)]
    assert found[0][2]() == {"summary": {"rank": 1, "score": 6.0}}
    assert lifted == {"a": "s"}


def test_a_text_above_its_summaries() -> None:
    """What says no more than a text that stands before it takes no place."""
    assert collapsed(("a", 9.0), ("s", 8.0), ("top", 7.0), ("t", 6.0)) == ["a", "t"]


def test_a_chain_of_summaries() -> None:
    """Of a summary and those above and below it the best stays, where all have texts."""
    texts = ("a", 1.0), ("c", 1.0)
    assert collapsed(("top", 9.0), ("s", 8.0), ("t", 7.0), *texts) == ["top", "a", "c"]
    assert collapsed(("s", 9.0), ("top", 8.0), ("t", 7.0), *texts) == ["s", "t", "a", "c"]


def test_a_summary_none_of_whose_texts_were_found() -> None:
    """It is to the summaries above it what a text is: it takes the place of one that is near."""
    assert collapsed(("top", 9.0), ("s", 8.0), ("t", 7.0)) == ["s", "t"]
    assert collapsed(("top", 90.0), ("s", 8.0), ("t", 7.0)) == ["top", "s", "t"]


def test_without_relations_nothing_changes() -> None:
    """Summaries of nothing that was found compete as all others do."""
    assert collapsed(("x", 3.0), ("s", 2.0), ("y", 1.0)) == ["x", "s", "y"]


PATHS = ["a", "b", "c", "s", "t", "top", "x", "y"]


@given(st.permutations(PATHS), st.lists(st.floats(0.1, 99), min_size=8, max_size=8))
def test_no_text_is_lost_or_falls_behind_another(paths: list[str], scores: list[float]) -> None:
    """All texts are there, once; one that was not lifted passes none; scores fall."""
    scored = list(zip(paths, sorted(scores, reverse=True), strict=True))
    found, lifted = collapse(
        a_ranking(*scored), {ChunkPath(p): list(map(ChunkPath, _all_above(p))) for p in paths}
    )
    kept = [path for (path, _), _, _ in found]
    assert len(kept) == len(set(kept))
    texts = {"a", "b", "c", "x", "y"}
    assert texts <= set(kept)
    unmoved = [path for path in paths if path in texts and path not in lifted]
    assert [path for path in kept if path in unmoved] == unmoved
    assert [score for _, score, _ in found] == sorted((one for _, one, _ in found), reverse=True)
    for text, summary in lifted.items():
        before = dict(scored)
        assert before[text] <= before[summary] < CLEAR * before[text]
        assert summary not in kept

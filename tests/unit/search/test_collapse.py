"""What stands where of summaries and texts below them, whatever the ranking."""

from hypothesis import given
from hypothesis import strategies as st

from filestore.core.paths import ChunkPath
from filestore.search.ranking import Ranked, Why, collapse

ABOVE = {"a": ["s", "top"], "b": ["s", "top"], "c": ["t", "top"], "s": ["top"], "t": ["top"]}
SUMMARIES = {ChunkPath(one) for one in ("s", "t", "top")}
PATHS = ["a", "b", "c", "s", "t", "top", "x", "y"]


def no_reason() -> Why:
    """Nothing to tell."""
    return {}


def collapsed(*scored: tuple[str, float]) -> tuple[list[Ranked], dict[ChunkPath, ChunkPath]]:
    """What becomes of a ranking."""
    ranked: list[Ranked] = [((ChunkPath(path), 0), score, no_reason) for path, score in scored]
    above = {ChunkPath(path): [*map(ChunkPath, ABOVE.get(path, ()))] for path, _ in scored}
    return collapse(ranked, SUMMARIES, above)


def test_the_best_text_takes_the_place_of_its_summary() -> None:
    """However much better that one answers; the text tells of it, and of its score."""
    found, lifted = collapsed(("s", 90.0), ("x", 5.9), ("a", 5.0), ("b", 4.9))
    assert [(path, score) for (path, _), score, _ in found] == [("a", 90.0), ("x", 5.9), ("b", 4.9)]
    assert found[0][2]() == {"summary": {"rank": 1, "score": 90.0}}
    assert lifted == {"a": "s"}


def test_a_summary_below_its_text_is_left_out() -> None:
    """It says nothing more; so is one of several levels whose text was lifted by another."""
    found, lifted = collapsed(("top", 9.0), ("s", 8.0), ("a", 7.0), ("x", 6.0))
    assert ([path for (path, _), _, _ in found], lifted) == (["a", "x"], {"a": "top"})


def test_a_summary_none_of_whose_texts_were_found() -> None:
    """It stands behind all texts."""
    assert [path for (path, _), _, _ in collapsed(("t", 9.0), ("a", 5.0), ("x", 1.0))[0]] == [
        "a",
        "x",
        "t",
    ]


@given(st.permutations(PATHS), st.integers(1, len(PATHS)))
def test_no_summary_stands_above_a_text(paths: list[str], count: int) -> None:
    """All texts are there, once; one that was not lifted passes none."""
    paths = paths[:count]
    found, lifted = collapsed(*((path, 9.0 - place) for place, path in enumerate(paths)))
    kept = [path for (path, _), _, _ in found]
    texts = [path for path in paths if path not in SUMMARIES]
    assert sorted(kept[: len(texts)]) == sorted(texts)
    assert all(path in SUMMARIES for path in kept[len(texts) :])
    unmoved = [path for path in texts if path not in lifted]
    assert [path for path in kept if path in unmoved] == unmoved

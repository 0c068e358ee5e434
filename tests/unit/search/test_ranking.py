"""What each retriever has to say where both were asked."""

import pytest

from filestore.search.ranking import fuse_rankings


def found(first: str, crowd: str) -> list[tuple[str, float]]:
    """A ranking whose first item stands far out."""
    return [(first, 9.0), *((f"{crowd}{place:02}", 3 - place / 50) for place in range(49))]


@pytest.mark.parametrize(
    ("known", "fluency", "first"),
    [(1.0, 1.0, "meant"), (0.4, 1.0, "meant"), (1.0, 0.5, "said"), (0.04, 0.5, "meant")],
)
def test_who_knows_the_language_decides(known: float, fluency: float, first: str) -> None:
    """The model where it is fluent, words where it is not and the documents have them."""
    rankings = {"keyword": found("said", "a"), "vector": found("meant", "b")}
    fused = fuse_rankings(rankings, lexical=False, known=known, fluency=fluency)
    assert fused[0].item == first


def test_words_compared_as_vectors_know_every_language() -> None:
    """How fluent a model is says nothing of them."""
    rankings = {"keyword": found("said", "a"), "vector": found("meant", "b")}
    one, other = (fuse_rankings(rankings, lexical=True, fluency=fluency) for fluency in (0.0, 1.0))
    assert one == other

"""Anything that can be searched is judged by one mechanism; what commands print does not move."""

import pytest
from msgspec import Struct

from filestore.past.compare import ComparedQuery, StoreComparison
from filestore.search import Query
from filestore.search.compare_models import ModelComparison
from filestore.search.evaluate import Comparison, Evaluation, QuestionResult, Unwanted, Variant
from filestore.search.metrics import Chunk, goal_of, judge

KEYS = {
    Evaluation: "queries k modes unwanted hybrid compared notes behind per_query",
    QuestionResult: "id line query modes unwanted",
    Unwanted: "count named rate",
    Comparison: "measure against difference interval_95",
    Variant: "name scores difference interval_95 milliseconds tokens",
    ModelComparison: (
        "queries k mode asked models difference interval_95 overlap worst per_query notes"
    ),
    StoreComparison: (
        "queries k mode questions old new gained lost overlap difference interval_95 changed failed"
        " notes"
    ),
    ComparedQuery: "id line query overlap answers old new",
}
"""What `evaluate`, `evaluate --compare`, `embedder compare` and `compare` write with --json."""


@pytest.mark.parametrize("answer", KEYS, ids=lambda one: one.__name__)
def test_json_keys_stay(answer: type[Struct]) -> None:
    renamed = {"count": "k"} if answer is not Unwanted else {}
    last = [name.rpartition(".")[2] for name in answer.KEYS.split()]  # type: ignore[attr-defined]
    renamed |= {"scores": "modes"} if answer is QuestionResult else {}
    assert [renamed.get(name, name) for name in last] == KEYS[answer].split()


def chunks(count: int) -> list[Chunk]:
    return [Chunk(path=f"{n}.md", resource="", source=f"{n // 10}.pdf") for n in range(count)]


def test_more_is_asked_for_until_there_are_as_many_things_as_are_looked_at() -> None:
    asked = []

    def hits(query: Query) -> list[Chunk]:
        asked.append(query.k)
        return chunks(40)[: query.k]

    goal = goal_of("words", {("source", "2.pdf"): 1.0})
    found = judge(hits, Query(text="words", k=3), goal)
    assert asked == [3, 12, 48]
    assert [one.path for one in found.hits] == ["0.md", "1.md", "2.md"]
    assert found.scores is not None
    assert found.scores.mrr == 1 / 3


def test_what_nobody_knows_is_asked_once_and_has_no_score() -> None:
    found = judge(lambda query: chunks(9)[: query.k], Query(text="words", k=3), None)
    assert len(found.hits) == 3
    assert found.scores is None
    assert not found.unwanted

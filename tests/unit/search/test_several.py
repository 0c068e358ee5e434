"""Answers of several stores as one."""

from hypothesis import given
from hypothesis import strategies as st

from filestore.core.errors import FilestoreError
from filestore.search import Query
from filestore.search.several import merged

LISTS = st.dictionaries(
    st.text(max_size=5), st.lists(st.floats(0, 9), max_size=8), min_size=1, max_size=5
)


@given(LISTS, st.integers(1, 30))
def test_hits_are_merged_by_rank(lists: dict[str, list[float]], most: int) -> None:
    """Each store keeps its order, none is before another's better rank, and no more than asked."""
    answers = {
        name: {
            "query": "q",
            "hits": [{"path": str(rank), "score": one} for rank, one in enumerate(scores)],
            "nearest": [],
            "notes": [],
        }
        for name, scores in lists.items()
    }
    hits = merged(answers, {}, Query(k=most))["hits"]
    assert len(hits) == min(most, sum(map(len, lists.values())))
    order = [(int(hit["path"]), list(lists).index(hit["store"])) for hit in hits]
    assert order == sorted(set(order))


def test_what_was_typed_comes_before_other_spellings() -> None:
    """Where one store has the word, nothing is respelt; else the nearest are given."""
    hit, plain = {"path": "a"}, {"query": "q", "hits": [], "nearest": [], "notes": []}
    other = plain | {"hits": [hit], "respelt": "p"}
    near = plain | {"nearest": [hit]}
    found = merged({"one": other, "two": plain | {"hits": [hit]}}, {}, Query())
    assert [one["store"] for one in found["hits"]] == ["two"]
    assert found["respelt"] is None
    found = merged({"one": other, "two": near}, {"three": FilestoreError("locked")}, Query())
    assert [one["store"] for one in found["hits"]] == ["one"]
    assert (found["respelt"], found["nearest"]) == ("p", [])
    assert found["notes"] == ["three did not answer: locked"]
    assert merged({"two": near}, {}, Query())["nearest"] == [{"store": "two", "path": "a"}]

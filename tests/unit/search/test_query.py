"""What is asked of a search: a query that makes no sense cannot be made."""

from typing import Any

import pytest
from msgspec.structs import replace

from filestore.core.errors import UsageError
from filestore.search import Query
from tests.advice import all_words


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"k": 0}, "-k must be at least 1, found 0"),
        ({"context": -1}, "context must not be negative, found -1"),
        ({"rewrite": 21}, "--rewrite takes 0 to 20, found 21"),
        ({"mode": "keywords"}, "unknown mode 'keywords'; did you mean 'keyword'?"),
        ({"syntax": "all"}, "unknown syntax 'all'"),
        ({"group": "folder"}, "unknown group 'folder'"),
        ({"model": "other"}, "unknown model 'other'"),
    ],
)
def test_an_option_out_of_its_range_is_refused(option: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as made:
        Query.of("heating", option)
    with pytest.raises(UsageError) as changed:
        replace(Query(text="heating"), **option)
    assert made.value.message == changed.value.message == said


def test_options_beside_a_query_take_the_place_of_its_own() -> None:
    query = Query(text="heating", k=3, mode="keyword")
    assert Query.of(query, {}) == query
    assert Query.of(query, {"k": 5}) == Query(text="heating", k=5, mode="keyword")
    with pytest.raises(TypeError):
        Query.of("heating", {"limit": 5})


def test_one_text_stands_for_a_list_of_one() -> None:
    one = Query.of("heating", {"source": "docs/*", "kind": "chunk", "where": {"tags": "gas"}})
    many = Query(text="heating", source=["docs/*"], kind=["chunk"], where={"tags": ["gas"]})
    assert one == many


def test_no_filter_may_be_said_as_none() -> None:
    assert not Query.of("heating", {"where": None}).has_filters


def test_bytes_that_are_no_text_are_asked_as_a_question_mark() -> None:
    assert Query(text="caf\udce9").text == "caf?"


def test_no_value_of_a_filter_is_no_filter() -> None:
    """None leaves everything; an empty name leaves what has that name, and that is nothing."""
    query = Query(text="pump", where=None, source=None)  # type: ignore[arg-type]
    assert (query.where, query.source, query.has_filters) == ((), (), False)
    empty = Query(text="pump", source="", kind="")
    assert (empty.source, empty.kind, empty.has_filters) == (("",), ("",), True)


@pytest.mark.parametrize("value", ["2026", "2026-05", "2026-05-03", "2026-05-03T14:30Z", "9999"])
def test_dates_that_a_query_takes(value: str) -> None:
    query = Query(text="x", since=value, until=value, sort="date")
    assert query.has_filters


@pytest.mark.parametrize("value", ["", "0000", "yesterday", "2026-13", "May 3, 2026", "\x1b[31m"])
def test_dates_that_a_query_refuses(value: str) -> None:
    for name in ("since", "until"):
        with pytest.raises(UsageError, match=f"--{name} takes a date") as caught:
            Query(text="x", **{name: value})  # type: ignore[arg-type]
        assert "2026-05-03" in all_words(caught.value)
        assert "\x1b" not in caught.value.message


def test_a_query_from_after_its_end_is_refused() -> None:
    with pytest.raises(UsageError, match="--since 2026-03 is after --until 2026-02"):
        Query(text="x", since="2026-03", until="2026-02")
    Query(text="x", since="2026-03-31", until="2026-03")

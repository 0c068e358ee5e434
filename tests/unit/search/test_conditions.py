"""Conditions on metadata: how they are typed, and what satisfies them."""

import pytest

from filestore.core.errors import UsageError
from filestore.search import Query, conditions
from filestore.search.conditions import Condition


@pytest.mark.parametrize(
    ("word", "condition"),
    [
        ("tags=git", ("tags", "=", "git")),
        ("created>=2024-05-01", ("created", ">=", "2024-05-01")),
        ("created >= 2024-05-01", ("created", ">=", "2024-05-01")),
        ("status!=done", ("status", "!=", "done")),
        ("formula=a=b", ("formula", "=", "a=b")),
        ("rank<3", ("rank", "<", "3")),
        ("a.b.c=", ("a.b.c", "=", "")),
        ("note= kept", ("note", "=", " kept")),
    ],
)
def test_the_first_operator_parts_key_and_value(word, condition):
    """Blanks around it are none of the value only where one stands before it."""
    found = conditions.typed(word, "--where")
    assert (found.key, found.op, found.value) == condition


@pytest.mark.parametrize(
    ("op", "wanted", "holds", "fails"),
    [
        (">=", "2024-05-01", "2024-05-01 2024-05-01T00:00:00 2025", "2024-04-30 2024 soon"),
        (">", "2024-05-01", "2024-05-02", "2024-05-01 2024-05-01T12:00"),
        ("<=", "2024-05", "2024-05-31 2024-01-01", "2024-06-01"),
        ("<", "2024-05", "2024-04-30", "2024-05-01"),
        ("=", "2024-05", "2024-05-01 2024-05-31T23:59:59Z", "2024-06-01 2024"),
        ("=", "2024-05-01", "2024-05-01T23:00:00+00:00", "2024-05-01T23:00:00-02:00"),
        (">", "9", "10 9.5 1e3", "9 9.0 -10 09 010 9a"),
        ("=", "2024", "2024-12-31 2024-02-29T12:00", "2023-12-31 2025"),
        ("=", "2024-12", "2024-12-31", "2025-01-01 2024-11-30"),
        (">=", "2024", "9999-12-31 9999-12 2024-01-01", "2023"),
        ("=", "1", "1.0 1", "2 01"),
        ("<", "0", "-1", "0 1"),
    ],
)
def test_values_are_compared_as_what_they_are(op, wanted, holds, fails):
    """Days and months as times, numbers as numbers; other texts are neither more nor less."""
    test = conditions.test(op, wanted)
    assert [one for one in holds.split() if not test(one)] == []
    assert [one for one in fails.split() if test(one)] == []


def test_a_leap_day_is_a_day_and_another_is_none():
    """What no calendar has is refused before anything is searched, and is a text where equal."""
    assert Query(where=[{"key": "at", "op": ">", "value": "2024-02-29"}])
    for value in ("2023-02-29", "2024-13-01", "2024-05-01T25:00"):
        with pytest.raises(UsageError, match="not a day of the calendar"):
            Query(where=[{"key": "at", "op": ">", "value": value}])
        assert Query(where={"at": value})


@pytest.mark.parametrize(
    "where",
    [
        [{"op": "=", "value": "x"}],
        [{"key": "a", "op": "~", "value": "x"}],
        [{"key": "a", "value": "x", "more": 1}],
        ["a=b"],
        [{"key": "a", "op": "<", "value": "soon"}],
    ],
)
def test_what_makes_no_sense_cannot_be_asked(where):
    """Not even of a store that has nothing of it."""
    with pytest.raises(UsageError):
        Query(where=where)


def test_both_forms_are_the_same():
    """Of key and value every one must hold; in a condition one of a list is enough."""
    plain = Query(where={"a": ["x", 1], "b": True}).where
    assert [(one.key, one.texts()) for one in plain] == [
        ("a", ("x",)),
        ("a", ("1",)),
        ("b", ("true",)),
    ]
    one = Condition(key="a", value=["x", 1])
    assert Query(where=[{"key": "a", "value": ["x", 1]}]).where == (one,)
    assert list(conditions.alternatives(["a|b", "c"], lambda _: False)) == ["a", "b", "c"]
    assert list(conditions.alternatives(["a|b"], "a|b".__eq__)) == ["a|b"]

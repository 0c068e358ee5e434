"""What must hold of metadata: what a person wrote in frontmatter can be asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunks.frontmatter import (
    MAX_VALUE,
    METADATA_DEPTH,
    UNFILTERED,
    metadata_pairs,
    value_text,
)

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8)
KEYS = st.text(min_size=1, max_size=6).filter(lambda key: key not in UNFILTERED)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("true", "true"),
        (True, "true"),
        (None, "null"),
        (7, "7"),
        (1.5, "1.5"),
        (-0.0, "-0.0"),
        ("", ""),
        ("é", "é"),
        (2**63, "9223372036854775808"),
    ],
)
def test_scalars_are_compared_as_they_are_written(value, text):
    """A number or a truth value is asked for as it stands in the file."""
    assert value_text(value) == text


def test_lists_and_mappings_are_flattened():
    """A list gives one fact an item, a mapping keys joined by dots, in order."""
    values = {"tags": ["a", "b"], "by": {"name": "Ann", "roles": ["x", 2]}, "draft": False}
    assert list(metadata_pairs(values)) == [
        ("tags", "a"),
        ("tags", "b"),
        ("by.name", "Ann"),
        ("by.roles", "x"),
        ("by.roles", "2"),
        ("draft", "false"),
    ]


def test_a_fact_is_told_once():
    """A tag written twice, or once as a text and once as a number, is one fact."""
    assert list(metadata_pairs({"tags": ["a", "a", 1, "1"]})) == [("tags", "a"), ("tags", "1")]


def test_mappings_in_lists_are_asked_for_by_their_keys():
    """Authors as a list of mappings are found by any of their names."""
    values = {"authors": [{"name": "Ann"}, {"name": "Bo"}]}
    assert list(metadata_pairs(values)) == [("authors.name", "Ann"), ("authors.name", "Bo")]


@pytest.mark.parametrize("key", sorted(UNFILTERED))
def test_our_bookkeeping_is_no_fact_but_a_users_key_below_is(key):
    """Only the top-level keys that are ours are left out."""
    assert list(metadata_pairs({key: "x", "mine": {key: "y"}})) == [(f"mine.{key}", "y")]


def test_long_texts_are_no_metadata():
    """A value of the longest length is a fact, one character more is not."""
    fits, long = "a" * MAX_VALUE, "a" * (MAX_VALUE + 1)
    assert list(metadata_pairs({"a": fits, "b": long})) == [("a", fits)]


def test_mappings_are_followed_to_a_bounded_depth():
    """What is nested deeper than the limit is no fact, and no error."""
    values: dict = {"leaf": "deep"}
    for level in range(METADATA_DEPTH, 0, -1):
        values = {f"k{level}": values, "leaf": str(level)}
    found = dict(metadata_pairs({"top": "x", **values}))
    assert found["top"] == "x"
    assert "k1.k2.k3.k4.leaf" in found
    assert list(metadata_pairs({"k0": values | {}})) != []
    assert "k0.k1.k2.k3.k4.leaf" not in dict(metadata_pairs({"k0": values}))


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_pairs_are_unique_texts_of_bounded_length(values):
    """Whatever the frontmatter holds, the metadata is pairs of texts, each once, none too long."""
    found = list(metadata_pairs(values))
    assert len(found) == len(set(found))
    assert all(isinstance(key, str) and len(value) <= MAX_VALUE for key, value in found)
    assert list(metadata_pairs(values)) == found


@given(st.dictionaries(KEYS.filter(lambda key: "." not in key), SCALARS, max_size=6))
def test_every_flat_value_is_a_pair(values):
    """Frontmatter of plain scalars is asked for key by key."""
    assert dict(metadata_pairs(values)) == {key: value_text(value) for key, value in values.items()}

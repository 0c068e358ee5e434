"""Metadata of other frameworks as keys of chunk files, and back."""

from datetime import date
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from filestore.adapters.folder import Passage, read, written

TAKEN = frozenset(("source", "kind", "metadata"))
KEYS = st.one_of(st.sampled_from([*TAKEN, "path", "id", ""]), st.text(max_size=4))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_metadata_comes_back_as_it_was_written(metadata: dict) -> None:
    """Whatever its keys are called; in the file none is called as one of the store."""
    keys = written(metadata, TAKEN)
    assert read(keys, TAKEN) == metadata
    assert not keys.keys() & (TAKEN - {"metadata"})


@given(st.dictionaries(KEYS, VALUES, max_size=6))
@example({"source": 1, "metadata": {"source": 2}})
def test_what_a_person_writes_is_read_as_it_is(keys: dict) -> None:
    """A table of that name is unfolded only where the store itself would have written it."""
    found = read(keys, TAKEN)
    assert found == keys or written(found, TAKEN) == keys


def test_values_that_json_does_not_have_become_such() -> None:
    """Dates, sets and the like are text and lists in a file."""
    number = UUID(int=7)
    given_values = {"on": date(2024, 2, 29), "of": {"b", "a"}, "id": number, "at": (1, 2)}
    assert written(given_values, TAKEN) == {
        "on": "2024-02-29",
        "of": ["a", "b"],
        "id": str(number),
        "at": [1, 2],
    }


def test_where_a_hit_stands_is_hidden_by_nothing() -> None:
    """A key of the document's own with such a name goes one level deeper; its source is its own."""
    passage = Passage(
        id="1",
        text="",
        own={"path": "/etc/passwd", "source": "mine", "x": 1},
        evidence={"path": "chunked/a.md", "source": "chunked/a.md", "line": 2},
    )
    assert passage.metadata == {
        "path": "chunked/a.md",
        "line": 2,
        "source": "mine",
        "x": 1,
        "metadata": {"path": "/etc/passwd"},
    }
    assert passage.evidence_keys == ("path", "line")

"""How far words are apart, and which known one was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.spelling import closest, did_you_mean, did_you_mean_path, edits

WORDS = st.text("abc", max_size=6)


@pytest.mark.parametrize(
    ("word", "other", "distance"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("same", "same", 0),
        ("recieve", "receive", 1),
        ("comittee", "committee", 1),
        ("acommodate", "accommodate", 1),
        ("ca", "abc", 3),
        ("kitten", "sitting", 3),
        ("größe", "grösse", 2),
    ],
)
def test_edits(word, other, distance):
    """Letters added, dropped, replaced, and neighbours swapped count one each."""
    assert edits(word, other) == distance


@given(WORDS, WORDS)
def test_edits_is_a_distance(word, other):
    """The same both ways, nothing only between equals, and at most every letter."""
    found = edits(word, other)
    assert found == edits(other, word)
    assert (found == 0) == (word == other)
    assert abs(len(word) - len(other)) <= found <= max(len(word), len(other))


@given(WORDS, st.integers(0, 5), st.sampled_from("abc"))
def test_one_change_is_one_edit(word, place, letter):
    """A letter put in or taken out anywhere is one edit."""
    place = min(place, len(word))
    assert edits(word, word[:place] + letter + word[place:]) == 1


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("stauts", ("status",)),
        ("STATUS", ("status",)),
        ("st", ("status", "stop")),
        ("--stats", ("status",)),
        ("tset", ()),
        ("xy", ()),
        ("", ()),
        ("--", ()),
    ],
)
def test_closest(word, meant):
    """What a word begins, else the nearest; a word that is near nothing means nothing."""
    assert closest(word, ("status", "stop", "rm", "-k")) == meant


def test_the_end_of_a_sentence():
    """All that may be meant are named, or nothing is said."""
    assert did_you_mean("rn", ("rm", "ls")) == "; did you mean 'rm'?"
    assert did_you_mean("st", ("stop", "status")) == "; did you mean 'stop' or 'status'?"
    assert did_you_mean("zebra", ("stop", "status")) == ""


def test_paths_are_offered_by_their_names() -> None:
    """Whichever folder was typed; nothing is offered for what looks like none of them."""
    known = ["docs/glossary.md", "docs/lease.md", "glossary", ""]
    said = did_you_mean_path("chunked/glossery.md", known)
    assert said == "; did you mean 'docs/glossary.md' or 'glossary'?"
    assert did_you_mean_path("zebra.md", known) == did_you_mean_path("zebra.md", []) == ""

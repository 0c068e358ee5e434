"""What must hold of order keys, whoever inserts where."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from filestore.chunks.order_key import between, number_key, valid

TAGS = st.text("0123456789abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=6)
NUMBERS = st.integers(0, 10**9)
KEYS = st.text("0123456789abz", min_size=1, max_size=8).filter(valid) | NUMBERS.map(number_key)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[str | None, str | None]:
    """A gap with room in it, open at either end or not."""
    low, high = draw(st.none() | KEYS), draw(st.none() | KEYS)
    if low is not None and high is not None:
        low, high = sorted((low, high))
        assume(low.rstrip("0") != high.rstrip("0"))
    return low, high


def test_number_keys_have_a_length_letter():
    """Numbers get one digit under 36, two for the next 1,296, and so on."""
    numbers = (0, 1, 35, 36, 37, 1331, 1332)
    assert [number_key(n) for n in numbers] == ["a0", "a1", "az", "b00", "b01", "bzz", "c000"]


@given(NUMBERS, NUMBERS)
def test_number_keys_sort_as_numbers_do(one, other):
    """The keys of two numbers compare as the numbers do."""
    assert (one < other) == (number_key(one) < number_key(other))
    assert valid(number_key(one))


@pytest.mark.parametrize("number", [-1, 36**27])
def test_numbers_without_a_key_are_refused(number):
    """A negative number and one too long for a length letter are refused."""
    with pytest.raises(ValueError, match="order key"):
        number_key(number)


@given(bounds(), TAGS, st.integers(0, 100))
def test_keys_rise_strictly_between_the_bounds(gap, tag, count):
    """A run of any length lies in its gap, in order, and something can be put before its end."""
    low, high = gap
    keys = between(low, high, tag=tag, count=count)
    assert len(keys) == count
    line = ([] if low is None else [low]) + keys + ([] if high is None else [high])
    assert all(before < after for before, after in pairwise(line))
    assert all(valid(key) and not key.endswith("0") and tag in key for key in keys)


@given(bounds(), TAGS, TAGS, st.integers(1, 50), st.integers(1, 50))
def test_two_runs_at_the_same_place_never_interleave(gap, tag, other_tag, count, other_count):
    """Merging two insertions with different tags leaves each of them unbroken."""
    assume(tag != other_tag)
    mine = between(*gap, tag=tag, count=count)
    theirs = between(*gap, tag=other_tag, count=other_count)
    merged = sorted(mine + theirs)
    assert merged in (mine + theirs, theirs + mine)


@given(st.lists(st.integers(0, 1000), max_size=60), TAGS)
def test_any_history_of_insertions_keeps_its_order(places, tag):
    """Chunks inserted anywhere, one after the other, sort as they were placed."""
    keys = [number_key(1), number_key(2)]
    for place in places:
        position = place % (len(keys) + 1)
        low = keys[position - 1] if position else None
        high = keys[position] if position < len(keys) else None
        keys[position:position] = between(low, high, tag=tag, count=1)
    assert keys == sorted(set(keys))


@pytest.mark.parametrize(("low", "high"), [(None, None), ("a5", None), ("a5", "a6")])
def test_appending_a_thousand_times_keeps_keys_short(low, high):
    """A thousand insertions, each after the last, cost about 30 characters."""
    for _ in range(1000):
        (low,) = between(low, high, tag="k7q2", count=1)
    assert len(low) <= 45


@pytest.mark.parametrize(("low", "high"), [(None, None), (None, "a1"), ("a5", "a6")])
def test_prepending_a_thousand_times_keeps_keys_short(low, high):
    """A thousand insertions, each before the last, cost about 30 characters."""
    for _ in range(1000):
        (high,) = between(low, high, tag="k7q2", count=1)
    assert len(high) <= 45


def test_the_worst_place_costs_half_a_character_each_time():
    """Always inserting between the last two keys grows keys in proportion, and no faster."""
    low, high = "a5", "a6"
    for step in range(400):
        (key,) = between(low, high, tag="k7q2", count=1)
        low, high = (key, high) if step % 2 else (low, key)
    assert len(key) < 250


@given(NUMBERS, st.integers(1, 20), TAGS)
def test_a_run_at_the_end_stays_before_the_next_number(number, count, tag):
    """A numbered file that is added after an appended run sorts after it."""
    keys = between(number_key(number), None, tag=tag, count=count)
    more = between(keys[-1], None, tag=tag, count=count)
    assert more[-1] < number_key(number + 1)


@pytest.mark.parametrize(("low", "high"), [("b", "a"), ("a1", "a1"), ("A", "b"), ("a1", "b 1")])
def test_bad_bounds_are_refused(low, high):
    """Bounds in the wrong order, equal, or that are no keys are refused."""
    with pytest.raises(ValueError, match="key"):
        between(low, high, tag="k", count=1)


def test_a_gap_without_room_is_refused():
    """Nothing sorts between a text and the same text with a 0 after it."""
    with pytest.raises(ValueError, match="nothing sorts between"):
        between("a", "a0", tag="k", count=1)


@pytest.mark.parametrize(("tag", "count"), [("", 1), ("K", 1), ("k" * 36, 1), ("k", -1)])
def test_bad_tags_and_counts_are_refused(tag, count):
    """A tag outside base 36, an empty or long one, and a negative count are refused."""
    with pytest.raises(ValueError, match=r"tag|run"):
        between(None, None, tag=tag, count=count)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        *[("a0", True), ("b10", True), ("a5i", True), ("5", True), ("", False), ("a5i0", False)],
        *[("b0", False), ("A1", False), ("a-1", False), ("a1\n", False), ("é", False)],
    ],
)
def test_valid_keys(key, expected):
    """A key is base 36, and ends in 0 only as a number's key."""
    assert valid(key) is expected

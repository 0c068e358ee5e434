"""What must hold of the longest overlap of two texts, whatever they hold."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.exchange.rebuild import overlap
from filestore.exchange.rebuild.overlap import folded_overlap, longest_overlap, shorter_overlap

TEXTS = st.text("ab", max_size=60) | st.text("abc \n", max_size=60) | st.text(max_size=20)
WAYS = (overlap._by_anchor, overlap._by_hashes, overlap._by_prefix_function)


def plainly(first: str, second: str) -> int:
    """The definition: the longest end of one that the other starts with."""
    lengths = range(min(len(first), len(second)) + 1)
    return max(length for length in lengths if first.endswith(second[:length]))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts that mostly share something, several times over."""
    first = draw(TEXTS) * draw(st.integers(1, 4))
    start = draw(st.integers(0, len(first)))
    return first, first[start:] + draw(TEXTS)


@given(neighbours())
def test_is_the_longest_there_is(pair: tuple[str, str]) -> None:
    """The search finds what comparing every length finds."""
    assert longest_overlap(*pair) == plainly(*pair)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@given(neighbours())
def test_each_way_finds_it(way: Any, pair: tuple[str, str]) -> None:
    """None of the ways is wrong; one that cannot tell says so."""
    size = min(map(len, pair))
    tail, head = pair[0][len(pair[0]) - size :], pair[1][:size]
    found = way(tail, head) if size else 0
    assert found == plainly(*pair) or (found is None and way is not WAYS[-1])


@given(neighbours())
def test_every_shorter_one_is_found(pair: tuple[str, str]) -> None:
    """One after the other, from the longest on."""
    length, found = longest_overlap(*pair), []
    while length:
        found.append(length)
        length = shorter_overlap(pair[0], length)
    first, second = pair
    lengths = range(min(len(first), len(second)), 0, -1)
    assert found == [one for one in lengths if first.endswith(second[:one])]


def thue_morse(turns: int) -> str:
    """A text whose halves have equal polynomial hashes modulo a power of two."""
    text = "a"
    for _ in range(turns):
        text += text.translate({97: 98, 98: 97})
    return text


@pytest.mark.parametrize(
    ("first", "second", "length"),
    [
        ("a" * 300_000, "a" * 300_000, 300_000),
        ("a" * 300_000 + "b" + "a" * 300_000, "a" * 300_000 + "c" + "a" * 300_000, 300_000),
        (("a" * 48 + "b") * 12_000 + "a", ("a" * 48 + "b") * 12_000 + "c", 587_952),
        (thue_morse(18), thue_morse(18)[1:] + "x", 0),
        ("x" + thue_morse(16) * 3, thue_morse(16) * 2 + "y", 131_072),
    ],
    ids=["one letter", "one letter but one", "period", "Thue-Morse", "Thue-Morse repeated"],
)
def test_texts_that_repeat_themselves(first: str, second: str, length: int) -> None:
    """What a quadratic search would need hours for."""
    found = longest_overlap(first, second)
    assert first.endswith(second[:found])
    assert found == length or length == 0


@given(st.lists(st.text("abc", min_size=1, max_size=4), max_size=12), st.data())
def test_white_space_is_alike(words: list[str], data: st.DataObject) -> None:
    """What is repeated with other white space is found, and ends in the text where it ends."""
    start = data.draw(st.integers(0, len(words)))
    first = "start " + " ".join(words)
    gaps = st.sampled_from(["\n", "  ", "\t\n ", " "])
    repeated = "".join(word + data.draw(gaps) for word in words[start:])
    second = repeated + "Next"
    cut = folded_overlap(first, second)
    if cut:
        assert first.split()[-len(second[:cut].split()) :][-1:] == second[:cut].split()[-1:]
        assert "".join(first.split()).endswith("".join(second[:cut].split()))
        assert cut >= len(repeated.rstrip()) if start < len(words) else cut >= 0


@pytest.mark.parametrize(
    ("first", "second", "rest"),
    [
        ("one two\nthree four", "three  four five", " five"),
        ("one two three\n\n", "two  three four", "four"),
        ("one two", "\n one  two three", " three"),
        ("one two", "three four", "three four"),
        ("", "  ", "  "),
        ("   ", "\n", "\n"),
    ],
)
def test_the_text_goes_on_after_it(first: str, second: str, rest: str) -> None:
    """What follows is neither repeated nor lost."""
    assert second[folded_overlap(first, second) :] == rest

"""What must hold of chunks that overlap and are put together into their text again."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from filestore.core.errors import UsageError
from filestore.exchange import joining
from filestore.exchange.joining import (
    CHARACTERS,
    WORDS,
    Strategy,
    calibrate,
    count,
    folded_overlap,
    join,
    longest_overlap,
    overlap_of,
    parse_overlap,
    shorter_overlap,
    tokens,
)

TOKENS = (r"\S+\s*", r"\s*\S+", r"(?s:.)")
"""Words with the space behind them, or before them; characters."""
TEXTS = st.text("ab \n", max_size=120) | st.text(max_size=60)
PROSE = st.lists(
    st.text("abcdefghijklmnop", min_size=1, max_size=7), min_size=8, max_size=90
).flatmap(
    lambda words: st.lists(
        st.sampled_from([" ", " ", " ", "\n", ", ", "\n\n"]),
        min_size=len(words),
        max_size=len(words),
    ).map(lambda gaps: "".join(map("".join, zip(words, gaps, strict=True))))
)


def cut(text: str, token: str, size: int, overlap: int) -> list[str]:
    """The text in chunks of so many tokens, each of which repeats some of the one before."""
    found = [match[0] for match in re.finditer(token, text)]
    covered = sum(map(len, found))
    # White space that is no token by itself goes with the first or the last one.
    if found and token.startswith(r"\s"):
        found[-1] += text[covered:]
    elif found:
        found[0] = text[: len(text) - covered] + found[0]
    starts = range(0, max(1, len(found) - overlap), size - overlap)
    return ["".join(found[start : start + size]) for start in starts]


SIZES = st.integers(2, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@given(TEXTS, st.sampled_from(TOKENS), SIZES)
@example("aaaa aaaa aaaa aaaa aaaa aaaa aaaa", TOKENS[0], (4, 2))
@example("a" * 50, TOKENS[2], (8, 5))
def test_any_text_comes_back_if_the_overlap_is_told(
    text: str, token: str, sizes: tuple[int, int]
) -> None:
    """Whatever the text holds, however it repeats itself: no text is ambiguous then."""
    assume(text.strip())  # of white space alone there are no words to be told
    unit = "characters" if token == TOKENS[2] else "words"
    chunks = cut(text, token, *sizes)
    done = join(chunks, parse_overlap(f"{sizes[1]} {unit}"))
    assert done.text == text
    assert done.chunks == len(chunks)
    assert count(done.overlaps, "exact") == len(chunks) - 1


def fits(pairs: list[tuple[str, str]], unit: str, number: int) -> bool:
    """Whether all of these could repeat so much, by asking each."""
    amount = Strategy(amounts=((unit, number),), sure=10**9, most=0)
    return all(overlap_of(*pair, amount).overlap_chars for pair in pairs)


@given(PROSE, st.sampled_from(TOKENS), SIZES)
def test_a_text_comes_back_if_one_overlap_fits_it(
    text: str, token: str, sizes: tuple[int, int]
) -> None:
    """Nothing is told: what all neighbours have in common is found out.

    Left out are the texts that have the same chunks as another text, so that nothing in these
    tells which was cut: those where another number of words, or of characters, fits every pair as
    well. And those that repeat less than six characters in all, white space aside, which may be
    chance.
    """
    size, overlap = sizes
    assume(overlap)
    chunks = cut(text, token, size, overlap)
    pairs = list(pairwise(chunks))
    assume(pairs)
    own = CHARACTERS if token == TOKENS[2] else WORDS
    longest = max(map(len, chunks))
    fitting = {
        (unit, number)
        for unit in (CHARACTERS, WORDS)
        for number in range(1, longest + 1)
        if fits(pairs, unit, number)
    }
    joined = {join(chunks, Strategy(amounts=(amount,))).text for amount in fitting}
    assert (own, overlap) in fitting
    assume(joined == {text})
    done = join(chunks, parse_overlap(f"{overlap} {own}"))
    repeated = [
        second[: one.overlap_chars].split()
        for (_, second), one in zip(pairs, done.overlaps, strict=True)
    ]
    assume(sum(len(word) for words in repeated for word in words) >= 6)
    assert join(chunks, calibrate(chunks)).text == text


@given(st.lists(TEXTS, max_size=6))
def test_nothing_is_lost_but_what_was_repeated(chunks: list[str]) -> None:
    """Any chunks whatever: the text ends with the last, and has each where the one before ends."""
    done = join(chunks, calibrate(chunks))
    assert done.chunks == len(chunks)
    filled = [chunk for chunk in chunks if chunk]
    assert len(done.overlaps) == max(0, len(filled) - 1)
    assert all(
        chunk[one.overlap_chars :] in done.text
        for chunk, one in zip(filled[1:], done.overlaps, strict=True)
    )
    for (first, second), one in zip(pairwise(filled), done.overlaps, strict=True):
        if one.confidence == "exact":
            assert first.endswith(second[: one.overlap_chars])


@pytest.mark.parametrize("chunks", [[], [""], ["", ""], ["one"], ["", "one", ""]])
def test_few_chunks_are_no_error(chunks: list[str]) -> None:
    """None, one, and such without a text."""
    assert join(chunks, calibrate(chunks)).text == "".join(chunks)


def test_without_an_overlap_a_newline_goes_between() -> None:
    """And none more where there is one."""
    done = join(["one", "two\n", "three", "\nfour"], Strategy())
    assert done.text == "one\ntwo\nthree\nfour"
    assert {one.confidence for one in done.overlaps} == {"none"}


def test_a_small_overlap_of_small_chunks_is_found() -> None:
    """As somebody types it to try: a word or two."""
    assert join(
        ["one two three", "three four"], calibrate(["one two three", "three four"])
    ).text == ("one two three four")
    assert join(["abcdef", "defghi"], calibrate(["abcdef", "defghi"])).text == "abcdefghi"


def test_chance_is_no_overlap() -> None:
    """Where neighbours repeat nothing, a letter or three that they share are not taken away."""
    chunks = ["The first part ends with a", "a second part begins so the", "the third ends in an"]
    chunks += [
        "another one is the fourth of it",
        "it goes on: the fifth",
        "sixth and no more of them",
    ]
    done = join(chunks, calibrate(chunks))
    assert done.text == "\n".join(chunks)


def test_the_calibrated_overlap_goes_before_the_longest() -> None:
    """A text that repeats itself at a cut loses nothing."""
    words = [f"word{n} " for n in range(60)]
    words[20:30] = ["row "] * 10
    chunks = ["".join(words[start : start + 12]) for start in range(0, 57, 9)]
    found = calibrate(chunks[:2])
    assert found.amounts[-1] == (WORDS, 3)
    done = join(chunks, found)
    assert done.text == "".join(words)
    assert {one.method for one in done.overlaps} == {"calibrated"}


def test_each_pair_is_checked() -> None:
    """One that does not overlap as the others do is joined as it is."""
    words = [f"word{n} " for n in range(60)]
    chunks = ["".join(words[start : start + 12]) for start in range(0, 57, 9)]
    odd = [*chunks[:3], *chunks[4:]]
    done = join(odd, calibrate(chunks))
    assert [one.confidence for one in done.overlaps].count("none") == 1
    assert done.text == "".join(words[:30]) + "\n" + "".join(words[36:])


def test_overlaps_of_varied_length_are_a_range() -> None:
    """As by the tokens of a model: neither characters nor words are the same everywhere."""
    text = "".join(f"{n * n} over the {n}th hill, " for n in range(80))
    starts, ends = range(0, 1_000, 100), (137, 243, 339, 441, 535, 647, 733, 839, 941, 1_031)
    chunks = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    found = calibrate(chunks)
    assert not found.amounts
    assert found.sure > 4
    assert join(chunks, found).text == text[:1_031]


def test_tokens_of_few_letters_are_found_where_all_neighbours_share_one() -> None:
    """One such pair would be chance; a whole document of them is none."""
    tokens_of_it = [f"{'abcdefghij'[n % 10]}{n} "[: 2 + n % 3] for n in range(80)]
    chunks = ["".join(tokens_of_it[start : start + 8]) for start in range(0, 79, 7)]
    assert min(map(len, tokens_of_it)) == 2
    assert join(chunks, calibrate(chunks)).text == "".join(tokens_of_it)


def test_an_empty_line_that_was_cut_is_no_overlap() -> None:
    """White space on both sides of a cut is the text's own."""
    chunks = [f"{'' if n == 0 else chr(10)}Part {n * n} ends here.\n" for n in range(12)]
    assert join(chunks, calibrate(chunks)).text == "".join(chunks)


def test_other_white_space_is_normalized() -> None:
    """What is repeated with its lines wrapped in another way is taken away, and said."""
    chunks = [
        "The lease ends in May.\nRenewal is by letter.",
        "Renewal  is by\nletter. It costs nothing.",
    ]
    done = join(chunks, calibrate(chunks))
    assert done.text == "The lease ends in May.\nRenewal is by letter. It costs nothing."
    assert [one.confidence for one in done.overlaps] == ["normalized"]


def test_a_last_chunk_that_only_repeats_adds_nothing() -> None:
    """As a window makes it that moves on until it is past the end."""
    words = [f"word{n} " for n in range(23)]
    chunks = ["".join(words[start : start + 10]) for start in range(0, 23, 5)]
    assert join(chunks, calibrate(chunks)).text == "".join(words)


def test_tokens_are_a_range() -> None:
    """How many characters they have is not known here."""
    first, second = "x" * 90 + "the end of it", f"the end of it, and more{'y' * 90}"
    assert overlap_of(first, second, tokens(4)).overlap_chars == 13
    assert overlap_of(first, second, tokens(100)).confidence == "none"
    assert overlap_of(first, second, tokens(0)).overlap_chars == 0


@pytest.mark.parametrize("amount", ["", "many", "-1", "1.5", "5 pages", "1" * 12])
def test_what_is_no_overlap_is_refused(amount: str) -> None:
    """With what can be written."""
    with pytest.raises(UsageError) as caught:
        parse_overlap(amount)
    assert "50 words" in caught.value.message


REPEATING = st.text("ab", max_size=60) | st.text("abc \n", max_size=60) | st.text(max_size=20)
WAYS = (joining._by_anchor, joining._by_hashes, joining._by_prefix_function)


def plainly(first: str, second: str) -> int:
    """The definition: the longest end of one that the other starts with."""
    lengths = range(min(len(first), len(second)) + 1)
    return max(length for length in lengths if first.endswith(second[:length]))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts that mostly share something, several times over."""
    first = draw(REPEATING) * draw(st.integers(1, 4))
    start = draw(st.integers(0, len(first)))
    return first, first[start:] + draw(REPEATING)


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

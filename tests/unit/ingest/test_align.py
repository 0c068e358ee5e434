"""Every piece is matched once, in order, and what did not change is kept."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.ingest.align import (
    Drop,
    Insert,
    Keep,
    KeyedText,
    Match,
    Replace,
    align,
    follow,
)

WORDS = st.sampled_from(["sun", "moon", "star", "sea", "wind"])
TEXTS = st.lists(st.lists(WORDS, max_size=4).map(" ".join), max_size=14)


def old_pieces(texts: Sequence[str]) -> list[KeyedText]:
    return [KeyedText(key=text, text=text) for text in texts]


def new_pieces(texts: Sequence[str]) -> list[KeyedText]:
    return [KeyedText(key=text, text=text) for text in texts]


def matches_of(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    return align(old_pieces(old), new_pieces(new))


def pairs_of(matches: Sequence[Match]) -> list[tuple[int, int]]:
    return [(match.old, match.new) for match in matches if isinstance(match, Keep | Replace)]


def assert_consistent(old: Sequence[str], new: Sequence[str], matches: Sequence[Match]) -> None:
    olds = [match.old for match in matches if not isinstance(match, Insert)]
    news = [match.new for match in matches if not isinstance(match, Drop)]
    assert olds == list(range(len(old)))
    assert news == list(range(len(new)))
    pairs = pairs_of(matches)
    assert all(left[0] < right[0] and left[1] < right[1] for left, right in pairwise(pairs))
    for match in matches:
        if isinstance(match, Keep):
            assert old[match.old] == new[match.new]
        if isinstance(match, Replace):
            assert old[match.old] != new[match.new]
        if isinstance(match, Insert):
            before = [left for left, right in pairs if right < match.new]
            assert match.after == max(before, default=None)


def longest_common_length(old: Sequence[str], new: Sequence[str]) -> int:
    row = [0] * (len(new) + 1)
    for left in old:
        above = row
        row = [0]
        for at, right in enumerate(new):
            row.append(above[at] + 1 if left == right else max(row[-1], above[at + 1]))
    return row[-1]


@settings(deadline=None)
@given(old=TEXTS, new=TEXTS)
def test_every_piece_is_matched_once_and_in_order(old: list[str], new: list[str]) -> None:
    """Nothing is lost or doubled, order is kept, an insertion names its true predecessor."""
    assert_consistent(old, new, matches_of(old, new))


@settings(deadline=None)
@given(old=TEXTS, new=TEXTS)
def test_as_many_pieces_as_possible_are_kept(old: list[str], new: list[str]) -> None:
    """No alignment that keeps the order keeps more pieces."""
    kept = [match for match in matches_of(old, new) if isinstance(match, Keep)]
    assert len(kept) == longest_common_length(old, new)


@settings(deadline=None)
@given(texts=TEXTS)
def test_identical_sources_change_nothing(texts: list[str]) -> None:
    """The same pieces again are all kept."""
    assert matches_of(texts, texts) == [Keep(old=at, new=at) for at in range(len(texts))]


@settings(deadline=None)
@given(texts=TEXTS, data=st.data())
def test_one_new_piece_is_one_insertion(texts: list[str], data: st.DataObject) -> None:
    """Inserting a piece inserts one file and touches no other."""
    at = data.draw(st.integers(0, len(texts)))
    changed = [*texts[:at], "entirely new", *texts[at:]]
    matches = matches_of(texts, changed)
    inserted = [match for match in matches if not isinstance(match, Keep)]
    assert inserted == [Insert(new=at, after=at - 1 if at else None)]


@settings(deadline=None)
@given(texts=TEXTS.filter(bool), data=st.data())
def test_one_piece_less_is_one_drop(texts: list[str], data: st.DataObject) -> None:
    """Removing a piece drops one file and touches no other."""
    at = data.draw(st.integers(0, len(texts) - 1))
    matches = matches_of(texts, texts[:at] + texts[at + 1 :])
    assert [type(match) for match in matches if not isinstance(match, Keep)] == [Drop]


def test_a_changed_piece_replaces_the_similar_one() -> None:
    """A corrected sentence takes the place of its old version, the rest stays."""
    old = ["intro", "the cat sat on the mat", "outro"]
    new = ["intro", "the cat sat on the red mat", "outro"]
    assert matches_of(old, new) == [
        Keep(old=0, new=0),
        Replace(old=1, new=1),
        Keep(old=2, new=2),
    ]


def test_an_unlike_piece_is_a_drop_and_an_insertion() -> None:
    """A text about something else is not passed off as a changed version."""
    matches = matches_of(["intro", "cats and dogs"], ["intro", "interest rates rose"])
    assert matches == [Keep(old=0, new=0), Drop(old=1), Insert(new=1, after=0)]


def test_changed_pieces_find_their_predecessors_across_an_insertion() -> None:
    """Similarity decides which is new and which is changed, not position."""
    old = ["alpha beta gamma delta", "one two three four"]
    new = ["red green blue grey", "alpha beta gamma epsilon", "one two three five"]
    assert matches_of(old, new) == [
        Insert(new=0, after=None),
        Replace(old=0, new=1),
        Replace(old=1, new=2),
    ]


def test_the_edited_text_of_a_piece_is_kept_by_its_key() -> None:
    """A hand-edited piece is kept while its source stays the same."""
    old = [KeyedText(key="k", text="rewritten by hand", edited=True)]
    assert align(old, [KeyedText(key="k", text="as generated")]) == [Keep(old=0, new=0)]


def test_a_text_without_white_space_can_be_similar() -> None:
    """One changed character in a Chinese sentence makes a changed version."""
    assert matches_of(["知识库的真相是文件"], ["知识库的真相是文本"]) == [Replace(old=0, new=0)]


def test_texts_without_words_are_compared_by_their_signs() -> None:
    """Rules and ornaments are compared too."""
    assert matches_of(["* * *"], ["***"]) == [Replace(old=0, new=0)]
    assert matches_of(["---"], ["***"]) == [Drop(old=0), Insert(new=0, after=None)]


def test_a_wholly_changed_long_source_is_paired_in_spite_of_a_shift() -> None:
    """When every piece changes and one is new, each still finds its predecessor."""
    old = [f"chapter {at} tells of hero{at} and of place{at} at length" for at in range(300)]
    new = ["a wholly different preface", *(f"{text} indeed" for text in old)]
    matches = matches_of(old, new)
    assert matches[0] == Insert(new=0, after=None)
    assert matches[1:] == [Replace(old=at, new=at + 1) for at in range(300)]


def test_a_long_stretch_without_anything_in_common_is_replaced_by_none() -> None:
    """Two unrelated sources are all drops and insertions."""
    matches = matches_of([f"a{at}" for at in range(200)], [f"b{at}" for at in range(200)])
    assert {type(match) for match in matches} == {Drop, Insert}


def test_thousands_of_equal_pieces_are_kept() -> None:
    """Repeated pieces are aligned however many there are."""
    old = ["same", "other"] * 2_000
    new = ["first", *old[:1_000], "middle", *old[1_001:], "last"]
    matches = matches_of(old, new)
    assert_consistent(old, new, matches)
    assert sum(isinstance(match, Keep) for match in matches) >= 1_000


def test_a_piece_that_moved_unchanged_takes_no_others_place() -> None:
    """A text that stands elsewhere now is no changed version of one that is alike and went."""
    old = [
        KeyedText(key=key, text=text)
        for key, text in (
            ("p", "all about pears and more"),
            ("x", "x"),
            ("f", "all about figs and more"),
        )
    ]
    new = [KeyedText(key="x", text="x"), KeyedText(key="p", text="all about pears and more")]
    assert Replace(old=2, new=1) not in align(old, new)


def test_texts_are_followed_only_without_doubt() -> None:
    """A little changed text is found among others; of two that are as alike neither is taken."""
    pears = "pears need some care in autumn"
    figs = "figs want much sun and no wind"
    assert follow({3: pears, 4: figs}, {7: "pears need much care in autumn"}) == {7: 3}
    assert follow({3: pears, 4: pears}, {7: pears}) == {}
    assert follow({3: pears}, {7: pears, 8: f"{pears} too"}) == {}
    assert follow({3: pears}, {7: figs}) == follow({}, {7: figs}) == {}

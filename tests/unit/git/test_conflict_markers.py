"""Marked conflicts taken apart and put together: each side is its bytes, and nothing else goes."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.git.conflict_markers import MarkersBrokenError, Side, conflicts, with_side

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12).filter(
    lambda line: not line.startswith(("<<<<<<<", "|||||||", "=======", ">>>>>>>"))
)
TEXT = st.lists(LINE, max_size=4).map(lambda lines: "".join(f"{line}\n" for line in lines))
CONFLICT = st.tuples(TEXT, st.none() | TEXT, TEXT)


def marked(ours: str, base: str | None, theirs: str, end: str) -> str:
    middle = "" if base is None else f"||||||| 1a2b3c{end}{base}"
    return f"<<<<<<< HEAD{end}{ours}{middle}======={end}{theirs}>>>>>>> their branch{end}"


@given(
    pieces=st.lists(st.tuples(TEXT, CONFLICT), min_size=1, max_size=3),
    tail=TEXT,
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_a_side_is_what_one_would_have_without_the_other(
    pieces: list[tuple[str, tuple[str, str | None, str]]], tail: str, end: str
) -> None:
    """All conflicts give way to one side; what is around them and between stays byte for byte."""
    data = "".join(before + marked(*sides, end) for before, sides in pieces) + tail
    ours = "".join(before + sides[0] for before, sides in pieces) + tail
    theirs = "".join(before + sides[2] for before, sides in pieces) + tail
    assert with_side(data.encode(), "ours") == ours.encode()
    assert with_side(data.encode(), "theirs") == theirs.encode()
    found = conflicts(data.encode())
    assert [(one.ours, one.base, one.theirs) for one in found] == [
        (sides[0].encode(), None if sides[1] is None else sides[1].encode(), sides[2].encode())
        for _, sides in pieces
    ]
    assert {(one.ours_label, one.theirs_label) for one in found} == {("HEAD", "their branch")}


@given(data=st.lists(st.sampled_from(["<", "|", "=", ">", "text"]), max_size=9))
def test_marks_in_any_order(data: list[str]) -> None:
    """Whatever marks a file has, it is refused or none of them is left but headings and tables."""
    text = "".join(f"{kind * 7}\n" if len(kind) == 1 else f"{kind}\n" for kind in data).encode()
    with contextlib.suppress(MarkersBrokenError):
        made = with_side(text, "ours")
        assert b"<<<<<<<" not in made
        assert b">>>>>>>" not in made


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("<<<<<<< a|one", "the file ends where ||||||| or ======= was expected"),
        ("<<<<<<< a|one|=======|two", "the file ends where >>>>>>>"),
        ("one|>>>>>>> b", "line 2 has >>>>>>> where <<<<<<<"),
        ("<<<<<<< a|<<<<<<< b|=======|>>>>>>> b", "line 2 has <<<<<<<"),
        ("<<<<<<< a|Title|=======|one|=======|two|>>>>>>> b", "line 5 has ======="),
        ("<<<<<<< a|one|=======|# base|||||||||two|>>>>>>> b", ""),
    ],
)
@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_marks_that_are_not_whole(lines: str, reason: str, side: Side) -> None:
    """Where a mark is missing, or one too many is there, no side is guessed, and the line told."""
    text = lines.replace("|||||||||", "|\0|").replace("|", "\n").replace("\0", "|" * 7).encode()
    with pytest.raises(MarkersBrokenError) as caught:
        with_side(text, side)
    assert reason in caught.value.message


def test_what_only_looks_like_marks() -> None:
    """Headings, tables, longer lines and indented marks are text, inside a conflict and outside."""
    around = b"Title\n=======\n||||||| a table\n <<<<<<< indented\n<<<<<<<< eight\n<<<<<<<none\n"
    assert conflicts(around) == ()
    assert with_side(around, "theirs") == around
    within = around + b"<<<<<<< a\n >>>>>>> x\n========\n=======\n>>>>>>>> y\n>>>>>>>\n"
    (one,) = conflicts(within)
    assert (one.ours, one.theirs) == (b" >>>>>>> x\n========\n", b">>>>>>>> y\n")
    assert one.lines == (7, 12)
    assert (one.ours_label, one.theirs_label) == ("a", "")

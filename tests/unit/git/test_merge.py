"""What must hold of a merge for which no line is looked at: one side changed, or both alike.

Merges of two different changes are git's, and tested on a real disk.
"""

import contextlib
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.git.merge import (
    MarkersBrokenError,
    Merged,
    NotResolvedError,
    Side,
    conflicts,
    merge,
    resolved,
    with_line_ends,
)

LINES = st.lists(st.sampled_from(["ash", "birch", "cedar", "elm", ""]), min_size=1, max_size=5)
WORDS = st.lists(st.sampled_from([b"ash\n", b"elm\r\n", b"\n"]), max_size=3).map(b"".join)
BODIES = st.tuples(LINES, st.integers(0, 3)).map(
    lambda parts: "\n".join(parts[0]).rstrip("\n") + "\n" * parts[1]
)


@given(base=BODIES, theirs=BODIES)
def test_an_untouched_text_takes_the_new_one(base: str, theirs: str) -> None:
    """Where a person changed nothing the new text is the result, to the last line end."""
    assert merge(base, base, theirs) == Merged(text=theirs)


@given(base=BODIES, ours=BODIES)
def test_an_edit_outlives_a_source_that_did_not_change(base: str, ours: str) -> None:
    """Where the source changed nothing the edit is the result, to the last line end."""
    assert merge(base, ours, base) == Merged(text=ours)


@given(base=BODIES, both=BODIES)
def test_the_same_change_on_both_sides_is_one(base: str, both: str) -> None:
    """A person who made the change first gets no second copy of it."""
    assert merge(base, both, both) == Merged(text=both)


@given(base=BODIES, theirs=BODIES)
def test_carriage_returns_stay(base: str, theirs: str) -> None:
    """A file that an editor saved with CRLF keeps them, and the new text has them too."""
    ours = base.replace("\n", "\r\n")
    wanted = theirs.replace("\n", "\r\n") if "\r\n" in ours else theirs
    assert merge(base, ours, theirs) == Merged(text=wanted)


@given(base=BODIES, theirs=BODIES)
def test_a_byte_order_mark_stays(base: str, theirs: str) -> None:
    """What an editor put before the text is no change of it."""
    assert merge(base, f"\ufeff{base}", theirs) == Merged(text=f"\ufeff{theirs}")


def test_a_final_line_end_that_an_editor_took_is_no_overlap() -> None:
    """It stays away, and the new text comes nevertheless."""
    assert merge("One.\n\n", "One.", "Two.\n\n") == Merged(text="Two.")


@given(text=BODIES, body=BODIES)
def test_a_new_text_takes_the_line_ends_of_the_old(text: str, body: str) -> None:
    """No mixture comes in: CRLF throughout where that was so, else the text as it is."""
    returned = body.replace("\n", "\r\n")
    made = with_line_ends(text, returned)
    assert made.replace("\r\n", "\n") == text
    if "\n" in body:
        assert made.count("\r\n") == made.count("\n")
        assert with_line_ends(text, body, b"---\r\n") == text


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
    assert taken(data.encode(), "ours") == ours.encode()
    assert taken(data.encode(), "theirs") == theirs.encode()
    found = conflicts(data.encode())
    assert [(one.ours, one.base, one.theirs) for one in found] == [
        (sides[0].encode(), None if sides[1] is None else sides[1].encode(), sides[2].encode())
        for _, sides in pieces
    ]
    assert {(one.ours_label, one.theirs_label) for one in found} == {("HEAD", "their branch")}


def taken(data: bytes, *sides: Side) -> bytes | None:
    return resolved(data, sides, None)


@given(
    hunks=st.lists(
        st.tuples(WORDS, WORDS, WORDS, st.sampled_from(get_args(Side)), st.booleans()), min_size=1
    ),
    end=WORDS,
)
def test_a_choice_for_each_hunk(
    hunks: list[tuple[bytes, bytes, bytes, Side, bool]], end: bytes
) -> None:
    """Each hunk becomes what was chosen for it, and no byte around the hunks changes."""
    data, wanted = b"", b""
    for before, ours, theirs, side, has_base in hunks:
        base = b"||||||| 1a2b\nyew\n" if has_base else b""
        marked = b"<<<<<<< a\n%b%b=======\n%b>>>>>>> b\n" % (ours, base, theirs)
        data += before + marked
        made = {"ours": ours, "theirs": theirs, "both": ours + theirs, "keep": marked}
        wanted += before + made[side]
    assert taken(data + end, *(one[3] for one in hunks)) == wanted + end
    with pytest.raises(NotResolvedError):
        taken(data + end, *(["ours"] * (len(hunks) + 2)))


@given(
    data=st.sampled_from([b"one\0", b"two\0", b"three\0", None]),
    staged=st.tuples(*[st.sampled_from([b"one\0", b"two\0", None])] * 2),
    side=st.sampled_from(get_args(Side)),
)
def test_a_file_without_markers(
    data: bytes | None, staged: tuple[bytes | None, bytes | None], side: Side
) -> None:
    """A side is taken whole, or the file goes; what a person made of it is never replaced."""
    try:
        made = resolved(data, [side], staged)
    except NotResolvedError:
        assert side in ("both", "keep") or data not in staged or data == staged[side == "theirs"]
    else:
        assert data in staged
        assert made == staged[side == "theirs"]


@given(data=st.lists(st.sampled_from(["<", "|", "=", ">", "text"]), max_size=9))
def test_marks_in_any_order(data: list[str]) -> None:
    """Whatever marks a file has, it is refused or none of them is left but headings and tables."""
    text = "".join(f"{kind * 7}\n" if len(kind) == 1 else f"{kind}\n" for kind in data).encode()
    with contextlib.suppress(MarkersBrokenError, NotResolvedError):
        made = taken(text, "ours")
        assert made is not None
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
        taken(text, side)
    assert reason in caught.value.message


def test_what_only_looks_like_marks() -> None:
    """Headings, tables, longer lines and indented marks are text, inside a conflict and outside."""
    around = b"Title\n=======\n||||||| a table\n <<<<<<< indented\n<<<<<<<< eight\n<<<<<<<none\n"
    assert conflicts(around) == ()
    with pytest.raises(NotResolvedError):
        taken(around, "theirs")
    within = around + b"<<<<<<< a\n >>>>>>> x\n========\n=======\n>>>>>>>> y\n>>>>>>>\n"
    (one,) = conflicts(within)
    assert (one.ours, one.theirs) == (b" >>>>>>> x\n========\n", b">>>>>>>> y\n")
    assert one.lines == (7, 12)
    assert (one.ours_label, one.theirs_label) == ("a", "")

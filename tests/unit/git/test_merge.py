"""What must hold of a merge for which no line is looked at: one side changed, or both alike.

Merges of two different changes are git's, and tested on a real disk.
"""

from hypothesis import given
from hypothesis import strategies as st

from filestore.git.merge import Merged, merge, with_line_ends

LINES = st.lists(st.sampled_from(["ash", "birch", "cedar", "elm", ""]), min_size=1, max_size=5)
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

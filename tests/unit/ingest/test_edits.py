"""Changes of one text: what is named once is replaced, everything else stays as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.errors import UsageError
from filestore.core.hashing import revision_of
from filestore.core.paths import StorePath
from filestore.ingest.edits import (
    Edit,
    NotedElsewhere,
    OtherRevisionError,
    changed,
    check_revision,
    edit_of,
)

TEXT = """\
---
title: House
---
# House

Above.

## Rent

Paid on the third.

### Late

A fine.

## Gas
Read in March.

Setext
------

Below.
"""


def section(named: str, new: str, text: str = TEXT) -> str:
    """A text with another one below a heading."""
    return changed(text, edit_of("", named, new), shown="a.md")


@pytest.mark.parametrize(
    ("named", "gone"),
    [
        ("Rent", "\nPaid on the third.\n\n### Late\n\nA fine.\n\n"),
        ("## Rent", "\nPaid on the third.\n\n### Late\n\nA fine.\n\n"),
        ("House > Rent", "\nPaid on the third.\n\n### Late\n\nA fine.\n\n"),
        ("Late", "\nA fine.\n\n"),
        ("Rent > Late", "\nA fine.\n\n"),
        ("Gas", "Read in March.\n\n"),
        ("Setext", "\nBelow.\n"),
        ("# House", TEXT.partition("# House\n")[2]),
    ],
)
def test_the_text_below_a_heading_is_replaced(named: str, gone: str) -> None:
    """Down to the next heading of its level or above; blank lines around it stay."""
    lead = "\n" if gone.startswith("\n") else ""
    made = f"{lead}New words.\n{gone[len(gone.rstrip(chr(10))) + 1 :]}"
    assert TEXT.count(gone) == 1
    assert section(named, "New words.\n") == TEXT.replace(gone, made)
    assert section(named, "\n\nNew words.") == TEXT.replace(gone, made)


def test_a_heading_that_is_repeated_is_there_once() -> None:
    """Where the new text begins with it; another heading is text."""
    assert section("Rent", "## Rent\n\nNew.") == section("Rent", "New.")
    assert "## Rent\n\n### Rents\n\nNew.\n\n## Gas" in section("Rent", "### Rents\n\nNew.")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("# A", "# A\n\nNew.\n"),
        ("# A\n", "# A\n\nNew.\n"),
        ("# A\n# B\n", "# A\n\nNew.\n\n# B\n"),
        ("# A\nold", "# A\nNew."),
        ("# A\r\n\r\nold\r\n\r\n# B\r\n", "# A\r\n\r\nNew.\r\n\r\n# B\r\n"),
        ("\ufeff# A\nold\n", "\ufeff# A\nNew.\n"),
        ("A\n===\n\nold\n", "A\n===\n\nNew.\n"),
        ("# The `a` option #\nold\n", "# The `a` option #\nNew.\n"),
        ("```\n# A\n```\n\n# A\nold\n", "```\n# A\n```\n\n# A\nNew.\n"),
    ],
)
def test_a_section_of_any_form(text: str, made: str) -> None:
    """Empty, at the end, in CR LF, underlined, with markup; a heading in code is none."""
    named = "The `a` option" if "option" in text else "A"
    assert section(named, "New.", text) == made
    assert "old" not in section(named, "", text)


def test_what_is_not_there_once_is_refused_with_its_lines() -> None:
    """Counted in the file; also where two places overlap."""
    twice = "# A\n\nx\n\n# A\n\nx\n"
    for edit, lines in (
        (Edit(section="A", new=""), "lines 4 and 8"),
        (Edit(old="x", new=""), "lines 6 and 10"),
        (Edit(old="\n", new=""), "lines 4 and 5 and 6 and more"),
        (Edit(old="gone", new=""), "nowhere"),
        (Edit(section="B", new=""), "nowhere"),
    ):
        with pytest.raises(NotedElsewhere, match=lines):
            changed(twice, edit, shown="a.md", above=3)
    with pytest.raises(NotedElsewhere, match="lines 1 and 1"):
        changed("aaa", Edit(old="aa", new="b"), shown="a.md")
    for old, named in (("", ""), ("a", "b")):
        with pytest.raises(UsageError):
            edit_of(old, named, "new")


@pytest.mark.parametrize(
    ("before", "added", "after"),
    [
        ("a\n", "b\n", "a\n\nb\n"),
        ("a", "b", "a\n\nb\n"),
        ("", "b", "b\n"),
        ("a\n\n", "b", "a\n\nb\n"),
        ("a\r\n", "b\nc", "a\r\n\r\nb\r\nc\r\n"),
        ("a\r\nb", "\r\nc", "a\r\nb\r\n\r\nc\r\n"),
        ("a\n", "\nb", "a\n\nb\n"),
        ("- a\n", "- b", "- a\n- b\n"),
        ("1. a\n", "2. b", "1. a\n2. b\n"),
        ("- a\n", "b", "- a\n\nb\n"),
        ("- a\n", "  goes on", "- a\n  goes on\n"),
        ("| a |\n", "| b |", "| a |\n| b |\n"),
        ("> a\n", "> b", "> a\n> b\n"),
        ("a\n", "- b", "a\n\n- b\n"),
        ("a\n", "## B\n\nc\n", "a\n\n## B\n\nc\n"),
    ],
)
def test_an_addition_is_a_paragraph_of_its_own(before: str, added: str, after: str) -> None:
    """Or goes on with a list, a table, a quotation; in the line ends of the text."""
    assert changed(before, Edit(new=added), shown="a.md") == after


ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", ""])
WORDS = st.sampled_from(["x", "y y", "# A", "é", "\ufeff", "---", "\u2028"])
TEXTS = st.lists(st.tuples(WORDS, ENDS), max_size=8).map(
    lambda parts: "".join(word + end for word, end in parts)
)


@given(before=TEXTS, after=TEXTS, new=TEXTS)
def test_all_else_stays_character_for_character(before: str, after: str, new: str) -> None:
    """Whatever line ends it has, and whichever the passage is named with."""
    text = f"{before}KEY\r\nlock{after}"
    for old in ("KEY\r\nlock", "KEY\nlock"):
        made = changed(text, Edit(old=old, new=new), shown="a.md")
        assert made.startswith(before)
        assert made.endswith(after)
        inside = made[len(before) : len(made) - len(after)]
        assert inside.replace("\r\n", "\n") == new.replace("\r\n", "\n")


def test_a_revision_is_of_one_file_in_one_state() -> None:
    """That of another file, or of another state, is refused with the one it has now."""
    path, other = StorePath("a.md"), StorePath("b.md")
    now = revision_of(path, b"x")
    check_revision(path, b"x", now)
    check_revision(path, b"x", None)
    for wrong in (revision_of(other, b"x"), revision_of(path, b"y"), "", "a\nb", "x" * 10_000):
        with pytest.raises(OtherRevisionError, match=now) as refused:
            check_revision(path, b"x", wrong)
        assert len(str(refused.value)) < 400
        assert "show a.md" in refused.value.message

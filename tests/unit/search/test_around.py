"""The lines around an excerpt: whole items, its own section, and never too much."""

from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.search.place import around

NOTE = """\
# A

above

## B
one

- an item
  that goes on
- the match
  and its rest
- another
  that goes on

after
## C
"""


def span(words: str) -> tuple[int, int]:
    start = NOTE.index(words)
    return start, start + len(words)


def test_no_item_is_cut_and_no_heading_passed() -> None:
    """Three lines on either side, then to the ends of the items there."""
    found = around(NOTE, span("- the match"), 1)
    assert found.text.startswith("- an item\n  that goes on\n- the match")
    assert found.text.endswith("- another\n  that goes on")
    assert (found.line, found.end_line) == (8, 13)
    assert around(NOTE, span("one"), 1).text.startswith("one\n")
    assert around(NOTE, span("## B"), 1).text.startswith("## B\none")
    assert around(NOTE, span("after"), 1, context=2).text.endswith("after\n## C")


LINES = st.sampled_from(
    ["", "# H", "- item", "  rest", "| a | b |", "```", "---", "x" * 700, "text"]
)


@settings(max_examples=200, deadline=None)
@given(
    lines=st.lists(LINES, min_size=1, max_size=30), at=st.integers(0, 29), wide=st.integers(0, 9)
)
def test_it_is_a_part_of_its_text(lines: list[str], at: int, wide: int) -> None:
    """With the excerpt in it, at the numbers that it names."""
    at %= len(lines)
    text = "\n".join(lines) + "\n"
    start = sum(len(one) + 1 for one in lines[:at])
    found = around(text, (start, start + len(lines[at])), 1, context=wide)
    assert found.line is not None
    assert found.end_line is not None
    assert found.line <= at + 1 <= found.end_line
    shown = found.text.split("\n")
    for own, one in zip(lines[found.line - 1 : found.end_line], shown, strict=True):
        assert one.removesuffix("…") == own[: len(one.removesuffix("…"))]

"""The lines around a place in a text."""

from hypothesis import given
from hypothesis import strategies as st

from filestore.browse.evidence import excerpt


@given(st.lists(st.text(st.sampled_from("ab \t"), max_size=5), max_size=12), st.integers(-2, 15))
def test_an_excerpt_has_the_lines_around_its_own(lines: list[str], line: int) -> None:
    """Three lines on each side as far as there are, each under its own number."""
    text = "".join(f"{one}\n" for one in lines)
    found = dict(excerpt(text, line))
    count = max(1, len(lines))
    expected = {
        number: (lines or [""])[number - 1]
        for number in range(max(1, line - 3), min(count, line + 3) + 1)
        if 1 <= line <= count
    }
    assert found == expected


def test_long_lines_and_carriage_returns_are_cut() -> None:
    """A line that nobody could read is shortened, and a line end of Windows is no part of it."""
    ((_, first), (_, second)) = excerpt(f"{'x' * 1_000}\r\nshort\r\n", 1)
    assert first == "x" * 399 + "…"
    assert second == "short"

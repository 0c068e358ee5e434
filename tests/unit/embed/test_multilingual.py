"""Long texts in parts, for a model without windows."""

from hypothesis import given
from hypothesis import strategies as st

from filestore.embed._multilingual import parts


@given(st.lists(st.text(), max_size=9), st.integers(1, 3_000))
def test_the_parts_of_a_text_are_its_own(words: list[str], times: int) -> None:
    """Nothing is lost or repeated, and no part is longer than the model reads well."""
    text = " ".join(words) * times
    sound = text.encode("utf-8", "replace").decode() if text.strip() else ""
    found = parts(text)
    assert "".join(found) == sound
    assert all(0 < len(part) <= 2_000 for part in found) or not sound


def test_words_stay_whole() -> None:
    """A cut lies after a space; a text without any is cut all the same."""
    assert all(part.endswith(" ") for part in parts("a word " * 2_000)[:-1])
    assert [len(part) for part in parts("x" * 5_000)] == [1_667, 1_667, 1_666]

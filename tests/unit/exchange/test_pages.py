"""What must hold of a page with hidden marks, whatever its texts hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.exchange.pages.page import (
    Style,
    as_stored,
    fence_of,
    fenced,
    render,
    split,
    text_hash,
    unfenced,
)

STYLES = (Style(before="<!-- ", after=" -->"), Style(before="%% ", after=" %%"))
PIECES = [
    *(
        "<!-- chunk 1 -->\n",
        "<!-- chunk~ 2 -->",
        "%% chunk 1 %%\n",
        "%% /chunk %%\n",
        "<!-- /chunk",
    ),
    *("\n", "\r\n", "\n\n", "text", "```", "````py\n", "---\n", "# Title\n", "\u2028", "\x85"),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=6).map("".join)


@pytest.mark.parametrize("style", STYLES)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.booleans())
def test_every_text_comes_back(style: Style, texts: list[str], is_summaries: bool) -> None:
    """Exactly, also one that looks like a mark, and what stands around them."""
    around = [(f"## {n}\n\n", f"\nbehind {n}\n") for n in range(len(texts))]
    page, word = render(style, "Head\n", texts, around if is_summaries else None)
    found = split(page, style, word, len(texts))
    for number, text in enumerate(texts, start=1):
        assert as_stored(found.texts[number], text_hash(text)) == (text, True)
    assert found.head == ("Head\n## 0\n\n" if is_summaries else "Head\n")
    if is_summaries:
        whole = "".join(f"## {n}\n\n\nbehind {n}\n" for n in range(len(texts)))
        assert "## 0\n\n" + "".join(found.others) == whole


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_code_comes_back_from_its_fence(texts: list[str]) -> None:
    """Whatever fences stand in it; a line end may be added."""
    fence = fence_of(texts, "py")
    for text in texts:
        assert as_stored(unfenced(fenced(text, fence), fence), text_hash(text)) == (text, True)
    assert unfenced("other", fence) == "other"


def test_a_mark_that_is_none_is_text() -> None:
    """One with a number that no chunk has, one that stands twice, an end without a start."""
    style = STYLES[0]
    page = "<!-- /chunk -->\n<!-- chunk 1 -->\n\none\n<!-- chunk 9 -->\n<!-- chunk 1 -->\nmore\n"
    found = split(page, style, "chunk", 2)
    assert found.texts == {1: "one\n<!-- chunk 9 -->\n<!-- chunk 1 -->\nmore\n"}
    assert found.head == "<!-- /chunk -->\n"

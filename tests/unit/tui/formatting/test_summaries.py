"""The words of the tree of summaries, without a screen and without a store."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.browse import CHUNKS, Family, TreeNode
from tui.formatting import summaries
from tui.formatting.lines import plain

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = st.text(st.characters() | st.sampled_from("\x1b\x9b\u202e\udcff\n\r\t"))
TOP = "chunked/a/summary2.md"


def node(path=TOP, **changes):
    values = {"is_summary": True, "level": 2, "children": 3, "state": "fresh", **changes}
    return TreeNode(path=path, **values)


@given(TEXTS, TEXTS, st.sampled_from(["fresh", "changed", "gone"]))
def test_no_word_steers_the_terminal(text, path, state):
    """Whatever a path, a title or a reason holds, no line has a control character."""
    odd = node(path=path, state=state, why=text)
    family = Family(path=path, node=odd, above=(odd,), children=(odd,), titles={path: text})
    lines = [
        summaries.node_row(odd, text, CHUNKS, depth=3, above=text),
        *summaries.family_lines(family),
        *(line for _, line in summaries.family_rows(family, CHUNKS)),
    ]
    assert not UNSAFE.search(plain(lines).replace("\n", ""))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "L2 Beans"),
        ({"why": "1 of its texts changed"}, "! stale  L2 Beans"),
        ({"state": "changed"}, "~ changed  L2 Beans"),
        ({"state": "gone"}, "x gone  L2 Beans"),
    ],
)
def test_a_row_says_its_state_with_a_sign_and_a_word(changes, said):
    """Before the name, where a narrow screen does not cut it off."""
    row = plain([summaries.node_row(node(**changes), "Beans", CHUNKS, depth=0)])
    assert row == f"▸ {said}  3 children"


def test_a_row_does_not_repeat_what_stands_above_it():
    """Generated titles begin with that of the document; below it the rest is enough."""
    row = summaries.node_row(node(), "Guide: beans", CHUNKS, depth=1, above="Guide: a year")
    assert "L2 beans" in plain([row])

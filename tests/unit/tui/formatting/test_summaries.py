"""The words of the tree of summaries, without a screen and without a store."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.browse import CHUNKS, Drawing, Family, TreeNode
from filestore.browse.summary_tree import Branch
from tui.formatting import summaries
from tui.formatting.lines import plain

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = st.text(st.characters() | st.sampled_from("\x1b\x9b\u202e\udcff\n\r\t"))
TOP = "chunked/a/summary2.md"


def node(path=TOP, **changes):
    values = {"is_summary": True, "level": 2, "children": 3, "state": "fresh", **changes}
    return TreeNode(path=path, **values)


def branch(*rails, texts=4, changed=0, title="Beans", **changes):
    return Branch(
        node=node(**changes), title=title, rails=(False, *rails), texts=texts, changed=changed
    )


def drawing(*branches, summaries_=None):
    stale = sum(bool(one.node.why) for one in branches)
    count = len(branches) if summaries_ is None else summaries_
    return Drawing(
        resource="a", branches=branches, summaries=count, stale=stale, levels=(count - 1, 1)
    )


@given(TEXTS, TEXTS, st.sampled_from(["fresh", "changed", "gone"]))
def test_no_word_steers_the_terminal(text, path, state):
    """Whatever a path, a title or a reason holds, no line has a control character."""
    odd = node(path=path, state=state, why=text)
    family = Family(path=path, node=odd, above=(odd,), children=(odd,), titles={path: text})
    lines = [
        summaries.node_row(odd, text, CHUNKS, depth=3, above=text),
        *summaries.family_lines(family),
        *(line for _, line in summaries.family_rows(family, CHUNKS)),
        *summaries.drawing_title(drawing(branch(title=text, path=path, why=text))),
        *summaries.drawing_lines(drawing(branch(title=text, path=path, why=text)), width=40),
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


def test_the_picture_shows_levels_sizes_and_what_is_stale():
    """A branch for each summary, a bar as long as it has texts, the worn part drawn otherwise."""
    picture = drawing(
        branch(texts=12, changed=3, why="1 of its texts changed"),
        branch(True, texts=6),
        branch(False, texts=3, changed=3, why="gone"),
    )
    assert plain(summaries.drawing_lines(picture, width=60)).splitlines() == [
        "█████████░░░ 12  ! stale  Beans",
        "██████        6  ├─ Beans",
        "░░░           3  └─ ! stale  Beans",
    ]
    assert plain(summaries.drawing_title(picture)).splitlines() == [
        "tree of summaries: a  3 summaries, 2 levels  ! 2 stale",
        "summaries by level, from the texts up: 2 1",
    ]
    ascii_lines = plain(summaries.drawing_lines(picture, width=60, ascii_only=True))
    assert ascii_lines.isascii()
    assert "~~~           3  `- ! stale" in ascii_lines


@given(st.lists(st.booleans(), max_size=40), st.integers(20, 200))
def test_a_picture_keeps_within_the_screen(rails, width):
    """However deep a tree is, its branches leave room for a name."""
    (row,) = summaries.drawing_lines(drawing(branch(*rails, title="w" * 300)), width=width)
    text = plain([row])
    assert "www" in text
    assert len(text) <= max(width, 80)


def test_a_picture_says_what_it_leaves_out():
    """Of a very large tree the first summaries are drawn, the others counted."""
    lines = summaries.drawing_lines(drawing(branch(), summaries_=5_000), width=80)
    assert plain(lines[-1:]) == "… and 4,999 summaries more"

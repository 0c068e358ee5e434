"""Lists of links and tables of contents are told from texts."""

import pytest

from filestore.search.passage import is_list
from filestore.search.ranking import demoted, merged, put_back

LINKS = "# Index\n\n- [How do I begin?](a.md)\n- [[Second note]]\n* [x] [Third](c.md) - short\n"


@pytest.mark.parametrize(
    "text",
    [
        LINKS,
        "1. [One](1.md)\n2. [Two](2.md)\n3. <https://example.org/three>\n",
        "Introduction ........ 1\nHow do I ....... xii\nIndex . . . . . 20\n",
        "[[A]], [[B]]\n[[C]] · [[D]]\n[[E]]\n",
        f"What is here:\n\n{LINKS}\n- [Four](d.md)\n",
    ],
)
def test_lists(text):
    """Of links in either form, or of entries with dots and a page."""
    assert is_list(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- [One](1.md)\n- [Two](2.md)\n",
        "- flour\n- butter\n- eggs\n- milk\n",
        "- [One](1.md) explains how a lease is renewed and what that costs at the end of its year\n"
        * 4,
        f"{LINKS}\nA sentence that says something.\nAnother one.\n",
        "See [[A]] for it. And [[B]], [[C]].\n",
        "Wait.... what....\nYes.... it does....that\nNo.... never again\n",
    ],
)
def test_texts(text):
    """Few links, items that are none, and links with much beside them."""
    assert not is_list(text)


def test_what_is_made_to_take_long_does_not():
    """The time grows with the text alone."""
    for sign in ("[[", "](", "http://x", "....", " .", "[a](b)", "- [ ] [", "|[[a]]"):
        assert not is_list(f"{sign * 400}!\n{sign * 30}!\n" * 50)


def test_a_list_stands_behind_what_scores_more_than_a_part_of_it():
    """Under its own name it keeps its score, and a negative one is not raised."""
    texts = [(("p", n), score, dict) for n, score in enumerate((8.0, 4.0, 1.0))]
    lists = []
    order = []
    for text, score, why in merged(texts, lists, is_last=True):
        if score == 8.0:
            put_back(lists, (text, demoted(score, 0.0), why))
        else:
            order.append(score)
    assert order == [4.0, 2.0, 1.0]
    assert (demoted(3.0, 1.0), demoted(-1.0, 0.0)) == (3.0, -1.0)

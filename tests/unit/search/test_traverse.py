"""Going from the top of a tree of summaries to its texts."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from filestore.catalog.summaries import ChildRow
from filestore.core.paths import ChunkPath
from filestore.search.ranking import descend
from filestore.sidecar.summary_tree import SummaryTree


def a_tree(edges: Sequence[tuple[str, str]], gone: str = "") -> SummaryTree:
    """A tree of summaries and their children."""
    return SummaryTree(
        ChildRow(
            summary=ChunkPath(one),
            path=ChunkPath(two),
            key=b"",
            in_step=two != gone,
            is_there=two != gone,
        )
        for one, two in edges
    )


def as_they_come(nodes: Sequence[ChunkPath]) -> Sequence[ChunkPath]:
    """No node answers better than another."""
    return nodes


TWO = [("top", "left"), ("top", "right"), ("left", "a"), ("left", "b"), ("right", "c")]


def test_the_best_branches_are_entered() -> None:
    """With a beam of one only the texts of the better branch are reached, each with its way."""
    found = descend(a_tree(TWO), lambda nodes: sorted(nodes, reverse=True), beam=1)
    assert found == {"c": ("top", "right")}
    assert descend(a_tree(TWO), as_they_come, beam=2).keys() == {"a", "b", "c"}


def test_where_few_answer_others_are_entered_too() -> None:
    """A branch that shares no word with the query may still lead to the text that has one."""
    assert descend(a_tree(TWO), lambda _: [], beam=2).keys() == {"a", "b", "c"}


def test_what_is_gone_is_not_reached() -> None:
    """A child that is no indexed file any more leads nowhere."""
    assert descend(a_tree(TWO, gone="b"), as_they_come).keys() == {"a", "c"}


def test_a_text_in_the_middle_of_the_tree() -> None:
    """A text right below the top is reached as those further down are."""
    found = descend(a_tree([*TWO, ("top", "d")]), as_they_come)
    assert found["d"] == ("top",)
    assert len(found) == 4


NAMES = st.sampled_from("abcdefgh")


@given(st.lists(st.tuples(NAMES, NAMES), max_size=25), st.integers(1, 9))
def test_any_graph_ends_and_ways_are_ways(edges: list[tuple[str, str]], beam: int) -> None:
    """Whatever leads where: only texts are reached, along children, no summary twice on a way."""
    tree = a_tree(edges)
    for text, way in descend(tree, as_they_come, beam).items():
        assert not tree.is_summary(text)
        assert way[0] in tree.roots
        assert len(way) == len(set(way))
        steps = [*way, text]
        assert all(pair in edges for pair in pairwise(steps))
    if beam == 9:
        texts = {two for _, two in edges} - {one for one, _ in edges}
        assert descend(tree, as_they_come, beam).keys() == texts

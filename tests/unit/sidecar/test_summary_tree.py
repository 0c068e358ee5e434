"""What must hold of the tree of summaries, whatever the files that make it up claim."""

from collections.abc import Iterable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from filestore.catalog.summaries import ChildRow
from filestore.core.paths import ChunkPath
from filestore.sidecar.summary_tree import Staleness, SummaryTree

KEY = b"k" * 32


def a_row(summary: str, path: str, state: str = "fresh", key: bytes = KEY) -> ChildRow:
    """A child as the catalog gives it."""
    return ChildRow(
        summary=ChunkPath(summary),
        path=ChunkPath(path),
        key=key,
        in_step=state == "fresh",
        is_there=state != "gone",
    )


def a_tree(*edges: str) -> SummaryTree:
    """A tree of edges such as ``a>b``, ``a>b:gone``."""
    return SummaryTree(
        a_row(summary, path, state or "fresh")
        for edge in edges
        for summary, _, rest in [edge.partition(">")]
        for path, _, state in [rest.partition(":")]
    )


def path(name: str) -> ChunkPath:
    """A path of the tree."""
    return ChunkPath(name)


def test_a_tree_of_two_levels() -> None:
    """Children, parents, what is above and below, levels and the root are as the files say."""
    tree = a_tree("top>left", "top>right", "left>a", "left>b", "right>c")
    assert [child.path for child in tree.children(path("top"))] == ["left", "right"]
    assert [child.is_summary for child in tree.children(path("top"))] == [True, True]
    assert tree.parents(path("a")) == ["left"]
    assert tree.ancestors(path("a")) == ["left", "top"]
    assert tree.descendants(path("top")) == ["left", "right", "a", "b", "c"]
    assert [tree.level(path(name)) for name in ("a", "left", "top")] == [0, 1, 2]
    assert tree.roots == ["top"]
    assert tree.summaries == ["left", "right", "top"]
    assert tree.stale_paths() == []
    assert tree.stale(path("top")) is None


def test_what_is_no_part_of_it() -> None:
    """A file that no summary names is above nothing, below nothing and of level 0."""
    tree = a_tree("top>a")
    other = path("other")
    assert other not in tree
    assert (path("a") in tree, path("top") in tree) == (True, True)
    assert tree.children(other) == tree.parents(other) == tree.ancestors(other) == []
    assert tree.level(other) == 0
    assert not SummaryTree([])
    assert SummaryTree([]).roots == []


def test_a_change_marks_its_ancestors_alone() -> None:
    """A changed, and a gone, child makes what is above it stale, and says which it was."""
    tree = a_tree("top>left", "top>right", "left>a:changed", "left>b:gone", "right>c")
    assert tree.stale_paths() == ["left", "top"]
    assert tree.stale(path("left")) == Staleness(changed=(path("a"),), gone=(path("b"),), stale=())
    assert tree.stale(path("top")) == Staleness(changed=(), gone=(), stale=(path("left"),))
    assert not tree.is_stale(path("right"))
    states = {child.path: child.state for child in tree.children(path("left"))}
    assert states == {"a": "changed", "b": "gone"}


def test_a_summary_all_of_whose_children_are_gone() -> None:
    """It is stale, of the first level, and still the root of what it names."""
    tree = a_tree("s>a:gone", "s>b:gone")
    assert (tree.roots, tree.level(path("s"))) == (["s"], 1)
    assert tree.stale(path("s")) == Staleness(changed=(), gone=(path("a"), path("b")), stale=())


def test_a_summary_that_is_its_own_child() -> None:
    """It is no parent that makes it less of a root, adds no level, and is not below itself."""
    tree = a_tree("s>s", "s>a")
    assert tree.roots == ["s"]
    assert tree.level(path("s")) == 1
    assert tree.descendants(path("s")) == ["a"]
    assert tree.ancestors(path("s")) == []
    assert a_tree("s>s:changed").stale(path("s")) == Staleness(
        changed=(path("s"),), gone=(), stale=()
    )


def test_a_cycle_has_one_root_and_one_level() -> None:
    """Summaries that name each other are of one level, and reached from the first of them."""
    tree = a_tree("b>c", "c>a", "a>b", "c>chunk", "above>x", "x>y", "y>x")
    assert tree.roots == ["a", "above"]
    assert {tree.level(path(name)) for name in "abc"} == {1}
    assert (tree.level(path("x")), tree.level(path("above"))) == (1, 2)
    assert tree.descendants(path("a")) == ["b", "c", "chunk"]
    assert a_tree("a>b", "b>a", "b>c:gone").stale_paths() == ["a", "b"]


def test_one_child_of_several_parents() -> None:
    """Each of them has it, and each is stale with it."""
    tree = a_tree("one>a:changed", "two>a:changed", "top>one", "top>two")
    assert tree.parents(path("a")) == ["one", "two"]
    assert tree.ancestors(path("a")) == ["one", "two", "top"]
    assert tree.stale_paths() == ["one", "top", "two"]


def test_sections_of_one_document_are_children_each() -> None:
    """In place two texts of one file stand under one path; one that changed is enough."""
    rows = [a_row("s", "note.md", key=b"1" * 32), a_row("s", "note.md", "changed", key=b"2" * 32)]
    tree = SummaryTree(rows)
    assert [child.state for child in tree.children(path("s"))] == ["fresh", "changed"]
    assert tree.descendants(path("s")) == ["note.md"]
    assert tree.stale(path("s")) == Staleness(changed=(path("note.md"),), gone=(), stale=())


def test_paths_come_in_natural_order() -> None:
    """The tenth chunk stands behind the second."""
    tree = a_tree("r/summary1.md>r/chunk10.md", "r/summary1.md>r/chunk2.md", "a/summary9.md>x")
    assert tree.descendants(path("r/summary1.md")) == ["r/chunk2.md", "r/chunk10.md"]
    assert tree.roots == ["a/summary9.md", "r/summary1.md"]


def test_many_children_and_many_levels() -> None:
    """A summary of 100,000 passages, and 20,000 summaries in a chain, are taken in one go."""
    wide = SummaryTree(
        a_row("s", f"chunk{n}.md", "gone" if n == 7 else "fresh") for n in range(100_000)
    )
    assert len(wide.children(path("s"))) == 100_000
    assert wide.stale(path("s")) == Staleness(changed=(), gone=(path("chunk7.md"),), stale=())
    deep = SummaryTree(a_row(f"s{n}", f"s{n + 1}") for n in range(20_000))
    assert deep.level(path("s0")) == 20_000
    assert len(deep.ancestors(path("s20000"))) == 20_000
    ring = SummaryTree(a_row(f"s{n}", f"s{(n + 1) % 20_000}") for n in range(20_000))
    assert (len(ring.roots), ring.level(path("s5"))) == (1, 1)


NAMES = st.sampled_from("abcdefgh")
EDGES = st.lists(
    st.tuples(NAMES, NAMES, st.sampled_from(["fresh", "changed", "gone"])), max_size=30
)


def reachable(start: str, edges: Iterable[tuple[str, str]]) -> set[str]:
    """What edges lead to, found as plainly as can be; the start where they lead back to it."""
    edges, found = list(edges), set[str]()
    while new := {to for a, to in edges if a == start or a in found} - found:
        found |= new
    return found


@given(EDGES)
def test_against_a_plain_reading(edges: list[tuple[str, str, str]]) -> None:
    """Of any graph at all the answers are those of their definitions."""
    tree = SummaryTree(a_row(*edge) for edge in edges)
    pairs = {(a, b) for a, b, _ in edges}
    below = {name: reachable(name, pairs) for name in "abcdefgh"}
    summaries = {a for a, _ in pairs}
    bad = {a for a, _, state in edges if state != "fresh"}
    for name in "abcdefgh":
        assert set(tree.descendants(path(name))) == below[name] - {name}
        above = {other for other in summaries if name in below[other]}
        assert set(tree.ancestors(path(name))) == above - {name}
        assert set(tree.parents(path(name))) == {a for a, b in pairs if b == name}
        assert tree.is_stale(path(name)) == bool(bad & (below[name] | {name}) & summaries)
        why = tree.stale(path(name))
        assert (why is None) == (not tree.is_stale(path(name)))
        if why is not None:
            assert why.changed or why.gone or why.stale
    from_roots = set(tree.roots).union(*(below[root] for root in tree.roots))
    assert from_roots == summaries.union(*(below[name] for name in summaries))
    for root in tree.roots:
        assert not any(root in below[other] and other not in below[root] for other in summaries)


@given(EDGES)
def test_levels_rise_towards_the_top(edges: list[tuple[str, str, str]]) -> None:
    """A summary is higher than its children, but for those of a cycle, which are one level."""
    tree = SummaryTree(a_row(*edge) for edge in edges)
    pairs = {(a, b) for a, b, _ in edges}
    below = {name: reachable(name, pairs) for name in "abcdefgh"}
    for summary, child in pairs:
        if summary in below[child]:
            assert tree.level(path(child)) == tree.level(path(summary))
        else:
            assert tree.level(path(child)) < tree.level(path(summary))


@given(EDGES, st.randoms())
def test_the_order_of_rows_does_not_matter(
    edges: list[tuple[str, str, str]], random: Random
) -> None:
    """The same files give the same tree."""
    other = edges.copy()
    random.shuffle(other)
    one, two = SummaryTree(a_row(*e) for e in edges), SummaryTree(a_row(*e) for e in other)
    assert (one.roots, one.stale_paths()) == (two.roots, two.stale_paths())
    for name in map(path, "abcdefgh"):
        assert one.level(name) == two.level(name)
        assert one.descendants(name) == two.descendants(name)

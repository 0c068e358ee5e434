"""Which summaries a resource is to have: by its texts alone, and stable as they change."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.core.paths import ChunkPath
from filestore.enrich.tree import (
    MOST_CHILDREN,
    Leaf,
    Merging,
    PlannedSummary,
    Present,
    TreeLimits,
    TreePlan,
    TreePlanning,
    choose_threshold,
    find_root,
)

LIMITS = TreeLimits(threshold=0.8, window=10_000)


def plan_tree(*texts, **options):
    """The tree over some texts."""
    return TreePlanning(*texts, **options).plan()


def made(topics, dim=8):
    """Leaves and vectors: one text a number, those of one number alike."""
    leaves, rows = [], []
    for place, topic in enumerate(topics):
        noise = random.Random(place).random() * 0.05
        row = np.zeros(dim, dtype=np.float32)
        row[topic % dim] = 1.0
        row[(topic + 1) % dim] = noise
        rows.append(row / np.linalg.norm(row))
        leaves.append(leaf(place))
    return leaves, np.array(rows, dtype=np.float32)


def leaf(place, text=""):
    """A leaf of its own text."""
    key = (b"%03d" % place + text.encode()).ljust(32, b".")
    return Leaf(path=ChunkPath(f"r/chunk{place + 1}.md"), key=key, tokens=100)


def paths(plan: TreePlan):
    """The texts below each summary."""
    return [sorted(map(str, below(one))) for one in plan.summaries]


def below(wanted):
    """The paths of the leaves under a summary."""
    found = []
    for member in wanted.members:
        found += below(member) if isinstance(member, PlannedSummary) else [member.path]
    return found


def there(plan: TreePlan):
    """The plan as files that are there."""
    for number, one in enumerate(plan.summaries, 1):
        one.path = one.path or ChunkPath(f"r/summary{number}.md")
    return [
        Present(
            path=one.path,
            level=one.level,
            children={
                member.path: frozenset([member.key if isinstance(member, Leaf) else b""])
                for member in one.members
            },
        )
        for one in plan.summaries
    ]


def again(plan, leaves, vectors):
    """The plan of a later day."""
    present = there(plan)
    return plan_tree(leaves, vectors, present, LIMITS, root=find_root(present))


def test_alike_texts_are_one_group_and_one_summary_is_over_all() -> None:
    """Three texts of each of two subjects: a summary of each, and one of both."""
    plan = plan_tree(*made([0, 3, 0, 3, 0, 3]), [], LIMITS)
    assert [one.level for one in plan.summaries] == [1, 1, 2]
    assert [len(below(one)) for one in plan.summaries] == [3, 3, 6]


def test_one_text_has_no_summary() -> None:
    """Neither has none."""
    assert plan_tree(*made([0]), [], LIMITS).summaries == []
    assert plan_tree([], np.zeros((0, 8), dtype=np.float32), [], LIMITS).summaries == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(topics, chance) -> None:
    """The same texts in any order: the same groups."""
    leaves, vectors = made(topics)
    order = list(range(len(leaves)))
    chance.shuffle(order)
    first = plan_tree(leaves, vectors, [], LIMITS)
    second = plan_tree([leaves[i] for i in order], vectors[order], [], LIMITS)
    assert sorted(paths(first)) == sorted(paths(second))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=60))
def test_what_is_there_stays(topics) -> None:
    """Planned again over its own files, every summary is one that is there, none is too many."""
    leaves, vectors = made(topics)
    first = plan_tree(leaves, vectors, [], LIMITS)
    before = paths(first)
    second = again(first, leaves, vectors)
    assert sorted(paths(second)) == sorted(before)
    assert all(one.path for one in second.summaries)
    assert second.superfluous == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=3, max_size=40), st.data())
def test_every_text_is_below_the_one_root(topics, data) -> None:
    """Whatever comes, goes or changes: one root over all texts, each group of at least two."""
    leaves, vectors = made(topics)
    plan = plan_tree(leaves, vectors, [], LIMITS)
    for _ in range(3):
        keep = data.draw(st.sets(st.integers(0, len(leaves) - 1), min_size=2))
        changed = data.draw(st.sets(st.sampled_from(sorted(keep))))
        leaves = [
            leaf(int(one.path[7:-3]) - 1, "!") if place in changed else one
            for place, one in enumerate(leaves)
            if place in keep
        ]
        vectors = vectors[sorted(keep)]
        plan = again(plan, leaves, vectors)
        assert sorted(below(plan.root)) == sorted(one.path for one in leaves)
        assert all(len(one.members) > 1 for one in plan.summaries)
        names = [one.path for one in plan.summaries if one.path]
        assert len(set(names)) == len(names)


def test_a_new_text_joins_its_group_and_moves_nothing_else() -> None:
    """The group of another subject is as it was, with its file."""
    leaves, vectors = made([0, 3, 0, 3, 0, 3])
    first = plan_tree(leaves, vectors, [], LIMITS)
    more, rows = made([0, 3, 0, 3, 0, 3, 0])
    second = again(first, more, rows)
    assert [len(below(one)) for one in second.summaries] == [4, 3, 7]
    assert [one.path for one in second.summaries] == [one.path for one in first.summaries]


def test_a_text_that_moved_is_still_in_its_group() -> None:
    """The same text under another name leaves no group and makes none."""
    leaves, vectors = made([0, 0, 3, 3])
    first = plan_tree(leaves, vectors, [], LIMITS)
    leaves[1] = Leaf(path=ChunkPath("r/elsewhere.md"), key=leaves[1].key, tokens=100)
    second = again(first, leaves, vectors)
    assert [one.path for one in second.summaries] == [one.path for one in first.summaries]


def test_a_text_on_another_subject_now_leaves_its_group() -> None:
    """It is held against those that stay."""
    leaves, vectors = made([0, 0, 0, 3, 3])
    first = plan_tree(leaves, vectors, [], LIMITS)
    leaves[2] = leaf(2, "changed")
    vectors[2] = vectors[3]
    second = again(first, leaves, vectors)
    assert [len(below(one)) for one in second.summaries] == [2, 3, 5]


def test_a_group_that_loses_its_texts_is_superfluous() -> None:
    """One text is no group."""
    leaves, vectors = made([0, 0, 3, 3])
    first = plan_tree(leaves, vectors, [], LIMITS)
    gone = first.summaries[0]
    second = again(first, leaves[1:], vectors[1:])
    assert second.superfluous == [gone.path]


def test_no_group_is_larger_than_the_window() -> None:
    """Nor has one more children than a file holds, however alike texts are."""
    leaves, vectors = made([0] * 300)
    for window in (250, 100_000):
        plan = plan_tree(leaves, vectors, [], TreeLimits(threshold=0.5, window=window))
        for one in plan.summaries:
            assert len(one.members) <= MOST_CHILDREN
        first = [one for one in plan.summaries if one.level == 1]
        assert all(sum(m.tokens for m in one.members) <= window for one in first)
        assert len(below(plan.root)) == 300


def test_texts_that_have_nothing_in_common_have_one_summary_over_all() -> None:
    """Where nothing groups, a resource still has its root."""
    leaves = [leaf(place) for place in range(5)]
    plan = plan_tree(leaves, np.eye(5, dtype=np.float32), [], LIMITS)
    assert [len(one.members) for one in plan.summaries] == [5]


def test_the_threshold_lies_between_strangers_and_neighbours() -> None:
    """And says how it was chosen."""
    _, vectors = made([0, 1, 2, 3, 4, 5, 6, 7] * 20)
    found = choose_threshold(vectors)
    assert found.strangers < found.value < found.nearest
    assert f"{found.value:.2f}" in str(found)
    assert "160 passages" in str(found)
    assert "too few" in str(choose_threshold(vectors[:2]))


def test_groups_that_are_there_are_never_made_one() -> None:
    """Two groups of the same subject that a person told apart stay two."""
    _, vectors = made([0, 0, 0, 0])
    merging = Merging(vectors, [1] * 4, threshold=0.1, window=100)
    found = merging.groups(existing=[[0, 1], [2, 3]])
    assert found == [[0, 1], [2, 3]]


def test_a_run_that_was_broken_off_goes_on() -> None:
    """Whatever part of a tree is there, level by level, the rest is planned as it was."""
    leaves, vectors = made([0, 3, 0, 3, 0, 3, 5, 5])
    whole = plan_tree(leaves, vectors, [], LIMITS)
    present = there(whole)
    for count in range(len(present)):
        some = present[:count]
        plan = plan_tree(leaves, vectors, some, LIMITS, root=find_root(some))
        assert paths(plan) == paths(whole)
        assert [one.path for one in plan.summaries][:count] == [one.path for one in some]
        assert plan.superfluous == []


def sections(leaves):
    """The same texts as sections of one document in place."""
    return [Leaf(path=ChunkPath("notes.md"), key=one.key, tokens=one.tokens) for one in leaves]


def in_place(plan):
    """The plan as files that are there, children by the keys of their sections."""
    found = []
    for number, one in enumerate(plan.summaries, 1):
        one.path = one.path or ChunkPath(f"s/summary{number}.md")
        children = {}
        for member in one.members:
            key = member.key if isinstance(member, Leaf) else b""
            children.setdefault(member.path, set()).add(key)
        children = {path: frozenset(keys) for path, keys in children.items()}
        found.append(Present(path=one.path, level=one.level, children=children))
    return found


def test_a_section_stays_with_those_it_was_with() -> None:
    """All have the path of their document: a changed one takes the place of one that is gone."""
    leaves, vectors = made([0, 0, 0, 3, 3, 3])
    of_note = sections(leaves)
    first = plan_tree(of_note, vectors, (), LIMITS)
    present = in_place(first)
    names = {one.path: {member.key for member in one.members[:3]} for one in first.summaries[:2]}
    changed = [*of_note]
    changed[4] = Leaf(path=changed[4].path, key=leaf(4, "changed").key, tokens=100)
    second = plan_tree(changed, vectors, present, LIMITS, root=find_root(present))
    after = {one.path: {member.key for member in one.members[:3]} for one in second.summaries[:2]}
    assert after.keys() == names.keys()
    moved = {path for path in names if names[path] != after[path]}
    assert len(moved) == 1
    assert after[moved.pop()] == {changed[place].key for place in (3, 4, 5)}
    assert second.superfluous == []


def test_a_group_that_stands_alone_is_not_the_one_over_all() -> None:
    """A run that was ended before it came to the next level goes on where it was."""
    leaves, vectors = made([0, 0, 0, 3, 6])
    first = plan_tree(leaves, vectors, (), LIMITS)
    present = there(first)
    assert len(present) == 2
    second = plan_tree(leaves, vectors, present[:1], LIMITS, root=find_root(present[:1]))
    assert [one.path for one in second.summaries] == [present[0].path, None]
    assert paths(second) == paths(first)

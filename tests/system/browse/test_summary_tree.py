"""The tree of summaries node by node, as the inspector opens it, also where files lie."""

from typing import Any

import pytest

from filestore.browse import InspectedStore

CHUNKED = "chunked/garden"


@pytest.fixture
def garden(workspace: Any) -> Any:
    """Three texts, a summary of two, one of that and the third."""
    for name, text in (("1", "Beans climb."), ("2", "Leeks stand."), ("10", "Peas.")):
        workspace.write(f"file_index/chunked/garden/chunk{name}.md", f"{text} More follows.\n")
    workspace.summarize(
        "garden/summary1.md",
        "Climbing plants",
        "What climbs in summer.\n",
        ["garden/chunk10.md", "garden/chunk1.md"],
    )
    workspace.summarize(
        "garden/summary2.md",
        "The garden year",
        "A year among vegetables.\n",
        ["garden/summary1.md", "garden/chunk2.md"],
        level=2,
    )
    workspace.sync()
    return workspace


def opened(workspace: Any) -> InspectedStore:
    """The store as the inspector has it."""
    return InspectedStore(str(workspace.store), configuration=str(workspace.folder))


def names(nodes: Any) -> list[str]:
    """Without what all share."""
    return [node.path.removeprefix(f"{CHUNKED}/").removesuffix(".md") for node in nodes]


def test_from_a_resource_to_its_texts(garden: Any) -> None:
    """A resource leads to its root, that to its children, these to theirs, each with its title;
    the listing has the texts alone."""
    with opened(garden) as store:
        tree = store.summaries
        (root,) = tree.roots("garden")
        assert (root.level, root.children, root.why) == (2, 2, "")
        assert root.title == "The garden year"
        rows = store.listing.chunks(store.listing.rows_below("garden"))
        assert set(names(rows.values())) == {"chunk1", "chunk2", "chunk10"}
        children = tree.children(root.path)
        assert names(children) == ["summary1", "chunk2"]
        assert names(tree.children(children[0].path)) == ["chunk1", "chunk10"]
        assert [one.title for one in children] == ["Climbing plants", "Leeks stand. More follows."]
        way = tree.way_to(f"{CHUNKED}/summary1.md")
        assert [one.rpartition("/")[2] for one in way] == ["summary2.md", "summary1.md"]
        assert tree.way_to(f"{CHUNKED}/chunk10.md") == ()


def test_what_changed_marks_what_is_above_it(garden: Any) -> None:
    """A changed and a removed text are named as such, and all summaries above are stale."""
    garden.write("file_index/chunked/garden/chunk1.md", "Beans do not climb at all.\n")
    (garden.chunked / "garden" / "chunk10.md").unlink()
    garden("sync", code=None)
    with opened(garden) as store:
        family = store.summaries.family(f"{CHUNKED}/summary1.md")
        assert family is not None
        assert [node.state for node in family.children] == ["changed", "gone"]
        assert "1 passage changed" in family.node.why
        assert names(family.above) == ["summary2"]
        assert family.above[0].why
        (root,) = store.summaries.roots("garden")
        assert root.why == family.above[0].why


def test_a_text_that_no_summary_was_made_from(garden: Any) -> None:
    """It has no family, and makes the root stale."""
    garden.write("file_index/chunked/garden/chunk11.md", "Frost comes late.\n")
    garden("sync", code=None)
    with opened(garden) as store:
        assert store.summaries.family(f"{CHUNKED}/chunk11.md") is None
        (root,) = store.summaries.roots("garden")
        assert root.why == "1 passage is in no summary"


def test_circles_and_lies(garden: Any) -> None:
    """Summaries that name each other, themselves and what never was: each is there, once."""
    for own, named in (("3", "4"), ("4", "3"), ("5", "5"), ("6", "7")):
        child = f'{{"path": "garden/summary{named}.md", "hash": "sha256:{"0" * 64}"}}'
        head = f'kind: "summary"\nlevel: 9\nchildren:\n- {child}\n'
        garden.write(
            f"file_index/chunked/garden/summary{own}.md", f"---\n{head}---\nIt turns {own}.\n"
        )
    garden("sync", code=None)
    with opened(garden) as store:
        tree = store.summaries
        assert names(tree.roots("garden")) == ["summary2", "summary3", "summary5", "summary6"]
        assert names(tree.children(f"{CHUNKED}/summary5.md")) == ["summary5"]
        (gone,) = tree.children(f"{CHUNKED}/summary6.md")
        assert (gone.state, gone.kind, gone.children) == ("gone", "chunk", 0)
        way = (f"{CHUNKED}/summary3.md", f"{CHUNKED}/summary4.md")
        assert tree.way_to(way[1]) == way


def test_no_summaries_at_all(workspace: Any) -> None:
    """Nothing is listed, or found."""
    workspace.write("file_index/chunked/garden/chunk1.md", "Beans climb.\n")
    workspace.sync()
    with opened(workspace) as store:
        assert store.summaries.roots("garden") == []

"""The tree of summaries as rows by number: what opens, what is asked for, where circles end."""

from filestore.browse import TreeNode
from tui.formatting.lines import line, plain
from tui.state.summary_rows import SummaryRows


def node(path, children=0, **more):
    """A summary, or a text where it has no children."""
    values = {"is_summary": children > 0, "level": int(children > 0), "state": "fresh", **more}
    return TreeNode(path=path, children=children, **values)


class Asked:
    """Rows, and what they asked for."""

    def __init__(self):
        self.ways, self.pages = [], []
        self.rows = SummaryRows(
            lambda way: line(way[-1]), self.ways.append, lambda page: self.pages.append(list(page))
        )


def shown(rows):
    return plain([rows.row(index) for index in range(len(rows))]).splitlines()


def test_a_row_opens_onto_what_comes():
    """A row that is opened shows a dot until its children are known, then these, in their order."""
    asked = Asked()
    rows = asked.rows
    rows.replace([(("r", "a"), None), (("r", "b"), None)])
    assert rows.open(("r", "a"))
    assert [one.strip() for one in shown(rows)] == ["a", "…", "b"]
    rows.want(0, 3)
    rows.want(0, 3)
    assert asked.ways == [("r", "a")]
    rows.take(("r", "a"), [node("s2", 2), node("c1")])
    assert shown(rows) == ["a", "s2", "c1", "b"]
    assert rows.index_of(("r", "a", "")) == 1
    assert rows.parent_of(("r", "a", "s2")) == ("r", "a")
    assert rows.parent_of(("r", "a")) is None
    rows.close(("r", "a"))
    assert shown(rows) == ["a", "b"]


def test_only_what_is_in_sight_is_asked_for():
    """Titles are fetched a page at a time, each once."""
    asked = Asked()
    rows = asked.rows
    rows.replace([(("f", f"s{number}"), node(f"s{number}", 1)) for number in range(20_000)])
    rows.want(0, 100)
    rows.want(50, 100)
    assert [len(page) for page in asked.pages] == [64, 36]


def test_a_circle_ends_where_it_closes():
    """A summary below itself is a row that does not open, however long the way back is."""
    rows = Asked().rows
    rows.replace([(("f", "s1"), node("s1", 1))])
    rows.open_all()
    rows.take(("f", "s1"), [node("s2", 1)])
    rows.open_all()
    rows.take(("f", "s1", "s2"), [node("s1", 1)])
    assert rows.is_circle(("f", "s1", "s2", "s1"))
    assert not rows.open(("f", "s1", "s2", "s1"))
    rows.open_all()
    assert shown(rows) == ["s1", "s2", "s1"]


def test_what_is_open_stays_open_when_everything_is_read_again():
    """After a new generation the same rows are open, and are asked for again."""
    asked = Asked()
    rows = asked.rows
    rows.replace([(("r", "a"), None)])
    rows.open(("r", "a"))
    rows.take(("r", "a"), [node("s1", 1)])
    rows.replace([(("r", "0"), None), (("r", "a"), None)])
    rows.want(0, len(rows))
    assert asked.ways[-1] == ("r", "a")
    rows.take(("r", "a"), [node("s1", 1)])
    assert shown(rows) == ["0", "a", "s1"]


def test_a_text_below_two_summaries_is_two_rows():
    """Each is found by its own way."""
    rows = Asked().rows
    rows.replace([(("r", "a"), None)])
    rows.open_each([("r", "a"), ("r", "a", "s1"), ("r", "a", "s2")])
    rows.take(("r", "a"), [node("s1", 1), node("s2", 1)])
    for name in ("s1", "s2"):
        rows.take(("r", "a", name), [node("c1")])
    assert shown(rows) == ["a", "s1", "c1", "s2", "c1"]
    assert rows.index_of(("r", "a", "s2", "c1")) == 4
    assert rows.index_of(("r", "a", "s3", "c1")) is None
    rows.close_all()
    assert shown(rows) == ["a"]

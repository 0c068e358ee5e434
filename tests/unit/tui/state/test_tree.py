"""The tree of rows by number, against a plain list of what should be there."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from tui.formatting import line
from tui.formatting.rows import folder_above, own_name, way_of
from tui.state.rows import PAGE, Document, Pending, TreeRows


class Told:
    """A tree of resources, and what it asked for."""

    def __init__(self, resources, **below):
        self.counts = dict(resources)
        self.below = below
        self.sought, self.fetched = [], []
        self.rows = TreeRows(
            lambda way: line(" ".join(map(str, way))),
            lambda way: self.below.get(way[-1], self.counts.get(way[-1], 1)),
            self.sought.append,
            lambda ways: self.fetched.append([way[-1] for way in ways]),
        )
        self.rows.replace(list(self.counts))

    def keys(self):
        """The key of every row."""
        return [self.rows.key(index) for index in range(len(self.rows))]


def ids_of(resources):
    """Distinct ids for every resource, in an order that is not that of their numbers."""
    ids, following = {}, 1
    for name, chunks in resources:
        ids[name] = array("q", reversed(range(following, following + chunks)))
        following += chunks
    return ids


RESOURCES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3), st.integers(0, 5), max_size=12
).map(lambda found: list(found.items()))


class Plain:
    """What a tree should show, said the long way."""

    def __init__(self, resources):
        self.resources = dict(resources)
        self.ids = ids_of(resources)
        self.opened = {}
        self.matches = None
        self.opened_matches = set()

    def rows(self):
        """The key of every row."""
        found = []
        shown = self.resources if self.matches is None else self.matches
        for name in shown:
            below = ()
            if self.matches is not None:
                below = self.matches[name] if name in self.opened_matches else ()
            elif name in self.opened:
                pending = map(Pending, range(self.resources[name]))
                below = self.ids[name] if self.opened[name] else pending
            found += [(name,), *((name, one) for one in below)]
        return found

    def act(self, tree, action, name, data):
        """Do the same to the tree."""
        known = name in self.resources if self.matches is None else name in self.matches
        if action == "open":
            assert tree.open((name,)) == known
            if self.matches is None and known:
                self.opened.setdefault(name, False)
            elif known:
                self.opened_matches.add(name)
        elif action == "take" and self.matches is None:
            assert tree.take((name,), self.ids.get(name, ())) == (name in self.opened)
            if name in self.opened:
                self.opened[name] = True
        elif action == "close":
            tree.close((name,))
            opened = self.opened if self.matches is None else self.opened_matches
            opened.pop(name, None) if self.matches is None else opened.discard(name)
        elif action == "open all":
            tree.open_each((one,) for one in tree.tops)
            if self.matches is None:
                self.opened = {one: self.opened.get(one, False) for one in self.resources}
            else:
                self.opened_matches = set(self.matches)
        elif action == "close all":
            tree.close_all()
            self.opened.clear() if self.matches is None else self.opened_matches.clear()
        elif action == "filter":
            self.matches = {
                one: array("q", (file for file in ids if data.draw(st.booleans())))
                for one, ids in self.ids.items()
                if data.draw(st.booleans())
            }
            self.opened_matches = set(self.matches)
            tree.filtered(self.matches, self.matches)
        elif action == "unfilter":
            tree.unfiltered()
            self.matches = None


@given(RESOURCES, st.data())
def test_rows_are_those_of_a_plain_list(resources, data):
    """After any opening, closing and filtering, every number gives the row a list would have
    there, every key gives its number back, and every row has its own words."""
    tree, plain = Told(resources).rows, Plain(resources)
    actions = ("open", "take", "close", "open all", "close all", "filter", "unfilter")
    names = [*plain.resources, "not there"]
    for _ in range(data.draw(st.integers(1, 8))):
        action = data.draw(st.sampled_from(actions))
        plain.act(tree, action, data.draw(st.sampled_from(names)), data)
        rows = plain.rows()
        assert [tree.key(index) for index in range(len(tree))] == rows
        assert [tree.index_of(key) for key in rows] == list(range(len(rows)))
        for index, key in enumerate(rows):
            words = None if isinstance(key[-1], Pending) else line(" ".join(map(str, key)))
            assert tree.row(index) == words


NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=4)


@given(st.lists(NAMES, max_size=12), st.data())
def test_only_what_is_below_opened_rows_is_shown(paths, data):
    """However deep: every row above has to be opened, in whatever order that was asked."""
    documents = {"/".join(path) + ".md" for path in paths}
    ways = {way_of(name)[:end] for name in documents for end in range(1, 9)}
    inside = {}
    for way in sorted(ways):
        inside.setdefault(way[:-1], []).append(way[-1])
    tree = TreeRows(lambda _: None, lambda way: inside[way], print, print)
    tree.replace(inside.get((), []))
    folders = [way for way in sorted(ways) if way in inside]
    opened = data.draw(st.lists(st.sampled_from(folders))) if folders else []
    tree.open_each(opened)
    shown = {way for way in ways if all(way[:end] in opened for end in range(1, len(way)))}
    assert [tree.key(row) for row in range(len(tree))] == in_order(inside, shown)
    assert [tree.index_of(tree.key(row)) for row in range(len(tree))] == list(range(len(tree)))


def in_order(inside, shown, above=()):
    """What is shown, each row before what is below it."""
    found = []
    for key in inside.get(above, ()):
        if (way := (*above, key)) in shown:
            found += [way, *in_order(inside, shown, way)]
    return found


@given(RESOURCES, RESOURCES, st.data())
def test_other_resources_keep_what_is_open(before, after, data):
    """When the resources are others, those that are still there stay opened, with their ids."""
    told, ids = Told(before), ids_of(before)
    opened = [name for name, _ in before if data.draw(st.booleans())]
    for name in opened:
        told.rows.open((name,))
        told.rows.take((name,), ids[name])
    told.rows.replace([name for name, _ in after])
    expected = []
    for name, _ in after:
        expected += [(name,), *((name, one) for one in (ids[name] if name in opened else ()))]
    assert told.keys() == expected


def test_a_row_is_found_by_its_place_once_its_id_is_known():
    """The cursor on a file that is not known yet finds it when the ids come."""
    told = Told([("a", 3), ("b", 2)])
    told.rows.open_each([("a",), ("b",)])
    key = told.rows.key(2)
    assert key == ("a", Pending(1))
    told.rows.take(("a",), array("q", [7, 8, 9]))
    assert told.rows.key(told.rows.index_of(key)) == ("a", 8)


def test_rows_of_closed_resources_are_nowhere():
    """A file whose resource was closed, and anything unknown, has no row."""
    tree = Told([("a", 2), ("b", 2)]).rows
    tree.open(("a",))
    tree.take(("a",), array("q", [1, 2]))
    assert tree.index_of(("a", 2)) == 2
    tree.close(("a",))
    for key in (("a", 2), ("a", 99), ("c",), ("a", Pending(0)), (), "a", None):
        assert tree.index_of(key) is None


def test_words_are_asked_for_by_page_and_once():
    """Rows in sight are asked for in pages, each once until that is forgotten."""
    total = 3 * PAGE
    told = Told([("a", total)])
    told.rows.open(("a",))
    told.rows.take(("a",), array("q", range(total)))
    told.rows.want(0, 10)
    assert told.fetched == [["a"], list(range(PAGE))]
    told.rows.want(0, PAGE + 2)
    assert told.fetched[2:] == [list(range(PAGE, 2 * PAGE))]
    told.rows.want(0, PAGE + 2)
    assert len(told.fetched) == 3
    told.rows.forget()
    told.rows.want(0, 10)
    assert len(told.fetched) == 5


def test_ids_are_asked_for_once_for_what_is_in_sight():
    """Resources opened without their files are asked for when they are seen, and once more when
    they were closed: what was asked about a closed resource may never come."""
    told = Told([("a", 3), ("b", 3), ("c", 3)])
    told.rows.open_each((name,) for name in "abc")
    told.rows.want(0, 6)
    told.rows.want(0, 6)
    assert told.sought == [("a",), ("b",)]
    told.rows.close(("a",))
    told.rows.open(("a",))
    told.rows.want(0, 4)
    assert told.sought == [("a",), ("b",), ("a",)]


def test_a_filter_has_its_own_rows():
    """What is open without the filter is open again after it."""
    tree = Told([("a", 3), ("b", 2)]).rows
    tree.open(("a",))
    tree.filtered({"b": array("q", [4])}, ["b"])
    assert (tree.tops, tree.is_filtered) == (["b"], True)
    assert (tree.is_open(("a",)), tree.is_open(("b",))) == (False, True)
    tree.unfiltered()
    assert tree.opened == [("a",)]
    assert not tree.is_open(("b",))


def test_a_million_rows_are_arithmetic():
    """Opening everything of a million files makes none of them, and every number has its row."""
    told = Told([(f"resource {number:05}", 50) for number in range(20_000)])
    tree = told.rows
    tree.open_each((name,) for name in tree.tops)
    assert len(tree) == 20_000 * 51
    assert tree.key(len(tree) - 1) == ("resource 19999", Pending(49))
    assert tree.key(51 * 10_000) == ("resource 10000",)
    assert tree.index_of(("resource 10000", Pending(3))) == 51 * 10_000 + 4
    assert told.fetched == told.sought == []


def test_files_are_shown_below_each_document_of_several():
    """Wherever its resource is opened, and again when what is below it is another."""
    told = Told([("folder", 3)])
    told.below = {Document(4): array("q", [4, 7]), Document(5): array("q", [5])}
    told.rows.open(("folder",))
    for keys in ([Document(4), Document(5)], [9, Document(5)]):
        told.rows.take(("folder",), keys)
        expected = []
        for key in keys:
            expected += [
                ("folder", key),
                *(("folder", key, one) for one in told.below.get(key, ())),
            ]
        assert told.keys()[1:] == expected


def test_what_is_open_stays_open_when_everything_is_read_again():
    """What is below an opened row is asked for again, and opened as deep as it was."""
    told = Told([("a", 1)])
    tree = told.rows
    tree.open_each([("a",), ("a", "s1"), ("a", "s2")])
    tree.take(("a",), ["s1", "s2"])
    for name in ("s1", "s2"):
        tree.take(("a", name), ["c1"])
    below = [("a", "s1"), ("a", "s1", "c1"), ("a", "s2"), ("a", "s2", "c1")]
    assert told.keys() == [("a",), *below]
    tree.replace(["0", "a"], {})
    assert told.keys() == [("0",), ("a",), ("a", Pending(0))]
    tree.want(0, 3)
    assert told.sought == [("a",)]
    assert tree.rows_below(("a",)) == ()
    tree.take(("a",), ["s1"])
    assert told.keys()[2:] == [("a", "s1"), ("a", "s1", Pending(0))]
    assert tree.rows_below(("a",)) == ["s1"]
    tree.close_all()
    assert told.keys() == [("0",), ("a",)]


def test_names_are_told_from_the_folders_above_them():
    """A folder ends with a slash, and lies in others as a document does."""
    assert folder_above("a/b/") == "a/"
    assert way_of("a/b/c.md") == ("a/", "a/b/", "a/b/c.md")
    assert (own_name("a/b/"), own_name("a/c.md"), own_name("c.md")) == ("b/", "c.md", "c.md")

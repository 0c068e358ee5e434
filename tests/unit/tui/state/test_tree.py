"""The tree of resources as rows by number, against a plain list of what should be there."""

from array import array
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tui.formatting.lines import line
from tui.state.tree import PAGE, TreeRows, depth, folder_above, folders_above, in_sight, own_name


def said(kind, what):
    """Words for everything."""
    return line(f"{kind} {what}")


def tree_of(resources, label=said, **told):
    """A tree of these resources, and what it asked for."""
    asked = []
    tree = TreeRows(label, asked.append, told.get("seek"))
    tree.replace(resources)
    return tree, asked


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
            found.append(("r", name))
            if self.matches is not None:
                found += self.matches[name] if name in self.opened_matches else ()
            elif name in self.opened:
                places = (("p", name, place) for place in range(self.resources[name]))
                found += self.ids[name] if self.opened[name] else places
        return found

    def act(self, tree, action, name, data):
        """Do the same to the tree."""
        known = name in self.resources if self.matches is None else name in self.matches
        if action in ("open", "open unknown"):
            ids = self.ids.get(name) if action == "open" else None
            assert tree.open(name, ids) == known
            self.opened_so(name, known=known, has_ids=ids is not None)
        elif action == "close":
            tree.close(name)
            self.opened.pop(name, None) if self.matches is None else self.opened_matches.discard(
                name
            )
        elif action == "open all":
            tree.open_all()
            self.open_all()
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
            tree.filtered(self.matches)
        else:
            tree.unfiltered()
            self.matches = None

    def opened_so(self, name, *, known, has_ids):
        """A resource was opened."""
        if self.matches is None:
            if known:
                self.opened[name] = has_ids
            return
        if has_ids and name in self.opened:
            self.opened[name] = True
        if known:
            self.opened_matches.add(name)

    def open_all(self):
        """Every resource was opened."""
        if self.matches is None:
            self.opened = {one: self.opened.get(one, False) for one in self.resources}
        else:
            self.opened_matches = set(self.matches)


@given(RESOURCES, st.data())
def test_rows_are_those_of_a_plain_list(resources, data):
    """After any opening, closing and filtering, every number gives the row a list would have
    there, every key gives its number back, and every row knows its resource and parent."""
    tree, _ = tree_of(resources)
    plain = Plain(resources)
    actions = ("open", "open unknown", "close", "open all", "close all", "filter", "unfilter")
    names = [*plain.resources, "not there"]
    for _ in range(data.draw(st.integers(1, 8))):
        action = data.draw(st.sampled_from(actions))
        plain.act(tree, action, data.draw(st.sampled_from(names)), data)
        rows = plain.rows()
        assert [tree.key(index) for index in range(len(tree))] == rows
        assert [tree.index_of(key) for key in rows] == list(range(len(rows)))
        check_parents(tree, rows)


def check_parents(tree, rows):
    """Every row is below the resource before it, and is drawn with its own words."""
    resource = ""
    for index, key in enumerate(rows):
        if isinstance(key, tuple) and key[0] == "r":
            resource = key[1]
            assert tree.parent_of(key) is None
            assert tree.row(index) == line(f"r {resource}")
        else:
            assert tree.parent_of(key) == ("r", resource)
            assert tree.row(index) == (line(f"c {key}") if isinstance(key, int) else None)
        assert tree.resource_of(index) == resource


@given(RESOURCES, RESOURCES, st.data())
def test_other_resources_keep_what_is_open(before, after, data):
    """When the resources are others, those that are still there stay opened, with their ids."""
    tree, _ = tree_of(before)
    ids = ids_of(before)
    opened = [name for name, _ in before if data.draw(st.booleans())]
    for name in opened:
        tree.open(name, ids[name])
    tree.replace(after)
    expected = []
    for name, _ in after:
        expected += [("r", name), *(ids[name] if name in opened else ())]
    assert [tree.key(index) for index in range(len(tree))] == expected


def test_a_row_is_found_by_its_place_once_its_id_is_known():
    """The cursor on a file that is not known yet finds it when the ids come."""
    tree, _ = tree_of([("a", 3), ("b", 2)])
    tree.open_all()
    key = tree.key(2)
    assert key == ("p", "a", 1)
    tree.open("a", array("q", [7, 8, 9]))
    index = tree.index_of(key)
    assert index is not None
    assert tree.key(index) == 8


def test_rows_of_closed_resources_are_nowhere():
    """A file whose resource was closed, and anything unknown, has no row."""
    tree, _ = tree_of([("a", 2), ("b", 2)])
    tree.open("a", array("q", [1, 2]))
    assert tree.index_of(2) == 2
    tree.close("a")
    assert [tree.index_of(key) for key in (2, 99, ("r", "c"), ("p", "a", 0), "a", None)] == [
        None
    ] * 6
    assert tree.parent_of(2) is None


def test_a_file_that_moved_is_found_in_its_new_resource():
    """With other ids a file may have come from another resource; it is found where it is."""
    tree, _ = tree_of([("a", 2), ("b", 1)])
    tree.open("a", array("q", [1, 2]))
    tree.open("b", array("q", [3]))
    assert tree.index_of(2) == 2
    tree.open("a", array("q", [1]))
    tree.open("b", array("q", [3, 2]))
    assert tree.index_of(2) == 4


def test_words_are_asked_for_by_page_and_once():
    """Files in sight without words are asked for in pages, each once until that is forgotten."""
    total = 3 * PAGE
    tree, asked = tree_of(
        [("a", total)], lambda kind, what: None if what != 5 else said(kind, what)
    )
    tree.open("a", array("q", range(total)))
    tree.want(0, 10)
    assert asked == [[one for one in range(PAGE) if one != 5]]
    tree.want(0, PAGE + 2)
    assert asked[1:] == [list(range(PAGE, 2 * PAGE))]
    tree.want(0, PAGE + 2)
    assert len(asked) == 2
    tree.forget()
    tree.want(0, 10)
    assert len(asked) == 3


def test_ids_are_asked_for_once_for_what_is_in_sight():
    """Resources opened without their files are asked for when they are seen."""
    sought = []
    tree, asked = tree_of([("a", 3), ("b", 3), ("c", 3)], seek=sought.append)
    tree.open_all()
    tree.want(0, 6)
    tree.want(0, 6)
    assert sought == ["a", "b"]
    assert asked == []


def test_a_resource_that_is_opened_again_is_asked_about_again():
    """What was asked about a closed resource may never come: opened again, it is asked anew."""
    sought = []
    tree, asked = tree_of([("a", 3)], label=lambda kind, _: None, seek=sought.append)
    for again in (tree.open, lambda _: tree.open_all()):
        again("a")
        tree.want(0, 4)
        tree.close("a")
    assert sought == ["a", "a"]
    tree.open("a", array("q", [7, 8, 9]))
    tree.want(0, 4)
    tree.close("a")
    tree.open("a", array("q", [7, 8, 9]))
    tree.want(0, 4)
    assert asked == [[7, 8, 9], [7, 8, 9]]


def test_open_and_close_know_what_is_shown():
    """Counts, names and what is open are those of what is shown, filtered or not."""
    tree, _ = tree_of([("a", 3), ("b", 2)])
    tree.open("a", None)
    assert (tree.is_open("a"), tree.count("a")) == (True, 3)
    tree.filtered({"b": array("q", [4])})
    assert (tree.resources, tree.count("a"), tree.count("b")) == (["b"], 0, 1)
    assert tree.is_open("b")
    assert tree.is_filtered
    tree.unfiltered()
    assert tree.opened == ("a",)
    assert not tree.is_open("b")


def test_a_million_rows_are_arithmetic():
    """Opening everything of a million files makes none of them, and every number has its row."""
    resources = [(f"resource {number:05}", 50) for number in range(20_000)]
    tree, asked = tree_of(resources)
    tree.open_all()
    assert len(tree) == 20_000 * 51
    assert tree.key(len(tree) - 1) == ("p", "resource 19999", 49)
    assert tree.key(51 * 10_000) == ("r", "resource 10000")
    assert tree.index_of(("p", "resource 10000", 3)) == 51 * 10_000 + 4
    assert asked == []


def test_a_row_below_zero_is_above_the_files_of_its_document() -> None:
    """It is what a file is below, and stands for its files."""
    tree = TreeRows(lambda *_: None, lambda _: None)
    tree.replace([("folder", 3)])
    tree.open("folder", array("q", [-4, 4, 7, -5, 5]))
    assert len(tree) == 6
    assert [tree.key(row) for row in range(1, 6)] == [-4, 4, 7, -5, 5]
    assert [tree.parent_of(key) for key in (-4, 4, 7, -5, 5)] == [
        ("r", "folder"),
        -4,
        -4,
        ("r", "folder"),
        -5,
    ]
    assert [tuple(tree.files_of(key)) for key in (-4, -5, 7, ("r", "folder"))] == [
        (4, 7),
        (5,),
        (7,),
        (),
    ]


@dataclass(frozen=True)
class Row:
    resource: str


NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=4)


def rows_of(paths):
    """Each document behind the folders it lies in, what is in a folder in a row."""
    names = {"/".join(path) + ".md" for path in paths}
    folders = {folder for name in names for folder in folders_above(name)}
    return [Row(name) for name in sorted(names | folders)]


@given(st.lists(NAMES, max_size=12), st.data())
def test_only_what_lies_in_opened_folders_is_shown(paths, data):
    """However deep: every folder above has to be opened."""
    rows = rows_of(paths)
    folders = sorted(row.resource for row in rows if row.resource.endswith("/"))
    opened = data.draw(st.sets(st.sampled_from(folders))) if folders else set()
    expected = [row for row in rows if opened.issuperset(folders_above(row.resource))]
    assert in_sight(rows, opened) == expected


def test_names_are_told_from_the_folders_above_them():
    """A folder ends with a slash, and lies in others as a document does."""
    assert folder_above("a/b/") == "a/"
    assert list(folders_above("a/b/c.md")) == ["a/b/", "a/"]
    assert (depth("a/b/"), depth("a/b/c.md"), depth("c.md")) == (1, 2, 0)
    assert (own_name("a/b/"), own_name("a/c.md")) == ("b/", "c.md")

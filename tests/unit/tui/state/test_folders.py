"""Which rows of a tree of folders are shown, against asking of each row."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tui.state.folders import depth, folder_above, folders_above, in_sight, own_name


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

"""Names of resources and chunk files, made of whatever a stranger wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunks import order_key
from filestore.chunks.layout import FLAT, TREE
from filestore.config.layout import folded_path
from filestore.core.paths import has_plain_names
from filestore.exchange.base import Chunk, Resource
from filestore.exchange.incoming import Names, folder_name, is_usable
from filestore.exchange.markdown import FileNames
from filestore.history.batch import is_truth
from filestore.verify.names import why_unportable

NAMES = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="./\\~ ab\0\n:-", max_size=20),
    st.sampled_from(["..", ".git", "con", "NUL.md", "a/../b", "GIT~1", "", " ", "x" * 300]),
    st.sampled_from(["meta.json", "r.md", "chunk1.md", "x.md/y", "x.md", "X" * 255, "x" * 255]),
)
PATHS = st.one_of(NAMES, NAMES.map("r/{}".format), NAMES.map("r/{}.md".format))


@given(name=NAMES)
def test_every_name_becomes_one_that_all_systems_hold(name):
    """It is one folder's name, and the same the next time."""
    made = folder_name(name)
    assert "/" not in made
    assert why_unportable(made) == ""
    assert is_usable(f"{made}/chunk1.md")
    assert folder_name(made) == made


@pytest.mark.parametrize("name", ["notes.md", "Übung 2", "a-b_c", "日本語", "emoji 🜁", "a.b.c"])
def test_names_that_can_be_used_stay(name):
    """Nothing is changed without need."""
    assert folder_name(name) == name


@pytest.mark.parametrize("layout", [TREE, FLAT], ids=["tree", "flat"])
@given(
    paths=st.lists(st.tuples(st.sampled_from(["r", "R", "s/t", ""]) | NAMES, PATHS), max_size=12)
)
def test_no_two_chunks_share_a_path(layout, paths):
    """Whatever they are called, each gets one of its own, inside the tree."""
    names = Names(layout)
    made, records = [], {}
    for number, (resource, path) in enumerate(paths):
        chunk = Chunk(path=path, text=f"Text {number}.")
        one = names.of(Resource(name=resource, chunks=(chunk,)))
        made.append(one.place(chunk)[0])
        if one.name:
            records[one.own] = one.record_path
    files = {
        folded_path(path) for path in [*made, *(records.values() if layout.has_folders else ())]
    }
    assert len(files) == len(made) + len(records) * (layout.has_folders)
    folders = {path[:at] for path in files for at, sign in enumerate(path) if sign == "/"}
    assert not files & folders
    assert all(len(part.encode()) <= 255 for path in files for part in path.split("/"))
    for path in made:
        assert has_plain_names(path)
        assert path.endswith(".md")
        assert is_truth(f"chunked/{path}")
        assert layout.has_folders or "/" not in path


def test_a_chunk_keeps_its_path_in_its_layout():
    """What a store wrote comes back where it was, below folders as well."""
    names = Names(TREE).of(Resource(name="r", chunks=()))
    for path in ("r/chunk1.md", "r/deep/er/summary2.md", "r/own name.md"):
        assert names.place(Chunk(path=path, text="x"))[0] == path


def test_in_one_folder_a_chunk_says_where_it_belongs():
    """Without folders the source tells the resource, and the order key the place."""
    record = {"source": "docs/r.md"}
    names = Names(FLAT).of(Resource(name="r", chunks=(), record=record))
    path, frontmatter = names.place(Chunk(path="r/chunk7.md", text="x", frontmatter={"a": 1}))
    assert len(path) == len("abcdefghijklm.md")
    assert frontmatter == {"a": 1, "source": "docs/r.md", "order": order_key.number_key(1)}


def test_a_record_names_its_resource_in_one_folder_only():
    """A tree tells it by the folder."""
    record = {"format": 1, "resource": "old", "source": "r.md"}
    resource = Resource(name="r", chunks=(), record=record)
    assert Names(TREE).of(resource).record(record) == {"format": 1, "source": "r.md"}
    flat = Names(FLAT).of(resource)
    assert list(flat.record(record).items()) == [
        ("format", 1),
        ("resource", "r"),
        ("source", "r.md"),
    ]
    assert flat.record_path.endswith(".json")


@pytest.mark.parametrize("layout", [TREE, FLAT], ids=["tree", "flat"])
def test_very_many_of_one_name(layout):
    """Chunks that all have one path and one text, or the paths that would be made for others."""
    count = 20_000
    names = Names(layout).of(Resource(name="r", chunks=()))
    ahead = [Chunk(path=f"r/chunk{n}.md", text="Text.") for n in range(count, 2 * count)]
    again = [Chunk(path="r/chunk1.md", text="Text.")] * count
    made = {names.place(chunk)[0] for chunk in [*ahead, *again]}
    assert len(made) == 2 * count


STRANGE_NAMES = st.text(max_size=300) | st.text("aA./\\:é\u0301 \x00\n*con", max_size=12)


@given(st.lists(STRANGE_NAMES, max_size=12))
def test_names_are_safe_and_differ(wanted: list[str]) -> None:
    """Each is one name that all file systems hold, and none confuses two of them."""
    names = FileNames()
    found = [names.take(name, ".md") for name in wanted]
    assert not any("/" in name or name.startswith(".") for name in found)
    assert [why_unportable(name) for name in found] == [""] * len(found)
    assert len({folded_path(name) for name in found}) == len(found)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("report.pdf", "report.pdf.md"),
        ("../../etc/passwd", "etc-passwd.md"),
        ("a/b", "a-b.md"),
        ("..", "unnamed.md"),
        ("", "unnamed.md"),
        ("con", "_con.md"),
        (".hidden", "hidden.md"),
        ("was: what?", "was- what.md"),
    ],
)
def test_a_name_is_as_near_as_can_be(wanted: str, found: str) -> None:
    """What a person would expect."""
    assert FileNames().take(wanted, ".md") == found


def test_the_same_folder_keeps_its_name() -> None:
    """And another one that a file system confuses with it gets another."""
    names = FileNames()
    assert [names.folder(name) for name in ("Docs", "docs", "Docs")] == ["Docs", "docs (2)", "Docs"]

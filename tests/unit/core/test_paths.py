from hypothesis import given
from hypothesis import strategies as st

from filestore.core.paths import CHUNKS, DOCUMENTS, has_plain_names, inside, is_below

NAMES = st.text(st.characters(exclude_characters="/\0"), min_size=1)
PATHS = st.lists(NAMES).map("/".join)


@given(PATHS)
def test_a_path_is_the_same_after_both_conversions(path):
    """Whatever lies below `chunked/`, the folder included, comes back as it was."""
    assert CHUNKS.chunk_path(CHUNKS.store_path(path)) == path


def test_paths_are_shown_from_the_root_of_the_store():
    """What a person reads can be opened from the store's folder."""
    assert (CHUNKS.store_path("r/chunk1.md"), CHUNKS.store_path("")) == (
        "chunked/r/chunk1.md",
        "chunked",
    )


def test_only_what_lies_below_the_folder_is_a_chunk_path():
    """The folder itself, one with a longer name, and whatever lies elsewhere are none."""
    elsewhere = ["chunked", "chunked2/a.md", "source/a.md", ".sidecar/catalog.sqlite"]
    assert not any(map(CHUNKS.holds, elsewhere))
    assert list(filter(CHUNKS.covers, elsewhere)) == ["chunked"]
    assert CHUNKS.chunk_paths([*elsewhere, "chunked/r/a.md"]) == ["r/a.md"]


@given(PATHS.filter(lambda path: path != "."))
def test_beside_documents_both_kinds_of_path_are_one(path):
    """A document is named as it lies below the root; the root itself is a dot, as git has it."""
    assert DOCUMENTS.chunk_path(DOCUMENTS.store_path(path)) == path
    assert DOCUMENTS.store_path(path) == (path or ".")


def test_settings_and_sidecar_are_no_documents():
    """Neither they, nor the root, nor what leads out of it; whatever is named like them is."""
    none = ["", ".", "filestore.toml", ".filestore", ".filestore/lock", "..", "../a", "a/../../b"]
    assert not any(map(DOCUMENTS.holds, [*none, "/a", "/"]))
    assert list(filter(DOCUMENTS.covers, none)) == ["."]
    documents = ["a.md", "sub/filestore.toml", ".filestorex", "a/.filestore", "..a", "a/..b", "a.."]
    assert all(map(DOCUMENTS.holds, documents))
    assert DOCUMENTS.chunk_paths([*none, *documents]) == documents


def test_everything_lies_below_the_root_itself():
    """A finding about the whole tree concerns each of its files, and nothing outside of it."""
    assert all(is_below(path, ".") for path in (".", "a.md", ".hidden/a", "..a"))
    assert not any(is_below(path, ".") for path in ("..", "../a", "/a"))


@given(PATHS, NAMES)
def test_an_entry_lies_below_its_folder(folder, name):
    """The name is the last part of the path, and the folder what is before it."""
    assert inside(folder, name).rpartition("/")[::2] == (folder, name)


def test_a_path_of_a_stranger_leads_out_of_no_folder():
    """One part that is no name is enough to refuse it."""
    assert has_plain_names("r/chunk1.md")
    strange = ["", "/r", "r/", "r//a", ".", "r/./a", "..", "../a", "r/../../a", "r/a\0.md"]
    assert not any(map(has_plain_names, strange))

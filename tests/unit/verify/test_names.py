"""What must hold of names that some file system cannot hold, or tell from another."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filestore.config.layout import folded_path
from filestore.core.paths import CHUNKS, DOCUMENTS
from filestore.fs.stats import pack_folder
from filestore.verify.names import collisions, is_plain, unportable, why_unportable

ENTRY = bytes(40)
LETTERS = st.sampled_from(
    [
        *"aAbB.: \x01é",
        "e\u0301",
        "\udcff",
        "CON",
        "aux",
        "nul",
        "com",
        "1.",
        "conin$",
        "notes",
        "x" * 90,
    ]
)
NAMES = st.lists(LETTERS, min_size=1, max_size=4).map("".join).map(lambda name: f"{name}.md")
FOLDERS = st.sampled_from(["", "r", "R", "r/s", "con", "dot.", "r?"])
TREES = st.dictionaries(FOLDERS, st.sets(NAMES, min_size=1, max_size=6), max_size=4)


def packed(tree):
    """A tree as the catalog has it."""
    return {folder: pack_folder(dict.fromkeys(names, ENTRY)) for folder, names in tree.items()}


def joined(folder, name):
    """A path of a tree."""
    return f"{folder}/{name}" if folder else name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a:b.md", ":"),
        ("what?.md", "?"),
        ("back\\slash.md", "\\"),
        ("tab\t.md", "U+0009"),
        ("c1\x9b.md", "U+009B"),
        ("\udcff.md", "UTF-8"),
        ("CON", "device"),
        ("aux.md", "device"),
        ("Nul.tar.md", "device"),
        ("com1.md", "device"),
        ("lpt9", "device"),
        ("ends.", "dot"),
        ("ends ", "space"),
        ("é" * 128 + ".md", "259 bytes"),
        ("x" * 256, "256 bytes"),
    ],
)
def test_a_name_that_some_file_system_refuses_is_told_why(name, words):
    """Windows, macOS and Linux each refuse others."""
    assert words in why_unportable(name)


@pytest.mark.parametrize(
    "name",
    [
        "chunk1.md",
        "meta.json",
        "COM.md",
        "com10.md",
        "Über uns.md",
        "aux file.md",
        "null.md",
        "日本.md",
    ],
)
def test_an_ordinary_name_is_none_of_these(name):
    """What merely looks like one passes."""
    assert why_unportable(name) == ""


@given(TREES)
@example({"": {f"{'x' * 270}.md"}})
def test_the_quick_look_finds_what_the_slow_one_does(tree):
    """A whole folder told by one search has no name that would be told alone."""
    found = {one.path for one in unportable(CHUNKS, packed(tree))}
    files = {
        f"chunked/{joined(folder, name)}"
        for folder, names in tree.items()
        for name in names
        if why_unportable(name) and not name.startswith(".")
    }
    parts = [folder.split("/") for folder in tree if folder]
    on_the_way = {"/".join(one[:depth]) for one in parts for depth in range(1, len(one) + 1)}
    folders = {f"chunked/{one}" for one in on_the_way if why_unportable(one.split("/")[-1])}
    assert found == files | folders


@given(TREES)
def test_collisions_are_those_of_folded_paths(tree):
    """Every path but the first of those that fold alike is told, with the other one."""
    found = list(collisions(CHUNKS, packed(tree)))
    paths = [joined(folder, name) for folder in tree for name in tree[folder]]
    assert len(found) == len(paths) - len({folded_path(path) for path in paths})
    for one in found:
        assert one.path != one.other
        assert folded_path(one.path) == folded_path(one.other)
        assert one.other.removeprefix("chunked/") in paths


def test_composition_is_a_collision():
    """One name in two spellings of its accents is one file on macOS."""
    tree = {"r": ["é.md", unicodedata.normalize("NFD", "é.md")]}
    (found,) = collisions(CHUNKS, packed(tree))
    assert found.code == "name-collision"


def test_litter_is_nobodys_name():
    """Hidden files and files that are no chunks are not held to it; in place all are documents."""
    tree = {"r": [".a:b.md", "what?.txt"]}
    assert list(unportable(CHUNKS, packed(tree))) == []
    assert len(list(unportable(DOCUMENTS, packed(tree)))) == 2


@pytest.mark.parametrize("name", ["contract.md", "notes.md", "oct2026.md", "part-1.md", "plan.md"])
def test_a_name_that_only_begins_like_a_device_is_plain(name):
    """A folder with it is not looked at name by name: that takes seconds where there are many."""
    assert is_plain(f"a.md\0{name}\0z.md".encode())

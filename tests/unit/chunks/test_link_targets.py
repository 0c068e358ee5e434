"""Which file a link means: the rules of Obsidian for names, those of Markdown for paths."""

import posixpath
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunks.links import Names, link_key, path_keys
from filestore.extract.links import Link, links

FILES = (
    "Home.md",
    "README.md",
    "a/README.md",
    "a/b/Deep note.md",
    "a/b/README.md",
    "c/Deep note.md",
    "c/d/v1.2.md",
    "c/paper.pdf",
    "c/paper.md",
    "c/d/Über.md",
    "c/old.markdown",
    "e/only.txt",
)
ALIASES = (("Start", "Home.md"), ("Deep note", "Home.md"), ("Two words", "c/d/v1.2.md"))
NAMES = Names(FILES, ALIASES)

PARTS = st.sampled_from(["a", "b", "A", "é", "e\u0301", "x y", "n.1", "q%20", "#", "..", "."])
FILE_NAMES = st.builds(
    "{}{}".format,
    st.sampled_from(["a", "b", "A", "é", "e\u0301", "x y", "n.1", "q%20", "ß", "a.md", "index"]),
    st.sampled_from([".md", ".MD", ".markdown", ".txt", ""]),
)
FOLDERS = st.lists(st.sampled_from(["a", "b", "É", "x y"]), max_size=3).map("/".join)
PATHS = st.builds(posixpath.join, FOLDERS, FILE_NAMES)


def wiki(target):
    return Link(kind="wiki", target=target, heading="", label="", line=1)


def markdown(target):
    return Link(kind="markdown", target=target, heading="", label="", line=1)


@pytest.mark.parametrize(
    ("note", "target", "file"),
    [
        ("c/x.md", "Home", "Home.md"),
        ("c/x.md", "home.md", "Home.md"),
        ("c/x.md", "/Home", "Home.md"),
        ("a/x.md", "README", "README.md"),
        ("a/x.md", "./README", "a/README.md"),
        ("a/b/x.md", "../README", "a/README.md"),
        ("a/x.md", "a/b/deep NOTE", "a/b/Deep note.md"),
        ("a/x.md", "b/Deep note", "a/b/Deep note.md"),
        ("Home.md", "b/Deep note.md", "a/b/Deep note.md"),
        ("a/x.md", "Deep note", "a/b/Deep note.md"),
        ("c/d/x.md", "Deep note", "c/Deep note.md"),
        ("Home.md", "Deep note", "c/Deep note.md"),
        ("Home.md", "v1.2", "c/d/v1.2.md"),
        ("Home.md", "paper", "c/paper.md"),
        ("Home.md", "paper.pdf", "c/paper.pdf"),
        ("Home.md", "u\u0308BER", "c/d/Über.md"),
        ("Home.md", "old", "c/old.markdown"),
        ("Home.md", "Start", "Home.md"),
        ("Home.md", "two words", "c/d/v1.2.md"),
        ("Home.md", "only", None),
        ("Home.md", "only.txt", "e/only.txt"),
        ("Home.md", "old.md", None),
        ("Home.md", "x/Deep note", None),
        ("Home.md", "eep note", None),
        ("Home.md", "./Deep note", None),
        ("Home.md", "/Deep note", None),
        ("Home.md", "../Home", None),
        ("Home.md", "a/", None),
        ("Home.md", "..", None),
        ("a/x.md", "", "a/x.md"),
    ],
)
def test_a_name_means_the_file_that_obsidian_opens(note, target, file):
    """From the root, from the note, then the nearest of this name, then an alias."""
    assert NAMES.resolve(wiki(target), note) == file


@pytest.mark.parametrize(
    ("note", "target", "file"),
    [
        ("c/x.md", "Deep%20note.md", "c/Deep note.md"),
        ("c/x.md", "Deep note", "c/Deep note.md"),
        ("c/x.md", "../a/README.md", "a/README.md"),
        ("c/x.md", "/README.md", "README.md"),
        ("c/x.md", "./paper.pdf", "c/paper.pdf"),
        ("c/d/x.md", "U%CC%88ber.md", "c/d/Über.md"),
        ("c/x.md", "README.md", None),
        ("c/x.md", "deep note.md", None),
        ("c/x.md", "../../README.md", None),
        ("c/x.md", "../a/", None),
        ("c/x.md", "https://x.org/Home.md", None),
        ("c/x.md", "//Home.md", None),
        ("c/x.md", "Deep%00note.md", None),
        ("c/x.md", "Start", None),
    ],
)
def test_a_path_means_the_file_that_markdown_says(note, target, file):
    """From the folder of the note or the root, in its own case, never by a name alone."""
    assert NAMES.resolve(markdown(target), note) == file


@pytest.mark.parametrize("link", [wiki, markdown])
def test_a_folder_is_the_note_that_stands_for_it(link):
    """With a slash at the end or without, from the note, the root, above; a note comes first."""
    names = Names(["index.md", "a/index.md", "a/b/index.md", "c/x.md", "d.md", "d/index.md"])
    for target in ("/a/b", "/a/b/", "b", "b/", "./b/", "../a/b"):
        assert names.resolve(link(target), "a/x.md") == "a/b/index.md"
    assert names.resolve(link(".."), "a/b/x.md") == "a/index.md"
    assert names.resolve(link("../"), "a/x.md") == "index.md"
    assert names.resolve(link("d"), "x.md") == "d.md"
    assert names.resolve(link("d/"), "x.md") == "d/index.md"
    assert names.resolve(link("c/"), "x.md") is None
    for target in ("../..", "../../", "../../a"):
        assert names.resolve(link(target), "a/x.md") is None


def test_of_two_names_that_differ_in_case_the_one_as_written_is_meant():
    """Only a disk that tells them apart has both."""
    names = Names(["A.md", "a.md", "f/É.md", "f/E\u0301.md"])
    for path in ("A.md", "a.md"):
        assert names.resolve(wiki(path[0]), "x.md") == path
        assert names.resolve(markdown(path), "x.md") == path
    for path in ("f/É.md", "f/E\u0301.md"):
        assert names.resolve(markdown(path), "x.md") == path
        assert names.resolve(wiki(path), "x.md") == path


@given(paths=st.lists(PATHS, unique=True, max_size=8), note=PATHS, target=PATHS)
def test_what_is_meant_is_among_the_files_and_found_by_its_key(paths, note, target):
    """Whatever the names, a link leads to a file there is, whose keys have that of the link."""
    aliases = [(f" {posixpath.basename(path)}x/y.md ", path) for path in paths[:2]]
    names = Names(paths, aliases)
    others = [name for name, _ in aliases]
    for link in [wiki(target), markdown(target), markdown(quote(target)), *map(wiki, others)]:
        found = names.resolve(link, note)
        assert found is None or found in paths
        if found is not None:
            own = [alias for alias, path in aliases if path == found]
            assert link_key(link) in path_keys(found, own)


@given(paths=st.lists(PATHS, unique=True, min_size=1, max_size=8), note=PATHS)
def test_a_whole_path_is_always_found(paths, note):
    """From the root by name, and from the note as Markdown writes it, percent signs and all."""
    names = Names(paths)
    for path in paths:
        if note.startswith(f"{path}/"):
            continue  # a file is no folder of another
        relative = posixpath.relpath(path, posixpath.dirname(note) or ".")
        assert names.resolve(markdown(quote(relative)), note) == path
        assert names.resolve(markdown(f"/{quote(path)}"), note) == path
        found = names.resolve(wiki(f"/{path}"), note)
        assert found is not None
        # One more suffix may be left out, and a note comes before what is none.
        folded = unicodedata.normalize("NFC", found).casefold().removesuffix(".md")
        assert folded == unicodedata.normalize("NFC", path).casefold().removesuffix(".md")


@given(target=st.lists(PARTS, min_size=1, max_size=6).map("/".join), note=PATHS)
def test_no_link_leads_out_or_fails(target, note):
    """Whatever is written, the answer is a file or none."""
    for link in (wiki(target), markdown(target)):
        assert NAMES.resolve(link, note) in {*FILES, None}


def test_a_hundred_thousand_names_are_taken_in():
    """And each is found again by its name, or by its path where others have the name, too."""
    files = [f"folder {n % 1_000}/deep/note {n}.md" for n in range(100_000)]
    names = Names([*files, *(f"folder {n}/README.md" for n in range(1_000))])
    for n in range(0, 100_000, 97):
        assert names.resolve(wiki(f"Note {n}"), "folder 1/x.md") == files[n]
    (link,) = links("[[README]]")
    for n in range(1_000):
        assert names.resolve(link, f"folder {n}/deep/x.md") == f"folder {n}/README.md"

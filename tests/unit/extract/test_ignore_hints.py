"""What must hold of finding the names that rules may leave out: none is missed."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract.ignore import parse
from filestore.extract.ignore_files import Suffixes, hints, starting

PIECES = [
    *("a", "b", "x", ".", ".md", ".log", "é", b"\xc3", b"\xff", "-", "~", "#", " ", "!", "build"),
    *("*", "**", "?", "/", "**/", "/**", "\\", "\\*", "\\/", "[ab]", "[!a]", "[a/b]", "[", "]"),
]
PIECE = st.sampled_from([piece if isinstance(piece, bytes) else piece.encode() for piece in PIECES])
LINE = st.lists(PIECE, min_size=1, max_size=6).map(b"".join)
NAME_PIECE = st.sampled_from(["a", "b", "x", ".", ".md", ".log", "é", "\udcc3", "\udcff", "~", "#"])
NAME = st.lists(NAME_PIECE, min_size=1, max_size=4).map("".join)
FOLDERS = ["", "a/", "a/b/", "build/", "é/x/"]


@given(
    lines=st.lists(LINE, min_size=1, max_size=5),
    names=st.sets(NAME, min_size=1, max_size=12),
    base=st.sampled_from(["", "a/"]),
    below=st.sampled_from(FOLDERS),
    is_folder=st.booleans(),
)
def test_no_name_that_a_rule_leaves_out_is_missed(lines, names, base, below, is_folder):
    """Whatever the rules and the names, those that are left out are among those asked about."""
    rules = parse(b"\n".join(lines))
    ordered = sorted(names)
    folder = os.fsencode(below)
    found = hints([(base.encode(), rules)]).find(base.encode() + folder, ordered, Suffixes(ordered))
    out = {
        name
        for name in ordered
        if rules.leaves_out(folder + os.fsencode(name), is_folder=is_folder)
    }
    assert out <= {ordered[place] for place in found}


@pytest.mark.parametrize(
    ("line", "folder", "asked"),
    [
        ("*.log", "in/", ["b.log"]),
        ("build/", "", ["build"]),
        ("old-*", "in/", ["old-a.md"]),
        ("*~", "", ["c.md~"]),
        ("*.py[cod]", "", ["d.pyc"]),
        ("*.log.*", "", []),
        ("/build", "in/", []),
        ("in/*.log", "in/", ["b.log"]),
        ("out/*.log", "in/", []),
        ("**/old-*", "in/", ["old-a.md"]),
        ("!*.md", "", []),
    ],
)
def test_most_names_are_not_asked_about(line, folder, asked):
    """Ordinary rules lead to the names they speak of, and to no others."""
    names = sorted(["a.md", "b.log", "build", "c.md~", "d.pyc", "old-a.md", *map(str, range(99))])
    found = hints([(b"", parse(line.encode()))]).find(folder.encode(), names, Suffixes(names))
    assert [names[place] for place in sorted(found)] == asked


@given(names=st.lists(NAME, max_size=12))
def test_suffixes_are_those_of_each_name(names):
    """However they are found, the suffixes are what follows the last dot, with the dot."""
    expected = {f".{name.rpartition('.')[2]}" if "." in name else name[-1:] for name in names}
    assert Suffixes(names).all == expected


@given(names=st.sets(NAME, max_size=12), starts=st.sets(NAME, max_size=3))
def test_beginnings_are_found_among_sorted_names(names, starts):
    """Names are found by how they begin, each once for every beginning it has."""
    ordered = sorted(names)
    expected = {place for place, name in enumerate(ordered) if name.startswith(tuple(starts))}
    assert set(starting(ordered, starts)) == (expected if starts else set())

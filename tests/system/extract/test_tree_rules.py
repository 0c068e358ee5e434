"""What must hold of the walk of a tree of documents: it leaves out what a listing leaves out."""

import json
import os
import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from filestore.extract.folder import documents
from filestore.extract.ignore import MAX_BYTES, MAX_RULES
from filestore.extract.tree_rules import tree_rules
from filestore.fs.scan import MAX_DEPTH, scan_tree
from filestore.fs.stats import unpack_names

EXAMPLES = int(os.environ.get("FILESTORE_EXAMPLES", "120"))

FORKED = """
import json, sys
from filestore.extract.tree_rules import tree_rules
from filestore.fs.scan import scan_tree
root = sys.argv[1]
def told(tree):
    folders = {path: [p.names.hex(), p.stats.hex()] for path, p in tree.folders.items()}
    return [folders, tree.problems, tree.skipped, tree.ignored, tree.other]
one = scan_tree(root, rules=tree_rules(root, sys.argv[2:]))
two = scan_tree(root, processes=2, rules=tree_rules(root, sys.argv[2:]))
again = scan_tree(root, processes=2, recorded=one.folders, rules=tree_rules(root, sys.argv[2:]))
json.dump([told(one), told(two), told(again)], sys.stdout)
"""


def write(root, *paths, text="text"):
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def walked(root, patterns=(), **options):
    return scan_tree(str(root), rules=tree_rules(str(root), patterns, **options))


def paths(tree):
    return {
        f"{folder}/{name}" if folder else name
        for folder, packed in tree.folders.items()
        for name in unpack_names(packed.names)
    }


def test_what_rules_name_is_left_out_and_counted(tmp_path):
    """Rules of the folder, of the settings and of folders in it hold; what is left out counts."""
    write(tmp_path, "a.md", "draft.md", "out/b.md", "in/draft.md", "in/c.log", "in/d.md", "e.old")
    write(tmp_path, ".gitignore", text="draft.md\n/out/\n")
    write(tmp_path, "in/.gitignore", text="!draft.md\n")
    write(tmp_path, ".filestoreignore", text="*.log\n")
    tree = walked(tmp_path, ["*.old"])
    assert paths(tree) == {"a.md", "in/draft.md", "in/d.md"}
    assert (tree.ignored, tree.other, tree.skipped, tree.problems) == (4, 0, {}, {})


def test_hidden_files_litter_and_what_tools_make_is_left_out(tmp_path):
    """They are passed over in silence, the store's own settings among them."""
    write(tmp_path, "a.md", "README", "data.csv", "filestore.toml", ".filestore/b.md", ".x.md")
    write(tmp_path, ".obsidian/c.md", "node_modules/d.md", "e.md~", "#f#", "~$g.docx", "h.swp")
    write(tmp_path, "env/pyvenv.cfg", "env/i.md", "cache/j.md", "search.html", "searches.html")
    write(tmp_path, "cache/CACHEDIR.TAG", text="Signature: 8a477f597d28d172789f06886806bc55\nmore")
    tree = walked(tmp_path)
    assert paths(tree) == {"a.md", "README", "data.csv", "searches.html"}
    assert (tree.ignored, tree.other, tree.skipped, tree.problems) == (0, 0, {}, {})


def test_a_store_in_the_tree_is_told(tmp_path):
    """A folder with settings of a store is not entered, and the reason is given."""
    write(tmp_path, "a.md", "filestore.toml", "file_index/filestore.toml", "file_index/b.md")
    write(tmp_path, "file_index/chunked/c.md", "notes/filestore.toml", "notes/d.md", "chunked/e.md")
    tree = walked(tmp_path)
    assert paths(tree) == {"a.md", "chunked/e.md"}
    assert sorted(tree.skipped) == ["file_index", "notes"]
    assert all("store" in reason for reason in tree.skipped.values())


def test_formats_that_nothing_reads_are_told_or_counted(tmp_path):
    """Office files are told with their format; pictures and lock files are a number."""
    write(tmp_path, "a.md", "b.XLSB", "in/c.odg", "d.png", "in/e.zip", "package-lock.json")
    write(tmp_path, "f.min.js", "g.js", "h.json")
    tree = walked(tmp_path)
    assert paths(tree) == {"a.md", "g.js", "h.json"}
    assert tree.skipped == {
        "b.XLSB": "no extractor reads .xlsb files",
        "in/c.odg": "no extractor reads .odg files",
    }
    assert tree.other == 4


def test_links_special_files_and_odd_names_stay(tmp_path):
    """They are entries of the walk, links in circles too, and none is followed."""
    write(tmp_path, "in/a.md")
    (tmp_path / "in" / "loop").symlink_to(tmp_path)
    (tmp_path / "b.md").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.md")
    with open(os.fsencode(tmp_path) + b"/\xff.md", "wb"):
        pass
    expected = {"in/a.md", "in/loop", "b.md", "pipe.md", os.fsdecode(b"\xff.md")}
    assert paths(walked(tmp_path)) == expected


def test_a_sidecar_elsewhere_in_the_tree_is_left_out(tmp_path):
    """What is ours below the root is named by the caller, whatever it is called."""
    write(tmp_path, "a.md", "cache/index/b.md", "cache/c.md", "index/d.md")
    assert paths(walked(tmp_path, leave_out=["cache/index"])) == {
        "a.md",
        "cache/c.md",
        "index/d.md",
    }


def test_rules_of_the_work_tree_around_hold(work_tree):
    """A tree in a work tree follows the rules above it, and those of `.git/info/exclude`."""
    write(work_tree, *(f"docs/book/{name}.md" for name in ("a", "b", "c", "d")))
    write(work_tree, ".gitignore", text="/docs/book/a.md\n")
    write(work_tree, "docs/.gitignore", text="book/b.md\n")
    (work_tree / ".git" / "info" / "exclude").write_text("c.md\n")
    assert paths(walked(work_tree / "docs" / "book")) == {"d.md"}


def test_a_tracked_file_that_rules_name_is_left_out(work_tree):
    """The rules alone decide, as in a listing: what git has does not matter."""
    write(work_tree, "a.md", "b.md")
    subprocess.run(["git", "-C", work_tree, "add", "b.md"], check=True)
    write(work_tree, ".gitignore", text="b.md\n")
    assert paths(walked(work_tree)) == {"a.md"}


UNUSABLE = {
    "too large": lambda path: path.write_text("b.md\n" + "#" * MAX_BYTES),
    "too many": lambda path: path.write_text("b.md\n" * (MAX_RULES + 1)),
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("name", [".gitignore", ".filestoreignore"])
@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_folder_whose_rules_cannot_be_followed_is_a_problem(tmp_path, kind, name):
    """Nothing of it is known; the file is named with the reason, and the rest is walked."""
    write(tmp_path, "a.md", "in/b.md", "in/deep/c.md")
    UNUSABLE[kind](tmp_path / "in" / name)
    tree = walked(tmp_path)
    assert paths(tree) == {"a.md"}
    assert list(tree.problems) == ["in"]
    assert str(tmp_path / "in" / name) in tree.problems["in"]


def test_rules_of_the_top_that_cannot_be_followed_leave_nothing_known(work_tree):
    """Those of the root, of the settings or above it: the whole tree is a problem."""
    write(work_tree, "docs/a.md")
    assert list(walked(work_tree / "docs", ["x"] * (MAX_RULES + 1)).problems) == [""]
    write(work_tree, ".gitignore", text="x\n" * (MAX_RULES + 1))
    for root in (work_tree, work_tree / "docs"):
        tree = walked(root)
        assert (list(tree.problems), tree.folders) == ([""], {})
        assert str(work_tree / ".gitignore") in tree.problems[""]


def test_a_linked_gitignore_does_not_hold_and_is_told(work_tree):
    """As in git; a linked `.filestoreignore` is a problem: it is not passed over."""
    write(work_tree.parent, "outside", text="a.md\n")
    write(work_tree, "in/a.md", "own/a.md")
    (work_tree / "in" / ".gitignore").symlink_to(work_tree.parent / "outside")
    (work_tree / "own" / ".filestoreignore").symlink_to(work_tree.parent / "outside")
    tree = walked(work_tree)
    assert paths(tree) == {"in/a.md"}
    assert "symbolic link" in tree.skipped["in/.gitignore"]
    assert "symbolic link" in tree.problems["own"]


def test_rules_below_a_problem_or_in_what_is_left_out_do_not_matter(tmp_path):
    """A folder that is not entered cannot make the walk stop."""
    write(tmp_path, "a.md", "build/.gitignore", "node_modules/.gitignore", text="x\n" * 1_001)
    (tmp_path / ".gitignore").write_text("build/\n")
    tree = walked(tmp_path)
    assert (paths(tree), tree.problems) == ({"a.md"}, {})


def test_the_walk_ends_in_the_depth(tmp_path):
    """Nested too deep is a problem of the walk as ever, unless rules leave it out before."""
    deep = "/".join(["d"] * (MAX_DEPTH + 1))
    write(tmp_path, f"{deep}/a.md", "b.md")
    assert list(walked(tmp_path).problems) == [deep]
    assert walked(tmp_path, ["d"]).problems == {}


def test_long_names_and_both_forms_of_letters(tmp_path):
    """Names as long as a disk takes them; a rule speaks of the bytes, composed or not."""
    long, composed, apart = "n" * 252 + ".md", "caf\u00e9.md", "cafe\u0301.md"
    write(tmp_path, long, composed, apart)
    write(tmp_path, ".gitignore", text="cafe\u0301*\n")
    assert paths(walked(tmp_path)) == {long, composed}


def test_a_tree_that_changes_its_rules_is_walked_by_the_new_ones(tmp_path):
    """The same rules object reads them again in each walk."""
    write(tmp_path, "a.md", "b.md")
    rules = tree_rules(str(tmp_path))
    assert paths(scan_tree(str(tmp_path), rules=rules)) == {"a.md", "b.md"}
    write(tmp_path, ".gitignore", text="a.md\n")
    assert paths(scan_tree(str(tmp_path), rules=rules)) == {"b.md"}


@pytest.mark.parametrize("shape", ["flat", "folders"])
def test_two_processes_see_what_one_sees(tmp_path, script, shape):
    """The top's rules come from all of its names, not from those of a part of it."""
    root = tmp_path / "root"
    for number in range(150):
        kind = ("md", "log", "png", "odg")[number % 4]
        write(root, f"{number}.{kind}")
        if shape == "folders":
            write(root, f"in{number}/a.md", f"in{number}/b.log", f"in{number}/out/c.md")
    write(root, "in7/.gitignore", text="a.md\n")
    write(root, "in8/.gitignore", text="x\n" * (MAX_RULES + 1))
    write(root, "in9/filestore.toml", "filestore.toml", ".gitignore", "zz.md", "a.md")
    write(root, ".gitignore", text="*.log\nout/\nzz.*\n")
    done = script(FORKED, root, "1.md", "in11*")
    assert done.code == 0, done.stderr
    one, two, again = json.loads(done.stdout)
    assert one == two == again
    folders, problems, skipped, ignored, other = one
    assert b"a.md" in bytes.fromhex(folders[""][0]).split(b"\0")
    assert list(problems) == ["in8"]
    assert len(skipped) == 38
    assert ignored > 35
    assert other == 37


def test_very_many_files_in_one_folder(tmp_path):
    """The odd one among them is found, and all others stay."""
    root = tmp_path / "root"
    write(root, "x.log", ".gitignore", text="*.log\n")
    for number in range(20_000):
        os.close(os.open(root / f"{number}.md", os.O_CREAT | os.O_WRONLY))
    tree = walked(root)
    assert len(paths(tree)) == 20_000
    assert tree.ignored == 1


STEMS = ["a", "b", "ab", "note", "é", "e\u0301", "build", "genindex", "search", "#x", "~$y", ".z"]
ENDS = ["", "", ".md", ".md", ".log", ".MD", ".png", ".xlsb", ".min.js", ".json", "~", "#", ".swp"]
NAMES = st.tuples(st.sampled_from(STEMS), st.sampled_from(ENDS)).map("".join)
ODD = st.sampled_from(
    ["package-lock.json", "CACHEDIR.TAG", "pyvenv.cfg", "node_modules", "x.egg-info"]
)
FILES = st.lists(
    st.lists(st.one_of(NAMES, NAMES, NAMES, ODD), min_size=1, max_size=3).map("/".join),
    min_size=1,
    max_size=40,
)
PIECES = [
    *("a", "b", "note", ".md", ".log", "é", "build", "*", "*", "?", "[ab]", "[!a]", "**/", "/**"),
    *("/", "\\", "\\*", "/build/", "*.md"),
]
LINE = st.tuples(
    st.sampled_from(["", "", "", "!", "/"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "", "/"]),
).map("".join)
LISTS = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.sampled_from([".gitignore", ".filestoreignore"]),
        st.lists(LINE, min_size=1, max_size=4).map("\n".join),
    ),
    max_size=4,
)


def plant(root, files, lists):
    """Those of the files that can lie beside each other, and files of rules in some folders."""
    for path in files:
        *inner, _ = path.split("/")
        if any((root / "/".join(inner[:length])).is_file() for length in range(len(inner) + 1)):
            continue
        (root / "/".join(inner)).mkdir(parents=True, exist_ok=True)
        if not (root / path).is_dir():
            (root / path).write_text("text")
    places = sorted(str(path) for path in [root, *root.rglob("*")] if path.is_dir())
    for place, name, text in lists:
        with open(os.path.join(places[place % len(places)], name), "w") as file:
            file.write(text)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(files=FILES, lists=LISTS, patterns=st.lists(LINE, max_size=2))
@example(files=["a/b/note.md", "a/ab.md"], lists=[(0, ".gitignore", "a/b/*")], patterns=["!a"])
def test_the_walk_agrees_with_the_listing(new_folder, files, lists, patterns):
    """Of any tree with any rules, the walk finds what `add` would of the folder, and counts so."""
    root = new_folder()
    plant(root, files, lists)
    listed = documents(str(root), leave_out=lambda path: False, patterns=patterns)
    tree = walked(root, patterns)
    assert paths(tree) == set(listed.paths)
    assert tree.problems == {}
    assert tree.skipped == dict(listed.skipped)
    assert (tree.ignored, tree.other) == (listed.ignored, listed.other)

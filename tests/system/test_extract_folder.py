"""Which files of a real folder are documents."""

import os
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.extract import for_name
from filestore.extract.folder import MAX_ACTIVE_RULES, children, documents
from filestore.extract.ignore import MAX_BYTES, MAX_RULES

GIT_PAGES = "/usr/share/doc/git/html"


def write(root, *paths):
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("text")


def rules(root, **files):
    """Ignore files: ``gitignore``, ``filestoreignore``; a folder in front with two underscores."""
    for name, text in files.items():
        *folders, last = name.split("__")
        target = root.joinpath(*folders)
        target.mkdir(parents=True, exist_ok=True)
        (target / f".{last}").write_text(text)


def listing(root, leave_out=lambda path: False, patterns=()):
    return documents(str(root), leave_out=leave_out, patterns=patterns)


def git(folder, *words):
    done = subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)
    return done.stdout


def test_reading_order(tmp_path):
    """Index pages come first in their folder, all else by its bytes, at every level."""
    write(
        tmp_path,
        "b.md",
        "a/z.md",
        "a/index.html",
        "a/B.md",
        "a.md",
        "README.md",
        "a/c/d.txt",
        "ä.md",
    )
    assert listing(tmp_path).paths == (
        "README.md",
        "a/index.html",
        "a/B.md",
        "a/c/d.txt",
        "a/z.md",
        "a.md",
        "b.md",
        "ä.md",
    )


def test_what_is_no_document_is_left_out(tmp_path):
    """Hidden files, litter, by-products and what has no extractor are passed over in silence."""
    write(
        tmp_path,
        *(".hidden", ".git/config.txt", "a~", "#a#", ".#a", "b.md.swp", "__pycache__/a.txt"),
        *("node_modules/x.md", "_static/a.txt", "_sources/a.txt", "genindex-A.html", "search.html"),
        *(
            "py-modindex.html",
            "objects.inv",
            "searchindex.js",
            "a.png",
            "a.css",
            "a.woff2",
            "ok.html",
        ),
    )
    result = listing(tmp_path)
    assert result.paths == ("ok.html",)
    assert result.skipped == ()


def test_links_are_reported_and_not_followed(tmp_path):
    """A symbolic link to a file or folder is skipped with a reason, also one that leads outside."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    write(inside, "a.md")
    write(outside, "secret.md")
    (inside / "file.md").symlink_to(outside / "secret.md")
    (inside / "folder").symlink_to(outside)
    (inside / "loop").symlink_to(inside)
    result = listing(inside)
    assert result.paths == ("a.md",)
    assert [path for path, _ in result.skipped] == ["file.md", "folder", "loop"]
    assert all("link" in reason for _, reason in result.skipped)


def test_special_files_and_odd_names_are_reported(tmp_path):
    """A pipe and a name that is not UTF-8 are skipped with a reason."""
    write(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe.txt")
    with open(os.fsencode(tmp_path) + b"/\xff.md", "wb"):
        pass
    reasons = dict(listing(tmp_path).skipped)
    assert "neither" in reasons["pipe.txt"]
    assert "UTF-8" in reasons[os.fsdecode(b"\xff.md")]


def test_caller_leaves_out_by_absolute_path(tmp_path):
    """The caller is asked with absolute paths, and a folder left out is not entered."""
    write(tmp_path, "a.md", "store/b.md")
    asked = []

    def leave_out(path):
        asked.append(path)
        return path == str(tmp_path / "store")

    assert listing(tmp_path, leave_out).paths == ("a.md",)
    assert sorted(asked) == [str(tmp_path / "a.md"), str(tmp_path / "store")]


def test_folder_that_cannot_be_listed_is_reported(tmp_path):
    """A sub-folder that cannot be listed is skipped with the reason, the rest is found."""
    write(tmp_path, "a.md", "b/c.md")
    (tmp_path / "gone").mkdir()

    def remove_when_asked(path):
        if path == str(tmp_path / "gone"):
            os.rmdir(path)
        return False

    result = listing(tmp_path, remove_when_asked)
    assert result.paths == ("a.md", "b/c.md")
    assert [path for path, _ in result.skipped] == ["gone"]
    assert "cannot be listed" in result.skipped[0][1]


def test_missing_folder_is_an_error(tmp_path):
    """A folder that is not there is an error, not an empty listing."""
    with pytest.raises(FileNotFoundError):
        listing(tmp_path / "none")


def test_ignore_files_hold_at_every_level(tmp_path):
    """A rule of a folder holds below it; a deeper one takes it back; what they leave out counts."""
    write(tmp_path, "a.md", "draft.md", "in/draft.md", "in/b.md", "out/c.md", "in/log/d.md")
    rules(tmp_path, gitignore="draft.md\n/out/\n", in__gitignore="!draft.md\nlog/\n")
    result = listing(tmp_path)
    assert result.paths == ("a.md", "in/b.md", "in/draft.md")
    assert result.ignored == 3
    assert result.skipped == ()


def test_the_stores_own_rules_win(tmp_path):
    """`.filestoreignore` is asked before the settings' patterns, those before `.gitignore`."""
    write(tmp_path, "a.md", "b.md", "c.md", "d.md", "in/a.md")
    rules(
        tmp_path,
        gitignore="a.md\nb.md\n!c.md\n",
        filestoreignore="!/b.md\n",
        in__gitignore="!a.md\n",
    )
    assert listing(tmp_path).paths == ("b.md", "c.md", "d.md", "in/a.md")
    chosen = listing(tmp_path, patterns=("/b.md", "/c.md", "!/a.md"))
    assert chosen.paths == ("a.md", "b.md", "d.md", "in/a.md")
    assert chosen.ignored == 1


def test_what_is_in_a_folder_left_out_cannot_come_back(tmp_path):
    """As in git, no rule brings back what lies in a folder that is left out."""
    write(tmp_path, "build/keep.md", "a.md")
    rules(tmp_path, gitignore="build/\n!build/keep.md\n", build__filestoreignore="!keep.md\n")
    assert listing(tmp_path).paths == ("a.md",)


def test_rules_of_the_work_tree_around_hold(work_tree):
    """A folder in a work tree follows the rules above it, and those of `.git/info/exclude`."""
    write(work_tree, *(f"docs/book/{name}.md" for name in ("a", "b", "c", "d")))
    (work_tree / "docs" / "book" / "e.txt").write_text("text")
    rules(work_tree, gitignore="/docs/book/a.md\n", docs__gitignore="book/b.md\n")
    rules(work_tree, docs__filestoreignore="*.txt\n")
    (work_tree / ".git" / "info" / "exclude").write_text("c.md\n")
    (work_tree.parent / ".gitignore").write_text("*\n")
    assert listing(work_tree / "docs" / "book").paths == ("d.md",)
    (work_tree / "link").symlink_to(work_tree / "docs" / "book")
    assert listing(work_tree / "link").paths == ("d.md",)


def test_a_folder_that_is_ignored_itself_was_named_on_purpose(work_tree):
    """Naming a folder that git ignores adds what is in it; its own rules hold."""
    write(work_tree, "site/a.md", "site/b.md")
    rules(work_tree, gitignore="site/\n*.md\n", site__gitignore="b.md\n")
    assert listing(work_tree / "site").paths == ("a.md",)


def test_a_work_tree_inside_has_its_own_rules(work_tree):
    """What git ignores outside says nothing about another checkout below, as in git."""
    write(work_tree, "a.md", "b.md", "inner/a.md", "inner/b.md")
    rules(work_tree, gitignore="a.md\n")
    git(work_tree / "inner", "init", "--quiet")
    (work_tree / "inner" / ".git" / "info" / "exclude").write_text("b.md\n")
    assert listing(work_tree).paths == ("b.md", "inner/a.md")


def test_ignore_files_that_cannot_be_used_are_reported(tmp_path):
    """A link is not followed and a huge file not applied; both are told, and the rest goes on."""
    outside = tmp_path / "outside"
    outside.write_text("*\n")
    tree = tmp_path / "tree"
    write(tree, "a.md", "big/b.md", "many/c.md", "pipe/d.md")
    (tree / ".gitignore").symlink_to(outside)
    rules(tree, big__gitignore="b.md\n" + "#" * MAX_BYTES)
    rules(tree, many__gitignore="c.md\n" * (MAX_RULES + 1))
    os.mkfifo(tree / "pipe" / ".gitignore")
    result = listing(tree)
    assert result.paths == ("a.md", "big/b.md", "many/c.md", "pipe/d.md")
    reasons = dict(result.skipped)
    assert "symbolic link" in reasons[".gitignore"]
    assert "limit" in reasons["big/.gitignore"]
    assert "limit" in reasons["many/.gitignore"]
    assert "not applied" in reasons["pipe/.gitignore"]


def test_rules_upon_rules_have_an_end(tmp_path):
    """Where folders in folders add rules without end, the deepest are reported, not applied."""
    folder = tmp_path
    for number in range(MAX_ACTIVE_RULES // MAX_RULES + 1):
        write(folder, f"{number}.md", f"x{number}")
        (folder / ".gitignore").write_text(f"x{number}\n" * MAX_RULES)
        folder = folder / "in"
    result = listing(tmp_path)
    assert [path for path, _ in result.skipped] == ["in/in/in/in/.gitignore"]
    assert [path for path in result.paths if "x" in path] == ["in/in/in/in/x4"]


def test_rules_are_bytes(tmp_path):
    """Rules for names that are not UTF-8 are followed, and leave their files out unreported."""
    write(tmp_path, "a.md")
    with open(os.fsencode(tmp_path) + b"/\xff.md", "wb"):
        pass
    (tmp_path / ".gitignore").write_bytes(b"\xff*\n")
    result = listing(tmp_path)
    assert (result.paths, result.skipped, result.ignored) == (("a.md",), (), 1)


NAMES = st.sampled_from(["a", "b", "ab", "c d", "é", "x.md", "a.md", "a]", "-", "build"])
PLAIN_PIECES = ["a", "b", ".md", "é", "-", "x", "build", " ", "/", "\\"]
WILD_PIECES = ["*", "?", "**/", "/**", "[ab]", "[!a]", "[a-c]", "[[:alpha:]]", "[]a]", "["]
PIECES = st.sampled_from([*PLAIN_PIECES, *WILD_PIECES, "\\a", "\\*", "\\ "])


@st.composite
def patterns(draw):
    """A line of rules; "**" stands where the manual of git gives it a meaning."""
    text = "".join(draw(st.lists(PIECES, min_size=1, max_size=5)))
    while "**" in text.replace("/**/", "/").removeprefix("**/").removesuffix("/**"):
        # Next to other characters git's versions disagree with each other.
        text = text.replace("**", "*")
    return draw(st.sampled_from(["", "", "!", "/"])) + text + draw(st.sampled_from(["", "", "/"]))


FILES = st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8)
RULES = st.lists(patterns(), min_size=1, max_size=4).map("\n".join)


@pytest.fixture
def repository(work_tree):
    """Makes a new empty folder in one work tree at every call."""
    made = iter(range(1_000_000))

    def folder():
        root = work_tree / str(next(made))
        root.mkdir()
        return root

    return folder


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=FILES, lists=st.lists(st.tuples(st.integers(0, 20), RULES), min_size=1, max_size=3))
def test_the_walk_agrees_with_git(repository, files, lists):
    """Of any tree with any rules, the walk finds exactly the files that git does not ignore."""
    root = repository()
    for path in files:
        inner = path.split("/")[:-1]
        if not any((root / "/".join(inner[:length])).is_file() for length in range(len(inner) + 1)):
            (root / "/".join(inner)).mkdir(parents=True, exist_ok=True)
            if not (root / path).is_dir():
                (root / path).write_text("text")
    folders = sorted(str(path) for path in [root, *root.rglob("*")] if path.is_dir())
    for place, text in lists:
        with open(os.path.join(folders[place % len(folders)], ".gitignore"), "w") as file:
            file.write(text)
    seen = git(root, "ls-files", "--others", "--exclude-standard", "-z").decode().split("\0")
    ours = {path for path in seen if path and not path.endswith(".gitignore")}
    assert set(listing(root).paths) == ours


def test_what_tools_make_is_left_out(tmp_path):
    """Caches that say so, Python environments and build records are passed over in silence."""
    write(tmp_path, "a.py", "env/lib/b.py", "target/c.txt", "tags/d.md", "x.egg-info/e.txt")
    write(tmp_path, ".venv/lib/f.py", ".tox/g.py", "dist/h.md", "build/i.md")
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    tag = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool\n"
    (tmp_path / "target" / "CACHEDIR.TAG").write_text(tag)
    (tmp_path / "tags" / "CACHEDIR.TAG").write_text("no signature")
    result = listing(tmp_path)
    assert result.skipped == ()
    assert set(result.paths) - {"tags/CACHEDIR.TAG"} == {"a.py", "dist/h.md", "build/i.md"} | {
        "tags/d.md"
    }


def test_what_dresses_a_site_is_left_out(tmp_path):
    """In a folder of pages scripts and styles are no documents; its texts are."""
    write(tmp_path, "index.html", "b.html", "c.html", "js/a.js", "js/b.js", "theme.css", "n.md")
    assert listing(tmp_path).paths == ("index.html", "b.html", "c.html", "n.md")


@pytest.mark.parametrize("beside", [["a.py", "b.py"], ["package.json"]])
def test_scripts_of_a_code_tree_are_documents(tmp_path, beside):
    """Scripts count where code outnumbers pages, and where a project file stands at the top."""
    write(tmp_path, "index.html", "b.html", "src/a.js", *beside)
    assert "src/a.js" in listing(tmp_path).paths


def test_children_follow_the_same_rules(tmp_path):
    """What stands directly in a folder is listed, folders too, without what rules leave out."""
    write(tmp_path, "a.md", "b.md", "in/c.md", "build/d.md", "e.png", "node_modules/f.md")
    rules(tmp_path, gitignore="build/\n")
    result = children(str(tmp_path), leave_out=lambda path: False, patterns=("b.md",))
    assert result.paths == ("a.md", "in")
    assert result.ignored == 2


@pytest.mark.skipif(not os.path.isdir(GIT_PAGES), reason="needs git's manual pages as HTML")
def test_manual_pages_become_clean_markdown():
    """Real manual pages keep their headings, and nothing of HTML's machinery shows."""
    names = documents(GIT_PAGES, leave_out=lambda path: False).paths
    for name in [name for name in names if name.endswith(".html")][::40]:
        with open(os.path.join(GIT_PAGES, name), "rb") as file:
            document = for_name(name).extract(file.read(), name=name)
        assert document.syntax == "markdown"
        assert document.text.startswith("# ")
        assert "\n## " in document.text
        assert "<div class" not in document.text
        assert "asciidoc.install" not in document.text
        assert document.text.count("\n```") % 2 == 0

"""Which files of a real folder are documents."""

import os
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.extract import for_name
from filestore.extract.folder import children, documents
from filestore.extract.ignore import MAX_BYTES, MAX_PATTERN_BYTES, MAX_RULES, IgnoreRulesError
from filestore.extract.ignore_files import MAX_ACTIVE_RULES
from tests.advice import advised

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
    """Hidden files, litter, by-products and what holds no text are not reported."""
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


UNUSABLE = {
    "too large": (lambda path: path.write_text("b.md\n" + "#" * MAX_BYTES), f"{MAX_BYTES:,}"),
    "too many": (lambda path: path.write_text("b.md\n" * (MAX_RULES + 1)), f"{MAX_RULES:,}"),
    "too long": (lambda path: path.write_text("?" * (MAX_PATTERN_BYTES + 1)), "4,096"),
    "a pipe": (lambda path: os.mkfifo(path), "not a regular file"),
    "a folder": (lambda path: path.mkdir(), "not a regular file"),
}


@pytest.mark.parametrize("name", [".gitignore", ".filestoreignore"])
@pytest.mark.parametrize("kind", UNUSABLE)
def test_rules_that_cannot_be_followed_are_an_error(tmp_path, kind, name):
    """Nothing is listed without the rules that are there; the file, what is wrong, the way out."""
    make, reason = UNUSABLE[kind]
    write(tmp_path, "a.md", "in/b.md")
    make(tmp_path / "in" / name)
    with pytest.raises(IgnoreRulesError) as caught:
        listing(tmp_path)
    assert str(tmp_path / "in" / name) in caught.value.message
    assert reason in caught.value.message
    assert advised(caught.value)
    with pytest.raises(IgnoreRulesError):
        children(str(tmp_path / "in"), leave_out=lambda path: False)


def test_rules_that_may_not_be_read_are_an_error(tmp_path):
    """An ignore file without permission to read it stops the listing."""
    write(tmp_path, "a.md", ".gitignore")
    (tmp_path / ".gitignore").chmod(0)
    if os.access(tmp_path / ".gitignore", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(IgnoreRulesError, match="cannot be read"):
        listing(tmp_path)


def test_rules_above_that_cannot_be_followed_are_an_error(work_tree):
    """The rules of the work tree around a folder are not passed over either."""
    write(work_tree, "docs/a.md")
    rules(work_tree, gitignore="x\n" * (MAX_RULES + 1))
    with pytest.raises(IgnoreRulesError, match="limit"):
        listing(work_tree / "docs")


def test_patterns_of_the_settings_have_limits(tmp_path):
    """Too many patterns are an error that says where they stand."""
    write(tmp_path, "a.md")
    with pytest.raises(IgnoreRulesError, match=r"settings.*limit"):
        listing(tmp_path, patterns=["x"] * (MAX_RULES + 1))


def test_rules_in_a_folder_left_out_do_not_matter(tmp_path):
    """What is not entered cannot stop the listing."""
    write(tmp_path, "a.md", "build/b.md", "node_modules/c.md")
    rules(tmp_path, gitignore="build/\n", build__gitignore="x\n" * (MAX_RULES + 1))
    rules(tmp_path, node_modules__gitignore="x\n" * (MAX_RULES + 1))
    assert listing(tmp_path).paths == ("a.md",)


def test_links_to_rules_are_taken_as_git_takes_them(work_tree):
    """A `.gitignore` that is a link does not hold and is reported; info/exclude is followed."""
    write(work_tree, "a.md", "b.md")
    (work_tree.parent / "outside").write_text("a.md\n")
    (work_tree.parent / "exclude").write_text("b.md\n")
    (work_tree / ".gitignore").symlink_to(work_tree.parent / "outside")
    (work_tree / ".git" / "info" / "exclude").unlink(missing_ok=True)
    (work_tree / ".git" / "info" / "exclude").symlink_to(work_tree.parent / "exclude")
    result = listing(work_tree)
    assert result.paths == ("a.md",)
    assert "symbolic link" in dict(result.skipped)[".gitignore"]


def test_a_linked_work_tree_has_the_excludes_of_its_repository(work_tree):
    """In a second checkout of a repository `.git/info/exclude` holds as in the first."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    git(work_tree, *identity, "commit", "--quiet", "--allow-empty", "--message", "none")
    git(work_tree, "worktree", "add", "--quiet", work_tree.parent / "second")
    write(work_tree.parent / "second", "a.md", "in/b.md")
    (work_tree / ".git" / "info" / "exclude").write_text("a.md\n")
    assert listing(work_tree.parent / "second").paths == ("in/b.md",)


@pytest.mark.parametrize("content", [b"", b"gitdir: nowhere\n", b"gitdir: \0/.."])
def test_a_git_file_that_leads_nowhere_has_no_rules(tmp_path, content):
    """What calls itself a linked work tree and is none is listed as any folder."""
    write(tmp_path, "a.md")
    (tmp_path / ".git").write_bytes(content)
    assert listing(tmp_path).paths == ("a.md",)


@pytest.mark.parametrize("target", ["../outside", "nowhere"])
def test_a_link_to_the_stores_own_rules_is_an_error(tmp_path, target):
    """A `.filestoreignore` that is a link is neither followed nor passed over."""
    (tmp_path / "outside").write_text("a.md\n")
    write(tmp_path / "tree", "a.md")
    (tmp_path / "tree" / ".filestoreignore").symlink_to(target)
    with pytest.raises(IgnoreRulesError, match="symbolic link"):
        listing(tmp_path / "tree")


def test_rules_upon_rules_have_an_end(tmp_path):
    """Where folders in folders add rules without end, the one too much is named."""
    folder = tmp_path
    for number in range(MAX_ACTIVE_RULES // MAX_RULES + 1):
        assert len(listing(tmp_path).paths) == number
        write(folder, f"{number}.md", f"x{number}")
        (folder / ".gitignore").write_text(f"x{number}\n" * MAX_RULES)
        folder = folder / "in"
    with pytest.raises(IgnoreRulesError, match=r"in/in/in/in/\.gitignore.*limit"):
        listing(tmp_path)


def test_a_folder_found_in_another_follows_its_rules(tmp_path):
    """One child of a folder holds the documents that the whole folder would have from it."""
    write(tmp_path, "in/a.md", "in/b.md", "in/c.md", "in/deep/d.md", "in/deep/e.md")
    rules(tmp_path, filestoreignore="a.md\n", gitignore="/in/deep/d.md\n")
    inner, patterns = str(tmp_path / "in"), ["/in/b.md", "/c.md"]
    alone = documents(
        inner, leave_out=lambda path: False, patterns=patterns, found_in=str(tmp_path)
    )
    assert alone.paths == ("c.md", "deep/e.md")
    assert tuple(f"in/{path}" for path in alone.paths) == listing(tmp_path, patterns=patterns).paths


def test_documents_that_nothing_reads_are_reported(tmp_path):
    """Office files, books and mail that no extractor reads are told with their format."""
    names = ("a.xlsb", "b.WPD", "c.odg", "in/d.mobi", "e.hwp", "f.ps", "g.djvu", "h.pst", "i.key")
    write(tmp_path, "ok.md", "~$a.xlsb", *names)
    result = listing(tmp_path)
    assert result.paths == ("ok.md",)
    assert sorted(path for path, _ in result.skipped) == sorted(names)
    reasons = dict(result.skipped)
    assert reasons["a.xlsb"] == "no extractor reads .xlsb files"
    assert reasons["b.WPD"] == "no extractor reads .wpd files"
    assert result.other == 0


def test_files_of_other_formats_are_counted(tmp_path):
    """Pictures, archives, programs and what dresses a site are a number, ignored ones none."""
    write(tmp_path, "index.html", "b.html", "a.png", "in/b.zip", "c.mp3", "d.so", "e.sqlite")
    write(tmp_path, "site.css", "in/site.js", "site.min.js", "ignored.gif", ".hidden.png")
    rules(tmp_path, gitignore="ignored.gif\n")
    result = listing(tmp_path)
    assert (result.other, result.ignored, result.skipped) == (8, 1, ())
    assert children(str(tmp_path), leave_out=lambda path: False).other == 6


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


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=FILES, lists=st.lists(st.tuples(st.integers(0, 20), RULES), min_size=1, max_size=3))
def test_the_walk_agrees_with_git(new_folder, files, lists):
    """Of any tree with any rules, the walk finds exactly the files that git does not ignore."""
    root = new_folder()
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

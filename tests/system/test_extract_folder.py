"""Which files of a real folder are documents."""

import os

import pytest

from filestore.extract import for_name
from filestore.extract.folder import documents

GIT_PAGES = "/usr/share/doc/git/html"


def write(root, *paths):
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("text")


def listing(root, leave_out=lambda path: False):
    return documents(str(root), leave_out=leave_out)


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

"""`filestore links` of notes that lie in place: where they lead, and from which line of a file."""

import json

import pytest

NOTES = {
    "Home.md": (
        '---\r\naliases: [Start]\r\nup: "[[Map]]"\r\n---\r\n\r\n# Home\r\n\r\n'
        "See [[deep note|it]]\r\nand [the map](sub/Map.md#top), ![](picture.png).\r\n"
    ),
    "sub/Map.md": "# Map\n\n[[Start]] and [home](../Home.md), [[Nowhere]], [[#Map]], `[[Home]]`\n",
    "sub/b/Deep note.md": "---\ntitle: [broken\n---\nBack: [[Home#Home]]\n\n[w](https://x.org)\n",
    "b/Überblick.md": "[[home]]\n\n[self](%C3%9Cberblick.md)\n",
    "other.txt": "[[Home]] is no link in plain text\n",
}


@pytest.fixture
def notes(run, tmp_path):
    """A folder of notes that is a store, indexed."""
    folder = tmp_path / "notes"
    for name, text in NOTES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    # The frontmatter of one cannot be read, which is told.
    assert run("init", "--in-place", "--embedder", "builtin", cwd=folder).code == 1
    return folder


def linked(run, notes, path):
    found = json.loads(run("links", path, "--json", cwd=notes).stdout)
    return tuple(
        [(one["path"], one["line"], one["target"], one["state"]) for one in found[key]]
        for key in ("outgoing", "incoming")
    )


def test_links_lead_to_files_and_back(run, notes):
    """By name, alias and path, with the lines an editor counts; metadata has none."""
    outgoing, incoming = linked(run, notes, "Home.md")
    assert outgoing == [
        ("Home.md", None, "sub/Map.md", "there"),
        ("Home.md", 8, "sub/b/Deep note.md", "there"),
        ("Home.md", 9, "sub/Map.md", "there"),
    ]
    assert incoming == [
        ("b/Überblick.md", 1, "Home.md", "there"),
        ("sub/Map.md", 3, "Home.md", "there"),
        ("sub/Map.md", 3, "Home.md", "there"),
        ("sub/b/Deep note.md", 4, "Home.md", "there"),
    ]


def test_a_name_that_no_file_has_is_told(run, notes):
    """And the exit code says so; a link within the note is none."""
    outgoing, _ = linked(run, notes, "sub/Map.md")
    assert outgoing[-1] == ("sub/Map.md", 3, "Nowhere", "dangling")
    assert len(outgoing) == 3
    assert run("links", "sub/Map.md", cwd=notes).code == 1


def test_links_of_one_line(run, notes):
    """PATH:LINE asks for those that stand in it."""
    outgoing, _ = linked(run, notes, "Home.md:9")
    assert [target for _, _, target, _ in outgoing] == ["sub/Map.md"]


def test_a_new_file_is_what_a_name_means_from_then_on(run, notes):
    """Nothing of what names mean is kept: no note that links there is read again."""
    (notes / "Nowhere.md").write_text("Here.\n")
    # A frontmatter that cannot be read stays a warning.
    assert run("sync", cwd=notes).code == 1
    assert linked(run, notes, "Nowhere.md") == (
        [],
        [("sub/Map.md", 3, "Nowhere.md", "there")],
    )


def test_links_keep_their_lines_below_blank_lines(run, notes):
    """A text that begins with blank lines, and one with a lone CR, count as an editor does."""
    (notes / "blank.md").write_bytes(
        b"\n\n\nSee [[Home]].\n\nA lone\rreturn, [[sub/Map]].\n\n[[Home]]\n"
    )
    assert run("sync", cwd=notes).code == 1
    outgoing, _ = linked(run, notes, "blank.md")
    assert [(line, target) for _, line, target, _ in outgoing] == [
        (4, "Home.md"),
        (6, "sub/Map.md"),
        (8, "Home.md"),
    ]


def test_a_link_to_a_file_that_is_not_indexed_leads_somewhere(run, notes):
    """Pictures are no documents; what the ignore rules leave out is not added, yet there."""
    (notes / ".filestoreignore").write_text("left/\n")
    (notes / "left").mkdir()
    (notes / "left/out.md").write_text("words\n")
    (notes / "picture.png").write_bytes(b"x")
    (notes / "see.md").write_text("[a](left/out.md#top) ![b](picture.png) [c](gone.md#x)\n")
    assert run("sync", cwd=notes).code == 1
    outgoing, _ = linked(run, notes, "see.md")
    assert outgoing == [
        ("see.md", 1, "left/out.md#top", "not added"),
        ("see.md", 1, "gone.md#x", "dangling"),
    ]


def test_backlinks_follow_edits_and_renames(run, notes):
    """What is kept of links is that of the last sync, and holds for verify."""
    (notes / "sub/Map.md").write_text("# Map\n\n[[Deep Note]]\n")
    (notes / "sub/b/Deep note.md").rename(notes / "Moved.md")
    assert run("sync", cwd=notes).code == 1
    assert linked(run, notes, "Home.md")[1] == [
        ("Moved.md", 4, "Home.md", "there"),
        ("b/Überblick.md", 1, "Home.md", "there"),
    ]
    assert linked(run, notes, "Moved.md")[1] == []
    findings = json.loads(run("verify", "--level", "deep", "--json", cwd=notes).stdout)["findings"]
    # Of two links by path the target is gone now.
    assert {finding["code"] for finding in findings} == {"frontmatter-ignored", "link-dangling"}

"""The links of a note once files were moved: each leads where it led, no other byte differs."""

import pytest

from filestore.chunks.relinking import Moves, UnlinkableError, relinked

DOCUMENTS = ("a.md", "b/c.md", "b/d e.md", "x/y/z.md", "x/index.md", "b/a.md", "v1.2.md")
TO = {"b/c.md": "n/new name.md"}


def made(text, note="b/d e.md", files=TO, **more):
    moves = Moves(files, documents=more.pop("documents", DOCUMENTS), **more)
    return relinked(text.encode(), note, moves).data.decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[[c]]", "[[new name]]"),
        ("![[c#Head|label]]", "![[new name#Head|label]]"),
        ("[[C#^block]]", "[[new name#^block]]"),
        ("[[ c ]]", "[[ new name ]]"),
        ("[[b/c]]", "[[n/new name]]"),
        ("[[b/c.md]]", "[[n/new name.md]]"),
        ("[[./c]]", "[[../n/new name]]"),
        ("|[[c\\|label]]|", "|[[new name\\|label]]|"),
        ("[t](c.md)", "[t](../n/new%20name.md)"),
        ("[t](./c.md#h 'title')", "[t](../n/new%20name.md#h 'title')"),
        ('[t](<../b/c.md?x#h> "t")', '[t](<../n/new name.md?x#h> "t")'),
        ("[t](/b/c.md)", "[t](/n/new%20name.md)"),
        ("[t](c)", "[t](../n/new%20name)"),
        ("![t](c.md)", "![t](../n/new%20name.md)"),
        ("[t][r]\n\n[r]: c.md 'title'", "[t][r]\n\n[r]: ../n/new%20name.md 'title'"),
        ("---\nup: '[[c]]'\n---\ntext", "---\nup: '[[new name]]'\n---\ntext"),
        ("\ufeff[[c]]\r\nand\r\n[t](c.md)", "\ufeff[[new name]]\r\nand\r\n[t](../n/new%20name.md)"),
        # A definition that some tools write for each name follows it, unless a reference needs it.
        ("[[c]]\n\n[c]: c.md", "[[new name]]\n\n[new name]: ../n/new%20name.md"),
        (
            "[[c]]\n\n[c]: c.md\n[c]: c.md 'twice'",
            "[[new name]]\n\n"
            "[new name]: ../n/new%20name.md\n[new name]: ../n/new%20name.md 'twice'",
        ),
        (
            "[[c]]\n\n[c]: c.md\n[new name]: a.md",
            "[[new name]]\n\n[c]: ../n/new%20name.md\n[new name]: a.md",
        ),
        ("[[c]] [t][c]\n\n[c]: c.md", "[[new name]] [t][c]\n\n[c]: ../n/new%20name.md"),
    ],
)
def test_a_link_follows_its_file(before, after):
    """In the style in which it is written."""
    assert made(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "`[[c]]`",
        "```\n[[c]]\n[t](c.md)\n```",
        "<!-- [[c]] -->",
        "[t](https://example.org/b/c.md)",
        "[[cc]] [t](none.md) [t](c.mdx)",
        "---\nup: x # [[c]]\n---\ntext",
        "[[a]] [t](a.md) [[v1.2]]",
        "[t](" + "x" * 10_000 + ")",
    ],
)
def test_what_leads_elsewhere_stays(text):
    """Code, comments, other sites, and what leads to no file or to another one."""
    assert made(text) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[t](c.md) [[c]]", "[t](b/c.md) [[c]]"),
        ("[t](../x/) [t](../../out.md)", "[t](x/) [t](../out.md)"),
        ("![p](pic.png) [n](none.png)", "![p](b/pic.png) [n](none.png)"),
        ("[[./c]] [t](d%20e.md#h)", "[[./b/c]] [t](d.md#h)"),
    ],
)
def test_the_links_of_what_is_moved_lead_on(before, after):
    """From where it lies then, also to folders, pictures, itself, and out of the tree."""
    exists = {"b/pic.png"}.__contains__
    assert made(before, files={"b/d e.md": "d.md"}, exists=exists) == after


def test_a_folder_that_moves_keeps_its_links():
    """What leads from one of its files to another stays as it is."""
    files = {"b/c.md": "z/q/c.md", "b/d e.md": "z/q/d e.md", "b/a.md": "z/q/a.md"}
    text = "[t](c.md) ![p](img/p.png) [o](../x/y/z.md) [f](../b/)"
    after = made(
        text,
        files={**files, "b/img/p.png": "z/q/img/p.png"},
        folders={"b": "z/q", "b/img": "z/q/img"},
        others=["b/img/p.png"],
        exists={"b"}.__contains__,
    )
    assert after == "[t](c.md) ![p](img/p.png) [o](../../x/y/z.md) [f](./)"


def test_a_name_that_another_file_has_becomes_exact():
    """A link that would mean another file is told apart, also one that was not about the move."""
    assert made("[[c]]", files={"b/c.md": "n/a.md"}) == "[[n/a]]"
    # The new file is nearer than the one that was meant.
    after = made("[[z]]", note="b/d e.md", files={"b/c.md": "b/z.md"})
    assert after == "[[x/y/z]]"


def test_what_no_link_can_name_is_refused():
    """A name with a bracket ends a link by name, and is written in a path."""
    files = {"b/c.md": "b/c[1].md"}
    with pytest.raises(UnlinkableError):
        made("[[c]]", files=files)
    assert made("[t](c.md)", files=files) == "[t](c[1].md)"


def test_other_bytes_are_no_text():
    """A file that is not UTF-8 is not written."""
    moves = Moves(TO, documents=DOCUMENTS)
    with pytest.raises(UnicodeDecodeError):
        relinked(b"\xff [[c]]", "a.md", moves)

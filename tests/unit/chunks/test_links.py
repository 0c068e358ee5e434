"""What must hold of a person's own links: which count, and what changes when a target moved."""

import posixpath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from filestore.chunks import chunk_file
from filestore.chunks.links import own_links, relinked, target_of

NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\0"), min_size=1, max_size=8
).map(lambda name: f"{name}.md")
FOLDERS = st.lists(st.sampled_from(["a", "b c", "é", "d(1)"]), max_size=3).map("/".join)
PATHS = st.tuples(FOLDERS, NAMES).map(lambda parts: posixpath.join(*parts))
STYLES = st.sampled_from(["[t]({})", '![i]({} "title")', "[r]: {}", "[t](<{}>)", "[t]({}#part)"])
WORDS = st.sampled_from(["Some words.\n", "```\n[no](code.md)\n```\n", "`[no](span.md)` ", "\n\n"])


@pytest.mark.parametrize(
    ("body", "targets"),
    [
        ("See [a](x.md).", ("r/x.md",)),
        ("![picture of text](../s/x.md 'title')", ("s/x.md",)),
        ("[a](<a file.md#top>) and [b](a%20file.md?raw)", ("r/a file.md",)),
        ("[a](./x.md) [b](deep/../y.md)", ("r/x.md", "r/y.md")),
        ("[ref]: x.md\n\n[other]: <y.md> (title)\n", ("r/x.md", "r/y.md")),
        ("[a](with(brackets).md) [b](x\\_1.md) [c](a&amp;b.md)", None),
        ("[a](\nx.md\n)", ("r/x.md",)),
        ("[a](x.md 'one\ntitle')", ("r/x.md",)),
        ("[ref]: x.md\r\n\r\n[b](\r\ny.md)\r\n", ("r/x.md", "r/y.md")),
        ("[a](\xa0.md)", ("r/\xa0.md",)),
    ],
)
def test_a_relative_link_to_a_file_counts(body, targets):
    """In every way in which Markdown writes one."""
    found = own_links("r/chunk1.md", body, None)
    assert found == (
        ("r/a&b.md", "r/with(brackets).md", "r/x_1.md") if targets is None else targets
    )


@pytest.mark.parametrize(
    "body",
    [
        "[a](https://example.org/x.md)",
        "[a](mailto:x.md) [b](file:x.md)",
        "[a](/x.md) [b](//host/x.md) [c](\\x.md)",
        "[a](../../x.md)",
        "[a](x.txt) [b](folder/) [c](#part) [d]()",
        "```\n[a](x.md)\n```\n",
        "~~~~ text\n[a](x.md)\n~~~\n~~~~\n",
        "> ```\n> [a](x.md)\n> ```\n",
        "`[a](x.md)` and ``code ` [b](y.md)``",
        "```\n[a](x.md) in a fence without an end",
        "[a]\\(x.md) and [a\\](x.md)",
        "[a](x%00.md)",
        "a.md and <a.md>",
    ],
)
def test_what_is_no_link_in_the_tree_does_not_count(body):
    """Addresses, paths that leave the tree, code, and names that merely stand there."""
    assert own_links("r/chunk1.md", body, None) == ()


def test_a_backtick_that_stays_alone_hides_nothing():
    """Code needs two runs of one length with no blank line between them."""
    assert own_links("x.md", "A ` tick [a](a.md)\n\nand ` another", None) == ("a.md",)
    assert own_links("x.md", "\\`[a](a.md)\\`", None) == ("a.md",)


def test_what_was_generated_is_the_sources():
    """Of an edited file only the links that the person put in count."""
    generated = "See [a](a.md) and [b](b.md)."
    edited = "See [a](a.md), and also [c](c.md)."
    assert own_links("r/chunk1.md", edited, generated) == ("r/c.md",)
    assert own_links("r/chunk1.md", generated, generated) == ()


def test_only_the_destination_changes():
    """Text, title, fragment, line ends and frontmatter stay byte for byte."""
    data = b"\xef\xbb\xbf---\nk:  'v' # mine\n---\r\nSee [x.md](x.md#a 'x.md')\r\n`[x](x.md)`\r\n"
    moved = relinked(data, "r/c.md", {"r/x.md": "s/new name.md"})
    assert moved == data.replace(b"](x.md#a", b"](../s/new%20name.md#a")
    assert relinked(data, "r/c.md", {"r/y.md": "z.md"}) == data
    assert relinked(data, "other/c.md", {"r/x.md": "z.md"}) == data


def test_the_style_of_a_destination_is_kept():
    """Brackets stay brackets, and a leading dot stays."""
    data = b"[a](<./x.md>) [b](./x.md) [c](x.md)"
    found = relinked(data, "c.md", {"x.md": "a b.md"})
    assert found == b"[a](<./a b.md>) [b](./a%20b.md) [c](a%20b.md)"


def test_the_children_of_a_summary_follow():
    """What a summary was made from is a link, too; its hash stays."""
    child = chunk_file.Child(path="r/x.md", hash="sha256:1")
    data = chunk_file.generate(body="Short.\n", kind="summary", children=[child])
    chunk = chunk_file.parse(relinked(data, "r/summary1.md", {"r/x.md": "s/x.md"}))
    assert chunk.children == (chunk_file.Child(path="s/x.md", hash="sha256:1"),)
    assert chunk.body == "Short.\n"


@given(PATHS, PATHS, PATHS, STYLES, st.lists(WORDS, max_size=3), st.lists(WORDS, max_size=3))
def test_a_mended_link_leads_to_the_new_place(path, old, new, style, before, after):
    """Whatever the names are; and mending it back gives the file as it was, or one that leads."""
    quoted = relinked_name(path, old)
    assume(quoted is not None and target_of(path, quoted) == old)
    body = "".join([*before, "\n\n", style.format(quoted), "\n\n", *after])
    assume(own_links(path, body, None) == (old,))
    data = b"---\ntags: green\n---\n" + body.encode()
    mended = relinked(data, path, {old: new})
    chunk = chunk_file.parse(mended)
    assert own_links(path, chunk.body, None) == (new,)
    back = chunk_file.parse(relinked(mended, path, {new: old})).body
    assert own_links(path, back, None) == (old,)


def relinked_name(path, target):
    """A destination that leads from a file to a target, as the program itself would write it."""
    found = relinked(
        b"[a](seed.md)", path, {posixpath.join(posixpath.dirname(path), "seed.md"): target}
    )
    written = found.decode().removeprefix("[a](").removesuffix(")")
    return None if written == "seed.md" else written


def test_a_definition_of_nothing_but_blanks_is_read_at_once():
    """A megabyte of them is not parted in every way in which it could be."""
    assert own_links("r/chunk1.md", "[a]:" + " " * 1_000_000 + "<", None) == ()

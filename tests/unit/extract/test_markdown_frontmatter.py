"""Frontmatter of documents: what is typed is what it says, and one bad line costs no other."""

import re

import pytest

from filestore.chunks.frontmatter import parse_block
from filestore.extract import FRONTMATTER_ERROR
from filestore.extract.markdown import read_frontmatter


def read(block, fence="---"):
    return read_frontmatter(f"{fence}\n{block}\n{fence}\nbody\n")


@pytest.mark.parametrize(
    "typed",
    [
        *("7:15", "00420", "NO", "off", "y", "0o17", "0x1F", "1_000", "+1", ".5", "1.20", "2.0"),
        *("3e4", "2023-02-30", "2023-02-28", "2023-02-28 10:00:00", "~", "="),
    ],
)
def test_what_is_typed_is_what_is_compared(typed):
    """Neither times, codes of countries and post, nor versions become something else."""
    metadata, _ = read(f"key: {typed}\nin list: [{typed}]")
    assert {str(metadata["key"]), str(metadata["in list"][0])} == {typed}
    assert metadata == parse_block(f"key: {typed}\nin list: [{typed}]\n".encode(), 2)


def test_json_and_toml_keep_the_zero_of_a_version():
    """A number is text where it would be written otherwise than it was typed, in any syntax."""
    assert read("v = 1.10\nw = 1.1", "+++")[0] == {"v": "1.10", "w": 1.1}
    assert read_frontmatter('{\n"v": 1.10\n}\nbody')[0] == {"v": "1.10"}


def test_values_become_json():
    """Keys are text, huge numbers are text, and words of JSON are its values."""
    block = "d: 2024-01-02T10:00:00Z\nn: .nan\n1: x\nh: 99999999999999999999\nf: false\ne:"
    assert read(block)[0] == {
        "d": "2024-01-02T10:00:00Z",
        "n": ".nan",
        "1": "x",
        "h": "99999999999999999999",
        "f": False,
        "e": None,
    }


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("key: [[One]], [[Two]]", "[[One]], [[Two]]"),
        ("key: Part: the second", "Part: the second"),
        ("key: @ann", "@ann"),
        ("key: %7", "%7"),
        ("key: `code`", "`code`"),
        ("key: *Bold* word", "*Bold* word"),
        ("key: !now", "!now"),
        ("key: &co", "&co"),
        ("key: > or < than", "> or < than"),
        ('key: "open', '"open'),
        ("key: 'it's", "'it's"),
        ('key: "a" and "b"', '"a" and "b"'),
        ("key: [a, b", "[a, b"),
        ("key: {a", "{a"),
        ("key: [#one, #two]", "[#one, #two]"),
        ("key: a\u2028b", "a\u2028b"),
        ("key:\n  - fine\n  - @ann", ["fine", "@ann"]),
        ("key:\n- Part: x: y\n- 2", ["Part: x: y", 2]),
        ("key:\n\t- one\n\t- two", ["one", "two"]),
    ],
)
def test_a_bad_line_costs_no_other_its_value(lines, value):
    """What stands in it is text, the frontmatter leaves the text, and the line is named."""
    metadata, start = read(f"tags: [kept]\n{lines}\n# remark\nstatus: open")
    error = metadata.pop(FRONTMATTER_ERROR, "")
    assert metadata == {"tags": ["kept"], "key": value, "status": "open"}
    assert start > 0
    if "\t" not in lines:
        bad = 3 + lines.count("\n") if "fine" in lines else 3 + ("\n" in lines)
        assert error == f"not valid YAML: line {bad} read as text"


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ("status: closed", {}),
        ("key: word\n- item", {"key": "word"}),
        ("key: word\n\tdeep: x", {"key": "word"}),
        ("key:\n  deep: [x\n  more: y", {}),
        ("no key at all", {}),
        ("<<: {a: 1}", {}),
        ("key: [" + "x" * 2_000, {}),
    ],
)
def test_a_line_without_a_place_is_left_out_and_stays_in_the_text(lines, kept):
    """The first of two equal keys counts; nothing that was written is lost to search."""
    metadata, start = read(f"status: open\n{lines}\ntags: [kept]")
    error = metadata.pop(FRONTMATTER_ERROR)
    assert {"tags": ["kept"]} | kept == {k: v for k, v in metadata.items() if k != "status"}
    assert start == 0
    assert re.fullmatch(r"not valid YAML: lines? [345, ]+ left out", error)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("---\na: " + "x" * 70_000 + "\n---\n", "larger"),
        ("---\n" + "a: [\n" * 502 + "---\n", "500 lines"),
        ("---\na: " + "[" * 30_000 + "\n---\n", "left out"),
        ("---\n? [a]\n: b\nc: d\n---\n", "left out"),
        ("+++\na = " + "[" * 30_000 + "\n+++\n", "deeper"),
        ('{\n"a": ' + "[" * 30_000 + "\n}\n", "deeper"),
        ("+++\n" + ".".join("a" * 20_000) + " = 1\n+++\n", "deeper"),
        ("+++\na = \n+++\n", "not valid TOML"),
    ],
)
def test_what_cannot_be_read_at_all_stays_in_the_text(head, message):
    """A frontmatter that is broken or hostile is reported in a few words."""
    metadata, start = read_frontmatter(head + "body\n")
    assert start == 0
    assert re.search(message, metadata[FRONTMATTER_ERROR])
    assert len(metadata[FRONTMATTER_ERROR]) < 200


def test_anchors_are_text_and_nothing_is_resolved():
    """An alias stands for nothing but itself."""
    assert read("a: &x 1\nb: *x\nc: !!python/name:os.system")[0] == {
        "a": "&x 1",
        "b": "*x",
        "c": "!!python/name:os.system",
        FRONTMATTER_ERROR: "not valid YAML: lines 2, 3, 4 read as text",
    }


@pytest.mark.parametrize(
    "text", ["---\nprose, no mapping\n---\nmore\n", "---\nno end\n", "a\n---\nb\n"]
)
def test_rules_are_no_frontmatter(text):
    """Horizontal rules around prose are left alone without a complaint."""
    assert read_frontmatter(text) == ({}, 0)

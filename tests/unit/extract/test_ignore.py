"""What ignore rules say of a path; that git says the same is tested on real trees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract.ignore import (
    MAX_BYTES,
    MAX_PATTERN_BYTES,
    MAX_RULES,
    IgnoreRulesError,
    parse,
)

SIGNS = st.sampled_from([*"ab*?[]!^-\\/. #\r\0é", "**", "**/", "/**", "[[:alpha:]]"])
RULES = st.lists(st.lists(SIGNS, max_size=8).map("".join), max_size=5).map("\n".join)
NAMES = st.binary(min_size=1, max_size=6).filter(lambda name: not {0, 47} & set(name))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(b"/".join)


def says(rules: str, path: str, *, is_folder: bool = False) -> bool | None:
    return parse(rules.encode()).leaves_out(path.encode(), is_folder=is_folder)


@pytest.mark.parametrize(
    ("rule", "matching", "other"),
    [
        ("notes.txt", "notes.txt a/notes.txt a/b/notes.txt", "notes.txt2 notes_txt"),
        ("*.pyc", "a.pyc a/b.pyc .pyc", "a.pyc.md pyc"),
        ("/top.md", "top.md", "a/top.md"),
        ("a/b.md", "a/b.md", "x/a/b.md"),
        ("a/*.md", "a/b.md", "a/b/c.md b.md"),
        ("**/c.md", "c.md a/c.md a/b/c.md", "xc.md"),
        ("a/**", "a/b a/b/c", "a x/a/b"),
        ("a/**/z", "a/z a/b/z a/b/c/z", "a/bz az"),
        ("a/***/z", "a/z a/b/c/z", "az"),
        ("a/x**z", "a/xz a/x1z", "a/x/z"),
        ("?.md", "a.md", "ab.md é.md"),
        ("[a-c]x", "ax cx", "dx -x"),
        ("[!a-c]x", "dx", "ax"),
        ("[]a]x", "]x ax", "bx"),
        ("[[:digit:]]x", "1x", "ax"),
        ("[a/b]x", "ax bx", "a/bx"),
        ("\\#a", "#a", "\\#a"),
        ("\\!a", "!a", "a"),
        ("a\\*b", "a*b", "a1b"),
        ("# a", "", "a #"),
        ("a\\", "", "a a\\"),
        ("[a", "", "a [a"),
        ("/", "", "a"),
    ],
)
def test_a_pattern_means_what_it_means_to_git(rule: str, matching: str, other: str) -> None:
    """A pattern leaves out the paths that git's manual says it matches, and no others."""
    assert [path for path in matching.split() if not says(rule, path)] == []
    assert [path for path in other.split() if says(rule, path)] == []


def test_the_last_rule_that_matches_decides() -> None:
    """A later rule takes back an earlier one, whether by name or by path."""
    rules = "*.md\n!keep.md\n/a/keep.md\n"
    assert says(rules, "x.md") is True
    assert says(rules, "keep.md") is False
    assert says(rules, "a/keep.md") is True
    assert says(rules, "keep.txt") is None


def test_a_slash_at_the_end_means_folders_only() -> None:
    """A rule for folders says nothing about a file of that name."""
    assert says("build/", "a/build", is_folder=True) is True
    assert says("build/", "a/build") is None
    assert says("build", "a/build", is_folder=True) is True


@pytest.mark.parametrize("text", ["a.md  \n", "a.md\r\n", "\ufeffa.md", "a.md\0junk", "\n\na.md\n"])
def test_what_editors_leave_in_a_file_does_not_matter(text: str) -> None:
    """Blanks at the end, a byte-order mark, CR and empty lines are no part of a pattern."""
    assert says(text, "a.md") is True


def test_a_blank_after_a_backslash_is_part_of_the_name() -> None:
    """Only the blanks that nobody asked for are dropped."""
    assert says("a\\ \n", "a ") is True
    assert says("a\\  \n", "a ") is True
    assert says("a \n", "a ") is None


def test_names_are_bytes() -> None:
    """A name that is not UTF-8 is matched like any other."""
    assert parse(b"\xff*\n").leaves_out(b"a/\xff\xfe", is_folder=False) is True
    assert parse(b"[\xfe]\n").leaves_out(b"\xfe", is_folder=False) is True


@pytest.mark.parametrize(
    "data",
    [
        b"a" * (MAX_BYTES + 1),
        b"#" * (MAX_BYTES + 1),
        b"\n".join(b"a%d" % number for number in range(MAX_RULES + 1)),
        b"a.md\n" + b"*" * (MAX_PATTERN_BYTES + 1),
        b"!" + b"a/" * MAX_PATTERN_BYTES,
    ],
)
def test_a_list_without_end_is_refused(data: bytes) -> None:
    """Rules beyond the limits are refused with the limit, not applied in part."""
    with pytest.raises(IgnoreRulesError, match="limit"):
        parse(data)


def test_what_is_just_within_the_limits_is_followed() -> None:
    """Rules at the limits hold; a comment may be as long as the list."""
    assert says("*" * MAX_PATTERN_BYTES, "a.md") is True
    assert says("a.md\n" * MAX_RULES + "#" * MAX_PATTERN_BYTES * 2, "a.md") is True
    assert says("a.md\n#".ljust(MAX_BYTES, "b"), "a.md") is True


@pytest.mark.parametrize(
    "pattern", ["*a" * 2_000 + "*b", "**/a/" * 800 + "b", "a*" * 100 + "/**/" + "*a" * 100 + "b"]
)
def test_a_hostile_pattern_is_answered(pattern: str) -> None:
    """Many asterisks on a long name that almost fits are decided all the same."""
    assert says(pattern, "a" * 255) is None
    assert says(pattern, "a/" * 1_000 + "c") is None


@given(RULES, PATHS, st.booleans())
def test_any_rules_are_rules(rules: str, path: bytes, is_folder: bool) -> None:
    """Whatever stands in a file, every path gets an answer, and rules of comments give none."""
    assert parse(rules.encode()).leaves_out(path, is_folder=is_folder) in (True, False, None)
    commented = "".join(f"#{line}\n" for line in rules.split("\n"))
    assert parse(commented.encode()).leaves_out(path, is_folder=is_folder) is None


@given(RULES, PATHS, st.booleans())
def test_a_rule_taken_back_word_for_word_leaves_nothing_out(
    rules: str, path: bytes, is_folder: bool
) -> None:
    """After the same patterns with "!" no path is left out."""
    lines = [line for line in rules.split("\n") if not line.startswith("!")]
    taken_back = "\n".join([*lines, *(f"!{line}" for line in lines if not line.startswith("#"))])
    assert parse(taken_back.encode()).leaves_out(path, is_folder=is_folder) is not True

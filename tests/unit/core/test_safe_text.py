"""What may reach a terminal, and what must not."""

import unicodedata

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.safe_text import (
    listed,
    paths_shown_so,
    safe_text,
    shown_path,
    timestamp,
    without_name,
)

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp"]),
        st.integers(0, 0x10FFFF).map(chr),
    )
)
BANNED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(ANY_TEXT)
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    """No control, format, surrogate or separator character is left, but line feeds and tabs, and
    what joins two signs that are seen."""
    shown = safe_text(text).replace("\n", "").replace("\t", "")
    seen = shown.replace("\u200c", "").replace("\u200d", "")
    assert not {unicodedata.category(character) for character in seen} & BANNED
    for at, character in enumerate(shown):
        if character in "\u200c\u200d":
            assert 0 < at < len(shown) - 1
            assert not {shown[at - 1], shown[at + 1]} & set(" \u200c\u200d.,\u3164")


@given(ANY_TEXT)
def test_a_line_stays_one_line(text: str) -> None:
    """Without newlines kept, the result is one line and can be encoded."""
    shown = safe_text(text, keep_newlines=False)
    assert len(shown.splitlines()) <= 1
    assert "\t" not in shown
    shown.encode("utf-8")


@given(ANY_TEXT)
def test_safe_text_is_idempotent(text: str) -> None:
    """What was made safe once is not changed again."""
    shown = safe_text(text)
    assert safe_text(shown) == shown


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_printable_text_is_unchanged(text: str) -> None:
    """Letters, digits, punctuation, symbols and spaces of every script pass, but blank fillers."""
    fillers = "\u115f\u1160\u3164\uffa0"
    plain = "".join(character for character in text if character not in fillers)
    assert safe_text(plain) == plain


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "two\nlines\tand a tab",
        "größe – “quoted”",
        "日本語",
        "❤️ ☎️ 1️⃣ ℹ️",
        "e\u0301",
        "a\\x1b",
        "کتاب\u200cخانه\u200cها و ۱۴۰۰\u200cم",
        "शक्\u200dति राष्\u200cट्र",
        "👨\u200d👩\u200d👧 👩🏽\u200d🚀 🏳️\u200d🌈 ❤️\u200d🔥 🧑\u200d⚕️",
        "葛\U000e0100",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    """Ordinary text passes as it is, combining marks and variation selectors included."""
    assert safe_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("overwritten\rgone", "overwritten\\x0dgone"),
        ("\x9b2J", "\\x9b2J"),
        ("\x7f\x00", "\\x7f\\x00"),
        ("fdp.\u202egpj.exe", "fdp.\\u202egpj.exe"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\u200cwords", "\\u200cwords"),
        ("words\u200d", "words\\u200d"),
        ("two \u200c words", "two \\u200c words"),
        ("n\u200dq, Ж\u200cд", "n\\u200dq, Ж\\u200cд"),
        ("a\u200c\u200db", "a\\u200c\\u200db"),
        ("a\u3164\u200cb", "a\\u3164\\u200cb"),
        ("👩\u200c🔬", "👩\\u200c🔬"),
        ("a\u200d🔬", "a\\u200d🔬"),
        ("a\ufe0fb\U000e0101", "a\\ufe0fb\\U000e0101"),
        ("☎\ufe0f\ufe0f", "☎\ufe0f\\ufe0f"),
        ("line\u2028paragraph\u2029", "line\\u2028paragraph\\u2029"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\udcff", "\\xff"),
        ("\ufdd0\uffff\U0010ffff", "\\ufdd0\\uffff\\U0010ffff"),
        ("größe\x1b", "größe\\x1b"),
    ],
)
def test_each_kind_of_danger_is_shown(text: str, shown: str) -> None:
    """Every dangerous character is replaced by an escape that names it."""
    assert safe_text(text) == shown


def test_a_soft_hyphen_is_nothing_in_a_text() -> None:
    """It says where a word may be broken, and nothing is broken there."""
    assert safe_text("hy\u00adphen\u00ad") == "hyphen"


@pytest.mark.parametrize("sign", ["\u200c", "\u200d", "\u00ad"])
def test_what_is_not_seen_is_shown_in_a_name(sign: str) -> None:
    """Two names that look alike are not taken for each other, and each is read back."""
    for name in (f"sea{sign}son.md", f"کتاب{sign}خانه.md", f"👨{sign}👧.md"):
        shown = shown_path(name)
        assert sign not in shown
        assert name in paths_shown_so(shown)


def test_newlines_and_tabs_are_escaped_in_a_line() -> None:
    """On one line, a line feed and a tab are seen as escapes, in ASCII text and in other text."""
    assert safe_text("a\nb\tc", keep_newlines=False) == "a\\x0ab\\x09c"
    assert safe_text("ä\nb\tc", keep_newlines=False) == "ä\\x0ab\\x09c"


@given(st.binary())
def test_every_path_can_be_shown_and_put_in_json(path: bytes) -> None:
    """Whatever bytes a name has, it is one printable line that JSON carries unchanged."""
    shown = shown_path(path)
    assert orjson.loads(orjson.dumps(shown)) == shown
    assert not {unicodedata.category(character) for character in shown} & BANNED


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="ᅟᅠㅤﾠ")))
def test_a_readable_path_is_shown_as_it_is(path: str) -> None:
    """A name in UTF-8 without anything invisible is shown unchanged, from bytes and from text."""
    assert shown_path(path.encode()) == path
    assert shown_path(path) == path


@given(st.binary())
def test_bytes_and_text_of_a_path_are_shown_alike(path: bytes) -> None:
    """A name is shown the same way whether it comes as bytes or as Python's text."""
    assert shown_path(path) == shown_path(path.decode("utf-8", "surrogateescape"))


def test_bytes_that_are_not_utf_8_are_shown_in_hexadecimal() -> None:
    r"""A byte that is no UTF-8 is shown as \xNN, the rest as usual."""
    assert shown_path(b"caf\xe9/\xc3\xa9t\xc3\xa9.md") == "caf\\xe9/été.md"


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_a_printed_path_is_read_back(name: bytes) -> None:
    """One of the names that may be meant is the one that was printed, where it is not ambiguous."""
    path = name.decode("utf-8", "surrogateescape")
    shown = shown_path(path)
    readings = list(paths_shown_so(shown))
    assert readings[0] == shown
    assert len(readings) <= 3
    are_mixed = (
        any(one in path for one in map(chr, range(0x80, 0x100))) and shown_path(path) != path
    )
    if "\\" not in path and not are_mixed:
        assert path in readings


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "1970-01-01 00:00 UTC"),
        (1_700_000_000, "2023-11-14 22:13 UTC"),
        (-1, "1969-12-31 23:59 UTC"),
        (10**30, f"{10**30} s"),
    ],
)
def test_a_moment_is_shown_in_utc(seconds: int, shown: str) -> None:
    """A commit may claim any number."""
    assert timestamp(seconds) == shown


@given(st.lists(st.text("ab", min_size=1, max_size=3), max_size=6), st.integers(1, 4))
def test_a_list_says_how_much_it_leaves_out(names: list[str], most: int) -> None:
    """What is there is named, the rest is counted, and a whole list does not go on."""
    said = listed(names, most)
    assert said.startswith(", ".join(names[:most]))
    assert ("more" in said) == (len(names) > most)
    if len(names) > most:
        assert said.endswith(f" and {len(names) - most} more")


@pytest.mark.parametrize(
    ("path", "reason", "expected"),
    [
        ("a/b.pdf", "b.pdf is encrypted: it opens", "it is encrypted: it opens"),
        ("b.bin", "b.bin: no extractor reads it", "no extractor reads it"),
        ("a/b.pdf", "a/b.pdf: cut off", "cut off"),
        ("b.pdf", "xb.pdf: cut off", "xb.pdf: cut off"),
        ("b.pdf", "b.pdfs is odd", "b.pdfs is odd"),
        ("", ": x", ": x"),
    ],
)
def test_the_name_of_a_file_stands_once(path: str, reason: str, expected: str) -> None:
    """Where it is printed before a reason that begins with it."""
    assert without_name(path, reason) == expected

"""Plain text: encodings, line ends, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.extract.base import DepthError, ExtractionError, TextExtractor, decode, json_value

GERMAN = "Müller heißt übrigens Größe."
LEGACY = [
    ("cp1252", GERMAN),
    ("cp1252", "“Café” – déjà vu"),
    ("cp1252", "¿Dónde está el niño? Mañana."),
    ("cp1250", "Zażółć gęślą jaźń"),
    ("cp1250", "Příliš žluťoučký kůň"),
    ("cp1251", "Привет, мир! Это проверка кодировки."),
    ("koi8_r", "Привет, мир! Это проверка кодировки."),
    ("koi8_r", "Ошибка"),
    ("cp1253", "Καλημέρα κόσμε, αυτό είναι ένα τεστ"),
    ("cp1254", "Türkçe için güzel bir şey, ığdır"),
    ("cp1255", "שלום עולם זה מבחן"),
    ("cp1256", "مرحبا بالعالم هذا اختبار"),
    ("cp932", "これはテストです。日本語のテキスト。"),
    ("cp932", "東京タワー"),
    ("gb18030", "你好，世界"),
    ("gb18030", "这是一个测试文件。中文内容。"),
    ("big5", "這是一個測試文件。繁體中文內容。"),
    ("cp949", "안녕하세요. 한국어 텍스트입니다."),
    ("euc_jp", "これはテストです。日本語のテキスト。"),
    ("iso2022_jp", "これはテストです。"),
    ("iso2022_kr", "안녕하세요. 한국어 텍스트입니다."),
    ("cp866", "Лодки у пристани, паром уходит утром."),
    ("mac_cyrillic", "Лодки у пристани, паром уходит утром."),
    ("iso8859_5", "Лодки у пристани, паром уходит утром."),
    ("cp874", "เรือโดยสารข้ามฟากออกทุกเช้า"),
    ("cp1252", "Copyright © 2020 José Núñez"),
    ("utf-16-le", "hello\nworld"),
    ("utf-16-be", "这是一个测试文件。\n中文内容。"),
    ("utf-16-le", "日本語 テキスト"),
    ("utf-32-le", "这是一个"),
]


@pytest.mark.parametrize(("codec", "text"), LEGACY)
def test_short_text_in_legacy_encoding_is_recognised(codec, text):
    """A line of prose is read in the encoding it was written in."""
    assert decode(text.encode(codec), name="f")[0] == text


@pytest.mark.parametrize(("codec", "text"), LEGACY)
def test_ascii_around_does_not_mislead(codec, text):
    """The same line between English ones is still recognised."""
    whole = f"The quick brown fox.\n{text}\nJumps over it.\n"
    assert decode(whole.encode(codec), name="f")[0] == whole


@settings(deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_unicode_comes_back_exactly(text, codec):
    """What is encoded in UTF-8, or marked as UTF-16 or UTF-32, decodes to itself."""
    assert decode(text.encode(codec), name="f")[0].removeprefix("\ufeff") == text.removeprefix(
        "\ufeff"
    )


def test_utf8_is_not_mentioned_and_others_are():
    """Metadata name the encoding only where it is not UTF-8; a guess is a remark."""
    extractor = TextExtractor()
    assert extractor.extract(GERMAN.encode(), name="f").metadata == {}
    guessed = extractor.extract(GERMAN.encode("cp1252"), name="f")
    assert guessed.metadata == {"encoding": "cp1252 (guessed)"}
    assert guessed.all_remarks == ("read as cp1252, which is a guess",)


@pytest.mark.parametrize(
    "line",
    [
        '<?xml version="1.0" encoding="windows-1257"?>',
        "#!/usr/bin/python\n# -*- coding: cp1257 -*-",
        "// vim: set fileencoding=CP1257 :",
    ],
)
def test_what_a_file_declares_is_no_guess(line):
    """The encoding that XML and source code say is believed where the bytes are in it."""
    whole = f"{line}\nė\n"
    assert decode(whole.encode("cp1257"), name="f") == (whole, "cp1257")
    assert decode(whole.encode(), name="f") == (whole, "utf-8")


@pytest.mark.parametrize("named", ["idna", "unicode_escape", "rot13", "utf-7", "x", "\0", "cp0"])
def test_a_declaration_of_no_encoding_for_files_is_passed_over(named):
    """A declaration that names nothing of use leaves the guess."""
    line = f'<?xml encoding="{named}"?>' if named != "\0" else "<?xml encoding="
    whole = f"{line}\n{GERMAN}\n"
    assert decode(whole.encode("cp1252"), name="f") == (whole, "cp1252 (guessed)")


def test_line_ends_become_lf_and_all_else_stays():
    """CRLF and CR become LF; tabs, form feeds, trailing spaces and final lines stay."""
    document = TextExtractor().extract(b"a \r\nb\rc\n\n\td\x0c\n\n", name="f")
    assert document.text == "a \nb\nc\n\n\td\x0c\n\n"
    assert document.syntax == "text"
    assert document.extractor == "text/2"


def test_one_damaged_byte_does_not_change_the_encoding():
    """A long UTF-8 text with a broken byte keeps its other characters, and says it is damaged."""
    text = "这是一个测试文件。" * 10
    decoded, encoding = decode(text.encode() + b"\xff", name="f")
    assert decoded == text + "\ufffd"
    assert encoding == "utf-8 (damaged)"


def test_a_mark_that_lies_is_refused():
    """A byte-order mark followed by something else is an error, not a guess."""
    with pytest.raises(ExtractionError, match="UTF-16-LE"):
        decode(b"\xff\xfea\x00b", name="f")


def test_evidence_far_into_the_file_counts():
    """An encoding that shows only after a megabyte of ASCII, on one line, is recognised."""
    text = "plain words " * 100_000 + GERMAN
    assert decode(text.encode("cp1252"), name="f") == (text, "cp1252 (guessed)")


def test_overstruck_manual_pages_are_text():
    """Backspaces and escape sequences of a terminal do not make a text binary."""
    data = b"N\x08NA\x08AM\x08ME\x08E\n\x1b[1mbold\x1b[0m\n"
    assert decode(data, name="f")[0].encode() == data


def test_control_characters_are_refused():
    """Mostly control characters are no text, also without a NUL among them."""
    with pytest.raises(ExtractionError, match="control characters"):
        decode(b"\x01\x02\x03\x04abc", name="f")


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.integers(), inner, max_size=3)
        ),
        max_leaves=5,
    )
)
def test_json_values_are_stable(value):
    """What was made JSON-able once is not changed by doing it again."""
    try:
        once = json_value(value)
    except DepthError:
        return
    assert json_value(once) == once

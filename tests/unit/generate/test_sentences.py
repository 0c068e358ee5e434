"""Where sentences end, what is prose, and which language it is in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.generate._keyphrases import key_phrases
from filestore.generate._languages import language_of
from filestore.generate._plain import inline, prose_of
from filestore.generate._sentences import is_whole, leans_back, sentences_of

PARAGRAPHS = {
    "latin": ("It rains. Does it? Yes!", ["It rains.", "Does it?", "Yes!"]),
    "title": ("Dr. Smith met Mrs. Jones. They left.", ["Dr. Smith met Mrs. Jones.", "They left."]),
    "initials": ("J. R. Smith wrote it. He died.", ["J. R. Smith wrote it.", "He died."]),
    "decimals": ("It costs 3.50 in v2.1. Buy it.", ["It costs 3.50 in v2.1.", "Buy it."]),
    "address": (
        "See https://a.example/b.html?c=d. Then go on.",
        ["See https://a.example/b.html?c=d.", "Then go on."],
    ),
    "ellipsis": ("Well... maybe not. Fine.", ["Well... maybe not.", "Fine."]),
    "ellipsis that ends": ("Well… Maybe not.", ["Well…", "Maybe not."]),
    "quoted": ("He said “Stop.” Then he left.", ["He said “Stop.”", "Then he left."]),
    "brackets": ("It is so (see fig. 3). Next.", ["It is so (see fig. 3).", "Next."]),
    "german": (
        "Das gilt z.B. am 3. Oktober bzw. im Mai. Danach nicht.",
        ["Das gilt z.B. am 3. Oktober bzw. im Mai.", "Danach nicht."],
    ),
    "spanish": ("¿Qué es? Es el Sr. Pérez. ¡Ya!", ["¿Qué es?", "Es el Sr. Pérez.", "¡Ya!"]),
    "chinese": (
        "灯塔很高。谁建的？他说：“我。”完",
        ["灯塔很高。", "谁建的？", "他说：“我。”", "完"],
    ),
    "japanese": ("塔は高い。「行くぞ！」と言う。", ["塔は高い。", "「行くぞ！」", "と言う。"]),
    "hindi": ("यह पुस्तक है। वह कलम है।", ["यह पुस्तक है।", "वह कलम है।"]),
    "arabic": ("ما هذا؟ هذا كتاب.", ["ما هذا؟", "هذا كتاب."]),
    "year": ("It was built in 1882. It stands.", ["It was built in 1882.", "It stands."]),
    "name of a file": ("Open main.py now. Run it.", ["Open main.py now.", "Run it."]),
    "no end": ("no end at all", ["no end at all"]),
    "nothing": ("", []),
}


@pytest.mark.parametrize("name", PARAGRAPHS)
def test_sentences_end_where_a_reader_ends_them(name: str) -> None:
    """In each script, and not within numbers, names and abbreviations."""
    paragraph, expected = PARAGRAPHS[name]
    assert sentences_of(paragraph) == expected


@given(st.text())
def test_nothing_is_lost_between_sentences(text: str) -> None:
    """Without blanks, the sentences are the text."""
    assert "".join("".join(sentences_of(text)).split()) == "".join(text.split())


def test_what_says_something_by_itself() -> None:
    """A whole sentence with words in it; no fragment, no row of numbers, no code."""
    assert is_whole("The lighthouse of Ando was built in 1882.")
    assert is_whole("灯塔建于1882年，很高。")
    for fragment in ("Too short.", "and then it was built by them.", "The lighthouse of the town"):
        assert not is_whole(fragment)
    assert not is_whole("1882, 1883, 1884, 1885, 1886 and 1887 and 1888.")
    assert not is_whole("The word " + "very " * 100 + "long.")


def test_what_points_at_the_sentence_before() -> None:
    """It does not stand well alone."""
    assert leans_back("However, the tower stood.")
    assert leans_back("这是一座塔。")
    assert leans_back("Dies war ein Turm.")
    assert not leans_back("Heather grows there.")


MARKDOWN = """\
Setext title
============

Some *words* with a [link](a.md "b"), an ![image](b.png), a note[^1] and `code_here`.
They go on.

> A quote with <b>tags</b> and [[note|a name]].

- [x] first item
- second item
1. third item

| a | b |
|---|---|
| 1 | cell text |

```python
# a comment in code
print(1)
```

## Second [part](x)

[ref]: http://a.example
"""


def test_prose_without_its_furniture() -> None:
    """Paragraphs and items without marks, headings apart, code and tables apart."""
    prose = prose_of(MARKDOWN)
    assert prose.headings == ("Setext title", "Second part")
    assert prose.paragraphs == (
        "Some words with a link, an , a note and `code_here`. They go on.",
        "A quote with tags and a name.",
        "first item",
        "second item",
        "third item",
    )
    assert prose.other == ("a b", "cell text", "a comment in code", "print(1)")


def test_code_in_no_fence_is_no_prose() -> None:
    """A chunk of a source file."""
    prose = prose_of("def open_store(path):\n    check(path)\n    return Store(path)\n")
    assert prose.paragraphs == ()
    assert prose.other[0] == "def open_store(path):"


def test_what_only_looks_like_marks_stays() -> None:
    """Names with underlines, products with stars."""
    assert inline("a snake_case_name and 2 * 3 * 4") == "a snake_case_name and 2 * 3 * 4"


@given(st.text())
def test_any_text_is_taken_apart(text: str) -> None:
    """Each paragraph and heading is one line that can be written."""
    prose = prose_of(text)
    for line in (*prose.headings, *prose.paragraphs, *prose.other):
        assert "\n" not in line
        line.encode()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The tower was built by the company in the town.", "en"),
        ("Der Turm wurde von der Gesellschaft in der Stadt gebaut.", "de"),
        ("La tour a été construite par la société dans une ville.", "fr"),
        ("La torre fue construida por la compañía en una ciudad.", "es"),
        ("La torre è stata costruita dalla società nella città.", "it"),
        ("A torre foi construída pela companhia em uma cidade.", "pt"),
        ("De toren werd door de maatschappij in een stad gebouwd.", "nl"),
        ("Башня была построена обществом в этом городе и не только.", "ru"),
        ("灯塔是由公司建造的。", "zh"),
        ("塔は会社によって建てられました。", "ja"),
        ("탑은 회사에 의해 지어졌습니다.", "ko"),
        ("pip install filestore", ""),
        ("", ""),
    ],
)
def test_the_language_of_a_text(text: str, language: str) -> None:
    """Where it is clear; nothing is guessed of a command."""
    assert language_of(text) == language


def test_phrases_are_names_and_what_recurs() -> None:
    """Names come first, and a phrase that stands once is none."""
    sentences = [
        "The harbour company of Ando Bay digs out the channel.",
        "Every spring the harbour company sends two dredgers.",
        "A keeper lives there.",
    ]
    found = [one.text for one in key_phrases(sentences, "en")]
    assert sorted(found[:2]) == ["Ando Bay", "harbour company"]
    assert not any("keeper" in one for one in found)


def test_chinese_phrases_recur_or_stand_in_title_marks() -> None:
    """Nothing is cut out of the middle of a word."""
    found = [
        one.text for one in key_phrases(["《海港》讲灯塔。", "旧灯塔很高，新灯塔更高。"], "zh")
    ]
    assert found == ["灯塔", "海港"]

"""Which questions are made of a text, and of which none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.generate._plain import prose_of
from filestore.generate._questions import questions_of

ANSWERED = {
    "A sourdough is a mixture of flour and water.": "What is a sourdough?",
    "The city walls were the pride of the whole town.": "What were the city walls?",
    "Marie Curie was a Polish and French physicist.": "Who was Marie Curie?",
    "HTTP (Hypertext Transfer Protocol) is a protocol of the web.": "What is HTTP?",
    "The old bridge was built in 1882 by the town.": "When was the old bridge built?",
    "The company was founded by Ada Lovelace and others.": "By whom was the company founded?",
    "In 1745, the town burnt down to its walls.": "What happened in 1745?",
    "Der Sauerteig ist ein Gemisch aus Mehl und Wasser und nicht süß.": "Was ist der Sauerteig?",
    "Albert Einstein war ein deutscher Physiker und nicht nur das.": "Wer war Albert Einstein?",
    "Die Brücke wurde im Jahr 1882 von der Stadt erbaut.": "Wann wurde die Brücke erbaut?",
    "Im Jahr 1745 brannte die Stadt bis auf die Mauern ab.": "Was geschah im Jahr 1745?",
    "素数是指只能被一和自身整除的自然数。": "素数是什么？",
    "牛顿是一位英国物理学家。": "牛顿是谁？",
    "大学成立于1867年，位于市中心。": "大学何时成立？",
    "1745年，城市被烧毁。": "1745年发生了什么？",
    "Paris est la capitale de la France et une ville sur la Seine.": "Qu’est-ce que « Paris » ?",
    "Madrid es la capital de España y una ciudad con los museos.": "¿Qué es «Madrid»?",
    "Москва — это столица России и город, который не спит.": "Что такое «Москва»?",
    "灯台とは、船のための塔である。": "灯台とは何ですか？",
}
UNASKED = [
    "It is a mixture of flour and water that ferments.",
    "This was the first bridge of the whole town.",
    "When the town burns, it is a bad day for the bakers.",
    "There is a bridge over the river in this town.",
    "Sie war die erste Brücke in der Stadt.",
    "In der Stadt ist eine Brücke, die nicht hält.",
    "这是一种面团。",
]


@pytest.mark.parametrize("sentence", ANSWERED)
def test_a_sentence_is_asked_for(sentence: str) -> None:
    """By a definition, a person, a date or a maker, in its own language."""
    assert ANSWERED[sentence] in questions_of(prose_of(sentence), count=5)


@pytest.mark.parametrize("sentence", UNASKED)
def test_a_sentence_that_fits_no_pattern_is_not(sentence: str) -> None:
    """Rather none than a wrong one."""
    assert questions_of(prose_of(sentence), count=5) == ()


@pytest.mark.parametrize(
    ("heading", "text", "question"),
    [
        ("How to bake bread", "Take the flour and knead it.", "How do I bake bread?"),
        ("3.1 What is a dough?", "It is flour and water.", "What is a dough?"),
        ("如何安装", "下载文件。", "如何安装？"),
        ("Ovens", "The oven is in the house of the baker.", "What is said about “Ovens”?"),
        ("Öfen", "Der Ofen ist in dem Haus von der Bäckerin.", "Was wird über „Öfen“ gesagt?"),
        ("Uunit", "Leipä paistuu.", "Uunit?"),
    ],
)
def test_a_heading_is_asked_for(heading: str, text: str, question: str) -> None:
    """In the language of the text; where that is not clear, by itself."""
    assert question in questions_of(prose_of(text), headings=("Bread", heading), count=3)


def test_a_heading_is_asked_of_its_document() -> None:
    """Where the document has a title."""
    prose = prose_of("The oven is in the house of the baker.")
    found = questions_of(prose, headings=("Ovens",), title="Baking", count=3)
    assert found == ("What does “Baking” say about “Ovens”?",)


def test_a_heading_that_any_document_has_is_not_asked_for() -> None:
    """Nobody asks for an introduction."""
    assert questions_of(prose_of("It is here."), headings=("1. Introduction",), count=3) == ()


@given(st.text(max_size=400), st.lists(st.text(max_size=60), max_size=3), st.integers(0, 6))
def test_whatever_the_text(text: str, headings: list[str], count: int) -> None:
    """Questions are few, different, short, on one line, and questions."""
    found = questions_of(prose_of(text), headings=headings, title="", count=count)
    assert len(found) == len(set(found)) <= count
    for question in found:
        assert question.endswith(("?", "？"))
        assert len(question) <= 200
        assert "\n" not in question
        question.encode()

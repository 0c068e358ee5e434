"""In which language a text is, and which words of a question are words of grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.fulltext import parse_query
from filestore.fulltext._languages import grammar_of, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat sat on the mat, and the dog was in the house.", "english"),
        ("Die Katze ist nicht auf dem Dach und der Hund wird müde.", "german"),
        ("Le chat est dans la maison avec le chien et les enfants.", "french"),
        ("El gato no está en la casa de los niños que juegan.", "spanish"),
        ("Кошка не была в доме, но он знал, что она на крыше.", "russian"),
        ("Купить молоко, хлеб", "russian"),
        ("Αγορά ψωμιού", "greek"),
        ("شراء الخبز والحليب", "arabic"),
        ("Kot nie jest w domu, ale pies tak, bo on go szuka.", "english"),
        ("connection pool timeout", "english"),
        ("数据库连接池", "english"),
        ("x = la[i] # de 1\n" + "\n".join(f"call_{n}(arg_{n})" for n in range(40)), "english"),
        ("", "english"),
    ],
)
def test_language_is_told_by_script_and_by_words_of_grammar(text, language):
    """Without either a text is taken as English, as is one of a language that has no stemmer."""
    assert language_of(text) == language


ENGLISH, GERMAN, FRENCH = ("english",), ("german", "english"), ("french", "english")
GRAMMAR = [
    ("how do I get rid of telemetry?", ENGLISH, "how do I of"),
    ("HOW DO I GET RID OF IT", ENGLISH, "HOW DO I OF IT"),
    ("What's the price", ENGLISH, "What s the"),
    ("what is IT", ENGLISH, "what is"),
    ("albums of The Who", ENGLISH, "of"),
    ("US tax law in May", ENGLISH, "in"),
    ("vitamin A and plan B", ENGLISH, "and"),
    ("A/B", ENGLISH, ""),
    ("a-zygomorphic the/xyzzy", ENGLISH, "a the"),
    ("to be or not to be", ENGLISH, ""),
    ("The Who", ENGLISH, ""),
    ("who am i", ENGLISH, ""),
    ("IT", ENGLISH, ""),
    ('"to be" the thing', ENGLISH, "the"),
    ('the "boiler pump"', ENGLISH, "the"),
    ("war and peace", ENGLISH, "and"),
    ("die hard", ENGLISH, ""),
    ("die hard", ("english", "german"), ""),
    ("die Katze", GERMAN, "die"),
    ("wie kann man das abschalten", ENGLISH, "wie kann man das"),
    ("man page", ENGLISH, ""),
    ("comment delete", ENGLISH, ""),
    ("combien coûte l'eau du robinet", FRENCH, "l du"),
    ("le cours de l\u2019or", FRENCH, "le de l"),
    ("как удалить файл", ENGLISH, "как"),
    ("फाइल को कैसे हटाना है", ENGLISH, "को कैसे है"),
]


@pytest.mark.parametrize(("query", "languages", "grammar"), GRAMMAR)
def test_words_of_grammar(query, languages, grammar):
    """Those of the language that most words speak; names, things, and what is alone are none."""
    assert grammar_of(parse_query(query), languages) == frozenset(grammar.split())


@given(st.text())
def test_any_query_keeps_a_word(text):
    """Whatever is typed, something is left to search for."""
    query = parse_query(text)
    grammar = grammar_of(query, ENGLISH)
    assert not query.wanted() or any(one.text not in grammar for one in query.wanted())


def test_a_few_foreign_words_among_code_tell_nothing():
    """Words of grammar are a share of any text; three in sixty are of no language."""
    code = " ".join(f"call_{n}(arg_{n})" for n in range(60))
    assert language_of(f"die von mit {code}", "") == ""
    assert language_of("die Pumpe von mir", "") == "german"

"""Which words of a query could be misspelt, and what is one or two edits from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.spelling import edits
from filestore.fulltext import parse_query
from filestore.fulltext._reader import (
    LONG_LETTERS,
    Respelling,
    best,
    misspelt,
    one_edit_away,
    prose_words,
    respelled,
    two_edits_away,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("recieve", ["recieve"]),
        ("Recieve,", ["Recieve"]),
        ("«recieve»", ["recieve"]),
        ("long-termn", ["long", "termn"]),
        ("größse", ["größse"]),
        ("договр", ["договр"]),
        ("the", []),
        ("recie5e", []),
        ("3.14", []),
        ("foo_bar", []),
        ("os.path", []),
        ("std::vector", []),
        ("--no-embedd", []),
        ("camelCase", []),
        ("NASAA", []),
        ("RECIEVE", ["RECIEVE"]),
        ("don't", []),
        ("検索する文書", []),
        ("", []),
        ("'\"", []),
    ],
)
def test_what_may_be_misspelt(text, words):
    """Prose of four letters or more; no code, number, abbreviation or script without spaces."""
    assert prose_words(text) == words


def unknown(query, *known):
    """The words of a query that may be misspelt where only some are known."""
    return misspelt(parse_query(query), lambda word: word.lower() in known)


def test_unknown_words_are_found_in_their_order():
    """Each once, those in quotes or required as strict, excluded ones and prefixes never."""
    assert unknown("pump recieve pump", "pump") == [("recieve", False)]
    assert unknown("recieve recieve") == [("recieve", False)]
    assert unknown('"recieve pump"', "pump") == [("recieve", True)]
    assert unknown("+recieve pump", "pump") == [("recieve", True)]
    assert unknown("pump -recieve", "pump") == []
    assert unknown("recieve*") == []


def test_a_question_in_another_language_has_no_mistakes():
    """Two unknown words are mistakes, most of a sentence is not."""
    assert len(unknown("recieve depositt")) == 2
    assert unknown("welche Kaution bekommt jeder Mieter zurück") == []
    known = ["when", "will", "the", "landlord", "pay", "back", "what", "the", "tenant"]
    mistakes = ["depositd", "recieve", "mony"]
    found = unknown(" ".join([*known, *mistakes]), *known)
    assert [word for word, _ in found] == mistakes


@given(st.text("abcé", min_size=4, max_size=9))
def test_one_edit_is_one_edit(word):
    """Nothing farther than one edit is looked up, and what is swapped is among it."""
    found = set(one_edit_away(word))
    assert all(edits(word, other) <= 1 for other in found)
    assert word[:1] + word[2] + word[1] + word[3:] in found
    assert word[:-1] in found


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("recieve", "receive"),
        ("comittee", "committee"),
        ("untill", "until"),
        ("wierd", "weird"),
        ("rchitecture", "architecture"),
        ("kease", "lease"),
        ("rcels", "arcels"),
        ("договр", "договор"),
        ("ερωτσηση", "ερωτηση"),
    ],
)
def test_a_common_mistake_is_one_edit_away(word, meant):
    """Also in scripts other than Latin, and in the first letter of all but the shortest words."""
    assert meant in set(one_edit_away(word))


def test_rhymes_of_a_short_word_are_none():
    """The first letter of a word of four stays, unless it was swapped with the second."""
    found = set(one_edit_away("wann"))
    assert not {"kann", "dann", "ann"} & found
    assert {"awnn", "wenn", "wan"} <= found


def test_two_edits():
    """Of terms with counts those that are two edits away, and the most frequent first."""
    terms = [("accommodation", 3), ("accomodation", 1), ("x", 9), ("accommodated", 5)]
    assert dict(two_edits_away("acomodation", terms)) == {"accommodation": 3}
    assert best([("b", 1), ("c", 7), ("a", 1), ("d4", 9), ("e", 0)]) == ("c", "a", "b")
    assert LONG_LETTERS == 8


def test_what_was_typed_strictly_stays():
    """A phrase or a required word is never answered with another word."""
    query = parse_query('"recieve it" depositt')
    found = [
        Respelling(word="recieve", similar=("receive",), strict=True),
        Respelling(word="depositt", similar=("deposit",), strict=False),
    ]
    made = respelled(query, found)
    assert made.respellings == (("depositt", ("deposit",)),)
    assert (made.clauses, made.typed, made.text()) == (query.clauses, query.typed, query.text())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"depositt"', [("depositt", True)]),
        ("\u201cdepositt\u201d", [("depositt", True)]),
        ('the "depositt" recieve', [("depositt", True), ("recieve", False)]),
        ("depositt", [("depositt", False)]),
    ],
)
def test_a_word_in_quotes_is_meant_as_it_is_typed(query, expected):
    """One word in quotes is no phrase, but nothing else stands for it either."""
    assert misspelt(parse_query(query), {"the"}.__contains__) == expected

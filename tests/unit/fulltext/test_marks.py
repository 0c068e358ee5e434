"""Where a query matches in a text: what the index would find, and nothing else."""

import pytest

from filestore.fulltext import Marker, parse_query
from filestore.fulltext._marks import STOP_WEIGHT

CASES = {
    ("letters stored", "Letters are stored; one letter."): ["Letters", "stored", "letter"],
    ("run", "runner running runs"): ["running", "runs"],
    ('"anchor holds" boat', "Anchors. An anchor holds the boats."): ["anchor holds", "boats"],
    ('"holds anchor" x', "The anchor holds."): ["anchor", "holds"],
    ("boat -anchor", "The boat, the anchor"): ["boat"],
    ("+boat", "Boats"): ["Boats"],
    ("main*", "The mainsail and the main"): ["mainsail", "main"],
    ("foo_bar", "foo_bar(foo)"): ["foo_bar"],
    ("foo_bar", "foo and the bar"): ["foo", "bar"],
    ("3.11", "3.12, 3 of 11, and 3.11"): ["3.11"],
    ("3.11", "3 of 11"): [],
    ("PROJ-12", "Proj 12"): ["Proj 12"],
    ("C#", "C and C#"): ["C#"],
    ("wifi e-mail", "Wi-Fi and email"): ["Wi-Fi", "email"],
    ("utf8 covid-19", "UTF-8, covid19"): ["UTF-8", "covid19"],
    ("\U0001f680", "a \U0001f680"): ["\U0001f680"],
    ("e3b0c44", "at e3b0c44298fc"): ["e3b0c44298fc"],
    ("e3" * 40, "at " + "E3" * 40): ["E3" * 40],
    ('"#rust" ore', "rust ore, #rust"): ["ore", "#rust"],
    ("case", "a camelCase word, a CaseBook"): ["Case", "Case"],
    ("camelCase", "the camel in case"): ["camel", "case"],
    ("東京", "東京は日本の首都、東の京"): ["東京"],
    ("猫", "白猫が好き"): ["猫"],
    ("入門", "Python入門"): ["入門"],
    ("python", "Python入門"): ["Python"],
    ("cafe", "caf\u00e9 cafe\u0301 CAFÉ"): ["caf\u00e9", "cafe\u0301", "CAFÉ"],
    ("fine", "\ufb01ne"): ["\ufb01ne"],
    ("елку", "про ёлку"): ["ёлку"],
    ("istanbul", "İstanbul"): ["İstanbul"],
    ("كتاب", "هٰذَا كِتَابٌ جَدِيدٌ"): ["كِتَابٌ"],
    ("οδοσ", "ἡ ὁδός"): ["ὁδός"],
    ("น้ำ", "น้ำท่วม ที่"): ["น้ำ"],
    ("ท่", "น้ำท่วม ที่"): ["ท่"],
    ("ท", "น้ำท่วม ที่"): ["ท", "ท"],
    ('"ไทย python" x', "ภาษาไทย Python ไทย"): ["ไทย Python"],
    ("हिन्दी", "यह हिन्दी है"): ["हिन्दी"],
    ("soft", "so\u00adft"): ["so\u00adft"],
    ("stone", "no\udcff stone"): ["stone"],
    ("Stadt", "Die Hauptstadt ist nicht die Stadt, und der Rat ist mit von des"): [
        "stadt",
        "Stadt",
    ],
    ("Haus", "Die Häuser der Stadt sind nicht für die von des mit"): ["Häuser"],
    ("zzz", "nothing here"): [],
    ("", "nothing here"): [],
    ("how do I get rid of it", "How do I do it? Get rid of it."): ["Get", "rid"],
    ("to be or not to be", "To be, or not."): ["To", "be", "or", "not"],
    ("what is IT", "IT is what it is"): ["IT", "it"],
    ("don't panic", "Don't; do not panic"): ["panic"],
    ("-anchor boat", ""): [],
    (f"aB{'C' * 80} boat", "The boat"): ["boat"],
    (f"{'x' * 80}Yard boat", "The boat in a yard"): ["boat", "yard"],
}


@pytest.mark.parametrize(("query", "text"), CASES)
def test_marks(query: str, text: str) -> None:
    """Words and stems, phrases, beginnings, parts of identifiers, pairs of characters, accents."""
    marks = Marker(parse_query(query)).marks(text)
    spans = dict.fromkeys((mark.start, mark.end) for mark in marks)
    assert [text[start:end] for start, end in spans] == CASES[query, text]


def test_how_rare_a_word_is_weighs_it() -> None:
    """Where the index says so; a phrase outweighs its words."""
    marker = Marker(parse_query('the boat "red sail"'), lambda texts: [0.1, 0.9, 0.5][: len(texts)])
    assert marker.weights == [0.1, 2.0]
    common = Marker(parse_query("boats sails"), lambda texts: [0.0, 0.9])
    assert common.weights == [STOP_WEIGHT, 0.9]
    assert Marker(parse_query("the boat")).weights == [1.0]


def test_a_word_is_marked_by_its_stem_in_any_language_of_the_index() -> None:
    """As it is found: the index does not know in which language a question is asked."""
    text = "There is the opportunity to veto it, and the chance of a few more."
    query = parse_query("opportunamente")
    assert Marker(query).marks(text) == []
    (mark,) = Marker(query, languages=("english", "italian")).marks(text)
    assert text[mark.start : mark.end] == "opportunity"

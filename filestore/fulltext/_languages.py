"""In which language a text or a question is, and which words of a question are words of grammar.

One rule: what is grammar in one language may be a thing in another ("die", "war", "or"), so words
are judged together, by the language that most of them speak.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

from filestore.fulltext._analysis import DEFAULT_LANGUAGE, LANGUAGES, WORD, clean
from filestore.fulltext._query import ParsedQuery

_SAMPLE_CHARACTERS: Final = 800
_SURE: Final = 3.0
"""So many different words of grammar tell in which language a text is."""
_CLEAR: Final = 2.0
"""So many do where no other language has nearly as many."""
_SHARE: Final = 0.12
"""The least share of a text's different words that are words of grammar; code has a few of any."""
_JOINING: Final = {"finnish": 0.04, "hungarian": 0.04, "turkish": 0.04}
"""Languages that join them to words have fewer."""
_SCRIPTS: Final = {
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "russian": re.compile("[\u0400-\u052f]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    DEFAULT_LANGUAGE: re.compile("[\u0590-\u05ff\u0900-\u1eff\u3040-\ud7af]"),
}
"""Of scripts without a stemmer none is spoilt by the English one."""
_OWN_SCRIPT: Final = frozenset(
    {"arabic", "greek", "hebrew", "hindi", "persian", "russian", "ukrainian"}
)
# In UTF-8 Greek, Cyrillic and Arabic begin with other bytes than Latin and typographic signs.
_OTHER_BYTES: Final = bytes(code for code in range(256) if code < 0xCD or code in (0xE1, 0xE2))
_LATIN: Final = re.compile("[a-zA-Z\u00c0-\u024f]")
_PIECES: Final = re.compile(rf"{WORD.pattern}(?:['\u2019]{WORD.pattern})*+")


@cache
def _languages_by_word() -> dict[str, tuple[tuple[str, ...], float]]:
    from filestore.fulltext._function_words import ALSO_THINGS, WORDS

    things = frozenset(ALSO_THINGS.split())
    found: dict[str, list[str]] = {}
    for language, words in WORDS.items():
        for word in clean(words).split():
            found.setdefault(word, []).append(language)
    return {
        word: (tuple(languages), 0.5 if word in things else 1.0)
        for word, languages in found.items()
    }


def _votes(words: set[str]) -> dict[str, float]:
    """How much some words speak for each language."""
    known = _languages_by_word()
    votes: dict[str, float] = defaultdict(float)
    for word in known.keys() & words:
        languages, weight = known[word]
        for language in languages:
            votes[language] += weight
    return votes


def language_of(text: str, otherwise: str = DEFAULT_LANGUAGE) -> str:
    """The language of a text: that of its script, or else of its words of grammar.

    Args:
        text: As `clean` returned it; its beginning decides.
        otherwise: What to return where that is not clear.

    Returns:
        One of `LANGUAGES`, the name of a Snowball stemmer; English for a language without one.
    """
    sample = text[:_SAMPLE_CHARACTERS]
    if sample.count(" the ") >= _SURE:
        return DEFAULT_LANGUAGE
    if not sample.isascii() and sample.encode("utf-8", "replace").translate(None, _OTHER_BYTES):
        latin = len(_LATIN.findall(sample))
        for language, letters in _SCRIPTS.items():
            if len(letters.findall(sample)) > latin:
                return language
    words = set(sample.lower().split())
    votes = _votes(words)
    if not votes:
        return otherwise
    best = max(votes, key=lambda one: (votes[one], one == DEFAULT_LANGUAGE, one))
    others = max((count for one, count in votes.items() if one != best), default=0.0)
    least = _CLEAR if votes[best] - others >= 1.0 else _SURE
    if votes[best] < max(least, len(words) * _JOINING.get(best, _SHARE)):
        return otherwise
    return best if best in LANGUAGES else DEFAULT_LANGUAGE


def main_of(languages: Mapping[str, int]) -> str:
    """The language of most texts, the first by name of several; English where there is none."""
    return min(languages, key=lambda one: (-languages[one], one), default=DEFAULT_LANGUAGE)


def without(grammar: frozenset[str], text: str) -> str:
    """A text without some words."""
    if not grammar:
        return text
    return WORD.sub(lambda word: "" if word[0] in grammar else word[0], text)


def grammar_of(query: ParsedQuery, languages: Sequence[str]) -> frozenset[str]:
    """The words of grammar among the plain words of a query, as the index reads them and as typed.

    Args:
        query: As `parse_query` gave it.
        languages: Those of the texts, the most frequent first.

    Returns:
        None of them where there is nothing else: who types "to be or not to be" wants just that.
    """
    plain = tuple(clause.text for clause in query.clauses if clause.is_plain_word)
    wanted = len(query.wanted())
    if wanted < 2 and all(map(str.isalnum, plain)):
        return frozenset()
    found, is_all = grammar_in(plain, tuple(languages) or (DEFAULT_LANGUAGE,))
    return frozenset() if is_all and len(plain) == wanted else found


@lru_cache(64)
def grammar_in(texts: tuple[str, ...], languages: tuple[str, ...]) -> tuple[frozenset[str], bool]:
    """Which words of some texts are words of grammar, and whether all are."""
    words = [_PIECES.findall(clean(text)) for text in texts]
    pieces = [piece for found in words for piece in found]
    is_shouted = not any(piece[0].islower() for piece in pieces)
    forms: dict[str, dict[str, str]] = {}
    for found in words:
        for piece in found:
            is_plain = is_shouted or (not forms and not piece[1:].isupper())
            # Of A/B neither is an article.
            if len(found) > 1 and len(piece) == 1 and piece.isupper():
                forms[piece] = {}
            forms.setdefault(piece, dict(_forms(piece, is_plain=is_plain)))
    votes = _votes({form for found in forms.values() for form in found.values()})
    language = max(
        votes, key=lambda one: (votes[one], -_place(one, languages), one), default=DEFAULT_LANGUAGE
    )
    is_told = language in languages or language in _OWN_SCRIPT
    if votes[language] < (0.5 if language == languages[0] else 1.0 if is_told else 2.0):
        return frozenset(), False
    known = _languages_by_word()
    grammar = {
        part
        for found in forms.values()
        for part, form in found.items()
        if language in known.get(form, ((),))[0]
    }
    parts = {part for piece in pieces for part in WORD.findall(piece)}
    return frozenset(grammar), all(words) and grammar.issuperset(parts)


def _place(language: str, languages: Sequence[str]) -> int:
    return languages.index(language) if language in languages else len(languages)


def _forms(piece: str, *, is_plain: bool) -> Iterator[tuple[str, str]]:
    """The parts of a word as they are typed, each with the word of a list that it may be.

    Args:
        piece: Letters, or some joined by apostrophes.
        is_plain: Whether a capital says nothing: it begins a sentence. Else one is of a name, as in
            IT, WHO, The Who.
    """
    known = _languages_by_word()
    parts = piece.replace("\u2019", "'").split("'")
    whole = "'".join(parts)
    if is_plain and whole not in known:
        whole = whole.lower()
    if whole in known:
        yield from ((part, whole) for part in parts)
    elif len(parts) == 2:
        first, second = whole.split("'")
        yield parts[0], f"{first}'" if f"{first}'" in known else first
        yield parts[1], f"'{second}" if f"'{second}" in known else second

"""Words of a query that no document has, and the words that may have been meant.

What is looked up is the index's own vocabulary, so nothing else is needed and nothing is sent
anywhere. Pure. One rule: in doubt a word is as it was meant: code, names of code, numbers, short
words, abbreviations, and scripts whose words are not separated, are not respelled.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.spelling import edits
from filestore.fulltext._analysis import clean, has_spaceless
from filestore.fulltext._identifiers import camel_words_of, identifiers_of
from filestore.fulltext._query import MAX_CLAUSES, QUOTES, Clause, Kind, Need, ParsedQuery

_QUOTED: Final = re.compile(r'"([^"\s]+)"')
MIN_LETTERS: Final = 4
LONG_LETTERS: Final = 8
"""A word of so many letters may have two mistakes, a shorter one has one: of those that are spelt
as they should be, and are in no document, more than half are two edits from another word."""
MOST_OFFERED: Final = 3
_ABBREVIATION_LETTERS: Final = 5
"""Up to so many capitals are an abbreviation."""
_FEW: Final = 2
"""So many words may be unknown in any query; of a longer one a third: who asks in a language that
the store does not have makes no mistakes."""


class Respelling(Struct, frozen=True, kw_only=True):
    """A word that no document has, with the nearest that some have, the most frequent first."""

    word: str
    """As it was typed."""
    meant: tuple[str, ...]
    strict: bool
    """Whether it was typed so that nothing else may stand for it: in quotes, or required."""


def prose_words(text: str) -> list[str]:
    """The words of a text that could be misspelt, as typed."""
    if identifiers_of(clean(text)):
        return []
    found = []
    for part in clean(text).replace("\u2019", "'").split():
        for piece in part.split("-"):
            places = [place for place, sign in enumerate(piece) if sign.isalnum()]
            word = piece[places[0] : places[-1] + 1] if places else ""
            is_short = len(word) < MIN_LETTERS
            is_abbreviation = word.isupper() and len(word) <= _ABBREVIATION_LETTERS
            if is_short or is_abbreviation or not word.isalpha() or has_spaceless(word):
                continue
            if not camel_words_of(word):
                found.append(word)
    return found


def misspelt(query: ParsedQuery, is_known: Callable[[str], bool]) -> list[tuple[str, bool]]:
    """The words of a query that may be misspelt, and whether they were typed strictly.

    Args:
        query: As `parse_query` gave it.
        is_known: Whether some document has a word.
    """
    if len(query.clauses) >= MAX_CLAUSES:
        return []  # a text that was pasted
    unknown: dict[str, bool] = {}
    loose = total = 0
    quoted = set(_QUOTED.findall(query.typed.translate(QUOTES)))
    for clause in query.wanted():
        if clause.kind is Kind.PREFIX:
            continue
        is_strict = clause.kind is Kind.PHRASE or clause.need is Need.REQUIRED
        for word in prose_words(clause.text):
            # One word in quotes is no phrase, and still meant as it is typed.
            strict = is_strict or word in quoted
            total += not strict
            if word not in unknown and not is_known(word):
                unknown[word] = strict
                loose += not strict
    is_another_language = loose > max(_FEW, total // 3)
    return [] if is_another_language else list(unknown.items())


def one_edit_away(word: str) -> Iterator[str]:
    """Every text that is one edit from a word in small letters, with letters of its script.

    The first letter of a word of four stays, or is swapped with the second: all that rhymes is one
    edit away.
    """
    first = 0 if len(word) > MIN_LETTERS else 1
    for place in range(len(word) - 1):
        yield word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    for place in range(first, len(word)):
        yield word[:place] + word[place + 1 :]
    for letter in _letters(frozenset(word)):
        for place in range(first, len(word)):
            yield word[:place] + letter + word[place + 1 :]
            yield word[:place] + letter + word[place:]
        yield word + letter


@cache
def _letters(found: frozenset[str]) -> str:
    """The small letters of the scripts that some letters are of; of Latin those without accents."""
    if all(map(str.isascii, found)):
        return "abcdefghijklmnopqrstuvwxyz"
    blocks = {ord(letter) >> 8 for letter in found if not letter.isascii()}
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in found}
    return "".join(
        letter
        for block in sorted(blocks)
        for letter in map(chr, range(block << 8, (block + 1) << 8))
        if letter.isalpha()
        and letter == letter.lower()
        and unicodedata.name(letter, "?").split()[0] in scripts
    )


def two_edits_away(word: str, terms: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Those of some terms, with their counts, that are two edits from a word."""
    letters, length = set(word), len(word)
    for term, count in terms:
        # An edit takes one letter away and brings one; most terms need no more than this look.
        is_near = abs(len(term) - length) <= 2 and len(letters.symmetric_difference(term)) <= 4
        if is_near and term.isalpha() and edits(word, term) == 2:
            yield term, count


def best(found: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """The most frequent of some terms, ties by letter."""
    ordered = sorted(found, key=lambda pair: (-pair[1], pair[0]))
    return tuple(dict.fromkeys(term for term, _ in ordered if term.isalpha()))[:MOST_OFFERED]


def corrected(query: ParsedQuery, found: Iterable[Respelling]) -> ParsedQuery | None:
    """A query with other words in the place of misspelt ones; None where none may be replaced."""
    loose = {one.word: one.meant for one in found if not one.strict}
    if not loose:
        return None
    clauses: list[Clause] = []
    for clause in query.clauses:
        meant = [(word, near) for word, near in loose.items() if word in clause.text]
        word, near = meant[0] if clause.is_plain_word and meant else ("", ("",))
        texts = (clause.text.replace(word, one) if word else clause.text for one in near)
        clauses += (replace(clause, text=text) for text in texts)
    typed = query.typed
    for word, near in loose.items():
        typed = typed.replace(word, " or ".join(near))
    is_other = tuple(clauses) != query.clauses
    return replace(query, clauses=tuple(clauses), typed=typed) if is_other else None


def respelled(query: ParsedQuery, found: Iterable[Respelling]) -> ParsedQuery:
    """A query whose hits are ordered by some more words, too; what is strict stays as it is."""
    loose = tuple((one.word, one.meant) for one in found if not one.strict)
    return replace(query, meant=loose)

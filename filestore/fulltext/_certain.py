"""Which signs of a query cannot be meant otherwise than as operators.

The same signs are operators to one person, and to another a flag (``git -C``), a number (``-1``), a
list, a quotation, a line of code. A sign that is taken for an operator by mistake hides what was
asked for; one that is not only ranks it lower. So one rule: in doubt it is a word. Pure.
"""

import re
from typing import Final

from filestore.fulltext._analysis import clean, space_pairs
from filestore.fulltext._clauses import (
    NEED_OF_SIGN,
    Clause,
    Item,
    Kind,
    Need,
    has_word,
    word_clause,
)

MAX_WORDS: Final = 6
"""Who types more writes a sentence, or pastes a line."""
MIN_LETTERS: Final = 3
"""Of a word after a sign; shorter ones are flags and variables. Other alphabets have no flags."""

_PHRASE: Final = re.compile(r'(?<!\S)([+-]?)"(?=\S)([^"]*\S)"(?!\w)')
_TOKEN: Final = re.compile(rf"{_PHRASE.pattern}|(\S+)")
_SIGNED: Final = re.compile(r"([+-])([^\W\d_]+)")
_PREFIX: Final = re.compile(r"\w+\*")
_CODE: Final = re.compile(r"[=(){}\[\]|;$<>`\\^~\n]")
_FILE: Final = re.compile(r"\w\.[A-Za-z]\w{0,4}")
"""What commands are given: main.c, app.jar."""
_SENTENCE_END: Final = re.compile(r"[?？؟](?!\S)|[.!…。！]\s*$")
Token = tuple[str, str, str]
"""Sign and phrase, or a word."""
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})
_ASKING: Final = re.compile(
    "how|what|when|where|which|who|whom|whose|why|do|does|did|is|are|can|could|should|would"
    "|wie|wann|wo|wer|was|warum|wieso|weshalb|welche[rs]?|kann|ist|sind"
    "|comment|pourquoi|quand|quelle?|où|cómo|qué|cuál|cuándo|dónde|quién",
    re.IGNORECASE,
)
_JOINING: Final = ("und", "oder", "sowie", "bzw.", "and", "or", "en", "of", "och", "eller", "og")
"""After these a hyphen stands for a part left out: Stadtplanung und -entwicklung."""


def certain_items(text: str) -> list[Item]:
    """The clauses of a query and the operators between them, as far as they are certain.

    Args:
        text: The query, all its quotation marks being straight.
    """
    tokens: list[Token] = _TOKEN.findall(text)
    if not tokens or _is_running_text(_PHRASE.sub(" ", text)):
        return []
    words = [word for _, _, word in tokens if word]
    has_flags = any(_is_flag(word) or _FILE.search(word) for word in words)
    end = _end_of_wanted(tokens)
    is_shouted = any(len(word) > 1 and word.isupper() for word in words if word not in _OPERATORS)
    items: list[Item] = []
    for place, (sign, phrase, word) in enumerate(tokens):
        after_operator = bool(items) and isinstance(items[-1], str)
        if phrase:
            items += _phrase(sign, phrase)
        elif word in _OPERATORS and not is_shouted and (word != "NOT" or after_operator):
            # NOT alone may only be emphasis; after AND or OR it excludes.
            items.append(word)
        elif _SIGNED.fullmatch(word) and not has_flags and (place >= end or word[0] == "+"):
            items.append(word_clause(word[1:], NEED_OF_SIGN[word[0]]))
        elif has_word(word):
            is_prefix = _PREFIX.fullmatch(word)
            word_or_quoted = Clause(kind=Kind.WORD, need=Need.OPTIONAL, text=word.strip('"'))
            items.append(word_clause(word) if is_prefix else word_or_quoted)
    return items


def _is_running_text(rest: str) -> bool:
    """Whether what stands outside of phrases is a question, a sentence, or code."""
    words = rest.split()
    if len(words) > MAX_WORDS or (words and _ASKING.fullmatch(words[0])):
        return True
    if any(not has_word(word) for word in words):
        return True
    return _CODE.search(rest) is not None or _SENTENCE_END.search(rest) is not None


def _is_flag(word: str) -> bool:
    """Whether a word has a sign in front, and yet excludes or requires nothing."""
    if word[0] not in NEED_OF_SIGN or len(word) == 1:
        return False
    signed = _SIGNED.fullmatch(word)
    return signed is None or (signed[2].isascii() and len(signed[2]) < MIN_LETTERS)


def _end_of_wanted(tokens: list[Token]) -> int:
    """Where a query has said what it wants, and a minus says what it does not.

    That is the end: a flag has its argument behind it (``find -name notes``).
    """
    place = len(tokens)
    while place and (tokens[place - 1][0] or _SIGNED.fullmatch(tokens[place - 1][2])):
        place -= 1
    if place == 0:
        return 1 if "".join(tokens[0]).startswith("+") else len(tokens)
    return len(tokens) if tokens[place - 1][2].lower() in _JOINING else place


def _phrase(sign: str, phrase: str) -> list[Item]:
    """A phrase; quotation marks around one word only set it off, unless a sign says more."""
    if not has_word(phrase):
        return []
    if sign or len(space_pairs(clean(phrase)).split()) > 1:
        need = NEED_OF_SIGN.get(sign, Need.EXPECTED)
        return [Clause(kind=Kind.PHRASE, need=need, text=phrase)]
    return [Clause(kind=Kind.WORD, need=Need.OPTIONAL, text=phrase)]

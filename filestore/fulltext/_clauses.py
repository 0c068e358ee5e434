"""What a query asks for, clause by clause, as values. Pure."""

from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct

MIN_PREFIX_CHARACTERS: Final = 2


class Kind(Enum):
    """What a clause asks for."""

    WORD = "word"
    PHRASE = "phrase"
    PREFIX = "prefix"


class Need(Enum):
    """How much a clause matters."""

    OPTIONAL = "optional"
    EXPECTED = "expected"
    """Required, unless nothing at all would be found then: a phrase without an operator."""
    REQUIRED = "required"
    EXCLUDED = "excluded"


NEED_OF_SIGN: Final = {"+": Need.REQUIRED, "-": Need.EXCLUDED}
_FORMS: Final = {Kind.WORD: "{}", Kind.PHRASE: '"{}"', Kind.PREFIX: "{}*"}


class Clause(Struct, frozen=True, kw_only=True):
    """One thing a query asks for."""

    kind: Kind
    need: Need
    text: str
    """As typed, without the operators around it; has at least one letter or digit."""

    @property
    def is_plain_word(self) -> bool:
        """Whether it is a word without an operator."""
        return self.kind is Kind.WORD and self.need is Need.OPTIONAL

    def written(self) -> str:
        """As one would type it: phrases in quotes, prefixes with their star."""
        return _FORMS[self.kind].format(self.text)


Item: TypeAlias = Clause | str
"""A clause, or what may be an operator between two: AND, OR, NOT."""


def has_word(text: str) -> bool:
    """Whether there is anything to look for in a text."""
    return any(map(str.isalnum, text))


def word_clause(text: str, need: Need = Need.OPTIONAL) -> Clause:
    """A word, or, with a star at its end, everything that begins so."""
    stem = text[:-1]
    letters = sum(map(str.isalnum, stem))
    if text.endswith("*") and stem[-1].isalnum() and letters >= MIN_PREFIX_CHARACTERS:
        return Clause(kind=Kind.PREFIX, need=need, text=stem)
    return Clause(kind=Kind.WORD, need=need, text=text)

"""The query language: words, "phrases", prefix*, +required, -excluded, AND, OR and NOT.

Pure, and without a notion of error: whatever cannot be an operator is a word or nothing. What words
are made of is the business of the analysis.

The same signs are operators to one person, and to another a flag (``git -C``), a number (``-1``), a
list, a quotation, a line of code. A sign that is taken for an operator by mistake hides what was
asked for; one that is not only ranks it lower. So where the syntax is ``auto``, one rule: in doubt
it is a word.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.schema import JsonObject
from filestore.fulltext._analysis import PART, clean, emoji_of, is_name, space_pairs, wholes_of

MAX_QUERY_CHARACTERS: Final = 100_000
"""Of a longer text the beginning and the end are read: a log ends with what went wrong."""
MAX_CLAUSES: Final = 256
"""How many words are searched for, the ones that tell the most; as many can be marked in a text."""
QUOTES: Final = str.maketrans(
    dict.fromkeys("“”„‟«»＂", '"') | dict.fromkeys("「『", ' "') | dict.fromkeys("」』", '" ')
)
_TOKEN: Final = re.compile(r'([+-]?)"([^"]*)"|([^\s"]+)')

Syntax = Literal["auto", "plain", "operators"]
SYNTAXES: Final[tuple[Syntax, ...]] = ("auto", "plain", "operators")
"""Operators where they cannot be anything else, none at all, or all that can be operators."""

MIN_PREFIX_CHARACTERS: Final = 2
MAX_WORDS: Final = 6
"""Who types more writes a sentence, or pastes a line."""
MIN_LETTERS: Final = 3
"""Of a word after a sign; shorter ones are flags and variables. Other alphabets have no flags."""
_PHRASE: Final = re.compile(r'(?<!\S)([+-]?)"(?=\S)([^"]*\S)"(?!\w)')
_CERTAIN: Final = re.compile(rf"{_PHRASE.pattern}|(\S+)")
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
"""After these a hyphen represents a part left out: Stadtplanung und -entwicklung."""


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


BINDING: Final = (Need.EXPECTED, Need.REQUIRED)
"""What a clause needs without which there is no hit."""
NEED_OF_SIGN: Final = {"+": Need.REQUIRED, "-": Need.EXCLUDED}
_FORMS: Final = {Kind.WORD: "{}", Kind.PHRASE: '"{}"', Kind.PREFIX: "{}*"}


class Clause(Struct, frozen=True, kw_only=True):
    """One thing a query asks for."""

    kind: Kind
    need: Need
    text: str
    """As typed, without the operators around it; has at least one letter, digit or emoji."""

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
    """Whether there is anything to look for in a text: a letter, a digit, or an emoji."""
    return any(map(str.isalnum, text)) or (not text.isascii() and bool(emoji_of(text)))


def word_clause(text: str, need: Need = Need.OPTIONAL) -> Clause:
    """A word, or, with a star at its end, everything that begins so."""
    stem = text[:-1]
    letters = sum(map(str.isalnum, stem))
    if text.endswith("*") and stem[-1].isalnum() and letters >= MIN_PREFIX_CHARACTERS:
        return Clause(kind=Kind.PREFIX, need=need, text=stem)
    return Clause(kind=Kind.WORD, need=need, text=text)


class Understood(JsonObject, Struct, frozen=True, kw_only=True):
    """What a query was taken to ask for, clause by clause, for a person to see."""

    words: tuple[str, ...] = ()
    """Any may occur."""
    phrases: tuple[str, ...] = ()
    """Words that are together."""
    prefixes: tuple[str, ...] = ()
    """Beginnings of words."""
    required: tuple[str, ...] = ()
    """In every hit; words, phrases in quotes, prefixes with their star."""
    excluded: tuple[str, ...] = ()
    """In no hit; written as `required`."""
    text: str = ""
    """What models read: the query as typed, or, where something is excluded, the rest of it."""


class ParsedQuery(Struct, frozen=True, kw_only=True):
    """A parsed query; without a clause that is not excluded it has no hits."""

    clauses: tuple[Clause, ...] = ()
    typed: str = ""
    respellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Words that no document has, each with similar ones that some have; they count for less."""
    left_out: int = 0
    """How many different words are not searched for, because there are too many."""

    def wanted(self) -> tuple[Clause, ...]:
        """The clauses a hit can match."""
        return tuple(clause for clause in self.clauses if clause.need is not Need.EXCLUDED)

    def of_need(self, *needs: Need) -> tuple[Clause, ...]:
        """The clauses that matter so much."""
        return tuple(clause for clause in self.clauses if clause.need in needs)

    @property
    def is_named(self) -> bool:
        """Whether nothing but identifiers is asked for, which have no meaning but their name."""
        wanted = self.wanted()
        return bool(wanted) and all(
            one.is_plain_word and is_name(clean(one.text)) for one in wanted
        )

    def text(self) -> str:
        """What is asked for, without what is excluded; as typed where nothing is."""
        wanted = self.wanted()
        if len(wanted) == len(self.clauses) and wanted:
            return self.typed
        return " ".join(clause.text for clause in wanted)

    def understood(self) -> Understood:
        """What this asks for, for a person."""
        free = [clause for clause in self.clauses if clause.need in (Need.OPTIONAL, Need.EXPECTED)]
        return Understood(
            words=tuple(clause.text for clause in free if clause.kind is Kind.WORD),
            phrases=tuple(clause.text for clause in free if clause.kind is Kind.PHRASE),
            prefixes=tuple(clause.text for clause in free if clause.kind is Kind.PREFIX),
            required=tuple(clause.written() for clause in self.of_need(Need.REQUIRED)),
            excluded=tuple(clause.written() for clause in self.of_need(Need.EXCLUDED)),
            text=self.text(),
        )


def parse_query(query: str, syntax: Syntax = "auto") -> ParsedQuery:
    """Parse any text at all into a query.

    Args:
        query: What the user typed. What is in the middle of more than `MAX_QUERY_CHARACTERS` is
            left out; `most_telling` chooses among more than `MAX_CLAUSES` words.
        syntax: ``operators`` takes every sign for an operator that can be one, ``plain`` none,
            ``auto`` the ones that cannot be anything else.

    Returns:
        The clauses in the order typed; none where only signs were typed. Of more than
        `MAX_CLAUSES` each comes once.
    """
    half = MAX_QUERY_CHARACTERS // 2
    text = query if len(query) <= 2 * half else f"{query[:half]} {query[-half:]}"
    text = text.translate(QUOTES)
    if syntax == "operators":
        # The clauses and the operators between them, whatever can be one being one.
        items: list[Item] = []
        for sign, phrase, word in _TOKEN.findall(text):
            if word in _OPERATORS:
                items.append(word)
            elif has_word(phrase or word):
                items.append(_clause(sign, phrase, word))
        return _query(_apply_operators(items), query)
    if syntax == "auto":
        found = _query(_apply_operators(certain_items(text)), query)
        # Who only excludes asks for nothing: the signs belong to the words.
        if found.wanted():
            return found
    words = (word.strip('"') for word in text.split())
    kept = (word for word in words if has_word(word))
    return _query([Clause(kind=Kind.WORD, need=Need.OPTIONAL, text=word) for word in kept], query)


def _query(clauses: Sequence[Clause], typed: str) -> ParsedQuery:
    """A query in which no clause beyond `MAX_CLAUSES` comes twice, nor is more than a word."""
    if len(clauses) > MAX_CLAUSES:
        others = [clause for clause in clauses if not clause.is_plain_word][:MAX_CLAUSES]
        words = (clause for clause in clauses if clause.is_plain_word)
        clauses = list(dict.fromkeys((*others, *words)))
    return ParsedQuery(clauses=tuple(clauses), typed=typed)


def most_telling(
    query: ParsedQuery, rarity: Callable[[Sequence[str]], Sequence[float]]
) -> ParsedQuery:
    """The query with `MAX_CLAUSES` clauses at most: its words are those of the fewest texts.

    Args:
        query: As `parse_query` gave it.
        rarity: Of words, as `Reader.rarity` gives it: 1 for the ones that no text has.
    """
    words = [clause for clause in query.clauses if clause.is_plain_word]
    most = MAX_CLAUSES - (len(query.clauses) - len(words))
    if len(words) <= most:
        return query
    parts = {word: PART.findall(word.text) for word in words}
    distinct = list(dict.fromkeys(part for some in parts.values() for part in some))
    rarities = zip(distinct, rarity(distinct), strict=True)
    tells = {part: rare if rare < 1 else 0.0 for part, rare in rarities}
    worth = {word: max((tells[part] for part in parts[word]), default=0) for word in words}
    left_out = set(sorted(words, key=worth.__getitem__)[: len(words) - most])
    clauses = tuple(clause for clause in query.clauses if clause not in left_out)
    return replace(query, clauses=clauses, left_out=len(left_out))


def _clause(sign: str, phrase: str, word: str) -> Clause:
    if phrase:
        need = NEED_OF_SIGN.get(sign, Need.EXPECTED)
        return Clause(kind=Kind.PHRASE, need=need, text=phrase.strip())
    # Two signs (``--option``) are part of the word.
    if word[0] in NEED_OF_SIGN and (word[1].isalnum() or word[1] == "_"):
        return word_clause(word[1:], NEED_OF_SIGN[word[0]])
    return word_clause(word)


def relax(query: ParsedQuery) -> ParsedQuery | None:
    """The query with expected phrases as mere words, None where that leaves it as it is.

    A query of nothing but phrases is not relaxed: who asks for a phrase alone wants just that.
    """
    kinds = {clause.kind for clause in query.wanted()}
    if kinds == {Kind.PHRASE} or not query.of_need(Need.EXPECTED):
        return None
    clauses = tuple(
        Clause(kind=Kind.WORD, need=Need.OPTIONAL, text=clause.text)
        if clause.need is Need.EXPECTED
        else clause
        for clause in query.clauses
    )
    return replace(query, clauses=clauses)


def _apply_operators(items: list[Item]) -> tuple[Clause, ...]:
    """Give the neighbours of each operator their need; an operator elsewhere is a word."""
    clauses: list[Clause] = []
    pending: list[str] = []
    for position, item in enumerate(items):
        if isinstance(item, str):
            # An operator is between two clauses; "AND NOT" is one operator.
            following = items[position + 1] if position + 1 < len(items) else "OR"
            if following == "NOT" and items[position] != "NOT":
                following = items[position + 2] if position + 2 < len(items) else "OR"
            if clauses and isinstance(following, Clause):
                pending.append(item)
                continue
            item = Clause(kind=Kind.WORD, need=Need.OPTIONAL, text=item)
        if pending:
            # "a AND NOT b" requires a and excludes b.
            if pending[0] != "NOT":
                need = Need.REQUIRED if pending[0] == "AND" else Need.OPTIONAL
                clauses[-1] = _with_need(clauses[-1], need)
            needs = {"AND": Need.REQUIRED, "OR": Need.OPTIONAL, "NOT": Need.EXCLUDED}
            item = _with_need(item, needs[pending[-1]])
            pending = []
        clauses.append(item)
    return tuple(clauses)


def _with_need(clause: Clause, need: Need) -> Clause:
    """The clause with another need; what the user excluded stays excluded."""
    if clause.need is Need.EXCLUDED:
        return clause
    return Clause(kind=clause.kind, need=need, text=clause.text)


def certain_items(text: str) -> list[Item]:
    """The clauses of a query and the operators between them, as far as they are certain.

    Args:
        text: The query, all its quotation marks being straight.
    """
    tokens: list[Token] = _CERTAIN.findall(text)
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
    """Whether what is outside of phrases is a question, a sentence, or code."""
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
    """Where a query has named what it wants, and a minus says what it does not.

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
    text = space_pairs(clean(phrase))
    if sign or len(PART.findall(text)) > 1 or wholes_of(text):
        need = NEED_OF_SIGN.get(sign, Need.EXPECTED)
        return [Clause(kind=Kind.PHRASE, need=need, text=phrase)]
    return [Clause(kind=Kind.WORD, need=Need.OPTIONAL, text=phrase)]

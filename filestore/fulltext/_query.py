"""The query language: words, "phrases", prefix*, +required, -excluded, AND, OR and NOT.

Pure, and without a notion of error: whatever cannot be an operator is a word or nothing. What words
are made of is the business of the analysis, not of this module.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

MAX_QUERY_CHARACTERS: Final = 20_000
"""A pasted page is a fair query; what follows it adds time and no meaning."""
MAX_CLAUSES: Final = 512
MIN_PREFIX_CHARACTERS: Final = 2
_QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟«»＂", '"'))
_TOKEN: Final = re.compile(r'([+-]?)"([^"]*)"|([^\s"]+)')


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One thing a query asks for."""

    kind: Kind
    need: Need
    text: str
    """As typed, without the operators around it; has at least one letter or digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parsed query; without a clause that is not excluded it has no hits."""

    clauses: tuple[Clause, ...] = ()

    def wanted(self) -> tuple[Clause, ...]:
        """The clauses a hit can match."""
        return tuple(clause for clause in self.clauses if clause.need is not Need.EXCLUDED)


def parse_query(query: str) -> Query:
    """Parse any text at all into a query.

    Args:
        query: What the user typed. Beyond `MAX_QUERY_CHARACTERS` it is cut, and beyond
            `MAX_CLAUSES` clauses the rest is left out.

    Returns:
        The clauses in the order typed; none where no letter or digit was typed.
    """
    tokens = _TOKEN.findall(query[:MAX_QUERY_CHARACTERS].translate(_QUOTES))
    items: list[Clause | str] = []
    for sign, phrase, word in tokens[: 2 * MAX_CLAUSES]:
        if word in _OPERATORS:
            items.append(word)
        elif (clause := _clause(sign, phrase, word)) is not None:
            items.append(clause)
    return Query(clauses=_apply_operators(items)[:MAX_CLAUSES])


def wanted_text(query: str) -> str:
    """What a query asks for, without what it excludes; as typed where it excludes nothing."""
    parsed = parse_query(query)
    wanted = parsed.wanted()
    if len(wanted) == len(parsed.clauses) and wanted:
        return query
    return " ".join(clause.text for clause in wanted)


def bounding_queries(query: str) -> tuple[list[str], list[str]]:
    """The required and the excluded clauses of a query, each as a query of its own."""
    clauses = parse_query(query).clauses
    required = [_alone(clause) for clause in clauses if clause.need is Need.REQUIRED]
    return required, [_alone(clause) for clause in clauses if clause.need is Need.EXCLUDED]


def _alone(clause: Clause) -> str:
    forms = {Kind.WORD: "{}", Kind.PHRASE: '"{}"', Kind.PREFIX: "{}*"}
    return forms[clause.kind].format(clause.text)


_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})
_NEED_OF_SIGN: Final = {"+": Need.REQUIRED, "-": Need.EXCLUDED}


def relax(query: Query) -> Query | None:
    """The query with expected phrases as mere words, None where that leaves it as it is.

    A query of nothing but phrases is not relaxed: who asks for a phrase alone wants just that.
    """
    kinds = {clause.kind for clause in query.wanted()}
    if kinds == {Kind.PHRASE} or not any(c.need is Need.EXPECTED for c in query.clauses):
        return None
    return Query(clauses=tuple(_relaxed(clause) for clause in query.clauses))


def _relaxed(clause: Clause) -> Clause:
    if clause.need is not Need.EXPECTED:
        return clause
    return Clause(kind=Kind.WORD, need=Need.OPTIONAL, text=clause.text)


def _clause(sign: str, phrase: str, word: str) -> Clause | None:
    if not _has_word(phrase or word):
        return None
    if phrase:
        need = _NEED_OF_SIGN.get(sign, Need.EXPECTED)
        return Clause(kind=Kind.PHRASE, need=need, text=phrase.strip())
    need, text = _split_sign(word)
    return _word_clause(text, need)


def _split_sign(word: str) -> tuple[Need, str]:
    """Take a leading + or - off; two of them (``--option``) are part of the word."""
    if word[0] in _NEED_OF_SIGN and (word[1].isalnum() or word[1] == "_"):
        return _NEED_OF_SIGN[word[0]], word[1:]
    return Need.OPTIONAL, word


def _word_clause(text: str, need: Need) -> Clause:
    stem = text[:-1]
    letters = sum(map(str.isalnum, stem))
    if text.endswith("*") and stem[-1].isalnum() and letters >= MIN_PREFIX_CHARACTERS:
        return Clause(kind=Kind.PREFIX, need=need, text=stem)
    return Clause(kind=Kind.WORD, need=need, text=text)


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _apply_operators(items: list[Clause | str]) -> tuple[Clause, ...]:
    """Give the neighbours of each operator their need; an operator elsewhere is a word."""
    clauses: list[Clause] = []
    pending: list[str] = []
    for position, item in enumerate(items):
        if isinstance(item, str):
            if _joins(items, position, after_clause=bool(clauses)):
                pending.append(item)
                continue
            item = Clause(kind=Kind.WORD, need=Need.OPTIONAL, text=item)
        if pending:
            # "a AND NOT b" requires a and excludes b.
            clauses[-1] = _left_of(pending[0], clauses[-1])
            item = _right_of(pending[-1], item)
            pending = []
        clauses.append(item)
    return tuple(clauses)


def _joins(items: list[Clause | str], position: int, *, after_clause: bool) -> bool:
    """Whether an operator stands between two clauses, counting "AND NOT" as one operator."""
    following = items[position + 1] if position + 1 < len(items) else "OR"
    if following == "NOT" and items[position] != "NOT":
        following = items[position + 2] if position + 2 < len(items) else "OR"
    return after_clause and isinstance(following, Clause)


def _left_of(operator: str, clause: Clause) -> Clause:
    if operator == "NOT":
        return clause
    return _with_need(clause, Need.REQUIRED if operator == "AND" else Need.OPTIONAL)


def _right_of(operator: str, clause: Clause) -> Clause:
    needs = {"AND": Need.REQUIRED, "OR": Need.OPTIONAL, "NOT": Need.EXCLUDED}
    return _with_need(clause, needs[operator])


def _with_need(clause: Clause, need: Need) -> Clause:
    """The clause with another need; what the user excluded stays excluded."""
    if clause.need is Need.EXCLUDED:
        return clause
    return Clause(kind=clause.kind, need=need, text=clause.text)

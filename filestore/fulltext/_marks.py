"""Where the words that a query asks for are in a text.

The index tells which texts match and keeps no places in them: here a text is taken apart as the
analysis takes it apart, but with the offsets. Words match as written or by their stem, scripts
without spaces by their pairs of characters, compounds by what they are made of, phrases as a whole.
One rule: what is marked is what the index would find, or a part of it; never another word.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, product
from typing import Final

from msgspec import Struct

from filestore.fulltext._analysis import (
    COMPOUNDING,
    DEFAULT_LANGUAGE,
    GRAM_CHARACTERS,
    HASH,
    LETTERED,
    MAX_WORD_BYTES,
    MIN_COMPOUND_CHARACTERS,
    SPACELESS,
    WORD,
    build_exact_analyzer,
    build_stem_analyzer,
    camel_parts,
    camel_words_of,
    clean,
    compounds_in,
    emoji_of,
    has_spaceless,
    is_telling,
    parted_words,
    wholes_of,
    width_of,
)
from filestore.fulltext._languages import grammar_in, grammar_of, language_of
from filestore.fulltext._query import Clause, Kind, ParsedQuery

MOST_CHARACTERS: Final = 200_000
"""So much of a text is looked through."""
MAX_TERMS: Final = 256
"""Of a longer query the first ones are looked for."""
STOP_WEIGHT: Final = 0.05
"""Of a word that every text has."""
PHRASE_WEIGHT: Final = 2.0

_WORD_ASCII: Final = re.compile(r"[A-Za-z0-9]+")
_BEGINNING: Final = 3
"""How many letters of a word its stem has, too, or all it has."""
_CHANGES_START: Final = frozenset({"arabic"})
"""Languages whose stemmers take something off the beginning of a word."""
_OTHERWISE: Final = _CHANGES_START | COMPOUNDING
"""Languages in which a word may match that begins otherwise than the one that is asked for."""

Rarity = Callable[[Sequence[str]], Sequence[float]]
"""How much each word tells, 0 to 1: 1 for one that no text has, next to 0 for one that all have."""


class Mark(Struct, frozen=True):
    """One place where a query matches."""

    start: int
    end: int
    """In characters of the text."""
    term: int
    """Which of the query's terms matches there."""


class Named(Struct, frozen=True):
    """One thing that a query asks for, as a person reads it."""

    text: str
    terms: frozenset[int]
    """Those of the marks that are of it."""
    is_phrase: bool


class _Token(Struct, frozen=True):
    """A word of a text, or a pair of characters of a script without spaces."""

    start: int
    end: int
    word: str
    """As the index has it."""
    raw: str


class Marker:
    """Finds what one query asks for, in one text after another."""

    def __init__(
        self, query: ParsedQuery, rarity: Rarity | None = None, languages: Sequence[str] = ()
    ) -> None:
        """Take a query apart.

        Args:
            query: As `parse_query` gave it; what it excludes is looked for nowhere.
            rarity: Of the index, as `Reader.rarity` gives it; None to tell stop words alone.
            languages: Of the index, as `Reader.languages` gives them: it looks for the
                stems of a word in all of them, whichever one a text is written in.
        """
        self._languages = tuple(languages) or (DEFAULT_LANGUAGE,)
        self._grammar = grammar_of(query, languages)
        self._words: dict[str, int] = {}
        self._prefixes: list[tuple[str, int]] = []
        self._phrases: list[tuple[tuple[str, ...], int, Clause]] = []
        self._names: list[tuple[str, tuple[str, ...], frozenset[str], int]] = []
        self._raw: dict[str, str] = {}
        self._spoken: list[str] = []
        self._stems: dict[str, dict[str, int]] = {}
        self._plain: dict[str, dict[str, int | None]] = {}
        self._starts: dict[str, list[str]] = {}
        self._begun: dict[str, set[str]] = {}
        self._found: dict[str, dict[str, tuple[tuple[int, int, int], ...]]] = {}
        named = [self._take(clause) for clause in query.wanted() if len(self._spoken) < MAX_TERMS]
        self.named = list(dict.fromkeys(one for one in named if one.terms))
        """What it asks for, without words of grammar where there are others."""
        if rarity is not None:
            weights = [max(STOP_WEIGHT, one) for one in rarity(self._spoken)]
        else:
            weights = [1.0] * len(self._spoken)
        for _, term in self._prefixes:
            weights[term] = 1.0
        for _, term, _ in self._phrases:
            weights[term] = PHRASE_WEIGHT
        for *_, term in self._names:
            weights[term] = PHRASE_WEIGHT
        self.weights = weights
        """What finding each term is worth, 0 to `PHRASE_WEIGHT`."""

    def _take(self, clause: Clause) -> Named:
        tokens = [token for token in _tokens(clause.text) if token.word]
        cleaned, first = clean(clause.text), len(self._spoken)
        is_word = clause.kind is Kind.WORD
        is_phrase = not is_word and len(tokens) > 1
        if clause.kind is Kind.PREFIX and len(tokens) == 1:
            self._prefixes.append((tokens[0].word, self._term(clause.text)))
        elif not is_phrase and (names := wholes_of(cleaned)):
            # As typed, or else their words together, or else the ones that tell.
            for name in names:
                words = tuple(token.word for token in _tokens(name) if token.word)
                parts = {word for word in words if len(words) == 1 or is_telling(word)}
                parts = parts if is_word else set()
                # Emoji are marked one by one, whatever forms and joins them.
                for sign in chain(*emoji_of(name)) if name[:1] > "\u2000" else (name,):
                    self._names.append((sign, words, frozenset(parts), self._term(sign)))
            known = {
                word for name, words, *_ in self._names if not name.isalnum() for word in words
            }
            self._take_words([token for token in tokens if token.word not in known])
        elif not is_phrase:
            self._take_words(tokens)
        else:
            phrase = tuple(token.word for token in tokens)
            self._phrases.append((phrase, self._term(clause.text), clause))
        for _, _, joined in compounds_in(cleaned) if is_word else ():
            self._take_words(list(_tokens(joined)))
        own = {*range(first, len(self._spoken))}
        if not is_phrase:
            own |= {self._words[one.word] for one in tokens if one.word in self._words}
        text = clause.text.lstrip("(").rstrip("?!.,;:)…")
        return Named(text, frozenset(own), is_phrase)

    def _take_words(self, tokens: Sequence[_Token]) -> None:
        for token in tokens:
            if token.word not in self._words and token.raw not in self._grammar:
                self._words[token.word] = self._term(token.raw)
                self._raw[token.word] = token.raw
                if HASH.fullmatch(token.word):
                    self._prefixes.append((token.word, self._words[token.word]))
        # As the index has the parts of camelCase words besides the whole.
        whole = " ".join(token.raw for token in tokens)
        for part in camel_parts(camel_words_of(clean(whole))).split():
            # The index has no word of one that is too long.
            if (word := _exact(part)) and word not in self._words:
                self._words[word] = self._term(part)
                self._raw[word] = part

    def _term(self, text: str) -> int:
        self._spoken.append(text)
        return len(self._spoken) - 1

    def marks(self, text: str) -> list[Mark]:
        """Every place where the query matches, in order; none overlap but pairs of characters.

        Args:
            text: Any; `MOST_CHARACTERS` of it are looked through.
        """
        if not self._spoken:
            return []
        # A name may have bytes that are no text.
        text = text[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
        language = language_of(clean(text[:2_000]), self._languages[0])
        found = self._marked_as_written(text, language)
        joined: list[Mark] = []
        over = [*self._marked_joined(text, language), *self._marked_names(text)]
        for mark in sorted(over, key=lambda mark: (mark.start, -mark.end)):
            if not joined or mark.start >= joined[-1].end:
                joined.append(mark)
        if joined:
            starts = [mark.start for mark in joined]
            last = ((mark, bisect_left(starts, mark.end) - 1) for mark in found)
            apart = [mark for mark, at in last if at < 0 or joined[at].end <= mark.start]
            found = sorted(apart + joined, key=lambda mark: (mark.start, mark.end))
        return found

    def _marked_joined(self, text: str, language: str) -> Iterator[Mark]:
        """Words that markup or a hyphen parts, where what is read there matches."""
        compounds = compounds_in(text) if "-" in text else ()
        for start, end, read in chain(parted_words(text), compounds):
            marks = self._marked_words(_tokens(clean(read)), language)
            if (first := next(marks, None)) is not None:
                yield Mark(start, end, first.term)

    def _marked_names(self, text: str) -> Iterator[Mark]:
        """Where identifiers are."""
        lowered, tokens = text.lower(), list[_Token]()
        for name, words, parts, term in self._names:
            places = _places_of(name, lowered) if len(lowered) == len(text) else []
            if not places and words:
                tokens = tokens or list(_tokens(text))
                found = _places(tokens, words, is_prefix=False) if len(words) > 1 else ()
                places = [(first.start, last.end) for first, last in found]
            if not places:
                places = [(token.start, token.end) for token in tokens if token.word in parts]
            yield from (Mark(start, end, term) for start, end in places)

    def _marked_as_written(self, text: str, language: str) -> list[Mark]:
        if not self._phrases:
            is_plain = text.isascii() and language not in _OTHERWISE
            if is_plain and not camel_words_of(text):
                return sorted(self._marked_ascii(text, language), key=lambda mark: mark.start)
            return list(self._marked_words(_tokens(text, ends=True), language))
        tokens = list(_tokens(text))
        found = list(self._marked_words(tokens, language))
        for phrase, term, clause in self._phrases:
            places = list(_places(tokens, phrase, is_prefix=clause.kind is Kind.PREFIX))
            if places:
                found += [Mark(first.start, last.end, term) for first, last in places]
            else:
                # A phrase that is nowhere was taken for its words.
                grammar, _ = grammar_in((clause.text,), self._languages)
                words = set(phrase).difference(map(str.lower, grammar)) or set(phrase)
                found += [Mark(one.start, one.end, term) for one in tokens if one.word in words]
        return sorted(found, key=lambda mark: (mark.start, mark.end))

    def _marked_ascii(self, text: str, language: str) -> Iterator[Mark]:
        """As `_marked_words`, for a text in which only words that begin alike can match."""
        known = self._plain.setdefault(language, {})
        alike = _alike(text)
        if language not in self._starts:
            words = {*self._words, *self._stems_in(language), *(one for one, _ in self._prefixes)}
            starts = list[str]()
            for start in sorted({_alike(word[:_BEGINNING]) for word in words}):
                # What begins with another comes after it.
                if not (starts and start.startswith(starts[-1])):
                    starts.append(start)
            self._starts[language] = starts
        for start in self._starts[language]:
            at = alike.find(start)
            while at >= 0:
                word = None if alike[at - 1 : at].isalnum() else _WORD_ASCII.match(text, at)
                if word is not None:
                    raw = word[0]
                    if raw not in known:
                        known[raw] = self._term_of(raw.lower(), raw, language)
                    if (term := known[raw]) is not None:
                        yield Mark(at, word.end(), term)
                at = alike.find(start, at + 1)

    def _marked_words(self, tokens: Iterable[_Token], language: str) -> Iterator[Mark]:
        known = self._found.setdefault(language, {})
        for token in tokens:
            spans = known.get(token.raw)
            if spans is None:
                spans = known[token.raw] = self._spans(token, language)
            for start, end, term in spans:
                yield Mark(token.start + start, token.start + end, term)

    def _spans(self, token: _Token, language: str) -> tuple[tuple[int, int, int], ...]:
        """Where a word matches: as a whole, or in the parts that the index knows it by."""
        raw = token.raw
        term = self._term_of(token.word, raw, language)
        if term is not None:
            return ((0, len(raw), term),)
        if LETTERED.match(raw):
            begins = (length for length in (2, 1) if token.word[:length] in self._words)
            return tuple((0, length, self._words[token.word[:length]]) for length in begins)[:1]
        if len(raw) <= 2 and SPACELESS.match(raw):
            return tuple(
                (at, at + 1, self._words[sign])
                for at, sign in enumerate(raw)
                if sign in self._words
            )
        if not (raw.islower() or raw.isupper() or raw.istitle()) and camel_words_of(raw):
            return tuple(self._camel_spans(raw, language))
        if language in COMPOUNDING and MIN_COMPOUND_CHARACTERS <= len(raw) == len(token.word):
            for word, term in self._words.items():
                place = token.word.find(word) if len(word) >= GRAM_CHARACTERS else -1
                if place >= 0:
                    return ((place, place + len(word), term),)
        return ()

    def _camel_spans(self, raw: str, language: str) -> Iterator[tuple[int, int, int]]:
        end = 0
        for part in camel_parts([raw]).split():
            start = raw.index(part, end)
            end = start + len(part)
            term = self._term_of(_exact(part), part, language)
            if term is not None:
                yield start, end, term

    def _term_of(self, word: str, raw: str, language: str) -> int | None:
        """The term that a word matches as it is, by how it begins, or by its stem."""
        found = self._words.get(word)
        if found is not None:
            return found
        for start, term in self._prefixes:
            if word.startswith(start):
                return term
        stems = self._stems_in(language)
        if word[:1] in self._begun[language] or language in _CHANGES_START:
            return stems.get(_stem(raw, language))
        return None

    def _stems_in(self, language: str) -> dict[str, int]:
        if language not in self._stems:
            stems: dict[str, int] = {}
            for spoken, (word, term) in product((language, *self._languages), self._words.items()):
                stems.setdefault(_stem(self._raw[word], spoken), term)
            stems.pop("", None)
            self._stems[language] = stems
            self._begun[language] = {_exact(stem)[:1] for stem in stems}
        return self._stems[language]


def _tokens(text: str, *, ends: bool = False) -> Iterator[_Token]:
    """The words of a text, with pieces of characters for scripts without spaces.

    Args:
        text: As written.
        ends: Whether those at the end of a run of an alphabet count that are shorter than a piece.
    """
    if text.isascii():
        for match in _WORD_ASCII.finditer(text):
            raw = match.group()
            yield _Token(match.start(), match.end(), raw.lower(), raw)
        return
    position = 0
    for run in SPACELESS.finditer(text) if has_spaceless(text) else ():
        for word in WORD.finditer(text, position, run.start()):
            yield _word_at(text, word.start(), word.end())
        width, position = width_of(run[0]), run.end()
        last = position if ends and LETTERED.match(run[0]) else position - width + 1
        for start in range(run.start(), max(last, run.start() + 1)):
            yield _word_at(text, start, min(start + width, position))
    for word in WORD.finditer(text, position):
        yield _word_at(text, word.start(), word.end())


def _word_at(text: str, start: int, end: int) -> _Token:
    raw = text[start:end]
    return _Token(start, end, _exact(raw), raw)


def _places(
    tokens: Sequence[_Token], phrase: tuple[str, ...], *, is_prefix: bool
) -> Iterator[tuple[_Token, _Token]]:
    """First and last word of every place where a phrase is."""
    first, last = phrase[0], phrase[-1]
    length = len(phrase)
    for start in range(len(tokens) - length + 1):
        if tokens[start].word != first:
            continue
        words = [token.word for token in tokens[start : start + length]]
        ends = words[-1].startswith(last) if is_prefix else words[-1] == last
        if ends and tuple(words[:-1]) == phrase[:-1]:
            yield tokens[start], tokens[start + length - 1]


def _places_of(name: str, text: str) -> list[tuple[int, int]]:
    """Start and end of every place where an identifier is, and not a longer word."""
    found: list[tuple[int, int]] = []
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        goes_on = name[-1].isalnum() and text[end : end + 1].isalnum()
        if not goes_on and not (name[0].isalnum() and text[at - 1 : at].isalnum()):
            found.append((at, end))
        at = text.find(name, end)
    return found


_exact_analyzer: Final = cache(build_exact_analyzer)
_stem_analyzer: Final = cache(build_stem_analyzer)


@lru_cache(4_096)
def _exact(raw: str) -> str:
    """A word as the index has it as written; "" for one that it leaves out."""
    if raw.isascii():
        return raw.lower() if len(raw) < MAX_WORD_BYTES else ""
    return " ".join(_exact_analyzer().analyze(clean(raw)))


def _stem(raw: str, language: str) -> str:
    return " ".join(_stem_analyzer(language).analyze(clean(raw)))


def _alike(text: str) -> str:
    """A stem is at most an end away from its word, but that "skies" has "sky"."""
    return text.lower().replace("y", "i")

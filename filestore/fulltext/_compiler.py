"""A parsed query as one of tantivy's: which terms of which fields it asks for, with what weight."""

import math
import re
from collections.abc import Iterable
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from filestore.fulltext._analysis import (
    COMPOUNDING,
    DEFAULT_LANGUAGE,
    GRAM_CHARACTERS,
    HASH,
    HASH_CHARACTERS,
    INSIDE,
    LANGUAGES,
    PART,
    build_exact_analyzer,
    build_gram_analyzer,
    build_schema,
    build_stem_analyzer,
    camel_words_of,
    clean,
    compounds_in,
    emoji_of,
    grams_of,
    is_long,
    is_strict,
    is_telling,
    prepare,
    short_runs,
    space_pairs,
    space_singles,
    wholes_of,
)
from filestore.fulltext._languages import grammar_of, without
from filestore.fulltext._query import Clause, Kind, Need, ParsedQuery
from filestore.fulltext._stamp import Stamp

if TYPE_CHECKING:
    import tantivy

MAX_TERMS: Final = 64
"""Of a longer query the rarest words of each field are searched: they decide the ranking."""
FREQUENT_SHARE: Final = 0.1
"""Words in more of the texts than this are ranked by their stems alone: it halves the time of a
question and its ranking does not suffer."""
MAX_PHRASE_WORDS: Final = 64
MAX_EXPANSIONS: Final = 32
"""How many words that begin with a prefix are ranked by rarity; the rest score alike."""
_MOST_COUNTED: Final = 4_096
_EXACT_WEIGHT: Final = 0.5
_GRAM_WEIGHT: Final = 0.2
_PHRASE_WEIGHT: Final = 2.0
_IDENTIFIER_WEIGHT: Final = 2.0
_PART_WEIGHT: Final = 0.2
"""The parts of an identifier that the store has as a whole only break ties."""
_QUICK: Final = 500
"""A phrase of which a word is in no more texts than these costs next to nothing."""
_MOST_PHRASES: Final = 16
_MOST_PIECES: Final = 4
_GROUPED: Final = re.compile(r"\d{1,3}(?:[.,']\d{3})+|\d{4}-\d\d-\d\d")
_MOST_APART: Final = 6
"""More digits than in this number of groups are of one number."""
_VERSION: Final = re.compile(r"v\d")
_RUN: Final = re.compile(r"\d+|[^\W\d_]+")
_RESPELLED_WEIGHT: Final = 0.7
"""Of respelled words. With 1 misspelt questions gain half a point of nDCG@10 more,
and German ones without a mistake, whose words a small store lacks, lose a quarter of a point."""


class _Found(Struct, frozen=True):
    """What a search found."""

    hits: list[Any]


class OpenSearcher:
    """A searcher of an index in which some documents count for nothing."""

    def __init__(
        self, searcher: "tantivy.Searcher", schema: "tantivy.Schema", shut: list[int]
    ) -> None:
        """Leave out some documents, by their ids."""
        import tantivy

        self._searcher, self._schema, self._shut = searcher, schema, frozenset(shut)
        # A query by term takes a number for a signed one and silently finds nothing.
        without = tantivy.Query.term_set_query(schema, "id", shut)
        self._without = tantivy.Occur.MustNot, without
        # The library's stubs leave out this property of a result.
        self.num_docs: int = searcher.num_docs - searcher.search(without, 1, count=True).count  # type: ignore[attr-defined]
        self.fast_field_values = searcher.fast_field_values
        self.terms_with_prefix = searcher.terms_with_prefix
        """Also of what is left out: a term that is offered is counted first."""

    def search(self, query: "tantivy.Query", limit: int, *, count: bool) -> Any:
        """What the query finds among the others."""
        if count:
            from tantivy import Occur
            from tantivy import Query as TantivyQuery

            open_ones = TantivyQuery.boolean_query([(Occur.Must, query), self._without])
            return self._searcher.search(open_ones, limit, count=True)
        # To leave them out afterwards is quicker: they are few, and it keeps the query flat.
        fetch = limit
        while True:
            hits = self._searcher.search(query, fetch, count=False).hits
            ids = self.fast_field_values("id", [address for _, address in hits])
            others = [hit for hit, one in zip(hits, ids, strict=True) if one not in self._shut]
            if len(others) >= limit or len(hits) < fetch:
                return _Found(others[:limit])
            fetch = 2 * fetch + 1

    def doc_freq(self, field: str, term: str) -> int:
        """How many of the others have a term; of a frequent one a few more count."""
        count = int(self._searcher.doc_freq(field, term))
        if not 0 < count <= len(self._shut):
            return min(count, self.num_docs)
        import tantivy

        query = tantivy.Query.term_query(self._schema, field, term)
        return int(self.search(query, 1, count=True).count or 0)


class Compiler:
    """Makes queries for one commit of the index, whose frequencies decide which terms count."""

    def __init__(self, searcher: "tantivy.Searcher", stamp: Stamp) -> None:
        """Take a commit, and what its stamp tells of it."""
        self.searcher: Any = searcher
        self._deleted = stamp.deleted
        self._counted: dict[tuple[str, str], int] = {}
        """Of the words of the last queries; one query asks for each of its own several times."""
        self.schema = build_schema()
        self.exact = build_exact_analyzer()
        count = {DEFAULT_LANGUAGE: 0, **{k: v for k, v in stamp.languages if k in LANGUAGES}}
        self.languages: Final = tuple(sorted(count, key=lambda one: (-count[one], one)))
        """Those in which the words of a query have stems, the most frequent first."""
        self._has_compounds = any(language in COMPOUNDING for language in self.languages)
        self._stems = [build_stem_analyzer(language) for language in self.languages]

    def shut(self, ids: list[int]) -> None:
        """Find, count and offer nothing of some documents."""
        self.searcher = OpenSearcher(self.searcher, self.schema, ids)
        self._deleted += len(ids)
        self._counted.clear()

    def compiled(self, parsed: ParsedQuery) -> "tantivy.Query | None":
        """One boolean query, flat where it can be: tantivy skips faster through a flat one."""
        from tantivy import Occur
        from tantivy import Query as TantivyQuery

        occurs = {Need.OPTIONAL: Occur.Should, Need.EXCLUDED: Occur.MustNot}
        grammar = grammar_of(parsed, self.languages)
        words = [clause.text for clause in parsed.clauses if clause.is_plain_word]
        parts = [(Occur.Should, query) for query in self._plain_words(words, grammar)]
        if parsed.respellings and parts:
            # The respelled words order what is found by the words as they were typed.
            respelled = " ".join(one for _, near in parsed.respellings for one in near)
            found = TantivyQuery.boolean_query(parts)
            parts = [(Occur.Must, found)]
            parts += [(Occur.Should, query) for query in self._scored(respelled, _RESPELLED_WEIGHT)]
        for clause in parsed.clauses:
            query = None if clause.is_plain_word else self.clause(clause)
            if query is not None:
                parts.append((occurs.get(clause.need, Occur.Must), query))
            elif clause.need in (Need.REQUIRED, Need.EXPECTED):
                return None
        if all(occur == Occur.MustNot for occur, _ in parts):
            return None
        return TantivyQuery.boolean_query(parts)

    def clause(self, clause: Clause) -> "tantivy.Query | None":
        """What a clause with an operator matches; None where it has no word."""
        cleaned = clean(clause.text)
        text = space_pairs(cleaned)
        if clause.kind is Kind.PREFIX or short_runs(cleaned) == [cleaned]:
            return self._prefix(text)
        words = self.exact.analyze(text)[:MAX_PHRASE_WORDS]
        wholes = wholes_of(text)
        present = [query for word in wholes if (query := self.whole(word)) is not None]
        if clause.kind is Kind.PHRASE:
            # Where the signs say it all (C#), there is no other way to write it.
            if wholes and len(words) < 2:
                return self._all_of(present) if len(present) == len(wholes) else None
            phrase = self._phrase(words)
            return self._all_of([*present, phrase]) if phrase is not None else None
        if present:
            return self._all_of(present)
        if len(words) == 1 and clause.need in (Need.REQUIRED, Need.EXCLUDED):
            stems = [self.term("stem", stem, 1.0) for stem in self._stems_of(text)]
            return self._any_of([*stems, self.term("exact", words[0], _EXACT_WEIGHT)])
        return self._phrase(words)

    def _prefix(self, text: str) -> "tantivy.Query | None":
        """Words, or identifiers, that begin so."""
        from tantivy import Query as TantivyQuery

        words = self.exact.analyze(text)
        identifiers = wholes_of(text)
        if len(words) > 1 and not identifiers:
            return TantivyQuery.phrase_prefix_query(self.schema, "exact", list(words))
        if not (words or identifiers):
            return None
        start = identifiers[0] if identifiers else words[0]
        everything = self._beginning(start, ("whole",) if identifiers else ("exact", "whole"), 1.0)
        terms = partial(self.searcher.terms_with_prefix, limit=MAX_EXPANSIONS)
        exact = [self.term("exact", word, 1.0) for word, _ in terms("exact", start)]
        wholes = [self.whole(word) for word, _ in terms("whole", start)]
        found = [query for query in wholes if query is not None]
        return self._any_of([*everything, *exact, *found])

    def _beginning(self, start: str, fields: Iterable[str], score: float) -> "list[tantivy.Query]":
        """All words, and identifiers, that begin so, alike."""
        from tantivy import Query as TantivyQuery

        pattern = re.escape(start) + ".*"
        inside = {"whole": f"{INSIDE}?"}
        return [
            TantivyQuery.const_score_query(
                TantivyQuery.regex_query(self.schema, field, inside.get(field, "") + pattern), score
            )
            for field in fields
        ]

    def _plain_words(self, words: list[str], grammar: frozenset[str]) -> "list[tantivy.Query]":
        """The scored terms of the words without operators, but for those of grammar."""
        text = clean(" ".join(words))
        if text.replace(" ", "").isalpha() and not camel_words_of(text):
            return self._scored(without(grammar, text), 1.0)
        queries: list[tantivy.Query] = []
        rest: list[str] = []
        parts: list[str] = []
        for word in self._without_numbers(text.split(), queries):
            tokens = self.exact.analyze(space_pairs(word))
            wholes = self._wholes_of(word)
            found = map(self.whole, wholes)
            queries += (present := [query for query in found if query is not None])
            if word.isalnum() and not present:
                queries += self._other_forms(word.lower() if is_long(word) else "".join(tokens[:1]))
                rest.append(word)
                continue
            compounds = [one for _, _, one in compounds_in(word)]
            rest += [one for one in compounds if self.word_frequency(one)]
            # What an apostrophe joins to a word of grammar is no compound: l'eau, what's.
            is_apart = any(sign in word for sign in "'\u2019") and without(grammar, word) != word
            if len(tokens) > 1 and len(queries) < _MOST_PHRASES and not is_apart:
                weight = _PART_WEIGHT if present else _PHRASE_WEIGHT if wholes else 1.0
                queries += self._together(tokens, weight=weight)
            if _GROUPED.fullmatch(word):
                queries += self._joined(tokens)
            if is_strict(word) and not present and not all(map(self.word_frequency, tokens)):
                continue
            pieces = PART.findall(word)
            if len(pieces) > 1 and (present or is_strict(word)):
                # Numbers and single letters in it are none of their own.
                word = " ".join(filter(is_telling, pieces))
            (parts if present else rest).append(word)
        return [
            *queries,
            *self._scored(without(grammar, " ".join(rest)), 1.0),
            *self._scored(without(grammar, " ".join(parts)), _PART_WEIGHT),
        ]

    def _together(self, tokens: list[str], *, weight: float) -> "list[tantivy.Query]":
        """The phrase of the parts of a word, where that is quickly looked for if it only helps."""
        is_needed = weight == _PHRASE_WEIGHT
        if not is_needed and min(self.frequency("exact", one) for one in tokens) > _QUICK:
            return []
        phrase = self._phrase(tokens[:MAX_PHRASE_WORDS], weight)
        return [phrase] if phrase is not None else []

    def _wholes_of(self, word: str) -> list[str]:
        """The identifiers in a word that is typed, and names in camelCase."""
        wholes = wholes_of(space_pairs(word)) or [one.lower() for one in camel_words_of(word)]
        # Emoji that are together need not do so in a text.
        apart = [sign for run in emoji_of(word) if len(run) > 1 for sign in run]
        bare = [one[1:] for one in wholes if _VERSION.match(one)]
        return list(dict.fromkeys([*wholes, *apart, *bare]))

    def _without_numbers(self, words: list[str], queries: "list[tantivy.Query]") -> list[str]:
        """The words without numbers in groups (1 234 567), which are searched for as they are."""
        kept: list[str] = []
        for is_number, run in groupby(words, key=_is_number):
            group = list(run)
            digits = PART.findall(" ".join(group)) if is_number and len(group) > 1 else []
            phrase = self._phrase(digits[:MAX_PHRASE_WORDS]) if digits else None
            if phrase is not None and self.searcher.search(phrase, 1, count=False).hits:
                queries.append(phrase)
            elif phrase is not None and (joined := self._joined(digits)):
                queries += joined
            else:
                kept += group
        return kept

    def _joined(self, digits: list[str]) -> "list[tantivy.Query]":
        """A number that is typed in groups, as one; nothing where the groups are none of one."""
        number = "".join(digits)
        is_one = len(number) > _MOST_APART or _GROUPED.fullmatch(",".join(digits))
        if not is_one or not self.frequency("exact", number):
            return []
        return [self.term("exact", number, _IDENTIFIER_WEIGHT)]

    def _other_forms(self, word: str) -> "list[tantivy.Query]":
        """Other ways to write a word with digits: in parts (UTF-8), or the hash that it begins."""
        if word.isalpha():
            return []
        found: list[tantivy.Query] = []
        if HASH.fullmatch(word):
            documents = self.searcher.num_docs
            found += self._beginning(word, ("exact", "whole"), rarity_of(1, documents))
            starts = [word[:end] for end in range(HASH_CHARACTERS, len(word))]
            known = (one for one in starts if HASH.fullmatch(one) and self.frequency("exact", one))
            found += [self.term("exact", one, 1.0) for one in known]
        pieces = [] if self.word_frequency(word) else _RUN.findall(word)
        if len(pieces) == 1 and word.isascii():
            pieces = f"{int(word):,}".split(",")
        if 1 < len(pieces) <= _MOST_PIECES and all(self.frequency("exact", one) for one in pieces):
            phrase = self._phrase(pieces)
            found += [phrase] if phrase is not None else []
        return found

    def _scored(self, text: str, weight: float) -> "list[tantivy.Query]":
        """Terms in all fields for a text, each field cut to its rarest ones."""
        fields = {
            "stem": (self._stems_of(text), weight),
            "exact": (self.exact.analyze(space_pairs(text)), weight * _EXACT_WEIGHT),
        }
        if self._has_compounds:
            grams = grams_of(text, shortest=GRAM_CHARACTERS)
            fields["gram"] = (self.exact.analyze(" ".join(grams)), weight * _GRAM_WEIGHT)
        short = [Clause(kind=Kind.PREFIX, need=Need.OPTIONAL, text=run) for run in short_runs(text)]
        begun = [query for clause in short if (query := self.clause(clause)) is not None]
        return begun + [
            self.term(field, term, field_weight)
            for field, (terms, field_weight) in fields.items()
            for term in self._rarest(field, terms)
        ]

    def _stems_of(self, text: str) -> list[str]:
        """The stems of the words in every language the store has, once each."""
        _, stem_text = prepare(text)
        stems = (stem for analyzer in self._stems for stem in analyzer.analyze(stem_text))
        return list(dict.fromkeys(stems))

    def _rarest(self, field: str, terms: Iterable[str]) -> list[str]:
        """The terms that occur at all, once each; the rarest where there are too many."""
        counted = [(self.frequency(field, term), term) for term in dict.fromkeys(terms)]
        present = [(count, term) for count, term in counted if count]
        if field == "exact":
            most = self.searcher.num_docs * FREQUENT_SHARE
            present = [pair for pair in present if pair[0] <= most] or present
        if len(present) > MAX_TERMS:
            present = sorted(present)[:MAX_TERMS]
        return [term for _, term in present]

    def frequency(self, field: str, term: str) -> int:
        """How many documents have a term; of a frequent one a few deleted ones count."""
        count = self._counted.get((field, term))
        if count is None:
            count = int(self.searcher.doc_freq(field, term))
            if 0 < count <= self._deleted:
                import tantivy

                query = tantivy.Query.term_query(self.schema, field, term)
                found = self.searcher.search(query, 1, count=True)
                count = found.count or 0
            if len(self._counted) >= _MOST_COUNTED:
                self._counted.clear()
            self._counted[field, term] = count
        return count

    def word_frequency(self, word: str) -> int:
        """In how many documents a word is, as it is or else in another form."""
        if count := self.frequency("exact", word.lower()):
            return count
        return max((self.frequency("stem", stem) for stem in self._stems_of(word)), default=0)

    def whole(self, word: str) -> "tantivy.Query | None":
        """The query of an identifier, or of a name in camelCase; None where no document has it.

        Where it is alone it counts for twice what it does in a longer one.
        """
        (word,) = (word,) if word.isascii() else build_gram_analyzer().analyze(word)
        if word.isalnum() and not is_long(word):
            known = self.frequency("exact", word)
            return self.term("exact", word, _IDENTIFIER_WEIGHT) if known else None
        inside = f"{INSIDE}{word}"
        known, longer = self.frequency("whole", word), self.frequency("whole", inside)
        documents = self.searcher.num_docs
        score = _IDENTIFIER_WEIGHT * rarity_of(min(known + longer, documents), documents)
        return self._any_of(
            [
                *([self._constant(word, score)] if known else []),
                *([self._constant(inside, score / 2)] if longer else []),
            ]
        )

    def _constant(self, word: str, score: float) -> "tantivy.Query":
        """What scores the same in each text: BM25 holds those with many identifiers for long."""
        from tantivy import Query as TantivyQuery

        query = TantivyQuery.term_query(self.schema, "whole", word, index_option="basic")
        return TantivyQuery.const_score_query(query, score)

    def term(self, field: str, term: str, weight: float) -> "tantivy.Query":
        """The query of one term of a field."""
        from tantivy import Query as TantivyQuery

        option = "position" if field == "exact" else "freq"
        query = TantivyQuery.term_query(self.schema, field, term, index_option=option)
        return query if weight == 1.0 else TantivyQuery.boost_query(query, weight)

    def _phrase(self, words: list[str], weight: float = _PHRASE_WEIGHT) -> "tantivy.Query | None":
        """Words in this order, in the form they have; one word is a term."""
        from tantivy import Query as TantivyQuery

        if not words:
            return None
        if len(words) > 1:
            phrase = TantivyQuery.phrase_query(self.schema, "exact", list(words))
            return TantivyQuery.boost_query(phrase, weight)
        # Of a script without spaces a single character is a term of the other field only.
        single = [self.term("stem", words[0], 1.0)] if space_singles(words[0]) != words[0] else []
        return self._any_of([self.term("exact", words[0], 1.0), *single])

    def _all_of(self, queries: "list[tantivy.Query]") -> "tantivy.Query":
        import tantivy

        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in queries])

    def _any_of(self, queries: "list[tantivy.Query]") -> "tantivy.Query | None":
        import tantivy

        if len(queries) < 2:
            return queries[0] if queries else None
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _is_number(word: str) -> bool:
    """Whether it is a group of digits, or of signs and digits."""
    return any(map(str.isdigit, word)) and not any(map(str.isalpha, word))


def rarity_of(count: int, documents: int) -> float:
    """How rare a word is, as BM25 weighs it."""
    return math.log1p((documents - count + 0.5) / (count + 0.5))

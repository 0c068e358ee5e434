"""A parsed query as one of tantivy's: which terms of which fields it asks for, with what weight."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from filestore.fulltext._analysis import (
    COMPOUNDING,
    DEFAULT_LANGUAGE,
    GRAM_CHARACTERS,
    LANGUAGES,
    build_exact_analyzer,
    build_schema,
    build_stem_analyzer,
    camel_words_of,
    clean,
    grams_of,
    identifiers_of,
    prepare,
    short_runs,
    space_pairs,
    space_singles,
)
from filestore.fulltext._languages import grammar_of, without
from filestore.fulltext._query import Clause, Kind, Need, ParsedQuery

if TYPE_CHECKING:
    import tantivy

MAX_TERMS: Final = 64
"""Of a longer query the rarest words of each field are searched: they decide the ranking."""
FREQUENT_SHARE: Final = 0.1
"""Words in more of the texts than this are ranked by their stems alone: it halves the time of a
question and its ranking does not suffer."""
MAX_PHRASE_WORDS: Final = 64
MAX_EXPANSIONS: Final = 32
"""So many words that begin with a prefix are ranked by rarity; the rest score alike."""
_MOST_COUNTED: Final = 4_096
_EXACT_WEIGHT: Final = 0.5
_GRAM_WEIGHT: Final = 0.2
_PHRASE_WEIGHT: Final = 2.0
_IDENTIFIER_WEIGHT: Final = 2.0
_PART_WEIGHT: Final = 0.2
"""The parts of an identifier that the store has as a whole only break ties."""
_MEANT_WEIGHT: Final = 0.7
"""Of words that may have been meant. With 1 misspelt questions gain half a point of nDCG@10 more,
and German ones without a mistake, whose words a small store lacks, lose a quarter of a point."""


class Compiler:
    """Makes queries for one commit of the index, whose frequencies decide which terms count."""

    def __init__(self, searcher: "tantivy.Searcher", deleted: int) -> None:
        """Take a commit, and how many of its documents are deleted."""
        self.searcher = searcher
        self._deleted = deleted
        self._counted: dict[tuple[str, str], int] = {}
        """Of the words of the last queries; one query asks for each of its own several times."""
        self.schema = build_schema()
        self.exact = build_exact_analyzer()
        count = {one: self.frequency("language", one) for one in LANGUAGES}
        count[DEFAULT_LANGUAGE] = searcher.num_docs - sum(count.values())
        self.languages: Final = tuple(
            one
            for one in sorted(LANGUAGES, key=lambda one: (-count[one], one))
            if count[one] or one == DEFAULT_LANGUAGE
        )
        """Those in which the words of a query have stems, the most frequent first."""
        self._has_compounds = any(language in COMPOUNDING for language in self.languages)
        self._stems = [build_stem_analyzer(language) for language in self.languages]

    def compiled(self, parsed: ParsedQuery) -> "tantivy.Query | None":
        """One boolean query, flat where it can be: tantivy skips faster through a flat one."""
        from tantivy import Occur
        from tantivy import Query as TantivyQuery

        occurs = {Need.OPTIONAL: Occur.Should, Need.EXCLUDED: Occur.MustNot}
        grammar = grammar_of(parsed, self.languages)
        words = [clause.text for clause in parsed.clauses if clause.is_plain_word]
        parts = [(Occur.Should, query) for query in self._plain_words(words, grammar)]
        meant = " ".join(one for _, near in parsed.meant for one in near)
        parts += [(Occur.Should, query) for query in self._scored(meant, _MEANT_WEIGHT)]
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
            from tantivy import Query as TantivyQuery

            words = self.exact.analyze(space_pairs(text))
            identifiers = identifiers_of(text)
            if len(words) > 1 and not identifiers:
                return TantivyQuery.phrase_prefix_query(self.schema, "exact", list(words))
            if not words:
                return None
            start = identifiers[0] if identifiers else words[0]
            pattern = re.escape(start) + ".*"
            everything = TantivyQuery.const_score_query(
                TantivyQuery.regex_query(self.schema, "exact", pattern), 1.0
            )
            expansions = self.searcher.terms_with_prefix("exact", start, limit=MAX_EXPANSIONS)
            return self._any_of([everything, *(self.term("exact", t, 1.0) for t, _ in expansions)])
        words = self.exact.analyze(text)[:MAX_PHRASE_WORDS]
        if clause.kind is Kind.PHRASE:
            return self._phrase(words)
        if found := self._present_identifiers(text):
            return self.term("exact", found[0], _IDENTIFIER_WEIGHT)
        if len(words) == 1 and clause.need in (Need.REQUIRED, Need.EXCLUDED):
            stems = [self.term("stem", stem, 1.0) for stem in self._stems_of(text)]
            return self._any_of([*stems, self.term("exact", words[0], _EXACT_WEIGHT)])
        return self._phrase(words)

    def _plain_words(self, words: list[str], grammar: frozenset[str]) -> "list[tantivy.Query]":
        """The scored terms of the words without operators, but for those of grammar."""
        text = clean(" ".join(words))
        found = self._present_identifiers(space_pairs(text))
        if not found:
            phrases = [self.exact.analyze(word) for word in identifiers_of(text)[:MAX_TERMS]]
            queries = [self._phrase(words) for words in phrases if len(words) > 1]
            scored = self._scored(without(grammar, text), 1.0)
            return [*[query for query in queries if query is not None], *scored]
        rarest = sorted(found, key=lambda word: self.frequency("exact", word))[:MAX_TERMS]
        whole = [self.term("exact", word, _IDENTIFIER_WEIGHT) for word in rarest]
        parts = [word for word in words if _holds_any(word, found)]
        rest = [word for word in words if not _holds_any(word, found)]
        return [
            *whole,
            *self._scored(without(grammar, clean(" ".join(rest))), 1.0),
            *self._scored(without(grammar, clean(" ".join(parts))), _PART_WEIGHT),
        ]

    def _present_identifiers(self, text: str) -> list[str]:
        """The identifiers of a query that some document has as a whole."""
        camel_words = [word.lower() for word in camel_words_of(text)]
        identifiers = dict.fromkeys([*identifiers_of(text), *camel_words])
        return [word for word in identifiers if self.frequency("exact", word)]

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
        """How many documents have a term; a few deleted ones count in those that many have."""
        count = self._counted.get((field, term))
        if count is None:
            count = int(self.searcher.doc_freq(field, term))
            if 0 < count <= self._deleted:
                found = self.searcher.search(self.term(field, term, 1.0), 1, count=True)
                # The library's stubs leave out this property of a result.
                count = found.count or 0  # type: ignore[attr-defined]
            if len(self._counted) >= _MOST_COUNTED:
                self._counted.clear()
            self._counted[field, term] = count
        return count

    def word_frequency(self, word: str) -> int:
        """In how many documents a word is, as it is or else in another form."""
        if count := self.frequency("exact", word.lower()):
            return count
        return max((self.frequency("stem", stem) for stem in self._stems_of(word)), default=0)

    def term(self, field: str, term: str, weight: float) -> "tantivy.Query":
        """The query of one term of a field."""
        from tantivy import Query as TantivyQuery

        option = "position" if field == "exact" else "freq"
        query = TantivyQuery.term_query(self.schema, field, term, index_option=option)
        return query if weight == 1.0 else TantivyQuery.boost_query(query, weight)

    def _phrase(self, words: list[str]) -> "tantivy.Query | None":
        """Words in this order, in the form they have; one word is a term."""
        from tantivy import Query as TantivyQuery

        if not words:
            return None
        if len(words) > 1:
            phrase = TantivyQuery.phrase_query(self.schema, "exact", list(words))
            return TantivyQuery.boost_query(phrase, _PHRASE_WEIGHT)
        # Of a script without spaces a single character is a term of the other field only.
        single = [self.term("stem", words[0], 1.0)] if space_singles(words[0]) != words[0] else []
        return self._any_of([self.term("exact", words[0], 1.0), *single])

    def _any_of(self, queries: "list[tantivy.Query]") -> "tantivy.Query | None":
        import tantivy

        if len(queries) < 2:
            return queries[0] if queries else None
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _holds_any(word: str, identifiers: list[str]) -> bool:
    lowered = word.lower()
    return any(identifier in lowered for identifier in identifiers)

"""Searching the index: a parsed query becomes one of tantivy's, its hits ids with scores."""

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from filestore.fs.disk import Closing
from filestore.fs.path_names import is_utf8
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
    space_pairs,
    space_singles,
)
from filestore.fulltext._query import Clause, Kind, Need, ParsedQuery, relax
from filestore.fulltext._respelling import (
    LONG_LETTERS,
    Respelling,
    best,
    misspelt,
    one_edit_away,
    two_edits_away,
)
from filestore.fulltext._stamp import Stamp, TantivyGuard, require_files

if TYPE_CHECKING:
    import tantivy

MAX_TERMS: Final = 64
"""Of a longer query the rarest words of each field are searched: they decide the ranking."""
FREQUENT_SHARE: Final = 0.1
"""Words in more of the texts than this are ranked by their stems alone: it halves the time of a
question and its ranking does not suffer."""
MAX_PHRASE_WORDS: Final = 64
MAX_VERIFIED_WORDS: Final = 1_000
MAX_EXPANSIONS: Final = 32
"""So many words that begin with a prefix are ranked by rarity; the rest score alike."""
_MOST_COUNTED: Final = 4_096
_TIE_MARGIN: Final = 16
_SAME_SCORE: Final = 1e-6
"""Sums of 32-bit floats depend on their order by this share, and equal texts must tie."""
_SCORE_DIGITS: Final = 4

_EXACT_WEIGHT: Final = 0.5
_GRAM_WEIGHT: Final = 0.2
_PHRASE_WEIGHT: Final = 2.0
_IDENTIFIER_WEIGHT: Final = 2.0
_PART_WEIGHT: Final = 0.2
"""The parts of an identifier that the store has as a whole only break ties."""
_MEANT_WEIGHT: Final = 0.7
"""Of words that may have been meant. With 1 misspelt questions gain half a point of nDCG@10 more,
and German ones without a mistake, whose words a small store lacks, lose a quarter of a point."""

Hit = tuple[int, float]


class Reader(Closing):
    """One commit of the index, which it goes on reading whatever is written afterwards."""

    def __init__(
        self, searcher: "tantivy.Searcher", schema: "tantivy.Schema", folder: str, deleted: int
    ) -> None:
        self._guard = TantivyGuard(folder)
        self._deleted = deleted
        self._counted: dict[tuple[str, str], int] = {}
        """Of the words of the last queries; one query asks for each of its own several times."""
        self._searcher: tantivy.Searcher | None = searcher
        self._schema = schema
        self._exact = build_exact_analyzer()
        present = [lang for lang in LANGUAGES if searcher.doc_freq("language", lang)]
        self._has_compounds = any(language in COMPOUNDING for language in present)
        self.languages: Final = (DEFAULT_LANGUAGE, *present)
        """Those in which the words of a query have stems."""
        self._stems = [build_stem_analyzer(language) for language in self.languages]

    @classmethod
    def open(cls, folder: str, stamp: Stamp) -> Self:
        """Open the commit that a stamp describes, once every byte of it was checked.

        Raises:
            FulltextMissing: The commit is gone, or was made by another analysis.
            FulltextDamaged: A file is missing or differs from the stamp.
        """
        require_files(folder, stamp)
        import tantivy

        with TantivyGuard(folder), _lockable(folder, stamp) as path:
            return cls(tantivy.Index.open(path).searcher(), build_schema(), folder, stamp.deleted)

    def close(self) -> None:
        """Let go of the files."""
        self._searcher = None

    def ids(self) -> set[int]:
        """The ids of all documents."""
        import tantivy

        with self._guard:
            searcher = self._live()
            query, most = tantivy.Query.all_query(), max(1, searcher.num_docs)
            hits = searcher.search(query, most, count=False).hits
            found = searcher.fast_field_values("id", [address for _, address in hits])
        return {file_id for file_id in found if isinstance(file_id, int)}

    def holds(self, file_id: int, texts: Iterable[str]) -> bool:
        """Whether a document is held with the words of some texts; for verification."""
        from tantivy import Occur, Query

        words = [word for text in texts for word in self._exact.analyze(prepare(clean(text))[0])]
        with self._guard:
            # A query by term takes a number for a signed one and silently finds nothing.
            own = Query.term_set_query(self._schema, "id", [file_id])
            distinct = list(dict.fromkeys(words))[:MAX_VERIFIED_WORDS]
            terms = [own, *(self._term("exact", word, 1.0) for word in distinct)]
            query = Query.boolean_query([(Occur.Must, term) for term in terms])
            return bool(self._live().search(query, 1, count=False).hits)

    def search(self, query: ParsedQuery, limit: int) -> list[Hit]:
        """The best documents for a query.

        Args:
            query: As `parse_query` gave it.
            limit: How many hits are wanted.

        Returns:
            Ids and scores, best first, equal scores in no order; those that tie with the last one
            beyond the limit.
        """
        if limit < 1 or not query.wanted():
            return []
        with self._guard:
            hits = self._ranked(self._compile(query), limit)
            if not hits and (relaxed := relax(query)) is not None:
                hits = self._ranked(self._compile(relaxed), limit)
        return hits

    def matching(self, clause: Clause) -> set[int]:
        """The ids of all documents that a required clause demands, or an excluded one hides."""
        with self._guard:
            query = self._clause(clause)
            documents = self._live().num_docs
            if query is None or documents == 0:
                return set()
            return {file_id for file_id, _ in self._top(query, documents)}

    def known_share(self, query: ParsedQuery) -> float:
        """How much of a query the documents can know, 0 to 1: its words by how rare they are.

        Words that no document has count as the rarest there could be, so that of a question only
        the "a" of which is to be found next to nothing is known. A prefix counts as one word.
        """
        wanted = query.wanted()
        text = clean(" ".join(one.text for one in wanted if one.kind is not Kind.PREFIX))
        words = dict.fromkeys(self._exact.analyze(space_pairs(text)))
        camel_words = {word.lower(): word for word in camel_words_of(text)}
        with self._guard:
            documents = self._live().num_docs
            meant = {word.lower(): near[0] for word, near in query.meant}
            counted = [
                self._word_frequency(meant.get(word, camel_words.get(word, word))) for word in words
            ]
            prefixes = [self._clause(one) for one in wanted if one.kind is Kind.PREFIX]
            searcher = self._live()
            # The library's stubs leave out this property of a result.
            counted += [
                searcher.search(query, 1, count=True).count or 0 if query is not None else 0  # type: ignore[attr-defined]
                for query in prefixes
            ]
        rarity = [_rarity(count, documents) for count in counted]
        known = sum(weight for weight, count in zip(rarity, counted, strict=True) if count)
        return known / sum(rarity) if rarity else 1.0

    def rarity(self, texts: Sequence[str]) -> list[float]:
        """How much each of some words tells, 0 to 1: 1 for one that no document has.

        Of a text of several words it is the rarest that counts.
        """
        with self._guard:
            documents = self._live().num_docs
            most = _rarity(0, documents) or 1.0
            return [
                max(
                    (
                        _rarity(self._word_frequency(word), documents) / most
                        for word in self._exact.analyze(space_pairs(clean(text)))
                    ),
                    default=0.0,
                )
                for text in texts
            ]

    def respell(self, query: ParsedQuery) -> tuple[Respelling, ...]:
        """The words of a query that no document has, with the nearest ones that some have."""
        with self._guard:
            unknown = misspelt(query, lambda word: bool(self._word_frequency(word)))
            found = [
                Respelling(word=word, meant=self._meant(word), strict=strict)
                for word, strict in unknown
            ]
        return tuple(one for one in found if one.meant)

    def _meant(self, word: str) -> tuple[str, ...]:
        """The nearest words of the documents; none where nothing is near enough."""
        (folded, *rest) = self._exact.analyze(word) or [""]
        if rest or not folded.isalpha():
            return ()
        near = dict.fromkeys(one_edit_away(folded))
        found = best((one, count) for one in near if (count := self._frequency("exact", one)))
        if found or len(folded) < LONG_LETTERS:
            return found
        # Whether any document has a word two edits away: quicker than finding out which.
        from tantivy import Query as TantivyQuery

        query = TantivyQuery.fuzzy_term_query(self._schema, "exact", folded, distance=2)
        if not self._live().search(query, 1, count=False).hits:
            return ()
        terms = self._live().terms_with_prefix("exact", folded[0])
        return best(two_edits_away(folded, terms))

    def _word_frequency(self, word: str) -> int:
        """In how many documents a word is, as it is or else in another form."""
        if count := self._frequency("exact", word.lower()):
            return count
        return max((self._frequency("stem", stem) for stem in self._stems_of(word)), default=0)

    def _live(self) -> "tantivy.Searcher":
        if self._searcher is None:
            raise RuntimeError("this full-text reader is closed")
        return self._searcher

    def _ranked(self, query: "tantivy.Query | None", limit: int) -> list[Hit]:
        """Fetch beyond the limit until the scores drop, so that no tie is cut."""
        documents = self._live().num_docs
        if query is None or documents == 0:
            return []
        limit = min(limit, documents)
        fetch = min(documents, limit + _TIE_MARGIN)
        hits = self._top(query, fetch)
        while len(hits) == fetch < documents and hits[-1][1] == hits[limit - 1][1]:
            fetch = min(documents, fetch * 8)
            hits = self._top(query, fetch)
        return [hit for hit in hits if hit[1] >= hits[min(limit, len(hits)) - 1][1]]

    def _top(self, query: "tantivy.Query", limit: int) -> list[Hit]:
        searcher = self._live()
        found = searcher.search(query, limit, count=False).hits
        ids = searcher.fast_field_values("id", [address for _, address in found])
        hits: list[Hit] = []
        tied = math.inf
        for file_id, (score, _) in zip(ids, found, strict=True):
            if score < tied * (1 - _SAME_SCORE):
                tied = score
            if isinstance(file_id, int):
                hits.append((file_id, round(tied, _SCORE_DIGITS)))
        return hits

    def _compile(self, parsed: ParsedQuery) -> "tantivy.Query | None":
        """One boolean query, flat where it can be: tantivy skips faster through a flat one."""
        from tantivy import Occur
        from tantivy import Query as TantivyQuery

        occurs = {Need.OPTIONAL: Occur.Should, Need.EXCLUDED: Occur.MustNot}
        words = [clause.text for clause in parsed.clauses if clause.is_plain_word]
        parts = [(Occur.Should, query) for query in self._plain_words(words)]
        meant = " ".join(one for _, near in parsed.meant for one in near)
        parts += [(Occur.Should, query) for query in self._scored(meant, _MEANT_WEIGHT)]
        for clause in parsed.clauses:
            query = None if clause.is_plain_word else self._clause(clause)
            if query is not None:
                parts.append((occurs.get(clause.need, Occur.Must), query))
            elif clause.need in (Need.REQUIRED, Need.EXPECTED):
                return None
        if all(occur == Occur.MustNot for occur, _ in parts):
            return None
        return TantivyQuery.boolean_query(parts)

    def _clause(self, clause: Clause) -> "tantivy.Query | None":
        """What a clause with an operator matches; None where it has no word."""
        text = space_pairs(clean(clause.text))
        if clause.kind is Kind.PREFIX:
            from tantivy import Query as TantivyQuery

            words = self._exact.analyze(space_pairs(text))
            identifiers = identifiers_of(text)
            if len(words) > 1 and not identifiers:
                return TantivyQuery.phrase_prefix_query(self._schema, "exact", list(words))
            if not words:
                return None
            start = identifiers[0] if identifiers else words[0]
            pattern = re.escape(start) + ".*"
            everything = TantivyQuery.const_score_query(
                TantivyQuery.regex_query(self._schema, "exact", pattern), 1.0
            )
            expansions = self._live().terms_with_prefix("exact", start, limit=MAX_EXPANSIONS)
            return self._any_of([everything, *(self._term("exact", t, 1.0) for t, _ in expansions)])
        words = self._exact.analyze(text)[:MAX_PHRASE_WORDS]
        if clause.kind is Kind.PHRASE:
            return self._phrase(words)
        if found := self._present_identifiers(text):
            return self._term("exact", found[0], _IDENTIFIER_WEIGHT)
        if len(words) == 1 and clause.need in (Need.REQUIRED, Need.EXCLUDED):
            stems = [self._term("stem", stem, 1.0) for stem in self._stems_of(text)]
            return self._any_of([*stems, self._term("exact", words[0], _EXACT_WEIGHT)])
        return self._phrase(words)

    def _plain_words(self, words: list[str]) -> "list[tantivy.Query]":
        """The scored terms of the words without operators."""
        text = clean(" ".join(words))
        found = self._present_identifiers(space_pairs(text))
        if not found:
            phrases = [self._exact.analyze(word) for word in identifiers_of(text)[:MAX_TERMS]]
            queries = [self._phrase(words) for words in phrases if len(words) > 1]
            return [*[query for query in queries if query is not None], *self._scored(text, 1.0)]
        rarest = sorted(found, key=lambda word: self._frequency("exact", word))[:MAX_TERMS]
        whole = [self._term("exact", word, _IDENTIFIER_WEIGHT) for word in rarest]
        parts = [word for word in words if _holds_any(word, found)]
        rest = [word for word in words if not _holds_any(word, found)]
        return [
            *whole,
            *self._scored(clean(" ".join(rest)), 1.0),
            *self._scored(clean(" ".join(parts)), _PART_WEIGHT),
        ]

    def _present_identifiers(self, text: str) -> list[str]:
        """The identifiers of a query that some document has as a whole."""
        camel_words = [word.lower() for word in camel_words_of(text)]
        identifiers = dict.fromkeys([*identifiers_of(text), *camel_words])
        return [word for word in identifiers if self._frequency("exact", word)]

    def _scored(self, text: str, weight: float) -> "list[tantivy.Query]":
        """Terms in all fields for a text, each field cut to its rarest ones."""
        fields = {
            "stem": (self._stems_of(text), weight),
            "exact": (self._exact.analyze(space_pairs(text)), weight * _EXACT_WEIGHT),
        }
        if self._has_compounds:
            grams = grams_of(text, shortest=GRAM_CHARACTERS)
            fields["gram"] = (self._exact.analyze(" ".join(grams)), weight * _GRAM_WEIGHT)
        return [
            self._term(field, term, field_weight)
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
        counted = [(self._frequency(field, term), term) for term in dict.fromkeys(terms)]
        present = [(count, term) for count, term in counted if count]
        if field == "exact":
            most = self._live().num_docs * FREQUENT_SHARE
            present = [pair for pair in present if pair[0] <= most] or present
        if len(present) > MAX_TERMS:
            present = sorted(present)[:MAX_TERMS]
        return [term for _, term in present]

    def _frequency(self, field: str, term: str) -> int:
        """How many documents have a term; a few deleted ones count in those that many have."""
        count = self._counted.get((field, term))
        if count is None:
            count = int(self._live().doc_freq(field, term))
            if 0 < count <= self._deleted:
                found = self._live().search(self._term(field, term, 1.0), 1, count=True)
                # The library's stubs leave out this property of a result.
                count = found.count or 0  # type: ignore[attr-defined]
            if len(self._counted) >= _MOST_COUNTED:
                self._counted.clear()
            self._counted[field, term] = count
        return count

    def _term(self, field: str, term: str, weight: float) -> "tantivy.Query":
        from tantivy import Query as TantivyQuery

        option = "position" if field == "exact" else "freq"
        query = TantivyQuery.term_query(self._schema, field, term, index_option=option)
        return query if weight == 1.0 else TantivyQuery.boost_query(query, weight)

    def _phrase(self, words: list[str]) -> "tantivy.Query | None":
        """Words in this order, in the form they have; one word is a term."""
        from tantivy import Query as TantivyQuery

        if not words:
            return None
        if len(words) > 1:
            phrase = TantivyQuery.phrase_query(self._schema, "exact", list(words))
            return TantivyQuery.boost_query(phrase, _PHRASE_WEIGHT)
        # Of a script without spaces a single character is a term of the other field only.
        single = [self._term("stem", words[0], 1.0)] if space_singles(words[0]) != words[0] else []
        return self._any_of([self._term("exact", words[0], 1.0), *single])

    def _any_of(self, queries: "list[tantivy.Query]") -> "tantivy.Query | None":
        import tantivy

        if len(queries) < 2:
            return queries[0] if queries else None
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


@contextmanager
def _lockable(folder: str, stamp: Stamp) -> Iterator[str]:
    """The folder of a commit, or links to its files in a temporary one.

    tantivy makes a lock file to open an index, and takes a path in UTF-8 only. Once open, it needs
    only the mapped files.
    """
    path = os.path.join(folder, stamp.part())
    if is_utf8(path) and os.access(path, os.W_OK):
        yield path
        return
    import tempfile

    with tempfile.TemporaryDirectory() as links:
        for name, _, _ in stamp.files:
            source = os.path.abspath(os.path.join(folder, name))
            os.symlink(source, os.path.join(links, os.path.basename(name)))
        yield links


def _rarity(count: int, documents: int) -> float:
    """How rare a word is, as BM25 weighs it."""
    return math.log1p((documents - count + 0.5) / (count + 0.5))


def _holds_any(word: str, identifiers: list[str]) -> bool:
    lowered = word.lower()
    return any(identifier in lowered for identifier in identifiers)

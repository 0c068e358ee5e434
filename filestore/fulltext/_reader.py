"""Searching one commit of the index: the hits of a parsed query are ids with scores.

And the words of a query that no document has, with similar ones that some have: what is looked
up is the index's own vocabulary, so nothing else is needed and nothing is sent anywhere. One rule:
in doubt a word is right as typed: code, names of code, numbers, short words, abbreviations, and
scripts whose words are not separated, are not respelled.
"""

import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.spelling import edits
from filestore.fs.disk import Closing
from filestore.fs.path_names import is_utf8
from filestore.fulltext._analysis import (
    camel_words_of,
    clean,
    has_spaceless,
    identifiers_of,
    prepare,
    space_pairs,
)
from filestore.fulltext._compiler import Compiler, rarity_of
from filestore.fulltext._languages import grammar_of, without
from filestore.fulltext._query import MAX_CLAUSES, QUOTES, Clause, Kind, Need, ParsedQuery, relax
from filestore.fulltext._stamp import Stamp, TantivyGuard, require_files

if TYPE_CHECKING:
    import tantivy


MAX_VERIFIED_WORDS: Final = 1_000
_TIE_MARGIN: Final = 16
_SAME_SCORE: Final = 1e-6
"""Sums of 32-bit floats depend on their order by this share, and equal texts must tie."""
_SCORE_DIGITS: Final = 4

Hit = tuple[int, float]


_QUOTED: Final = re.compile(r'"([^"\s]+)"')
MIN_LETTERS: Final = 4
LONG_LETTERS: Final = 8
"""A word of this many letters may have two mistakes, a shorter one has one: of the ones spelt
as they should be, and are in no document, more than half are two edits from another word."""
MOST_OFFERED: Final = 3
_ABBREVIATION_LETTERS: Final = 5
"""Up to this many capitals are an abbreviation."""
_FEW: Final = 2
"""How many words may be unknown in any query; of a longer one a third: who asks in a language that
the store does not have makes no mistakes."""


class Respelling(Struct, frozen=True, kw_only=True):
    """A word that no document has, with the nearest that some have, the most frequent first."""

    word: str
    """As it was typed."""
    similar: tuple[str, ...]
    strict: bool
    """Whether it was typed so that nothing else may represent it: in quotes, or required."""


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
            # One word in quotes is no phrase, and still wanted as it is typed.
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
    loose = {one.word: one.similar for one in found if not one.strict}
    if not loose:
        return None
    clauses: list[Clause] = []
    for clause in query.clauses:
        found_in = [(word, near) for word, near in loose.items() if word in clause.text]
        word, near = found_in[0] if clause.is_plain_word and found_in else ("", ("",))
        texts = (clause.text.replace(word, one) if word else clause.text for one in near)
        clauses += (replace(clause, text=text) for text in texts)
    typed = query.typed
    for word, near in loose.items():
        typed = typed.replace(word, " or ".join(near))
    is_other = tuple(clauses) != query.clauses
    return replace(query, clauses=tuple(clauses), typed=typed) if is_other else None


def respelled(query: ParsedQuery, found: Iterable[Respelling]) -> ParsedQuery:
    """A query whose hits are ordered by some more words, too; what is strict stays as it is."""
    loose = tuple((one.word, one.similar) for one in found if not one.strict)
    return replace(query, respellings=loose)


class Reader(Closing):
    """One commit of the index, which it goes on reading whatever is written afterwards."""

    def __init__(self, searcher: "tantivy.Searcher", folder: str, stamp: Stamp) -> None:
        self._guard = TantivyGuard(folder)
        compiler = Compiler(searcher, stamp)
        self._compiler: Compiler | None = compiler
        self._exact, self._schema = compiler.exact, compiler.schema
        self.languages: Final = compiler.languages

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
            return cls(tantivy.Index.open(path).searcher(), folder, stamp)

    def close(self) -> None:
        """Let go of the files."""
        self._compiler = None

    def shut(self, ids: list[int]) -> None:
        """Find, count and offer nothing of some documents from now on."""
        with self._guard:
            self._live().shut(ids)

    def ids(self) -> set[int]:
        """The ids of all documents."""
        import tantivy

        with self._guard:
            searcher = self._live().searcher
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
            terms = [own, *(self._live().term("exact", word, 1.0) for word in distinct)]
            query = Query.boolean_query([(Occur.Must, term) for term in terms])
            return bool(self._live().searcher.search(query, 1, count=False).hits)

    def search(self, query: ParsedQuery, limit: int) -> list[Hit]:
        """The best documents for a query.

        Args:
            query: As `parse_query` gave it.
            limit: How many hits are wanted.

        Returns:
            Ids and scores, best first, equal scores in no order; what ties with the last one
            beyond the limit.
        """
        if limit < 1 or not query.wanted():
            return []
        with self._guard:
            compiled = self._live().compiled(query)
            documents = self._live().searcher.num_docs
            if compiled is None or documents == 0:
                return []
            limit = min(limit, documents)
            fetch = min(documents, limit + _TIE_MARGIN)
            hits = self._top(compiled, fetch)
            while len(hits) == fetch < documents and hits[-1][1] == hits[limit - 1][1]:
                fetch = min(documents, fetch * 8)
                hits = self._top(compiled, fetch)
            return [hit for hit in hits if hit[1] >= hits[min(limit, len(hits)) - 1][1]]

    def settled(self, query: ParsedQuery) -> ParsedQuery:
        """The query, its phrases being mere words if with the others nothing would be found."""
        relaxed = relax(query)
        return query if relaxed is None or self.search(query, 1) else relaxed

    def among(self, query: ParsedQuery, ids: Iterable[int]) -> set[int]:
        """Those of some documents that the query finds."""
        from tantivy import Occur, Query

        own = list(ids)
        with self._guard:
            compiled = self._live().compiled(query) if own else None
            if compiled is None:
                return set()
            # A query by term takes a number for a signed one and silently finds nothing.
            only = Query.term_set_query(self._schema, "id", own)
            both = Query.boolean_query([(Occur.Must, only), (Occur.Must, compiled)])
            return {one for one, _ in self._top(both, len(own))}

    def matching(self, clause: Clause) -> set[int]:
        """The ids of all documents that a required clause demands, or an excluded one hides."""
        with self._guard:
            query = self._live().clause(clause)
            documents = self._live().searcher.num_docs
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
        text = without(grammar_of(query, self.languages), text)
        words = dict.fromkeys(self._exact.analyze(space_pairs(text)))
        camel_words = {word.lower(): word for word in camel_words_of(text)}
        with self._guard:
            documents = self._live().searcher.num_docs
            frequency = self._live().word_frequency
            folded = self._exact.analyze
            similar = {" ".join(folded(clean(word))): near[0] for word, near in query.respellings}
            counted = [frequency(similar.get(word, camel_words.get(word, word))) for word in words]
            prefixes = [self._live().clause(one) for one in wanted if one.kind is Kind.PREFIX]
            searcher = self._live().searcher
            counted += [
                searcher.search(query, 1, count=True).count or 0 if query is not None else 0
                for query in prefixes
            ]
        rarity = [rarity_of(count, documents) for count in counted]
        known = sum(weight for weight, count in zip(rarity, counted, strict=True) if count)
        return known / sum(rarity) if rarity else 1.0

    def rarity(self, texts: Sequence[str]) -> list[float]:
        """How much each of some words tells, 0 to 1: 1 for one that no document has.

        Of a text of several words it is the rarest that counts.
        """
        with self._guard:
            documents = self._live().searcher.num_docs
            most = rarity_of(0, documents) or 1.0
            return [
                max(
                    (
                        rarity_of(self._live().word_frequency(word), documents) / most
                        for word in self._exact.analyze(space_pairs(clean(text)))
                    ),
                    default=0.0,
                )
                for text in texts
            ]

    def respell(
        self, query: ParsedQuery, is_spelt: Callable[[str], bool] | None = None
    ) -> tuple[Respelling, ...]:
        """The words of a query that no document has, with the nearest ones that some have.

        Args:
            query: As `parse_query` gave it.
            is_spelt: Tells words that are no mistake, though no document has them.
        """
        with self._guard:
            grammar, known = grammar_of(query, self.languages), self._live().word_frequency
            unknown = misspelt(
                query,
                lambda word: (
                    word in grammar
                    or bool(known(word))
                    or (is_spelt is not None and is_spelt(word))
                ),
            )
            found = [
                Respelling(word=word, similar=self._similar(word), strict=strict)
                for word, strict in unknown
            ]
        return tuple(one for one in found if one.similar)

    def _similar(self, word: str) -> tuple[str, ...]:
        """The nearest words of the documents; none where nothing is near enough."""
        (folded, *rest) = self._exact.analyze(word) or [""]
        if rest or not folded.isalpha():
            return ()
        edited = dict.fromkeys(one_edit_away(folded))
        found = best(
            (one, count) for one in edited if (count := self._live().frequency("exact", one))
        )
        if found or len(folded) < LONG_LETTERS:
            return found
        # Whether any document has a word two edits away: quicker than finding out which.
        from tantivy import Query as TantivyQuery

        query = TantivyQuery.fuzzy_term_query(self._schema, "exact", folded, distance=2)
        if not self._live().searcher.search(query, 1, count=False).hits:
            return ()
        terms = self._live().searcher.terms_with_prefix("exact", folded[0])
        near = two_edits_away(folded, terms)
        return best(one for one in near if self._live().frequency("exact", one[0]))

    def _live(self) -> Compiler:
        if self._compiler is None:
            raise RuntimeError("this full-text reader is closed")
        return self._compiler

    def _top(self, query: "tantivy.Query", limit: int) -> list[Hit]:
        searcher = self._live().searcher
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

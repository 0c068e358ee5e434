"""Measuring a store: questions with known answers, asked in every mode and of a plain ``grep``.

Reads; changes nothing. One rule: a mode that cannot answer has no figures, and says why; another
mode's answers are never in its column.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from filestore.chunks import chunk_file
from filestore.chunks.observation import MAX_CHUNK_BYTES
from filestore.config.layout import Places
from filestore.core.errors import FilestoreError
from filestore.core.findings import FromIndex
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.schema import JsonObject
from filestore.fs import disk
from filestore.search import Mode, Query
from filestore.search.answer import Answer, Hit
from filestore.search.metrics import (
    Chunk,
    Difference,
    Goal,
    Judged,
    Question,
    Scores,
    chunks_of,
    goals_of,
    judge,
    mean,
    paired_difference,
    score,
)
from filestore.sidecar.session import Parts

Column = Literal["grep", "keyword", "vector", "hybrid"]
_RESPELLED: Final = "some words are in no document: they may be misspelt"
RETRIEVERS: Final[tuple[Mode, ...]] = ("keyword", "vector")
MODES: Final[tuple[Mode, ...]] = (*RETRIEVERS, "hybrid")
_WORDS_STAY: Final = (
    "comparing: without questions their vectors are left out; the full-text index keeps their words"
)
COLUMNS: Final[tuple[Column, ...]] = ("grep", *MODES)

GREP_LETTERS: Final = 4
"""Shorter words are not looked for where a question has longer ones."""
_WORD: Final = re.compile(r"\w+")


class Searching(Protocol):
    """What is measured: a store, or anything that answers like one."""

    def search(self, query: Query, /) -> Answer:
        """Unique files, best first."""


class QuestionResult(JsonObject, Struct, frozen=True, kw_only=True, rename={"scores": "modes"}):
    """One question in every mode that could answer."""

    KEYS = "question.id question.line question.query scores unwanted"

    question: Question
    scores: Mapping[Column, Scores]
    """Its scores in each mode."""
    came: Mapping[Column, tuple[str, ...]] = {}

    @property
    def unwanted(self) -> Mapping[Column, tuple[str, ...]] | UnsetType:
        """What of its `not` was among the first k, in each mode; of a question that has one."""
        return self.came if self.question.unwanted else UNSET


class Unwanted(JsonObject, Struct, frozen=True, kw_only=True):
    """How much came that must not come."""

    KEYS = "count named rate"

    count: int
    """How many of them were among the first k."""
    named: int
    """How many the questions name with `not`."""

    @property
    def rate(self) -> float:
        """One by the other."""
        return self.count / self.named


class Comparison(JsonObject, Struct, frozen=True, kw_only=True):
    """Both retrievers together against the better one, by nDCG."""

    KEYS = "measure against difference difference.interval_95"

    against: Mode
    """The better single ranking: `keyword` or `vector`."""
    difference: Difference
    measure: str = "ndcg"
    """`ndcg`."""

    @property
    def json_difference(self) -> float:
        """Of the means."""
        return self.difference.mean


class Compared(Struct, frozen=True, kw_only=True):
    """What hybrid search is compared with and without, besides questions and summaries."""

    rewrite: int = 3
    """How many new queries; 0 for no such comparison."""
    rerank: str = "cross-encoder"
    """The reranker; "" for none."""


class Variant(JsonObject, Struct, frozen=True, kw_only=True):
    """A way to answer the questions, apart from the plain one, without questions and summaries."""

    KEYS = "name scores difference against_plain.interval_95 milliseconds tokens"

    name: str
    """`plain`: without questions and summaries; with `questions`, `summaries` or `both`; both with
    `rewrite` or `rerank`."""
    scores: Scores | None
    """The means; None where it cannot answer, which `notes` explains."""
    against_plain: Difference | None
    """By nDCG; None of the plain one, and of one that cannot answer."""
    milliseconds: float
    """What a query takes here, on average."""
    tokens: float
    """What a service counted for a query, on average."""

    @property
    def difference(self) -> float | None:
        """From the plain one, by nDCG; None for that one."""
        return self.against_plain.mean if self.against_plain else None


class Evaluation(FromIndex, frozen=True, kw_only=True, rename={"count": "k"}):
    """What a store made of a set of questions."""

    KEYS = "queries count modes unwanted hybrid compared notes behind per_query"
    SPARSE = "compared per_query"

    count: int
    """How many places were looked at."""
    modes: Mapping[Column, Scores | None]
    """`grep`, `keyword`, `vector` and `hybrid` with their means; None where a mode cannot
    answer."""
    unwanted: Mapping[Column, Unwanted] | UnsetType = UNSET
    """What came that must not come, in each mode that could answer; where a question has `not`."""
    hybrid: Comparison | None
    """Hybrid search compared with the better single ranking; None where a mode is missing."""
    results: tuple[QuestionResult, ...]
    notes: tuple[str, ...]
    """What to know about these figures."""
    compared: tuple[Variant, ...] = ()
    """Hybrid search with and without what there is besides chunks; with `--compare`."""
    per_query: tuple[QuestionResult, ...] = ()
    """Each question; with `--per-query`."""

    @property
    def queries(self) -> int:
        """How many questions were asked."""
        return len(self.results)

    def __iter__(self) -> Iterator[QuestionResult]:
        return iter(self.results)


def evaluate(
    searching: Searching,
    parts: Parts,
    questions: Sequence[Question],
    way: Query,
    *,
    columns: Sequence[Column] = COLUMNS,
    compared: Compared | None = None,
    on_progress: OnProgress = ignore,
) -> Evaluation:
    """Ask every question in every mode, and score the rankings.

    Where answers are named by source or document, the ranking is one of sources or documents, each
    where its best chunk is.

    Args:
        searching: What answers.
        parts: Of the store that it searches.
        questions: At least one.
        way: How each is asked, but for its text and the mode; `k` places are looked at.
        columns: Which modes are asked, and ``grep``.
        compared: What else hybrid search is asked with and without; None for no comparison.
        on_progress: Called with the progress.

    Raises:
        UnknownRelevantError: A right answer is not in the store.
        UsageError: More new queries are wanted for a comparison than are asked.
    """
    ways = _ways(replace(way, mode="hybrid"), compared) if compared else {}
    tree = parts.places.tree
    with parts.reading() as catalog:
        chunks = chunks_of(tree, catalog)
        goals = goals_of(tree, chunks, catalog.sources_of_resources(), questions)
        notes = [
            f"line {one.line}: {name!r} in 'not' is nothing in the store"
            for one, goal in zip(questions, goals, strict=True)
            for name in one.unwanted
            if name not in goal.unwanted.values()
        ]
        asked: dict[Column, list[Scores] | None] = {}
        came: dict[Column, list[tuple[str, ...]]] = {}
        for column in columns:
            if column == "grep":
                judged: Iterator[Judged[Any]] = _by_grep(parts.places, chunks, goals, way.k, notes)
            else:
                judged = _by_mode(searching.search, replace(way, mode=column), goals, notes)
            found = _scored(judged, goals, f"asking {column}", on_progress, notes)
            asked[column] = [scores for scores, _ in found] if found is not None else None
            came[column] = [names for _, names in found or ()]
        answered = {column: scores for column, scores in asked.items() if scores is not None}
        variants = tuple(_variants(searching.search, ways, goals, on_progress, notes))
    return Evaluation(
        count=way.k,
        modes={column: mean(scores) if scores else None for column, scores in asked.items()},
        unwanted=_unwanted(questions, {by: came[by] for by in answered}),
        hybrid=_compared(answered),
        results=tuple(_results(questions, answered, came)),
        compared=variants,
        notes=tuple(dict.fromkeys(notes)),
    )


def _results(
    questions: Sequence[Question],
    answered: Mapping[Column, Sequence[Scores]],
    came: Mapping[Column, Sequence[tuple[str, ...]]],
) -> Iterator[QuestionResult]:
    for place, one in enumerate(questions):
        yield QuestionResult(
            question=one,
            scores={by: scores[place] for by, scores in answered.items()},
            came={by: came[by][place] for by in answered},
        )


def _unwanted(
    questions: Sequence[Question], came: Mapping[Column, Sequence[Sequence[str]]]
) -> dict[Column, Unwanted] | UnsetType:
    named = sum(len(one.unwanted) for one in questions)
    if not named:
        return UNSET
    return {by: Unwanted(count=sum(map(len, came[by])), named=named) for by in came}


def _compared(answered: Mapping[Column, Sequence[Scores]]) -> Comparison | None:
    if not answered.keys() >= set(MODES):
        return None
    ndcg = {column: [one.ndcg for one in answered[column]] for column in MODES}
    better = max(RETRIEVERS, key=lambda one: sum(ndcg[one]))
    return Comparison(against=better, difference=paired_difference(ndcg["hybrid"], ndcg[better]))


# Asking


_Ask = Callable[[Query], Answer]


class NoAnswerError(FilestoreError):
    """What is asked cannot answer in this mode; its message says why."""


class Asked:
    """One way to ask, which answers in the mode that it is asked in, or not at all."""

    def __init__(self, ask: _Ask) -> None:
        self._ask = ask
        self.answer: Answer | None = None
        """The last one."""

    def hits(self, query: Query) -> Sequence[Hit]:
        """Ask.

        Raises:
            NoAnswerError: Another mode answered.
        """
        self.answer = answer = self._ask(query)
        if answer.mode != query.mode:
            raise NoAnswerError("; ".join(answer.notes) or f"the store searches by {answer.mode}")
        return answer.hits


def _scored(
    judged: Iterator[Judged[Any]],
    goals: Sequence[Goal],
    stage: str,
    on_progress: OnProgress,
    notes: list[str],
) -> list[tuple[Scores, tuple[str, ...]]] | None:
    """The scores of one mode, and what must not come, by question; None where it cannot answer."""
    scores: list[tuple[Scores, tuple[str, ...]]] = []
    try:
        for one in judged:
            assert one.scores is not None
            scores.append((one.scores, one.unwanted))
            on_progress(Progress(stage=stage, done=len(scores), total=len(goals)))
    except NoAnswerError as error:
        notes.append(error.message)
        return None
    return scores


def _by_mode(
    ask: _Ask, way: Query, goals: Iterable[Goal], notes: list[str]
) -> Iterator[Judged[Hit]]:
    """Each question, answered by as many unique things as are looked at, or by all there are."""
    mode, asked = way.mode, Asked(ask)
    for goal in goals:
        try:
            found = judge(asked.hits, replace(way, text=goal.query), goal)
        except FilestoreError as error:
            if mode == "keyword" and not isinstance(error, NoAnswerError):
                raise
            raise NoAnswerError(f"{mode}: not measured: {error.message}") from error
        if (answer := asked.answer) is not None:
            own = [_RESPELLED if one in answer.on_spelling else one for one in answer.notes]
            own += [_RESPELLED] if answer.respelt else []
            notes += [f"{mode}: {note}" for note in own]
        yield found


# With and without


class _Timed:
    """A way to ask, with what its queries took."""

    def __init__(self, ask: _Ask, count: int) -> None:
        self._ask = ask
        self._count = count
        self.seconds = 0.0
        self.tokens = 0

    def __call__(self, query: Query) -> Answer:
        """Ask; where more hits are needed to fill the ranking, that is not counted again."""
        started = time.perf_counter()
        answer = self._ask(query)
        if query.k == self._count:
            self.seconds += time.perf_counter() - started
            self.tokens += answer.tokens
        return answer


def _ways(way: Query, compared: Compared) -> dict[str, Query]:
    """With and without what there is besides chunks, the plain one first."""
    ways = {
        "plain": replace(way, without=("questions", "summaries")),
        "questions": replace(way, without=("summaries",)),
        "summaries": replace(way, without=("questions",)),
        "both": way,
    }
    if compared.rewrite:
        ways["rewrite"] = replace(way, rewrite=compared.rewrite)
    if compared.rerank:
        ways["rerank"] = replace(way, rerank=compared.rerank)
    return ways


def _variants(
    ask: _Ask,
    ways: Mapping[str, Query],
    goals: Sequence[Goal],
    on_progress: OnProgress,
    notes: list[str],
) -> Iterator[Variant]:
    """How good each way is, against the first of them."""
    if ways:
        notes.append(_WORDS_STAY)
    plain: list[float] = []
    plainly: set[str] = set()
    for name, way in ways.items():
        own: list[str] = []
        timed = _Timed(ask, way.k)
        judged = _by_mode(timed, way, goals, own)
        found = _scored(judged, goals, f"comparing {name}", on_progress, own)
        scores = [one for one, _ in found or ()]
        # What a query was made into is a note of each; here it would drown all else.
        new = [note for note in own if note not in plainly and "also asked: " not in note]
        notes += [f"{name}: {note.removeprefix('hybrid: ')}" for note in new]
        ndcg = [one.ndcg for one in scores]
        if name == "plain":
            plain, plainly = ndcg, set(own)
        yield Variant(
            name=name,
            scores=mean(scores) if scores else None,
            against_plain=paired_difference(ndcg, plain) if ndcg and name != "plain" else None,
            milliseconds=1000 * timed.seconds / len(goals),
            tokens=timed.tokens / len(goals),
        )


# grep


def _by_grep(
    places: Places, chunks: Sequence[Chunk], goals: Iterable[Goal], count: int, notes: list[str]
) -> Iterator[Judged[Chunk]]:
    """What a person has without an index: ``grep -i`` for each word, the files laid together.

    A file comes before another if it has more of the words, then if it has them more often, then
    by path. A word is found within words, as grep does. Words of fewer than four letters are left
    out where there are longer ones, as a person would leave out "the" and "der": on questions of
    two languages that gained 6 and 9 points of nDCG@10, and needs no list of words.
    """
    texts: dict[StorePath, str] = {}
    with disk.folder_at(places.chunked) as handle:
        for chunk in chunks:
            try:
                data, _ = disk.read_below(
                    handle, places.tree.chunk_path(chunk.path), most=MAX_CHUNK_BYTES
                )
                texts[chunk.path] = chunk_file.parse(data).body
            except (OSError, FilestoreError):
                continue
    if len(texts) < len(chunks):
        notes.append(f"grep: {len(chunks) - len(texts):,} chunk files cannot be read")
    grep = Grep({chunk.path: texts[chunk.path] for chunk in chunks if chunk.path in texts})
    by_path = {chunk.path: chunk for chunk in chunks}
    for goal in goals:
        found = [by_path[path] for path in grep.search(goal.query)]
        scores = score(goal.ranking(found), goal.grades, count)
        yield Judged(hits=found[:count], scores=scores, unwanted=goal.came(found, count))


class Grep:
    """Texts searched for words, without an index."""

    def __init__(self, texts: Mapping[StorePath, str]) -> None:
        self._texts = {path: text.casefold() for path, text in texts.items()}
        self._rare: dict[str, dict[StorePath, int]] = {}
        """What was found of words that few texts have; common words would fill the memory."""

    def search(self, query: str) -> list[StorePath]:
        """The paths of the texts with any word of a query: most words first, then most often."""
        words: Counter[StorePath] = Counter()
        times: Counter[StorePath] = Counter()
        typed = list(dict.fromkeys(_WORD.findall(query.casefold())))
        for word in [word for word in typed if len(word) >= GREP_LETTERS] or typed:
            found = self._rare.get(word)
            if found is None:
                # Within other words, too.
                texts = self._texts.items()
                found = {path: text.count(word) for path, text in texts if word in text}
                if len(found) * 10 <= len(texts):
                    self._rare[word] = found
            words.update(found.keys())
            times.update(found)
        return sorted(words, key=lambda path: (-words[path], -times[path], path))

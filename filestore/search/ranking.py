"""Rankings weighed against each other, why each text has its place, and what leads to a text.

Scores of different rankings (BM25, cosine) cannot be compared as they are; how far an item rises
above the crowd of its own ranking can. One rule: the result depends on the scores and weights
alone, never on the order in which rankings or items are given; equal scores are ordered by item.

Questions of a text lead to it, and so do the summaries above it, and the tree of these from the
top. What leads never ranks above what it leads to. In place a question lies in a file of its own;
what it was made from is known by its hash, and where that text is gone, it finds nothing.
"""

import math
from bisect import insort
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from filestore.catalog import Catalog, file_of_text, part_of_text, summaries, text_id
from filestore.chunks.observation import DOCUMENT
from filestore.core.paths import QUESTIONS, SUMMARIES, ChunkPath, is_made, made_of

if TYPE_CHECKING:
    from filestore.sidecar.summary_tree import SummaryTree


DEPTH: Final = 50
"""How many items of a ranking, at least, should be given: the last of them represents the crowd."""

_LEADERS: Final = 10
"""How many of the first may be what was sought; the crowd is measured on those behind them."""
_FEWEST: Final = 20
"""A shorter ranking has no crowd to measure."""
_CLEAR: Final = 10.0
"""The evidence for the best item where there is no crowd: about that of a plain hit where there is
one, and more than twice that of the best of fifty by chance (ln 50)."""
_MOST: Final = 50.0
"""The most evidence there is: beyond it a crowd of equals makes any difference look immense."""
_WHOLE_SHARE: Final = 0.4
"""Of the evidence for a part of something: so much is that of the whole.

Over the tuning halves of forty sets of questions it is worth .008 of nDCG@10: none .6976, .3 .7037,
.4 .7057, .5 .7054. The BM25 of whole documents in its place is worth .003."""
MOST_PARTS: Final = 10
"""How many parts of a whole count, the best of them: what is long need not be about one thing."""
_RANK_CONSTANT: Final = 60


class _Sortable(Hashable, Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=_Sortable)


class Ranking(Struct, Generic[K], frozen=True, kw_only=True):
    """The items that one way of searching found."""

    scored: Sequence[tuple[K, float]]
    """Items and scores, larger is better; of an item that occurs twice the better score."""
    weight: float = 1.0
    """The say of the ranking, not negative; with 0 it is left out."""
    floor: float | None = None
    """The score of whatever a ranking shorter than `DEPTH` does not list; None where it lists
    everything there is, so that its own last item is the floor."""
    clear: float = 1.0
    """How clearly its best item answers, 0 to 1; it counts where there is no crowd to measure."""


class Part(Struct, frozen=True, kw_only=True):
    """What one ranking says about an item."""

    rank: int
    """From 1; equal scores share the better place."""
    score: float
    """As the ranking gave it."""
    evidence: float
    """How far it rises above others, 0 to 50. Of a crowd, one in e is expected above 1, one in e²
    above 2, and so on. Of a part of a whole, what the others of its parts add is in it."""
    points: float
    """What this adds to the fused score."""


class Fused(Struct, Generic[K], frozen=True, kw_only=True):
    """One item of a merged ranking, and why it is where it is."""

    item: K
    score: float
    """The sum of the points; comparable within one fusion only."""
    parts: Mapping[str, Part]
    """By the name of each ranking that found the item."""


def fuse(
    rankings: Mapping[str, Ranking[K]], wholes: Mapping[K, tuple[Hashable, int]] | None = None
) -> list[Fused[K]]:
    """Merge rankings by how far items rise above the others of each, best first.

    The scores of what does not answer a query fall off exponentially near the top (Manmatha, Rath
    and Feng, "Modeling Score Distributions for Combining the Outputs of Search Engines", SIGIR
    2001; for any tail: Pickands, "Statistical Inference Using Extreme Order Statistics", 1975). The
    scores behind the first few give the scale of that fall, and the distance to the last of the
    first `DEPTH`, divided by the scale, is the evidence for an item: the logarithm of how unlikely
    its score is by chance. A ranking that knows nothing has no item that rises, and so little
    to say about this query, whatever it has to say about others.

    An item gets, from every ranking, ``weight * (evidence + 1 / (60 + rank))``. The second term
    only keeps the order of what does not rise; it is the whole of reciprocal rank fusion
    (Cormack, Clarke and Büttcher, SIGIR 2009), which therefore remains where nothing does.

    Where an item is a part of a whole, a share of its evidence is the mean of that of the best
    parts of the whole, of which the ones that a ranking does not list have none.

    Args:
        rankings: By name.
        wholes: Of an item that is a part, what it is a part of, and how many parts that has, of
            which more than `MOST_PARTS` count as that many.

    Raises:
        ValueError: A weight is negative or not finite, or a score is not finite.
    """
    parts: dict[K, dict[str, Part]] = {}
    for name, ranking in sorted(rankings.items()):
        if not 0 <= ranking.weight < math.inf:
            raise ValueError(f"the weight of {name!r} must be 0 or more, found {ranking.weight}")
        if not all(math.isfinite(score) for _, score in ranking.scored):
            raise ValueError(f"a score of {name!r} is not finite")
        if ranking.weight > 0:
            for item, part in _parts(ranking, wholes or {}):
                parts.setdefault(item, {})[name] = part
    fused = [
        # fsum rounds once, so that mirrored places tie exactly whatever the number of rankings.
        Fused(item=item, score=math.fsum(part.points for part in found.values()), parts=found)
        for item, found in parts.items()
    ]
    fused.sort(key=lambda one: one.item)
    fused.sort(key=lambda one: one.score, reverse=True)
    return fused


def _parts(ranking: Ranking[K], wholes: Mapping[K, tuple[Hashable, int]]) -> list[tuple[K, Part]]:
    best: dict[K, float] = {}
    for item, score in ranking.scored:
        best[item] = max(score, best.get(item, score))
    scored = sorted(best.items(), key=lambda pair: pair[1], reverse=True)
    threshold, scale = _crowd([score for _, score in scored], ranking.floor, ranking.clear)
    heights = [max(0.0, score - threshold) / scale if scale > 0 else 0.0 for _, score in scored]
    together: dict[Hashable, list[float]] = {}
    for (item, _), own in zip(scored, heights, strict=True):
        if item in wholes:
            together.setdefault(wholes[item][0], []).append(own)
    found: list[tuple[K, Part]] = []
    rank, before = 1, math.inf
    for place, ((item, score), evidence) in enumerate(zip(scored, heights, strict=True), 1):
        if score < before:
            rank, before = place, score
        if item in wholes:
            whole, count = wholes[item]
            count = min(count, MOST_PARTS)
            mean = math.fsum(together[whole][:count]) / count
            evidence = (1 - _WHOLE_SHARE) * evidence + _WHOLE_SHARE * mean
        points = ranking.weight * (evidence + 1 / (_RANK_CONSTANT + rank))
        found.append((item, Part(rank=rank, score=score, evidence=evidence, points=points)))
    return found


def _crowd(scores: Sequence[float], floor: float | None, clear: float) -> tuple[float, float]:
    """The score where evidence begins, and how much more of it makes one unit of evidence."""
    if not scores:
        return 0.0, 0.0
    top = scores[:DEPTH]
    is_cut = floor is None or len(scores) >= DEPTH
    threshold = top[-1] if is_cut or floor is None else min(floor, top[-1])
    height = top[0] - threshold
    if not is_cut or len(top) < _FEWEST:
        return threshold, height / (_CLEAR * clear) if clear > 0 else 0.0
    behind = top[_LEADERS:]
    # The mean excess is the maximum-likelihood scale of an exponential tail.
    return threshold, max(math.fsum(behind) / len(behind) - threshold, height / _MOST)


Why = dict[str, dict[str, float]]
"""Retriever to its rank, its score, and what these count for in this search."""
Text = tuple[ChunkPath, int]
"""A text that answers: a file, and in place the section of it; a chunk file is one text."""
Retrieved = list[tuple[Text, float]]
"""Texts with their score, best first."""
Ranked = tuple[Text, float, Callable[[], Why]]
"""A text, its score, and what tells why: only the ones that are shown are explained."""
Item = TypeVar("Item", bound=Any)
LEXICAL_FLOOR: Final = 0.15
"""Below this a text that keywords missed shares too little to be worth showing with theirs."""
VECTOR_WEIGHT: Final = 1.1
"""The weight of a vector retriever that knows meaning, where the keyword retriever has 1 and the
model knows the language of the question.

A model that does not know the language of a text still finds some that rise a little. Over
forty sets of questions this is worth .007 of nDCG@10 over .9 whatever the language."""
LEXICAL_WEIGHT: Final = 0.1
"""The weight of a vector retriever that compares words only, as the keyword retriever does.

It decides near ties and adds what keywords miss (misspellings, parts of words). Over 18 sets of
questions it cost at most 0.1 points of nDCG@10 and gained 0.4."""

REWRITTEN_WEIGHT: Final = 0.1
"""The weight of all rewritten queries together: they decide near ties and add what is not found.

Over XQuAD, three of the extractive generator each, nDCG@10 is .000 (en), -.002 (de) and -.001 (zh)
against the typed query alone; with 0.5 other queries lost .008 to .012."""

CLEAR_MEANING: Final = 0.5
"""In a few texts the nearest one answers for certain where it is so near; a word counts more than
the nearest of a few that have nothing to do with the question."""

QUESTION_SHARE: Final = 0.3
"""What a question of a text adds to its score: so much of what it is nearer to the query.

A short text is near to whatever else is short. With the whole of it, three questions a text cost
hybrid search .004 to .006 of nDCG@10 on XQuAD with a MiniLM, with a share .001 to .002."""
_ASKED_SO: Final = (0.85, 0.95)
"""Between these cosines the share rises to the whole: that is what was asked, word for word."""

KNOWN_POWER: Final = 0.5
"""The keyword retriever's weight is the share of the question that the documents have words for,
to this power: of a question in another language it knows a name or two, and is sure of them.
"""


def fuse_rankings(
    rankings: Mapping[str, list[tuple[Item, float]]],
    *,
    lexical: bool,
    known: float = 1.0,
    fluency: float = 1.0,
    meaning: float = 1.0,
    wholes: Mapping[Item, tuple[Hashable, int]] | None = None,
) -> list[Fused[Item]]:
    """Rankings as one: ``keyword``, ``vector``, and those of rewritten queries under other names.

    Args:
        rankings: Each with the `DEPTH` best, or all it found; any may be empty.
        lexical: Whether the vectors compare words only.
        known: How much of the query's words the documents have, 0 to 1.
        fluency: How well the model knows the query's language, 0 to 1.
        meaning: How near the best of the vectors is, 0 to 1.
        wholes: What items are parts of, as `fuse` takes it.
    """
    weights = {
        "keyword": known**KNOWN_POWER,
        "vector": LEXICAL_WEIGHT if lexical else VECTOR_WEIGHT * fluency,
    }
    # What keywords do not find shares no word with the query, and so scores 0.
    floors = {"keyword": 0.0, "vector": LEXICAL_FLOOR if lexical else None}
    clear = {"vector": min(1.0, meaning / CLEAR_MEANING)}
    rewritten = REWRITTEN_WEIGHT / max(1, len(rankings.keys() - weights.keys()))
    return fuse(
        {
            name: Ranking(
                scored=scored,
                weight=weights.get(name, rewritten),
                floor=floors.get(name),
                clear=clear.get(name, 1.0),
            )
            for name, scored in rankings.items()
        },
        wholes,
    )


def with_question(text: float, question: float) -> float:
    """The score of a text by vectors, of which a question is nearer to the query, or not."""
    least, sure = _ASKED_SO
    near = min(1.0, max(0.0, (question - least) / (sure - least)))
    return text + (QUESTION_SHARE + (1 - QUESTION_SHARE) * near) * max(0.0, question - text)


def leads(why: Mapping[str, Mapping[str, float]]) -> str:
    """The retriever that had the most to say for a text; "" where none is named."""
    return max(why, key=lambda name: why[name].get("points", 0.0), default="")


def explained(fused: Sequence[Fused[Text]]) -> list[Ranked]:
    """Texts, scores, and what each ranking found, with how much it had to say at all."""
    best: dict[str, float] = {}
    for one in fused:
        for retriever, part in one.parts.items():
            best[retriever] = max(part.points, best.get(retriever, 0.0))
    total = sum(best.values())
    confidence = {retriever: points / total for retriever, points in best.items()}
    return [(one.item, one.score, partial(_why, one, confidence)) for one in fused]


def _why(one: Fused[Text], confidence: Mapping[str, float]) -> Why:
    return {
        retriever: {
            "rank": part.rank,
            "score": part.score,
            "evidence": part.evidence,
            "points": part.points,
            "confidence": confidence[retriever],
        }
        for retriever, part in one.parts.items()
    }


def why_of_one(retriever: str, rank: int, score: float) -> Why:
    """What there is to say where one ranking alone was asked."""
    return {retriever: {"rank": rank, "score": score}}


LISTED_SHARE: Final = 0.25
"""Of the score of a list, where the words are not in its names: behind whatever is a text."""


def demoted(score: float, named: float) -> float:
    """The score of a list.

    Args:
        score: As it was found.
        named: How much of what is asked is in its names, 0 to 1.
    """
    return min(score, score * (LISTED_SHARE + (1 - LISTED_SHARE) * named))


def put_back(lists: list[Ranked], ranked: Ranked) -> None:
    """Keep a list for its place in the order, worst first."""
    insort(lists, ranked, key=lambda one: one[1])


def merged(ranked: Sequence[Ranked], lists: list[Ranked], *, is_last: bool) -> Iterator[Ranked]:
    """Texts in order, with the lists that are put back meanwhile.

    Args:
        ranked: Best first.
        lists: Worst first; emptied from behind.
        is_last: Whether lists follow where no text is left.
    """
    for one in ranked:
        while lists and lists[-1][1] > one[1]:
            yield lists.pop()
        yield one
    while is_last and lists:
        yield lists.pop()


_Scored = tuple[int, float, int]


def questions_of(catalog: Catalog, files: Collection[int]) -> set[int]:
    """The files of questions that lead to some documents in place."""
    paths = catalog.indexed_paths(list(files)).values()
    there = catalog.files(
        [ChunkPath(f"{SUMMARIES}/{path}/{QUESTIONS}") for path in paths if not is_made(path)]
    )
    return {row.id for row in there.values()}


class Leading:
    """Leads from texts of a store in place to the ones that are shown; of one generation."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._has_made = catalog.has_below(ChunkPath(SUMMARIES))
        self._sections: dict[int, list[int | None]] = {}

    def led(self, scored: Sequence[_Scored]) -> list[_Scored]:
        """What is shown for some texts, best first: text id, score, and number of the question.

        Args:
            scored: The same of what was found; of documents and summaries the last is the part.
        """
        if not self._has_made:
            return [(text, score, 0) for text, score, _ in scored]
        files = dict.fromkeys(file_of_text(text) for text, _, _ in scored)
        paths = self._catalog.indexed_paths(list(files))
        led: list[_Scored] = []
        for text, score, part in scored:
            path = paths.get(file_of_text(text))
            shown = None if path is None else self._shown(text, path)
            if path is not None and shown is not None:
                is_section = not is_made(path)
                number = 1 + part if path.endswith(f"/{QUESTIONS}") else part
                led.append((shown, score, 0 if is_section else number))
        return led

    def _shown(self, text: int, path: ChunkPath) -> int | None:
        if not is_made(path):
            return text
        file, part = file_of_text(text), part_of_text(text)
        if not path.endswith(f"/{QUESTIONS}"):
            return file
        if file not in self._sections:
            self._sections[file] = self._read(file, path)
        sections = self._sections[file]
        return sections[part] if part < len(sections) else None

    def _read(self, file: int, path: ChunkPath) -> list[int | None]:
        """What each question of a file leads to."""
        from filestore.chunks import kept, questions_file

        chunk = kept.read(self._catalog.content(file) or b"")
        if chunk.kind != questions_file.KIND:
            return [file for _ in range(1 + len(chunk.questions))]
        document = made_of(path)
        row = self._catalog.files([document]).get(document)
        if row is None or row.kind != DOCUMENT:
            return []
        parts: dict[bytes, int] = {}
        for part, key in enumerate(summaries.section_keys(self._catalog, row.id)):
            parts.setdefault(key, text_id(row.id, part))
        return [parts.get(key) for key in questions_file.keys_of(chunk.body)]


def collapse(
    ranked: "Sequence[Ranked]",
    summaries: Set[ChunkPath],
    above: Mapping[ChunkPath, Collection[ChunkPath]],
) -> "tuple[list[Ranked], dict[ChunkPath, ChunkPath]]":
    """A ranking in which the best text below a summary is where that one stood.

    A summary is left out where that text comes before it.

    Args:
        ranked: Texts and summaries, best first.
        summaries: Those of them that are summaries.
        above: Of each file the summaries, near and far, that it went into.

    Returns:
        The ranking, and of each text that was lifted the summary whose place it has.
    """
    heirs: dict[ChunkPath, Ranked] = {}
    for one in ranked:
        if one[0][0] not in summaries:
            for summary in above.get(one[0][0], ()):
                heirs.setdefault(summary, one)
    found: list[Ranked] = []
    behind: list[Ranked] = []
    placed = set[ChunkPath]()
    lifted: dict[ChunkPath, ChunkPath] = {}
    for rank, one in enumerate(ranked, start=1):
        (path, _), score, _ = one
        if path in summaries:
            heir = heirs.get(path)
            if heir is None:
                behind.append(one)
                continue
            if heir[0][0] in placed:
                continue
            lifted[heir[0][0]] = path
            one = _lifted(heir, rank, score)
        elif path in lifted:
            continue
        found.append(one)
        placed.add(one[0][0])
    return [*found, *behind], lifted


def _lifted(one: "Ranked", rank: int, score: float) -> "Ranked":
    """A text in the place of its summary, with that one's score, and what says so."""
    text, _, why = one

    def lifted_why() -> "Why":
        return {**why(), "summary": {"rank": rank, "score": score}}

    return text, score, lifted_why


BEAM: Final = 16
"""How many summaries of a level are entered. Over XQuAD, in 48 trees of one level, 8 lose another
.04 of recall@10; the default search, which sees every text, finds .07 more than 16."""


def descend(
    tree: "SummaryTree",
    best: Callable[[Sequence[ChunkPath]], Sequence[ChunkPath]],
    beam: int = BEAM,
) -> dict[ChunkPath, tuple[ChunkPath, ...]]:
    """Enter the best summaries, level by level, down to what is no summary.

    Args:
        tree: Of all summaries.
        best: Orders nodes by how well they answer, best first; the ones that do not are left out.
        beam: How many of a level are entered; where fewer answer, the first of the others, too.

    Returns:
        Of each text that was reached the summaries that led to it, from the top.
    """
    ways: dict[ChunkPath, tuple[ChunkPath, ...]] = dict.fromkeys(tree.roots, ())
    level = list(tree.roots)
    texts: dict[ChunkPath, tuple[ChunkPath, ...]] = {}
    while level:
        ordered = list(dict.fromkeys([*best(level), *level]))
        level = []
        for summary in ordered[:beam]:
            way = (*ways[summary], summary)
            for child in tree.children(summary):
                if child.path in ways or child.state == "gone":
                    continue
                ways[child.path] = way
                if child.is_summary:
                    level.append(child.path)
                else:
                    texts[child.path] = way
    return texts

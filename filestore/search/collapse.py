"""Summaries and what they were made from in one ranking, without crowding each other out. Pure.

One rule: what a summary says is in the texts below it, too, so that of a summary and those texts
only the better takes a place, and a text that stands near its summary takes that one's place.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from filestore.core.paths import ChunkPath
from filestore.search.answer import Why
from filestore.search.ranking import Ranked

CLEAR: Final = 2.0
"""A summary stays where its score is so many times that of the best text below it: no part of what
it was made from answers, the whole does."""
SEVERAL: Final = 3
EVEN: Final = 0.85
"""It stays, too, where so many of the texts below it answer about equally: the last of them has so
much of the score of the best. Then the question is about what they have in common.

Over all of XQuAD, with questions and summaries of sentences, hybrid search has .0004 (en),
.0013 (de) and .0025 (zh) of nDCG@10 less than without questions and summaries; with the order of
scores alone it is .02 to .03."""


def collapse(
    ranked: Sequence[Ranked], above: Mapping[ChunkPath, Collection[ChunkPath]]
) -> tuple[list[Ranked], dict[ChunkPath, ChunkPath]]:
    """A ranking in which a summary stands for itself, gives its place to a text, or is left out.

    It is left out where a text below it, or another summary above or below it, stands before it.
    A summary below which nothing was found counts as a text.

    Args:
        ranked: Texts, best first; no file is in it twice but for its sections.
        above: Of each file the summaries, near and far, that it went into.

    Returns:
        The ranking, and of each text that was lifted the summary whose place it has.
    """
    below_of = _texts_below(ranked, above)
    below: set[ChunkPath] = set()
    placed: set[ChunkPath] = set()
    lifted: dict[ChunkPath, ChunkPath] = {}
    summaries = set[ChunkPath]().union(*above.values())
    found: list[Ranked] = []
    for rank, one in enumerate(ranked, start=1):
        (path, _), score, _ = one
        if path in lifted:
            continue
        if path in summaries:
            if path in below or not placed.isdisjoint(above.get(path, ())):
                continue
            texts = below_of.get(path, ())
            if texts and not _answers_as_a_whole(score, [one for _, one, _ in texts]):
                heir = texts[0]
                one = _lifted(heir, rank, score)
                lifted[heir[0][0]] = path
        found.append(one)
        placed.add(one[0][0])
        below.update(above.get(one[0][0], ()))
    return found, lifted


def _answers_as_a_whole(score: float, texts: Sequence[float]) -> bool:
    """Whether a summary is the answer, by its score and those of texts below it, best first."""
    is_even = len(texts) >= SEVERAL and texts[SEVERAL - 1] >= EVEN * texts[0]
    return is_even or score >= CLEAR * texts[0]


def _texts_below(
    ranked: Sequence[Ranked], above: Mapping[ChunkPath, Collection[ChunkPath]]
) -> dict[ChunkPath, list[Ranked]]:
    """Of each summary the texts below it that were found, best first, each file once."""
    summaries = set[ChunkPath]().union(*above.values())
    below: dict[ChunkPath, list[Ranked]] = {}
    seen: set[ChunkPath] = set()
    for one in ranked:
        path = one[0][0]
        if path in seen or path in summaries:
            continue
        seen.add(path)
        for summary in above.get(path, ()):
            below.setdefault(summary, []).append(one)
    return below


def _lifted(one: Ranked, rank: int, score: float) -> Ranked:
    """A text in the place of its summary, with that one's score, and what says so."""
    text, _, why = one

    def told() -> Why:
        return {**why(), "summary": {"rank": rank, "score": score}}

    return text, score, told

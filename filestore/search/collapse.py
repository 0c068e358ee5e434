"""Summaries and what they were made from in one ranking, without crowding each other out. Pure.

One rule: what a summary says is in the texts below it, too, so that of a summary and those texts
only the better takes a place, and a text that stands near its summary takes that one's place.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from filestore.core.paths import ChunkPath
from filestore.search.answer import Why
from filestore.search.ranking import Ranked

CLEAR: Final = 1.5
"""A summary stays where its score is so many times that of the best text below it: then the whole
answers, and no part of it."""


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
    best = _best_below(ranked, above)
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
            heir = best.get(path)
            if heir is not None and score < CLEAR * heir[1]:
                one = _lifted(heir, rank, score)
                lifted[heir[0][0]] = path
        found.append(one)
        placed.add(one[0][0])
        below.update(above.get(one[0][0], ()))
    return found, lifted


def _best_below(
    ranked: Sequence[Ranked], above: Mapping[ChunkPath, Collection[ChunkPath]]
) -> dict[ChunkPath, Ranked]:
    """Of each summary the best text below it."""
    summaries = set[ChunkPath]().union(*above.values())
    best: dict[ChunkPath, Ranked] = {}
    for one in ranked:
        path = one[0][0]
        if path not in summaries:
            for summary in above.get(path, ()):
                best.setdefault(summary, one)
    return best


def _lifted(one: Ranked, rank: int, score: float) -> Ranked:
    """A text in the place of its summary, with that one's score, and what says so."""
    text, _, why = one

    def told() -> Why:
        return {**why(), "summary": {"rank": rank, "score": score}}

    return text, score, told

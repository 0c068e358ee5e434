"""Summaries and what they were made from in one ranking, without crowding each other out. Pure.

One rule: what a summary says is in the texts below it, too, so that it never stands above one of
them: the best that was found takes its place, and where none was, it stands behind all texts.
"""

from collections.abc import Collection, Mapping, Sequence, Set

from filestore.core.paths import ChunkPath
from filestore.search.answer import Why
from filestore.search.ranking import Ranked


def collapse(
    ranked: Sequence[Ranked],
    summaries: Set[ChunkPath],
    above: Mapping[ChunkPath, Collection[ChunkPath]],
) -> tuple[list[Ranked], dict[ChunkPath, ChunkPath]]:
    """A ranking in which the best text below a summary stands where that one stood.

    A summary is left out where that text stands before it.

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


def _lifted(one: Ranked, rank: int, score: float) -> Ranked:
    """A text in the place of its summary, with that one's score, and what says so."""
    text, _, why = one

    def told() -> Why:
        return {**why(), "summary": {"rank": rank, "score": score}}

    return text, score, told

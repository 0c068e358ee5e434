"""What retrievers found, weighed against each other, with why each text stands where it stands.

Pure. One rule: only the hits that are shown are explained.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from filestore.core.paths import ChunkPath
from filestore.search.answer import Why
from filestore.search.fusion import Fused, Ranking, fuse

Text = tuple[ChunkPath, int]
"""A text that answers: a file, and in place the section of it; a chunk file is one text."""
Retrieved = list[tuple[Text, float]]
"""Texts with their score, best first."""
Ranked = tuple[Text, float, Callable[[], Why]]
"""A text, its score, and what tells why: only those that are shown are explained."""
Item = TypeVar("Item", bound=Any)
LEXICAL_FLOOR: Final = 0.15
"""Below this a text that keywords missed shares too little to be worth showing beside theirs."""
VECTOR_WEIGHT: Final = 1.1
"""The weight of a vector retriever that knows meaning, where the keyword retriever has 1 and the
model knows the language of the question.

A model that does not know the language of a text still finds some that stand out a little. Over
forty sets of questions this is worth .007 of nDCG@10 beside .9 whatever the language."""
LEXICAL_WEIGHT: Final = 0.1
"""The weight of a vector retriever that compares words only, as the keyword retriever does.

It decides near ties and adds what keywords miss (misspellings, parts of words). Over 18 sets of
questions it cost at most 0.1 points of nDCG@10 and gained 0.4."""

REWRITTEN_WEIGHT: Final = 0.1
"""The weight of all rewritten queries together: they decide near ties and add what is not found.

Over XQuAD, three of the extractive generator each, nDCG@10 is .000 (en), -.002 (de) and -.001 (zh)
beside the typed query alone; with 0.5 other queries lost .008 to .012."""

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
    """The score of a text by vectors, of which a question stands nearer to the query, or not."""
    least, sure = _ASKED_SO
    near = min(1.0, max(0.0, (question - least) / (sure - least)))
    return text + (QUESTION_SHARE + (1 - QUESTION_SHARE) * near) * max(0.0, question - text)


def leads(why: Mapping[str, Mapping[str, float]]) -> str:
    """The retriever that had the most to say for a text; "" where none is named."""
    return max(why, key=lambda name: why[name].get("points", 0.0), default="")


def explained(fused: Sequence[Fused[Text]]) -> list[Ranked]:
    """Texts, scores, and what each ranking said, with how much it had to say at all."""
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

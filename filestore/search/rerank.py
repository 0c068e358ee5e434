"""Answers put into another order by a model that reads question and text together.

One rule: it changes the order and what is left of an answer, never what a hit says of itself.
"""

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.chunks.chunk_file import embed_text
from filestore.search.answer import Answer

if TYPE_CHECKING:
    from filestore.rerank import Reranker

DEPTH: Final = 50
"""So many hits are read again, at least; each costs about what embedding it costs."""


def depth_for(count: int) -> int:
    """How many hits to ask for where so many are wanted after reranking."""
    return max(DEPTH, count)


def rerank(answer: Answer, reranker: "Reranker", *, count: int) -> Answer:
    """The best hits of an answer by the reranker's score, ties by path.

    A file that is gone has no text to be read; it stays behind those that have one.

    Raises:
        ModelUnusable: The model gives no usable scores.
    """
    readable = [hit for hit in answer.hits if hit.text]
    texts = [embed_text(hit.headings, hit.text) for hit in readable]
    scores = reranker.score(answer.understood.text, texts).tolist() if readable else []
    ranked = sorted(zip(scores, readable, strict=True), key=lambda pair: (-pair[0], pair[1].path))
    best = [
        replace(hit, score=score, why={**hit.why, "rerank": {"rank": rank, "score": score}})
        for rank, (score, hit) in enumerate(ranked, start=1)
    ]
    rest = [hit for hit in answer.hits if not hit.text]
    return replace(answer, hits=(*best, *rest)[:count])

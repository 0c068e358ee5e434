"""One hit a document, with how many more it has. Pure, but for the searches it asks for."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from filestore.search.answer import Answer, Hit
from filestore.search.query import Query

DEPTH: Final = 50
"""So many hits are looked at, at least: the others of a document are counted among them."""
_PER_DOCUMENT: Final = 5
_DEEPEST: Final = 5_000


def by_document(ask: Callable[[Query], Answer], query: Query) -> Answer:
    """The best hit of each of the best documents, of which the query wants `k`.

    Where there are too few, more hits are asked for, but not of a reranker, which is slow.
    """
    depth = max(DEPTH, _PER_DOCUMENT * query.k)
    while True:
        answer = ask(replace(query, k=depth))
        hits = grouped(answer.hits)
        is_all = len(hits) >= query.k or len(answer.hits) < depth
        if is_all or depth >= _DEEPEST or query.rerank:
            return replace(answer, hits=tuple(hits[: query.k]))
        depth *= 4


def grouped(hits: Sequence[Hit]) -> list[Hit]:
    """The first hit of each document, in order; a file that is gone stands for itself."""
    best: dict[str, Hit] = {}
    others: dict[str, int] = {}
    for hit in hits:
        key = hit.source if hit.source and hit.freshness != "gone" else f"\0{hit.path}"
        if key in best:
            others[key] = others.get(key, 0) + 1
        else:
            best[key] = hit
    return [replace(hit, others=others.get(key, 0)) for key, hit in best.items()]

"""One hit a document, with how many more it has. Pure, but for the searches it asks for."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from filestore.core.errors import UsageError
from filestore.search.answer import Answer, Hit

DEPTH: Final = 50
"""So many hits are looked at, at least: the others of a document are counted among them."""
_PER_DOCUMENT: Final = 5
_DEEPEST: Final = 5_000


def by_document(ask: Callable[[int], Answer], count: int, *, again: bool) -> Answer:
    """The best hit of each of the best documents.

    Args:
        ask: Gives the answer with so many hits.
        count: How many documents are wanted.
        again: Whether more hits may be asked for where there are too few documents.

    Raises:
        UsageError: The count is not positive.
    """
    if count < 1:
        raise UsageError(f"-k must be at least 1, found {count}")
    depth = max(DEPTH, _PER_DOCUMENT * count)
    while True:
        answer = ask(depth)
        hits = grouped(answer.hits)
        if len(hits) >= count or len(answer.hits) < depth or depth >= _DEEPEST or not again:
            return replace(answer, hits=tuple(hits[:count]))
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

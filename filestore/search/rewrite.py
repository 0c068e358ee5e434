"""One query asked in several ways: new ones by the store's generator, fused with what was typed.

One rule: what was typed is always asked; where no new query can be made, it is answered alone and
that is said.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from filestore.chunks.chunk_file import embed_text
from filestore.core.errors import FilestoreError, UsageError
from filestore.search.answer import Answer

if TYPE_CHECKING:
    from filestore.generate import Generator

MOST: Final = 20
"""More new queries are not asked."""
_NEAREST: Final = 5
"""So many of the texts that a query finds say in which words its answers are written."""


def rewritten(
    ask: "partial[Answer]", generator: "Callable[[], Generator]", wanted: int, *, count: int
) -> Answer:
    """The answer to a query and to so many others that a generator makes of it.

    Args:
        ask: Answers the query; takes ``count`` and ``rewrites``.
        generator: Opens the store's generator.
        wanted: How many new queries, at most.
        count: How many hits.

    Raises:
        UsageError: More are wanted than are asked, or fewer than none.
    """
    if not 0 <= wanted <= MOST:
        raise UsageError(f"--rewrite takes 0 to {MOST}, found {wanted}")
    plain = ask(count=count)
    try:
        queries, why_not = _queries(generator(), plain, wanted)
    except FilestoreError as error:
        queries, why_not = (), f"{error.message} (try: {error.remedy})"
    if not queries:
        return replace(plain, notes=(*plain.notes, f"asked as it was typed only: {why_not}"))
    answer = ask(count=count, rewrites=queries)
    return replace(answer, notes=(*answer.notes, f"also asked: {'; '.join(queries)}"))


def _queries(generator: "Generator", plain: Answer, wanted: int) -> tuple[Sequence[str], str]:
    """New queries, or why there is none."""
    from filestore.generate import Task

    asked = plain.understood.text
    near = _that_fit(generator, asked, [embed_text(hit.headings, hit.text) for hit in plain.hits])
    task = Task(kind="rewrite", texts=(asked, *near), count=wanted)
    for result in generator.make([task], stop=threading.Event()):
        if result.problem is not None:
            return (), f"{result.problem.message} (try: {result.problem.remedy})"
        lines = result.made.lines if result.made is not None else ()
        own = asked.casefold().split()
        return tuple(line for line in lines if line.casefold().split() != own)[:wanted], _NOTHING
    return (), _NOTHING


_NOTHING: Final = "the generator made no new query of it"


def _that_fit(generator: "Generator", query: str, texts: Sequence[str]) -> list[str]:
    """The first few texts that go into the generator's window beside the query."""
    room = generator.window_tokens - generator.count_tokens(query)
    found = []
    for text in texts[:_NEAREST]:
        room -= generator.count_tokens(text)
        if room < 0 or not text:
            break
        found.append(text)
    return found

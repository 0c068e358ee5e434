"""One query asked in several ways: new ones by the store's generator, fused with what was typed.

One rule: what was typed is always asked; where no new query can be made, it is answered alone and
that is said.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.chunks.chunk_file import embed_text
from filestore.core.errors import FilestoreError
from filestore.search.answer import Answer
from filestore.search.query import Query

if TYPE_CHECKING:
    from filestore.generate import Generator

_NEAREST: Final = 5
"""So many of the texts that a query finds say in which words its answers are written."""


class Rewrites(Struct, frozen=True, kw_only=True):
    """The same in other words."""

    queries: tuple[str, ...] = ()
    why_not: str = ""
    """Why there are none."""
    tokens: int = 0
    """What a service counted for them, in and out."""


def rewritten(
    ask: Callable[[Query, Sequence[str]], Answer],
    query: Query,
    rewrites: Callable[[Answer], Rewrites],
) -> Answer:
    """The answer to a query and to others that are made of it.

    Args:
        ask: Answers a query, and the same in other words.
        query: What is asked.
        rewrites: Makes other queries of the plain answer.
    """
    plain = ask(query, ())
    made = rewrites(plain)
    if not made.queries:
        note = f"asked as it was typed only: {made.why_not}"
        return replace(plain, notes=(*plain.notes, note), tokens=made.tokens)
    answer = ask(query, made.queries)
    note = f"also asked: {'; '.join(made.queries)}"
    return replace(answer, notes=(*answer.notes, note), tokens=made.tokens)


def rewrites_of(plain: Answer, wanted: int, generator: "Callable[[], Generator]") -> Rewrites:
    """Up to so many queries that a generator makes of one and of the texts nearest to it.

    Args:
        plain: The answer to the query.
        wanted: How many.
        generator: Opens the store's generator.
    """
    try:
        return _made(plain, wanted, generator())
    except FilestoreError as error:
        return Rewrites(why_not=_problem(error))


def _made(plain: Answer, wanted: int, generator: "Generator") -> Rewrites:
    from filestore.generate import Task

    asked = plain.understood.text
    near = _that_fit(generator, asked, [embed_text(hit.headings, hit.text) for hit in plain.hits])
    task = Task(kind="rewrite", texts=(asked, *near), count=wanted)
    own = asked.casefold().split()
    for result in generator.make([task], stop=threading.Event()):
        if result.problem is not None:
            return Rewrites(why_not=_problem(result.problem))
        if result.made is not None:
            new = [line for line in result.made.lines if line.casefold().split() != own]
            tokens = result.made.tokens_in + result.made.tokens_out
            return Rewrites(queries=tuple(new[:wanted]), why_not=_NOTHING, tokens=tokens)
    return Rewrites(why_not=_NOTHING)


def _problem(error: FilestoreError) -> str:
    return f"{error.message} (try: {error.remedy})"


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

"""The generator that runs here: it takes out of texts what is there, and makes nothing up.

Summaries are sentences of the texts, questions fill patterns with words of theirs, new queries
join words of a query with phrases of the texts near it. It is honest about what it is: nothing is
put into other words. It needs no model but the store's embedder, for summaries and queries;
questions need none. What stands in a text as an instruction is a sentence like any other.

Of texts without a sentence a summary has a line of each, and where none has a letter the head of
the first; only of texts with nothing in them is there no text. Questions and queries may be none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.embed import ModelMissing
from filestore.generate import _questions, _rewrites, _summaries
from filestore.generate._checked import well_formed
from filestore.generate._plain import one_line, prose_of
from filestore.generate.base import (
    GenerationFailed,
    Generator,
    GeneratorChoice,
    Made,
    Result,
    Task,
    UnknownGenerator,
)

if TYPE_CHECKING:
    import threading

    import numpy as np
    from numpy.typing import NDArray

    from filestore.embed import Embedder

VERSION: Final = 1
"""Raised whenever the same task gives something else."""
WINDOW_TOKENS: Final = 16_384
"""It has no window of its own: a group stays small enough for a person to look through."""
_BATCH_TEXTS: Final = 2_000
"""So many sentences, or tasks without one, are embedded together, which is what makes it fast."""
_SUMMARY_TOKENS: Final = 160


class ExtractiveGenerator(Generator):
    """Works offline, over an embedder; safe between threads where the embedder is."""

    def __init__(self, choice: GeneratorChoice) -> None:
        self._name = choice.name
        self._embedder = choice.embedder
        self._opened: Embedder | None = None

    @property
    def name(self) -> str:
        """``extractive``."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """``extractive/<version>`` and the fingerprint of the embedder that chooses sentences.

        Raises:
            ModelMissing: There is no embedder, or the store's is not here.
        """
        return f"{self.label};{self._model().fingerprint}"

    @property
    def label(self) -> str:
        """``extractive/<version>``."""
        return f"extractive/{VERSION}"

    @property
    def window_tokens(self) -> int:
        """Always 16,384."""
        return WINDOW_TOKENS

    def count_tokens(self, text: str) -> int:
        """As the embedder counts."""
        return self._model().count_tokens(text)

    def estimate(self, task: Task) -> tuple[int, int]:
        """Nothing: it is free."""
        return 0, 0

    def make(self, tasks: Sequence[Task], *, stop: threading.Event) -> Iterator[Result]:
        """Work on tasks in order, the embeddings of many at once."""
        waiting: list[tuple[int, _Prepared]] = []
        texts = 0
        for place, task in enumerate(tasks):
            if stop.is_set():
                return
            prepared = _prepared(task)
            waiting.append((place, prepared))
            texts += max(1, len(prepared.texts))
            if texts >= _BATCH_TEXTS:
                yield from self._finished(waiting)
                waiting, texts = [], 0
        if not stop.is_set():
            yield from self._finished(waiting)

    def _finished(self, waiting: Sequence[tuple[int, _Prepared]]) -> Iterator[Result]:
        distinct = dict.fromkeys(text for _, prepared in waiting for text in prepared.texts)
        rows = {text: row for row, text in enumerate(distinct)}
        vectors = self._model().embed_documents(list(distinct)) if distinct else None
        for place, prepared in waiting:
            chosen = [rows[text] for text in prepared.texts]
            own = vectors[chosen] if vectors is not None and chosen else None
            yield self._result(place, prepared, own)

    def _result(
        self, place: int, prepared: _Prepared, vectors: NDArray[np.float32] | None
    ) -> Result:
        """What was made, where it can be written: texts may hold marks of a merge, or a fence."""
        made = self._made(prepared, vectors)
        try:
            made = well_formed(made, prepared.task) if made.text or made.lines else made
        except GenerationFailed as error:
            remedy = "take such lines out of the texts"
            return Result(place=place, problem=GenerationFailed(error.message, remedy=remedy))
        return Result(place=place, made=made)

    def _made(self, prepared: _Prepared, vectors: NDArray[np.float32] | None) -> Made:
        task = prepared.task
        if task.kind == "questions" or vectors is None:
            return Made(lines=prepared.lines, title=prepared.title, text=prepared.text)
        if task.kind == "rewrite":
            nearness = vectors[1:] @ vectors[0]
            query, *phrases = prepared.texts
            return Made(lines=_rewrites.queries_of(query, phrases, nearness, task.count))
        chosen = _summaries.choose(
            prepared.candidates,
            vectors,
            most_tokens=_SUMMARY_TOKENS,
            count_tokens=self._model().count_tokens,
        )
        text = _summaries.join(chosen)
        own = _questions.questions_of(
            prose_of(text), headings=task.headings, title=task.title, count=task.count
        )
        lines = _questions.distinct(filter(None, (*prepared.lines, *own)), task.count)
        return Made(lines=lines, title=prepared.title, text=text)

    def _model(self) -> Embedder:
        if self._opened is None:
            if self._embedder is None:
                raise ModelMissing(
                    "the generator extractive needs the embedder of a store, and there is none",
                    remedy="name a store, or another generator",
                )
            self._opened = self._embedder()
        return self._opened


class _Prepared(Struct, frozen=True, kw_only=True):
    """A task, and all that can be said before anything is embedded."""

    task: Task
    texts: tuple[str, ...] = ()
    """To be embedded."""
    candidates: tuple[_summaries.Candidate, ...] = ()
    lines: tuple[str, ...] = ()
    title: str = ""
    text: str = ""


def _prepared(task: Task) -> _Prepared:
    if task.kind == "rewrite":
        query = one_line(task.texts[0]) if task.texts else ""
        phrases = _rewrites.phrases_near(query, task.texts[1:])
        return _Prepared(task=task, texts=(query, *phrases) if query else ())
    children = [prose_of(text) for text in task.texts]
    if task.kind == "questions":
        lines = _questions.questions_of(
            children[0], headings=task.headings, title=task.title, count=task.count
        )
        return _Prepared(task=task, lines=lines)
    candidates = tuple(_summaries.candidates_of(children))
    language, subjects = _summaries.subjects_of(children)
    title = _summaries.title_of(children, subjects, headings=task.headings, title=task.title)
    if not candidates:
        return _Prepared(task=task, title=title, text=_summaries.head_of(task.texts))
    return _Prepared(
        task=task,
        texts=tuple(candidate.text for candidate in candidates),
        candidates=candidates,
        lines=(_questions.question_of_all(subjects, language),),
        title=title,
    )


def open_choice(choice: GeneratorChoice) -> Generator:
    """Open it.

    Raises:
        UnknownGenerator: A model is named: it has none.
    """
    if choice.model:
        raise UnknownGenerator(choice.name, ("extractive",))
    return ExtractiveGenerator(choice)

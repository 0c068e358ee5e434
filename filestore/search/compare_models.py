"""The two models of a store over the same questions: how good each is, and where they differ.

Reads; changes nothing. One rule: each model is asked with its own vectors alone, and one that
cannot answer is no side of a comparison.
"""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog, in_batches
from filestore.chunks import kept
from filestore.chunks.observation import INDEXED, Observation
from filestore.config.settings import MODELS, Which
from filestore.core.errors import FilestoreError
from filestore.core.paths import TOP
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.schema import JsonObject
from filestore.search import Mode, Query
from filestore.search.answer import Hit
from filestore.search.evaluate import Asked, NoAnswerError, Searching
from filestore.search.metrics import (
    Difference,
    Goal,
    Judged,
    Question,
    Scores,
    chunks_of,
    goals_of,
    judge,
    mean,
    paired_difference,
)
from filestore.sidecar.models import WHOSE
from filestore.sidecar.session import Parts

_OWN_QUERIES: Final = 100
"""How many are taken from the store where none are given."""
WORST: Final = 10
_LONGEST: Final = 200
Source = Literal["file", "store"]


class CannotCompareError(FilestoreError):
    """One of the two models does not answer."""


class ModelScores(JsonObject, Struct, frozen=True, kw_only=True):
    """One of the two models."""

    model: Which
    """`own` or `beside`."""
    name: str
    """As the settings have it."""
    scores: Scores | None
    """Means over the questions; None where the answers are not known."""


class QueryOverlap(JsonObject, Struct, frozen=True, kw_only=True):
    """One query, with what each model answers."""

    query: str
    """What was asked."""
    overlap: float
    """The share of the first results that both models have, 0 to 1."""
    own: tuple[str, ...]
    """The files that the store's own model answers, best first."""
    beside: tuple[str, ...]
    """The same of the other model."""


class ModelComparison(JsonObject, Struct, frozen=True, kw_only=True, rename={"count": "k"}):
    """What two models make of the same queries."""

    KEYS = (
        "queries count mode asked models difference against_own.interval_95 overlap worst "
        "per_query notes"
    )
    SPARSE = "per_query"

    count: int
    """How many places were looked at."""
    mode: Mode
    """`vector` or `hybrid`."""
    asked: Source
    """Where the queries come from: `file`, or `store` for its own questions and titles."""
    models: tuple[ModelScores, ...]
    """The store's own, then the other."""
    against_own: Difference | None
    """Of the other model, by nDCG; None where the answers are not known."""
    overlaps: tuple[QueryOverlap, ...]
    """Every query, those first on which the models differ most."""
    notes: tuple[str, ...]
    """What to know about these figures."""
    per_query: tuple[QueryOverlap, ...] = ()
    """Each query; with `--per-query`."""

    @property
    def queries(self) -> int:
        """How many were asked."""
        return len(self.overlaps)

    @property
    def overlap(self) -> float:
        """The share of the first results that both models have, 0 to 1: the mean."""
        return sum(one.overlap for one in self.overlaps) / len(self.overlaps)

    @property
    def worst(self) -> tuple[QueryOverlap, ...]:
        """The queries on which they differ most."""
        return self.overlaps[:WORST]

    @property
    def difference(self) -> float | None:
        """Of the other model from the own one, by nDCG; None where the answers are not known."""
        return self.against_own.mean if self.against_own else None


def compare(
    searching: Searching,
    parts: Parts,
    questions: Sequence[Question] | None,
    way: Query,
    on_progress: OnProgress = ignore,
) -> ModelComparison:
    """Ask both models the same, and hold their answers against each other.

    Args:
        searching: What answers.
        parts: Of the store that it searches.
        questions: With known answers; None to ask what the store itself holds.
        way: How each is asked, but for its text and the model; `k` places are looked at.
        on_progress: Called with the progress.

    Raises:
        NothingBeside: The store has no second model.
        CannotCompareError: A model does not answer, or there is nothing to ask.
        UnknownRelevantError: A right answer is not in the store.
    """
    names = [parts.models.of(model).name for model in MODELS]
    tree = parts.places.tree
    with parts.reading() as catalog:
        queries = [one.query for one in questions or ()] or own_queries(catalog)
        if not queries:
            raise CannotCompareError("the store is empty: add something with `filestore add PATH`")
        goals: Sequence[Goal | None] = [None] * len(queries)
        if questions:
            chunks, owners = chunks_of(tree, catalog), catalog.sources_of_resources()
            goals = goals_of(tree, chunks, owners, questions)
        notes: list[str] = []
        found: list[list[Judged[Hit]]] = []
        for done, (text, goal) in enumerate(zip(queries, goals, strict=True), start=1):
            query = replace(way, text=text)
            found.append([_ask(searching, replace(query, model=m), goal, notes) for m in MODELS])
            on_progress(Progress(stage="asking both models", done=done, total=len(queries)))
    overlaps = [_overlap(text, *each) for text, each in zip(queries, found, strict=True)]
    scores = [[one.scores for one in each if one.scores] for each in zip(*found, strict=True)]
    own, other = ([one.ndcg for one in each] for each in scores)
    return ModelComparison(
        count=way.k,
        mode=way.mode,
        asked="file" if questions else "store",
        models=tuple(
            ModelScores(model=model, name=name, scores=mean(each) if each else None)
            for model, name, each in zip(MODELS, names, scores, strict=True)
        ),
        against_own=paired_difference(other, own) if questions else None,
        overlaps=tuple(sorted(overlaps, key=lambda one: one.overlap)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _ask(searching: Searching, query: Query, goal: Goal | None, notes: list[str]) -> Judged[Hit]:
    asked = Asked(searching.search)
    try:
        found = judge(asked.hits, query, goal)
    except NoAnswerError as error:
        raise CannotCompareError(
            f"{WHOSE[query.model]} does not answer: {error.message}", remedy="filestore sync"
        ) from error
    every = asked.answer.notes if asked.answer is not None else ()
    notes += [f"{WHOSE[query.model]}: {note}" for note in every if "no vector of" in note]
    return found


def _overlap(query: str, first: Judged[Hit], second: Judged[Hit]) -> QueryOverlap:
    own, other = (tuple(hit.path for hit in each.hits) for each in (first, second))
    most = max(len(own), len(other), 1)
    same = len(set(own) & set(other)) / most if own or other else 1.0
    return QueryOverlap(query=query, overlap=same, own=own, beside=other)


def own_queries(catalog: Catalog) -> list[str]:
    """What the store itself can be asked: a question of a file, else its last heading.

    Files in regular distances of their order by hash: a fair choice, and the same each time.
    """
    files = sorted((row.file_hash, row.id) for row in catalog.all_files() if row.state == INDEXED)
    step = max(1, len(files) // _OWN_QUERIES)
    found: list[str] = []
    for batch in in_batches([identifier for _, identifier in files[::step]]):
        for one in batch:
            data = catalog.content(one) or b""
            look = Observation(path=TOP, values=(0, 0, 0, 0, 0), state=INDEXED, data=data)
            kept.interpret(look)
            if (chunk := look.chunk) is not None:
                lines = (line.strip("# \t") for line in chunk.body.splitlines())
                words = [*chunk.questions[:1], *chunk.headings[-1:], *filter(None, lines)]
                found += [word[:_LONGEST] for word in words[:1] if word]
    return list(dict.fromkeys(found))[:_OWN_QUERIES]

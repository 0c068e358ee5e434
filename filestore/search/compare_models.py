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
from filestore.search import evaluate
from filestore.search.evaluate import Searching
from filestore.search.metrics import Difference, Question, Scores, paired_difference
from filestore.search.query import Mode, Query
from filestore.sidecar.models import WHOSE
from filestore.sidecar.session import Parts

_OWN_QUERIES: Final = 100
"""So many are taken from the store where nobody asks any."""
WORST: Final = 10
_LONGEST: Final = 200
Asked = Literal["file", "store"]


class CannotCompareError(FilestoreError):
    """One of the two models does not answer."""


class ModelScores(JsonObject, Struct, frozen=True, kw_only=True):
    """One of the two models."""

    model: Which
    """`own` or `beside`."""
    name: str
    """As the settings have it."""
    scores: Scores | None
    """Means over the questions; None where nobody knows the answers."""


class QueryOverlap(JsonObject, Struct, frozen=True, kw_only=True):
    """One query, with what each model answers."""

    query: str
    """What was asked."""
    overlap: float
    """The share of the first results that both models have, 0 to 1."""
    own: tuple[str, ...]
    """The files that the store's own model answers, best first."""
    beside: tuple[str, ...]
    """The same of the model beside."""


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
    asked: Asked
    """Where the queries come from: `file`, or `store` for its own questions and titles."""
    models: tuple[ModelScores, ...]
    """The store's own, then the one beside."""
    against_own: Difference | None
    """Of the model beside, by nDCG; None where nobody knows the answers."""
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
        """Of the model beside from the own one, by nDCG; None where the answers are not known."""
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
        NothingBeside: No model stands beside.
        CannotCompareError: A model does not answer, or there is nothing to ask.
        UnknownRelevantError: A right answer is not in the store.
    """
    names = [parts.models.of(model).name for model in MODELS]
    own, beside = (replace(way, model=model) for model in MODELS)
    with parts.reading() as catalog:
        queries = [one.query for one in questions] if questions else own_queries(catalog)
        if not queries:
            raise CannotCompareError(
                "the store holds nothing to ask for", remedy="filestore add PATH"
            )
        notes: list[str] = []
        overlaps = []
        for done, text in enumerate(queries, start=1):
            found = [_ask(searching, replace(one, text=text), notes) for one in (own, beside)]
            overlaps.append(_overlap(text, *found))
            on_progress(Progress(stage="asking both models", done=done, total=len(queries)))
        scores = [_scores(searching, parts, questions, one) for one in (own, beside)]
    return ModelComparison(
        count=way.k,
        mode=way.mode,
        asked="file" if questions else "store",
        models=tuple(
            ModelScores(model=model, name=name, scores=means)
            for model, name, (means, _) in zip(MODELS, names, scores, strict=True)
        ),
        against_own=paired_difference(scores[1][1], scores[0][1]) if questions else None,
        overlaps=tuple(sorted(overlaps, key=lambda one: one.overlap)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _ask(searching: Searching, query: Query, notes: list[str]) -> tuple[str, ...]:
    answer = searching.search(query)
    if answer.mode != query.mode:
        why = "; ".join(answer.notes) or f"it answers by {answer.mode}"
        raise CannotCompareError(
            f"{WHOSE[query.model]} does not answer: {why}", remedy="filestore sync"
        )
    notes += [f"{WHOSE[query.model]}: {note}" for note in answer.notes if "no vector of" in note]
    return tuple(hit.path for hit in answer.hits)


def _overlap(query: str, own: tuple[str, ...], beside: tuple[str, ...]) -> QueryOverlap:
    most = max(len(own), len(beside), 1)
    same = len(set(own) & set(beside)) / most if own or beside else 1.0
    return QueryOverlap(query=query, overlap=same, own=own, beside=beside)


def _scores(
    searching: Searching, parts: Parts, questions: Sequence[Question] | None, way: Query
) -> tuple[Scores | None, list[float]]:
    """The means of one model, and its nDCG question by question."""
    if not questions:
        return None, []
    found = evaluate.evaluate(searching, parts, questions, way, columns=(way.mode,))
    means = found.modes[way.mode]
    if means is None:
        raise CannotCompareError(
            f"{WHOSE[way.model]} does not answer: {'; '.join(found.notes)}",
            remedy="filestore sync",
        )
    return means, [one.scores[way.mode].ndcg for one in found.results]


def own_queries(catalog: Catalog) -> list[str]:
    """What the store itself can be asked: a question of a file, else its last heading.

    Files in regular distances of their order by hash: a fair choice, and the same each time.
    """
    files = sorted((row.file_hash, row.id) for row in catalog.all_files() if row.state == INDEXED)
    step = max(1, len(files) // _OWN_QUERIES)
    found: list[str] = []
    for batch in in_batches([identifier for _, identifier in files[::step]]):
        found += [query for one in batch if (query := _query_of(catalog.content(one) or b""))]
    return list(dict.fromkeys(found))[:_OWN_QUERIES]


def _query_of(data: bytes) -> str:
    look = Observation(path=TOP, values=(0, 0, 0, 0, 0), state=INDEXED, data=data)
    kept.interpret(look)
    chunk = look.chunk
    if chunk is None:
        return ""
    lines = (line.strip("# \t") for line in chunk.body.splitlines())
    words = [*chunk.questions[:1], *chunk.headings[-1:], *(line for line in lines if line)]
    return words[0][:_LONGEST] if words else ""

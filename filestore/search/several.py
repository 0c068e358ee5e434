"""One answer of the answers of several stores to one search.

One rule: scores of two stores say nothing about each other, ranks do.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from filestore.config.layout import require_named
from filestore.config.settings import Which
from filestore.core.errors import FilestoreError, unreadable
from filestore.core.findings import FromIndex
from filestore.core.schema import JsonObject
from filestore.fulltext import Understood
from filestore.search import Mode, Query
from filestore.search.answer import Answer, At, Hit


class AnsweredStore(FromIndex, frozen=True, kw_only=True):
    """One of several stores that answered; see the keys of `Answer`."""

    KEYS = "root mode generation indexed_at behind rewrites tokens model at"
    SPARSE = "rewrites tokens at"

    root: str
    """The store's, absolute and without links: the paths of its hits are relative to it."""
    mode: Mode
    """The mode that answered."""
    generation: int
    """Of the index that answered."""
    indexed_at: str | None = None
    """When that was made, ISO 8601 in UTC."""
    rewrites: tuple[str, ...] = ()
    """The queries that were asked besides, with `--rewrite`."""
    tokens: int = 0
    """What a service counted to make them, in and out."""
    model: Which = "own"
    """Whose vectors were asked."""
    at: At | None = None
    """The commit that was searched, with `--at`."""


class MergedAnswer(JsonObject, Struct, frozen=True, kw_only=True):
    """The answer of several stores to one search."""

    KEYS = "query hits nearest respelt notes stores"

    query: str
    """As it was typed."""
    hits: tuple[Hit, ...]
    """By their rank in their own store, of one rank in the order in which the stores were named;
    with `--sort date` the newest first."""
    nearest: tuple[Hit, ...]
    """Where no store has a hit: the texts that are nearest."""
    respelt: str | None
    """What the hits answer, where no store found anything for the query as it was typed."""
    notes: tuple[str, ...]
    """What the user should know, each with its store; also which store did not answer, and why."""
    stores: Mapping[str, AnsweredStore]
    """The stores that answered, by the names that hits give as `store`."""
    understood: Understood
    """What the query was taken to ask for."""
    failed: Mapping[str, FilestoreError]
    """Why the others did not answer."""

    @property
    def is_found(self) -> bool:
        """Whether a file that is there answers the query as it was typed."""
        return not self.respelt and any(hit.freshness != "gone" for hit in self.hits)

    @property
    def by_store(self) -> Mapping[str | None, AnsweredStore]:
        """What has the root of each hit, by its `store`."""
        return dict[str | None, AnsweredStore](self.stores.items())


def asked_of_each(names: Iterable[str], ask: Callable[[str], Answer], query: Query) -> MergedAnswer:
    """What several stores answer; one that fails is named where another answers.

    Args:
        names: Of the stores; one that has two names answers by the first.
        ask: Answers by a name, with nothing left to be made.
        query: What is asked.

    Raises:
        UsageError: A name is empty.
        FilestoreError: None answers; the error of the first, with the words of all.
    """
    answers: dict[str, Answer] = {}
    failed: dict[str, FilestoreError] = {}
    for name in dict.fromkeys(names):
        require_named(name)
        try:
            answer = ask(name)
        except FilestoreError as error:
            failed[name] = error
        except OSError as error:
            failed[name] = unreadable(error)
        else:
            if all(one.root != answer.root for one in answers.values()):
                answers[name] = answer
    found = merged({name: asdict(one) for name, one in answers.items()}, failed, query)
    stores = {name: AnsweredStore(**one) for name, one in found.pop("stores").items()}
    understood = next(iter(answers.values())).understood
    return MergedAnswer(**found, stores=stores, understood=understood, failed=failed)


_KEYS: Final = AnsweredStore.KEYS.split()


def merged(
    answers: Mapping[str, Mapping[str, Any]],
    failed: Mapping[str, FilestoreError],
    query: Query,
) -> dict[str, Any]:
    """The hits of all by their rank in their own store, each with the name of that as `store`.

    Args:
        answers: Of each store by its name, its values by key; hits as such, or as JSON.
        failed: What kept the others from answering.
        query: What was asked.

    Raises:
        FilestoreError: There is no answer; the error of the first, with the words of all.
    """
    if not answers:
        raise _of_all(failed)
    found = {name: one for name, one in answers.items() if one["hits"] and not one.get("respelt")}
    respelt = None
    if not found:
        respelt = next(filter(None, (one.get("respelt") for one in answers.values())), None)
        found = {name: one for name, one in answers.items() if one.get("respelt") == respelt}
    hits = _by_rank({name: one["hits"] for name, one in found.items()}, query)
    nearest = {} if hits else {name: one["nearest"] for name, one in answers.items()}
    notes = [f"{name}: {note}" for name, one in answers.items() for note in one["notes"]]
    return {
        "query": query.text,
        "hits": hits,
        "nearest": _by_rank(nearest, query),
        "respelt": respelt,
        "notes": [
            *notes,
            *(f"{name} did not answer: {one.message}" for name, one in failed.items()),
        ],
        "stores": {
            name: {key: one[key] for key in _KEYS if key in one} for name, one in answers.items()
        },
    }


def _by_rank(lists: Mapping[str, Sequence[Any]], query: Query) -> list[Any]:
    ranked = [
        (
            rank,
            place,
            {"store": name, **hit} if isinstance(hit, Mapping) else replace(hit, store=name),
        )
        for place, (name, hits) in enumerate(lists.items())
        for rank, hit in enumerate(hits)
    ]
    ranked.sort(key=lambda one: one[:2])
    hits = [hit for _, _, hit in ranked]
    if query.sort == "date":
        hits.sort(
            key=lambda hit: (hit["date"] if isinstance(hit, Mapping) else hit.date) or "",
            reverse=True,
        )
    return hits[: query.k]


def _of_all(failed: Mapping[str, FilestoreError]) -> FilestoreError:
    first = next(iter(failed.values()))
    if len({error.message for error in failed.values()}) > 1:
        first.message = "; ".join(f"{name}: {error.message}" for name, error in failed.items())
    return first

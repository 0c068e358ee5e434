"""One answer of the answers of several stores to one search."""

from collections.abc import Mapping, Sequence
from typing import Any

Answer = Mapping[str, Any]


def merged(answers: Mapping[str, Answer], failed: Mapping[str, str], most: int) -> dict[str, Any]:
    """The hits of all by their rank in their own store, each with the name of that as `store`.

    Scores of two stores say nothing about each other. Of one rank the store that comes first does.

    Args:
        answers: Of each store by its name, as `--json` has it; one at least.
        failed: What kept the others from answering.
        most: How many hits there may be.
    """
    found = {name: one for name, one in answers.items() if one["hits"] and not one.get("respelt")}
    hits = _by_rank({name: one["hits"] for name, one in found.items()}, most)
    respelt = next(filter(None, (one.get("respelt") for one in answers.values())), None)
    if not hits and respelt:
        alike = {name: one for name, one in answers.items() if one.get("respelt") == respelt}
        hits = _by_rank({name: one["hits"] for name, one in alike.items()}, most)
    elif hits:
        respelt = None
    nearest = {name: one["nearest"] for name, one in answers.items()}
    notes = [f"{name}: {note}" for name, one in answers.items() for note in one["notes"]]
    return {
        "query": next(iter(answers.values()))["query"],
        "hits": hits,
        "nearest": [] if hits else _by_rank(nearest, most),
        "respelt": respelt,
        "notes": notes + [f"{name} did not answer: {why}" for name, why in failed.items()],
        "stores": {name: {"behind": one.get("behind", {})} for name, one in answers.items()},
    }


def _by_rank(lists: Mapping[str, Sequence[Answer]], most: int) -> list[dict[str, Any]]:
    ranked = [
        (rank, place, {"store": name, **hit})
        for place, (name, hits) in enumerate(lists.items())
        for rank, hit in enumerate(hits)
    ]
    return [hit for _, _, hit in sorted(ranked, key=lambda one: one[:2])[:most]]

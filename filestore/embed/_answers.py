"""Vectors in what an OpenAI-compatible service answers, or what is wrong with them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filestore.embed.base import ModelUnusable
from filestore.remote.address import EndpointError
from filestore.remote.refusals import Asked, fields_of, says_too_long
from filestore.remote.service import Answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LENGTH_STATUSES: Final = frozenset({400, 413, 422})


def may_be_too_long(answer: Answer) -> bool:
    """Whether fewer or shorter texts could be accepted where these were refused.

    Services differ: 413, 400 or 422 with all kinds of words, and llama.cpp says 500.
    """
    return answer.status in _LENGTH_STATUSES or says_too_long(answer)


def rows_of(body: bytes, count: int, asked: Asked) -> NDArray[np.float64]:
    """The vectors of an answer in the order of the texts: ``(count, n) float64, rows of length 1``.

    Raises:
        EndpointError: It is no such answer, or one for another number of texts.
        ModelUnusable: A vector holds something that is no finite number, or only zeros.
    """
    import numpy as np

    vectors = _vectors_in_order(_entries(body, count, asked), asked)
    try:
        matrix = np.array(vectors)
    except ValueError:
        raise _unusable(asked, "vectors of different lengths") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.dtype.kind not in "fiu":
        raise _unusable(asked, "something that is no vector of numbers")
    rows: NDArray[np.float64] = matrix.astype(np.float64)
    if not np.isfinite(rows).all():
        raise _unusable(asked, "NaN or infinity")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise _unusable(asked, "a vector of zeros")
    rows /= largest  # first, so that no square is too large or too small
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _entries(body: bytes, count: int, asked: Asked) -> list[Any]:
    entries: list[Any] = fields_of(body, "data", asked)["data"]
    if len(entries) != count:
        raise EndpointError(
            f"{asked.address} gave {len(entries)} vectors for {count} texts",
            remedy="see the service's own log, then run the command again",
        )
    return entries


def _vectors_in_order(entries: list[Any], asked: Asked) -> list[Any]:
    """By `index`; a service that gives none answers in order."""
    places = [entry.get("index", place) for place, entry in enumerate(entries)]
    if not all(type(place) is int for place in places) or sorted(places) != [*range(len(entries))]:
        raise EndpointError(
            f"{asked.address} does not say which vector belongs to which text: `index` must count "
            f"from 0 to {len(entries) - 1}",
            remedy="see the service's own log, then run the command again",
        )
    ordered = sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])
    vectors = [entry.get("embedding") for _, entry in ordered]
    if not all(isinstance(vector, list) for vector in vectors):
        raise _unusable(asked, "something that is no vector of numbers")
    return vectors


def _unusable(asked: Asked, found: str) -> ModelUnusable:
    return ModelUnusable(
        f"the model {asked.model!r} at {asked.address} gives {found}",
        remedy="see the service's own log; load the model anew there, or name another in "
        "`embedder` in filestore.toml",
    )

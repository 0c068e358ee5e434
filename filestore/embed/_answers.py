"""What the answers of an OpenAI-compatible service mean: vectors, or an error one can act on.

Pure. One rule: whatever a service says is a stranger's text: bounded, fit for a terminal, and
without the key, before it stands in a message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from filestore.core.safe_text import safe_text
from filestore.embed._http import KEYWORD_REMEDY, Answer
from filestore.embed.base import EndpointError, ModelUnusable
from filestore.embed.endpoint import KEY_VARIABLE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAID_LENGTH: Final = 300
_START_LENGTH: Final = 60
_LENGTH_STATUSES: Final = frozenset({400, 413, 422})
_TOO_LONG: Final = re.compile(
    r"too (?:long|large|big)|maximum (?:input|context|model)? ?length|context.length"
    r"|context size|exceeds?\b|maximum allowed batch|batch size|less than \d+ tokens",
    re.IGNORECASE,
)
_SPENT: Final = re.compile(r"exceeded your current quota", re.IGNORECASE)
_SETTINGS: Final = "under [model] in filestore.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked, of whom."""

    address: str
    model: str
    key: str = field(repr=False)
    """As it was sent, to be taken out of what comes back; "" for none."""


def is_final(answer: Answer) -> bool:
    """Whether asking again is pointless although the status says that trouble may pass."""
    return _says_too_long(answer) or _SPENT.search(_message(answer.body)) is not None


def may_be_too_long(answer: Answer) -> bool:
    """Whether fewer or shorter texts could be accepted where these were refused.

    Services differ: 413, 400 or 422 with all kinds of words, and llama.cpp says 500.
    """
    return answer.status in _LENGTH_STATUSES or _says_too_long(answer)


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


def refusal(answer: Answer, texts: list[str], asked: Asked) -> EndpointError:
    """The error for an answer that is none: whose fault it is, and what to do."""
    said = _said(answer, asked)
    if len(texts) == 1 and (answer.status == 413 or _says_too_long(answer)):
        return EndpointError(
            f"{asked.address} refuses a text of {len(texts[0])} characters as too long for "
            f"{asked.model!r}{said}; it starts {_start(texts[0])}",
            remedy=f"set `max_tokens` {_SETTINGS} to what the model takes, then add the source "
            "again; or split the text",
        )
    if 300 <= answer.status < 400:
        goal = safe_text(re.split("[?#]", answer.location)[0], keep_newlines=False)
        goal = re.sub(r"//[^/]*@", "//…@", goal)[:_SAID_LENGTH]
        return EndpointError(
            f"{asked.address} points to another address, {goal!r}; that is not followed",
            remedy=f"if you know that address, set it as `endpoint` {_SETTINGS} and run "
            "`filestore trust`",
        )
    if answer.status in (401, 403):
        done = "refused the key" if asked.key else "wants a key, and none is set"
        return EndpointError(
            f"{asked.address} {done} (status {answer.status})",
            remedy=f"set {KEY_VARIABLE} in the environment to a key that may use {asked.model!r}",
        )
    if answer.status == 404 and said:
        return EndpointError(
            f"{asked.address} does not know the model {asked.model!r}{said}",
            remedy="load it there (Ollama: `ollama pull`), or name another in `embedder` in "
            "filestore.toml",
        )
    if answer.status == 404:
        return EndpointError(
            f"{asked.address} has nothing at {asked.address}/embeddings (status 404)",
            remedy=f"check `endpoint` {_SETTINGS}: such addresses mostly end in /v1",
        )
    if answer.status == 429:
        when = "later" if answer.wait_s is None else f"in {_duration(answer.wait_s)}"
        return EndpointError(
            f"{asked.address} takes no more requests for now{said}",
            remedy=f"run the command again {when}: what was embedded is kept; {KEYWORD_REMEDY}",
        )
    text = f" the text {_start(texts[0])}" if len(texts) == 1 and answer.status < 500 else ""
    return EndpointError(
        f"{asked.address} answered{text} with {answer.status}{said}",
        remedy=f"see the service's own log, or check `embedder` and what stands {_SETTINGS}; "
        f"{KEYWORD_REMEDY}",
    )


def _entries(body: bytes, count: int, asked: Asked) -> list[Any]:
    answer = _parsed(body)
    if isinstance(answer, Mapping) and "error" in answer and "data" not in answer:
        said = _said(Answer(status=200, body=body, wait_s=None, location=""), asked)
        raise EndpointError(
            f"{asked.address} answered with an error{said}",
            remedy=f"check `embedder`, and what stands {_SETTINGS}",
        )
    entries = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(one, Mapping) for one in entries):
        raise EndpointError(
            f"{asked.address} does not answer as an OpenAI-compatible service: expected a list "
            f"`data`, found {_kind(body)}",
            remedy=f"check `endpoint` {_SETTINGS}: such addresses mostly end in /v1",
        )
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


def _parsed(body: bytes) -> Any:
    """None for what is no JSON; NaN is read, to be named as what it is."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            return None


def _kind(body: bytes) -> str:
    if not body.strip():
        return "an empty answer"
    if body.lstrip()[:1] == b"<":
        return "a page of HTML"
    return "other JSON" if _parsed(body) is not None else "something that is no JSON"


def _message(body: bytes) -> str:
    """What a service says is wrong: OpenAI's form, Ollama's, vLLM's or FastAPI's."""
    answer = _parsed(body)
    if not isinstance(answer, Mapping):
        return ""
    for found in (answer.get("error"), answer.get("message"), answer.get("detail")):
        message = found.get("message") if isinstance(found, Mapping) else found
        if isinstance(message, str):
            return message
    return ""


def _says_too_long(answer: Answer) -> bool:
    may_say = answer.status >= 400 and answer.status != 429  # "rate too large" will pass
    return may_say and _TOO_LONG.search(_message(answer.body)) is not None


def _said(answer: Answer, asked: Asked) -> str:
    """`: "<what it says>"`, or "" where it says nothing."""
    message = _message(answer.body)
    if asked.key:
        message = message.replace(asked.key, "…")
    message = safe_text(" ".join(message.split()), keep_newlines=False)
    shown = message[:_SAID_LENGTH] + "…" * (len(message) > _SAID_LENGTH)
    return f': "{shown}"' if shown else ""


def _start(text: str) -> str:
    shown = safe_text(" ".join(text[: 4 * _START_LENGTH].split()), keep_newlines=False)
    return f'"{shown[:_START_LENGTH]}…"'


def _unusable(asked: Asked, found: str) -> ModelUnusable:
    return ModelUnusable(
        f"the model {asked.model!r} at {asked.address} gives {found}",
        remedy="see the service's own log; load the model anew there, or name another in "
        "`embedder` in filestore.toml",
    )


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = -(-whole // 60)
    return f"{minutes} min" if minutes < 120 else f"{-(-minutes // 60)} h"

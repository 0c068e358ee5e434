"""What a service says in place of an answer: an error one can act on.

Pure. One rule: whatever a service says is a stranger's text: bounded, fit for a terminal, and
without the key, before it stands in a message.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from filestore.core.safe_text import Unshown, safe_text
from filestore.remote import EndpointError, EndpointUnusable
from filestore.remote.address import KEY_VARIABLE, Use
from filestore.remote.service import Answer

_SAID_LENGTH: Final = 300
_START_LENGTH: Final = 60
_TOO_LONG: Final = re.compile(
    r"too (?:long|large|big)|maximum (?:input|context|model)? ?length|context.length"
    r"|context size|exceeds?\b|maximum allowed batch|batch size|less than \d+ tokens",
    re.IGNORECASE,
)
_SPENT: Final = re.compile(r"exceeded your current quota", re.IGNORECASE)


class Asked(Unshown, Struct, frozen=True, kw_only=True):
    """What was asked, of whom."""

    use: Use
    address: str
    model: str
    key: str
    """As it was sent, to be taken out of what comes back; "" for none."""


def is_final(answer: Answer) -> bool:
    """Whether asking again is pointless although the status says that trouble may pass."""
    return says_too_long(answer) or _SPENT.search(message_of(answer)) is not None


def refusal(answer: Answer, asked: Asked, texts: Sequence[str]) -> EndpointError:
    """The error for an answer that is none: whose fault it is, and what to do."""
    said, use = _said(answer, asked), asked.use
    if len(texts) == 1 and (answer.status == 413 or says_too_long(answer)):
        return EndpointError(
            f"{asked.address} refuses a text of {len(texts[0])} characters as too long for "
            f"{asked.model!r}{said}; it starts {start_of(texts[0])}",
            remedy=use.too_long,
        )
    if 300 <= answer.status < 400:
        goal = safe_text(re.split("[?#]", answer.location)[0], keep_newlines=False)
        goal = re.sub(r"//[^/]*@", "//…@", goal)[:_SAID_LENGTH]
        return EndpointUnusable(
            f"{asked.address} points to another address, {goal!r}; that is not followed",
            remedy=f"if you know that address, set it as `endpoint` {use.settings} and run "
            "`filestore trust`",
        )
    if answer.status in (401, 403):
        done = "refused the key" if asked.key else "wants a key, and none is set"
        return EndpointUnusable(
            f"{asked.address} {done} (status {answer.status})",
            remedy=f"set {KEY_VARIABLE} in the environment to a key that may use {asked.model!r}",
        )
    if answer.status == 404 and said:
        return EndpointUnusable(
            f"{asked.address} does not know the model {asked.model!r}{said}",
            remedy=f"load it there (Ollama: `ollama pull`), or name another in "
            f"`{use.model_key}` in filestore.toml",
        )
    if answer.status == 404:
        return EndpointUnusable(
            f"{asked.address} has nothing at {asked.address}{use.path} (status 404)",
            remedy=f"check `endpoint` {use.settings}: such addresses mostly end in /v1",
        )
    if answer.status == 429:
        when = "later" if answer.wait_s is None else f"in {_duration(answer.wait_s)}"
        return EndpointUnusable(
            f"{asked.address} takes no more requests for now{said}",
            remedy=f"run the command again {when}: {use.kept}; {use.without}",
        )
    text = f" the text {start_of(texts[0])}" if len(texts) == 1 and answer.status < 500 else ""
    kind = EndpointUnusable if answer.status == 402 else EndpointError  # a bill is open
    return kind(
        f"{asked.address} answered{text} with {answer.status}{said}",
        remedy=f"see the service's own log, or check `{use.model_key}` and what stands "
        f"{use.settings}; {use.without}",
    )


def fields_of(body: bytes, name: str, asked: Asked) -> Mapping[str, Any]:
    """The fields of an answer of status 200; the one of that name is a list of objects.

    Raises:
        EndpointError: It holds an error, or no such list.
    """
    found = parsed(body)
    answer: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    if "error" in answer and name not in answer:
        said = _said(Answer(status=200, body=body, wait_s=None, location=""), asked)
        raise EndpointError(
            f"{asked.address} answered with an error{said}",
            remedy=f"check `{asked.use.model_key}`, and what stands {asked.use.settings}",
        )
    entries = answer.get(name)
    if not isinstance(entries, list) or not all(isinstance(one, Mapping) for one in entries):
        raise EndpointError(
            f"{asked.address} does not answer as an OpenAI-compatible service: expected a list "
            f"`{name}`, found {_kind(body)}",
            remedy=f"check `endpoint` {asked.use.settings}: such addresses mostly end in /v1",
        )
    return answer


def parsed(body: bytes) -> Any:
    """The JSON of an answer; None for what is none; NaN is read, to be named as what it is."""
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
    return "other JSON" if parsed(body) is not None else "something that is no JSON"


def says_too_long(answer: Answer) -> bool:
    """Whether a service says that it was given too much at once."""
    may_say = answer.status >= 400 and answer.status != 429  # "rate too large" will pass
    return may_say and _TOO_LONG.search(message_of(answer)) is not None


def _said(answer: Answer, asked: Asked) -> str:
    """`: "<what it says>"`, or "" where it says nothing."""
    message = message_of(answer)
    if asked.key:
        message = message.replace(asked.key, "…")
    message = safe_text(" ".join(message.split()), keep_newlines=False)
    shown = message[:_SAID_LENGTH] + "…" * (len(message) > _SAID_LENGTH)
    return f': "{shown}"' if shown else ""


def start_of(text: str) -> str:
    """How a text begins, for a message."""
    shown = safe_text(" ".join(text[: 4 * _START_LENGTH].split()), keep_newlines=False)
    return f'"{shown[:_START_LENGTH]}…"'


def message_of(answer: Answer) -> str:
    """What a service says is wrong: OpenAI's form, Ollama's, vLLM's or FastAPI's; or ""."""
    values = parsed(answer.body)
    if not isinstance(values, Mapping):
        return ""
    for found in (values.get("error"), values.get("message"), values.get("detail")):
        message = found.get("message") if isinstance(found, Mapping) else found
        if isinstance(message, str):
            return message
    return ""


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = -(-whole // 60)
    return f"{minutes} min" if minutes < 120 else f"{-(-minutes // 60)} h"

"""One kind of request to one service: JSON is posted or got, however the service behaves.

Knows nothing of what is asked. Refused, slow, dripping and endless answers end in `EndpointError`;
a service that is busy is asked again for a while. What it says in place of an answer becomes an
error to act on: a stranger's text, bounded, fit for a terminal, and without the key. One rule: a
request goes to the address it was made for and nowhere else: redirects are not followed and no
proxy is looked up, since a key travels with it.

The threads that wait for a service are no executor of the standard library: its threads are joined
when the program ends, so a service that hangs would block Ctrl-C. These are never waited for.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson
from msgspec import Struct

from filestore.core.errors import on_error
from filestore.core.safe_text import Unshown, safe_text
from filestore.remote import EndpointError, EndpointUnusable
from filestore.remote.address import KEY_VARIABLE, Address, Use

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Retry
    from urllib3.exceptions import HTTPError

_PASSING: Final = frozenset({429, 500, 502, 503, 504})
_READ_AT_ONCE: Final = 65_536
Item = TypeVar("Item")
Result = TypeVar("Result")
_LOOK_S: Final = 0.1
"""How often it is looked whether somebody wants to stop."""


class ServiceLimits(Struct, frozen=True, kw_only=True):
    """How long, how often and how much."""

    connect_s: float = 10.0
    read_s: float = 120.0
    """For one answer from the request to its last byte; a service may load its model first."""
    total_s: float = 300.0
    """For one batch, with every repetition and wait."""
    retries: int = 4
    backoff_s: float = 0.5
    """Doubled with each repetition after the first, up to `longest_wait_s`."""
    longest_wait_s: float = 30.0
    """A service that asks for a longer pause is not waited for."""
    answer_bytes: int = 64 * 1024 * 1024


class ServiceAnswer(Struct, frozen=True, kw_only=True):
    """What came back, whole."""

    status: int
    body: bytes
    wait_s: float | None
    """How long the service asks to be left alone; None if it does not say."""
    location: str
    """Where it would send us; "" for nowhere."""


class Deadline:
    """How long somebody waits for an answer, and whether anybody still does."""

    def __init__(self, seconds: float, stop: threading.Event) -> None:
        self._end = time.monotonic() + seconds
        self._stop = stop

    def left_s(self) -> float:
        """Seconds that are left; 0 when the result is no longer wanted."""
        return 0.0 if self._stop.is_set() else max(0.0, self._end - time.monotonic())

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than makes sense."""
        self._stop.wait(min(seconds, self.left_s()))

    def hold(self, seconds: float) -> None:
        """Wait for our own sake: the service gets as much time as before."""
        begun = time.monotonic()
        self._stop.wait(seconds)
        self._end += time.monotonic() - begun


class Pace:
    """A limit of requests a minute, spread evenly; safe between threads.

    Args:
        per_minute: How many; None for any number.
        now: Tells the time, in seconds.
    """

    def __init__(
        self, per_minute: int | None = None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.gap_s = 60.0 / per_minute if per_minute else 0.0
        self._now = now
        self._next = -math.inf
        self._lock = threading.Lock()

    def turn_s(self) -> float:
        """Take the next turn: in how many seconds it is."""
        with self._lock:
            now = self._now()
            turn = max(now, self._next)
            self._next = turn + self.gap_s
        return turn - now


class Service:
    """Posts JSON to one address, or gets it, over connections that are kept; safe between threads.

    Args:
        address: Where it is.
        use: What it is asked for.
        limits: How patient to be.
        is_final: Says of an answer that a repetition would change nothing, whatever its status.
        pace: How often it may be asked; None for as often as it answers.
    """

    def __init__(
        self,
        address: Address,
        use: Use,
        *,
        limits: ServiceLimits,
        is_final: Callable[[ServiceAnswer], bool],
        pace: Pace | None = None,
    ) -> None:
        self.address = address
        self._use = use
        self._limits = limits
        self._is_final = is_final
        self._pace = pace or Pace()
        self._lock = threading.Lock()
        self._pool: HTTPConnectionPool | None = None

    def post(self, body: bytes, key: str, until: Deadline) -> ServiceAnswer:
        """Post, again where that may help, and return the last answer, whatever its status.

        Args:
            body: The JSON.
            key: Sent along; "" for none.
            until: How long it is waited for.

        Raises:
            EndpointError: No whole answer came.
        """
        return self._ask("POST", self._use.path, body, key, until)

    def get(self, path: str, key: str, until: Deadline) -> ServiceAnswer:
        """The same, of what is at a path below the address, with its query."""
        return self._ask("GET", path, None, key, until)

    def _ask(
        self, method: str, path: str, body: bytes | None, key: str, until: Deadline
    ) -> ServiceAnswer:
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        headers = {"User-Agent": "filestore"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Authorization"] = f"Bearer {key}"
        retry = self._fresh_retry()
        while True:
            answer, problem = None, None
            try:
                answer = self._attempt(method, path, body, headers, until)
            except ReadTimeoutError as error:  # asked again, it would do the same work twice
                raise self._failed(error) from error
            except HTTPError as error:
                problem = error
            if answer is not None:
                too_long = (answer.wait_s or 0.0) > self._limits.longest_wait_s
                if answer.status not in _PASSING or too_long or self._is_final(answer):
                    return answer
            try:
                retry = retry.increment(method, path, error=problem)
            except HTTPError as error:  # enough of it
                if answer is not None:
                    return answer
                raise self._failed(problem or error) from problem
            asked_s = (answer.wait_s if answer else None) or 0.0
            until.pause(max(retry.get_backoff_time(), asked_s))

    def too_slow(self, seconds: float) -> EndpointError:
        """The error of a service that does not answer in time."""
        return EndpointError(
            f"{self.address} did not answer within {seconds:.0f} s: see whether the"
            f" service is busy, then run this again; {self._use.without}",
        )

    def _fresh_retry(self) -> Retry:
        from urllib3 import Retry

        return Retry(
            total=self._limits.retries,
            connect=1,
            read=2,
            other=0,  # refused, no such host, no trusted certificate: it stays so
            redirect=False,
            allowed_methods={"GET", "POST"},
            backoff_factor=self._limits.backoff_s,
            backoff_max=self._limits.longest_wait_s,
        )

    def _attempt(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        until: Deadline,
    ) -> ServiceAnswer:
        from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Timeout
        from urllib3.exceptions import InvalidHeader

        if turn_s := self._pace.turn_s():
            until.hold(turn_s)
        limit_s = min(self._limits.read_s, until.left_s())
        if limit_s <= 0:
            raise self.too_slow(self._limits.total_s)
        with self._lock:
            if self._pool is None:
                kind = HTTPSConnectionPool if self.address.scheme == "https" else HTTPConnectionPool
                self._pool = kind(self.address.host, self.address.port, maxsize=8)
        response = self._pool.urlopen(
            method,
            self.address.path + path,
            body=body,
            headers=headers,
            retries=False,
            redirect=False,
            preload_content=False,
            timeout=Timeout(connect=min(self._limits.connect_s, limit_s), read=limit_s),
        )
        with on_error(response.close):
            data = self._read(response, limit_s)
        response.release_conn()
        location = response.headers.get("Location", "") if 300 <= response.status < 400 else ""
        try:
            wait_s = self._fresh_retry().get_retry_after(response)
        except (InvalidHeader, ValueError, OverflowError):
            wait_s = None
        return ServiceAnswer(status=response.status, body=data, wait_s=wait_s, location=location)

    def _read(self, response: BaseHTTPResponse, limit_s: float) -> bytes:
        """Read block by block, because a time limit of the socket starts anew with each byte."""
        end = time.monotonic() + limit_s
        data = bytearray()
        while block := response.read1(_READ_AT_ONCE, decode_content=False):
            data += block
            if len(data) > self._limits.answer_bytes:
                raise EndpointError(
                    f"{self.address} sends more than {self._limits.answer_bytes:,} bytes as one "
                    "answer"
                    f": check `endpoint` {self._use.settings}",
                )
            if time.monotonic() > end:
                raise self.too_slow(limit_s)
        return bytes(data)

    def _failed(self, problem: HTTPError) -> EndpointError:
        from urllib3.exceptions import (
            ConnectTimeoutError,
            NewConnectionError,
            ProtocolError,
            ReadTimeoutError,
            SSLError,
        )

        if isinstance(problem, ReadTimeoutError):
            return self.too_slow(self._limits.read_s)
        # Some versions raise a timeout for a refused connection.
        if isinstance(problem, ConnectTimeoutError) and not isinstance(problem, NewConnectionError):
            return self.too_slow(self._limits.connect_s)
        remedy = f"start the service, or fix `endpoint` {self._use.settings}"
        if isinstance(problem, SSLError) and "CERTIFICATE" in str(problem):
            remedy = "if you trust its certificate, name the file that signs it in SSL_CERT_FILE"
        elif isinstance(problem, SSLError):
            remedy = "if it speaks plain http, write `endpoint` with http://"
        kind = EndpointError if isinstance(problem, ProtocolError) else EndpointUnusable
        return kind(
            f"{self.address} cannot be reached: {_reason(problem)}",
            remedy=f"{remedy}; {self._use.without}",
            detail=safe_text(str(problem), keep_newlines=False)[:500],
        )


def _reason(problem: BaseException) -> str:
    """The message of the system, without the library's words around it."""
    if "CERTIFICATE" in str(problem):
        return "its certificate is not trusted here"
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return safe_text(cause.strerror, keep_newlines=False)[:200]
        cause = cause.__cause__ or cause.__context__
    words = {
        "ProtocolError": "it closed the connection without a whole answer",
        "SSLError": "it does not speak https",
    }
    return words.get(type(problem).__name__, type(problem).__name__)


def in_order(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    threads: int,
    limit_s: float,
    ended: threading.Event,
) -> list[Result]:
    """The result of each item, worked on by several threads at once.

    Args:
        work: What to do with an item.
        items: The items.
        threads: How many at most.
        limit_s: The longest time in which no item may be finished.
        ended: Set when the result is no longer wanted; work looks at it.

    Raises:
        TimeoutError: No item was finished within the limit.
        Exception: Whatever the first item to fail raised.
    """
    results: dict[int, Result] = {}
    finishing = as_ended(
        work, items, threads=threads, limit_s=limit_s, ended=ended, stop=threading.Event()
    )
    with contextlib.closing(finishing):
        for place, result in finishing:
            if isinstance(result, Exception):
                raise result
            results[place] = result
    return [results[place] for place in range(len(items))]


def as_ended(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    threads: int,
    limit_s: float,
    ended: threading.Event,
    stop: threading.Event,
) -> Generator[tuple[int, Result | Exception], None, None]:
    """The place of each item with its result, or with what it raised, as they end.

    Args:
        work: What to do with an item.
        items: The items.
        threads: How many at most.
        limit_s: The longest time in which no item may be finished.
        ended: Set when no result is wanted any more; work looks at it.
        stop: Set by the caller to stop: what has ended before is yielded, and nothing else.

    Raises:
        TimeoutError: No item was finished within the limit.
    """
    waiting: SimpleQueue[tuple[int, Item]] = SimpleQueue()
    finished: SimpleQueue[tuple[int, Result | Exception]] = SimpleQueue()
    for numbered in enumerate(items):
        waiting.put(numbered)

    def work_through() -> None:
        while not (ended.is_set() or stop.is_set()):
            try:
                place, item = waiting.get_nowait()
            except Empty:
                return
            try:
                finished.put((place, work(item)))
            except Exception as error:  # handed to the thread that waits
                finished.put((place, error))

    try:
        if not stop.is_set():
            for _ in range(min(threads, len(items))):
                threading.Thread(target=work_through, daemon=True).start()
        for _ in items:
            found = _next_of(finished, limit_s, stop)
            if found is None:
                return
            yield found
    finally:
        ended.set()


def _next_of(
    finished: SimpleQueue[tuple[int, Result | Exception]], limit_s: float, stop: threading.Event
) -> tuple[int, Result | Exception] | None:
    """What ends next; None where that is not waited for.

    Raises:
        TimeoutError: Nothing ended within the limit.
    """
    end = time.monotonic() + limit_s
    while True:
        is_stopped = stop.is_set()
        left_s = end - time.monotonic()
        try:
            if is_stopped or left_s <= 0:
                return finished.get_nowait()
            return finished.get(timeout=min(_LOOK_S, left_s))
        except Empty:
            if is_stopped:
                return None
            if left_s <= 0:
                raise TimeoutError(f"nothing was finished within {limit_s} s") from None


_MESSAGE_LENGTH: Final = 300
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


def is_final(answer: ServiceAnswer) -> bool:
    """Whether asking again is pointless although the status says that trouble may pass."""
    return says_too_long(answer) or _SPENT.search(message_of(answer)) is not None


def refusal(answer: ServiceAnswer, asked: Asked, texts: Sequence[str]) -> EndpointError:
    """The error for an answer that is none: whose fault it is, and what to do."""
    quoted, use = _quoted_message(answer, asked), asked.use
    if len(texts) == 1 and (answer.status == 413 or says_too_long(answer)):
        return EndpointError(
            f"{asked.address} refuses a text of {len(texts[0])} characters as too long for "
            f"{asked.model!r}{quoted}; it starts {start_of(texts[0])}",
            remedy=use.too_long,
        )
    if 300 <= answer.status < 400:
        goal = safe_text(re.split("[?#]", answer.location)[0], keep_newlines=False)
        goal = re.sub(r"//[^/]*@", "//…@", goal)[:_MESSAGE_LENGTH]
        return EndpointUnusable(
            f"{asked.address} points to another address, {goal!r}; that is not followed",
            remedy=f"if you know that address, set it as `endpoint` {use.settings} and run "
            "`filestore trust`",
        )
    if answer.status in (401, 403):
        done = "refused the key" if asked.key else "wants a key, and none is set"
        return EndpointUnusable(
            f"{asked.address} {done} (status {answer.status})"
            f": set {KEY_VARIABLE} in the environment to a key that may use {asked.model!r}",
        )
    if answer.status == 404 and quoted:
        return EndpointUnusable(
            f"{asked.address} does not know the model {asked.model!r}{quoted}: load it"
            f" there, or name another in `{use.model_key}` in filestore.toml",
        )
    if answer.status == 404:
        return EndpointUnusable(
            f"{asked.address} has nothing at {asked.address}{use.path} (status 404)"
            f": check `endpoint` {use.settings}: such addresses mostly end in /v1",
        )
    if answer.status == 429:
        when = "later" if answer.wait_s is None else f"in {_duration(answer.wait_s)}"
        return EndpointUnusable(
            f"{asked.address} takes no more requests for now{quoted}"
            f": run the command again {when}: {use.kept}; {use.without}",
        )
    text = f" the text {start_of(texts[0])}" if len(texts) == 1 and answer.status < 500 else ""
    kind = EndpointUnusable if answer.status == 402 else EndpointError  # a bill is open
    return kind(
        f"{asked.address} answered{text} with {answer.status}{quoted}"
        f": see the service's own log, or check `{use.model_key}` and the settings "
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
        quoted = _quoted_message(
            ServiceAnswer(status=200, body=body, wait_s=None, location=""), asked
        )
        raise EndpointError(
            f"{asked.address} answered with an error{quoted}"
            f": check `{asked.use.model_key}`, and the settings {asked.use.settings}",
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


def says_too_long(answer: ServiceAnswer) -> bool:
    """Whether a service says that it was given too much at once."""
    may_say = answer.status >= 400 and answer.status != 429  # "rate too large" will pass
    return may_say and _TOO_LONG.search(message_of(answer)) is not None


def _quoted_message(answer: ServiceAnswer, asked: Asked) -> str:
    """`: "<what it says>"`, or "" where it says nothing."""
    message = message_of(answer)
    if asked.key:
        message = message.replace(asked.key, "…")
    message = safe_text(" ".join(message.split()), keep_newlines=False)
    shown = message[:_MESSAGE_LENGTH] + "…" * (len(message) > _MESSAGE_LENGTH)
    return f': "{shown}"' if shown else ""


def start_of(text: str) -> str:
    """How a text begins, for a message."""
    shown = safe_text(" ".join(text[: 4 * _START_LENGTH].split()), keep_newlines=False)
    return f'"{shown[:_START_LENGTH]}…"'


def message_of(answer: ServiceAnswer) -> str:
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

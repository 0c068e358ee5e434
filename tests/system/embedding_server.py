"""A service with OpenAI's `/embeddings` on loopback, that can be told to behave badly.

`chat_server` is the same for `/chat/completions`, `vector_store_server` for `/vector_stores`.

It embeds for real, if simply: words are hashed into signs, so that texts that share words lie near
each other. One rule: the same text gives the same numbers, whatever is asked beside it.

    with EmbeddingServer() as server:
        server.behave(status(503), well)   # once; then well for ever
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

DIMENSION = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def texts(self) -> list[str]:
        """What was to be embedded."""
        return list(self.body["input"])


class Handler(BaseHTTPRequestHandler):
    """Reads one request and lets the behaviour of the moment answer it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "_Listener"

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length))
        request = Request(path=self.path, headers=dict(self.headers), body=body)
        self.server.owner.take(request)(self, request)

    def do_GET(self) -> None:
        """Only a client that follows redirects comes here, or one of a service that is read."""
        request = Request(path=self.path, headers=dict(self.headers), body={})
        behaviour = self.server.owner.take(request)
        if self.server.owner.is_read:
            behaviour(self, request)
        else:
            self.send_error(405)

    def reply(self, code: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer."""
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def reply_json(self, value: Any, code: int = 200) -> None:
        """Send JSON, NaN included, as Python's services do."""
        self.reply(code, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def reply_vectors(self, vectors: list[list[Any]]) -> None:
        """Send vectors in the form of OpenAI."""
        self.reply_json(listed(vectors))

    def log_message(self, format: str, *values: Any) -> None:
        """Nothing: tests are quiet."""


Behaviour = Callable[[Handler, Request], None]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    owner: "EmbeddingServer"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to report."""


class EmbeddingServer:
    """The service; behaves well until told otherwise."""

    is_read = False
    """Whether it answers what is not posted."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._behaviours: list[Behaviour] = [well]
        self._lock = threading.Lock()
        self._listener = _Listener(("127.0.0.1", 0), Handler)
        self._listener.owner = self
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,))

    @property
    def endpoint(self) -> str:
        """What stands as `endpoint` in the settings."""
        return f"http://127.0.0.1:{self._listener.server_address[1]}/v1"

    def behave(self, *behaviours: Behaviour) -> None:
        """Answer the next requests so, one each; the last behaviour stays."""
        with self._lock:
            self._behaviours = list(behaviours)

    def take(self, request: Request) -> Behaviour:
        """Note a request; returns what to do with it."""
        with self._lock:
            self.requests.append(request)
            return self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()


def interrupt(program: str, server: EmbeddingServer, folder: Path) -> None:
    """Send Ctrl-C to a program that waits for a server which hangs; it must end at once.

    Args:
        program: In Python; it gets the endpoint as its first argument.
        server: What it asks, four times at once.
        folder: Where it runs.
    """
    # A shell starts what it puts in the background deaf to this signal.
    hears = "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", hears + program, server.endpoint],
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=folder,
    )
    while len(server.requests) < 4:
        assert process.poll() is None
        server.closing.wait(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in errors


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """The sum of the signs of its words; the last number keeps it from being zero."""
    sums = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()):
        bits = int.from_bytes(hashlib.shake_256(word.encode()).digest(dimension // 8 + 1), "big")
        for place in range(dimension):
            sums[place] += 1.0 if bits >> place & 1 else -1.0
    sums[-1] += 0.5
    return sums


def listed(vectors: list[list[Any]]) -> dict[str, Any]:
    """Vectors in the form of OpenAI."""
    data = [
        {"object": "embedding", "index": place, "embedding": vector}
        for place, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": "test"}


def vectors_for(request: Request) -> list[list[Any]]:
    """What a good service answers."""
    dimension = request.body.get("dimensions", DIMENSION)
    return [list(vector_of(text, dimension)) for text in request.texts]


def well(handler: Handler, request: Request) -> None:
    """As it should; empty texts are refused, as OpenAI does."""
    if not all(request.texts):
        handler.reply_json({"error": {"message": "input cannot be an empty string"}}, 400)
        return
    handler.reply_vectors(vectors_for(request))


def status(code: int, said: Any = None, **headers: str) -> Behaviour:
    """An error with JSON that says why; ``Retry_After="1"`` gives a header."""
    body = json.dumps({"error": {"message": "no luck"}} if said is None else said).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.reply(code, body, named)


def raw(body: bytes, code: int = 200, **headers: str) -> Behaviour:
    """These very bytes."""
    return lambda handler, _: handler.reply(code, body, headers)


def vectors(change: Callable[[list[list[Any]]], list[list[Any]]]) -> Behaviour:
    """Vectors, changed before they are sent."""
    return lambda handler, request: handler.reply_vectors(change(vectors_for(request)))


def entries(change: Callable[[list[dict[str, Any]]], list[Any]]) -> Behaviour:
    """The list of entries, changed before it is sent."""
    return lambda handler, request: handler.reply_json(
        {"data": change(listed(vectors_for(request))["data"])}
    )


def at_most(*, texts: int = 1_000_000, characters: int = 1_000_000, code: int = 400) -> Behaviour:
    """Well for few and short texts; others are too long."""

    def behave(handler: Handler, request: Request) -> None:
        if len(request.texts) > texts or max(map(len, request.texts)) > characters:
            message = "This model's maximum context length is 8192 tokens"
            handler.reply_json({"error": {"message": message}}, code)
        else:
            well(handler, request)

    return behave


def wants_key(key: str) -> Behaviour:
    """Well with the key; else refused, repeating what was sent."""

    def behave(handler: Handler, request: Request) -> None:
        sent = request.headers.get("Authorization", "")
        if sent == f"Bearer {key}":
            well(handler, request)
        else:
            handler.reply_json({"error": {"message": f"Incorrect API key: {sent}"}}, 401)

    return behave


def hangs_up(handler: Handler, _: Request) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True


def hangs(handler: Handler, _: Request) -> None:
    """Says nothing, until the server ends."""
    handler.server.owner.closing.wait(60)
    handler.close_connection = True


def drips_headers(handler: Handler, _: Request) -> None:
    """A byte of the first lines at a time, for ever."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _drip(handler)


def drips(handler: Handler, _: Request) -> None:
    """A byte of the answer at a time, for ever."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    _drip(handler)


def endless(handler: Handler, _: Request) -> None:
    """An answer without an end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    block = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    while not handler.server.owner.closing.is_set():
        handler.wfile.write(block)


def cut_off(handler: Handler, request: Request) -> None:
    """Half an answer, then the connection is closed."""
    body = json.dumps(listed(vectors_for(request))).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    handler.wfile.write(head + body[: len(body) // 2])
    handler.close_connection = True


def _drip(handler: Handler) -> None:
    handler.close_connection = True
    while not handler.server.owner.closing.wait(0.02):
        handler.wfile.write(b"x")

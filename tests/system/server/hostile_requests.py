"""Requests that no good client sends, over raw connections: to a server that has to go on.

Each kind is made by chance from what attackers and broken programs send. A reply is well where it
is an HTTP reply, or an end of the connection; never a traceback, a secret or another file.
"""

import json
import random
import socket
import string
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from filestore.server.operations import ROUTES

SECRET = "the-secret-of-the-house"
"""Stands in a file beside the store, which no request may show."""
WAIT_S = 120.0
"""Much longer than the server waits for a client, since a busy machine is slow: no request hangs
beyond that."""
_PATHS = (
    "/", "/docs", "/health", "/metrics", "/stores", "/openapi.json", "/page/", "/rag/list", "/mcp",
    "/nothing", "/add", *(f"/{name}" for name in ROUTES),
)  # fmt: skip
_TRAVERSALS = (
    "../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "....//secret.txt", "/etc/passwd",
    "chunked/../../secret.txt",
    "chunked\\..\\..\\secret.txt", "\u2025/secret.txt", "secret.txt\0.md",
    "file:///etc/passwd", "//secret.txt", "/proc/self/environ", "~/.ssh/id_rsa",
    "..;/secret.txt",
    "%c0%ae%c0%ae/secret.txt", "source/link.md", "chunked/link.md",
)  # fmt: skip
_STRANGE = (
    None, True, -1, 0, 1.0, 3.0, 0.5, 1e308, 10**40, "", " ", "\0", "a" * 9_000, [], [[]] * 50, {},
    {"a": {"b": []}},
    "\ud7ff\u202e\u2066", "é", "\u0301" * 500, "' OR 1=1 --", "${jndi:ldap://x}", "{{7*7}}",
    "<script>alert(1)</script>", "\x1b]0;x\x07", ["\0"], "*", '"', "((((", "a AND", "-" * 500, "+",
)  # fmt: skip
_ASKED = (
    *(f"/{name}" for name in ROUTES if name != "undo"),
    "/rag/index", "/rag/a/query", "/rag/a/index/reload", "/mcp", "/events?store=%00",
)  # fmt: skip
"""What takes a body; an undo without any is a good one."""


@dataclass
class Tally:
    """What came of the requests."""

    asked: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, data: bytes, forbidden: Sequence[bytes]) -> None:
        """Judge one reply."""
        head = data[:12].decode("latin-1")
        status = head.partition(" ")[2] if head.startswith("HTTP/1.1 ") else "closed"
        bad = [
            f"{kind}: the reply holds {what!r}: {data[:300]!r}"
            for what in forbidden
            if what in data
        ]
        if data and not head.startswith("HTTP/1."):
            bad.append(f"{kind}: no reply of HTTP: {data[:80]!r}")
        if status.startswith("500"):
            bad.append(f"{kind}: {data[-300:]!r}")
        with self.lock:
            self.asked[kind] += 1
            self.replies[status] += 1
            self.wrong += bad


class Attacker:
    """Sends requests by chance."""

    def __init__(self, port: int, token: str, seed: int, tally: Tally) -> None:
        self._port, self._token = port, token
        self._chance = random.Random(seed)
        self._tally = tally
        self._forbidden = [SECRET.encode(), b"Traceback (most", b"root:x:0", token.encode()]
        self._kinds: list[tuple[int, Callable[[], None]]] = [
            (20, self.strange_values),
            (12, self.traversals),
            (10, self.wrong_tokens),
            (10, self.garbage),
            (8, self.broken_json),
            (6, self.queries),
            (8, self.headers),
            (6, self.cut),
            (6, self.methods),
            (6, self.uploads),
            (3, self.huge),
            (1, self.chunks),
            (1, self.never_reads),
        ]

    def attack(self, times: int) -> None:
        """So often."""
        kinds = [kind for _, kind in self._kinds]
        weights = [weight for weight, _ in self._kinds]
        for kind in self._chance.choices(kinds, weights, k=times):
            try:
                kind()
            except TimeoutError:
                with self._tally.lock:
                    self._tally.wrong.append(f"{kind.__name__}: no end in {WAIT_S:.0f} s")

    # The kinds

    def strange_values(self) -> None:
        """JSON of the wrong types, and too much of it."""
        # An undo without any value is a good one.
        name = self._chance.choice([one for one in ROUTES if one != "undo"])
        keys = [*ROUTES[name].schema["properties"], "store", "__class__", "nothing"]
        given = {
            self._chance.choice(keys): self._chance.choice(_STRANGE)
            for _ in range(self._chance.randrange(5))
        }
        if self._chance.random() < 0.5:
            given["query"] = self._chance.choice(_STRANGE)
        self._post(f"/{name}", json.dumps(given).encode())

    def traversals(self) -> None:
        """Paths that lead out, wherever one may be given."""
        path = self._chance.choice(_TRAVERSALS)
        name = self._chance.choice(["show", "similar", "links", "about", "ls", "add", "remove"])
        key = {"about": "asked", "ls": "resource", "add": "paths", "remove": "resources"}.get(
            name, "path"
        )
        value: Any = [path] if key in ("paths", "resources") else path
        if self._chance.random() < 0.3:
            self._get(f"/page/{path}", "traversals")
        elif self._chance.random() < 0.3:
            self._get(f"/rag/{path}/index/status", "traversals")
        else:
            self._post(f"/{name}", json.dumps({key: value}).encode(), "traversals")

    def wrong_tokens(self) -> None:
        """Tokens that are not the one, in places where none is."""
        token = self._chance.choice(
            [
                "",
                "x",
                self._token[:-1],
                self._token + "x",
                self._token.swapcase(),
                "é" * 20,
                "a" * 9_000,
            ]
        )
        where = self._chance.choice(["Authorization: Bearer ", "X-Token: ", "Cookie: token=", ""])
        head = f"{where}{token}\r\nConnection: close\r\n" if where else "Connection: close\r\n"
        path = self._chance.choice(_PATHS[5:])
        request = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}Content-Length: 2\r\n\r\n{{}}"
        self._send(request.encode(), "wrong_tokens", is_whole=True)

    def garbage(self) -> None:
        """No HTTP at all."""
        self._send(self._chance.randbytes(self._chance.randrange(1, 4_000)), "garbage")

    def broken_json(self) -> None:
        """Bodies that end too early, nest too deep, are no UTF-8, or are of another kind."""
        body = self._chance.choice(
            [
                b"{", b'{"query": ', b"[" * 50_000, b'{"a":' * 20_000, b"\xff\xfe{}", b"null", b"0",
                b'{"query": "\\ud800"}', b'{"query": "a", "query": "b"}', b"NaN", b"",
                b'{"k": 1e999, "query": "a"}', b"'" * 1_000, self._chance.randbytes(300),
                b'{"query": "a", "k": ' + b"1" * 5_000 + b"}", b"1" * 5_000, b'{"k": -Infinity}',
                b'{"query": "a", "where": ' + b'{"a": ' * 10_000 + b"1" + b"}" * 10_001,
                b'{"query": "a", "where": {"a": ' + b"[" * 250 + b"]" * 250 + b"}}",
                b'{"query": "a", "source": [' + b'"",' * 100_000 + b'""]}',
                b'{"query": "a", "where": {"a": [' + b"1," * 100_000 + b"1]}}",
                b'{"questions": [' + b"{}," * 100_000 + b"{}]}",
                b'{"rag_name": "a", "documents": [' + b'"",' * 100_000 + b'""]}',
                b'{"rag_name": "a", "documents": [{"text": "\\ud800", "metadata": {"a": [[[]]]}}]}',
                b'{"jsonrpc": "2.0", "id": 1e999, "method": "tools/call", "params": {"name": 1}}',
            ]
        )  # fmt: skip
        kind = self._chance.choice(
            ["application/json", "text/xml", "", "application/x-pickle", "a" * 900]
        )
        self._post(self._chance.choice(_ASKED), body, "broken_json", kind)

    def queries(self) -> None:
        """Queries of an address that are broken, or that nobody sends."""
        query = self._chance.choice(
            [
                "%", "%zz", "query=%", "query=%ff", "query=%ed%a0%80", "query=a&query=b", "=", "&&",
                "query=a&k=NaN", "query=a&k=" + "1" * 5_000, "query=a&k=1.0", "query=a&where=%7B",
                "query=a&where=" + "%5B" * 2_000, "query=" + "%00" * 300, "store=%ff&query=a",
                "query=a&kind=chunk&kind=" + "x" * 900, "query=a;k=1", "query=a&__proto__=1",
                "path=" + "../" * 900, "path=%00", "path=a%3A" + "9" * 900, "resource=%0a",
                "a=1&" * 3_000,
            ]
        )  # fmt: skip
        self._get(f"{self._chance.choice(_ASKED)}?{query}", "queries")

    def headers(self) -> None:
        """Too many, too long, doubled, split, with signs that are none."""
        head = self._chance.choice(
            [
                b"X: " + b"a" * 40_000 + b"\r\n",
                b"".join(b"X-%d: 1\r\n" % n for n in range(3_000)),
                b"Host: evil.example\r\n",
                b"Content-Length: 5\r\nContent-Length: 6\r\n",
                b"Content-Length: -1\r\n",
                b"Content-Length: 99999999999999999999\r\n",
                b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
                b"Transfer-Encoding: gzip\r\n",
                b"X: a\r\n b\r\n",
                b"X\x00: a\r\n",
                b"X: \xff\xfe\r\n",
                b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
                b"Transfer-Encoding: chunked, identity\r\n",
                b"Transfer-Encoding : chunked\r\n",
                b"Content-Length: 4\r\nContent-Length: 4, 5\r\n",
                b"Content-Length: +4\r\n",
                b"Content-Length: " + b"1" * 5_000 + b"\r\n",
                b"Accept: " + b"*/*;q=0.1," * 2_000 + b"\r\n",
                b"Content-Type: multipart/form-data; boundary=" + b"b" * 20_000 + b"\r\n",
                b"Expect: 100-continue\r\nContent-Length: 10\r\n",
                b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n",
                b"Range: bytes=0-18446744073709551615\r\n",
            ]
        )
        self._send(b"POST /search HTTP/1.1\r\n" + self._headers() + head + b"\r\n", "headers")

    def cut(self) -> None:
        """A good request of which a part comes, and an end."""
        body = json.dumps({"query": "rent"}).encode()
        head = f"POST /search HTTP/1.1\r\nContent-Length: {len(body)}\r\n".encode()
        whole = head + self._headers() + b"\r\n" + body
        with self._connection() as connection:
            connection.sendall(whole[: self._chance.randrange(1, len(whole))])
            if self._chance.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._tally.note("cut", b"", self._forbidden)

    def methods(self) -> None:
        """Methods and addresses that nobody has."""
        method = self._chance.choice(
            ["PUT", "DELETE", "TRACE", "CONNECT", "PROPFIND", "get", "A" * 500]
        )
        path = self._chance.choice(
            [*_PATHS, "*", "http://evil.example/", "/%00", "/" + "a" * 20_000, "/%ff"]
        )
        request = f"{method} {path} HTTP/1.1\r\n".encode() + self._headers() + b"\r\n"
        self._send(request, "methods", is_whole=True)

    def uploads(self) -> None:
        """Forms that are broken, with names that lead out."""
        name = self._chance.choice([*_TRAVERSALS, "a.pdf", "a.docx", "b.zip", ""]).replace(
            "\0", "%00"
        )
        data = self._chance.choice(
            [
                b"",
                b"text",
                b"PK\x03\x04" + self._chance.randbytes(200),
                b"%PDF-1.7\n" + b"[" * 5_000,
            ]
        )
        body = (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + name.encode()
            + b'"\r\n\r\n' + data + self._chance.choice([b"\r\n--b--\r\n", b"", b"\r\n--b"])
        )  # fmt: skip
        kind = self._chance.choice(
            [
                "multipart/form-data; boundary=b",
                "multipart/form-data",
                "multipart/form-data; boundary=",
            ]
        )
        self._post("/add", body, "uploads", kind)

    def huge(self) -> None:
        """More bytes than a request may have, told and untold."""
        size = self._chance.choice([5_000_000, 50_000_000, 10**12])
        head = f"POST /search HTTP/1.1\r\nContent-Length: {size}\r\n".encode()
        self._send(head + self._headers() + b"\r\n" + b"a" * min(size, 6_000_000), "huge")

    def chunks(self) -> None:
        """Chunked bodies that do not end, or whose sizes are none."""
        piece = self._chance.choice(
            [b"1\r\na\r\n" * 50, b"ffffffff\r\n", b"-1\r\n", b"g\r\n", b"5;" + b"x" * 9_000]
        )
        head = b"POST /search HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
        self._send(head + self._headers() + b"\r\n" + piece, "chunks", is_whole=True)

    def never_reads(self) -> None:
        """Asks much, and reads nothing of it."""
        with self._connection() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            connection.settimeout(1)
            request = b"GET /openapi.json HTTP/1.1\r\n" + self._headers() + b"\r\n"
            try:
                connection.sendall(request * 200)
                time.sleep(0.2)
            except OSError:
                pass
        self._tally.note("never_reads", b"", self._forbidden)

    # How they are sent

    def _connection(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=WAIT_S)

    def _headers(self) -> bytes:
        own = f"Host: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
        return f"{own}Connection: close\r\n".encode()

    def _line(self, path: str) -> bytes:
        plain = "".join(sign if sign in string.printable[:95] else "%00" for sign in path)
        return plain.replace(" ", "%20").encode() + b" HTTP/1.1\r\n"

    def _get(self, path: str, kind: str) -> None:
        self._send(b"GET " + self._line(path) + self._headers() + b"\r\n", kind, is_whole=True)

    def _post(
        self,
        path: str,
        body: bytes,
        kind: str = "strange_values",
        content: str = "application/json",
    ) -> None:
        head = f"POST {path} HTTP/1.1\r\nContent-Type: {content}\r\nContent-Length: {len(body)}\r\n"
        self._send(head.encode() + self._headers() + b"\r\n" + body, kind, is_whole=True)

    def _send(self, request: bytes, kind: str, *, is_whole: bool = False) -> None:
        """Send a request, and read what comes until the server has said enough.

        The sender's end of the connection of one that is whole stays open: a server that sees it
        closed takes the client for gone, and answers nothing.
        """
        data = b""
        with self._connection() as connection:
            try:
                connection.sendall(request)
                if not is_whole:
                    connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65_536):
                    data = (data + part)[-1_000_000:] if len(data) > 1_000_000 else data + part
            except TimeoutError:
                raise
            except OSError:
                pass
        self._tally.note(kind, data, self._forbidden)


def attack(port: int, token: str, times: int, *, seed: int, attackers: int = 8) -> Tally:
    """Send so many requests, several at once; what came of them."""
    tally = Tally()
    threads = [
        threading.Thread(
            target=Attacker(port, token, seed + n, tally).attack, args=(times // attackers,)
        )
        for n in range(attackers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally

"""Qdrant as a service at an address, asked through qdrant-client.

One rule: no request takes longer than its time limit, however slowly an answer drips; the key goes
to the address in the settings and nowhere else, over no proxy, and into no message.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from filestore.core.errors import FilestoreError
from filestore.core.safe_text import Unshown
from filestore.fs.disk import Closing
from filestore.index._qdrant import Place, short_message
from filestore.index.backend import WITHOUT, BackendUnreachable, BackendUnusable, WrongDimension
from filestore.remote.address import Address

KEY_VARIABLE: Final = "QDRANT_API_KEY"
_PASSING: Final = frozenset({408, 429, 502, 503, 504})
_ANSWER_BYTES: Final = 512 * 1024 * 1024


class Server(Unshown, Struct, frozen=True, kw_only=True):
    """Which server, and how it is asked."""

    address: Address
    key: str
    """"" for none."""
    timeout_s: int
    shards: int | None
    """For a new collection; None for what the server does."""
    replication: int | None


class ServerPlace(Place):
    """A collection on a server."""

    def __init__(self, server: Server, collection: str) -> None:
        super().__init__(
            f"Qdrant at {server.address.url} (collection {collection})",
            collection,
            shard_number=server.shards,
            replication_factor=server.replication,
        )
        self._server = server
        self._client: Any = None

    def open(self) -> None:
        """Make a client; nothing is asked yet."""
        if self._client is not None:
            return
        from qdrant_client import QdrantClient

        server = self._server
        self._client = QdrantClient(
            url=server.address.url,
            timeout=server.timeout_s,
            # As a header: as `api_key` the client warns of it on loopback, too.
            headers={"api-key": server.key} if server.key else {},
            check_compatibility=False,  # it asks from a thread of its own, and warns
            transport=_Transport(server.address, server.timeout_s),
            trust_env=False,
        )

    def is_there(self) -> bool:
        """See the contract."""
        with self.asked() as client:
            return bool(client.collection_exists(self.collection))

    def index_fields(self, paths: Sequence[str]) -> None:
        """See the contract; not waited for: filters give the same without them."""
        from qdrant_client import models

        with self.asked() as client:
            known = client.get_collection(self.collection).payload_schema
            for path in sorted(set(paths).difference(known)):
                client.create_payload_index(
                    self.collection, path, models.PayloadSchemaType.KEYWORD, wait=False
                )

    @contextmanager
    def asked(self) -> Iterator[Any]:
        """See the contract."""
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            yield self._client
        except FilestoreError:
            raise
        except ResponseHandlingException as error:
            raise self._no_answer(error.source) from None
        except UnexpectedResponse as error:
            raise self._refusal(error.status_code or 0, error.content) from None
        except QdrantException as error:
            raise self._refusal(429, str(error).encode()) from None
        except Exception as error:  # whatever the client makes of an answer that is none
            raise self._not_qdrant(error) from None

    def close(self) -> None:
        """See the contract."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _no_answer(self, source: Exception) -> FilestoreError:
        import httpcore

        server = self._server
        hint = f"check that the server runs, and `url` under [backend_config]. {WITHOUT}"
        if isinstance(source, httpcore.TimeoutException):
            what = f"gave no whole answer within {server.timeout_s} s"
            hint = f"see whether it is busy, or raise `timeout_s` under [backend_config]. {WITHOUT}"
        elif isinstance(source, httpcore.ConnectError):
            what = f"cannot be reached: {self._shown(source)}"
        elif isinstance(source, httpcore.NetworkError | httpcore.RemoteProtocolError):
            what = f"cut the connection: {self._shown(source)}"
        else:
            return self._not_qdrant(source)
        return BackendUnreachable(f"{self.address} {what}", remedy=hint)

    def _not_qdrant(self, error: Exception) -> BackendUnusable:
        return BackendUnusable(
            f"{self.address} does not answer as Qdrant does"
            f": check `url` under [backend_config] in filestore.toml. {WITHOUT}",
            detail=f"{type(error).__name__}: {self._shown(error)}",
        )

    def _refusal(self, status: int, content: bytes) -> FilestoreError:
        text = self._shown(_message(content))
        if status == 401 or (status == 403 and not self._server.key):
            done = "refused the key" if self._server.key else "wants a key, and none is set"
            return BackendUnusable(
                f"{self.address} {done} (status {status})"
                f": set {KEY_VARIABLE} in the environment to a key that may use "
                f"the collection {self.collection}. {WITHOUT}",
            )
        if status == 403:
            return BackendUnusable(
                f"{self.address} does not allow that: {text}"
                f"; set {KEY_VARIABLE} to a key that may write as well. {WITHOUT}",
            )
        if status == 404:
            return BackendUnusable(
                f"{self.address} is not there: {text}",
                remedy=f"'filestore sync', or check `url` and `collection`. {WITHOUT}",
            )
        if "dimension error" in text:
            return WrongDimension(f"{self.address}: {text}", remedy="filestore sync")
        if status in _PASSING:
            return BackendUnreachable(
                f"{self.address} takes no requests for now (status {status}): {text}"
                f"; try again later. {WITHOUT}",
            )
        if 300 <= status < 400:
            text = "it points to another address; that is not followed"
        is_full = "No space left" in text or "disk" in text.lower()
        return BackendUnusable(
            f"{self.address} answered with status {status}: {text}",
            remedy=("free space on its disk" if is_full else "see the server's own log")
            + f". {WITHOUT}",
        )

    def _shown(self, text: object) -> str:
        plain = str(text)
        return short_message(plain.replace(self._server.key, "…") if self._server.key else plain)


def _message(content: bytes) -> str:
    """What an answer says is wrong: Qdrant's form, or the start of anything else."""
    try:
        status = json.loads(content)["status"]
        return str(status["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return content[:1_000].decode("utf-8", "replace")


class _Transport(Closing):
    """Sends requests of httpx, each with one limit for all of its answer.

    httpx itself limits each read alone, so that an answer may drip for ever. All go to one address,
    whatever the client makes of its URL.
    """

    def __init__(self, address: Address, timeout_s: float) -> None:
        import ssl

        import httpcore

        self._address = address
        self._timeout_s = timeout_s
        self._until = 0.0
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl.create_default_context(),
            network_backend=_Timed(httpcore.SyncBackend(), self._left_s),
        )

    def handle_request(self, asked: Any) -> Any:
        """What httpx calls."""
        import httpcore
        import httpx

        self._until = time.monotonic() + self._timeout_s
        address = self._address
        answer = self._pool.handle_request(
            httpcore.Request(
                method=asked.method,
                url=httpcore.URL(
                    scheme=address.scheme,
                    host=address.host.strip("[]"),
                    port=address.port,
                    target=asked.url.raw_path,
                ),
                headers=asked.headers.raw,
                content=asked.stream,
                extensions=asked.extensions,
            )
        )
        try:
            body = bytearray()
            for block in answer.stream:
                body += block
                if len(body) > _ANSWER_BYTES:
                    raise ValueError(f"an answer of more than {_ANSWER_BYTES:,} bytes")
        finally:
            answer.close()
        stream = httpx.ByteStream(bytes(body))
        return httpx.Response(answer.status, headers=answer.headers, stream=stream)

    def _left_s(self, most_s: float | None) -> float:
        """What a single step may take.

        Raises:
            httpcore.ReadTimeout: Nothing is left.
        """
        import httpcore

        left = self._until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("no time left")
        return left if most_s is None else min(left, most_s)

    def close(self) -> None:
        """What httpx calls."""
        self._pool.close()


class _Timed:
    """A network of httpcore, or a connection in it: each step ends with the request it is for."""

    def __init__(self, inner: Any, left_s: Callable[[float | None], float]) -> None:
        self._inner, self._left_s = inner, left_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *more: Any, **named: Any
    ) -> "_Timed":
        """Connect."""
        left = self._left_s(timeout)
        return _Timed(self._inner.connect_tcp(host, port, left, *more, **named), self._left_s)

    def start_tls(
        self, ssl_context: Any, server_hostname: Any = None, timeout: float | None = None
    ) -> "_Timed":
        """Encrypt."""
        left = self._left_s(timeout)
        return _Timed(self._inner.start_tls(ssl_context, server_hostname, left), self._left_s)

    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        """Read some."""
        return self._inner.read(max_bytes, self._left_s(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all."""
        self._inner.write(buffer, self._left_s(timeout))

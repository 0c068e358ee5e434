"""What must hold when a Qdrant server does not do as it should. The servers here are real sockets
that misbehave; a server that works is tested by the contract, where QDRANT_URL names one."""

import socket

import pytest

from filestore.core.errors import FilestoreError
from filestore.index import open_backend
from filestore.index.backend import (
    BackendChoice,
    BackendUnreachable,
    BackendUnusable,
    EmbedConfig,
    Item,
    WrongDimension,
)
from tests.advice import advised
from tests.system.misbehaving_server import (
    MisbehavingServer,
    answer,
    cut,
    drip,
    drip_head,
    hang,
    hang_up,
    noise,
)
from tests.vectors import unit_rows

ITEMS = [Item(id=1, vector=unit_rows(1, dimension=3)[0], doc_id="1", content_hash="h")]
SECRET = "s3cr3t-key-of-mine"
EXISTS = '{"result": {"exists": true}, "status": "ok", "time": 0}'
MISSING = '{"status": {"error": "Not found: Collection `filestore` doesn\'t exist!"}, "time": 0}'
DIMENSION = '{"status": {"error": "Wrong input: Vector dimension error: expected dim: 8, got 3"}}'
FULL = '{"status": {"error": "Service internal error: No space left on device (os error 28)"}}'
ECHO = f'{{"status": {{"error": "the key {SECRET} \\u001b[31m is none of ours"}}}}'

CASES = {
    "no key": (answer(401, "Must provide an API key"), BackendUnusable, "QDRANT_API_KEY"),
    "forbidden": (answer(403, "read-only"), BackendUnusable, "QDRANT_API_KEY"),
    "no collection": (answer(404, MISSING), BackendUnusable, "(collection filestore) is not there"),
    "other length": (answer(400, DIMENSION), WrongDimension, "expected dim: 8, got 3"),
    "broken": (answer(500, "oops"), BackendUnusable, "status 500: oops"),
    "full": (answer(500, FULL), BackendUnusable, "free space"),
    "a proxy without a server": (answer(502, "<html>"), BackendUnreachable, "status 502"),
    "busy": (answer(429, "", headers="Retry-After: 7\r\n"), BackendUnreachable, "status 429"),
    "moved": (answer(302, headers="Location: http://e.x/\r\n"), BackendUnusable, "not followed"),
    "a page": (answer(200, "<html>hello</html>"), BackendUnusable, "not answer as Qdrant"),
    "other JSON": (answer(200, "[1, 2]"), BackendUnusable, "not answer as Qdrant"),
    "deep JSON": (answer(200, "[" * 100_000), BackendUnusable, "not answer as Qdrant"),
    "half of it": (answer(200, EXISTS), BackendUnusable, "not answer as Qdrant"),
    "an echo": (answer(400, ECHO), BackendUnusable, "the key … "),
    "no HTTP": (noise, BackendUnreachable, "cut the connection"),
    "cut in the middle": (cut, BackendUnreachable, "cut the connection"),
    "cut at once": (hang_up, BackendUnreachable, "cut the connection"),
    "silent": (hang, BackendUnreachable, "within 1 s"),
    "dripping": (drip, BackendUnreachable, "within 1 s"),
    "dripping head": (drip_head, BackendUnreachable, "within 1 s"),
}


def backend(url, *, key="", **options):
    return open_backend(
        BackendChoice(
            kind="qdrant",
            options={"url": url, "timeout_s": 1, **options},
            folder="/nowhere",
            environment={"QDRANT_API_KEY": key} if key else {},
        )
    )


def assert_fit(error, url):
    """The error says where and what to do, and neither the key nor an escape sequence."""
    told = f"{error.message} {error.remedy} {error.detail}"
    assert url in told
    assert advised(error)
    assert SECRET not in told
    assert told.isprintable()
    assert SECRET not in repr(error.__cause__)


@pytest.mark.parametrize("case", CASES)
def test_every_wrong_answer_is_an_error_that_says_what_to_do(case: str) -> None:
    """In time, of the kind that the contract names, with the address and without the key."""
    behaviour, kind, words = CASES[case]
    with MisbehavingServer(behaviour) as server:
        with backend(server.url, key=SECRET) as opened, pytest.raises(FilestoreError) as caught:
            opened.load()
        assert type(caught.value) is kind
        assert words in f"{caught.value.message} {caught.value.remedy}"
        assert_fit(caught.value, server.url)
        assert SECRET.encode() in server.heard


def test_a_server_that_wants_a_key_is_told_apart_from_one_that_refuses_ours() -> None:
    """With no key set, that is what is wrong."""
    with (
        MisbehavingServer(answer(401)) as server,
        backend(server.url) as opened,
        pytest.raises(BackendUnusable, match="wants a key, and none is set"),
    ):
        opened.load()


def test_nobody_there_is_named_with_the_address() -> None:
    """A port where nothing listens, and a host that does not exist."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        for url in (f"http://127.0.0.1:{taken.getsockname()[1]}", "http://host.invalid:6333"):
            with backend(url) as opened, pytest.raises(BackendUnreachable) as caught:
                opened.load()
            assert "cannot be reached" in caught.value.message
            assert isinstance(caught.value, ConnectionError)
            assert_fit(caught.value, url)


def test_every_method_ends_in_time() -> None:
    """What is called on a server that went silent fails like `load`, and none waits for ever."""
    with MisbehavingServer(hang) as server, backend(server.url) as opened:
        # As if it had been loaded before the server went silent.
        opened._place.open()
        opened._dim = 3
        for call in (
            opened.stamp,
            lambda: opened.state,
            lambda: opened.upsert(ITEMS),
            lambda: opened.delete([1]),
            lambda: opened.query(ITEMS[0].vector, top_k=3),
            opened.digests,
            opened.clear,
            lambda: (
                opened.set_embed_config(EmbedConfig(fingerprint="m", dimension=3))
                or opened.save(owner="me", generation=1)
            ),
        ):
            with pytest.raises(BackendUnreachable, match="within 1 s"):
                call()


def test_no_proxy_sees_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request goes to the address in the settings, whatever the environment says of proxies."""
    with MisbehavingServer(hang_up) as proxy, MisbehavingServer(answer(401)) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        with backend(server.url, key=SECRET) as opened, pytest.raises(BackendUnusable):
            opened.load()
        assert not proxy.heard
        assert SECRET.encode() in server.heard

"""The embedder of OpenAI-compatible services, against a service that behaves and misbehaves."""

import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.config.settings import ModelOptions
from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError
from filestore.embed import (
    Choice,
    Embedder,
    EndpointError,
    EndpointUntrusted,
    ModelUnusable,
    estimated_tokens,
    open_embedder,
)
from filestore.embed._openai import EMBEDDING, OpenAIEmbedder
from filestore.remote.address import Address, key_for
from filestore.remote.address import parse_address as parsed
from filestore.remote.service import ServiceLimits
from tests.advice import advised, all_words
from tests.system import embedding_server as service
from tests.system.embedding_server import DIMENSION, EmbeddingServer, status, well

ROOT = "/a/store"
MODEL = "small-model"
KEY = "sk-this-is-the-secret-key-0123456789"
QUICK = ServiceLimits(retries=2, backoff_s=0.01, longest_wait_s=1)
IMPATIENT = ServiceLimits(connect_s=0.5, read_s=0.5, total_s=1, retries=2)
TEXTS = [f"the text number {number} tells of {word}" for number, word in enumerate("abcdefgh" * 30)]

Opener = Callable[..., OpenAIEmbedder]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def opened(server: EmbeddingServer, tmp_path: Path) -> Opener:
    """Opens the embedder of the server: ``opened(key=KEY, dimension=8)``."""

    def open_one(
        *, key: str = "", cache: bool = True, limits: ServiceLimits = QUICK, **options: Any
    ) -> OpenAIEmbedder:
        options = {"endpoint": server.endpoint} | options
        return OpenAIEmbedder(
            chosen(key=key, cache=str(tmp_path / "cache") if cache else "", **options),
            limits=limits,
        )

    return open_one


def parse_address(endpoint: str) -> Address:
    return parsed(endpoint, EMBEDDING)


def chosen(*, key: str = "", cache: str = "", trusted: bool = True, **options: Any) -> Choice:
    return Choice(
        name=f"openai:{MODEL}",
        options=ModelOptions(**options),
        machine=Machine(
            trusted={ROOT: (options["endpoint"],)} if trusted else {},
            cache=cache,
            environment={"FILESTORE_API_KEY": key} if key else {},
        ),
        root=ROOT,
    )


def expected(texts: list[str], dimension: int = DIMENSION) -> np.ndarray:
    rows = np.array([service.vector_of(text, dimension) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def error_of(embedder: Embedder, *texts: str) -> FilestoreError:
    with pytest.raises(FilestoreError) as caught:
        embedder.embed_documents(list(texts) or ["some text"])
    error = caught.value
    assert advised(error) or ": see " in error.message
    assert error.exit_code == 3
    assert KEY not in f"{error.message}{error.remedy}{error.detail}{error!r}"
    return error


def test_texts_come_back_as_unit_vectors_in_order(opened: Opener, server: EmbeddingServer) -> None:
    """Many texts, sent in several requests, give float32 rows of length 1, each at its place."""
    vectors = opened().embed_documents(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected(TEXTS), atol=1e-6)
    assert len(server.requests) > 1
    assert max(len(request.texts) for request in server.requests) <= 64
    assert {request.path for request in server.requests} == {"/v1/embeddings"}


def test_a_question_finds_its_text(opened: Opener) -> None:
    """The vector of a question is of the same space and lies nearest to the text it is about."""
    embedder = opened()
    vectors = embedder.embed_documents(["bananas ripen next to apples", "granite of a lighthouse"])
    assert int(np.argmax(vectors @ embedder.embed_query("which bananas ripen?"))) == 0


def test_long_texts_are_sent_few_at_a_time(opened: Opener, server: EmbeddingServer) -> None:
    """No request holds far more tokens than a service takes at once."""
    embedder = opened()
    embedder.embed_documents(["word " * 3_000] * 12)
    sent = [sum(map(estimated_tokens, request.texts)) for request in server.requests]
    assert max(sent) <= 16_384


def test_empty_texts_are_not_sent(opened: Opener, server: EmbeddingServer) -> None:
    """Texts with nothing in them share one vector of length 1; services refuse them."""
    vectors = opened(dimension=16).embed_documents(["", " \n\t", "word"])
    assert [request.texts for request in server.requests] == [["word"]]
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert abs(np.linalg.norm(vectors[0]) - 1) < 1e-6


def test_no_texts_give_no_rows(opened: Opener, server: EmbeddingServer) -> None:
    """An empty list asks nothing of a service whose dimension is known."""
    assert opened(dimension=16).embed_documents([]).shape == (0, 16)
    assert server.requests == []


def test_characters_that_json_cannot_hold_are_replaced(opened: Opener) -> None:
    """A text with a lone surrogate is embedded, not a crash."""
    assert opened().embed_documents(["half \ud800 a pair", "\x00"]).shape == (2, DIMENSION)


def test_prefixes_go_before_the_texts(opened: Opener, server: EmbeddingServer) -> None:
    """Documents and questions are sent with the prefixes the model was trained with."""
    embedder = opened(query_prefix="query: ", document_prefix="passage: ")
    embedder.embed_documents(["a", " "])
    embedder.embed_query("b")
    assert [request.texts for request in server.requests] == [["passage: a"], ["query: b"]]
    assert embedder.fingerprint != opened().fingerprint


def test_the_dimension_is_asked_for_only_when_it_is_set(
    opened: Opener, server: EmbeddingServer
) -> None:
    """`dimensions` is sent for a set dimension alone, because many services do not know it."""
    assert opened(dimension=8).embed_documents(["a"]).shape == (1, 8)
    assert opened().embed_documents(["a"]).shape == (1, DIMENSION)
    assert [request.body.get("dimensions") for request in server.requests] == [8, None]


def test_opening_contacts_nobody(opened: Opener, server: EmbeddingServer) -> None:
    """Name, and with a set dimension the fingerprint, are known without the service."""
    embedder = opened(dimension=8)
    assert embedder.name == f"openai:{MODEL}"
    assert embedder.fingerprint == f"openai/1:{MODEL}:8"
    assert not embedder.lexical
    assert server.requests == []


def test_the_dimension_is_asked_once_and_remembered(
    opened: Opener, server: EmbeddingServer
) -> None:
    """A service is asked once; later processes know the fingerprint also while it is down."""
    assert opened().fingerprint == f"openai/1:{MODEL}:{DIMENSION}"
    server.behave(status(500))
    assert opened().fingerprint == f"openai/1:{MODEL}:{DIMENSION}"
    assert len(server.requests) == 1


def test_without_memory_a_service_that_is_down_has_no_fingerprint(
    opened: Opener, server: EmbeddingServer
) -> None:
    """A fingerprint is never guessed."""
    server.behave(status(500))
    with pytest.raises(EndpointError):
        _ = opened(cache=False).fingerprint


@pytest.mark.parametrize("damage", [b"", b"garbage", b"[1]", b'{"a": 1}', b"\xff", b"[" * 9_999])
def test_a_damaged_memory_is_as_good_as_none(
    opened: Opener, server: EmbeddingServer, tmp_path: Path, damage: bytes
) -> None:
    """What was remembered is a convenience: when it is unreadable, the service is asked again."""
    opened().embed_query("a")
    (remembered,) = (tmp_path / "cache").iterdir()
    remembered.write_bytes(damage)
    assert opened().dimension == DIMENSION
    assert len(server.requests) == 2
    assert opened().dimension == DIMENSION
    assert len(server.requests) == 2


def test_another_model_behind_the_name_is_seen(opened: Opener, server: EmbeddingServer) -> None:
    """Vectors of a new length are refused, and only a person takes them for the model's own."""
    before = opened().fingerprint
    server.behave(service.vectors(lambda rows: [row[:8] for row in rows]))
    error = error_of(opened())
    assert isinstance(error, ModelUnusable)
    assert "8 numbers, expected 48" in error.message
    assert "filestore embedder set" in all_words(error)
    assert opened().fingerprint == before


def test_a_service_that_ignores_the_dimension_is_seen(
    opened: Opener, server: EmbeddingServer
) -> None:
    """A set dimension that the service does not give is an error that says how to mend it."""
    server.behave(service.vectors(lambda rows: [[*row, 1.0] for row in rows]))
    error = error_of(opened(dimension=8))
    assert isinstance(error, ModelUnusable)
    assert "dimension = 9" in all_words(error)


def test_answers_in_another_order_are_put_right(opened: Opener, server: EmbeddingServer) -> None:
    """The place of a vector is its `index`, not where it stands."""
    server.behave(service.entries(lambda some: some[::-1]))
    np.testing.assert_allclose(opened().embed_documents(TEXTS[:9]), expected(TEXTS[:9]), atol=1e-6)


BAD_VECTORS: dict[str, Callable[[list[list[Any]]], list[Any]]] = {
    "NaN": lambda rows: [[float("nan")] * DIMENSION, *rows[1:]],
    "infinity": lambda rows: [[float("inf")] * DIMENSION, *rows[1:]],
    "zeros": lambda rows: [[0.0] * DIMENSION, *rows[1:]],
    "null": lambda rows: [[None, *rows[0][1:]], *rows[1:]],
    "words": lambda rows: [["1.0"] * DIMENSION, *rows[1:]],
    "ragged": lambda rows: [rows[0][1:], *rows[1:]],
    "nested": lambda rows: [[row] for row in rows],
    "empty": lambda rows: [[] for _ in rows],
    "base64": lambda rows: ["AAAA" for _ in rows],
}


@pytest.mark.parametrize("change", BAD_VECTORS.values(), ids=BAD_VECTORS.keys())
def test_vectors_that_are_none_are_refused(
    opened: Opener, server: EmbeddingServer, change: Callable[[list[list[Any]]], list[Any]]
) -> None:
    """No vector with NaN, infinity, only zeros or anything but numbers is let in."""
    server.behave(service.vectors(change))
    error = error_of(opened(), "a", "b")
    assert isinstance(error, ModelUnusable)
    assert MODEL in error.message


def test_huge_and_tiny_numbers_keep_their_direction(
    opened: Opener, server: EmbeddingServer
) -> None:
    """Numbers whose squares leave the range of floats still give unit vectors."""
    server.behave(service.vectors(lambda rows: [[1e300, 1e300], [3e-300, 4e-300]]))
    np.testing.assert_allclose(
        opened().embed_documents(["a", "b"]), [[0.5**0.5, 0.5**0.5], [0.6, 0.8]], atol=1e-6
    )


BAD_ANSWERS: dict[str, tuple[service.Behaviour, str]] = {
    "missing": (service.entries(lambda some: some[1:]), "1 vectors for 2 texts"),
    "twice": (service.entries(lambda some: [some[0], some[0]]), "index"),
    "garbage": (service.raw(b"\x00\xff garbage"), "no JSON"),
    "empty": (service.raw(b""), "an empty answer"),
    "html": (service.raw(b"<!DOCTYPE html><title>Router</title>"), "HTML"),
    "other JSON": (service.raw(b'{"hello": "world"}'), "other JSON"),
    "deep": (service.raw(b"[" * 100_000), "no JSON"),
    "error with 200": (service.raw(b'{"error": "model is loading"}'), "model is loading"),
    "compressed": (service.raw(b"\x1f\x8b\x08\x00", **{"Content-Encoding": "gzip"}), "no JSON"),
    "cut off": (service.cut_off, "closed the connection"),
    "hangs up": (service.hangs_up, "cannot be reached"),
    "500": (status(500), "no luck"),
    "teapot": (status(418, {"detail": "short and stout"}), "short and stout"),
    "wrong path": (service.raw(b"404 page not found", 404), "has nothing at"),
    "no model": (
        status(404, {"error": {"message": "model 'x' not found, try pulling it first"}}),
        "try pulling it first",
    ),
    "quota": (status(429, {"error": {"message": "You exceeded your current quota"}}), "quota"),
}


@pytest.mark.parametrize(("behaviour", "said"), BAD_ANSWERS.values(), ids=BAD_ANSWERS.keys())
def test_an_answer_that_is_none_is_a_clear_error(
    opened: Opener, server: EmbeddingServer, behaviour: service.Behaviour, said: str
) -> None:
    """The error names the service, says what it did, and what to do."""
    server.behave(behaviour)
    error = error_of(opened(key=KEY), "a", "b")
    assert isinstance(error, EndpointError)
    assert said in error.message
    assert server.endpoint in error.message


def test_what_a_service_says_is_made_safe_and_short(
    opened: Opener, server: EmbeddingServer
) -> None:
    """A stranger's message cannot steer a terminal, fill it, or repeat the key."""
    said = f"\x1b[2J\u202e {KEY} " + "x" * 10_000
    server.behave(status(418, {"error": {"message": said}}))
    message = error_of(opened(key=KEY)).message
    assert message.isprintable()
    assert len(message) < 600


def test_trouble_that_passes_is_waited_out(opened: Opener, server: EmbeddingServer) -> None:
    """A service that fails or is busy for a moment is asked again, and nobody notices."""
    server.behave(status(503), status(429, Retry_After="0"), well)
    np.testing.assert_allclose(opened().embed_documents(["a b"]), expected(["a b"]), atol=1e-6)
    assert len(server.requests) == 3


def test_a_closed_connection_is_made_anew(opened: Opener, server: EmbeddingServer) -> None:
    """A kept connection that the service closed costs nothing but a second try."""
    server.behave(service.hangs_up, well)
    assert opened().embed_documents(["a"]).shape == (1, DIMENSION)


def test_a_long_pause_is_not_waited_for(opened: Opener, server: EmbeddingServer) -> None:
    """A service that wants to be left alone for an hour: the error says when to come back."""
    server.behave(status(429, Retry_After="3600"))
    error = error_of(opened())
    assert isinstance(error, EndpointError)
    assert "in 60 min" in all_words(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize("pause", ["soon", "-1", "9" * 400, "Mon, 99 Foo"])
def test_a_pause_that_is_none_is_no_crash(
    opened: Opener, server: EmbeddingServer, pause: str
) -> None:
    """Whatever stands in Retry-After, the error is one of ours."""
    server.behave(status(429, Retry_After=pause))
    assert isinstance(error_of(opened()), EndpointError)


def test_refused_batches_are_halved(opened: Opener, server: EmbeddingServer) -> None:
    """Where a service takes fewer texts at once, they are sent in smaller parts, order kept."""
    for code in (400, 413, 422, 500):
        server.behave(service.at_most(texts=5, code=code))
        np.testing.assert_allclose(
            opened().embed_documents(TEXTS[:40]), expected(TEXTS[:40]), atol=1e-6
        )


@pytest.mark.parametrize("code", [400, 413, 500])
def test_one_text_that_is_too_long_is_named(
    opened: Opener, server: EmbeddingServer, code: int
) -> None:
    """The error shows how the text begins and which setting mends it: then it goes in parts."""
    server.behave(service.at_most(characters=500, code=code))
    texts = ("short", "Call me Ishmael. " * 100, "short too")
    error = error_of(opened(), *texts)
    assert "Call me Ishmael." in error.message
    assert "1700 characters" in error.message
    assert "max_tokens" in all_words(error)
    opened(max_tokens=120).embed_documents(texts)


def test_a_service_that_is_down_is_named(opened: Opener) -> None:
    """A refused connection says which address and why."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    error = error_of(opened(endpoint=endpoint, key=KEY))
    assert isinstance(error, EndpointError)
    assert f"{endpoint} cannot be reached: Connection refused" in error.message
    assert "start the service" in all_words(error)


def test_a_host_that_is_none_is_named(opened: Opener) -> None:
    """A name that no server has says so."""
    error = error_of(opened(endpoint="http://no-such-host.invalid/v1"))
    assert "no-such-host.invalid" in error.message


def test_https_where_there_is_none_says_so(opened: Opener, server: EmbeddingServer) -> None:
    """A service that speaks plain http only is told apart from one that is down."""
    error = error_of(opened(endpoint=server.endpoint.replace("http://", "https://"), key=KEY))
    assert "https" in error.message
    assert "http://" in all_words(error)


@pytest.mark.parametrize(
    "behaviour",
    [service.hangs, service.drips, service.drips_headers],
    ids=["silent", "drips", "drips headers"],
)
def test_a_slow_service_is_given_up(
    opened: Opener, server: EmbeddingServer, behaviour: service.Behaviour
) -> None:
    """Neither silence nor a byte now and then keeps anybody waiting for ever."""
    server.behave(behaviour)
    error = error_of(opened(limits=IMPATIENT))
    assert isinstance(error, EndpointError)
    assert "did not answer within" in error.message


def test_an_endless_answer_is_cut(opened: Opener, server: EmbeddingServer) -> None:
    """An answer larger than any vectors could be is not read into memory."""
    server.behave(service.endless)
    limits = ServiceLimits(answer_bytes=1_000_000)
    assert "1,000,000 bytes" in error_of(opened(limits=limits)).message


def test_redirects_are_not_followed(opened: Opener, server: EmbeddingServer) -> None:
    """Texts and key stay where they were sent; the other address is shown without its secrets."""
    with EmbeddingServer() as other:
        for code in (301, 302, 303, 307, 308):
            goal = other.endpoint.replace("//", "//user:word@")
            server.behave(status(code, Location=f"{goal}/embeddings?token=abc"))
            error = error_of(opened(key=KEY))
            assert other.endpoint.removeprefix("http://") in error.message
            assert "word" not in error.message
            assert "abc" not in error.message
        assert other.requests == []
        assert len(server.requests) == 5


def test_the_key_is_sent_and_never_shown(
    opened: Opener, server: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A trusted service gets the key; log and representation do not."""
    caplog.set_level(logging.DEBUG)
    server.behave(service.wants_key(KEY))
    embedder = opened(key=KEY)
    assert embedder.embed_documents(["a"]).shape == (1, DIMENSION)
    assert KEY not in caplog.text
    assert KEY not in repr(embedder)
    assert KEY not in repr(vars(embedder)["_service"])


def test_a_refused_key_is_said(opened: Opener, server: EmbeddingServer) -> None:
    """A wrong key and no key are told apart, and name the variable to set."""
    server.behave(service.wants_key("another"))
    wrong, none = error_of(opened(key=KEY)), error_of(opened())
    assert "refused the key" in wrong.message
    assert "none is set" in none.message
    assert "FILESTORE_API_KEY" in all_words(wrong)
    assert "Authorization" not in server.requests[-1].headers


def test_the_key_of_openai_goes_to_openai_only(server: EmbeddingServer) -> None:
    """OPENAI_API_KEY is for its own service; FILESTORE_API_KEY is for the one that is set."""
    official, local = parse_address("https://api.openai.com/v1"), parse_address(server.endpoint)
    assert key_for(official, {"OPENAI_API_KEY": KEY}) == KEY
    assert key_for(official, {"OPENAI_API_KEY": "other", "FILESTORE_API_KEY": KEY}) == KEY
    assert key_for(local, {"OPENAI_API_KEY": KEY}) == ""
    assert key_for(local, {"FILESTORE_API_KEY": f" {KEY}\n"}) == KEY
    with pytest.raises(EndpointError, match="wants a key"):
        key_for(official, {})


@pytest.mark.parametrize("key", ["two\r\nlines", "with blank", "schlüssel", "\x00"])
def test_a_key_that_is_none_is_refused_unseen(key: str) -> None:
    """What cannot stand in a header is refused without being shown."""
    with pytest.raises(EndpointError) as caught:
        key_for(parse_address("https://example.org"), {"FILESTORE_API_KEY": key})
    assert key not in caught.value.message


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://example.org/v1",
        "http://api.openai.com/v1",
        "http://localhost.example.org/v1",
        "http://127.0.0.1.example.org",
        "http://0.0.0.0:80",
        "http://[2001:db8::1]/v1",
    ],
)
def test_a_key_does_not_go_over_plain_http(endpoint: str) -> None:
    """A key leaves the machine encrypted or not at all."""
    with pytest.raises(EndpointError, match="plain http") as caught:
        key_for(parse_address(endpoint), {"FILESTORE_API_KEY": KEY})
    assert KEY not in caught.value.message


@pytest.mark.parametrize(
    "endpoint", ["http://localhost:1/v1", "http://127.0.0.2", "http://[::1]:8/v1", "https://a.b"]
)
def test_a_key_goes_to_loopback_and_over_https(endpoint: str) -> None:
    """Where nobody can listen, the key may go."""
    assert key_for(parse_address(endpoint), {"FILESTORE_API_KEY": KEY}) == KEY


def test_an_untrusted_service_is_not_contacted(server: EmbeddingServer) -> None:
    """A clone's settings reach nobody until the user says so, per store and per address."""
    for choice in (
        chosen(endpoint=server.endpoint, key=KEY, trusted=False),
        Choice(
            name=f"openai:{MODEL}",
            options=ModelOptions(endpoint=server.endpoint),
            machine=Machine(trusted={"/another/store": (server.endpoint,)}),
            root=ROOT,
        ),
        Choice(
            name=f"openai:{MODEL}",
            options=ModelOptions(endpoint=server.endpoint),
            machine=Machine(trusted={ROOT: (server.endpoint + "/other",)}),
            root=ROOT,
        ),
        Choice(name=f"openai:{MODEL}", root=ROOT),
    ):
        with pytest.raises(EndpointUntrusted) as caught:
            open_embedder(choice)
        assert "filestore trust" in all_words(caught.value)
        assert caught.value.exit_code == 4
    assert server.requests == []


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://user:s3cret@example.org/v1",
        "http://s3cret@example.org/v1",
        "user:s3cret@example.org",
        "http://127.0.0.1\\@s3cret@example.org/",
        "https://example.org/v1?key=s3cret",
        "https://example.org/v1#s3cret",
        "https://example.org/user@s3cret",
        "ftp://example.org/v1",
        "file:///etc/passwd",
        "http://",
        "http:///v1",
        "http://example.org:0/v1",
        "http://example.org:70000/v1",
        "http://example.org/a b",
        "http://example.org/\r\nX-Header: 1",
        "http://ex\u202eample.org",
        "example.org",
        "x" * 5_000,
    ],
)
def test_what_is_no_plain_address_is_refused(endpoint: str) -> None:
    """User names, passwords, queries and anything odd are refused, and not shown."""
    with pytest.raises(EndpointError) as caught:
        open_embedder(chosen(endpoint=endpoint))
    assert "s3cret" not in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 500


@given(text=st.text())
def test_an_address_is_what_it_says(text: str) -> None:
    """Whatever is accepted as an address reads back as the same address."""
    try:
        address = parse_address(text)
    except EndpointError:
        return
    assert parse_address(str(address)) == address


def test_an_address_may_end_in_many_ways() -> None:
    """A slash at the end, or the whole path that other programs want, does no harm."""
    plain = Address(scheme="http", host="localhost", port=11434, path="/v1")
    for end in ("", "/", "/embeddings", "/embeddings/"):
        assert parse_address(f"HTTP://LocalHost:11434/v1{end}") == plain


def test_a_model_must_be_named() -> None:
    """`openai` alone says how to write it."""
    with pytest.raises(ModelUnusable) as caught:
        open_embedder(Choice(name="openai"))
    assert "openai:" in caught.value.message


@pytest.mark.parametrize("text", ["granite and bananas " * 300, "灯塔" * 900, "x" * 9_000])
def test_a_text_beyond_the_limit_is_the_mean_of_its_parts(
    opened: Opener, server: EmbeddingServer, text: str
) -> None:
    """No part is longer than the limit, prefix included, and all of the text is sent in order."""
    prefix = "search_document: "
    embedder = opened(max_tokens=100, document_prefix=prefix, dimension=DIMENSION)
    (vector,) = embedder.embed_documents([text])
    sent = [one for request in server.requests for one in request.texts]
    assert max(map(estimated_tokens, sent)) <= 100
    assert "".join(one.removeprefix(prefix) for one in sorted(sent, key=text.find)) in (text, *sent)
    assert abs(float(np.linalg.norm(vector)) - 1) < 1e-6


@given(text=st.text(), more=st.text())
def test_the_estimate_of_tokens_adds_up(text: str, more: str) -> None:
    """It is 0 for nothing, never shrinks with more text, and parts count no less than the whole."""
    count = estimated_tokens
    assert count("") == 0
    assert count(text) <= count(text + more) <= count(text) + count(more) <= count(text + more) + 1


def test_an_interrupt_ends_it_at_once(server: EmbeddingServer, tmp_path: Path) -> None:
    """Ctrl-C ends a program that waits for a silent service; nothing holds it up."""
    server.behave(service.hangs)
    program = (
        "from filestore.embed import Choice, open_embedder\n"
        "from filestore.config.user_config import Machine\n"
        "from filestore.config.settings import ModelOptions\n"
        "endpoint = sys.argv[1]\n"
        "machine = Machine(trusted={'/r': (endpoint,)})\n"
        "options = ModelOptions(endpoint=endpoint, dimension=8)\n"
        "choice = Choice(name='openai:m', options=options, machine=machine, root='/r')\n"
        "open_embedder(choice).embed_documents(['a'] * 300)\n"
    )
    service.interrupt(program, server, tmp_path)


def test_what_is_remembered_holds_no_secret(opened: Opener, tmp_path: Path) -> None:
    """The file in the user's cache names address, model and dimension only."""
    embedder = opened(key=KEY)
    (length,) = embedder.embed_query("a").shape
    (remembered,) = (tmp_path / "cache").iterdir()
    assert remembered.name == "endpoint.json"
    assert json.loads(remembered.read_bytes()) == {
        str(vars(embedder)["_service"].address): {MODEL: length}
    }


def test_opening_loads_nothing_heavy(server: EmbeddingServer, tmp_path: Path) -> None:
    """A command that only needs the fingerprint pays for neither numpy nor an HTTP client."""
    program = (
        "import sys\n"
        "from filestore.embed import Choice, open_embedder\n"
        "from filestore.config.user_config import Machine\n"
        "from filestore.config.settings import ModelOptions\n"
        "machine = Machine(trusted={'/r': (sys.argv[1],)})\n"
        "options = ModelOptions(endpoint=sys.argv[1], dimension=8)\n"
        "choice = Choice(name='openai:m', options=options, machine=machine, root='/r')\n"
        "assert open_embedder(choice).fingerprint\n"
        "sys.exit(bool({'numpy', 'urllib3'} & sys.modules.keys()))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program, server.endpoint],
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0
    assert server.requests == []

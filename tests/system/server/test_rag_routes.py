"""The routes of a folder of collections: answers, errors with what to do, hostile clients."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from filestore.server.collection import documents_in
from filestore.server.collections import Collections
from filestore.server.http import pages
from filestore.server.http import rag as routes
from filestore.server.http.app import AppParts, make_app
from filestore.server.operations import definitions
from filestore.server.stores import Stores

TREES = ["The oak stands by the gate.", "The elm was cut down."]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["query", "k", "top_k", "mode", "rag_name", "name", "documents", "dataset_info", "overwrite"]
)
SECRET = "the secret beside the collections"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with one collection, and something beside it that is nobody's business."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "filestore.toml").write_text(SECRET)
    with Collections(str(tmp_path / "rags"), writes=True, embedder="builtin") as opened:
        opened.index("trees", documents_in(TREES))
    return tmp_path / "rags"


def app(collections: Collections | None) -> Any:
    """A server of collections alone, for whoever asks."""
    return make_app(
        AppParts(stores=Stores({}), token=None, is_local=False, collections=collections)
    )


@pytest.fixture
def client(place: Path) -> Iterator[TestClient]:
    """Asks the routes of it, without a network."""
    with Collections(str(place), writes=True, embedder="builtin") as opened:
        yield TestClient(app(opened))


def check(shape: str, value: Any) -> None:
    """Whether an answer has the shape that JSON.md says."""
    schema = pages.reference(shape) | {
        "components": {"schemas": definitions("#/components/schemas/")}
    }
    Draft202012Validator(schema).validate(value)


def test_a_collection_from_index_to_delete(client: TestClient, place: Path) -> None:
    """Each route once, as a client of such a service asks them."""
    documents = [
        "Basalt is dark.",
        {"content": "Granite is hard.", "id": "g", "metadata": {"n": 1}},
    ]
    given = {"rag_name": "stones", "documents": documents, "dataset_info": {"license": "CC0"}}
    made = client.post("/rag/index", json=given)
    assert made.status_code == 200
    check("RagIndexed", made.json())
    assert (made.json()["rag_name"], made.json()["document_count"]) == ("stones", 2)
    listed = client.get("/rag/list").json()
    check("RagList", listed)
    assert [one["rag_name"] for one in listed["rags"]] == ["stones", "trees"]
    found = client.post("/rag/stones/query", json={"query": "granite", "top_k": 1}).json()
    check("RagAnswer", found)
    (hit,) = found["results"]
    assert (hit["id"], hit["text"], hit["metadata"]) == ("g", "Granite is hard.", {"n": 1})
    status = client.get("/rag/stones/index/status").json()
    check("RagStatus", status)
    assert status["has_index"]
    assert status["dataset_info"] == {"license": "CC0"}
    assert status == listed["rags"][0]["index_status"]
    reloaded = client.post("/rag/stones/index/reload")
    check("RagReloaded", reloaded.json())
    deleted = client.delete("/rag/stones")
    check("RagDeleted", deleted.json())
    assert sorted(os.listdir(place)) == ["trees"]
    assert client.get("/rag/stones/index/status").status_code == 404


@pytest.mark.parametrize("name", ["list", "index", "Gebäude", "a b", "100%", "a?b#c", "知識"])
def test_names_are_what_the_address_says(client: TestClient, name: str) -> None:
    """Quoted as addresses are; words of the routes among them."""
    from urllib.parse import quote

    assert client.post("/rag/index", json={"name": name, "documents": ["a tree"]}).is_success
    below = f"/rag/{quote(name, safe='')}"
    assert client.post(f"{below}/query", json={"query": "tree"}).json()["rag_name"] == name
    assert client.get(f"{below}/index/status").json()["document_count"] == 1
    assert client.delete(below).json() == {"rag_name": name, "deleted": True}


@pytest.mark.parametrize(
    ("method", "path", "given", "status"),
    [
        ("POST", "/rag/none/query", {"query": "a"}, 404),
        ("GET", "/rag/none/index/status", None, 404),
        ("POST", "/rag/none/index/reload", None, 404),
        ("DELETE", "/rag/none", None, 404),
        ("GET", "/rag", None, 404),
        ("GET", "/rag/trees", None, 404),
        ("PUT", "/rag/trees", {}, 404),
        ("POST", "/rag/trees/query", {}, 400),
        ("POST", "/rag/trees/query", [], 400),
        ("POST", "/rag/trees/query", {"query": " "}, 400),
        ("POST", "/rag/trees/query", {"query": "a" * 10_001}, 400),
        ("POST", "/rag/trees/query", {"query": "a", "k": 0}, 400),
        ("POST", "/rag/trees/query", {"query": "a", "k": True}, 400),
        ("POST", "/rag/trees/query", {"query": "a", "k": 10**9}, 400),
        ("POST", "/rag/trees/query", {"query": "a", "k": 1, "top_k": 2}, 400),
        ("POST", "/rag/trees/query", {"query": "a", "mode": {}}, 400),
        ("POST", "/rag/trees/query", {"query": "a", "were": {}}, 400),
        ("POST", "/rag/index", {"documents": ["a"]}, 400),
        ("POST", "/rag/index", {"name": "a", "documents": []}, 400),
        ("POST", "/rag/index", {"name": "a", "rag_name": "b", "documents": ["a"]}, 400),
        ("POST", "/rag/index", {"name": "../a", "documents": ["a"]}, 400),
        ("POST", "/rag/index", {"name": "a", "documents": ["a"], "dataset_info": 3}, 400),
        ("POST", "/rag/index", {"name": "TREES", "documents": ["a"]}, 409),
    ],
)
def test_errors_say_what_details_and_what_to_do(
    client: TestClient, method: str, path: str, given: Any, status: int
) -> None:
    """In one form, whatever is wrong."""
    answer = client.request(method, path, json=given)
    assert answer.status_code == status, answer.text
    check("RagFailure", answer.json())
    assert set(answer.json()) == {"error", "details", "action"}
    assert answer.json()["error"]
    assert answer.json()["action"]


@pytest.mark.parametrize(
    "name",
    [
        "..", "%2e%2e", ".", "%2e", "..%2fsecret", "%2e%2e%2fsecret", "..%5csecret", "%00", "%0a",
        "a%00b", "....%2f%2fsecret", "%252e%252e", "-rf", ".filestore-tmp-tree-0", "%ff%fe",
        "%e2%80%ae", "x" * 300, "trees%2f..%2f..%2fsecret", "%2fetc", "C:%5c",
    ],
)  # fmt: skip
def test_no_name_leaves_the_folder(place: Path, name: str) -> None:
    """However it is quoted: over a socket, where no client tidies the address."""
    before = sorted(os.walk(place.parent))
    with Collections(str(place), writes=True, embedder="builtin") as opened, served(opened) as port:
        for method, path in (
            ("GET", f"/rag/{name}/index/status"),
            ("POST", f"/rag/{name}/query"),
            ("POST", f"/rag/{name}/index/reload"),
            ("DELETE", f"/rag/{name}"),
            ("GET", f"/rag/{name}"),
        ):
            answer = raw(port, method, path, b'{"query": "secret"}')
            head, _, body = answer.partition(b"\r\n\r\n")
            assert int(head.split()[1]) in (400, 404), head
            assert SECRET.encode() not in answer
            assert set(json.loads(body)) == {"error", "details", "action"}
        assert texts_of(port) == sorted(TREES)
    after = [(one, folders, files) for one, folders, files in sorted(os.walk(place.parent))]
    assert [one[:2] for one in after] == [one[:2] for one in before]


@contextmanager
def served(collections: Collections) -> Iterator[int]:
    """A port of the loopback where the routes are served."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app(collections), log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def raw(port: int, method: str, path: str, body: bytes = b"") -> bytes:
    """What a server answers to an address as it is."""
    # Until it listens, the connection waits or is refused.
    while True:
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=60)
            break
        except ConnectionRefusedError:
            continue
    with client:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        pieces = []
        while piece := client.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def texts_of(port: int) -> list[str]:
    """What the one collection says."""
    asked = json.dumps({"query": "oak elm", "mode": "vector"}).encode()
    body = raw(port, "POST", "/rag/trees/query", asked).partition(b"\r\n\r\n")[2]
    return sorted(one["text"] for one in json.loads(body)["results"])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from(["/rag/index", "/rag/trees/query"]),
    body=st.dictionaries(KEYS, JSON).map(lambda one: json.dumps(one).encode())
    | JSON.map(lambda one: json.dumps(one).encode())
    | st.binary(max_size=200)
    | st.sampled_from([b"[" * 100_000, b'{"query":' * 5_000, b'"\\ud800"', b"\xef\xbb\xbf{}"]),
)
def test_no_body_breaks_it(client: TestClient, path: str, body: bytes) -> None:
    """Each is answered, or refused with a reason; the collection that is there stays."""
    answer = client.post(path, content=body)
    assert answer.status_code in (200, 400, 409), answer.text
    found = client.post("/rag/trees/query", json={"query": "oak elm", "mode": "vector"}).json()
    assert sorted(one["text"] for one in found["results"]) == sorted(TREES)


def test_a_body_without_end_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before all of it was read."""
    sent = []

    def pieces() -> Iterator[bytes]:
        for _ in range(3_000):
            sent.append(1)
            yield b"x" * 100_000

    answer = client.post("/rag/trees/query", content=pieces())
    assert answer.status_code == 413
    check("RagFailure", answer.json())


def test_who_only_reads_is_told_so(place: Path) -> None:
    """Each route that writes is refused, and nothing of its body is read."""
    with Collections(str(place)) as opened:
        client = TestClient(app(opened))
        for answer in (
            client.post("/rag/index", content=b"no JSON"),
            client.delete("/rag/trees"),
        ):
            assert answer.status_code == 403
            assert answer.json()["action"] == "start the server with --write"
        assert client.post("/rag/trees/index/reload").json()["synced"] is False
        assert client.get("/rag/list").json()["count"] == 1


def test_the_routes_of_such_services_are_all_there() -> None:
    """Clients that know one that keeps an index a folder find each where they ask for it."""
    assert {f"{one.method} {one.path}" for one in routes.COLLECTION_ROUTES} == {
        "GET /rag/list",
        "POST /rag/index",
        "POST /rag/{name}/query",
        "GET /rag/{name}/index/status",
        "POST /rag/{name}/index/reload",
        "DELETE /rag/{name}",
    }


def test_each_route_is_described(client: TestClient, place: Path) -> None:
    """With what it takes, which is what it accepts, and what it answers."""
    paths = pages.openapi(routes.COLLECTION_ROUTES)["paths"]
    for one in routes.COLLECTION_ROUTES:
        assert one.method.lower() in paths[one.path]
    for path, body in (
        ("/rag/index", {"name": "b", "documents": ["a", {"content": "b", "id": 3}]}),
        ("/rag/{name}/query", {"query": "oak", "top_k": 1, "mode": "keyword"}),
    ):
        taken = paths[path]["post"]["requestBody"]["content"]["application/json"]
        Draft202012Validator(taken["schema"]).validate(body)
        assert client.post(path.replace("{name}", "trees"), json=body).is_success


def test_without_a_folder_each_route_says_how_to_have_one() -> None:
    """Whatever is asked."""
    client = TestClient(app(None))
    for answer in (client.get("/rag/list"), client.delete("/rag/a"), client.get("/rag/x/y/z")):
        assert answer.status_code == 404
        assert "--collections" in answer.json()["action"]


def test_many_ask_at_once_while_it_is_replaced(place: Path) -> None:
    """Over a socket: no error, and each answer of one generation."""
    from concurrent.futures import ThreadPoolExecutor

    with Collections(str(place), writes=True, embedder="builtin") as opened, served(opened) as port:
        body = json.dumps({"rag_name": "trees", "documents": TREES}).encode()
        with ThreadPoolExecutor(12) as pool:
            asked = [pool.submit(texts_of, port) for _ in range(100)]
            written = [pool.submit(raw, port, "POST", "/rag/index", body) for _ in range(5)]
            assert all(one.result() == sorted(TREES) for one in asked)
            assert all(b" 200 OK" in one.result() for one in written)

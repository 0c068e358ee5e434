"""`filestore serve --collections` as a process: without a store, behind its token, killed."""

import json
from pathlib import Path

import httpx

from tests.system.server.serving import Served, serving

TREES = ["The oak stands by the gate.", "The elm was cut down."]


def texts(served: Served) -> list[str]:
    """What the documents of the one collection say."""
    with served.client() as client:
        answer = client.post("/rag/trees/query", json={"query": "tree", "mode": "vector"})
        return sorted(one["text"] for one in answer.json()["results"])


def test_collections_are_served_without_a_store(tmp_path: Path) -> None:
    """They are there again after a restart; who may only read is told so."""
    place = tmp_path / "rags"
    given = {"rag_name": "trees", "documents": TREES}
    with serving(tmp_path, "--collections", place, "--write") as served, served.client() as client:
        assert client.post("/rag/index", json=given).json()["document_count"] == 2
        assert texts(served) == sorted(TREES)
        answer = client.post("/search", json={"query": "oak"})
        assert answer.status_code == 404
        assert answer.json()["error"].startswith("no store is served, only collections")
    with serving(tmp_path, "--collections", place) as served, served.client() as client:
        assert texts(served) == sorted(TREES)
        for refused in (client.delete("/rag/trees"), client.post("/rag/index", json=given)):
            assert refused.status_code == 403
            assert refused.json()["action"] == "start the server with --write"


def test_whatever_refuses_says_it_in_the_same_words(tmp_path: Path) -> None:
    """The token, the limits, the routes: below /rag each error has the same keys."""
    with serving(tmp_path, "--collections", tmp_path / "rags", "--write") as served:
        huge = json.dumps({"query": "a" * 5_000_000})
        own = served.headers
        with httpx.Client(base_url=served.url, trust_env=False, timeout=60) as client:
            for answer, status in (
                (client.get("/rag/list"), 401),
                (client.get("/rag/list", headers={"Host": "example.org"}), 421),
                (client.get("/rag/list", headers={"Origin": "http://example.org"}), 403),
                (client.post("/rag/a/query", content=huge, headers=own), 413),
                (client.get("/rag/a/b/c", headers=own), 404),
            ):
                assert answer.status_code == status
                assert set(answer.json()) == {"error", "details", "action"}
            elsewhere = client.get("/status")
            assert set(elsewhere.json()) == {"error", "detail", "remedy"}

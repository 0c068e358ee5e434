"""One search in several of the stores that a server has, over HTTP."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import filestore
from filestore.server.http.app import AppParts, make_app
from filestore.server.operations import ROUTES
from filestore.server.stores import Access, Stores
from tests.system.server.serving import serving


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A second store."""
    with filestore.create(tmp_path / "other", embedder="builtin") as store:
        store.put("Rent of whales.\n", into="sea")
    return tmp_path / "other"


@pytest.fixture
def client(place: Path, other: Path) -> Iterator[TestClient]:
    """A client of both."""
    with Stores.open([str(place), str(other)], Access()) as stores:
        app = make_app(AppParts(stores=stores, token=None, is_local=False))
        yield TestClient(app)


BOTH = ["kb", "other"]


def test_a_list_of_stores_is_asked_at_once(client: TestClient) -> None:
    """By POST, by GET with the name twice, and as a list that a program wrote as text."""
    by_post = client.post("/search", json={"query": "rent", "k": 2, "store": BOTH}).json()
    assert [hit["store"] for hit in by_post["hits"]] == BOTH
    assert list(by_post) == ["query", "hits", "nearest", "respelt", "notes", "stores"]
    assert list(by_post["stores"]) == BOTH
    asked = {"query": "rent", "k": 2}
    assert client.get("/search", params=asked | {"store": BOTH}).json() == by_post
    for text in ('["kb", "other"]', '["kb","other","kb"]'):
        assert client.get("/search", params=asked | {"store": text}).json() == by_post
        assert client.post("/search", json=asked | {"store": text}).json() == by_post
    for hit in by_post["hits"]:
        shown = client.get("/show", params={"store": hit["store"], "path": hit["path"]}).json()
        assert "ent" in shown["body"]


def test_one_store_answers_as_ever(client: TestClient) -> None:
    """By its name; in a list its hits name it."""
    alone = client.get("/search", params={"query": "rent", "store": "kb"}).json()
    assert "store" not in alone["hits"][0]
    listed = client.post("/search", json={"query": "rent", "store": ["kb"]}).json()
    assert [hit.pop("store") for hit in listed["hits"]] == ["kb"]
    assert listed["hits"] == alone["hits"]


@pytest.mark.parametrize("wrong", [["kbb"], [3], {"kb": 1}, [[]], ["kb", ""], [None], "[3]", 7])
def test_what_is_no_list_of_stores_is_refused(client: TestClient, wrong: Any) -> None:
    """In one sentence."""
    done = client.post("/search", json={"query": "rent", "store": wrong})
    assert done.status_code in (400, 404)
    assert done.json()["error"]


@pytest.mark.parametrize("route", sorted(ROUTES.keys() - {"search"}))
def test_other_routes_take_one_store(client: TestClient, route: str) -> None:
    """A list is refused before anything else is looked at."""
    done = client.post(f"/{route}", json={"store": BOTH})
    assert (done.status_code, done.json()["error"]) == (400, "store: the name of a store is a text")


def test_a_store_that_went_hides_no_other(client: TestClient, other: Path) -> None:
    """It is named; without any other its error is the answer."""
    shutil.rmtree(other)
    found = client.post("/search", json={"query": "rent", "store": BOTH}).json()
    assert {hit["store"] for hit in found["hits"]} == {"kb"}
    assert re.match("other did not answer: no store", found["notes"][-1])
    assert client.post("/search", json={"query": "rent", "store": ["other"]}).status_code >= 400


def test_commands_ask_no_server_for_several_stores(
    place: Path, other: Path, tmp_path: Path, run: Any
) -> None:
    """A server of one of them would answer for that alone."""
    with serving(tmp_path, place):
        done = run("search", "--store", other, "--store", place, "rent", "--json", cwd=tmp_path)
    assert {hit["store"] for hit in done.json["hits"]} == {str(other), str(place)}

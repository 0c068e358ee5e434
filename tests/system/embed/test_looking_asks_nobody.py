"""Commands that only look send nothing to the service that embeds, however little is known of it.

A real service counts what arrives; it answers with errors, which would be asked again.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.system.embedding_server import EmbeddingServer, hangs_up, status, well

LOOKING: Final = {
    "status": ("status",),
    "ls": ("ls",),
    "similar": ("similar", "chunked/note.md/chunk1.md"),
    "duplicates": ("duplicates",),
    "links": ("links", "chunked/note.md/chunk1.md"),
    "ls of one": ("ls", "note.md"),
    "show": ("show", "chunked/note.md/chunk1.md"),
    "verify fast": ("verify",),
    "verify full": ("verify", "--level", "full"),
    "undo list": ("undo", "--list"),
    "trust list": ("trust", "--list"),
    "search by keyword": ("search", "words", "--mode", "keyword"),
    "repair plan": ("repair", "--plan"),
    "repair plan of the catalog": ("repair", "--plan", "--only", "missing", "catalog-missing"),
    "reconstruct": ("reconstruct", "note.md"),
    "embedder list": ("embedder", "list"),
    "git status": ("git", "status"),
    "doctor": ("doctor",),
    "config": ("config",),
    "completion": ("completion", "bash"),
    "sync that embeds nothing": ("sync", "--no-embed"),
}


def as_it_was(workspace: Any) -> None:
    """Everything is known."""


def no_cache(workspace: Any) -> None:
    """As on a machine that was given the store whole."""
    shutil.rmtree(Path(os.environ["HOME"]) / ".cache")


def no_catalog(workspace: Any) -> None:
    """The catalog is lost, the embeddings are not."""
    no_cache(workspace)
    (workspace.sidecar / "catalog.sqlite").unlink()


def no_sidecar(workspace: Any) -> None:
    """As in a fresh clone."""
    no_cache(workspace)
    shutil.rmtree(workspace.sidecar)


def never_embedded(workspace: Any) -> None:
    """As in a fresh clone that was indexed for keywords alone."""
    no_sidecar(workspace)
    workspace("sync", "--no-embed", code=None)


KNOWN: Final = {one.__name__: one for one in (as_it_was, no_cache, no_catalog, no_sidecar)}
KNOWN["never_embedded"] = never_embedded


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def served(new_workspace: Callable[..., Any], server: EmbeddingServer) -> Any:
    """A store with a note, embedded by the service, which then fails."""
    workspace = new_workspace(init=False)
    workspace("init", "--embedder", "openai:small", "--endpoint", server.endpoint)
    workspace.write("note.md", "# Note\n\nWords of the note.\n")
    workspace("add", "note.md")
    server.requests.clear()
    server.behave(status(500))
    return workspace


@pytest.mark.parametrize("state", KNOWN)
def test_looking_asks_nobody(served: Any, server: EmbeddingServer, state: str) -> None:
    """Not one request, neither from a sound store nor from one that lost what it knew."""
    KNOWN[state](served)
    for name, words in LOOKING.items():
        served(*words, code=None)
        assert server.requests == [], name


def test_what_the_store_recorded_is_enough(served: Any, server: EmbeddingServer) -> None:
    """With a catalog the store is as clean as ever, and its model has its fingerprint."""
    before = served.json("status")
    no_cache(served)
    server.behave(hangs_up)
    assert served.json("status") == before
    assert before["embedder"]["fingerprint"] == "openai/1:small:48"
    served.assert_settled()
    assert server.requests == []


def test_nothing_known_is_not_a_missing_model(served: Any, server: EmbeddingServer) -> None:
    """Before the first embedding it is said which texts wait, and the next sync asks."""
    never_embedded(served)
    found = served.json("status")
    assert found["drift"] == {"vector-pending": [".sidecar/embeddings.sqlite"]}
    assert found["embedder"]["fingerprint"] is None
    assert "the next sync asks" in found["embedder"]["problem"]
    assert "by keyword only" in served("search", "words").stderr
    assert server.requests == []
    server.behave(well)
    assert served.sync()["embedded"] == 1
    served.assert_settled()
    assert served.json("search", "words", "--mode", "vector")["mode"] == "vector"


def test_a_plan_says_who_will_embed(served: Any, server: EmbeddingServer) -> None:
    """The price of a plan names the model although nobody asked it yet."""
    never_embedded(served)
    assert "openai:small has to embed 1 passage" in served("repair", "--plan", code=1).stdout
    assert server.requests == []


def test_another_model_is_told_unasked(served: Any, server: EmbeddingServer) -> None:
    """Settings that name a model nobody asked yet do not fit the vectors."""
    settings = served.store / "filestore.toml"
    settings.write_text(settings.read_text().replace("openai:small", "openai:large"))
    assert served.json("status", code=1)["drift"] == {"model-changed": ["filestore.toml"]}
    assert "to embed, 0 from cache" in served("repair", "--plan", code=1).stdout
    assert server.requests == []

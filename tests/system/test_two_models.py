"""Two models of a store through random histories: no query ever meets vectors of the other.

Three models, two of which have vectors of one length: what one of these makes of a text is what the
other makes of it, backwards. So a mixed comparison gives a number that no model gives.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from filestore.embed._builtin import BuiltinEmbedder
from tests.system.embedding_server import EmbeddingServer, Handler, Request, vector_of

QUERIES = ("amber basalt", "copper and zinc", "the lease of the harbour")
WORDS = ("amber", "basalt", "copper", "zinc", "lease", "harbour", "ferry", "winter", "bees")
STEPS = 25


def by_model(handler: Handler, request: Request) -> None:
    """Answer as the model that is asked for."""
    made = [vector_of(text) for text in request.texts]
    backwards = request.body["model"] == "large"
    handler.reply_vectors([one[::-1] if backwards else one for one in made])


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        running.behave(by_model)
        yield running


def cosine(model: str, query: str, text: str) -> float:
    """What a model makes of a query and a text, without the store."""
    if model == "builtin":
        one, other = BuiltinEmbedder().embed_documents([query, text])
    else:
        one, other = (numpy.array(vector_of(words), "float64") for words in (query, text))
    return float(one @ other / numpy.linalg.norm(one) / numpy.linalg.norm(other))


class History:
    """A store, and what happens to it."""

    def __init__(self, workspace: Any, server: EmbeddingServer, seed: int) -> None:
        self.workspace = workspace
        self.server = server
        self.chance = random.Random(seed)
        self.settings: Path = workspace.store / "filestore.toml"
        self.versions = [self.settings.read_bytes()]
        self.happened: list[str] = []

    def step(self) -> None:
        """Let one thing happen, and ask both models."""
        happens = self.chance.choice(
            (
                self.write,
                self.write,
                self.delete,
                self.sync,
                self.sync,
                self.sync_without_embedding,
                self.build,
                self.build,
                self.switch,
                self.switch,
                self.drop,
                self.change,
                self.lose_catalog,
                self.lose_index,
                self.lose_embeddings,
                self.go_back,
            )
        )
        self.happened.append(happens.__name__)
        happens()
        if self.versions[-1] != self.settings.read_bytes():
            self.versions.append(self.settings.read_bytes())
        self.ask()

    def ask(self) -> None:
        """Every score is what the model that the settings name gives."""
        told = self.workspace.json("status", code=None)
        for words, named in (((), told["embedder"]), (("--beside",), told.get("beside"))):
            for query in QUERIES if named else ():
                search = ("search", query, "--mode", "vector", "-k", "5", *words)
                answer = self.workspace.json(*search, code=None)
                for hit in answer["hits"] if answer.get("mode") == "vector" else ():
                    if hit["freshness"] == "fresh":
                        expected = cosine(named["name"], query, hit["text"].rstrip("\n"))
                        assert hit["score"] == pytest.approx(expected, abs=1e-4), self.happened

    def write(self) -> None:
        path = self.workspace.chunked / f"note{self.chance.randrange(8)}.md"
        path.write_text(" ".join(self.chance.choices(WORDS, k=12)) + ".\n")

    def delete(self) -> None:
        for path in sorted(self.workspace.chunked.glob("*.md"))[:1]:
            path.unlink()

    def sync(self) -> None:
        self.workspace("sync", code=None)

    def sync_without_embedding(self) -> None:
        self.workspace("sync", "--no-embed", code=None)

    def model(self) -> tuple[str, ...]:
        name = self.chance.choice(("builtin", "openai:small", "openai:large"))
        endpoint = () if name == "builtin" else ("--endpoint", self.server.endpoint)
        return ("embedder", "set", name, *endpoint, "--yes")

    def build(self) -> None:
        self.workspace(*self.model(), "--beside", code=None)

    def change(self) -> None:
        self.workspace(*self.model(), code=None)

    def switch(self) -> None:
        self.workspace("embedder", "switch", code=None)

    def drop(self) -> None:
        self.workspace("embedder", "drop", "--yes", code=None)

    def lose_catalog(self) -> None:
        for path in self.workspace.sidecar.glob("catalog.sqlite*"):
            path.unlink()

    def lose_index(self) -> None:
        for path in self.workspace.sidecar.glob("*.faiss"):
            path.unlink()

    def lose_embeddings(self) -> None:
        for path in self.workspace.sidecar.glob("embeddings.sqlite*"):
            path.unlink()

    def go_back(self) -> None:
        """As git does: the settings of some earlier time."""
        self.settings.write_bytes(self.chance.choice(self.versions))

    def end(self) -> None:
        """Whatever happened, one sync makes both models whole, if the first needs no price."""
        if "model-changed" in self.workspace.drift():
            name = self.workspace.json("status", code=None)["embedder"]["name"]
            endpoint = () if name == "builtin" else ("--endpoint", self.server.endpoint)
            self.workspace("embedder", "set", name, *endpoint, "--yes")
        self.workspace("sync", "--forget-missing", code=None)
        self.ask()
        found = self.workspace.json("verify", "--level", "full", code=None)["findings"]
        assert [one for one in found if one["severity"] != "I"] == [], str(self.happened)


@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(4, 60))],
)
def test_models_are_never_mixed(workspace: Any, server: EmbeddingServer, seed: int) -> None:
    """Edited, synced, switched, dropped, damaged, in any order: each answer is of one model."""
    history = History(workspace, server, seed)
    for _ in range(4):
        history.write()
    for _ in range(STEPS):
        history.step()
    history.end()

"""How many texts an embedder is given at once, by a clock that it moves itself."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from filestore.embed import Embedder
from filestore.embed._openai import OpenAIEmbedder
from filestore.sidecar import embedding_feed
from filestore.sidecar.embedding_feed import EmbeddingFeed


class Slow(Embedder):
    """Takes its time for each call, and for each text."""

    name, fingerprint, dimension, lexical = "slow", "slow", 2, True

    def __init__(self, call_s: float, text_s: float) -> None:
        self.call_s, self.text_s = call_s, text_s
        self.now_s = 0.0
        self.given: list[int] = []

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.given.append(len(texts))
        self.now_s += self.call_s + self.text_s * len(texts)
        return np.ones((len(texts), 2), np.float32)

    def embed_query(self, text: str) -> Any:
        raise AssertionError(text)


class NothingKept:
    """Embeddings, none of which are known."""

    def has(self, *_: Any) -> set[bytes]:
        return set()

    def get(self, _: str, keys: Iterable[bytes]) -> tuple[None, Any]:
        return None, np.zeros(len([*keys]), bool)

    def put(self, *_: Any) -> None:
        pass


def embedded(embedder: Slow, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many of 1,000 passages it was given at once, in commits of 200."""
    clock = SimpleNamespace(monotonic=lambda: embedder.now_s, time=lambda: 0)
    monkeypatch.setattr(embedding_feed, "time", clock)
    texts = {number.to_bytes(32): f"text {number}" for number in range(1_000)}
    for start in range(0, 1_000, 200):
        kept: Any = NothingKept()
        feed = EmbeddingFeed(catalog=None, embeddings=kept, embedder=embedder, embed=True)
        feed.embed({key: texts[key] for key in [*texts][start : start + 200]})
    assert sum(embedder.given) == 1_000
    return embedder.given


def test_a_batch_takes_about_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first few texts tell how many that are; the next commit knows it."""
    first, *others = embedded(Slow(0, 0.02), monkeypatch)
    assert first == 8
    assert {*others[:3], *others[4:]} == {50}


@pytest.mark.parametrize("call_s", [0.8, 1.5, 9.0])
def test_a_service_that_is_slow_to_answer_is_asked_seldom(
    call_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer texts at once would take as long."""
    service = Slow(call_s, 0.001)
    service.least_batch = OpenAIEmbedder.least_batch
    assert len(embedded(service, monkeypatch)) <= 1 + 5 * 4

"""Synthetic vectors for the benchmarks of large stores, and the embedder that gives them to texts.

Unit vectors around centres of uneven sizes; the same for the same numbers, in any process.
"""

from collections.abc import Sequence

import numpy as np
from xxhash import xxh3_64_intdigest

from filestore.embed import Embedder

DIMENSION = 384
PER_CENTRE = 200
"""On average: fewer would leave a vector without ten neighbours of its kind."""
SPREAD = 0.6
"""Length of what sets a vector apart from its centre, which has length 1."""
BLOCK = 8_192
QUERIES_SEED = 1


class Clusters:
    """Some vectors, by number or by text."""

    def __init__(self, total: int) -> None:
        count = max(1, total // PER_CENTRE)
        centres = np.random.default_rng(0).standard_normal((count, DIMENSION), dtype=np.float32)
        self._centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)
        sizes = (1 / np.arange(1, count + 1)) ** 0.7
        self._cumulative = np.cumsum(sizes / sizes.sum())

    def block(self, start: int, count: int) -> np.ndarray:
        """The vectors from one number on: (count, dimension) float32, rows of length 1."""
        return self._rows(np.random.default_rng((2, start)), count)

    def queries(self, count: int) -> np.ndarray:
        """Vectors of the same kind that are in no block."""
        return self._rows(np.random.default_rng((1, QUERIES_SEED)), count)

    def of_text(self, text: str) -> np.ndarray:
        """The vector of a text: its first line chooses the centre."""
        centre = xxh3_64_intdigest(text.partition("\n")[0].encode()) / 2**64
        noise = np.random.default_rng(xxh3_64_intdigest(text.encode()))
        at = min(int(np.searchsorted(self._cumulative, centre)), len(self._centres) - 1)
        row = self._around(
            self._centres[at], noise.standard_normal(DIMENSION, dtype=np.float32)[None]
        )
        return row[0]

    def _rows(self, generator: np.random.Generator, count: int) -> np.ndarray:
        chosen = np.searchsorted(self._cumulative, generator.random(count))
        noise = generator.standard_normal((count, DIMENSION), dtype=np.float32)
        return self._around(self._centres[np.minimum(chosen, len(self._centres) - 1)], noise)

    def _around(self, centres: np.ndarray, noise: np.ndarray) -> np.ndarray:
        rows = centres + noise * np.float32(SPREAD / DIMENSION**0.5)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class SyntheticEmbedder(Embedder):
    """Gives a text a vector that depends on nothing but its bytes, as fast as can be."""

    name = "synthetic"

    def __init__(self, total: int) -> None:
        self._total = total
        self._clusters: Clusters | None = None

    @property
    def fingerprint(self) -> str:
        return f"synthetic/1:{DIMENSION}:{self._total}"

    @property
    def dimension(self) -> int:
        return DIMENSION

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        if self._clusters is None:
            self._clusters = Clusters(self._total)
        return np.array([self._clusters.of_text(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        return self.embed_documents([text])[0]

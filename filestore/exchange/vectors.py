"""Vectors that came with texts: kept aside until some of the texts were embedded again.

One rule: none of them gets into the store's embeddings before all were read, and the store's model
gave the same vectors for some of the texts, chosen by chance.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from filestore.core.hashing import DIGEST_BYTES
from filestore.embed import EndpointError, ModelMissing, ModelUnusable
from filestore.embed.base import odd_lengths
from filestore.embed.canaries import COMPARED, LEAST_COSINE, Sampled, first_unlike
from filestore.fs import part

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache

_KEY_BYTES: Final = 2 * DIGEST_BYTES
"""Of an embedding key."""
_FLOAT_BYTES: Final = 4
_AT_ONCE: Final = 2_000


class Vectors:
    """Vectors of one import, in a file without a name. A context manager."""

    def __init__(self, folder: str, dimension: int, chance: random.Random) -> None:
        """Take nothing yet.

        Args:
            folder: Where there is room for all of them.
            dimension: How many numbers each has.
            chance: Chooses the texts that are embedded again.
        """
        self._file = part.unnamed_file(folder)
        self._dimension = dimension
        self._chance = chance
        self._sample: list[Sampled] = []
        self.count = 0
        """How many are kept aside."""
        self.refused = 0
        """How many are not: of another dimension, of another length than 1, not finite."""

    def __enter__(self) -> Vectors:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def take(self, found: Sequence[tuple[str, str, bytes, NDArray[float32]]]) -> None:
        """Keep some aside.

        Args:
            found: Of each its name, its text, its embedding key, and what is said to be its vector.
        """
        import numpy

        fitting = [one for one in found if one[3].shape == (self._dimension,)]
        self.refused += len(found) - len(fitting)
        if not fitting:
            return
        odd = odd_lengths(numpy.stack([vector for *_, vector in fitting]))
        self.refused += len(odd)
        for place, (name, text, key, vector) in enumerate(fitting):
            if place in odd:
                continue
            self._file.write(key + vector.astype("<f4").tobytes())
            one = Sampled(name=name, text=text, vector=vector)
            # Every text so far is among those that are compared with the same chance.
            if len(self._sample) < COMPARED:
                self._sample.append(one)
            elif (at := self._chance.randrange(self.count + 1)) < COMPARED:
                self._sample[at] = one
            self.count += 1

    @property
    def compared(self) -> int:
        """How many texts are embedded again."""
        return len(self._sample)

    def problem(self, embedder: Embedder) -> str:
        """Why they are not taken, "" where the model gives the same for some of the texts."""
        try:
            unlike = first_unlike(embedder, self._sample)
        except (EndpointError, ModelMissing, ModelUnusable) as error:
            return f"the model cannot be asked: {error.message}"
        if unlike is None:
            return ""
        one, cosine = unlike
        return (
            f"{embedder.name} gives another vector for {one.name}: their cosine is {cosine:.3f},"
            f" expected at least {LEAST_COSINE}"
        )

    def keep(self, embeddings: EmbeddingCache, fingerprint: str) -> int:
        """Put them into the store's embeddings; how many were not there."""
        import numpy

        row = _KEY_BYTES + self._dimension * _FLOAT_BYTES
        self._file.seek(0)
        new = 0
        while data := self._file.read(row * _AT_ONCE):
            rows = numpy.frombuffer(data, dtype=numpy.uint8).reshape(-1, row)
            keys = [bytes(one) for one in rows[:, :_KEY_BYTES]]
            vectors = numpy.ascontiguousarray(rows[:, _KEY_BYTES:]).view("<f4")
            new += embeddings.put(fingerprint, keys, vectors.astype(numpy.float32, copy=False))
        return new

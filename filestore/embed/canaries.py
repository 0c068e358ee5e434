"""Canary texts: does a model still embed as it did when the store's vectors were made?

A fingerprint names the weights, not what a service or a runtime makes of them. So a few fixed texts
are embedded with the first texts of a model and kept among its embeddings; before more are
embedded, they are embedded again and compared. Packs and imported files are held against texts of
the store; chance chooses which, so that nobody can foresee it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.core.errors import FilestoreError
from filestore.core.hashing import embedding_key

if TYPE_CHECKING:
    from numpy import bool_, float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache

CANARIES: Final = (
    "A canary is taken down the mine because it falls silent before the miners do.",
    "def area(width: float, height: float) -> float:\n    return width * height",
    "Der Leuchtturm von Dornbusch wurde 1888 gebaut; 巴黎是法国的首都。",
)
TOLERANCE: Final = 0.005
"""Runtimes and kernels differ by less in cosine; other weights by more."""
COMPARED: Final = 16
"""So many texts of the store are embedded again before vectors for them are taken."""
LEAST_COSINE: Final = 1 - TOLERANCE
"""Between the vector that was said and the one that the model gives."""


class ModelDrifted(FilestoreError, ValueError):
    """A model of the same name embeds differently than before: its vectors must not be mixed in."""


def canary_likeness(embedder: "Embedder", embeddings: "EmbeddingCache") -> float | None:
    """The least cosine between what the model makes of a canary now and what it once made of it.

    Returns:
        None where nothing was kept to compare with.

    Raises:
        ModelUnusable: The model gives no usable vectors.
        EndpointError: The service cannot be asked.
    """
    before, found = embeddings.get(embedder.fingerprint, canary_keys())
    if not found.any():
        return None
    return _least_cosine(before, embedder.embed_documents(CANARIES), found)


def check_canaries(embedder: "Embedder", embeddings: "EmbeddingCache") -> None:
    """Compare what the model makes of the canaries with what it once made of them.

    The first time they are kept, for later.

    Raises:
        ModelDrifted: They differ by more than `TOLERANCE` in cosine.
        ModelUnusable: The model gives no usable vectors.
        EndpointError: The service cannot be asked.
    """
    before, found = embeddings.get(embedder.fingerprint, canary_keys())
    now = embedder.embed_documents(CANARIES)
    if not found.all():
        embeddings.put(embedder.fingerprint, canary_keys(), now)
    if not found.any():
        return
    cosine = _least_cosine(before, now, found)
    if cosine < 1 - TOLERANCE:
        raise ModelDrifted(
            f"{embedder.name} does not embed as it did: a fixed text has a cosine of "
            f"{cosine:.3f} to itself, expected 1",
            remedy="bring the model back that the store was made with, or embed everything anew: "
            "filestore embedder set NAME",
        )


def _least_cosine(
    before: "NDArray[float32]", now: "NDArray[float32]", found: "NDArray[bool_]"
) -> float:
    return float((before[found] * now[found]).sum(axis=1).min())


def unrelated(embedder: "Embedder", embeddings: "EmbeddingCache") -> "NDArray[float32]":
    """The vector of a text that has to do with nothing in most stores, as it was once made.

    Returns:
        ``(dimension,) float32, of length 1``.
    """
    kept, found = embeddings.get(embedder.fingerprint, canary_keys()[:1])
    made: NDArray[float32] = kept if found[0] else embedder.embed_documents(CANARIES[:1])
    return made.reshape(-1)


def canary_keys() -> list[bytes]:
    """The embedding keys of the fixed texts, in their order."""
    return [embedding_key(text) for text in CANARIES]


class Sampled(Struct, frozen=True, kw_only=True):
    """A text to be embedded again."""

    name: str
    """Where it stands."""
    text: str
    vector: "NDArray[float32]"
    """What is said to be its vector, of length 1."""


def first_unlike(embedder: "Embedder", texts: Sequence[Sampled]) -> tuple[Sampled, float] | None:
    """The first text whose vector is not what the model gives, with their cosine; None for none.

    Raises:
        EndpointError, ModelMissing, ModelUnusable: The model cannot be asked.
    """
    now = embedder.embed_documents([one.text for one in texts])
    for one, vector in zip(texts, now, strict=True):
        cosine = float(one.vector @ vector)
        # Written so that a number that is none counts as wrong.
        if not cosine >= LEAST_COSINE:
            return one, cosine
    return None

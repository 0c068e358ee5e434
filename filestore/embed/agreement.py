"""Does a model give the vectors that somebody else says it gave? Some texts, embedded again.

What packs and imported files are checked by before anything is taken from them. One rule: which
texts are compared is for chance to choose, so that nobody can foresee it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.embed.canaries import TOLERANCE

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder

COMPARED: Final = 16
"""So many texts of the store are embedded again before vectors for them are taken."""
LEAST_COSINE: Final = 1 - TOLERANCE
"""Between the vector that was said and the one that the model gives."""


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

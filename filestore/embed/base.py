"""The contract every embedder keeps: texts in, vectors of length 1 out.

Holds no model and no cache. One rule: every vector is finite and of length 1, also for a text with
nothing in it, so that nothing downstream has to treat such a text apart.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from filestore.config.settings import ModelOptions
from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError
from filestore.core.safe_text import brief, listed
from filestore.remote import EndpointError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


LENGTH_TOLERANCE: Final = 1e-3
"""How far the length of a stored vector may be from 1."""

_BYTES_PER_TOKEN: Final = 3
_PUNCTUATION: Final = re.compile(rb"[!-/:-@\[-`{-~]")


class UnknownEmbedder(FilestoreError, ValueError):
    """The settings name an embedder that this installation does not have."""

    def __init__(self, name: str, known: Iterable[str], others: Iterable[str] = ()) -> None:
        """Name those that were meant, which may be of the others, else all that are known."""
        from filestore.core.spelling import did_you_mean

        choices = tuple(known)
        meant = did_you_mean(name, (*choices, *others))
        meant = meant or did_you_mean(name.partition(":")[0], choices)
        meant = meant or f"; known here: {listed(choices, len(choices))}"
        super().__init__(f"unknown embedder {brief(name)}{meant}", remedy="filestore embedder list")


class ModelMissing(FilestoreError, FileNotFoundError):
    """A store's model, or the library that runs it, is not on this machine."""


class ModelUnusable(FilestoreError, ValueError):
    """What should be a model cannot be used: no weights, damaged, of another dimension."""


class EndpointUnasked(EndpointError):
    """How long a service's vectors are is not known here, and it was not asked yet."""


def nothing_recorded() -> tuple[str, ...]:
    """The fingerprints of a store that has no vectors."""
    return ()


class Choice(Struct, frozen=True, kw_only=True):
    """Which embedder to open, and what its opener may look at."""

    name: str
    """As in the settings: a kind, or kind and model, ``onnx:all-MiniLM-L6-v2``."""
    options: ModelOptions = field(default_factory=ModelOptions)
    machine: Machine = field(default_factory=Machine)
    root: str = ""
    """The store's, absolute: a model may lie beside it, and trust is given by root."""
    recorded: Callable[[], Iterable[str]] = nothing_recorded
    """The fingerprints that the store's vectors have, where they can be read."""

    @property
    def kind(self) -> str:
        """What stands before the colon."""
        return self.name.partition(":")[0]

    @property
    def model(self) -> str:
        """What stands after the colon: a hub name, a name the machine knows, a folder; or ""."""
        return self.name.partition(":")[2]


class Embedder(ABC):
    """Turns texts into vectors of one space, named by its fingerprint.

    Opening one is cheap: it reads a few small files. The model, and the libraries that run it, are
    loaded by the first call that needs them.
    """

    name: str
    """The name in the settings, for example ``builtin`` or ``onnx:all-MiniLM-L6-v2``."""
    lexical: bool = False
    """True when only words and characters are compared, not meaning: the user is informed."""
    least_batch: int = 1
    """So many texts take hardly longer than one."""
    batch: int = 8
    """So many texts take about a second, as far as was seen."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """The identity of the vector space: name, version, dimension, options; not the runtime.

        Two embedders with one fingerprint give vectors that may be mixed in one index.
        """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many numbers a vector has."""

    @property
    def is_known(self) -> bool:
        """Whether fingerprint and dimension are known here, without asking a service for them."""
        return True

    @abstractmethod
    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts that are to be found: ``(n, dimension) float32, rows of length 1``.

        A text of any length is taken: what a model cannot read at once it reads in parts, whose
        mean stands for the text.

        Raises:
            ModelUnusable: The model gives no such vectors: another dimension, NaN, nothing.
            EndpointError: The service cannot be reached, or refuses.
        """

    @abstractmethod
    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question: ``(dimension,) float32, of length 1``."""

    def fluency(self, text: str) -> float:
        """How well it knows the language of a text, 0 to 1; 1 where that cannot be told."""
        return 1.0


def neutral_vector(dimension: int) -> NDArray[np.float32]:
    """The one vector of every text without features: ``(dimension,) float32, of length 1``.

    All its entries are equal, so it lies near no text in particular.
    """
    import numpy as np

    # Divided in float64 and rounded once: the same bits on every machine.
    return np.full(dimension, 1.0 / float(dimension) ** 0.5).astype(np.float32)


def odd_lengths(vectors: NDArray[np.float32]) -> dict[int, float]:
    """Which rows are not of length 1, with their lengths; NaN where a number is not finite."""
    import numpy as np

    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    # Written so that a length that is none counts as wrong.
    (wrong,) = np.nonzero(~(np.abs(lengths - 1) < LENGTH_TOLERANCE))
    return {int(place): float(lengths[place]) for place in wrong}


def estimated_tokens(text: str) -> int:
    """An estimate on the high side: the same everywhere, 0 for an empty text.

    Every third byte of UTF-8 is a token, and every ASCII punctuation mark is one. Of MiniLM's word
    pieces that is 1.0 (German, Chinese) to 1.5 (Python) times as many.
    """
    data = text.encode("utf-8", "replace")
    marks = len(_PUNCTUATION.findall(data))
    others = len(data) - marks
    return marks + (others + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN

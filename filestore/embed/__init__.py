"""The contract every embedder keeps, texts in, vectors of length 1 out, and the kinds there are.

A new one is a module next to these and one entry in `_REACHES_OUT`, which says whether it sends
texts to a service: then a store may use it only after its user allowed that service. An
implementation is imported only when it is opened. One rule: every vector is finite and of length 1,
also for a text with nothing in it, so that nothing downstream has to treat such a text apart.

Does a model still embed as it did when the store's vectors were made? A fingerprint names the
weights, not what a service or a runtime makes of them. So a few fixed texts, the canaries, are
embedded with the first texts of a model and kept among its embeddings; before more are embedded,
they are embedded again and compared. Packs and imported files are compared by texts of the store;
chance chooses which, so that an attacker cannot foresee it.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct, field

from filestore.config.settings import ModelOptions
from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError
from filestore.core.hashing import embedding_key
from filestore.core.safe_text import brief, listed
from filestore.remote import EndpointError as EndpointError
from filestore.remote import EndpointUntrusted as EndpointUntrusted

if TYPE_CHECKING:
    import numpy as np
    from numpy import bool_, float32
    from numpy.typing import NDArray

    from filestore.embed.cache import EmbeddingCache


LENGTH_TOLERANCE: Final = 1e-3
"""How far the length of a stored vector may be from 1."""

_BYTES_PER_TOKEN: Final = 3
_PUNCTUATION: Final = re.compile(rb"[!-/:-@\[-`{-~]")


class UnknownEmbedder(FilestoreError, ValueError):
    """The settings name an embedder that this installation does not have."""

    def __init__(self, name: str, known: Iterable[str], others: Iterable[str] = ()) -> None:
        """Name similar ones, which may be of the others, else all that are known."""
        from filestore.core.spelling import did_you_mean

        choices = tuple(known)
        hint = did_you_mean(name, (*choices, *others))
        hint = hint or did_you_mean(name.partition(":")[0], choices)
        hint = hint or f"; known here: {listed(choices, len(choices))}"
        super().__init__(f"unknown model {brief(name)}{hint}", remedy="filestore embedder list")


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
    """The store's, absolute: a model may lie next to it, and trust is given by root."""
    recorded: Callable[[], Iterable[str]] = nothing_recorded
    """The fingerprints that the store's vectors have, where they can be read."""

    @property
    def kind(self) -> str:
        """What comes before the colon."""
        return self.name.partition(":")[0]

    @property
    def model(self) -> str:
        """What comes after the colon: a hub name, a name the machine knows, a folder; or ""."""
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
    """How many texts take hardly longer than one."""
    batch: int = 8
    """How many texts take about a second, as far as was seen."""

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
        mean represents the text.

        Raises:
            ModelUnusable: The model gives no such vectors: another dimension, NaN, nothing.
            EndpointError: The service cannot be reached, or refuses.
        """

    @abstractmethod
    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question: ``(dimension,) float32, of length 1``."""

    def fluency(self, text: str) -> float:
        """How well it knows the language of a text, 0 to 1; 1 where that is not known."""
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


class OneAtATime(Embedder):
    """Another embedder, behind a lock."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.lexical = embedder.lexical
        self.least_batch = embedder.least_batch
        self._embedder = embedder
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """The other's."""
        with self._lock:
            return self._embedder.fingerprint

    @property
    def dimension(self) -> int:
        """The other's."""
        with self._lock:
            return self._embedder.dimension

    @property
    def is_known(self) -> bool:
        """The other's."""
        return self._embedder.is_known

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed, once no other thread does; see `Embedder.embed_documents`."""
        with self._lock:
            return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question, once no other thread does; see `Embedder.embed_query`."""
        with self._lock:
            return self._embedder.embed_query(text)

    def fluency(self, text: str) -> float:
        """The other's, once no other thread embeds."""
        with self._lock:
            return self._embedder.fluency(text)


CANARIES: Final = (
    "A canary is taken down the mine because it falls silent before the miners do.",
    "def area(width: float, height: float) -> float:\n    return width * height",
    "Der Leuchtturm von Dornbusch wurde 1888 gebaut; 巴黎是法国的首都。",
)
TOLERANCE: Final = 0.005
"""Runtimes and kernels differ by less in cosine; other weights by more."""
COMPARED: Final = 16
"""How many texts of the store are embedded again before vectors for them are taken."""
LEAST_COSINE: Final = 1 - TOLERANCE
"""Between the expected vector and the one that the model gives."""


class ModelDrifted(FilestoreError, ValueError):
    """A model of the same name embeds differently than before: its vectors must not be mixed in."""


def canary_likeness(embedder: Embedder, embeddings: EmbeddingCache) -> float | None:
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


def check_canaries(embedder: Embedder, embeddings: EmbeddingCache) -> None:
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
            f"{embedder.name} no longer embeds as it did: a fixed text has a cosine of "
            f"{cosine:.3f} to its earlier vector, expected 1",
            remedy="'filestore embedder list' lists the models here; or restore the old one",
        )


def _least_cosine(before: NDArray[float32], now: NDArray[float32], found: NDArray[bool_]) -> float:
    return float((before[found] * now[found]).sum(axis=1).min())


def unrelated(embedder: Embedder, embeddings: EmbeddingCache) -> NDArray[float32]:
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
    """Where it is."""
    text: str
    vector: NDArray[float32]
    """Its expected vector, of length 1."""


def first_unlike(embedder: Embedder, texts: Sequence[Sampled]) -> tuple[Sampled, float] | None:
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


_REACHES_OUT: Final = {
    "builtin": False,
    "minilm": False,
    "multilingual": False,
    "onnx": False,
    "openai": True,
    "sentence-transformers": False,
}
"""By kind; ``open_choice`` of the module of that name opens the embedder."""


def known_embedders() -> tuple[str, ...]:
    """The kinds that `open_embedder` understands, sorted."""
    return tuple(sorted(_REACHES_OUT))


def is_service(kind: str) -> bool:
    """Whether embedders of this kind send texts to a service; also false for an unknown kind."""
    return _REACHES_OUT.get(kind, False)


def reaches_out(name: str, options: ModelOptions) -> str | None:
    """The service that an embedder sends texts to; None for one that runs here.

    Raises:
        EndpointError: What is named is no address.
    """
    if not is_service(name.partition(":")[0]):
        return None
    from filestore.embed._openai import EMBEDDING
    from filestore.remote.address import DEFAULT_ENDPOINT, parse_address

    return str(parse_address(options.endpoint or DEFAULT_ENDPOINT, EMBEDDING))


def open_embedder(choice: Choice) -> Embedder:
    """Open an embedder as the settings name it.

    Raises:
        UnknownEmbedder: There is no such kind.
        ModelMissing: Its model, or the library that runs it, is not here.
        ModelUnusable: What is there is no model.
        EndpointUntrusted: It would reach a service that this store may not reach.
    """
    if choice.kind not in _REACHES_OUT:
        raise UnknownEmbedder(choice.kind, known_embedders())
    opener = import_module(f"{__name__}._{choice.kind.replace('-', '_')}").open_choice
    return cast(Callable[[Choice], Embedder], opener)(choice)

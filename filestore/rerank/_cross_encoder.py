"""A cross-encoder run by sentence-transformers. One rule: nothing in its folder is run as code.

A model's own activation function is left out: raw scores order texts alike, and naming a function
is a way to have any code imported.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from filestore.core.safe_text import brief, encodable
from filestore.embed import Choice, ModelUnusable
from filestore.embed.models import (
    LOAD_ERRORS,
    installed_model,
    json_object,
    quiet_libraries,
    stated_modules,
)
from filestore.rerank import Reranker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import CrossEncoder

DEFAULT_MODEL: Final = "cross-encoder/ms-marco-MiniLM-L6-v2"
_BATCH: Final = 8
_WEIGHTS: Final = ("model.safetensors", "model.safetensors.index.json")
_LIBRARY: Final = "sentence_transformers"


class CrossEncoderReranker(Reranker):
    """Reads question and text together; safe between threads, which take turns.

    A text that is longer than the model takes is judged by its beginning.
    """

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self._folder = folder
        self._lock = threading.Lock()
        self._model: CrossEncoder | None = None

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """How well each text answers a question: ``(n,) float32``, the model's raw scores."""
        import numpy as np

        if not texts:
            return np.empty(0, dtype=np.float32)
        pairs: list[Any] = [(encodable(query), encodable(text)) for text in texts]
        with self._lock:
            self._model = self._model or _load(self._folder)
            found = self._model.predict(pairs, batch_size=_BATCH, show_progress_bar=False)
        scores: NDArray[np.float32] = np.asarray(found, dtype=np.float32)
        if scores.shape != (len(texts),) or not np.isfinite(scores).all():
            raise _unusable(self._folder, "does not give one finite number for each text")
        return scores


def open_choice(choice: Choice) -> Reranker:
    """Open a cross-encoder by what its folder says; nothing is loaded yet.

    Raises:
        ModelMissing: The model or the library is not here.
        ModelUnusable: The folder holds no such model.
    """
    named = replace(choice, name=f"{choice.kind}:{choice.model or DEFAULT_MODEL}")
    folder = installed_model(named, feature="cross-encoder", otherwise="search without reranking")
    config = json_object(folder, "config.json", needed=True, refusal=_unusable)
    if not any(os.path.isfile(os.path.join(folder, name)) for name in _WEIGHTS):
        raise _unusable(folder, f"has no weights: expected {_WEIGHTS[0]}")
    names = config.get("id2label")
    labels = config.get("num_labels", len(names) if names and isinstance(names, dict) else 2)
    if labels != 1:
        raise _unusable(folder, f"gives {brief(labels)} numbers for a text, expected 1")
    if "auto_map" in config:
        raise _unusable(folder, "needs code of its own, which is not run")
    for one in stated_modules(folder, refusal=_unusable) or ():
        if not one.type.startswith(f"{_LIBRARY}."):
            raise _unusable(folder, f"needs a module that is not supported: {brief(one.type)}")
    return CrossEncoderReranker(choice.name, folder)


def _load(folder: str) -> CrossEncoder:
    from safetensors import SafetensorError
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    try:
        with quiet_libraries():
            model: CrossEncoder = CrossEncoder(
                folder,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
                activation_fn=Identity(),
            )
    except (SafetensorError, *LOAD_ERRORS) as error:
        raise _unusable(folder, "cannot be loaded", str(error)) from error
    # Some versions keep the precision that the weights were stored in.
    model.float().eval()
    return model


def _unusable(folder: str, what: str, detail: str = "") -> ModelUnusable:
    return ModelUnusable(
        f"the model folder {folder} {what}",
        remedy="name the folder of a complete cross-encoder with one score, such as "
        f"{DEFAULT_MODEL}, or search without reranking",
        detail=detail,
    )

"""Rerankers: question and text read together, which is slower and better than comparing vectors.

So they are asked about the best few hits only. One rule: a score depends on the question and its
own text alone, so that it means the same whatever else was found. Another: nothing in a model's
folder is run as code. A model's own activation function is left out: raw scores order texts alike,
and naming a function is a way to have any code imported.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError
from filestore.core.safe_text import brief, encodable
from filestore.embed import Choice, ModelUnusable
from filestore.embed.models import (
    LOAD_ERRORS,
    installed_model,
    json_object,
    quiet_libraries,
    stated_modules,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import CrossEncoder


_KIND: Final = "cross-encoder"
DEFAULT_MODEL: Final = "cross-encoder/ms-marco-MiniLM-L6-v2"
_BATCH: Final = 8
_WEIGHTS: Final = ("model.safetensors", "model.safetensors.index.json")
_LIBRARY: Final = "sentence_transformers"


class UnknownReranker(FilestoreError, ValueError):
    """A reranker is asked for that this installation does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"unknown reranker {name!r}: name {_KIND}, with a model of your own {_KIND}:FOLDER"
        )


class Reranker(ABC):
    """Says how well texts answer a question.

    Opening one is cheap; the model is loaded by the first call that needs it.
    """

    name: str
    """The name it was opened with, for example ``cross-encoder:some/model``."""

    @abstractmethod
    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """How well each text answers a question: ``(n,) float32``, finite, higher is better.

        Scores of one model may be compared with each other; they have no fixed range.

        Raises:
            ModelUnusable: The model cannot be loaded, or gives no such scores.
        """


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


def open_reranker(name: str, *, machine: Machine, root: str) -> Reranker:
    """Open a cross-encoder by what its folder says; nothing is loaded yet.

    Args:
        name: The kind, which means its default model, or ``cross-encoder:FOLDER-OR-HUB-NAME``.
        machine: Where this user's models lie.
        root: The store's, absolute: relative folders of models start there.

    Raises:
        UnknownReranker: There is no such kind.
        ModelMissing: Its model, or the library that runs it, is not here.
        ModelUnusable: What is there is no such model.
    """
    choice = Choice(name=name, machine=machine, root=root)
    if choice.kind != _KIND:
        raise UnknownReranker(choice.kind)
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

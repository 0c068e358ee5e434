"""The family of embedders. One rule: an implementation is imported only when it is opened.

A new one is a module beside these and one entry in `_OPENERS`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from filestore.embed.base import (
    Choice,
    Embedder,
    EndpointError,
    EndpointUntrusted,
    ModelMissing,
    ModelUnusable,
    UnknownEmbedder,
)

__all__ = [
    "Choice",
    "Embedder",
    "EndpointError",
    "EndpointUntrusted",
    "ModelMissing",
    "ModelUnusable",
    "UnknownEmbedder",
    "known_embedders",
    "open_embedder",
]

_OPENERS: Final = {
    "builtin": "_builtin",
    "onnx": "_onnx",
    "openai": "_openai",
    "sentence-transformers": "_sentence_transformers",
}
"""Kind to the module whose ``open_choice`` opens it."""


def known_embedders() -> tuple[str, ...]:
    """The kinds that `open_embedder` understands, sorted."""
    return tuple(sorted(_OPENERS))


def open_embedder(choice: Choice) -> Embedder:
    """Open an embedder as the settings name it.

    Raises:
        UnknownEmbedder: There is no such kind.
        ModelMissing: Its model, or the library that runs it, is not here.
        ModelUnusable: What is there is no model.
        EndpointUntrusted: It would reach a service that this store may not reach.
    """
    module = _OPENERS.get(choice.kind)
    if module is None:
        raise UnknownEmbedder(choice.kind, known_embedders())
    opener = import_module(f"{__name__}.{module}").open_choice
    return cast(Callable[[Choice], Embedder], opener)(choice)

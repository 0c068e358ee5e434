"""The family of rerankers. One rule: an implementation is imported only when it is opened.

A new one is a module beside these and one entry in `_OPENERS`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from filestore.config.user_config import Machine
from filestore.embed import Choice
from filestore.rerank.base import Reranker, UnknownReranker

__all__ = ["Reranker", "UnknownReranker", "known_rerankers", "open_reranker"]

_OPENERS: Final = {"cross-encoder": "_cross_encoder"}
"""Kind to the module whose ``open_choice`` opens it."""


def known_rerankers() -> tuple[str, ...]:
    """The kinds that `open_reranker` understands, sorted."""
    return tuple(sorted(_OPENERS))


def open_reranker(name: str, *, machine: Machine, root: str) -> Reranker:
    """Open a reranker by kind, or kind and model: ``cross-encoder:FOLDER-OR-HUB-NAME``.

    Args:
        name: What to open; a kind alone means its default model.
        machine: What this user's machine knows: where models lie.
        root: The store's, absolute: a model may lie beside it.

    Raises:
        UnknownReranker: There is no such kind.
        ModelMissing: Its model, or the library that runs it, is not here.
        ModelUnusable: What is there is no such model.
    """
    choice = Choice(name=name, machine=machine, root=root)
    module = _OPENERS.get(choice.kind)
    if module is None:
        raise UnknownReranker(choice.kind, known_rerankers())
    opener = import_module(f"{__name__}.{module}").open_choice
    return cast(Callable[[Choice], Reranker], opener)(choice)

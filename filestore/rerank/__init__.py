"""The family of rerankers. One rule: an implementation is imported only when it is opened.

A new one is a module beside these and one entry in `_OPENERS`. It
reads question and text together, which is slower and better than comparing vectors, so it is asked
about the best few hits only. Another rule: a score depends on the question and its own text alone,
so that it means the same whatever else was found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError
from filestore.embed import Choice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_OPENERS: Final = {"cross-encoder": "_cross_encoder"}
"""Kind to the module whose ``open_choice`` opens it."""


class UnknownReranker(FilestoreError, ValueError):
    """A reranker is asked for that this installation does not have."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        choices = ", ".join(known)
        super().__init__(
            f"unknown reranker {name!r}; known here: {choices}",
            remedy=f"name one of: {choices}; with a model of your own as `cross-encoder:FOLDER`",
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

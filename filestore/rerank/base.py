"""The contract every reranker keeps: a question and some texts in, one score a text out.

A reranker reads question and text together, which is slower and better than comparing vectors, so
it is asked about the best few hits only. One rule: a score depends on the question and its own text
alone, so that it means the same whatever else was found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from filestore.core.errors import FilestoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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

    @property
    @abstractmethod
    def name(self) -> str:
        """The name it was opened with, for example ``cross-encoder:some/model``."""

    @abstractmethod
    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """How well each text answers a question: ``(n,) float32``, finite, higher is better.

        Scores of one model may be compared with each other; they have no fixed range.

        Raises:
            ModelUnusable: The model cannot be loaded, or gives no such scores.
        """

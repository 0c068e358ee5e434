"""How the documents of one store are cut: its budget, and what counts the tokens of its model."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from filestore import chunking

if TYPE_CHECKING:
    from filestore.embed.base import Embedder
    from filestore.extract.base import Document


IN_PLACE: Final = "sections/3"
"""How documents in place are read and cut: what is kept of them is made anew where either changed,
which costs no embedding of a text that is known."""


class Chunker(Struct, frozen=True, kw_only=True):
    """Cuts documents for one model."""

    budget: int
    """The most tokens of a chunk and its heading path."""
    count_tokens: Callable[[str], int]
    label: str
    """Says how a text is cut: another label means other chunks."""

    @classmethod
    def of(cls, budget: int, embedder: "Embedder | None", *, way: str = chunking.CHUNKER) -> Self:
        """The chunker of a store.

        Args:
            budget: Of its settings.
            embedder: Counts tokens; None leaves an estimate.
            way: Name and version of how it cuts, as its label has it.
        """
        most = embedder.max_tokens if embedder is not None else None
        counter = embedder.tokenizer if embedder is not None else "estimate"
        return cls(
            budget=chunking.room(budget, most),
            count_tokens=embedder.count_tokens if embedder is not None else _estimate,
            label=chunking.label(budget, most=most, counter=counter, way=way),
        )

    def pieces(self, document: "Document") -> list[chunking.Piece]:
        """The pieces of a document's text, in order; see `chunking.split`."""
        return chunking.split(
            document.text,
            syntax=document.syntax,
            budget=self.budget,
            count_tokens=self.count_tokens,
            title=document.title,
            outline=document.outline,
        )


def _estimate(text: str) -> int:
    """For stores whose model is not here: few models have a token to fewer characters."""
    return (len(text) + 2) // 3

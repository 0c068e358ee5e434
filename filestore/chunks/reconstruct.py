"""The text of a resource from its chunks, recorded overlaps taken off where they hold. Pure."""

from collections.abc import Sequence

from msgspec import Struct

from filestore import chunking
from filestore.chunks import chunk_file
from filestore.core.paths import StorePath
from filestore.core.schema import JsonObject


class Reconstruction(JsonObject, Struct, frozen=True, kw_only=True):
    """A text put together again."""

    KEYS = "chunks bytes path warnings text"
    SPARSE = "text"

    text: str
    """The text; not with `-o`."""
    chunks: int
    """How many were joined."""
    warnings: tuple[str, ...]
    """What may be missing or doubled."""
    path: str | None = None
    """The file written with `-o`, else None."""

    @property
    def data(self) -> bytes:
        """The text as it is written to a file."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def bytes(self) -> int:
        """Of the text in UTF-8."""
        return len(self.data)


def without_overlap(before: str, body: str, overlap: object) -> str:
    """A body without its first characters, if so many repeat the end of the chunk before."""
    if type(overlap) is int and 0 < overlap <= len(before) and before.endswith(body[:overlap]):
        return body[overlap:]
    return body


def reconstruct(chunks: Sequence[tuple[StorePath, chunk_file.Chunk]]) -> Reconstruction:
    """Join chunks into the text they were cut from.

    Args:
        chunks: Path and chunk, summaries left out, in any order.
    """
    ordered = sorted(chunks, key=lambda pair: chunk_file.sort_key(pair[1].order, pair[0]))
    texts: list[str] = []
    warnings: list[str] = []
    before = ""
    for path, chunk in ordered:
        body = without_overlap(before, chunk.body, chunk.overlap)
        if chunk.overlap and body == chunk.body:
            warnings.append(
                f"{path}: the first {chunk.overlap} characters do not repeat the end of the"
                " chunk before"
            )
        if chunk_file.hand_edited(chunk):
            warnings.append(f"{path}: edited by hand")
        texts.append(body)
        before = chunk.body
    return Reconstruction(text=chunking.join(texts), chunks=len(texts), warnings=tuple(warnings))

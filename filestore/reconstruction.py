"""The text of a resource from its chunks, recorded overlaps taken off where they hold. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from filestore import chunkfile, chunking


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """A text put together again."""

    text: str
    chunks: int
    warnings: tuple[str, ...]


def reconstruct(chunks: Sequence[tuple[str, chunkfile.Chunk]]) -> Reconstruction:
    """Join chunks into the text they were cut from.

    Args:
        chunks: Path and chunk, summaries left out, in any order.
    """
    ordered = sorted(chunks, key=lambda pair: chunkfile.sort_key(pair[1].order, pair[0]))
    texts: list[str] = []
    warnings: list[str] = []
    before = ""
    for path, chunk in ordered:
        body = chunk.body
        if chunk.overlap:
            if chunk.overlap <= len(before) and before.endswith(body[: chunk.overlap]):
                body = body[chunk.overlap :]
            else:
                warnings.append(f"{path}: its overlap of {chunk.overlap} characters does not hold")
        if chunkfile.hand_edited(chunk):
            warnings.append(f"{path}: edited by hand")
        texts.append(body)
        before = chunk.body
    return Reconstruction(text=chunking.join(texts), chunks=len(texts), warnings=tuple(warnings))

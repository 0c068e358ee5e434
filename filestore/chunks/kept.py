"""What the catalog keeps of a file: the bytes of a chunk file, or what was read from a document."""

import contextlib

from filestore.chunks import chunk_file, document, questions_file
from filestore.chunks.chunk_file import Chunk
from filestore.chunks.interpretation import interpret_chunk
from filestore.chunks.observation import DOCUMENT, Observation
from filestore.core.hashing import content_hash, embedding_key


def read(data: bytes) -> Chunk:
    """What kept bytes mean.

    Raises:
        ValueError: They are damaged.
    """
    if document.is_document(data):
        return document.as_chunk(document.decode(data))
    return questions_file.read(data)


def interpret(seen: Observation) -> None:
    """Fill in what kept bytes mean; of what is damaged nothing is known."""
    if not document.is_document(seen.data):
        interpret_chunk(seen)
        return
    with contextlib.suppress(document.DocumentDamagedError):
        fill(seen, seen.data)


def fill(seen: Observation, data: bytes) -> None:
    """Fill in what a document says.

    Args:
        seen: Its file.
        data: The document as it is kept, which takes the place of the file's bytes.

    Raises:
        DocumentDamagedError: It is not what was once written.
    """
    seen.data, seen.pending = data, False
    seen.chunk = document.as_chunk(document.decode(data))
    seen.texts = chunk_file.texts(seen.chunk)
    seen.keys = tuple(embedding_key(text) for text in seen.texts)


def part_name(kind: str, number: int) -> str:
    """What a part of a file is called in words.

    Args:
        kind: That of the file's row.
        number: Of the part, from 0.
    """
    if kind == DOCUMENT:
        return f"section {number + 1}"
    return f"question {number}" if number else "its text"


def file_hash(data: bytes) -> bytes:
    """The xxh3_128 of the file that they were kept of; empty where they are damaged."""
    if not document.is_document(data):
        return content_hash(data)
    try:
        return document.file_hash_of(data)
    except document.DocumentDamagedError:
        return b""

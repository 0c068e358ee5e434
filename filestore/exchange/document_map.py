"""What `.ragmd` and FAISS + JSON have in common: vectors, a list of chunks, a map of documents.

Values and what must hold of them; knows no file. It may all come from a stranger; one rule: the
list, the map and the vectors are counted against each other before anything is made of them.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson
from msgspec import Struct

from filestore.core.limits import why_bomb
from filestore.core.safe_text import brief, shown_path
from filestore.core.schema import UnfitError, converted, json_of
from filestore.exchange import faiss_bytes
from filestore.exchange.base import TargetRefused, refuse
from filestore.fs import disk

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

MOST_BYTES: Final = 1024**3
"""No larger file of these forms is read, nor written: they are held in memory as a whole."""
MOST_JSON_BYTES: Final = 256 * 1024**2
"""The most bytes of JSON among them, which takes several times its size in memory."""
_LONGEST_ID: Final = 4_096
OURS: Final = "filestore"
"""The key of what only a store knows."""
UNKNOWN_MODEL: Final = "unknown"
"""The name of a model that no file tells."""
UNKNOWN_TIME: Final = "1970-01-01T00:00:00Z"

T = TypeVar("T")
Place = tuple[str, str]
"""The id of a document, and the key of a chunk in it."""


class DocumentMap(Struct, frozen=True, kw_only=True):
    """An index with what its vectors are of."""

    model: str
    dimension: int
    flat: str
    """The flat class of FAISS that compares as the index does."""
    kind: str
    """The class that it was read as; `flat` where it was made here."""
    created_at: str
    updated_at: str
    places: Sequence[Place]
    """What vector i is of, for each of them."""
    documents: Mapping[str, Mapping[str, Any]]
    """By id, as the forms have them."""
    rows: NDArray[float32]
    """(n, dimension)."""

    def chunk_list(self) -> list[dict[str, Any]]:
        """The list of chunks, as the forms have it."""
        return [
            {"faiss_id": number, "document_id": document, "chunk_key": key}
            for number, (document, key) in enumerate(self.places)
        ]

    def texts(self) -> list[str | None]:
        """The text of each vector; None where its document has none."""
        spans = {
            (name, key): (document.get("full_text"), span["i_start"], span["i_end"])
            for name, document in self.documents.items()
            for key, span in document["chunks"].items()
        }
        found = (spans[place] for place in self.places)
        return [None if text is None else text[start:end] for text, start, end in found]


def too_large(target: str, size_bytes: int) -> TargetRefused:
    """The error for what would not be read again."""
    return TargetRefused(
        f"{shown_path(target)} is not written: {size_bytes:,} bytes are too many for"
        " one file; name fewer documents, or use jsonl",
    )


def read_bytes(path: str, *, most: int = MOST_BYTES, follow_links: bool = False) -> bytearray:
    """A file whole.

    Raises:
        FormDamaged: It is no regular file, or larger than is read.
        FileNotFoundError: There is nothing.
    """
    try:
        descriptor = disk.open_regular(path, follow_links=follow_links)
        with open(descriptor, "rb", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            if size > most:
                refuse(
                    f"it has {size:,} bytes, at most {most:,} are read of such a file",
                    "have it exported in parts, or as jsonl or parquet, which are read piece by"
                    " piece",
                )
            # Into one place: blocks that are joined later cost their memory twice.
            data = bytearray(size)
            view, at = memoryview(data), 0
            while at < size and (count := file.readinto(view[at:])):
                at += count
            if at < size or file.read(1):
                refuse("it changed while it was read", "try again when it is quiet")
            return data
    except disk.NotAFileError:
        refuse("it is not a regular file", "name a file, or put one in its place")
    except FileNotFoundError:
        raise
    except OSError as error:
        disk.pass_limits(error)
        is_link = error.errno == errno.ELOOP
        reason = "it is a symbolic link" if is_link else error.strerror or str(error)
        refuse(f"it cannot be read: {reason}", "put a file that can be read in its place")


def read_json(data: bytes | bytearray, what: str, block: tuple[int, int] | None = None) -> Any:
    """The value of some JSON, if it is of a size that its text can need.

    Args:
        data: The bytes that hold it.
        what: What it is, for messages.
        block: Where in them it begins and ends; None for all of them.

    Raises:
        FormDamaged: It is none, or made to fill the memory.
    """
    first, last = block or (0, len(data))
    if last - first > MOST_JSON_BYTES:
        refuse(
            f"the {what} has {last - first:,} bytes, at most {MOST_JSON_BYTES:,} are read",
            "have it exported in parts, or as jsonl or parquet, which are read piece by piece",
        )
    raw = data[first:last]
    if why := why_bomb(raw):
        refuse(f"the {what} has {why}")
    try:
        return json_of(raw)
    except UnfitError as error:
        refuse(f"in the {what} {error.message}")
    except orjson.JSONDecodeError as error:
        refuse(f"the {what} is no JSON: {error.msg}, line {error.lineno}, column {error.colno}")


def check_map(chunks: Any, documents: Any, count: int) -> list[Place]:
    """Hold the list of chunks and the map of documents against each other.

    Args:
        chunks: The list, as it was read.
        documents: The map, as it was read.
        count: How many vectors there are.

    Returns:
        What each vector is of.

    Raises:
        FormDamaged: They disagree, or are not as the forms have them.
    """
    places = _places(chunks, count)
    mapped = 0
    for name, document in fitting(documents, dict[str, Any], "the map of documents").items():
        if not name or len(name) > _LONGEST_ID:
            refuse(
                f"the id of a document has {len(name):,} characters, expected 1 to {_LONGEST_ID:,}"
            )
        own = fitting(document, _Document, f"document {brief(name)}").id
        if own not in (None, name):
            refuse(f"document {brief(name)} says of itself that it is {brief(own)}")
        text = document.get("full_text")
        most = None if text is None else len(text)
        for key, span in document["chunks"].items():
            _check_span(places, (name, key), span, most)
        mapped += len(document["chunks"])
    if mapped != count:
        refuse(f"the documents have {mapped:,} chunks, there are {count:,} vectors")
    return places


class _MapEntry(Struct):
    faiss_id: int
    document_id: str
    chunk_key: str


class _Document(Struct):
    chunks: dict[str, Any]
    id: str | None = None
    source: str | None = None
    full_text: str | None = None
    content: dict[str, Any] | None = None


class _Span(Struct):
    i_start: int
    i_end: int
    faiss_id: int


def fitting(value: Any, kind: type[T], place: str) -> T:
    """A value of a type.

    Raises:
        FormDamaged: It does not fit.
    """
    try:
        return converted(value, kind, place)
    except UnfitError as error:
        refuse(error.message)


def _places(chunks: Any, count: int) -> list[Place]:
    entries = fitting(chunks, list[_MapEntry], "the list of chunks")
    if len(entries) != count:
        refuse(f"the list of chunks has {len(entries):,} entries, there are {count:,} vectors")
    places: list[Place | None] = [None] * count
    for at, entry in enumerate(entries):
        number = entry.faiss_id
        if not 0 <= number < count:
            refuse(
                f"entry {at:,} of the list of chunks has the faiss_id {brief(number)};"
                f" expected 0 to {count - 1:,}"
            )
        if places[number] is not None:
            refuse(f"the faiss_id {number:,} is twice in the list of chunks")
        places[number] = (entry.document_id, entry.chunk_key)
    # As many different ids as there are vectors: none is left out.
    return [place for place in places if place is not None]


def _check_span(places: Sequence[Place], place: Place, value: Any, most: int | None) -> None:
    """Hold one chunk of a document against the list, and its span against the text."""
    span = fitting(value, _Span, f"chunk {_shown(place)}")
    number, start, end = span.faiss_id, span.i_start, span.i_end
    if not 0 <= number < len(places) or places[number] != place:
        listed = _shown(places[number]) if 0 <= number < len(places) else "no such vector"
        refuse(f"chunk {_shown(place)} has the faiss_id {number}, which is of {listed}")
    if not 0 <= start <= end or (most is not None and end > most):
        of = "a text that is not there" if most is None else f"a text of {most:,} characters"
        refuse(f"chunk {_shown(place)} is {start} to {end} of {of}")


def _shown(place: Place) -> str:
    document, key = place
    return f"{brief(key)} of document {brief(document)}"


def check_count(stated: Any, found: int, key: str, what: str) -> None:
    """Hold a count that a file states against what is there.

    Raises:
        FormDamaged: They differ.
    """
    if type(stated) is not int or stated != found:
        refuse(f"{key} is {brief(stated)}, there are {found:,} {what}")


def check_time(value: Any, key: str) -> str:
    """A time, as it is written.

    Raises:
        FormDamaged: It is none.
    """
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        refuse(f"{key} must be a time such as 2026-01-31T12:00:00Z, found {brief(value)}")
    return str(value)


def utc(seconds: float) -> str:
    """A time as the forms write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def check_index(stated: Any, found: faiss_bytes.Vectors) -> None:
    """Hold the class of the index that a file states against the one that is there.

    Raises:
        FormDamaged: They differ.
    """
    known = {*found.kinds, re.sub("IndexFlat(IP|L2)$", "IndexFlat", found.kinds[-1])}
    if type(stated) is not str or stated not in known:
        refuse(f"index_type is {brief(stated)}, the vectors are in an {found.kinds[0]}")

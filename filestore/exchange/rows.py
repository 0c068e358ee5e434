"""A collection as rows, and the form `jsonl`: a row for the record of a resource and each chunk.

Parquet has the same rows; FORMAT.md has the keys. Rows may be a stranger's, and a file is read a
line at a time. One rule: a line that cannot be read, or a value of another type than its column
says, is named and left out, the rest is taken.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import orjson
from msgspec import Struct

from filestore.core.limits import LINE_BYTES, Size, why_bomb
from filestore.core.safe_text import brief
from filestore.core.schema import UnfitError, json_of
from filestore.exchange.base import (
    Chunk,
    Collection,
    Form,
    FormDamaged,
    LeftOut,
    Resource,
    check_version,
    opened,
)
from filestore.fs.staged import check_target, staged_file

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vector = NDArray[float32]

PART_CHUNKS: Final = 2_000
PART_BYTES: Final = 16 * 1024 * 1024
"""No more of one resource is held at once."""
LARGEST_DIMENSION: Final = 65_536
_TEXT: Final = ("text", "page_content", "content")
_SOURCE: Final = ("document", "source")
_VECTOR: Final = ("vector", "embedding")
"""What a stranger may call a column, and the first we, too."""
COLUMNS: Final = (
    *("resource", "id", "metadata", "record", "question_vectors"),
    *(*_TEXT, *_SOURCE, *_VECTOR),
)
"""Every column that means something."""

FORMAT: Final = "filestore-jsonl/"
VERSION: Final = 1
_BUFFER_BYTES: Final = 1024 * 1024

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """The value of a line."""

    where: str
    """Which line, for messages."""
    number: int
    offset: int
    """Of the line in its file, in bytes."""
    value: Any


def lines_of(file: IO[bytes], left_out: LeftOut, name: str = "") -> Iterator[Line]:
    """Every line that is JSON; blank ones are passed over.

    Args:
        file: From its beginning.
        left_out: Takes what cannot be read.
        name: Of the file, for messages; "" where these name it.
    """
    number = offset = 0
    while line := file.readline(LINE_BYTES):
        number, start = number + 1, offset
        where = f"{name}, line {number:,}" if name else f"line {number:,}"
        offset += len(line)
        if len(line) == LINE_BYTES and not line.endswith(b"\n"):
            left_out.add(f"{where}: longer than {LINE_BYTES:,} bytes")
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_BYTES)
                offset += len(line)
            continue
        if line.removeprefix(_BYTE_ORDER_MARK).strip():
            value, problem = parsed_line(line)
            if problem:
                left_out.add(f"{where}: {problem}")
            else:
                yield Line(where, number, start, value)


def parsed_line(line: bytes) -> tuple[Any, str]:
    """The value of a line, and what is wrong with it; "" for nothing."""
    if why := why_bomb(line):
        return None, why
    try:
        return json_of(line.removeprefix(_BYTE_ORDER_MARK)), ""
    except UnfitError as error:
        return None, error.message
    except orjson.JSONDecodeError as error:
        return None, f"no JSON: {error.msg}, column {error.colno}"


def rows_of(collection: Collection) -> Iterator[dict[str, Any]]:
    """The rows of a collection; vectors are arrays, or None where there is none."""
    for resource in collection:
        if resource.record is not None:
            yield {"resource": resource.name, "record": resource.record}
        for chunk in resource.chunks:
            row: dict[str, Any] = {
                "resource": resource.name,
                "id": chunk.path,
                "text": chunk.text,
                "metadata": chunk.frontmatter,
            }
            if 0 in chunk.vectors:
                row["vector"] = chunk.vectors[0]
            questions = max(chunk.vectors, default=0)
            if questions:
                row["question_vectors"] = [chunk.vectors.get(n) for n in range(1, questions + 1)]
            yield row


class RowReader(Struct, kw_only=True):
    """Rows that were read, into resources."""

    name: str
    """Of the resource of rows that name none."""
    ours: bool
    """Whether a store wrote them, so that an id is the path of a chunk file."""
    dimension: int
    """Of the vectors; 0 for that of the first one."""
    left_out: LeftOut

    def resources(self, rows: Iterable[tuple[str, Any]]) -> Iterator[Resource]:
        """The resources, in parts.

        Args:
            rows: Each with its place, as "line 3".
        """
        name, record, chunks, held = "", None, list[Chunk](), 0
        for where, row in rows:
            found = self._row(where, row)
            if found is None:
                continue
            resource, its_record, chunk = found
            is_full = len(chunks) >= PART_CHUNKS or held >= PART_BYTES
            if (chunks or record is not None) and (
                resource != name or is_full or its_record is not None
            ):
                yield Resource(name=name, chunks=tuple(chunks), record=record)
                record, chunks, held = None, [], 0
            name = resource
            record = its_record if its_record is not None else record
            if chunk is not None:
                chunks.append(chunk)
                held += chunk.size_bytes
        if chunks or record is not None:
            yield Resource(name=name, chunks=tuple(chunks), record=record)

    def _row(
        self, where: str, row: Any
    ) -> tuple[str, Mapping[str, Any] | None, Chunk | None] | None:
        """The resource of a row, with its record or its chunk; None where neither is in it."""
        if not isinstance(row, Mapping):
            self.left_out.add(f"{where}: expected an object, found {brief(row)}")
            return None
        record = self._typed(where, row, ("record",), Mapping, "an object")
        if record is not None:
            return self._resource(where, row, {}), record, None
        text = self._typed(where, row, _TEXT, str, "text")
        if text is None:
            if not any(row.get(key) is not None for key in ("record", *_TEXT)):
                self.left_out.add(f"{where}: it has no text")
            return None
        metadata = dict(self._typed(where, row, ("metadata",), Mapping, "an object") or {})
        if self.ours:
            path = self._typed(where, row, ("id",), str, "text") or ""
        else:
            # What it has besides is not ours to judge.
            others = {key: value for key, value in row.items() if key not in COLUMNS}
            metadata = {key: one for key, one in others.items() if one is not None} | metadata
        resource = self._resource(where, row, metadata)
        if not self.ours:
            # A stranger's is kept as metadata.
            path, found = "", row.get("id")
            if isinstance(found, str | int) and not isinstance(found, bool):
                metadata.setdefault("id", found)
            elif found is not None:
                self.left_out.add(f"{where}: 'id' must be text or a number, found {brief(found)}")
        vectors = self._vectors(where, row)
        chunk = Chunk(path=path, text=text, frontmatter=metadata, vectors=vectors)
        return resource, None, chunk

    def _typed(
        self, where: str, row: Mapping[str, Any], keys: Iterable[str], kind: type, expected: str
    ) -> Any:
        """The first of some columns that is there; None where none is, or it is of another type."""
        for key in keys:
            value = row.get(key)
            if value is None:
                continue
            if isinstance(value, kind):
                return value
            self.left_out.add(f"{where}: {key!r} must be {expected}, found {brief(value)}")
            return None
        return None

    def _resource(self, where: str, row: Mapping[str, Any], metadata: dict[str, Any]) -> str:
        """The resource of a row: its own word, else the document that it comes from."""
        named = self._typed(where, row, ("resource",), str, "text")
        # In what a store wrote, chunks of no resource have an empty one.
        if named or (named is not None and self.ours):
            return str(named)
        source = self._typed(where, row, _SOURCE, str, "text")
        if source is None:
            found = metadata.get("source")
            source = found if isinstance(found, str) else None
        elif not self.ours:
            metadata.setdefault("source", source)
        return source or self.name

    def _vectors(self, where: str, row: Mapping[str, Any]) -> dict[int, Vector]:
        found: dict[int, Vector] = {}
        questions = row.get("question_vectors")
        if questions is not None and not isinstance(questions, list):
            self.left_out.add(f"{where}: 'question_vectors' must be a list")
            questions = None
        first = next((row[key] for key in _VECTOR if row.get(key) is not None), None)
        for part, value in enumerate([first, *(questions or ())]):
            if value is None:
                continue
            vector, problem = decoded(value, self.dimension)
            if vector is None:
                self.left_out.add(f"{where}: its vector is left out: {problem}")
                continue
            self.dimension = self.dimension or len(vector)
            found[part] = vector
        return found


def encoded(vector: Vector) -> str:
    """A vector as text: little-endian float32 in Base64."""
    return binascii.b2a_base64(vector.astype("<f4").tobytes(), newline=False).decode("ascii")


def decoded(value: Any, dimension: int) -> tuple[Vector | None, str]:
    """The vector of a value, or why it is none.

    Args:
        value: Base64 of little-endian float32, a list of numbers, or an array.
        dimension: How many numbers it has to have; 0 for any.
    """
    import numpy

    if isinstance(value, str):
        try:
            raw = binascii.a2b_base64(value, strict_mode=True)
        except ValueError as error:
            return None, f"no Base64: {error}"
        if len(raw) % 4:
            return None, f"{len(raw):,} bytes, which are not float32 numbers"
        vector = numpy.frombuffer(raw, "<f4").astype(numpy.float32)
    else:
        if isinstance(value, list) and not all(type(one) in (int, float) for one in value):
            return None, "it holds values that are not numbers"
        try:
            with numpy.errstate(over="ignore"):
                vector = numpy.asarray(value, dtype=numpy.float32)
        except (ValueError, TypeError, OverflowError) as error:
            return None, str(error)
    if vector.ndim != 1 or not 0 < len(vector) <= LARGEST_DIMENSION:
        return None, f"expected a list of 1 to {LARGEST_DIMENSION:,} numbers"
    if dimension and len(vector) != dimension:
        return None, f"it has {len(vector):,} numbers, the others have {dimension:,}"
    if not numpy.isfinite(vector).all():
        return None, "a number of it is not finite"
    return vector, ""


class JsonLines(Form):
    """The form `jsonl`."""

    name: ClassVar[str] = "jsonl"
    takes_parts: ClassVar[bool] = True

    def write(self, target: str, collection: Collection) -> tuple[str, ...]:
        """See `Form.write`."""
        check_target(
            target,
            lambda head: FORMAT.encode() in head[:100],
            found="it is not a file that 'export jsonl' wrote",
        )
        with (
            staged_file(target) as descriptor,
            open(descriptor, "wb", buffering=_BUFFER_BYTES, closefd=False) as file,
        ):
            head = {"format": f"{FORMAT}{VERSION}"}
            about = {"model": collection.model, "dimension": collection.dimension}
            file.write(_line(head | about if collection.model else head))
            for row in rows_of(collection):
                if "vector" in row:
                    row["vector"] = encoded(row["vector"])
                if "question_vectors" in row:
                    row["question_vectors"] = [
                        None if one is None else encoded(one) for one in row["question_vectors"]
                    ]
                file.write(_line(row))
        return (target,)

    def read(self, source: str) -> Collection:
        """See `Form.read`."""
        with opened(source) as file:
            head, _ = parsed_line(file.readline(LINE_BYTES))
        stamp = head.get("format") if isinstance(head, dict) else None
        if isinstance(stamp, str) and stamp.startswith(FORMAT):
            check_version(source, stamp, f"{FORMAT}{VERSION}")
        else:
            head = {}  # a stranger's
        left_out = LeftOut()
        model, dimension = head.get("model"), head.get("dimension")
        if not (isinstance(model, str) and type(dimension) is int and model):
            model, dimension = "", 0
        if not 0 <= dimension <= LARGEST_DIMENSION:
            raise FormDamaged(f"{source}: a dimension of {dimension:,}")
        reader = RowReader(
            name=os.path.splitext(os.path.basename(source))[0],
            ours=bool(head),
            dimension=dimension,
            left_out=left_out,
        )

        def resources() -> Iterator[Resource]:
            with opened(source) as file:
                rows = lines_of(file, left_out)
                if head:
                    next(rows)
                yield from reader.resources((row.where, row.value) for row in rows)

        return Collection(
            resources=resources(),
            model=model,
            dimension=dimension,
            left_out=left_out,
            # No text is longer than the JSON that it is written in.
            stated=Size(bytes=os.path.getsize(source)),
        )


def _line(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)

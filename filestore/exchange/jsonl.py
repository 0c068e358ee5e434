"""JSON lines: a line says what the file is, then one for each record and each chunk.

FORMAT.md has the keys. One rule: the file is read a line at a time and never held as a whole, and
a line that cannot be used is named, with its number, and costs that line alone.
"""

import os
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import orjson

from filestore.core.limits import LINE_BYTES, Size
from filestore.exchange.base import (
    Collection,
    Form,
    FormDamaged,
    LeftOut,
    Resource,
    check_version,
    opened,
)
from filestore.exchange.rows import (
    LARGEST_DIMENSION,
    RowReader,
    encoded,
    lines_of,
    parsed_line,
    rows_of,
)
from filestore.fs.staged_file import check_target, staged

FORMAT: Final = "filestore-jsonl/"
VERSION: Final = 1
_BUFFER_BYTES: Final = 1024 * 1024


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
            staged(target) as descriptor,
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
        head = _head(source)
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
        return Collection(
            resources=_resources(source, reader, skip=bool(head)),
            model=model,
            dimension=dimension,
            left_out=left_out,
            # No text is longer than the JSON that it is written in.
            stated=Size(bytes=os.path.getsize(source)),
        )


def _line(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def _head(source: str) -> dict[str, Any]:
    """The first line of a file that a store wrote; empty for a stranger's."""
    with opened(source) as file:
        head, _ = parsed_line(file.readline(LINE_BYTES))
    stamp = head.get("format") if isinstance(head, dict) else None
    if not (isinstance(stamp, str) and stamp.startswith(FORMAT)):
        return {}
    check_version(source, stamp, f"{FORMAT}{VERSION}")
    assert isinstance(head, dict)
    return head


def _resources(source: str, reader: RowReader, *, skip: bool) -> Iterator[Resource]:
    with opened(source) as file:
        rows = lines_of(file, reader.left_out)
        if skip:
            next(rows)
        yield from reader.resources((row.where, row.value) for row in rows)

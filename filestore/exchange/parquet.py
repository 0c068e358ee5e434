"""Parquet: a row for each record and each chunk, columns as `rows` names them.

FORMAT.md has the columns. One rule: what a stranger wrote is read in a child process, whose memory
is limited; what comes back is rows, and is judged here like those of any other form.
"""

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

import orjson

from filestore.core.errors import FilestoreError
from filestore.core.limits import Size
from filestore.core.packages import install_line, missing_packages
from filestore.core.safe_text import shown_path
from filestore.exchange.base import (
    Collection,
    Form,
    FormDamaged,
    LeftOut,
    Resource,
    check_version,
    opened,
)
from filestore.exchange.rows import LARGEST_DIMENSION, RowReader, rows_of
from filestore.fs.programs import Child
from filestore.fs.staged import check_target, staged_file

if TYPE_CHECKING:
    import pyarrow

FORMAT: Final = "filestore-parquet/"
VERSION: Final = 1
_MAGIC: Final = b"PAR1"
_ROWS_AT_ONCE: Final = 2_000
_ROW_GROUP_ROWS: Final = 20_000
_MEMORY_BYTES: Final = 3 * 1024**3
"""Of the address space of the reader, libraries included."""
_READER: Final = "filestore.exchange.parquet_rows"


class ParquetMissing(FilestoreError, ImportError):
    """What reads and writes Parquet is not installed."""


class ParquetForm(Form):
    """The form `parquet`."""

    name: ClassVar[str] = "parquet"
    takes_parts: ClassVar[bool] = True

    def write(self, target: str, collection: Collection) -> tuple[str, ...]:
        """See `Form.write`."""
        _require_package()
        check_target(target, lambda head: head.startswith(_MAGIC), found="it is no Parquet file")
        import pyarrow.parquet

        schema = _schema(collection)
        rows = rows_of(collection)
        with (
            staged_file(target) as descriptor,
            open(descriptor, "wb", closefd=False) as file,
            pyarrow.parquet.ParquetWriter(
                file,
                schema,
                compression="zstd",
                use_dictionary=["resource"],
                write_statistics=["resource", "id"],
            ) as writer,
        ):
            while some := list(islice(rows, _ROWS_AT_ONCE)):
                writer.write_batch(_batch(some, schema, collection.dimension), _ROW_GROUP_ROWS)
        return (target,)

    def read(self, source: str) -> Collection:
        """See `Form.read`."""
        _require_package()
        with opened(source) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise FormDamaged(
                    f"{shown_path(source)} is no Parquet file", remedy="name a file of this form"
                )
        left_out = LeftOut()
        messages = _messages(source)
        head = next(messages)
        stamp, model, dimension = head["format"], head["model"], head["dimension"]
        if stamp:
            check_version(source, stamp, f"{FORMAT}{VERSION}")
        if not (stamp and model and 0 < dimension <= LARGEST_DIMENSION):
            model, dimension = "", 0
        reader = RowReader(
            name=os.path.splitext(os.path.basename(source))[0],
            ours=bool(stamp),
            dimension=dimension,
            left_out=left_out,
        )
        return Collection(
            resources=_resources(messages, reader),
            model=model,
            dimension=dimension,
            left_out=left_out,
            stated=Size(rows=head["rows"]),
        )


def _require_package() -> None:
    if missing_packages("parquet"):
        raise ParquetMissing("pyarrow is not installed", remedy=install_line("parquet"))


def _schema(collection: Collection) -> "pyarrow.Schema":
    import pyarrow

    text = pyarrow.string()
    columns = [(name, text) for name in ("resource", "id", "text", "metadata", "record")]
    if collection.model:
        vector = pyarrow.list_(pyarrow.float32(), collection.dimension)
        columns += [("vector", vector), ("question_vectors", pyarrow.list_(vector))]
    about = {
        "filestore": f"{FORMAT}{VERSION}",
        "filestore.model": collection.model,
        "filestore.dimension": str(collection.dimension),
    }
    return pyarrow.schema(columns, metadata=about)


def _batch(
    rows: list[dict[str, Any]], schema: "pyarrow.Schema", dimension: int
) -> "pyarrow.RecordBatch":
    import pyarrow

    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        if field.name in ("metadata", "record"):
            values = [None if one is None else orjson.dumps(one).decode() for one in values]
        if field.name == "vector":
            columns.append(_vectors(values, dimension))
        elif field.name == "question_vectors":
            columns.append(_lists_of_vectors(values, field.type, dimension))
        else:
            columns.append(pyarrow.array(values, type=field.type))
    return pyarrow.record_batch(columns, schema=schema)


def _vectors(values: list[Any], dimension: int) -> "pyarrow.Array":
    """Vectors of one length, some of which may be missing, without a Python number for each."""
    import numpy
    import pyarrow

    rows = numpy.zeros((len(values), dimension), dtype="<f4")
    missing = numpy.ones(len(values), dtype=bool)
    for place, value in enumerate(values):
        if value is not None:
            rows[place], missing[place] = value, False
    flat = pyarrow.array(rows.reshape(-1))
    kind = pyarrow.list_(pyarrow.float32(), dimension)
    return pyarrow.FixedSizeListArray.from_arrays(flat, type=kind, mask=pyarrow.array(missing))


def _lists_of_vectors(
    values: list[Any], kind: "pyarrow.DataType", dimension: int
) -> "pyarrow.Array":
    import pyarrow

    flat = [one for value in values for one in value or ()]
    places: list[int | None] = []
    done = 0
    for value in values:
        places.append(done if value is not None else None)
        done += len(value or ())
    offsets = pyarrow.array([*places, done], type=pyarrow.int32())
    return pyarrow.ListArray.from_arrays(offsets, _vectors(flat, dimension), type=kind)


def _messages(source: str) -> Iterator[Any]:
    """What the child says of a file: first what the file is, then rows, then what it left out.

    Raises:
        FormDamaged: It is no Parquet file, or reading it took more memory than it may.
    """
    child = Child(_READER, str(_MEMORY_BYTES), os.fsdecode(source))
    try:
        while True:
            message = orjson.loads(child.receive())
            if "error" in message:
                raise FormDamaged(
                    f"{shown_path(source)}: {message['error']}",
                    remedy="have it written again, or as JSON lines",
                )
            if "end" in message:
                return
            yield message
    except OSError as error:
        raise FormDamaged(
            f"{shown_path(source)}: the reader of Parquet crashed on it",
            remedy="have it written again, or as JSON lines",
            detail=f"exit status {child.kill()}",
        ) from error
    finally:
        child.close(within_s=5)


def _resources(messages: Iterator[Any], reader: RowReader) -> Iterator[Resource]:
    def rows() -> Iterator[tuple[str, Any]]:
        for message in messages:
            for sentence in message.get("left_out", ()):
                reader.left_out.add(sentence)
            for number, row in message["rows"]:
                yield f"row {number}", row

    yield from reader.resources(rows())

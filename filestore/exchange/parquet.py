"""Parquet: a row for each record and each chunk, columns as `rows` names them.

FORMAT.md has the columns. One rule: what a stranger wrote is read in a child process, batch by
batch, whose memory is limited, so that a hostile file harms that process alone; what comes back is
rows, and is judged like those of any other form. Every message is JSON: what the file is, then some
rows each, vectors as Base64; see `fs.programs.parent_line` for its limits.
"""

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

import orjson

from filestore.core.errors import FilestoreError, install_line, missing_packages
from filestore.core.limits import LINE_BYTES, Size
from filestore.core.safe_text import brief, listed, shown_path
from filestore.core.schema import json_of
from filestore.exchange.base import (
    Collection,
    Form,
    FormDamaged,
    LeftOut,
    check_version,
    opened,
)
from filestore.exchange.rows import COLUMNS, LARGEST_DIMENSION, RowReader, encoded, rows_of
from filestore.fs.programs import Child, Line, parent_line
from filestore.fs.staged import check_target, staged_file

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

FORMAT: Final = "filestore-parquet/"
VERSION: Final = 1
_MAGIC: Final = b"PAR1"
_ROWS_AT_ONCE: Final = 2_000
_ROW_GROUP_ROWS: Final = 20_000
_MEMORY_BYTES: Final = 3 * 1024**3
"""Of the address space of the reader, libraries included."""
_ROWS_READ: Final = 1_000
_MESSAGE_BYTES: Final = 8 * 1024 * 1024
_BUFFER_BYTES: Final = 1024 * 1024
_THRIFT_BYTES: Final = 64 * 1024 * 1024
_THRIFT_ITEMS: Final = 1_000_000
_VECTORS: Final = ("vector", "embedding")
_JSON: Final = ("metadata", "record")
"""Columns that may be text with JSON."""

Convert = Callable[[Any], Any]


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
        schema = pyarrow.schema(columns, metadata=about)
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
                    f"{shown_path(source)} is no Parquet file: name a file of this form"
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

        def rows() -> Iterator[tuple[str, Any]]:
            for message in messages:
                for sentence in message.get("left_out", ()):
                    left_out.add(sentence)
                for number, row in message["rows"]:
                    yield f"row {number}", row

        return Collection(
            resources=reader.resources(rows()),
            model=model,
            dimension=dimension,
            left_out=left_out,
            stated=Size(rows=head["rows"]),
        )


def _require_package() -> None:
    if missing_packages("parquet"):
        raise ParquetMissing("pyarrow is not installed", remedy=install_line("parquet"))


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
            places: list[int | None] = []
            done = 0
            for value in values:
                places.append(done if value is not None else None)
                done += len(value or ())
            offsets = pyarrow.array([*places, done], type=pyarrow.int32())
            flat = _vectors([one for value in values for one in value or ()], dimension)
            columns.append(pyarrow.ListArray.from_arrays(offsets, flat, type=field.type))
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


def _messages(source: str) -> Iterator[Any]:
    """What the child says of a file: first what the file is, then rows, then what it left out.

    Raises:
        FormDamaged: It is no Parquet file, or reading it took more memory than it may.
    """
    child = Child("filestore.exchange.parquet", str(_MEMORY_BYTES), os.fsdecode(source))
    try:
        while True:
            message = orjson.loads(child.receive())
            if "error" in message:
                raise FormDamaged(
                    f"{shown_path(source)}: {message['error']}; write it again, or as JSON lines",
                )
            if "end" in message:
                return
            yield message
    except OSError as error:
        raise FormDamaged(
            f"{shown_path(source)}: the reader of Parquet crashed on it"
            "; write it again, or as JSON lines",
            detail=f"exit status {child.kill()}",
        ) from error
    finally:
        child.close(within_s=5)


# In the child process


def serve(memory_bytes: int, source: str) -> None:
    """Send what a file holds."""
    line = parent_line(memory_bytes)
    import pyarrow

    try:
        from pyarrow.parquet import ParquetFile

        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
        with open(source, "rb") as stream:
            limits = {
                "thrift_string_size_limit": _THRIFT_BYTES,
                "thrift_container_size_limit": _THRIFT_ITEMS,
            }
            schema = ParquetFile(stream, pre_buffer=False, **limits).schema
            leaves = [schema.column(at) for at in range(len(schema))]
            # As numbers of a dictionary a text that is repeated is there once.
            texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
            stream.seek(0)
            file = ParquetFile(
                stream, buffer_size=_BUFFER_BYTES, pre_buffer=False, read_dictionary=texts, **limits
            )
            _send(line, file)
    except (MemoryError, pyarrow.ArrowMemoryError):
        _say(line, {"error": "it needs more memory than a file may take"})
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).encode("utf-8", "backslashreplace").decode()
        _say(line, {"error": f"it cannot be read: {reason:.300}"})


def _say(line: Line, message: Mapping[str, Any]) -> None:
    line.send(orjson.dumps(message))


def _send(line: Line, file: "pyarrow.parquet.ParquetFile") -> None:
    schema = file.schema_arrow
    metadata = schema.metadata or {}
    stated = {key.decode("utf-8", "replace"): value for key, value in metadata.items()}

    def about(key: str) -> str:
        return str(stated.get(key, b""), "utf-8", "replace")

    dimension = about("filestore.dimension")
    _say(
        line,
        {
            "rows": file.metadata.num_rows,
            "format": about("filestore"),
            "model": about("filestore.model"),
            "dimension": int(dimension) if dimension.isdecimal() and len(dimension) < 9 else 0,
        },
    )
    columns, left_out = _columns(schema)
    if not {"text", "page_content", "content"} & columns.keys():
        there = listed(schema.names, 20)
        why = "; ".join(left_out) or "a column 'text' is missing"
        _say(line, {"error": f"{why}; its columns are: {there:.300}"})
        return
    _say(line, {"rows": [], "left_out": left_out})
    number = 0
    for batch in file.iter_batches(batch_size=_ROWS_READ, columns=list(columns), use_threads=False):
        for rows, wrong in _row_messages(batch, columns, number):
            _say(line, {"rows": rows, "left_out": wrong})
        number += batch.num_rows
    _say(line, {"end": True})


def _columns(schema: "pyarrow.Schema") -> tuple[dict[str, Convert], list[str]]:
    """The columns that are read with what makes JSON of their values; what is wrong with others.

    A column that means nothing to us is kept as metadata.
    """
    import pyarrow

    found: dict[str, Convert] = {}
    wrong: list[str] = []
    for field in schema:
        if field.name in found:
            wrong.append(f"column {brief(field.name)}: there is another of its name")
            continue
        convert = _conversion(field.name, field.type)
        odd = _odd_leaves(field.name, field.type)
        is_text = field.name in COLUMNS and field.name not in _JSON
        if convert is not None and odd and not is_text:
            wrong += odd
            # What is left of an object is taken.
            convert = _plain if pyarrow.types.is_struct(field.type) else None
        elif convert is None:
            wrong.append(f"column {brief(field.name)}: its type is {field.type!s:.100}")
        if convert is not None:
            found[field.name] = convert
    return found, wrong


def _conversion(name: str, kind: "pyarrow.DataType") -> Convert | None:
    """What makes JSON of the values of a type; None for a type that is not taken."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if name in _VECTORS or name == "question_vectors":
        return _vector_conversion(name, kind)
    if types.is_string(kind) or types.is_large_string(kind):
        return json_of if name in _JSON else _same
    if name in _JSON:
        return _plain if types.is_struct(kind) or types.is_map(kind) else None
    if name in COLUMNS and name != "id":
        return None
    if types.is_boolean(kind) or types.is_integer(kind):
        return _same
    if types.is_floating(kind):
        return _finite
    if types.is_temporal(kind):
        return _as_text
    return _plain if types.is_nested(kind) else None


def _vector_conversion(name: str, kind: "pyarrow.DataType") -> Convert | None:
    from pyarrow import types

    def is_list(one: "pyarrow.DataType") -> bool:
        kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
        return any(is_one(one) for is_one in kinds)

    if name == "question_vectors":
        fits = is_list(kind) and is_list(kind.value_type)
        if not (fits and _is_number(kind.value_type.value_type)):
            return None
        return lambda value: [None if one is None else _vector(one) for one in value]
    if types.is_string(kind):
        return _same
    return _vector if is_list(kind) and _is_number(kind.value_type) else None


def _is_number(kind: "pyarrow.DataType") -> bool:
    from pyarrow import types

    return any(is_one(kind) for is_one in (types.is_floating, types.is_integer))


def _odd_leaves(name: str, kind: "pyarrow.DataType") -> list[str]:
    """What of a type, however nested, has no values that JSON has, with its type."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _odd_leaves(name, kind.value_type)
    if types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return [odd for one in fields for odd in _odd_leaves(f"{name}.{one.name}", one.type)]
    if types.is_map(kind):
        return _odd_leaves(f"{name}.key", kind.key_type) + _odd_leaves(name, kind.item_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _odd_leaves(name, kind.value_type)
    plain = (
        types.is_string,
        types.is_large_string,
        types.is_boolean,
        types.is_null,
        types.is_temporal,
    )
    if _is_number(kind) or any(is_one(kind) for is_one in plain):
        return []
    return [f"column {brief(name)}: its type is {kind!s:.100}"]


def _same(value: Any) -> Any:
    return value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """A nested value with maps as objects."""
    if isinstance(value, Mapping):
        made = {key: _plain(item) for key, item in value.items()}
        return {key: item for key, item in made.items() if item is not None}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return {key: _plain(item) for key, item in value}
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return _finite(value)
    # A type without such values in JSON was named with its column.
    return value if isinstance(value, str | int | None) else _as_text(value)


def _as_text(value: Any) -> str | None:
    """A date or time as text; nothing for what is none."""
    return str(value) if isinstance(value, date | time | timedelta) else None


def _vector(value: Any) -> str:
    import numpy

    with numpy.errstate(over="ignore", invalid="ignore"):
        return encoded(numpy.asarray(value, dtype=numpy.float32))


def _row_messages(
    batch: "pyarrow.RecordBatch", columns: Mapping[str, Convert], before: int
) -> Iterator[tuple[list[tuple[int, dict[str, Any]]], list[str]]]:
    """The rows of a batch by their number from 1, some at a time, and what is wrong with some."""
    rows: list[tuple[int, dict[str, Any]]] = []
    wrong: list[str] = []
    held = 0
    arrays = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
    for at in range(batch.num_rows):
        number = before + at + 1
        row: dict[str, Any] = {}
        for name, array in arrays.items():
            scalar = array[at]
            if not scalar.is_valid:
                continue
            value, size, problem = _converted(name, scalar, columns[name])
            if problem:
                wrong.append(f"row {number}: {brief(name)}: {problem}")
            elif value is not None:
                row[name], held = value, held + size
        rows.append((number, row))
        if held > _MESSAGE_BYTES:
            yield rows, wrong
            rows, wrong, held = [], [], 0
    yield rows, wrong


def _converted(name: str, scalar: Any, convert: Convert) -> tuple[Any, int, str]:
    """A value as JSON, about how large it is, and what is wrong with it, "" for nothing."""
    import pyarrow

    # How large it is, roughly, before a Python object is made of it.
    size, plain = 64, scalar.value if isinstance(scalar, pyarrow.DictionaryScalar) else scalar
    if isinstance(plain, pyarrow.StringScalar | pyarrow.LargeStringScalar):
        buffer = plain.as_buffer()
        size = buffer.size if buffer is not None else 0
    elif isinstance(plain, pyarrow.ListScalar | pyarrow.LargeListScalar | pyarrow.MapScalar):
        size = 8 * len(plain)
    if size > LINE_BYTES:
        return None, 0, f"{size:,} bytes, at most {LINE_BYTES:,} are read"
    try:
        # Of a vector an array, without a Python number for each of its numbers.
        is_array = name in _VECTORS and hasattr(scalar, "values")
        plain = scalar.values.to_numpy(zero_copy_only=False) if is_array else scalar.as_py()
        value = convert(plain)
        orjson.dumps(value)
    except (ValueError, TypeError, OverflowError) as error:
        return None, 0, f"{error!s:.200}"
    return value, size, ""


if __name__ == "__main__":
    serve(int(sys.argv[1]), os.fsdecode(sys.argv[2]))

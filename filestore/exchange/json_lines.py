"""JSON lines that a stranger may have written; a line that cannot be read is named, and skipped."""

from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple

import orjson

from filestore.core.limits import LINE_BYTES, why_bomb
from filestore.exchange.base import LeftOut

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Row(NamedTuple):
    """The value of a line."""

    where: str
    """Which line, for messages."""
    number: int
    offset: int
    """Of the line in its file, in bytes."""
    value: Any


def rows(file: IO[bytes], left_out: LeftOut, name: str = "") -> Iterator[Row]:
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
            value, problem = parsed(line)
            if problem:
                left_out.add(f"{where}: {problem}")
            else:
                yield Row(where, number, start, value)


def parsed(line: bytes) -> tuple[Any, str]:
    """The value of a line, and what is wrong with it; "" for nothing."""
    if why := why_bomb(line):
        return None, why
    try:
        return orjson.loads(line.removeprefix(_BYTE_ORDER_MARK)), ""
    except orjson.JSONDecodeError as error:
        return None, f"no JSON: {error.msg}, column {error.colno}"

"""Rows as lines of JSON, with a checksum each: what backends that keep files write beside vectors.

The first line is the stamp; it says how many lines follow, and which. A line is read only when its
checksum is right, and a file only when all of them are: a part of an index is no index.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson
from msgspec import Struct, field
from xxhash import xxh3_128, xxh3_128_hexdigest

from filestore.core.safe_text import listed, shown_path
from filestore.fs import disk
from filestore.index.backend import BackendUnreachable, BackendUnusable, EmbedConfig, Stamp

FORMAT: Final = "filestore-index/1"
_START: Final = b'{"sum":"'
_HEX: Final = 32
_AFTER: Final = len(_START) + _HEX + len(b'",')
_MOST_LINE: Final = 64 * 1024 * 1024
_NAMED: Final = 5
"""So many damaged lines are named by number."""


class Head(Struct, frozen=True, kw_only=True):
    """The first line."""

    stamp: Stamp
    items: int
    of: str
    """Over the checksums of all lines that follow, in their order."""
    more: dict[str, Any] = field(default_factory=dict)
    """What the backend that wrote it needs besides."""


def written(stamp: Stamp, rows: Iterable[dict[str, Any]], more: dict[str, Any]) -> bytes:
    """The bytes of a file: the same for the same rows."""
    lines, over = [], xxh3_128()
    for row in rows:
        line = _line(row)
        over.update(line[len(_START) : len(_START) + _HEX])
        lines.append(line)
    head = {
        "format": FORMAT,
        "owner": stamp.owner,
        "generation": stamp.generation,
        "fingerprint": stamp.embed.fingerprint,
        "dimension": stamp.embed.dimension,
        "items": len(lines),
        "of": over.hexdigest(),
        "more": more,
    }
    return b"".join([_line(head), *lines])


def _line(value: dict[str, Any]) -> bytes:
    body = orjson.dumps(value)
    return _START + xxh3_128_hexdigest(body).encode() + b'",' + body[1:] + b"\n"


def read_head(path: str) -> Head | None:
    """The first line of a file; None where there is no file.

    Raises:
        BackendUnusable: It is no such file, or that line is damaged.
        BackendUnreachable: The disk does not give it.
    """
    for number, line in _lines(path):
        return _head(path, number, line)
    return None


def read(path: str) -> tuple[Head, list[dict[str, Any]]] | None:
    """All of a file; None where there is none.

    Raises:
        BackendUnusable: It is no such file, or a line is damaged, missing or too many.
        BackendUnreachable: The disk does not give it.
    """
    head: Head | None = None
    rows, damaged, over = [], [], xxh3_128()
    for number, line in _lines(path):
        if head is None:
            head = _head(path, number, line)
            continue
        over.update(line[len(_START) : len(_START) + _HEX])
        row = _checked(line)
        if row is None:
            damaged.append(number)
        else:
            rows.append(row)
    if head is None:
        return None
    if damaged:
        numbers = listed(damaged, _NAMED)
        raise unusable(path, f"{len(damaged):,} of {head.items:,} lines are damaged: {numbers}")
    if len(rows) != head.items or over.hexdigest() != head.of:
        raise unusable(path, f"its first line counts {head.items:,} others, found {len(rows):,}")
    return head, rows


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers; an empty one has one empty line."""
    try:
        descriptor = disk.open_regular(path)
    except FileNotFoundError:
        return
    except OSError as error:
        disk.pass_limits(error)
        raise unreachable(path, error) from error
    with os.fdopen(descriptor, "rb") as file:
        number = 0
        while True:
            try:
                line = file.readline(_MOST_LINE)
            except OSError as error:
                raise unreachable(path, error) from error
            if not line and number:
                return
            number += 1
            yield number, line
            if not line:
                return


def _checked(line: bytes) -> dict[str, Any] | None:
    """What a line says; None where its checksum is wrong."""
    if not line.startswith(_START) or not line.endswith(b"}\n"):
        return None
    body = b"{" + line[_AFTER:-1]
    if line[len(_START) : _AFTER] != xxh3_128_hexdigest(body).encode() + b'",':
        return None
    try:
        value: dict[str, Any] = orjson.loads(body)
    except ValueError:
        return None
    return value


def _head(path: str, number: int, line: bytes) -> Head:
    found = _checked(line)
    if found is None or found.get("format") != FORMAT:
        raise unusable(path, f"line {number} is not what an index of filestore begins with")
    embed = EmbedConfig(fingerprint=found["fingerprint"], dimension=found["dimension"])
    stamp = Stamp(owner=found["owner"], generation=found["generation"], embed=embed)
    return Head(stamp=stamp, items=found["items"], of=found["of"], more=found["more"])


def unusable(path: str, what: str) -> BackendUnusable:
    """Say what is wrong with a file."""
    shown = shown_path(path)
    return BackendUnusable(
        f"{shown} cannot be used: {what}",
        remedy="name another path, or move it away and run 'filestore sync --full', which writes "
        "it from the embeddings",
    )


def unreachable(path: str, error: OSError) -> BackendUnreachable:
    """Say that the disk does not give a file."""
    return BackendUnreachable(
        f"cannot read {shown_path(path)}: {error.strerror}" if error.strerror else f"{error}",
        remedy="make it readable, or set another path",
    )

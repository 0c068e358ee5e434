"""Which files a graph keeps its weights in, read from the graph without the library that runs it.

A graph is a protobuf message (ONNX's ``onnx.proto3``); only what may hold tensors is gone into, all
else is stepped over. One rule: what is not understood is refused, since weights that go unseen
would give two models one fingerprint.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from filestore.embed._model_folder import clipped, unusable
from filestore.fs import disk

_PARTS: Final = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""What may hold a tensor's entries, by the numbers of its fields."""
_KEY: Final = 1
_VALUE: Final = 2
_LOCATION: Final = b"location"
_FIXED_BYTES: Final = {1: 8, 5: 4}
"""How long a field is, by its kind."""
_PLAIN: Final = 0
_SIZED: Final = 2
_LARGEST_FIELD: Final = (1 << 32) - 1
"""Readers drop the bits above, and would see another field."""
_LONGEST_NUMBER: Final = 10
_MOST_FIELDS: Final = 4_000_000
"""Large graphs have some hundred thousand; a file of nothing but tiny ones takes minutes."""


def external_files(folder: str, graph: str) -> list[str]:
    """The files with weights that a graph names, relative to the folder, sorted.

    Args:
        folder: The model's.
        graph: The path of the graph relative to it.

    Raises:
        ModelUnusable: The graph is damaged, or names what is no file beside it.
    """
    try:
        handle = disk.open_regular(os.path.join(folder, graph), follow_links=True)
        with (
            open(handle, "rb") as file,
            closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as data,
        ):
            found = locations(data)
    except (OSError, ValueError) as error:
        raise unusable(folder, f"has a {graph} that cannot be loaded", detail=str(error)) from error
    names = sorted(os.fsdecode(location) for location in found)
    for name in names:
        # Only a plain name: other paths lead out of the folder, or mean something to the library.
        if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
            raise unusable(
                folder,
                f"has a {graph} with weights in {clipped(name)!r}, expected the name of a file"
                " beside it",
            )
        if not os.path.isfile(os.path.join(folder, os.path.dirname(graph), name)):
            raise unusable(folder, f"lacks {clipped(name)!r}, the weights of its {graph}")
    return [os.path.join(os.path.dirname(graph), name) for name in names]


def locations(data: "bytes | mmap.mmap") -> set[bytes]:
    """Every place outside the graph that one of its tensors names, whether it is used or not.

    Raises:
        ValueError: It is no protobuf message, or one of far too many parts.
    """
    found: set[bytes] = set()
    waiting = [("model", 0, len(data))]
    left = _MOST_FIELDS
    while waiting:
        kind, start, end = waiting.pop()
        if kind == "entry":
            found |= _location(data, start, end)
            continue
        for number, first, last in _fields(data, start, end):
            left -= 1
            if left < 0:
                raise ValueError(f"a graph of more than {_MOST_FIELDS} parts")
            if number in _PARTS[kind]:
                waiting.append((_PARTS[kind][number], first, last))
    return found


def _location(data: "bytes | mmap.mmap", start: int, end: int) -> set[bytes]:
    """What one entry of a tensor says of its place; nothing where it says something else."""
    fields = [(number, data[first:last]) for number, first, last in _fields(data, start, end)]
    if (_KEY, _LOCATION) not in fields:
        return set()
    return {value for number, value in fields if number == _VALUE} or {b""}


def _fields(data: "bytes | mmap.mmap", start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field of a message; for a plain number both are its end."""
    while start < end:
        key, first = _number(data, start)
        if key > _LARGEST_FIELD:
            raise ValueError(f"no field at byte {start}")
        kind = key & 7
        if kind == _SIZED:
            length, first = _number(data, first)
            start = first + length
        elif kind == _PLAIN:
            first = start = _number(data, first)[1]
        elif kind in _FIXED_BYTES:
            first = start = first + _FIXED_BYTES[kind]
        else:
            raise ValueError(f"a field of kind {kind} at byte {start}")
        if start > end:
            raise ValueError(f"cut off at byte {end}")
        yield key >> 3, first, start


def _number(data: "bytes | mmap.mmap", place: int) -> tuple[int, int]:
    """A number of 7 bits a byte, the lowest first, and where it ends."""
    if place < len(data) and data[place] < 0x80:
        return data[place], place + 1
    value = 0
    for step, byte in enumerate(data[place : place + _LONGEST_NUMBER]):
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, place + step + 1
    raise ValueError(f"no number at byte {place}")

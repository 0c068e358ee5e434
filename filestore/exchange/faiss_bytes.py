"""The vectors in an index of FAISS, or a table of numpy, that a stranger wrote; written, too.

FAISS believes the sizes that its files state, so it is never given one of these: what is here reads
the layout itself. One rule: a size is held against the bytes there are before anything is made.
Read are vectors as they are (flat), in lists (`IndexIVFFlat`), and ids around one of these
(`IndexIDMap`). Written is the flat one.

Layout, as `write_index` of FAISS has it, all numbers little-endian: four letters for the class; its
head; what the class adds. A list of numbers is preceded by their count as uint64. Of a `.npy` file
the header is compared with what numpy writes, and never evaluated.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec import Struct

from filestore.core.safe_text import brief
from filestore.exchange.base import FormDamaged, refuse

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

LARGEST_DIMENSION: Final = 65_536
INNER_PRODUCT: Final = "IndexFlatIP"
L2: Final = "IndexFlatL2"

_HEAD: Final = struct.Struct("<iqqq?i")
"""Dimension, vectors, two numbers for nothing, whether it is trained, metric."""
_FLAT: Final = {b"IxFI": (INNER_PRODUCT, 0), b"IxF2": (L2, 1), b"IxFl": ("IndexFlat", None)}
"""The class and its metric."""
_CODE_OF: Final = {name: (code, metric) for code, (name, metric) in _FLAT.items()}
_MAPS: Final = {b"IxMp": "IndexIDMap", b"IxM2": "IndexIDMap2"}
_LISTS: Final = {b"IwFl": "IndexIVFFlat"}
_OTHERS: Final = {
    b"IwPQ": "IndexIVFPQ",
    b"IwQR": "IndexIVFPQR",
    b"IwSq": "IndexIVFScalarQuantizer",
    b"IwPf": "IndexIVFPQFastScan",
    b"IxPq": "IndexPQ",
    b"IxSQ": "IndexScalarQuantizer",
    b"IxPT": "IndexPreTransform",
    b"IxRF": "IndexRefineFlat",
    b"IxHe": "IndexLSH",
    b"IBxF": "IndexBinaryFlat",
    b"IHNf": "IndexHNSWFlat",
    b"IHNs": "IndexHNSWSQ",
    b"IHNp": "IndexHNSWPQ",
}
"""Classes that keep codes, or vectors in ways of their own: named, not read."""
FLAT_HEAD_BYTES: Final = 4 + _HEAD.size + 8
"""The bytes before the vectors of a flat index."""
_MOST_LISTS: Final = 1_000_000
"""Each costs an object in memory, and an index of many vectors has some thousands."""
_METRICS: Final = {0: INNER_PRODUCT, 1: L2}

_NPY_MAGIC: Final = b"\x93NUMPY"
_NPY_VERSIONS: Final = {b"\x01\x00": 10, b"\x02\x00": 12, b"\x03\x00": 12}
"""Where the header begins."""
_NPY_HEADER: Final = re.compile(
    rb"\{'descr': '([^'\n]{1,20})', 'fortran_order': (True|False),"
    rb" 'shape': \(([0-9]{1,12}), ([0-9]{1,12})\), \} *\n?"
)
_LARGEST_NPY_HEADER: Final = 1_000
_NPY_ALIGNMENT: Final = 64


class Vectors(Struct, frozen=True, kw_only=True):
    """What an index holds."""

    kinds: tuple[str, ...]
    """The names of its classes in FAISS, from the outside in."""
    flat: str
    """The flat class that compares as it does."""
    rows: NDArray[float32]
    """Row i has id i: (n, dimension) float32, all of them finite."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self.rows.shape[1])


class NotRead(FormDamaged):
    """An index of a class whose vectors are not read."""


def head_of(data: bytes | bytearray) -> tuple[str, str, int, int]:
    """What every index says of itself first.

    Returns:
        Its class, the flat class that compares as it does, the length of its vectors, how many.

    Raises:
        FormDamaged: There is no such head.
    """
    reader = _Reader(data)
    code = bytes(reader.take(4))
    dimension, count, *_, metric = reader.unpack(_HEAD)
    return _name(code), _METRICS.get(metric, L2), dimension, count


def parse(*pieces: bytes | bytearray | memoryview) -> Vectors:
    """Read an index of any program.

    Args:
        pieces: Its bytes. Where the first is `FLAT_HEAD_BYTES` long, the vectors of a flat index
            begin with the second, where numbers may lie, and are not copied.

    Raises:
        NotRead: It is of another class.
        FormDamaged: It is not as FAISS writes it, or its numbers disagree.
    """
    reader = _Reader(*pieces)
    found = _index(reader, depth=0)
    if reader.left:
        _refuse(f"{reader.left:,} bytes follow the end of the index")
    check_finite(found.rows)
    return found


def check_finite(rows: NDArray[float32]) -> None:
    """See that every number of some vectors is one.

    Raises:
        FormDamaged: One is not, or infinite; the first such row is named.
    """
    import numpy

    step = max(1, 4 * 1024 * 1024 // max(1, 4 * rows.shape[1]))
    for start in range(0, len(rows), step):
        fine = numpy.isfinite(rows[start : start + step])
        if not fine.all():
            row, place = (int(one) for one in numpy.argwhere(~fine)[0])
            value = float(rows[start + row, place])
            _refuse(f"vector {start + row:,} has {value} at place {place:,}")


def head(kind: str, count: int, dimension: int) -> bytes:
    """The head of a flat index; the vectors, as they are, end it.

    Args:
        kind: `INNER_PRODUCT` or `L2`.
        count: How many vectors.
        dimension: Their length.
    """
    code, metric = _CODE_OF[kind]
    numbers = count * dimension
    return (
        code
        + _HEAD.pack(dimension, count, 1 << 20, 1 << 20, True, metric)
        + numbers.to_bytes(8, "little")
    )


def bytes_of(rows: NDArray[float32]) -> memoryview:
    """The numbers of some vectors, little-endian."""
    import numpy

    return numpy.ascontiguousarray(rows, "<f4").reshape(-1).view("u1").data


def _refuse(problem: str) -> NoReturn:
    refuse(
        f"the FAISS index cannot be read: {problem}",
        "have it written again by the program that it comes from",
    )


def _name(code: bytes) -> str:
    known = _MAPS | _LISTS | _OTHERS | {one: name for one, (name, _) in _FLAT.items()}
    return known.get(code, f"of class {code!r}")


class _Reader:
    """Bytes, taken one piece after the other."""

    def __init__(self, *pieces: bytes | bytearray | memoryview) -> None:
        self._pieces = [memoryview(one) for one in pieces]
        self._at = 0
        self.left = sum(map(len, self._pieces))
        """How many bytes were not taken."""

    def take(self, size: int) -> memoryview:
        """The next bytes, of a size."""
        if not 0 <= size <= self.left:
            _refuse(f"it states {size:,} bytes where there are {self.left:,}")
        rest = self._pieces[0][self._at :] if self._pieces else memoryview(b"")
        if len(rest) < size:
            others = self._pieces[1:]
            rest = (
                memoryview(b"".join((rest, *others))) if len(rest) or len(others) > 1 else others[0]
            )
            self._pieces, self._at = [rest], 0
        self._at += size
        self.left -= size
        return rest[:size]

    def unpack(self, form: struct.Struct) -> tuple[int, ...]:
        """Numbers."""
        return form.unpack(self.take(form.size))

    def number(self) -> int:
        """One uint64."""
        return int.from_bytes(self.take(8), "little")

    def counted(self, item_bytes: int) -> memoryview:
        """The bytes of a list of numbers."""
        return self.take(self.number() * item_bytes)


class _Head(Struct, frozen=True, kw_only=True):
    dimension: int
    count: int
    metric: int


def _index(reader: _Reader, depth: int) -> Vectors:
    """One index; those around another are two at most, as FAISS makes them."""
    import numpy

    code = bytes(reader.take(4))
    if code in _OTHERS or depth > 1:
        raise NotRead(
            f"the index is an {_name(code)}, which is not read"
            ": have it written as IndexFlatIP or IndexFlatL2",
        )
    if code not in {*_FLAT, *_MAPS, *_LISTS}:
        raise NotRead(
            f"the index is of a class that is not known: {code!r}"
            "; have it written as IndexFlatIP or IndexFlatL2",
        )
    stated = _head(reader)
    if code in _FLAT:
        name, metric = _FLAT[code]
        if metric not in (None, stated.metric):
            _refuse(f"an {name} that compares by metric {stated.metric}")
        rows = _rows(reader.counted(4), stated.count, stated.dimension)
        return Vectors(kinds=(name,), flat=_METRICS[stated.metric], rows=rows)
    if code in _LISTS:
        return _lists(reader, stated)
    name, inner = _MAPS[code], _index(reader, depth + 1)
    if inner.rows.shape != (stated.count, stated.dimension):
        _refuse(f"an {name} of {stated.count:,} vectors around {len(inner.rows):,}")
    ids = numpy.frombuffer(reader.counted(8), "<i8")
    rows = _by_id(inner.rows, ids.astype(numpy.int64, copy=False))
    return Vectors(kinds=(name, *inner.kinds), flat=inner.flat, rows=rows)


def _head(reader: _Reader) -> _Head:
    dimension, count, _, _, _, metric = reader.unpack(_HEAD)
    if not 0 <= dimension <= LARGEST_DIMENSION:
        _refuse(f"vectors of {dimension:,} numbers; 1 to {LARGEST_DIMENSION:,} are read")
    if count < 0 or (count and not dimension):
        _refuse(f"{count:,} vectors of {dimension:,} numbers")
    if metric not in _METRICS:
        _refuse(f"it compares by metric {metric}; only inner product (0) and L2 (1) are known")
    return _Head(dimension=dimension, count=count, metric=metric)


def _rows(data: memoryview, count: int, dimension: int) -> NDArray[float32]:
    import numpy

    if len(data) != 4 * count * dimension:
        _refuse(f"{len(data):,} bytes of {count:,} vectors of {dimension:,} numbers")
    rows = numpy.frombuffer(data, "<f4").reshape(count, dimension)
    # Where the head before them has an odd length, each number lies across two words.
    return rows.astype(numpy.float32, copy=not rows.flags.aligned)


def _by_id(rows: NDArray[float32], ids: NDArray[int64]) -> NDArray[float32]:
    """The vectors in the order of their ids, which must be 0, 1, …, each once."""
    import numpy

    if len(ids) != len(rows):
        _refuse(f"{len(ids):,} ids for {len(rows):,} vectors")
    order = numpy.argsort(ids, kind="stable")
    expected = numpy.arange(len(rows))
    wrong = numpy.flatnonzero(ids[order] != expected)
    if len(wrong):
        place = int(wrong[0])
        _refuse(
            f"its ids must be 0 to {len(rows) - 1:,}, each once: {place:,} is expected,"
            f" {int(ids[order[place]]):,} found"
        )
    return rows if (order == expected).all() else rows[order]


def _lists(reader: _Reader, stated: _Head) -> Vectors:
    """Lists of vectors, each with its ids: `IndexIVFFlat`."""
    import numpy

    lists = reader.number()
    if lists > _MOST_LISTS:
        _refuse(f"{lists:,} lists; at most {_MOST_LISTS:,} are read")
    reader.take(8)  # in how many lists a search looks
    if bytes(reader.take(4)) in _FLAT:
        centres = _head(reader)
        reader.counted(4)
    else:
        raise NotRead(
            "the lists of the IndexIVFFlat are found by another index than a flat one"
            ": have it written as IndexFlatIP or IndexFlatL2",
        )
    if (centres.count, centres.dimension) != (lists, stated.dimension):
        _refuse(f"{lists:,} lists of {centres.count:,} centres of {centres.dimension:,} numbers")
    # The direct map says where each id is, as the lists do.
    kind = reader.take(1)[0]
    if kind not in (0, 1, 2):
        _refuse(f"a direct map of kind {kind}")
    reader.counted(8)
    if kind == 2:
        reader.counted(16)
    vectors, ids = [], []
    for size in _sizes(reader, lists, 4 * stated.dimension):
        vectors.append(_rows(reader.take(size * 4 * stated.dimension), size, stated.dimension))
        ids.append(numpy.frombuffer(reader.take(size * 8), "<i8"))
    empty = numpy.empty((0, stated.dimension), numpy.float32)
    rows = numpy.concatenate([empty, *vectors])
    if len(rows) != stated.count:
        _refuse(f"{len(rows):,} vectors in lists, {stated.count:,} in its head")
    every = numpy.concatenate([numpy.empty(0, numpy.int64), *ids])
    return Vectors(kinds=("IndexIVFFlat",), flat=_METRICS[stated.metric], rows=_by_id(rows, every))


def _sizes(reader: _Reader, lists: int, vector_bytes: int) -> list[int]:
    """How many vectors each list has that is not empty."""
    import numpy

    kind = bytes(reader.take(4))
    if kind == b"il00":
        return []
    if kind != b"ilar":
        _refuse(f"its lists are kept in a way that is not known: {kind!r}")
    if (reader.number(), reader.number()) != (lists, vector_bytes):
        _refuse(f"its lists are not {lists:,} of vectors of {vector_bytes:,} bytes")
    layout = bytes(reader.take(4))
    if layout not in (b"full", b"sprs"):
        _refuse(f"the sizes of its lists are written in a way that is not known: {layout!r}")
    numbers = numpy.frombuffer(reader.counted(8), "<u8")
    if layout == b"full":
        if len(numbers) != lists:
            _refuse(f"the sizes of {len(numbers):,} lists, of {lists:,}")
        sizes = numbers
    else:
        places, sizes = numbers[0::2], numbers[1::2]
        in_order = bool((places[1:] > places[:-1]).all())
        if len(places) != len(sizes) or not in_order or (places >= lists).any():
            _refuse("the sizes of its lists are out of order")
    # Each is taken from the bytes that are left, so the sum cannot pass them either.
    return [int(size) for size in sizes[sizes > 0]]


def parse_npy(data: bytes | bytearray) -> NDArray[float32]:
    """The table in the bytes of a file: (n, dimension) float32, every number finite.

    Raises:
        FormDamaged: They are of another kind of file, or not whole.
    """
    import numpy

    start = _NPY_VERSIONS.get(bytes(data[6:8]), 0)
    if not data.startswith(_NPY_MAGIC) or not start:
        refuse("it is no .npy file of a version that is known")
    size = int.from_bytes(data[8:start], "little")
    header = (
        _NPY_HEADER.fullmatch(data[start : start + size]) if size < _LARGEST_NPY_HEADER else None
    )
    if header is None:
        refuse("its header is not the one of a table of float32")
    kind, by_column = header[1].decode(errors="replace"), header[2] == b"True"
    count, dimension = int(header[3]), int(header[4])
    if kind != "<f4":
        refuse(f"its numbers must be float32 ('<f4'), found {brief(kind)}")
    if dimension > LARGEST_DIMENSION or (count and not dimension):
        refuse(f"{count:,} rows of {dimension:,} numbers")
    there = len(data) - start - size
    if there != 4 * count * dimension:
        refuse(f"{there:,} bytes for {count:,} rows of {dimension:,} numbers")
    numbers = numpy.frombuffer(data, "<f4", offset=start + size)
    table = numbers.reshape((count, dimension), order="F" if by_column else "C")
    table = numpy.ascontiguousarray(table, numpy.float32)
    check_finite(table)
    return table


def head_of_npy(count: int, dimension: int) -> bytes:
    """The header of a table."""
    shape = f"({count}, {dimension})"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    blanks = " " * (-(10 + len(header) + 1) % _NPY_ALIGNMENT)
    padded = f"{header}{blanks}\n".encode()
    return _NPY_MAGIC + b"\x01\x00" + len(padded).to_bytes(2, "little") + padded

"""The one kind of `.npy` file that is read and written: a table of float32.

One rule: the header of a stranger's file is compared with what numpy writes, never evaluated, and
its sizes are held against the bytes there are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from filestore.core.safe_text import brief
from filestore.exchange.vector_files import faiss_bytes
from filestore.exchange.vector_files.document_map import refuse

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

_MAGIC: Final = b"\x93NUMPY"
_VERSIONS: Final = {b"\x01\x00": 10, b"\x02\x00": 12, b"\x03\x00": 12}
"""Where the header begins."""
_HEADER: Final = re.compile(
    rb"\{'descr': '([^'\n]{1,20})', 'fortran_order': (True|False),"
    rb" 'shape': \(([0-9]{1,12}), ([0-9]{1,12})\), \} *\n?"
)
_LARGEST_HEADER: Final = 1_000
_ALIGNMENT: Final = 64


def parse(data: bytes | bytearray) -> NDArray[float32]:
    """The table in the bytes of a file: (n, dimension) float32, every number finite.

    Raises:
        FormDamaged: They are of another kind of file, or not whole.
    """
    import numpy

    start = _VERSIONS.get(bytes(data[6:8]), 0)
    if not data.startswith(_MAGIC) or not start:
        refuse("it is no .npy file of a version that is known")
    size = int.from_bytes(data[8:start], "little")
    header = _HEADER.fullmatch(data[start : start + size]) if size < _LARGEST_HEADER else None
    if header is None:
        refuse("its header is not the one of a table of float32")
    kind, by_column = header[1].decode(errors="replace"), header[2] == b"True"
    count, dimension = int(header[3]), int(header[4])
    if kind != "<f4":
        refuse(f"its numbers must be float32 ('<f4'), found {brief(kind)}")
    if dimension > faiss_bytes.LARGEST_DIMENSION or (count and not dimension):
        refuse(f"{count:,} rows of {dimension:,} numbers")
    there = len(data) - start - size
    if there != 4 * count * dimension:
        refuse(f"{there:,} bytes for {count:,} rows of {dimension:,} numbers")
    numbers = numpy.frombuffer(data, "<f4", offset=start + size)
    table = numbers.reshape((count, dimension), order="F" if by_column else "C")
    table = numpy.ascontiguousarray(table, numpy.float32)
    faiss_bytes.check_finite(table)
    return table


def head(count: int, dimension: int) -> bytes:
    """What stands before the numbers of a table."""
    shape = f"({count}, {dimension})"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    blanks = " " * (-(10 + len(header) + 1) % _ALIGNMENT)
    padded = f"{header}{blanks}\n".encode()
    return _MAGIC + b"\x01\x00" + len(padded).to_bytes(2, "little") + padded

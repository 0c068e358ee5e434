"""How much is taken of what a stranger wrote, unless a person allows more. Pure.

One rule: what comes is counted as it comes, and refused before it fills a disk or the memory.
"""

from typing import Final

from msgspec import Struct

from filestore.core.errors import RefusedError
from filestore.core.schema import JsonObject

OPTION: Final = "--limit"
"""What raises a limit."""
LINE_BYTES: Final = 64 * 1024 * 1024
"""Of a line, or a value: no chunk with its vectors comes near it. A longer one is passed over."""
_BYTES_A_CONTAINER: Final = 16
_FEW_CONTAINERS: Final = 100_000
"""Bytes for each bracket that opens: what is made to fill the memory has one every three."""


def why_bomb(raw: bytes | bytearray) -> str:
    """Why some JSON would take far more memory than its text can need, "" where it does not."""
    opened = raw.count(b"[") + raw.count(b"{")
    is_bomb = opened > len(raw) // _BYTES_A_CONTAINER + _FEW_CONTAINERS
    return f"{opened:,} brackets in {len(raw):,} bytes" if is_bomb else ""


class LimitExceededError(RefusedError, ValueError):
    """There is more than is taken unless a person allows it."""


class Size(Struct, frozen=True, kw_only=True):
    """How much something is."""

    rows: int = 0
    """Lines, rows, chunks or vectors that come in."""
    files: int = 0
    """Chunk files, records or documents to be written."""
    bytes: int = 0
    """Of texts, metadata and vectors, as they are in memory."""


class Limits(JsonObject, Size, frozen=True, kw_only=True):
    """The most that is taken of one form."""

    rows: int = 250_000
    """Rows, lines, chunks or vectors that come in."""
    files: int = 250_000
    """Chunk files and records that are written."""
    bytes: int = 1024**3
    """Of texts, metadata and vectors, in memory."""


class Counter(Struct):
    """What came so far, held against the limits."""

    limits: Limits
    name: str
    """Of what comes, for messages."""
    found: Size = Size()

    def add(self, more: Size) -> None:
        """Count some more.

        Raises:
            LimitExceededError: It is more than is taken.
        """
        was, limits = self.found, self.limits
        self.found = found = Size(
            rows=was.rows + more.rows, files=was.files + more.files, bytes=was.bytes + more.bytes
        )
        for name in LIMITED:
            if getattr(found, name) > getattr(limits, name):
                raise LimitExceededError(
                    f"{self.name} has {getattr(found, name):,} {name} or more, at most"
                    f" {getattr(limits, name):,} are allowed"
                    f"; if you trust it, add {OPTION} {name}=N with a larger number",
                )


LIMITED: Final = Size.__struct_fields__
USUAL: Final = Limits()
"""The limits where no option sets others."""

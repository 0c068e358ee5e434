"""What was generated, and mostly paid for: one line a result, by generator and task.

Holds no paths, so it serves every branch and every clone; two such files joined are one. One rule:
a line is appended as soon as there is a result, and never changed. Each carries its own checksum:
a line that is torn or damaged costs that one result.

Layout: JSON lines ``{"key": 64 hex digits, "sum": 16 hex digits, "made": {…}}``, where `key` is the
SHA-256 of the generator's fingerprint and the task's key, and `sum` the xxh3_64 of key and `made`.
"""

import hashlib
import os
from contextlib import suppress
from typing import Any, Final, Self

import orjson
from xxhash import xxh3_64_hexdigest

from filestore.fs import disk, part
from filestore.generate import Made, Task

_MOST_BYTES: Final = 4 * 1024 * 1024 * 1024
_START: Final = b'{"key":"'
_KEY_DIGITS: Final = 64
_NUMBERS: Final = ("tokens_in", "tokens_out")


def key_of(fingerprint: str, task: Task) -> str:
    """What a result is kept under: 64 hex digits."""
    made_by = hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).digest()
    return hashlib.sha256(made_by + task.key).hexdigest()


class GeneratedCache(disk.Closing):
    """Results by key, read whole when it is opened. The caller holds a lock while it puts."""

    def __init__(self, path: str, lines: dict[str, bytes]) -> None:
        self._path = path
        self._lines = lines
        self._descriptor: int | None = None

    @classmethod
    def open(cls, path: str) -> Self:
        """Read what is there; nothing is written yet.

        Raises:
            NotAFileError: Something that is no file is there.
            OSError: It cannot be read.
        """
        try:
            data = disk.read_path(path, limit=_MOST_BYTES)
        except FileNotFoundError:
            data = b""
        # A line is only looked into when its result is asked for.
        keys = slice(len(_START), len(_START) + _KEY_DIGITS)
        lines = (line for line in data.split(b"\n") if line.startswith(_START))
        return cls(path, {line[keys].decode("ascii", "replace"): line for line in lines})

    def close(self) -> None:
        """Bring what was put to the disk, and let go of the file."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def __len__(self) -> int:
        """How many results there are."""
        return len(self._lines)

    def get(self, key: str) -> Made | None:
        """What was made before; None where nothing was, or its line is damaged."""
        line = self._lines.get(key)
        if line is None:
            return None
        try:
            record = orjson.loads(line)
            own, values = record["key"], record["made"]
            if record["sum"] != _checksum(own, values):
                raise ValueError(own)
            texts = (*values["lines"], values["title"], values["text"])
            if not all(isinstance(one, str) for one in texts):
                raise ValueError(own)
            return Made(
                lines=tuple(values["lines"]),
                title=values["title"],
                text=values["text"],
                **{name: int(values[name]) for name in _NUMBERS},
            )
        except (ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, made: Made) -> None:
        """Keep a result, at once: a process that dies behind this does not pay again.

        Raises:
            WriteFailedError: The disk refused.
        """
        values = {
            "lines": list(made.lines),
            "title": made.title,
            "text": made.text,
            "tokens_in": made.tokens_in,
            "tokens_out": made.tokens_out,
        }
        record = {"key": key, "sum": _checksum(key, values), "made": values}
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self._lines[key] = line
        with disk.disk_errors(self._path):
            if self._descriptor is None:
                self._descriptor = part.open_file(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
                size = os.fstat(self._descriptor).st_size
                if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
                    # The last writer died in the middle of a line.
                    disk.write_all(self._descriptor, b"\n")
            disk.write_all(self._descriptor, line)


def _checksum(key: str, values: dict[str, Any]) -> str:
    return xxh3_64_hexdigest(key.encode() + orjson.dumps(values, option=orjson.OPT_SORT_KEYS))

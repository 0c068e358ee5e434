"""Extraction in a child process: a hostile file harms that process alone.

A request is the file's name and its bytes; an answer a document, or the error that says why there
is none. The child has limits that the kernel holds: memory, no new files, no core dump.
"""

import gc
import os
import resource
import sys
from typing import Final

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from filestore.chunking import Section
from filestore.extract import for_name
from filestore.extract.base import Document, EmptyDocumentError, ExtractionError, Page
from filestore.fs.subprocess_worker import Child, parent_line

_HEAD_BYTES: Final = 8
_GARBAGE_AFTER: Final = 500_000


class Limits(Struct, frozen=True, kw_only=True):
    """What one file may cost."""

    timeout_s: float = 120.0
    memory_bytes: int = 3 * 1024**3
    """Of address space, the libraries included."""


class ExtractionProcess:
    """One child that extracts; killed and started again when a file was too much for it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._child: Child | None = None

    def extract(self, data: bytes, *, name: str) -> Document:
        """Extract one file.

        Raises:
            ExtractionError: It cannot be read, or took more time or memory than it may.
        """
        try:
            if self._child is None:
                self._child = Child(__name__, str(self._limits.memory_bytes))
            encoded = name.encode("utf-8", "surrogateescape")
            self._child.send(len(encoded).to_bytes(_HEAD_BYTES, "little"), encoded, data)
            answer = orjson.loads(self._child.receive(self._limits.timeout_s))
        except TimeoutError as error:
            self.kill()
            raise ExtractionError(
                f"{name} was not read within {self._limits.timeout_s:g} seconds",
                remedy="split it, or convert it to text or Markdown first",
            ) from error
        except OSError as error:
            raise ExtractionError(
                f"the extractor crashed on {name}",
                remedy="it may be damaged: open and save it again, "
                "or convert it to text or Markdown",
                detail=f"exit status {self.kill()}",
            ) from error
        if "error" in answer:
            kind = EmptyDocumentError if answer["empty"] else ExtractionError
            raise kind(**answer["error"])
        return Document(
            text=answer["text"],
            syntax=answer["syntax"],
            metadata=answer["metadata"],
            extractor=answer["extractor"],
            title=answer["title"],
            outline=tuple(Section(**one) for one in answer["outline"]),
            pages=tuple(Page(**one) for one in answer["pages"]),
        )

    def kill(self) -> int:
        """End the child, whatever it is doing; the next file starts another.

        Returns:
            Its exit status, negative for a signal it had died of.
        """
        child, self._child = self._child, None
        return child.kill() if child is not None else 0


def _answer(request: bytes) -> bytes:
    length = int.from_bytes(request[:_HEAD_BYTES], "little")
    name = request[_HEAD_BYTES : _HEAD_BYTES + length].decode("utf-8", "surrogateescape")
    data = request[_HEAD_BYTES + length :]
    del request
    try:
        extractor = for_name(name)
        if extractor is None:
            raise ExtractionError(f"{name}: no extractor reads this kind of file")
        return orjson.dumps(extractor.extract(data, name=name), default=asdict)
    except ExtractionError as error:
        return _refusal(error)
    except (MemoryError, RecursionError):
        return _refusal(
            ExtractionError(
                f"{name} needs more memory than a document may take",
                remedy="split it, or convert it to text or Markdown first",
            )
        )


def _refusal(error: ExtractionError) -> bytes:
    fields = {"message": error.message, "remedy": error.remedy, "detail": error.detail}
    safe = {key: text.encode("utf-8", "backslashreplace").decode() for key, text in fields.items()}
    return orjson.dumps({"error": safe, "empty": isinstance(error, EmptyDocumentError)})


def serve(memory_bytes: int) -> None:
    """Extract every file that comes in, until the input ends."""
    line = parent_line()
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_AS: memory_bytes}
    for what, most in limits.items():
        _, hard = resource.getrlimit(what)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(what, (allowed, allowed))
        except (ValueError, OSError):
            # Not every system limits the address space; time is limited by whoever waits.
            continue
    # A document is many small values that live until it is done: looking through them for cycles
    # each time there are some more costs a fifth of the work, and hardly any are found.
    gc.set_threshold(_GARBAGE_AFTER)
    for request in line:
        line.send(_answer(request))


if __name__ == "__main__":
    try:
        serve(int(sys.argv[1]))
    except (ConnectionError, KeyboardInterrupt):
        os._exit(1)

"""Documents out of the bytes of originals, several at once.

Formats that can hurt are read in child processes, the others here. One rule: a file that cannot be
read is an error that names it, and affects no other. A request to a child is the name and the bytes
of a file; an answer a document, or the error that says why there is none. The child has limits that
the kernel holds: memory, no new files, no core dump.
"""

import gc
import os
import queue
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol

import orjson
from msgspec import Struct, convert, to_builtins
from msgspec.structs import asdict

from filestore import extract
from filestore.core.safe_text import encodable
from filestore.extract import for_name
from filestore.extract.base import Document, EmptyDocumentError, ExtractionError, refuse_pointer
from filestore.fs.programs import Child, parent_line

_HEAD_BYTES: Final = 8
_GARBAGE_AFTER: Final = 500_000
_TWICE: Final = ".pdf"  # what a second reader is asked about


class ReadingLimits(Struct, frozen=True, kw_only=True):
    """What one file may cost."""

    timeout_s: float = 120.0
    memory_bytes: int = 3 * 1024**3
    """Of address space, the libraries included."""


class ExtractionProcess:
    """One child that extracts; killed and started again when a file was too much for it."""

    def __init__(self, limits: ReadingLimits, *, tables: bool = True) -> None:
        """Prepare.

        Args:
            limits: What one file may cost.
            tables: Whether the second reader of PDFs is asked for their tables.
        """
        self._limits = limits
        self._tables = tables
        self._child: Child | None = None

    def extract(self, data: bytes, *, name: str) -> Document:
        """Extract one file.

        Raises:
            ExtractionError: It cannot be read, or took more time or memory than it may.
        """
        try:
            if self._child is None:
                self._child = Child(
                    __name__, str(self._limits.memory_bytes), "tables" if self._tables else ""
                )
            encoded = name.encode("utf-8", "surrogateescape")
            self._child.send(len(encoded).to_bytes(_HEAD_BYTES, "little"), encoded, data)
            answer = orjson.loads(self._child.receive(self._limits.timeout_s))
        except TimeoutError as error:
            self.kill()
            if self._tables and name.casefold().endswith(_TWICE):
                return self._without_tables(data, name=name)
            raise ExtractionError(
                f"{name} was not read within {self._limits.timeout_s:g} seconds"
                ": split it, or convert it to text or Markdown first",
            ) from error
        except OSError as error:
            status = self.kill()
            if self._tables and name.casefold().endswith(_TWICE):
                return self._without_tables(data, name=name)
            raise ExtractionError(
                f"the extractor crashed on {name}; open and save it again, or convert it to"
                " text or Markdown",
                detail=f"exit status {status}",
            ) from error
        if "error" in answer:
            kind = EmptyDocumentError if answer["empty"] else ExtractionError
            raise kind(**answer["error"])
        return convert(answer, Document)

    def _without_tables(self, data: bytes, *, name: str) -> Document:
        """Read a file once more without the reader that it may have been too much for."""
        process = ExtractionProcess(self._limits, tables=False)
        try:
            return process.extract(data, name=name)
        finally:
            process.kill()

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
        document = extractor.read(data, name=name)
        try:
            return orjson.dumps(document, default=asdict)
        except TypeError:
            # A name whose bytes are not UTF-8, or half a character that a document escapes.
            return orjson.dumps(encodable(to_builtins(document)))
    except ExtractionError as error:
        return _refusal(error)
    except (MemoryError, RecursionError):
        return _refusal(
            ExtractionError(
                f"{name} needs more memory than a document may take"
                ": split it, or convert it to text or Markdown first",
            )
        )


def _refusal(error: ExtractionError) -> bytes:
    fields = {"message": error.message, "remedy": error.remedy, "detail": error.detail}
    safe = {key: text.encode("utf-8", "backslashreplace").decode() for key, text in fields.items()}
    return orjson.dumps({"error": safe, "empty": isinstance(error, EmptyDocumentError)})


def serve(memory_bytes: int, *, tables: bool = True) -> None:
    """Extract every file that comes in, until the input ends."""
    if not tables:
        from filestore.extract._pdf.table_reading import leave_out

        leave_out()
    line = parent_line(memory_bytes)
    # A document is many small values that live until it is done: looking through them for cycles
    # each time there are some more costs a fifth of the work, and hardly any are found.
    gc.set_threshold(_GARBAGE_AFTER)
    for request in line:
        line.send(_answer(request))


if __name__ == "__main__":
    try:
        serve(int(sys.argv[1]), tables=bool(sys.argv[2]))
    except (ConnectionError, KeyboardInterrupt):
        os._exit(1)


USUAL_LIMITS: Final = ReadingLimits()

HARMLESS_BYTES: Final = 1_000_000
"""Plain text beyond this may take its time, and so is read where time is limited."""

Pending = Callable[[], Document]
"""Gives the document, waiting for it, or raises what is wrong with it."""


class Readable(Protocol):
    """What an original is here."""

    @property
    def path(self) -> str:
        """Its path; the end of it says what it is."""
        ...

    @property
    def size_bytes(self) -> int:
        """How large it is."""
        ...

    def data(self) -> bytes:
        """Its bytes."""
        ...


class Extraction:
    """Reads originals; close it when no more come."""

    def __init__(self, *, workers: int, limits: ReadingLimits = USUAL_LIMITS) -> None:
        """Prepare.

        Args:
            workers: The most child processes, each started when it is first needed.
            limits: What one file may cost in a child.
        """
        self._workers = max(1, workers)
        self._limits = limits
        self._threads: ThreadPoolExecutor | None = None
        self._idle: queue.SimpleQueue[ExtractionProcess] = queue.SimpleQueue()
        self._all: list[ExtractionProcess] = []
        self._is_closed = False

    def begin(self, original: Readable) -> Pending:
        """Start to extract one original; the end of its name says what it is.

        Returns:
            A call for the document; what costs little is read only then.
        """
        name = original.path.rpartition("/")[2]
        if not needs_child(name, original.size_bytes):
            return partial(_extract_here, original, name)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._workers, "extraction")
        return self._threads.submit(self._in_child, original, name).result

    def _in_child(self, original: Readable, name: str) -> Document:
        data = original.data()
        refuse_pointer(data, name=name)
        try:
            process = self._idle.get_nowait()
        except queue.Empty:
            process = ExtractionProcess(self._limits)
            self._all.append(process)
        if self._is_closed:
            # The executor does not know a thread whose start was interrupted.
            raise CancelledError
        try:
            return process.extract(data, name=name)
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """Give up what is being read, and end the child processes."""
        if self._threads is None:
            return
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._all:
            process.kill()
        self._threads.shutdown()


def needs_child(name: str, size_bytes: int) -> bool:
    """Whether a file is read in a process of its own."""
    extractor = extract.for_name(name)
    return extractor is not None and (extractor.isolated or size_bytes > HARMLESS_BYTES)


def _extract_here(original: Readable, name: str) -> Document:
    extractor = extract.for_name(name)
    if extractor is None:
        raise ExtractionError(
            f"{name}: no extractor reads this kind of file",
            remedy="convert it to text, Markdown, HTML or PDF"
            if extract.unread_document(name)
            else "leave it out: pictures, sound, archives and programs are not read",
        )
    return extractor.read(original.data(), name=name)

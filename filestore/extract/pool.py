"""Documents out of the bytes of originals, several at once.

Formats that can hurt are read in child processes, the others here. One rule: a file that cannot be
read is an error that names it, and affects no other.
"""

import queue
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol

from filestore import extract
from filestore.extract.base import Document, ExtractionError
from filestore.extract.process import ExtractionProcess, Limits

USUAL_LIMITS: Final = Limits()

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

    def __init__(self, *, workers: int, limits: Limits = USUAL_LIMITS) -> None:
        """Prepare.

        Args:
            workers: At most so many child processes, each started when it is first needed.
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
            remedy="convert it to text, Markdown, HTML, PDF, DOCX or PPTX",
        )
    return extractor.extract(original.data(), name=name)

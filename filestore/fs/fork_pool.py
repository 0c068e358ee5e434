"""Work in numbered blocks that this process and a forked child take in turns.

The child is forked first, so that it works while we do something else; then we join in. Not the
protocol of `subprocess_worker`: the work is a function over values already in memory and takes some
tenths of a second, less than a fresh interpreter needs to start; a child gets no messages, it takes
numbers from a pipe and writes one result. One rule: a child that dies costs time, never a result.
"""

import contextlib
import marshal
import os
import signal
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

MOST_BLOCKS: Final = 255
"""A block is one byte in a pipe: whoever reads it works on it."""

Value = TypeVar("Value")


@contextlib.contextmanager
def shared(
    count: int, work: Callable[[int], Value], *, processes: int
) -> Iterator[Callable[[], list[Value]]]:
    """Begin to work on some blocks.

    Args:
        count: How many there are, `MOST_BLOCKS` at most.
        work: What is done for one, in either process: its value is made of what `marshal` knows.
        processes: 2 forks a child; only for a process without threads. With 1 nothing is begun.

    Yields:
        What works on the rest, and gives the values of all blocks in their order.
    """
    if processes < 2 or count < 2:
        yield lambda: [work(number) for number in range(count)]
        return
    turns, given = os.pipe()
    os.write(given, bytes(range(count)))
    os.close(given)
    reader, writer = os.pipe()
    joined = _Joined(work, count)
    try:
        # Closed in any case before the child is waited for, which else may wait for us.
        with os.fdopen(reader, "rb") as sent, os.fdopen(turns, "rb", buffering=0):
            with _undisturbed():
                joined.begin(turns, reader, writer)
            yield lambda: joined.results(turns, sent.read)
    finally:
        joined.end()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait until whoever ends a child knows of it; the child itself is not asked."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


class _Joined(Generic[Value]):
    def __init__(self, work: Callable[[int], Value], count: int) -> None:
        self._work = work
        self._count = count
        self._child: int | None = None
        self._status: int | None = 1

    def begin(self, turns: int, reader: int, writer: int) -> None:
        """Fork the child, which alone has the end that is written to."""
        own = os.getpid()
        # Where no child can be forked, this process takes all turns, and nothing is sent.
        with contextlib.suppress(OSError):
            child = os.fork()
            if child == 0:
                os.close(reader)
                _run_child(self._work, turns, writer, parent=own)
            self._child, self._status = child, None
        os.close(writer)

    def end(self) -> None:
        """Leave no child behind; one whose results are not needed is killed."""
        if self._status is None and self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            self._wait()

    def _wait(self) -> int:
        if self._status is None and self._child is not None:
            _, self._status = os.waitpid(self._child, 0)
        return self._status or 0

    def results(self, turns: int, receive: Callable[[], bytes]) -> list[Value]:
        values = _take_turns(self._work, turns)
        sent = receive()
        if self._wait() == 0:
            values |= marshal.loads(sent)
        for number in range(self._count):
            if number not in values:
                values[number] = self._work(number)
        return [values[number] for number in range(self._count)]


def _take_turns(
    work: Callable[[int], Value], turns: int, *, parent: int | None = None
) -> dict[int, Value]:
    """Take turns that are still free; a child ends with its parent, even a killed one."""
    values: dict[int, Value] = {}
    while turn := os.read(turns, 1):
        if parent is not None and os.getppid() != parent:
            os._exit(1)
        values[turn[0]] = work(turn[0])
    return values


def _run_child(work: Callable[[int], object], turns: int, writer: int, *, parent: int) -> None:
    code = 1
    try:
        values = _take_turns(work, turns, parent=parent)
        with os.fdopen(writer, "wb") as stream:
            # Read only by the process that this one was forked from, through their own pipe.
            stream.write(marshal.dumps(values))
        code = 0
    finally:
        os._exit(code)

"""The child process: ``python -m tui.backstage.child``, which does jobs one after the other.

The store is worked on in the main thread alone, since an interruption is raised there and nowhere
else. Two more threads only read from the line and write to it. One rule: when the line ends, so
does this process, at the latest some moments after what is under way was interrupted.
"""

import contextlib
import gc
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from filestore import FilestoreError, Finding, Progress, Store
from tui.backstage.crossing import (
    Begin,
    Done,
    End,
    Failed,
    Interrupt,
    Message,
    Said,
    Stopped,
    as_error,
    pack,
    unpack,
)
from tui.backstage.jobs import JOBS
from tui.backstage.kept import KeptStore
from tui.backstage.process import own_line
from tui.backstage.tasks import Job

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

TOLD_EVERY_S: Final = 0.1
MOST_AT_ONCE: Final = 2_000
"""Findings in one message: the screen takes them between two keys."""
GRACE_S: Final = 1.5
"""What is under way may take so long to end once the screen is gone."""
_COLLECTED_AFTER: Final = (100_000, 20, 100)
"""Values of a large store form no cycles, and looking for them costs more than all the rest."""
_NICENESS: Final = 5
"""Work gives way to the screen, and to whatever else a person does meanwhile."""

_Saying = Progress | tuple[Finding, ...] | End


class Speaking:
    """Says what a job says, put together to ten messages a second, in a thread of its own."""

    def __init__(self, line: "Connection[Any, Any]") -> None:
        self._line = line
        # One that can be put to at any moment, also by a job that is interrupted while it does.
        self._said: queue.SimpleQueue[_Saying] = queue.SimpleQueue()
        threading.Thread(target=self._speak, name="speaking", daemon=True).start()

    def progress(self, progress: Progress) -> None:
        """Say how far it is."""
        self._said.put(progress)

    def found(self, findings: Sequence[Finding]) -> None:
        """Say what was found."""
        if findings:
            self._said.put(tuple(findings))

    def ended(self, end: End) -> None:
        """Say how it ended, after all the rest."""
        self._said.put(end)

    def _speak(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                for message in put_together(self._gathered()):
                    self._send(message)

    def _gathered(self) -> list[_Saying]:
        """What was said within a moment, or until the end; at least one thing."""
        said = [self._said.get()]
        until = time.monotonic() + TOLD_EVERY_S
        with contextlib.suppress(queue.Empty):
            while not isinstance(said[-1], Done | Failed | Stopped):
                said.append(self._said.get(timeout=max(0.0, until - time.monotonic())))
        return said

    def _send(self, message: Message) -> None:
        try:
            packed = pack(message)
        except Exception as error:  # whatever cannot cross is told as well
            packed = pack(Failed(error=as_error(error)))
        self._line.send_bytes(packed)


def put_together(said: Sequence[_Saying]) -> Iterator[Message]:
    """The last progress with some of the findings, the rest of them, and the end."""
    progress = next((one for one in reversed(said) if isinstance(one, Progress)), None)
    findings = [finding for one in said if isinstance(one, tuple) for finding in one]
    for first in range(0, max(1, len(findings)), MOST_AT_ONCE):
        some = tuple(findings[first : first + MOST_AT_ONCE])
        if some or progress is not None:
            yield Said(progress=progress, findings=some)
    if isinstance(said[-1], Done | Failed | Stopped):
        yield said[-1]


class Child:
    """The jobs of one lane, and what interrupts them."""

    def __init__(self, line: "Connection[Any, Any]", *, keeps_store: bool) -> None:
        self._line = line
        self._opening = unpack(line.recv_bytes())
        self._speaking = Speaking(line)
        self._begun: queue.SimpleQueue[Begin | None] = queue.SimpleQueue()
        self._under_way = 0
        """The number of the job that may be interrupted; 0 for none."""
        self._interrupted = 0
        self._is_over = False
        self._kept = KeptStore(partial(self._open, processes=1)) if keeps_store else None

    def run(self) -> None:
        """Do what comes until the line ends."""
        signal.signal(signal.SIGINT, self._interrupt)
        threading.Thread(target=self._listen, name="listening", daemon=True).start()
        while (begin := self._begun.get()) is not None:
            self._speaking.ended(self._end_of(begin))
        self._let_go()

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """Interrupt the job that is meant, and no other that has begun since."""
        if self._under_way and (self._is_over or self._interrupted == self._under_way):
            raise KeyboardInterrupt

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = unpack(self._line.recv_bytes())
                if isinstance(message, Interrupt):
                    self._interrupted = message.number
                    _signal_main_thread()
                else:
                    self._begun.put(message)
        self._is_over = True
        self._begun.put(None)
        _signal_main_thread()
        time.sleep(GRACE_S)
        _kill_all()

    def _end_of(self, begin: Begin) -> End:
        try:
            return self._attempt(begin)
        except FilestoreError as error:
            return Failed(error=error)
        except KeyboardInterrupt:
            self._under_way = 0
            self._let_go()
            return Stopped()
        except Exception as error:  # the top of a worker: whatever it is, it is told
            self._under_way = 0
            self._let_go()
            return Failed(error=as_error(error))

    def _attempt(self, begin: Begin) -> End:
        self._under_way = begin.number
        try:
            if self._is_over or self._interrupted == begin.number:
                return Stopped()
            return Done(value=self._do(begin.job))
        finally:
            self._under_way = 0

    def _do(self, job: Job) -> Any:
        work = JOBS[job.name]
        if self._kept is not None:
            return work(self._kept.get(), self._speaking, **job.arguments)
        with self._open(processes=os.cpu_count() or 1) as store:
            return work(store, self._speaking, **job.arguments)

    def _open(self, *, processes: int) -> Store:
        # The other threads only wait for the line: a child that is forked misses nothing of them.
        return Store(
            self._opening.root,
            configuration=self._opening.configuration,
            processes=processes,
            on_wait=self._tell_waiting,
        )

    def _tell_waiting(self, holder: str) -> None:
        self._speaking.progress(Progress(stage=f"waiting for {holder}", done=0, total=None))

    def _let_go(self) -> None:
        if self._kept is not None:
            self._kept.close()


def _signal_main_thread() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _kill_all() -> None:
    """End this process, with what it started where nobody else is in its group."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def main(arguments: Sequence[str]) -> None:
    """Run the child of a lane: its name, and the handle of its line."""
    gc.set_threshold(*_COLLECTED_AFTER)
    is_work = arguments[0] == "work"
    if is_work:
        with contextlib.suppress(OSError):
            os.nice(_NICENESS)
    Child(own_line(arguments), keeps_store=not is_work).run()


if __name__ == "__main__":
    main(sys.argv[1:])

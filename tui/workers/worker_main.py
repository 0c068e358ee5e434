"""The child process: ``python -m tui.workers.worker_main``, which does jobs one after the other.

The store is worked on in the main thread alone, since an interruption is raised there and nowhere
else. Two more threads only read from the line and write to it. One rule: when the line ends, so
does this process, at the latest some moments after what is running was interrupted.
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
from typing import Any, Final

from filestore import FilestoreError, Finding, Progress
from filestore.browse import InspectedStore
from filestore.fs.programs import Line, parent_line
from tui.workers.faults import report_uncaught
from tui.workers.reader_thread import StoreCache
from tui.workers.tasks import (
    JOBS,
    Begin,
    Done,
    End,
    Failed,
    Interrupt,
    Job,
    Message,
    Stopped,
    Update,
    as_error,
    pack,
    unpack,
)

SENT_EVERY_S: Final = 0.1
MOST_AT_ONCE: Final = 2_000
"""Findings in one message: the screen takes them between two keys."""
GRACE_S: Final = 1.5
"""How long a job may take to end once the screen is gone."""
_COLLECTED_AFTER: Final = (100_000, 20, 100)
"""Values of a large store form no cycles, and collections would take most of the time."""
_NICENESS: Final = 5
"""The screen, and whatever else runs, goes first."""

_Message = Progress | tuple[Finding, ...] | End


class MessageSender:
    """Sends what a job reports, merged to ten messages a second, in a thread of its own."""

    def __init__(self, line: Line) -> None:
        self._line = line
        # A SimpleQueue: a job may be interrupted in the middle of a put.
        self._queue: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        threading.Thread(target=self._send, name="sending", daemon=True).start()

    def progress(self, progress: Progress) -> None:
        """Report progress."""
        self._queue.put(progress)

    def found(self, findings: Sequence[Finding]) -> None:
        """Report findings."""
        if findings:
            self._queue.put(tuple(findings))

    def ended(self, end: End) -> None:
        """Report the end, after all the rest."""
        self._queue.put(end)

    def _send(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                for message in merged(self._gathered()):
                    try:
                        packed = pack(message)
                    except Exception as error:  # what cannot be pickled is reported as well
                        packed = pack(Failed(error=as_error(error)))
                    self._line.send(packed)

    def _gathered(self) -> list[_Message]:
        """The messages of a moment, or until the end; at least one."""
        messages = [self._queue.get()]
        until = time.monotonic() + SENT_EVERY_S
        with contextlib.suppress(queue.Empty):
            while not isinstance(messages[-1], Done | Failed | Stopped):
                messages.append(self._queue.get(timeout=max(0.0, until - time.monotonic())))
        return messages


def merged(messages: Sequence[_Message]) -> Iterator[Message]:
    """The last progress with some of the findings, the rest of them, and the end."""
    progress = next((one for one in reversed(messages) if isinstance(one, Progress)), None)
    findings = [finding for one in messages if isinstance(one, tuple) for finding in one]
    for first in range(0, max(1, len(findings)), MOST_AT_ONCE):
        some = tuple(findings[first : first + MOST_AT_ONCE])
        if some or progress is not None:
            yield Update(progress=progress, findings=some)
    if isinstance(messages[-1], Done | Failed | Stopped):
        yield messages[-1]


class JobRunner:
    """The jobs of one worker process, and what interrupts them."""

    def __init__(self, line: Line, *, keeps_store: bool) -> None:
        self._line = line
        self._opening = unpack(line.receive())
        self._sender = MessageSender(line)
        self._begun: queue.SimpleQueue[Begin | None] = queue.SimpleQueue()
        self._under_way = 0
        """The number of the job that may be interrupted; 0 for none."""
        self._interrupted = 0
        self._is_over = False
        self._kept = StoreCache(partial(self._open, processes=1)) if keeps_store else None

    def run(self) -> None:
        """Do what comes until the line ends."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            """Interrupt the job that is meant, and no other that has begun since."""
            if self._under_way and (self._is_over or self._interrupted == self._under_way):
                raise KeyboardInterrupt

        signal.signal(signal.SIGINT, interrupt)
        threading.Thread(target=self._listen, name="listening", daemon=True).start()
        while (begin := self._begun.get()) is not None:
            self._sender.ended(self._end_of(begin))
        self._close_store()

    def _listen(self) -> None:
        for packed in self._line:
            message = unpack(packed)
            if isinstance(message, Interrupt):
                self._interrupted = message.number
                _signal_main_thread()
            else:
                self._begun.put(message)
        self._is_over = True
        self._begun.put(None)
        _signal_main_thread()
        time.sleep(GRACE_S)
        # End this process, and what it started if it leads its own group.
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)

    def _end_of(self, begin: Begin) -> End:
        try:
            try:
                self._under_way = begin.number
                if self._is_over or self._interrupted == begin.number:
                    return Stopped()
                return Done(value=self._do(begin.job))
            finally:
                self._under_way = 0
        except FilestoreError as error:
            return Failed(error=error)
        except KeyboardInterrupt:
            self._under_way = 0
            self._close_store()
            return Stopped()
        except Exception as error:  # the top of a worker: whatever it is, it is reported
            self._close_store()
            return Failed(error=as_error(error))

    def _do(self, job: Job) -> Any:
        work = JOBS[job.name]
        if self._kept is not None:
            return work(self._kept.get(), self._sender, **job.arguments)
        with self._open(processes=os.cpu_count() or 1) as store:
            return work(store, self._sender, **job.arguments)

    def _open(self, *, processes: int) -> InspectedStore:
        def report_waiting(holder: str) -> None:
            self._sender.progress(Progress(stage=f"waiting for {holder}", done=0, total=None))

        # The other threads only wait for the line: a forked child needs nothing of them.
        return InspectedStore(
            self._opening.root,
            configuration=self._opening.configuration,
            processes=processes,
            on_wait=report_waiting,
        )

    def _close_store(self) -> None:
        if self._kept is not None:
            self._kept.close()


def _signal_main_thread() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def main(arguments: Sequence[str]) -> None:
    """Run a worker: "work" or "questions"."""
    report_uncaught()
    gc.set_threshold(*_COLLECTED_AFTER)
    is_work = arguments[0] == "work"
    if is_work:
        with contextlib.suppress(OSError):
            os.nice(_NICENESS)
    JobRunner(parent_line(), keeps_store=not is_work).run()


if __name__ == "__main__":
    main(sys.argv[1:])

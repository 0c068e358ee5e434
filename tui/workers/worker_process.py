"""A worker process, both ends: a thread of the inspector, and ``python -m`` of this module.

The child is started with the first job, and anew after one for work was idle and ended. It does one
job after the other, in its main thread alone, since an interruption is raised there and nowhere
else; two more threads only read from the line and write to it. One rule: only the one thread talks
to the child, whose messages reach the screen in their order; and when the line ends, so does the
child, at the latest some moments after what is running was interrupted.
"""

import contextlib
import gc
import os
import queue
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any, Final, Literal

from msgspec import Struct

from filestore import FilestoreError, Finding, Progress
from filestore.browse import InspectedStore
from filestore.fs.programs import Child, Line, parent_line
from tui.workers import tasks
from tui.workers.faults import died, report_uncaught

MODULE: Final = "tui.workers.worker_process"
ENDED_WITHIN_S: Final = 3.0
"""How long a child may take to end with the inspector; then it is killed, safely."""
_ALIVE_S: Final = 0.5
"""How often the child is checked for being alive."""
_DEAD_WITHIN_S: Final = 1.0
"""How long a process whose line is closed may take to end."""
IDLE_S: Final = 5.0
"""How long a child for work may wait for the next job; then it ends, and its memory is free."""
_STEPS: Final = (("interrupt", 0.0), ("interrupt", 10.0), ("terminate", 15.0), ("kill", 17.0))
"""What is done to a job that is to stop, and after how many seconds."""

WorkerName = Literal["questions", "work"]


class Begun(Struct, frozen=True, kw_only=True):
    """A job is running."""


class JobHandle(Struct, kw_only=True, eq=False):
    """A job in a worker's queue, or running."""

    job: tasks.Job
    task: tasks.Task
    handlers: tasks.Handlers
    group: str = ""
    """What a question is about: a newer one of it replaces this one; "" for none."""
    report: Callable[[Begun | tasks.Update | tasks.End], None] = lambda _: None
    """Called in the worker's thread with `Begun`, updates, and the end."""
    stop_at: float | None = None
    """When it was asked to stop."""


class WorkerProcess:
    """One child process at a time. Its methods are called on the screen's thread."""

    def __init__(self, opening: Any, name: WorkerName) -> None:
        """Start nothing yet.

        Args:
            opening: Which store; sent to the child first.
            name: "work" opens the store for every job and ends idle, "questions" keeps it open.
        """
        self._opening = opening
        self._name: WorkerName = name
        self._lock = threading.Lock()
        self._waiting: deque[JobHandle] = deque()
        self._ended = False
        self._thread: threading.Thread | None = None
        self._wake_in, self._wake_out = -1, -1
        self._child: Child | None = None
        self._jobs = 0

    def take(self, handle: JobHandle) -> None:
        """Queue a job."""
        with self._lock:
            if self._ended:
                return
            self._waiting.append(handle)
        if self._thread is None:
            self._wake_out, self._wake_in = os.pipe()
            os.set_blocking(self._wake_in, False)
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._wake()

    def drop(self, handle: JobHandle) -> bool:
        """Remove a job that has not begun from the queue; whether it was there."""
        with self._lock:
            if handle in self._waiting:
                self._waiting.remove(handle)
                return True
        return False

    def stop(self, handle: JobHandle) -> None:
        """Stop a job at the next moment at which the store is safe."""
        handle.stop_at = handle.stop_at or time.monotonic()
        self._wake()

    def begin_end(self) -> None:
        """Stop what is running and take nothing more."""
        with self._lock:
            self._ended = True
            self._waiting.clear()
        self._wake()

    def end(self) -> None:
        """Return when neither the child nor the thread is left."""
        self.begin_end()
        if self._thread is None:
            return
        self._thread.join(2 * ENDED_WITHIN_S)
        if not self._thread.is_alive() and self._wake_in >= 0:
            os.close(self._wake_in)
            os.close(self._wake_out)
            self._wake_in = self._wake_out = -1

    def _wake(self) -> None:
        if self._wake_in >= 0:
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_in, b".")

    def _run(self) -> None:
        while (handle := self._next()) is not None:
            handle.report(Begun())
            try:
                end = self._listen(*self._begin(handle.job), handle)
            except OSError as error:
                # The process cannot be started, or it is gone.
                end = self._end_broken(error, was_stopped=handle.stop_at is not None)
            except Exception as error:  # the top of the thread: whatever it is, it is reported
                end = self._end_broken(tasks.as_error(error), was_stopped=False)
            if not self._ended:
                handle.report(end)
        if self._child is not None:
            self._child.close(ENDED_WITHIN_S)
            self._child = None

    def _next(self) -> JobHandle | None:
        """The next handle; None for the end."""
        while True:
            with self._lock:
                if self._ended:
                    return None
                if self._waiting:
                    return self._waiting.popleft()
            self._rest()

    def _rest(self) -> None:
        """Wait for what is next. Work keeps no store open: idle, its child costs only memory."""
        waiting = select.poll()
        waiting.register(self._wake_out, select.POLLIN)
        is_kept = self._child is None or self._name == "questions"
        if waiting.poll(None if is_kept else 1000 * IDLE_S):
            os.read(self._wake_out, 4096)
        elif self._child is not None:
            self._child.close(ENDED_WITHIN_S)
            self._child = None

    def _begin(self, job: tasks.Job) -> tuple[Child, int]:
        """Hand a job to the child; one that died while it had nothing to do is replaced."""
        self._jobs += 1
        begin = tasks.Begin(number=self._jobs, job=job)
        if self._child is not None:
            with contextlib.suppress(OSError):
                if self._child.is_alive:
                    self._child.send(tasks.pack(begin))
                    return self._child, begin.number
            self._child.kill()
            self._child = None
        self._child = Child(MODULE, self._name, own_session=True)
        self._child.send(tasks.pack(self._opening))
        self._child.send(tasks.pack(begin))
        return self._child, begin.number

    def _listen(self, child: Child, number: int, handle: JobHandle) -> tasks.End:
        waiting = select.poll()
        waiting.register(child, select.POLLIN)
        waiting.register(self._wake_out, select.POLLIN)
        steps = iter(_STEPS)
        step = next(steps)
        while not self._ended:
            if handle.stop_at is not None and time.monotonic() >= handle.stop_at + step[1]:
                how = step[0]
                if how == "interrupt":
                    child.send(tasks.pack(tasks.Interrupt(number=number)))
                elif how == "terminate":
                    child.terminate()
                else:
                    raise ConnectionAbortedError("the child process did not stop")
                step = next(steps, ("kill", step[1] + 1.0))
            ready = {handle for handle, _ in waiting.poll(1000 * _ALIVE_S)}
            if self._wake_out in ready:
                os.read(self._wake_out, 4096)
            if child.fileno() in ready:
                message = tasks.unpack(child.receive())
                if not isinstance(message, tasks.Update):
                    if isinstance(message, tasks.Done | tasks.Failed | tasks.Stopped):
                        return message
                    raise TypeError(
                        f"unexpected message of a child process: {type(message).__name__}"
                    )
                handle.report(message)
            elif not child.is_alive:
                raise ConnectionAbortedError("the child process ended")
        return tasks.Stopped()

    def _end_broken(self, error: Exception, *, was_stopped: bool) -> tasks.End:
        """End a broken child process; how its job ended."""
        child, self._child = self._child, None
        if child is None:
            return tasks.Failed(
                error=FilestoreError(
                    f"the worker process cannot be started: {error}"
                    "; close other programs or free disk space, then try again"
                )
            )
        if was_stopped:
            child.kill()
            return tasks.Stopped()
        child.wait(_DEAD_WITHIN_S)
        output = child.last_output()
        status = child.kill()
        known = error if isinstance(error, FilestoreError) else None
        return tasks.Failed(error=known or died(status, output))


SENT_EVERY_S: Final = 0.1
MOST_AT_ONCE: Final = 2_000
"""Findings in one message: the screen takes them between two keys."""
GRACE_S: Final = 1.5
"""How long a job may take to end once the screen is gone."""
_COLLECTED_AFTER: Final = (100_000, 20, 100)
"""Values of a large store form no cycles, and collections would take most of the time."""
_NICENESS: Final = 5
"""The screen, and whatever else runs, goes first."""

_Message = Progress | tuple[Finding, ...] | str | tasks.End


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

    def printed(self, line: str) -> None:
        """Report a line that a command printed."""
        self._queue.put(line)

    def ended(self, end: tasks.End) -> None:
        """Report the end, after all the rest."""
        self._queue.put(end)

    def _send(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                for message in merged(self._gathered()):
                    try:
                        packed = tasks.pack(message)
                    except Exception as error:  # what cannot be pickled is reported as well
                        packed = tasks.pack(tasks.Failed(error=tasks.as_error(error)))
                    self._line.send(packed)

    def _gathered(self) -> list[_Message]:
        """The messages of a moment, or until the end; at least one."""
        messages = [self._queue.get()]
        until = time.monotonic() + SENT_EVERY_S
        with contextlib.suppress(queue.Empty):
            while not isinstance(messages[-1], tasks.Done | tasks.Failed | tasks.Stopped):
                messages.append(self._queue.get(timeout=max(0.0, until - time.monotonic())))
        return messages


def merged(messages: Sequence[_Message]) -> Iterator[tasks.Message]:
    """The last progress, what was printed, some of the findings; the rest of them; the end."""
    progress = next((one for one in reversed(messages) if isinstance(one, Progress)), None)
    findings = [finding for one in messages if isinstance(one, tuple) for finding in one]
    printed = tuple(one for one in messages if isinstance(one, str))[-tasks.MOST_PRINTED :]
    for first in range(0, max(1, len(findings)), MOST_AT_ONCE):
        some = tuple(findings[first : first + MOST_AT_ONCE])
        if some or printed or progress is not None:
            yield tasks.Update(progress=progress, findings=some, printed=printed)
        printed = ()
    if isinstance(messages[-1], tasks.Done | tasks.Failed | tasks.Stopped):
        yield messages[-1]


class JobRunner:
    """The jobs of one worker process, and what interrupts them."""

    def __init__(self, line: Line, *, keeps_store: bool) -> None:
        self._line = line
        self._opening = tasks.unpack(line.receive())
        self._sender = MessageSender(line)
        self._begun: queue.SimpleQueue[tasks.Begin | None] = queue.SimpleQueue()
        self._under_way = 0
        """The number of the job that may be interrupted; 0 for none."""
        self._interrupted = 0
        self._is_over = False
        self._kept = tasks.StoreCache(partial(self._open, processes=1)) if keeps_store else None

    def run(self) -> None:
        """Do what comes until the line ends."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            """Interrupt the job that was named, and no other that has begun since."""
            if self._under_way and (self._is_over or self._interrupted == self._under_way):
                raise KeyboardInterrupt

        signal.signal(signal.SIGINT, interrupt)
        threading.Thread(target=self._listen, name="listening", daemon=True).start()
        while (begin := self._begun.get()) is not None:
            self._sender.ended(self._end_of(begin))
        self._close_store()

    def _listen(self) -> None:
        for packed in self._line:
            message = tasks.unpack(packed)
            if isinstance(message, tasks.Interrupt):
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

    def _end_of(self, begin: tasks.Begin) -> tasks.End:
        try:
            try:
                self._under_way = begin.number
                if self._is_over or self._interrupted == begin.number:
                    return tasks.Stopped()
                work, given = tasks.JOBS[begin.job.name], begin.job.arguments
                if self._kept is not None:
                    return tasks.Done(value=work(self._kept.get(), self._sender, **given))
                with self._open(processes=os.cpu_count() or 1) as store:
                    return tasks.Done(value=work(store, self._sender, **given))
            finally:
                self._under_way = 0
        except KeyboardInterrupt:
            self._under_way = 0
            self._close_store()
            return tasks.Stopped()
        except Exception as error:  # the top of a worker: whatever it is, it is reported
            if not isinstance(error, FilestoreError):
                self._close_store()
            return tasks.Failed(error=tasks.as_error(error))

    def _open(self, *, processes: int) -> InspectedStore:
        report = self._sender.progress
        # The other threads only wait for the line: a forked child needs nothing of them.
        return InspectedStore(
            self._opening.root,
            configuration=self._opening.configuration,
            processes=processes,
            on_wait=lambda holder: report(
                Progress(stage=f"waiting for {holder}", done=0, total=None)
            ),
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

"""A worker process: one job after the other, and the thread that talks to it.

The child is started with the first job. One rule: only that thread talks to the child,
and the child's messages reach the screen in their order.
"""

import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from filestore import FilestoreError
from filestore.fs.programs import Child
from tui.workers.faults import died
from tui.workers.tasks import (
    Begin,
    Done,
    End,
    Failed,
    Handlers,
    Interrupt,
    Job,
    Stopped,
    Task,
    Update,
    as_error,
    pack,
    unpack,
)

MODULE: Final = "tui.workers.worker_main"
ENDED_WITHIN_S: Final = 3.0
"""How long a child may take to end with the inspector; then it is killed, safely."""
_ALIVE_S: Final = 0.5
"""How often the child is checked for being alive."""
_DEAD_WITHIN_S: Final = 1.0
"""How long a process whose line is closed may take to end."""
_STEPS: Final = (("interrupt", 0.0), ("interrupt", 10.0), ("terminate", 15.0), ("kill", 17.0))
"""What is done to a job that is to stop, and after how many seconds."""

WorkerName = Literal["questions", "work"]


class Begun(Struct, frozen=True, kw_only=True):
    """A job is running."""


class JobHandle(Struct, kw_only=True, eq=False):
    """A job in a worker's queue, or running."""

    job: Job
    task: Task
    handlers: Handlers
    group: str = ""
    """What a question is about: a newer one of it replaces this one; "" for none."""
    report: Callable[[Begun | Update | End], None] = lambda _: None
    """Called in the worker's thread with `Begun`, updates, and the end."""
    stop_at: float | None = None
    """When it was asked to stop."""


class WorkerProcess:
    """One child process at a time. Its methods are called on the screen's thread."""

    def __init__(self, opening: Any, name: WorkerName) -> None:
        """Start nothing yet.

        Args:
            opening: Which store; sent to the child first.
            name: "work" opens the store for every job, "questions" keeps it open.
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
                end = self._end_broken(as_error(error), was_stopped=False)
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
            os.read(self._wake_out, 4096)

    def _begin(self, job: Job) -> tuple[Child, int]:
        """Hand a job to the child; one that died while it had nothing to do is replaced."""
        self._jobs += 1
        begin = Begin(number=self._jobs, job=job)
        if self._child is not None:
            with contextlib.suppress(OSError):
                if self._child.is_alive:
                    self._child.send(pack(begin))
                    return self._child, begin.number
            self._child.kill()
            self._child = None
        self._child = Child(MODULE, self._name, own_session=True)
        self._child.send(pack(self._opening))
        self._child.send(pack(begin))
        return self._child, begin.number

    def _listen(self, child: Child, number: int, handle: JobHandle) -> End:
        waiting = select.poll()
        waiting.register(child, select.POLLIN)
        waiting.register(self._wake_out, select.POLLIN)
        steps = iter(_STEPS)
        step = next(steps)
        while not self._ended:
            if handle.stop_at is not None and time.monotonic() >= handle.stop_at + step[1]:
                how = step[0]
                if how == "interrupt":
                    child.send(pack(Interrupt(number=number)))
                elif how == "terminate":
                    child.terminate()
                else:
                    raise ConnectionAbortedError("the child process did not stop")
                step = next(steps, ("kill", step[1] + 1.0))
            ready = {handle for handle, _ in waiting.poll(1000 * _ALIVE_S)}
            if self._wake_out in ready:
                os.read(self._wake_out, 4096)
            if child.fileno() in ready:
                message = unpack(child.receive())
                if not isinstance(message, Update):
                    if isinstance(message, Done | Failed | Stopped):
                        return message
                    raise TypeError(
                        f"unexpected message of a child process: {type(message).__name__}"
                    )
                handle.report(message)
            elif not child.is_alive:
                raise ConnectionAbortedError("the child process ended")
        return Stopped()

    def _end_broken(self, error: Exception, *, was_stopped: bool) -> End:
        """End a broken child process; how its job ended."""
        child, self._child = self._child, None
        if child is None:
            return Failed(
                error=FilestoreError(
                    f"the worker process cannot be started: {error}",
                    remedy="close other programs or free disk space, then try again",
                )
            )
        if was_stopped:
            child.kill()
            return Stopped()
        child.wait(_DEAD_WITHIN_S)
        output = child.last_output()
        status = child.kill()
        known = error if isinstance(error, FilestoreError) else None
        return Failed(error=known or died(status, output))

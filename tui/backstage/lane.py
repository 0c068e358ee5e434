"""A lane: jobs one after the other in a child process, and the thread that listens to it.

The child is started with the first job. One rule: only the thread of the lane speaks to the child,
and what the child says reaches the screen as it was said, in its order.
"""

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from filestore import FilestoreError
from tui.backstage.crossing import Begin, Done, End, Failed, Interrupt, Said, Stopped, as_error
from tui.backstage.process import ChildProcess
from tui.backstage.tasks import Job

MODULE: Final = "tui.backstage.child"
ENDED_WITHIN_S: Final = 3.0
"""What a child may take to end with the inspector; then it is killed: the store bears it."""
_ALIVE_S: Final = 0.5
"""So often it is asked whether the child is there at all."""
_DEAD_WITHIN_S: Final = 1.0
"""What a process whose line is closed may take to be gone."""
_STEPS: Final = (("interrupt", 0.0), ("interrupt", 10.0), ("terminate", 15.0), ("kill", 17.0))
"""What is done to a job that is to stop, and after how many seconds."""

LaneName = Literal["questions", "work"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A job is under way."""


@dataclass(slots=True, kw_only=True, eq=False)
class Errand:
    """A job on its way through a lane."""

    job: Job
    heard: Callable[[Begun | Said | End], None]
    """Called in the thread of the lane with `Begun`, what is said, and how it ended."""
    stop_at: float | None = None
    """When somebody wanted it stopped."""


class Lane:
    """One child process at a time. Its methods are called on the screen's thread."""

    def __init__(self, opening: Any, name: LaneName) -> None:
        """Start nothing yet.

        Args:
            opening: Which store, as the child is told.
            name: "work" opens the store for every job, "questions" keeps it open.
        """
        self._opening = opening
        self._name: LaneName = name
        self._lock = threading.Lock()
        self._waiting: deque[Errand] = deque()
        self._ended = False
        self._thread: threading.Thread | None = None
        self._wake_in, self._wake_out = -1, -1
        self._child: ChildProcess | None = None
        self._jobs = 0

    def take(self, errand: Errand) -> None:
        """Do something, once what was taken before is done."""
        with self._lock:
            if self._ended:
                return
            self._waiting.append(errand)
        if self._thread is None:
            self._wake_out, self._wake_in = os.pipe()
            os.set_blocking(self._wake_in, False)
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._wake()

    def drop(self, errand: Errand) -> bool:
        """Forget what was not begun; whether that was so."""
        with self._lock:
            if errand in self._waiting:
                self._waiting.remove(errand)
                return True
        return False

    def stop(self, errand: Errand) -> None:
        """Have it stopped, at the next moment at which the store is safe."""
        errand.stop_at = errand.stop_at or time.monotonic()
        self._wake()

    def begin_end(self) -> None:
        """Stop what is under way and take nothing more."""
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
        while (errand := self._next()) is not None:
            errand.heard(Begun())
            end = self._carry_out(errand)
            if not self._ended:
                errand.heard(end)
        if self._child is not None:
            self._child.end(within_s=ENDED_WITHIN_S)
            self._child = None

    def _next(self) -> Errand | None:
        """The next errand; None for the end."""
        while True:
            with self._lock:
                if self._ended:
                    return None
                if self._waiting:
                    return self._waiting.popleft()
            os.read(self._wake_out, 4096)

    def _carry_out(self, errand: Errand) -> End:
        try:
            child, number = self._begin(errand.job)
            return self._listen(child, number, errand)
        except OSError as error:
            # What the process was started for cannot be started, or it is gone.
            return self._buried(error, was_stopped=errand.stop_at is not None)
        except Exception as error:  # the top of the thread: whatever it is, it is told
            return self._buried(as_error(error), was_stopped=False)

    def _begin(self, job: Job) -> tuple[ChildProcess, int]:
        """Hand a job to the child; one that died while it had nothing to do is replaced."""
        self._jobs += 1
        begin = Begin(number=self._jobs, job=job)
        if self._child is not None:
            with contextlib.suppress(OSError):
                if self._child.is_alive:
                    self._child.send(begin)
                    return self._child, begin.number
            self._child.kill()
            self._child = None
        self._child = ChildProcess(MODULE, self._name)
        self._child.send(self._opening)
        self._child.send(begin)
        return self._child, begin.number

    def _listen(self, child: ChildProcess, number: int, errand: Errand) -> End:
        from multiprocessing.connection import wait

        steps = iter(_STEPS)
        step = next(steps)
        while not self._ended:
            if errand.stop_at is not None and time.monotonic() >= errand.stop_at + step[1]:
                _press(child, number, step[0])
                step = next(steps, ("kill", step[1] + 1.0))
            ready = wait([child.line, self._wake_out], _ALIVE_S)
            if self._wake_out in ready:
                os.read(self._wake_out, 4096)
            if child.line in ready:
                message = child.receive()
                if not isinstance(message, Said):
                    return _as_end(message)
                errand.heard(message)
            elif not child.is_alive:
                raise ConnectionAbortedError("the child process ended")
        return Stopped()

    def _buried(self, error: Exception, *, was_stopped: bool) -> End:
        """What is told of a child that is of no use any more."""
        child, self._child = self._child, None
        if child is None:
            return Failed(error=_not_started(error))
        words = child.last_words()
        if was_stopped:
            child.kill()
            return Stopped()
        status = child.end(within_s=_DEAD_WITHIN_S)
        if isinstance(error, FilestoreError):
            return Failed(error=error)
        return Failed(error=_died(status, words))


def _as_end(message: Any) -> End:
    if isinstance(message, Done | Failed | Stopped):
        return message
    raise TypeError(f"a child process said {type(message).__name__}")


def _press(child: ChildProcess, number: int, how: str) -> None:
    if how == "interrupt":
        child.send(Interrupt(number=number))
    elif how == "terminate":
        child.terminate()
    else:
        raise ConnectionAbortedError("the child process did not stop")


def _not_started(error: Exception) -> FilestoreError:
    return FilestoreError(
        f"the process that works on the store cannot be started: {error}",
        remedy="end other programs, or see whether the disk is full, then try again",
    )


def _died(status: int, words: str) -> FilestoreError:
    why = f"with status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"
    remedy = "what was done until then stays, and the store is sound; try it again"
    if status == -signal.SIGKILL:
        remedy = f"see whether memory ran out; {remedy}"
    return FilestoreError(
        f"the process that works on the store ended, {why}", remedy=remedy, detail=words
    )

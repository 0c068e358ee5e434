"""Long work and questions as values: what to do, and the progress. Pure."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from filestore import FilestoreError, Finding
from tui.formatting.lines import Line, progress_line

TaskState = Literal["waiting", "running", "stopping", "done", "failed", "stopped"]


class Job(Struct, frozen=True, kw_only=True):
    """A job for a child process; see `jobs.JOBS` for names, arguments and results.

    Arguments and results cross to another process: plain values and structs of the store.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Task(Struct, kw_only=True):
    """One piece of long work, or one question, as the tasks panel shows it."""

    title: str
    """A few words: "verify (full)"."""
    writes: bool = False
    is_question: bool = False
    """Whether it runs beside all work and blocks nothing."""
    state: TaskState = "waiting"
    stage: str = ""
    done: int = 0
    total: int | None = None
    started_s: float = field(default_factory=time.monotonic)
    ended_s: float | None = None
    outcome: str = ""
    """In a few words, once it ended."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in ("done", "failed", "stopped")

    @property
    def elapsed_s(self) -> float:
        """How long it takes so far, or took."""
        return (self.ended_s or time.monotonic()) - self.started_s

    def progress(self, *, width: int = 24, title: str = "") -> Line:
        """How far it is, in one line, with a bar of a width and perhaps a title."""
        stage = f"{title}  {self.stage or 'beginning'}" if title else self.stage
        return progress_line(
            stage, done=self.done, total=self.total, elapsed_s=self.elapsed_s, width=width
        )


class Handlers(Struct, frozen=True, kw_only=True):
    """What is called, on the screen's thread, as a job goes on.

    None is called after another job of the same group took its place.
    """

    then: Callable[[Any], None]
    failed: Callable[[FilestoreError], None] | None = None
    """None: the frame shows it (`ViewContext.fail`)."""
    found: Callable[[Sequence[Finding]], None] | None = None
    """Findings as they come, some at a time, at most ten times a second."""
    stopped: Callable[[], None] | None = None
    """Work was stopped, and what it did stays; or a question was cancelled."""

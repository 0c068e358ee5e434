"""Long work and questions as values: what is to be done, and how far it is. Pure."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from filestore import FilestoreError, Finding

TaskState = Literal["waiting", "running", "stopping", "done", "failed", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something for a child process; see `jobs.JOBS` for the names and what each takes and gives.

    Everything in it, and everything it gives, crosses to another process: plain values and
    dataclasses of the store.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Task:
    """One piece of long work, or one question, as the tasks panel shows it."""

    title: str
    """A few words: "verify (full)"."""
    command: str = ""
    """The command line that does the same."""
    writes: bool = False
    is_question: bool = False
    """Whether it is only asked, beside all work: it keeps nothing else from being done."""
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
        """Whether nothing more will come of it."""
        return self.state in ("done", "failed", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """What is called, on the screen's thread, as a job goes on.

    None is called after another job of the same group took its place.
    """

    then: Callable[[Any], None]
    failed: Callable[[FilestoreError], None] | None = None
    """None: the frame tells it (`Desk.fail`)."""
    found: Callable[[Sequence[Finding]], None] | None = None
    """Findings as they come, some at a time, at most ten times a second."""
    stopped: Callable[[], None] | None = None
    """It was stopped: what was done until then stays done. Of a question: it was given up."""

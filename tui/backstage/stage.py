"""Backstage: hands reads to the reading thread, and jobs to the child processes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from filestore import FilestoreError, Store
from tui.backstage.crossing import Done, End, Failed, Said, Stopped
from tui.backstage.lane import Begun, Errand, Lane
from tui.backstage.reading import Reading
from tui.backstage.seldom import Seldom
from tui.backstage.tasks import Handlers, Job, Task

Value = TypeVar("Value")

_CHANGED_EVERY_S: Final = 0.1
_ENDED_KEPT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Which store, for a process or thread to open it on its own."""

    root: str
    configuration: str

    def store(self) -> Store:
        """The store, opened."""
        return Store(self.root, configuration=self.configuration)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    task: Task
    errand: Errand
    handlers: Handlers


class Backstage:
    """The store behind the screen.

    Every method is called on the screen's thread and returns at once; every callback is called
    there too, through `post`.
    """

    def __init__(
        self,
        opening: Opening,
        *,
        post: Callable[[Callable[[], None]], None],
        failed: Callable[[FilestoreError], None],
        changed: Callable[[], None],
    ) -> None:
        """Start nothing yet: thread and processes begin with the first thing asked of them.

        Args:
            opening: The store.
            post: Has a function called on the screen's thread, from any thread; waits for nothing.
            failed: Told of errors that nobody else takes.
            changed: Told, on the screen's thread and at most ten times a second, that `tasks`
                are not what they were.
        """
        self._post = post
        self._failed = failed
        self._changed = Seldom(changed, post=post, every_s=_CHANGED_EVERY_S)
        self._reading = Reading(opening.store, post=post)
        self._questions = Lane(opening, "questions")
        self._lane = Lane(opening, "work")
        self._newest: dict[str, Errand] = {}
        self._works: list[_Work] = []
        self._ended = False

    @property
    def tasks(self) -> list[Task]:
        """All work, oldest first; what ended stays in the list, the last hundred of it."""
        return [work.task for work in self._works]

    @property
    def busy(self) -> Task | None:
        """The work under way; where none has begun, what is about to."""
        left = [task for task in self.tasks if not task.is_over]
        begun = (task for task in left if task.state != "waiting")
        return next(begun, left[0] if left else None)

    def read(
        self,
        question: Callable[[Store], Value],
        then: Callable[[Value], None],
        *,
        group: str,
        failed: Callable[[FilestoreError], None] | None = None,
        urgent: bool = False,
    ) -> None:
        """Ask the store something short, in the reading thread.

        A newer question of the same group takes the place of an older one, whose answer, should
        it come, is dropped. The store is opened with the first question and opened again where
        it failed, or after `reopen`.

        Args:
            question: Called in the reading thread.
            then: Called with the answer.
            group: What the question is about; "" for one that nothing takes the place of.
            failed: Called with what went wrong instead.
            urgent: Whether it goes before those that wait: what is in sight goes before the rest.
        """
        failed = failed or self._failed
        self._reading.ask(question, then, failed=failed, group=group, urgent=urgent)

    def reopen(self) -> None:
        """Have the reading thread close the store; the next question opens it as it is then."""
        self._reading.let_go()

    def ask(self, job: Job, handlers: Handlers, *, group: str) -> None:
        """Have the child process for questions answer; the newest of a group wins."""

        def _heard(message: Begun | Said | End) -> None:
            self._post(lambda: _hear(message))

        def _hear(message: Begun | Said | End) -> None:
            if not self._ended and (not group or self._newest.get(group) is errand):
                self._answer(message, handlers)

        errand = Errand(job=job, heard=_heard)
        if group:
            older = self._newest.get(group)
            if older is not None:
                self._questions.drop(older)
            self._newest[group] = errand
        self._questions.take(errand)

    def work(self, job: Job, handlers: Handlers, *, title: str, command: str, writes: bool) -> Task:
        """Have the child process for work do something; one after the other, shown as a task."""

        def _heard(message: Begun | Said | End) -> None:
            self._post(lambda: self._go_on(work, message))

        task = Task(title=title, command=command, writes=writes)
        work = _Work(task=task, errand=Errand(job=job, heard=_heard), handlers=handlers)
        self._works.append(work)
        self._forget_oldest()
        self._lane.take(work.errand)
        self._changed()
        return task

    def stop(self, task: Task) -> None:
        """Stop a task as Ctrl-C stops a command: safe at any moment, what was done stays."""
        work = next((work for work in self._works if work.task is task), None)
        if work is None or task.is_over:
            return
        if self._lane.drop(work.errand):
            self._post(lambda: self._go_on(work, Stopped()))
            return
        task.state = "stopping"
        self._lane.stop(work.errand)
        self._changed()

    def end(self) -> None:
        """Stop everything and let go of the store; returns when nothing is left running."""
        self._ended = True
        self._changed.end()
        lanes = (self._questions, self._lane)
        for lane in lanes:
            lane.begin_end()
        self._reading.end()
        for lane in lanes:
            lane.end()

    def _go_on(self, work: _Work, message: Begun | Said | End) -> None:
        if self._ended or work.task.is_over:
            return
        _update(work.task, message)
        self._changed()
        self._answer(message, work.handlers)

    def _answer(self, message: Begun | Said | End, handlers: Handlers) -> None:
        if isinstance(message, Said):
            if message.findings and handlers.found is not None:
                handlers.found(message.findings)
        elif isinstance(message, Done):
            handlers.then(message.value)
        elif isinstance(message, Failed):
            (handlers.failed or self._failed)(message.error)
        elif isinstance(message, Stopped) and handlers.stopped is not None:
            handlers.stopped()

    def _forget_oldest(self) -> None:
        ended = [work for work in self._works if work.task.is_over]
        for work in ended[:-_ENDED_KEPT]:
            self._works.remove(work)


def _update(task: Task, message: Begun | Said | End) -> None:
    """Have a task say how far it is."""
    if isinstance(message, Begun):
        task.started_s = time.monotonic()
        task.state = task.state if task.state == "stopping" else "running"
    elif isinstance(message, Said):
        if message.progress is not None:
            progress = message.progress
            task.stage, task.done, task.total = progress.stage, progress.done, progress.total
    else:
        _conclude(task, message)


def _conclude(task: Task, end: End) -> None:
    task.ended_s = time.monotonic()
    if isinstance(end, Done):
        task.state, task.outcome = "done", "done"
    elif isinstance(end, Failed):
        task.state, task.outcome = "failed", end.error.message
    else:
        task.state, task.outcome = "stopped", "stopped; what was done stays"

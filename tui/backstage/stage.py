"""Backstage: hands reads to the reading thread, and jobs to the child processes."""

import time
from collections.abc import Callable, Sequence
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
_LONG_S: Final = 1.0
"""A question that took less is nothing that anybody had to wait for."""


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
    lane: Lane
    group: str = ""
    """What a question is about; "" for one that nothing takes the place of."""


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
        self._newest: dict[str, _Work] = {}
        self._works: list[_Work] = []
        self._ended = False

    @property
    def tasks(self) -> list[Task]:
        """All work and all questions, oldest first.

        What ended stays in the list, the last hundred of it, but for questions that were short.
        """
        return [work.task for work in self._works]

    @property
    def busy(self) -> Task | None:
        """The work under way; where none has begun, what is about to; else a long question."""
        question = self._asked
        is_long = question is not None and _seconds(question) >= _LONG_S
        return self._under_way or (question if is_long else None)

    @property
    def stoppable(self) -> Task | None:
        """What a person means who wants something stopped: the work, else the question."""
        return self._under_way or self._asked

    @property
    def _under_way(self) -> Task | None:
        return _first([task for task in self.tasks if not task.is_question])

    @property
    def _asked(self) -> Task | None:
        """A question that somebody still waits for."""
        asked = [task for task in self.tasks if task.is_question]
        return _first([task for task in asked if task.state != "stopping"])

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

    def ask(
        self, job: Job, handlers: Handlers, *, group: str, title: str = "", command: str = ""
    ) -> Task:
        """Have the child process for questions answer; the newest of a group wins.

        Args:
            job: The question.
            handlers: Told the answer.
            group: What it is about; "" for one that nothing takes the place of.
            title: What the tasks panel calls it; "" for the name of the job.
            command: The command line that asks the same.
        """
        task = Task(title=title or job.name, command=command, is_question=True)
        older = self._newest.get(group) if group else None
        if older is not None and self._questions.drop(older.errand):
            self._works.remove(older)
        return self._take(self._questions, task, job, handlers, group=group)

    def work(self, job: Job, handlers: Handlers, *, title: str, command: str, writes: bool) -> Task:
        """Have the child process for work do something; one after the other, shown as a task."""
        task = Task(title=title, command=command, writes=writes)
        return self._take(self._lane, task, job, handlers)

    def _take(
        self, lane: Lane, task: Task, job: Job, handlers: Handlers, *, group: str = ""
    ) -> Task:
        def _heard(message: Begun | Said | End) -> None:
            self._post(lambda: self._go_on(work, message))

        errand = Errand(job=job, heard=_heard)
        work = _Work(task=task, errand=errand, handlers=handlers, lane=lane, group=group)
        if group:
            self._newest[group] = work
        self._works.append(work)
        self._forget_oldest()
        lane.take(errand)
        self._changed()
        return task

    def stop(self, task: Task) -> None:
        """Stop a task as Ctrl-C stops a command: safe at any moment, what was done stays.

        A question is given up at once, however long it takes until nobody works on it any more.
        """
        work = next((work for work in self._works if work.task is task), None)
        if work is None or task.is_over or task.state == "stopping":
            return
        if work.lane.drop(work.errand):
            self._post(lambda: self._go_on(work, Stopped()))
            return
        task.state = "stopping"
        work.lane.stop(work.errand)
        if task.is_question:
            self._post(lambda: self._tell(work, Stopped()))
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
        was_given_up = work.task.is_question and work.task.state == "stopping"
        _update(work.task, message)
        if work.task.is_over and work.task.is_question and _seconds(work.task) < _LONG_S:
            self._works.remove(work)
        self._changed()
        if not was_given_up:
            self._tell(work, message)

    def _tell(self, work: _Work, message: Begun | Said | End) -> None:
        if not self._ended and (not work.group or self._newest.get(work.group) is work):
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


def _first(tasks: Sequence[Task]) -> Task | None:
    """Of what is not over, the first that has begun, else the first."""
    left = [task for task in tasks if not task.is_over]
    begun = (task for task in left if task.state != "waiting")
    return next(begun, left[0] if left else None)


def _seconds(task: Task) -> float:
    return (task.ended_s or time.monotonic()) - task.started_s


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
        said = "given up" if task.is_question else "stopped; what was done stays"
        task.state, task.outcome = "stopped", said

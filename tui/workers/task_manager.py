"""The task manager: hands reads to the reader thread, and jobs to the worker processes."""

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from filestore import FilestoreError
from filestore.browse import InspectedStore
from tui.workers.reader_thread import StoreReader
from tui.workers.tasks import Done, End, Failed, Handlers, Job, Stopped, Task, Update
from tui.workers.worker_process import Begun, JobHandle, WorkerProcess

Value = TypeVar("Value")

_ENDED_KEPT: Final = 100
_LONG_S: Final = 1.0
"""A question that took less is not shown as a task."""


class Opening(Struct, frozen=True, kw_only=True):
    """Which store, for a process or thread to open it on its own."""

    root: str
    configuration: str

    def store(self) -> InspectedStore:
        """The store, opened."""
        return InspectedStore(self.root, configuration=self.configuration)


class TaskManager:
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
            post: Calls a function on the screen's thread, from any thread; does not block.
            failed: Receives errors without a handler of their own.
            changed: Called, on the screen's thread, when `tasks` changed.
        """
        self._post = post
        self._failed = failed
        self._changed = changed
        self._reader = StoreReader(opening.store, post=post)
        self._questions = WorkerProcess(opening, "questions")
        self._worker = WorkerProcess(opening, "work")
        self._newest: dict[str, JobHandle] = {}
        self._works: list[JobHandle] = []
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
        is_long = question is not None and question.elapsed_s >= _LONG_S
        return self._under_way or (question if is_long else None)

    @property
    def stoppable(self) -> Task | None:
        """What the stop key stops: the work, else the question."""
        return self._under_way or self._asked

    @property
    def _under_way(self) -> Task | None:
        return _first([task for task in self.tasks if not task.is_question])

    @property
    def _asked(self) -> Task | None:
        """The question that waits for its answer."""
        return _first([one for one in self.tasks if one.is_question and one.state != "stopping"])

    def read(
        self,
        question: Callable[[InspectedStore], Value],
        then: Callable[[Value], None],
        *,
        group: str,
        failed: Callable[[FilestoreError], None] | None = None,
        urgent: bool = False,
    ) -> None:
        """Ask the store something short, in the reading thread.

        A newer question of the same group replaces an older one, whose answer is dropped. The
        store is opened for the first question, and again where it failed or after `reopen`.

        Args:
            question: Called in the reading thread.
            then: Called with the answer.
            group: What the question is about; "" for one that no other replaces.
            failed: Called with what went wrong instead.
            urgent: Whether it goes before those that wait: what is in sight goes before the rest.
        """
        failed = failed or self._failed
        self._reader.ask(question, then, failed=failed, group=group, urgent=urgent)

    def reopen(self) -> None:
        """Close the store of the reading thread; the next question opens it again."""
        self._reader.close_store()

    def ask(self, job: Job, handlers: Handlers, *, group: str, title: str = "") -> Task:
        """Ask the child process for questions; the newest question of a group wins.

        Args:
            job: The question.
            handlers: Receive the answer.
            group: As for `read`.
            title: What the tasks panel calls it; "" for the name of the job.
        """
        task = Task(title=title or job.name, is_question=True)
        older = self._newest.get(group) if group else None
        if older is not None and self._questions.drop(older):
            self._works.remove(older)
        return self._take(task, job, handlers, group)

    def work(self, job: Job, handlers: Handlers, *, title: str, writes: bool) -> Task:
        """Give the child process for work a job; they run one at a time, shown as tasks."""
        return self._take(Task(title=title, writes=writes), job, handlers)

    def _take(self, task: Task, job: Job, handlers: Handlers, group: str = "") -> Task:
        work = JobHandle(job=job, task=task, handlers=handlers, group=group)
        work.report = lambda message: self._post(lambda: self._go_on(work, message))
        if group:
            self._newest[group] = work
        self._works.append(work)
        ended = [one for one in self._works if one.task.is_over]
        for oldest in ended[:-_ENDED_KEPT]:
            self._works.remove(oldest)
        self._worker_of(task).take(work)
        self._changed()
        return task

    def _worker_of(self, task: Task) -> WorkerProcess:
        return self._questions if task.is_question else self._worker

    def stop(self, task: Task) -> None:
        """Stop a task as Ctrl-C stops a command: safe at any moment, what was done stays.

        A question is cancelled at once, even while its process still works on it.
        """
        work = next((work for work in self._works if work.task is task), None)
        if work is None or task.is_over or task.state == "stopping":
            return
        if self._worker_of(task).drop(work):
            self._post(lambda: self._go_on(work, Stopped()))
            return
        task.state = "stopping"
        self._worker_of(task).stop(work)
        if task.is_question:
            self._post(lambda: self._call_handlers(work, Stopped()))
        self._changed()

    def end(self) -> None:
        """Stop everything and close the store; returns when nothing is left running."""
        self._ended = True
        workers = (self._questions, self._worker)
        for worker in workers:
            worker.begin_end()
        self._reader.end()
        for worker in workers:
            worker.end()

    def _go_on(self, work: JobHandle, message: Begun | Update | End) -> None:
        if self._ended or work.task.is_over:
            return
        was_cancelled = work.task.is_question and work.task.state == "stopping"
        _update(work.task, message)
        if work.task.is_over and work.task.is_question and work.task.elapsed_s < _LONG_S:
            self._works.remove(work)
        self._changed()
        if not was_cancelled:
            self._call_handlers(work, message)

    def _call_handlers(self, work: JobHandle, message: Begun | Update | End) -> None:
        if self._ended or (work.group and self._newest.get(work.group) is not work):
            return
        handlers = work.handlers
        if isinstance(message, Update):
            if message.findings and handlers.found is not None:
                handlers.found(message.findings)
        elif isinstance(message, Done):
            handlers.then(message.value)
        elif isinstance(message, Failed):
            (handlers.failed or self._failed)(message.error)
        elif isinstance(message, Stopped) and handlers.stopped is not None:
            handlers.stopped()


def _first(tasks: Sequence[Task]) -> Task | None:
    """Of what is not over, the first that has begun, else the first."""
    left = [task for task in tasks if not task.is_over]
    begun = (task for task in left if task.state != "waiting")
    return next(begun, left[0] if left else None)


def _update(task: Task, message: Begun | Update | End) -> None:
    """Update a task."""
    if isinstance(message, Begun):
        task.started_s = time.monotonic()
        task.state = task.state if task.state == "stopping" else "running"
        return
    if isinstance(message, Update):
        if message.progress is not None:
            progress = message.progress
            task.stage, task.done, task.total = progress.stage, progress.done, progress.total
        return
    task.ended_s = time.monotonic()
    if isinstance(message, Done):
        task.state, task.outcome = "done", "done"
    elif isinstance(message, Failed):
        task.state, task.outcome = "failed", message.error.message
    else:
        outcome = "cancelled" if task.is_question else "stopped; what was done stays"
        task.state, task.outcome = "stopped", outcome

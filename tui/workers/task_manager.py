"""The task manager: hands reads to the reader thread, and jobs to the worker processes.

One rule: urgent questions go first, and of a group only the newest is asked.
"""

import heapq
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from filestore import FilestoreError, Store, UsageError
from filestore.browse import InspectedStore, copy_example
from tui.workers.tasks import (
    Done,
    End,
    Failed,
    Handlers,
    Job,
    Opening,
    Stopped,
    StoreCache,
    Task,
    Update,
    attempt,
)
from tui.workers.worker_process import Begun, JobHandle, WorkerProcess

Value = TypeVar("Value")

_ENDED_KEPT: Final = 100
_LONG_S: Final = 1.0
"""A question that took less is not shown as a task."""


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
            urgent: Whether it goes before the waiting ones: what is in sight goes before the rest.
        """
        failed = failed or self._failed
        self._reader.ask(_Question(put=question, then=then, failed=failed, group=group), urgent)

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
        elif older is not None and not older.task.is_over:
            # Its answer goes nowhere.
            older.task.state = "stopping"
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
        task.printed.extend(message.printed)
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


def make_store(folder: str, *, configuration: str, kind: str) -> str:
    """Make an empty store of chunks, one of a folder's documents, or a copy of the example.

    Args:
        folder: The one with the documents, or where the store's own folder is made.
        configuration: The user's configuration folder.
        kind: "make", "index" (where it lies) or "example".

    Returns:
        The root of the store.

    Takes some tenths of a second: for a thread, never for the screen's own.

    Raises:
        FilestoreError: It cannot be made there; nothing is overwritten.
    """
    root = os.path.abspath(folder)
    if kind == "index":
        Store.create(root, layout="in-place", configuration=configuration).close()
        return root
    root = os.path.join(root, "example_index" if kind == "example" else "file_index")
    if kind == "example":
        copy_example(root)
    else:
        Store.create(root, layout="tree", configuration=configuration).close()
    return root


_ENDED_WITHIN_S: Final = 10.0
_KEEPS_STORE: Final = (KeyError, UsageError)
"""Nothing found, or a wrong question; the store is intact."""


class _Question(Struct, frozen=True, kw_only=True, eq=False):
    put: Callable[[InspectedStore], Any]
    then: Callable[[Any], None]
    failed: Callable[[FilestoreError], None]
    group: str


class StoreReader:
    """One thread with a store of its own. Its methods are called on the screen's thread."""

    def __init__(
        self,
        open_store: Callable[[], InspectedStore],
        *,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        """Start nothing yet.

        Args:
            open_store: Opens the store, in the thread.
            post: Calls a function on the screen's thread.
        """
        self._kept = StoreCache(open_store)
        self._post = post
        self._changed = threading.Condition()
        self._waiting: list[tuple[bool, int, _Question]] = []
        """Whether each can wait, and how many were asked before."""
        self._newest: dict[str, _Question] = {}
        self._asked = 0
        self._is_to_close = False
        self._ended = False
        self._thread: threading.Thread | None = None

    def ask(self, question: _Question, urgent: bool) -> None:
        """Ask a question; see `TaskManager.read`."""
        with self._changed:
            self._asked += 1
            if question.group:
                self._newest[question.group] = question
            heapq.heappush(self._waiting, (not urgent, self._asked, question))
            self._changed.notify()
        if self._thread is None and not self._ended:
            self._thread = threading.Thread(target=self._answer, name="reading", daemon=True)
            self._thread.start()

    def close_store(self) -> None:
        """Close the store; the next question opens it again."""
        with self._changed:
            self._is_to_close = True
            self._changed.notify()

    def end(self) -> None:
        """Close the store, once the question under way is answered."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._newest.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_ENDED_WITHIN_S)

    def _answer(self) -> None:
        try:
            while not self._ended:
                with self._changed:
                    while not (self._waiting or self._is_to_close or self._ended):
                        self._changed.wait()
                    is_to_close, self._is_to_close = self._is_to_close, False
                    question = heapq.heappop(self._waiting)[2] if self._waiting else None
                if is_to_close:
                    self._kept.close()
                if question is not None and self._is_wanted(question):
                    self._put(question)
        finally:
            self._kept.close()

    def _is_wanted(self, question: _Question) -> bool:
        return not question.group or self._newest.get(question.group) is question

    def _put(self, question: _Question) -> None:
        answer = attempt(lambda: question.put(self._kept.get()))
        if isinstance(answer, Failed) and not isinstance(answer.error, _KEEPS_STORE):
            self._kept.close()

        def arrive() -> None:
            if self._ended or not self._is_wanted(question):
                return
            self._newest.pop(question.group, None)
            if isinstance(answer, Done):
                question.then(answer.value)
            else:
                question.failed(answer.error)

        self._post(arrive)

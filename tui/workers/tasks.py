"""Long work and questions as values, what the child processes do for them, and their messages.

Pure: knows no Textual. A job is called with the store, a reporter of progress and findings, and its
arguments by name; what it returns is sent back to the screen's process. Messages are pickled: only
our own processes are at the ends of the line. One rule: an error of the store arrives as what it
was, whatever its constructor takes.
"""

import contextlib
import importlib
import io
import os
import pickle
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from filestore import FilestoreError, Finding, Progress
from filestore.browse import InspectedStore
from tui.formatting import Line, progress_line
from tui.workers import commands
from tui.workers.faults import UnexpectedError, trace_of

if TYPE_CHECKING:
    from filestore import Plan, Policy

MOST_PRINTED: Final = 10_000
"""Lines of a command that are kept."""
TaskState = Literal["waiting", "running", "stopping", "done", "failed", "stopped"]


class Job(Struct, frozen=True, kw_only=True):
    """A job for a child process; see `JOBS` for names, arguments and results.

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
    """Whether it runs next to all work and blocks nothing."""
    state: TaskState = "waiting"
    stage: str = ""
    done: int = 0
    total: int | None = None
    started_s: float = field(default_factory=time.monotonic)
    ended_s: float | None = None
    outcome: str = ""
    """In a few words, once it ended."""
    printed: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_PRINTED))
    """What a command printed, the end of it."""

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


_PROTOCOL: Final = 5
_REPORT: Final = "please report it with the full error (key E)"


class Begin(Struct, frozen=True, kw_only=True):
    """To the child: do this."""

    number: int
    """Counts the jobs of a child, so that a stop finds its own."""
    job: Job


class Interrupt(Struct, frozen=True, kw_only=True):
    """To the child: stop that."""

    number: int


class Update(Struct, frozen=True, kw_only=True):
    """From the child: how far it is, and what it found since its last message."""

    progress: Progress | None = None
    findings: tuple[Finding, ...] = ()
    printed: tuple[str, ...] = ()
    """Lines of a command."""


class Done(Struct, frozen=True, kw_only=True):
    """From the child: it is done."""

    value: Any


class Failed(Struct, frozen=True, kw_only=True):
    """From the child: it went wrong."""

    error: FilestoreError


class Stopped(Struct, frozen=True, kw_only=True):
    """From the child: it was stopped."""


End = Done | Failed | Stopped
Message = Update | End


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Errors are rebuilt from their fields: pickle would call their constructors."""
        if not isinstance(value, FilestoreError):
            return NotImplemented
        kind = type(value)
        fields = {name: field for name, field in vars(value).items() if name != "__notes__"}
        return _rebuilt, (kind.__module__, kind.__qualname__, value.args, fields)


def _rebuilt(module: str, name: str, args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    kind: Any = importlib.import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


def pack(value: Any) -> bytes:
    """A value as bytes for another process of ours."""
    packed = io.BytesIO()
    _Pickler(packed, _PROTOCOL).dump(value)
    return packed.getvalue()


def unpack(packed: bytes) -> Any:
    """The inverse of `pack`."""
    return pickle.loads(packed)


def as_error(error: Exception) -> FilestoreError:
    """Any error as a `FilestoreError`."""
    if isinstance(error, FilestoreError):
        return error
    message = f"unexpected: {type(error).__name__}: {error}"
    remedy = f"'filestore verify' shows whether the store is damaged; else {_REPORT}"
    detail = "".join(traceback.format_exception(error))
    if isinstance(error, OSError | MemoryError):
        # The machine's fault, not ours.
        return FilestoreError(message, remedy=remedy, detail=detail)
    return UnexpectedError(message, trace=trace_of(error), remedy=remedy, detail=detail)


def attempt(question: Callable[[], Any]) -> Done | Failed:
    """The answer to a question, or what went wrong."""
    try:
        return Done(value=question())
    except Exception as error:  # the top of a worker: whatever it is, it is reported
        return Failed(error=as_error(error))


class Opening(Struct, frozen=True, kw_only=True):
    """Which store, for a process or thread to open it on its own."""

    root: str
    configuration: str

    def store(self) -> InspectedStore:
        """The store, opened."""
        return InspectedStore(self.root, configuration=self.configuration)


_Identity = tuple[tuple[int, ...], ...]


class StoreCache:
    """Opens a store when it is first needed, and again once its files were replaced.

    An open store does not see a rebuilt catalog or edited settings.
    """

    def __init__(self, open_store: Callable[[], InspectedStore]) -> None:
        self._open_store = open_store
        self._store: InspectedStore | None = None
        self._seen: _Identity = ()

    def get(self) -> InspectedStore:
        """The store as it is now."""
        if self._store is not None and _identity(self._store) != self._seen:
            self.close()
        if self._store is None:
            store = self._open_store()
            self._store, self._seen = store, _identity(store)
        return self._store

    def close(self) -> None:
        """Close it, in the thread that opened it."""
        store, self._store = self._store, None
        if store is not None:
            # After a failure, an error of closing adds nothing.
            with contextlib.suppress(Exception):
                store.close()


def _identity(store: InspectedStore) -> _Identity:
    """The identity of the catalog and of the settings, not their content."""
    found = []
    for path, fields in (
        (store.places.catalog, ("st_dev", "st_ino")),
        (store.places.settings, ("st_dev", "st_ino", "st_size", "st_mtime_ns")),
    ):
        try:
            status = os.stat(path)
        except OSError:
            found.append(())
        else:
            found.append(tuple(getattr(status, name) for name in fields))
    return tuple(found)


def _reporting(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the store that reports its progress."""
    return lambda store, reporter, **given: method(store, **given, on_progress=reporter.progress)


def _plan(
    store: InspectedStore,
    reporter: Any,
    *,
    policy: "Policy",
    findings: Sequence[Finding] | None = None,
) -> "Plan":
    from filestore.browse import selected

    plan = store.plan(policy, on_progress=reporter.progress)
    return plan if findings is None else selected(plan, findings)


JOBS: Final[dict[str, Callable[..., Any]]] = {
    "search": lambda store, _, **given: store.search(**given).made(),
    "search_typed": lambda store, _, **given: store.search_typed(**given).made(),
    "neighbours": lambda store, _, **given: store.explorer.neighbours(**given),
    "links": lambda store, _, **given: store.links(**given),
    "vector_map": lambda store, _, **given: store.explorer.vector_map(**given),
    "options": commands.options,
    "status": lambda store, _: store.status(),
    "verify": lambda store, reporter, **given: store.verify(
        **given, on_progress=reporter.progress, on_found=reporter.found
    ),
    "sync_but": _reporting(InspectedStore.sync_but),
    "plan": _plan,
    "apply": _reporting(InspectedStore.apply),
    "undo": _reporting(InspectedStore.undo),
    "redo": _reporting(InspectedStore.redo),
    "run": commands.run,
}
"""Questions:
- ``search(query, k, mode, source, syntax, kind, update)``: `Answer`; ``search_typed`` the same
  without update, and without a service
- ``neighbours(path, count, now, part)``: tuple of `Neighbour`
- ``links(path)``: `Links`
- ``vector_map(most)``: `VectorMap`
- ``options()``: options by command
Work:
- ``status()``: `Status`; ``verify(level)``: `Checked`, reporting findings and progress
- ``sync_but(forget)``: `SyncReport`
- ``plan(policy, findings)``: `Plan`, only of what repairs these findings; None for all
- ``apply(plan)``: `RepairReport`
- ``undo(identifier)``, ``redo(identifier)``: `UndoResult` or None
- ``run(words)``: the exit code of a command, reporting what it prints
"""

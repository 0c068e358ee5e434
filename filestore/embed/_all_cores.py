"""Work in numpy on every core at low priority: long work that must not slow a person's own.

numpy holds no lock while it computes, so threads are as fast as processes, and start at once. One
rule: its linear algebra stays in the thread that asks for it. Threads of its own wait by spinning:
on a busy machine that takes twice the processor time, and for one query ten times.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from queue import SimpleQueue
from typing import Any, Final, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

_NICENESS: Final = 10
_BLAS: Final = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
"""How the libraries that numpy is built with spell a function."""

_lock = threading.Lock()
_threads_before: list[int] = []
"""The library's threads at each entry into `one_thread` that is not left yet."""


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def on_all_cores(work: Callable[[Given], Made], items: Sequence[Given]) -> Iterable[Made]:
    """What `work` makes of each item, in their order.

    The thread that asks only waits, so Ctrl-C ends it at once; the others end with the item that
    they have, and do not keep the program from ending.
    """
    waiting = iter(range(len(items)))
    made: dict[int, Made] = {}
    done: SimpleQueue[tuple[int, Made] | BaseException] = SimpleQueue()
    stopped = threading.Event()

    def run() -> None:
        _lower_priority()
        try:
            while not stopped.is_set() and (place := next(waiting, None)) is not None:
                done.put((place, work(items[place])))
        except BaseException as error:  # raised where it was asked for
            done.put(error)

    try:
        for place in range(min(cores(), len(items))):
            try:
                threading.Thread(target=run, daemon=True).start()
            except RuntimeError:  # the system gives no more
                if place == 0:
                    return list(map(work, items))
                break
        while len(made) < len(items):
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            made[found[0]] = found[1]
    finally:
        stopped.set()
    return [made[place] for place in range(len(items))]


def _lower_priority() -> None:
    """That of this thread; no system but Linux knows one of a thread."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with suppress(OSError):
            lower = os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS
            os.setpriority(os.PRIO_PROCESS, thread, lower)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep numpy's linear algebra in the thread that asks for it, where its library can be told."""
    count, limit = _library()
    with _lock:
        _threads_before.append(count())
        limit(1)
    try:
        yield
    finally:
        with _lock:
            before = _threads_before.pop()
            if not _threads_before:
                limit(before)


@cache
def _library() -> tuple[Callable[[], int], Callable[[int], Any]]:
    """Functions that ask and tell how many threads it takes; idle ones where it has none."""
    core = import_module("numpy._core._multiarray_umath")
    library = ctypes.CDLL(core.__file__)  # with all that it is linked to
    for name in _BLAS:
        with suppress(AttributeError):
            return (
                getattr(library, name.format("get_num_threads")),
                getattr(library, name.format("set_num_threads")),
            )
    return (lambda: 1), (lambda _: None)

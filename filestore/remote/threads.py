"""A few threads that wait for a service, with the results in order or as they end.

Not an executor of the standard library: its threads are joined when the program ends, so a service
that hangs would block Ctrl-C. One rule: these threads are never waited for.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Sequence
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_LOOK_S: Final = 0.1
"""How often it is looked whether somebody wants to stop."""


def in_order(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    threads: int,
    limit_s: float,
    ended: threading.Event,
) -> list[Result]:
    """The result of each item, worked on by several threads at once.

    Args:
        work: What to do with an item.
        items: The items.
        threads: How many at most.
        limit_s: The longest time in which no item may be finished.
        ended: Set when the result is no longer wanted; work looks at it.

    Raises:
        TimeoutError: No item was finished within the limit.
        Exception: Whatever the first item to fail raised.
    """
    results: dict[int, Result] = {}
    finishing = as_ended(
        work, items, threads=threads, limit_s=limit_s, ended=ended, stop=threading.Event()
    )
    with contextlib.closing(finishing):
        for place, result in finishing:
            if isinstance(result, Exception):
                raise result
            results[place] = result
    return [results[place] for place in range(len(items))]


def as_ended(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    threads: int,
    limit_s: float,
    ended: threading.Event,
    stop: threading.Event,
) -> Generator[tuple[int, Result | Exception], None, None]:
    """The place of each item with its result, or with what it raised, as they end.

    Args:
        work: What to do with an item.
        items: The items.
        threads: How many at most.
        limit_s: The longest time in which no item may be finished.
        ended: Set when no result is wanted any more; work looks at it.
        stop: Set by whoever wants to stop: what has ended by then is yielded, and nothing else.

    Raises:
        TimeoutError: No item was finished within the limit.
    """
    waiting: SimpleQueue[tuple[int, Item]] = SimpleQueue()
    finished: SimpleQueue[tuple[int, Result | Exception]] = SimpleQueue()
    for numbered in enumerate(items):
        waiting.put(numbered)

    def work_through() -> None:
        while not (ended.is_set() or stop.is_set()):
            try:
                place, item = waiting.get_nowait()
            except Empty:
                return
            try:
                finished.put((place, work(item)))
            except Exception as error:  # handed to the thread that waits
                finished.put((place, error))

    try:
        if not stop.is_set():
            for _ in range(min(threads, len(items))):
                threading.Thread(target=work_through, daemon=True).start()
        for _ in items:
            found = _next_of(finished, limit_s, stop)
            if found is None:
                return
            yield found
    finally:
        ended.set()


def _next_of(
    finished: "SimpleQueue[tuple[int, Result | Exception]]", limit_s: float, stop: threading.Event
) -> tuple[int, Result | Exception] | None:
    """What ends next; None where that is not waited for.

    Raises:
        TimeoutError: Nothing ended within the limit.
    """
    end = time.monotonic() + limit_s
    while True:
        is_stopped = stop.is_set()
        left_s = end - time.monotonic()
        try:
            if is_stopped or left_s <= 0:
                return finished.get_nowait()
            return finished.get(timeout=min(_LOOK_S, left_s))
        except Empty:
            if is_stopped:
                return None
            if left_s <= 0:
                raise TimeoutError(f"nothing was finished within {limit_s} s") from None

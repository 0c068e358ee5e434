"""A few threads that wait for a service, with the results in order.

Not an executor of the standard library: its threads are joined when the program ends, so a service
that hangs would block Ctrl-C. One rule: these threads are never waited for.
"""

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    threads: int,
    limit_s: float,
    stop: threading.Event,
) -> list[Result]:
    """The result of each item, worked on by several threads at once.

    Args:
        work: What to do with an item.
        items: The items.
        threads: How many at most.
        limit_s: The longest time in which no item may be finished.
        stop: Set when the result is no longer wanted; work looks at it.

    Raises:
        TimeoutError: No item was finished within the limit.
        Exception: Whatever the first item to fail raised.
    """
    waiting: SimpleQueue[tuple[int, Item]] = SimpleQueue()
    finished: SimpleQueue[tuple[int, Result | Exception]] = SimpleQueue()
    for numbered in enumerate(items):
        waiting.put(numbered)
    results: dict[int, Result] = {}

    def work_through() -> None:
        while not stop.is_set():
            try:
                place, item = waiting.get_nowait()
            except Empty:
                return
            try:
                finished.put((place, work(item)))
            except Exception as error:  # handed to the thread that waits, which raises it
                finished.put((place, error))

    try:
        for _ in range(min(threads, len(items))):
            threading.Thread(target=work_through, daemon=True).start()
        while len(results) < len(items):
            place, result = finished.get(timeout=limit_s)
            if isinstance(result, Exception):
                raise result
            results[place] = result
    except Empty:
        raise TimeoutError(f"nothing was finished within {limit_s} s") from None
    finally:
        stop.set()
    return [results[place] for place in range(len(items))]

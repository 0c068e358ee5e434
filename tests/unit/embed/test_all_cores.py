"""Work on every core at low priority."""

import os
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.embed._local import cores, on_all_cores, one_thread


@given(st.lists(st.integers()))
def test_results_come_in_the_order_of_what_was_given(items: list[int]) -> None:
    """Each item is worked on once."""
    assert [*on_all_cores(lambda item: item + 1, items)] == [item + 1 for item in items]


def test_what_goes_wrong_is_raised_where_it_was_asked_for() -> None:
    """The error itself comes, and what waits is not begun: one item a thread at most goes on."""
    begun: list[int] = []
    release = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        if item == 0:
            raise ZeroDivisionError("item 0")
        release.wait()
        return item

    with pytest.raises(ZeroDivisionError, match="item 0"):
        on_all_cores(work, range(1_000))
    release.set()
    assert len(begun) <= cores()


@pytest.mark.skipif(sys.platform != "linux", reason="no priority of a thread")
def test_the_priority_is_lowered_of_the_work_alone() -> None:
    """Who asks keeps its own."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    lowered = on_all_cores(lambda _: os.getpriority(os.PRIO_PROCESS, 0), range(3))
    assert {*lowered} == {min(before + 10, 19)}
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


@pytest.mark.parametrize("threads", [0, 1])
def test_the_work_is_done_whatever_threads_there_are(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """A limit of processes leaves one, or none beside the one that asks."""
    left, start = iter(range(threads)), threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    monkeypatch.setattr("filestore.embed._local.cores", lambda: 2)
    assert [*on_all_cores(lambda item: item + 1, range(9))] == [*range(1, 10)]


def test_numbers_are_the_same_in_one_thread() -> None:
    """However often it is entered, also one inside the other."""
    rows = np.ones((200, 200), np.float32)
    with one_thread(), one_thread():
        inside = rows @ rows
    np.testing.assert_array_equal(inside, rows @ rows)

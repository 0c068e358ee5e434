"""What is told of a fault, as text; where it is told: see `tests/tui/test_faults.py`."""

import pytest

from tui.workers.faults import trace_in, trace_of

SECRET = "words of a chunk"


def raised(error, cause=None):
    """An error as it arrives where it is caught."""
    try:
        raise error from cause
    except BaseException as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        (raised(ValueError(SECRET)), ["ValueError"]),
        (raised(KeyError(SECRET), raised(OSError(28, SECRET, SECRET))),
         ["OSError ENOSPC", "KeyError"]),
        (ExceptionGroup(SECRET, [ValueError(SECRET), TypeError(SECRET)]),
         ["ValueError", "TypeError", "ExceptionGroup"]),
        (UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET), ["UnicodeDecodeError"]),
    ],
)  # fmt: skip
def test_a_trace_quotes_nothing(error, kinds):
    """It names every error that led to another one, and none of their messages."""
    trace = trace_of(error)
    found = [line.partition("error: ")[2] for line in trace.splitlines() if "  error: " in line]
    assert found == kinds
    assert SECRET not in trace


def test_a_circle_of_errors_ends():
    """Errors that name each other as their causes are told once."""
    one, other = ValueError(), KeyError()
    one.__cause__, other.__cause__ = other, one
    assert trace_of(one).count("error: ") == 2


def test_of_last_words_only_the_trace_is_taken():
    """What a library said on the way is left out; words without a trace give none."""
    words = f'warning: {SECRET}\n  File "x.py", line 3 in f\nValueError: {SECRET}\n'
    assert trace_in(words) == '  File "x.py", line 3 in f'
    assert trace_in(f"killed while it read {SECRET}") == ""
    assert "error: ValueError" in trace_in(trace_of(raised(ValueError(SECRET))))

"""What crosses between the screen and its child processes arrives as it was."""

import importlib
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import FilestoreError, Finding, Progress
from tests.advice import advised
from tests.test_architecture import all_modules
from tui.workers.tasks import (
    Done,
    End,
    Stopped,
    Update,
    as_error,
    attempt,
    pack,
    unpack,
)
from tui.workers.worker_process import MOST_AT_ONCE, merged


def error_classes() -> list[type[FilestoreError]]:
    """Every error that filestore defines."""
    modules = [importlib.import_module(name) for name in all_modules()]
    found = {
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, FilestoreError)
    }
    return sorted(found, key=lambda kind: kind.__qualname__)


@pytest.mark.parametrize("kind", error_classes())
def test_errors_arrive_as_what_they_were(kind: type[FilestoreError]) -> None:
    """Class, words, remedy, detail and whatever else an error holds are the same afterwards."""
    error = kind.__new__(kind)
    FilestoreError.__init__(error, "it is so", remedy="do this", detail="because")
    error.paths = ("chunked/a.md",)  # type: ignore[attr-defined]
    arrived = unpack(pack((error, [error])))[0]
    assert type(arrived) is kind
    assert (arrived.message, arrived.remedy, arrived.detail) == ("it is so", "do this", "because")
    assert (str(arrived), arrived.exit_code) == (str(error), kind.exit_code)
    assert arrived.paths == ("chunked/a.md",)


def test_unexpected_error_is_told_with_its_traceback() -> None:
    """An error that nobody foresaw becomes one with a remedy, and keeps where it came from."""

    def fail() -> None:
        raise ZeroDivisionError("by nought")

    answer = attempt(fail)
    error = answer.error  # type: ignore[union-attr]
    assert error.message == "unexpected: ZeroDivisionError: by nought"
    assert advised(error)
    assert "in fail" in error.detail
    assert as_error(error) is error


FINDINGS = st.builds(Finding, code=st.just("modified"), path=st.text(max_size=3))
SAYINGS = st.one_of(
    st.builds(Progress, stage=st.just("reading"), done=st.integers(0, 9), total=st.none()),
    st.lists(FINDINGS, min_size=1, max_size=5).map(tuple),
)
ENDS = st.lists(st.one_of(st.builds(Done, value=st.integers()), st.just(Stopped())), max_size=1)


@given(st.lists(SAYINGS, max_size=20), ENDS)
def test_what_is_put_together_holds_everything(
    said: list[Progress | tuple[Finding, ...]], end: list[End]
) -> None:
    """Every finding is told once and in order, the last progress too, and the end comes last."""
    if not said and not end:
        return
    messages = list(merged([*said, *end]))
    told = [one for one in messages if isinstance(one, Update)]
    expected = [finding for one in said if isinstance(one, tuple) for finding in one]
    assert [finding for one in told for finding in one.findings] == expected
    progress = [one for one in said if isinstance(one, Progress)]
    assert {one.progress for one in told} <= {progress[-1] if progress else None}
    assert messages[len(told) :] == end


def test_many_findings_come_in_parts() -> None:
    """No message holds so many findings that a key would have to wait for them."""
    many = tuple(Finding(code="modified", path=str(number)) for number in range(4_500))
    sizes = [len(one.findings) for one in merged([many]) if isinstance(one, Update)]
    assert max(sizes) <= MOST_AT_ONCE
    assert sum(sizes) == len(many)

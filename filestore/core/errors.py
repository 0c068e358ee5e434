"""The base of every error a user may see. Errors are defined next to the code that raises them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar


class FilestoreError(Exception):
    """Something the user can act on.

    Args:
        message: What happened, naming the thing, what was expected and what was found.
        remedy: The next thing to do, a command where there is one.
        detail: Technical detail that helps a report but not a decision.
    """

    exit_code: ClassVar[int] = 3
    """3: the store or the input is unusable as asked. 2: wrong usage. 4: refused for safety."""

    def __init__(self, message: str, *, remedy: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.detail = detail


class UsageError(FilestoreError, ValueError):
    """The call itself is wrong."""

    exit_code = 2


class RefusedError(FilestoreError):
    """Refused for safety; the remedy says how to force it."""

    exit_code = 4


@contextmanager
def on_error(undo: Callable[..., object], *arguments: Any) -> Iterator[None]:
    """Undo what was begun where the block raises, whatever it raises."""
    try:
        yield
    except BaseException:
        undo(*arguments)
        raise

"""How far long work is: a value, and the call that takes it. Nothing is printed here."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of long work."""

    stage: str
    """What is being done, as a person would say it: "indexing"."""
    done: int
    total: int | None
    """None where the end is not known."""


OnProgress = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Take no notice."""

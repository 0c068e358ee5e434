"""How far long work is: a value, and the call that takes it. Nothing is printed here."""

from collections.abc import Callable

from msgspec import Struct


class Progress(Struct, frozen=True, kw_only=True):
    """One step of long work."""

    stage: str
    """What is being done, as a person would say it: "indexing"."""
    done: int
    """How many of `total` are done: files, texts or bytes, by the stage."""
    total: int | None
    """None where the end is not known."""


OnProgress = Callable[[Progress], None]


OnShare = Callable[[float], None]
"""Called with the share of a part that is done, from 0 to 1."""


def ignore(_: Progress) -> None:
    """Take no notice."""


def ignore_share(_: float) -> None:
    """Take no notice."""


def part_of(on_progress: OnProgress, stage: str, *, done: int, part: int, total: int) -> OnShare:
    """Tell how far the whole is, from the share of one of its parts.

    Args:
        on_progress: Called with the progress.
        stage: What is being done.
        done: How many were done before the part.
        part: How many the part has.
        total: How many there are.
    """
    return lambda share: on_progress(
        Progress(stage=stage, done=done + int(part * share), total=total)
    )

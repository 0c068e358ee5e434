"""How far long work is, on stderr: a line that is drawn anew, or lines."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from filestore.cli import _output, _terminal
from filestore.core.progress import OnProgress, Progress, ignore

_QUIET_S = 1.0
"""Work shorter than this shows no progress."""
PROGRESS = "progress: "
"""Begins a plain line of progress: then come the stage, the number done, and the total if known."""


@contextlib.contextmanager
def progress_bar() -> Iterator[OnProgress]:
    """Until the block ends, draw a line that keeps up with long work; on a terminal alone.

    On one that draws no line anew, write lines in its place. With FILESTORE_PROGRESS=plain, too,
    from the first stage on and wherever stderr leads.
    """
    began, bar, task, stage = time.monotonic(), None, None, ""
    is_plain = os.environ.get("FILESTORE_PROGRESS") == "plain"

    def write(progress: Progress) -> None:
        nonlocal began, stage
        is_new = stage != progress.stage and (is_plain or stage)
        if not is_new and time.monotonic() - began < _QUIET_S:
            return
        began, stage = time.monotonic(), progress.stage
        total = f"/{progress.total}" if progress.total is not None else ""
        _output.say(f"{PROGRESS}{stage} {progress.done}{total}")

    def take(progress: Progress) -> None:
        nonlocal bar, task, stage
        if time.monotonic() - began < _QUIET_S:
            return
        if bar is None:
            bar = _rich_bar()
            bar.start()
        if task is None or stage != progress.stage:
            stage = progress.stage
            task = bar.add_task(stage, total=progress.total)
        bar.update(task, completed=progress.done, total=progress.total)

    is_drawn = _terminal.draws() and not is_plain
    show = take if is_drawn else write if is_plain or sys.stderr.isatty() else ignore
    try:
        with _timed_stages(ignore if _terminal.wishes().quiet else show) as timing:
            yield timing
    finally:
        if bar is not None:
            bar.stop()


@contextlib.contextmanager
def _timed_stages(show: OnProgress) -> Iterator[OnProgress]:
    """Tell how long each stage of a progress takes, to a person who wants to know."""
    if not _terminal.wishes().verbose:
        yield show
        return
    with contextlib.ExitStack() as last:
        stage = ""

        def take(progress: Progress) -> None:
            nonlocal stage
            if progress.stage != stage:
                last.close()
                stage = last.enter_context(_output.timed(progress.stage))
            show(progress)

        yield take


def _rich_bar() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )

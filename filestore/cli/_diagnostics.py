"""What goes to stderr: errors with their remedy, notes, progress. Owns the exit codes of errors."""

import contextlib
import os
import sys
import time
from typing import Any

from filestore.cli import EXIT_INTERRUPTED
from filestore.errors import FilestoreError
from filestore.progress import OnProgress, Progress
from filestore.safe_text import safe_text

_QUIET_S = 1.0
"""Work shorter than this shows no progress."""


def report(error: FilestoreError, *, as_json: bool) -> int:
    """Say what went wrong and what to do; returns the exit code."""
    if as_json:
        from filestore.cli import _output

        _output.write_json({"error": error.message, "detail": error.detail, "remedy": error.remedy})
    else:
        say(f"filestore: {error.message}")
        if error.remedy:
            say(f"  try: {error.remedy}")
    return error.exit_code


def left_without(problem: FilestoreError | None) -> int:
    """Say why texts were left without vectors; returns the exit code."""
    from filestore.embed import ModelMissing, UnknownEmbedder
    from filestore.model import ModelChanged

    if problem is None:
        return 0
    say(f"filestore: {problem.message}")
    say("  what it could not embed is found by keyword; 'filestore sync' tries again")
    if problem.remedy:
        say(f"  try: {problem.remedy}")
    # A model that is not here is a finding like any other; one that fails is a failure.
    is_finding = isinstance(problem, ModelMissing | ModelChanged | UnknownEmbedder)
    return 1 if is_finding else problem.exit_code


def interrupted(*, as_json: bool) -> int:
    """Say what an interruption left; returns the exit code."""
    message = "interrupted: what was made so far is kept; run it again to go on"
    if as_json:
        from filestore.cli import _output

        _output.write_json({"error": "interrupted", "detail": message, "remedy": "run it again"})
    else:
        say(f"filestore: {message}")
    return EXIT_INTERRUPTED


def unwritable(error: OSError) -> int:
    """Say that nothing can be written where the answer goes; returns the exit code."""
    say(f"filestore: cannot write the answer: {error.strerror or error}")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FilestoreError.exit_code


def say(text: str) -> None:
    """Write one line for a person; where nobody can be told, the exit code has to do."""
    with contextlib.suppress(OSError):
        sys.stderr.write(safe_text(text) + "\n")


class ProgressBar:
    """A line that keeps up with long work on a terminal, and is silent elsewhere."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._stage = ""

    def __enter__(self) -> OnProgress:
        return self._take

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _take(self, progress: Progress) -> None:
        if not self._shows or time.monotonic() - self._started < _QUIET_S:
            return
        if self._bar is None:
            self._bar = _rich_bar()
            self._bar.start()
        if self._task is None or self._stage != progress.stage:
            self._stage = progress.stage
            self._task = self._bar.add_task(progress.stage, total=progress.total)
        self._bar.update(self._task, completed=progress.done, total=progress.total)


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

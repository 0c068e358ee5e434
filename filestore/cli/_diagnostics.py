"""What goes to stderr: errors with their remedy, notes, progress. Owns the exit codes of errors."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from filestore.cli import EXIT_INTERRUPTED
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.findings import is_clean
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import shown_path
from filestore.core.schema import Failure

if TYPE_CHECKING:
    from filestore.sync.apply import SyncReport

_FILES = 128
"""So many files must be allowed to be open: a sync of a large store has half as many."""
_MEMORY_BYTES = {"v": 1536 << 20, "d": 512 << 20}
"""Option of ulimit to so much as must be allowed, to index some hundred files on one core."""
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_QUIET_S = 1.0
"""Work shorter than this shows no progress."""


def report(error: FilestoreError, *, as_json: bool) -> int:
    """Say what went wrong and what to do; returns the exit code."""
    if as_json:
        from filestore.cli import _output

        _output.write_json(Failure.of(error).to_dict())
    else:
        say_error("filestore", error)
    return error.exit_code


def exit_code_of(report: "SyncReport") -> int:
    """The exit code of a sync; says why texts were left without vectors."""
    left = left_without(report.problem)
    if report.mass_missing:
        return 4
    return left or (0 if is_clean(report.remaining) else 1)


def left_without(problem: FilestoreError | None) -> int:
    """Say why texts were left without vectors; returns the exit code."""
    from filestore.embed import ModelMissing, UnknownEmbedder
    from filestore.sidecar.model import ModelChanged
    from filestore.sidecar.models import NotEmbedded

    if problem is None:
        return 0
    say(f"filestore: {problem.message}")
    by = "the store's own model" if isinstance(problem, NotEmbedded) else "keyword"
    say(f"  texts without vectors are found by {by}; 'filestore sync' tries again")
    if problem.remedy:
        say(f"  try: {problem.remedy}")
    # A model that is not here is a finding like any other; one that fails is a failure.
    is_finding = isinstance(problem, ModelMissing | ModelChanged | UnknownEmbedder)
    return 1 if is_finding else problem.exit_code


def interrupted(error: KeyboardInterrupt, *, as_json: bool) -> int:
    """Say what an interruption left; returns the exit code."""
    (done, following), *_ = (
        *(note.split("\n") for note in getattr(error, "__notes__", ())),
        ("what was done so far is kept", "run it again"),
    )
    message = f"interrupted: {done}; {following} to continue"
    if as_json:
        from filestore.cli import _output

        _output.write_json(Failure("interrupted", message, following).to_dict())
    else:
        say(f"filestore: {message}")
    return EXIT_INTERRUPTED


def require_room() -> None:
    """See to it that enough files can be opened and enough memory can be taken.

    A file that cannot be opened would pass for damaged; native libraries end the process where
    there is no memory.

    Raises:
        LimitReachedError: A limit of this process is too low, and may not be raised.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FILES:
        if hard != resource.RLIM_INFINITY and hard < _FILES:
            from filestore.fs.disk import too_few_files

            raise too_few_files()
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, hard))
    limits = {"v": resource.RLIMIT_AS, "d": resource.RLIMIT_DATA}
    for option, least in _MEMORY_BYTES.items():
        soft, _ = resource.getrlimit(limits[option])
        if soft == resource.RLIM_INFINITY:
            continue
        # Each of their threads takes room, and else there are as many as the machine has cores.
        for name in _THREADS:
            os.environ.setdefault(name, "1")
        if soft < least:
            from filestore.fs.disk import LimitReachedError

            raise LimitReachedError(
                f"this process may take {soft:,} bytes of memory, {least:,} are needed",
                remedy=f"raise the limit in a new shell: 'ulimit -{option} unlimited'",
            )


def of_machine(error: OSError | MemoryError, *, as_json: bool) -> int:
    """Say what the machine refused; returns the exit code."""
    from filestore.fs.disk import pass_limits

    try:
        pass_limits(error)
    except FilestoreError as reason:
        return report(reason, as_json=as_json)
    if isinstance(error, MemoryError):
        return FilestoreError.exit_code
    if error.filename is not None:
        problem = FilestoreError(
            f"cannot use {os.fsdecode(error.filename)}: {error.strerror}",
            remedy="'filestore status' says what is wrong with the store",
            detail=str(error),
        )
        return report(problem, as_json=as_json)
    say(f"filestore: cannot write the answer: {error.strerror or error}")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FilestoreError.exit_code


def say(text: str) -> None:
    """Write one line to stderr; where stderr cannot be written, the exit code has to do."""
    with contextlib.suppress(OSError):
        # What goes wrong is told by names.
        sys.stderr.write("\n".join(map(shown_path, text.split("\n"))) + "\n")


def say_error(head: str, error: FilestoreError) -> None:
    """Write to stderr what went wrong, and what to do."""
    say(f"{head}: {error.message}")
    if error.remedy:
        say(f"  try: {error.remedy}")


@contextlib.contextmanager
def progress_bar() -> Iterator[OnProgress]:
    """Until the block ends, draw a line that keeps up with long work; on a terminal alone."""
    began, bar, task, stage = time.monotonic(), None, None, ""

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

    try:
        yield take if sys.stderr.isatty() else ignore
    finally:
        if bar is not None:
            bar.stop()


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


def ask(words: str) -> None:
    """Say what is to happen, and ask a person who can answer; anybody else has to say --yes.

    Raises:
        RefusedError: Nobody can answer, or they do not want it.
    """
    if not sys.stdin.isatty():
        raise RefusedError(words, remedy="add --yes")
    say(words)
    go_on()


def go_on(question: str = "go on?", *, refused: str = "nothing was changed") -> None:
    """Ask a person who can answer about what was said.

    Raises:
        RefusedError: They do not want it.
    """
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RefusedError(refused, remedy="answer y, or add --yes")

"""Measuring whole processes, and the table in which the benchmarks say what they found.

One rule: a figure and its yardstick are taken in turns in one run, and medians are compared. The
measuring process stays small, because the peak memory of a child counts its parent's until it has
become another program.
"""

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

FOUND: Final = (0, 1)
"""Exit codes of a command that did its work: 1 is drift, or nothing found."""
MIB: Final = 1024 * 1024

_STORES: Final = str(Path(__file__).with_name("stores.py"))
_AUDITED: Final = str(Path(__file__).with_name("audited.py"))

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One process from start to end."""

    wall_s: float
    cpu_s: float
    """Processor time, of its children as well."""
    peak_bytes: int
    """Of the largest single process among it and its children."""
    exit_code: int
    output: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a report."""

    figure: str
    ours: str
    yardstick: str = "–"
    compared: str = "–"
    """Ratio to, or difference from the yardstick."""
    goal: str = "–"
    met: bool | None = None
    """None where there is no goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What every benchmark can be told."""

    files: int
    folders: int
    runs: int
    work: str
    """A folder for stores, reused where it has them already."""
    flags: tuple[str, ...] = ()
    """Those of its own that were given."""


def filestore(*words: str) -> list[str]:
    """The installed command of the Python in use."""
    command = shutil.which("filestore", path=os.path.dirname(sys.executable))
    if command is None:
        raise SystemExit(f"no filestore command beside {sys.executable}: pip install .")
    return [command, *words]


def run(
    command: Sequence[str], *, folder: str | None = None, expected: Sequence[int] = (0,)
) -> Run:
    """Run a command to its end.

    Raises:
        SystemExit: Its exit code is none of the expected ones.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        words = errors.read().decode(errors="replace")
        # A crash of Python gives 1 as well.
        if process.returncode not in expected or "Traceback (most" in words:
            raise SystemExit(f"{' '.join(command)} gave {process.returncode}: {words}")
        return Run(
            wall_s=wall_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_bytes=usage.ru_maxrss * 1024,
            exit_code=process.returncode,
            output=output.read(),
        )


def alternate(runs: int, *actions: Callable[[], Result]) -> list[list[Result]]:
    """The results of each action, taken in turns."""
    results: list[list[Result]] = [[] for _ in actions]
    for _ in range(runs):
        for action, found in zip(actions, results, strict=True):
            found.append(action())
    return results


def median_s(runs: Sequence[Run]) -> float:
    """The median wall time."""
    return statistics.median(one.wall_s for one in runs)


def median_cpu_s(runs: Sequence[Run]) -> float:
    """The median processor time."""
    return statistics.median(one.cpu_s for one in runs)


def peak_bytes(runs: Sequence[Run]) -> int:
    """The highest peak memory."""
    return max(one.peak_bytes for one in runs)


def chunk_files_opened(command: Sequence[str], folder: str) -> int:
    """How many times a command opens a chunk file, its children included."""
    with tempfile.TemporaryDirectory() as scratch:
        log = os.path.join(scratch, "opened")
        if shutil.which("strace"):
            traced = ["strace", "-f", "-qq", "-e", "trace=openat", "-o", log, *command]
        else:
            traced = [sys.executable, _AUDITED, log, *command]
        run(traced, folder=folder, expected=FOUND)
        with open(log, encoding="utf-8", errors="replace") as lines:
            return sum(bool(re.search(r'open(?:at)?\(.*\.md"', line)) for line in lines)


@contextlib.contextmanager
def options(
    document: str, *, files: int, folders: int, runs: int, flags: Sequence[str] = ()
) -> Iterator[Options]:
    """The options of a benchmark; a temporary work folder goes away afterwards."""
    parser = argparse.ArgumentParser(description=document.partition("\n")[0])
    parser.add_argument("--files", type=int, default=files, help="default: %(default)s")
    parser.add_argument("--folders", type=int, default=folders, help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=runs, help="default: %(default)s")
    parser.add_argument("--work", metavar="DIR", help="keep the stores here, and use them again")
    for flag in flags:
        parser.add_argument(f"--{flag}", action="store_true")
    given = parser.parse_args()
    chosen = tuple(flag for flag in flags if getattr(given, flag))
    with contextlib.ExitStack() as stack:
        work = given.work or stack.enter_context(tempfile.TemporaryDirectory())
        os.makedirs(work, exist_ok=True)
        # An installed package has its bytecode; a checkout may not, or may be told to keep none.
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.abspath(os.path.join(work, "bytecode"))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        # What the user's machine knows of these stores goes with them.
        os.environ["XDG_CONFIG_HOME"] = os.path.abspath(os.path.join(work, "configuration"))
        yield Options(
            files=given.files, folders=given.folders, runs=given.runs, work=work, flags=chosen
        )


def store(work: str, files: int, folders: int) -> str:
    """The root of a store of this size, made where there is none; not necessarily indexed."""
    root = os.path.abspath(os.path.join(work, f"store-{files}-{folders}"))
    if not os.path.isdir(root):
        run([sys.executable, _STORES, root, str(files), str(folders)])
    return root


def indexed_store(work: str, files: int, folders: int) -> str:
    """The root of a store of this size that is in step with its files."""
    root = store(work, files, folders)
    run(filestore("sync"), folder=root)
    return root


def milliseconds(seconds: float) -> str:
    """A duration to be read in milliseconds."""
    if seconds >= 0.1:
        return f"{seconds * 1000:,.0f} ms"
    return f"{seconds * 1000:.1f} ms" if seconds >= 0.01 else f"{seconds * 1000:.2f} ms"


def over(figure: str, ours_s: float, yardstick: str, theirs_s: float, limit_s: float) -> Row:
    """A row for a time that may be so much longer than its yardstick."""
    return Row(
        figure=figure,
        ours=milliseconds(ours_s),
        yardstick=f"{yardstick} {milliseconds(theirs_s)}",
        compared=f"{(ours_s - theirs_s) * 1000:+,.1f} ms",
        goal=f"≤ +{limit_s * 1000:,.0f} ms",
        met=ours_s - theirs_s <= limit_s,
    )


def times(figure: str, ours_s: float, yardstick: str, theirs_s: float, limit: float) -> Row:
    """A row for a time that may be so many times its yardstick."""
    return Row(
        figure=figure,
        ours=f"{ours_s:.2f} s",
        yardstick=f"{yardstick} {theirs_s:.2f} s",
        compared=f"× {ours_s / theirs_s:.2f}",
        goal=f"≤ × {limit:g}",
        met=ours_s <= limit * theirs_s,
    )


def peak(figure: str, runs: Sequence[Run], limit_bytes: int | None = None) -> Row:
    """A row for the highest peak memory of some runs."""
    highest = peak_bytes(runs)
    return Row(
        figure=figure,
        ours=f"{highest / MIB:.0f} MB",
        goal="–" if limit_bytes is None else f"≤ {limit_bytes / MIB:.0f} MB",
        met=None if limit_bytes is None else highest <= limit_bytes,
    )


def counted(figure: str, found: int, goal: int) -> Row:
    """A row for a number that must be met exactly."""
    return Row(figure=figure, ours=f"{found:,}", goal=f"{goal:,}", met=found == goal)


def table(title: str, rows: Sequence[Row]) -> str:
    """A report in Markdown."""
    lines = [
        f"### {title}",
        "",
        "| figure | filestore | yardstick | compared | goal | |",
        "|---|---|---|---|---|---|",
    ]
    words = {True: "met", False: "**missed**", None: ""}
    for row in rows:
        cells = (row.figure, row.ours, row.yardstick, row.compared, row.goal, words[row.met])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"

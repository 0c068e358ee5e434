"""Lines around the pages: header, footer, help, tasks, errors, and the screen without a store."""

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from filestore.browse import shown_path
from tui.formatting.lines import Line, Role, Span, count, line, one_line, shortened, span

if TYPE_CHECKING:
    from filestore import AddReport, FilestoreError

PAGES: Final = (("browse", "1 Browse"), ("verify", "2 Verify"), ("repair", "3 Repair"))


def store_name(root: str) -> str:
    """What the store is called on the screen: its folder, and the one above for a common name."""
    parts = [part for part in root.split(os.sep) if part]
    name = os.sep.join(parts[-2:] if parts[-1:] == ["file_index"] else parts[-1:])
    return shown_path(name) or shown_path(root)


def page_name(page: str, title: str, *, current: bool, found: Mapping[str, int]) -> Line:
    """A page in the header: brackets mark the current one, a number counts findings."""
    worst = next((severity for severity in "EW" if found.get(severity)), "")
    number = sum(found.get(severity, 0) for severity in "EW")
    words = f"{title}({number:,})" if page == "verify" and number else title
    role: Role = "error" if worst == "E" else "warning" if worst else "text"
    if current:
        return (Span(f"[{words}]", "title" if page != "verify" or not worst else role),)
    return (Span(words, role if page == "verify" else "quiet"),)


def standing(clean: bool | None, found: Mapping[str, int], *, running: bool) -> Line:
    """How the store stands, in a word."""
    if running:
        return line("checking …", "quiet")
    if clean:
        return line("clean", "good")
    if clean is None and not found.get("E") and not found.get("W"):
        return line("not checked yet", "quiet")
    words = [
        count(found[severity], noun)
        for severity, noun in (("E", "error"), ("W", "warning"))
        if found.get(severity)
    ]
    return line(", ".join(words) or "not clean", "error" if found.get("E") else "warning")


def key_words(label: str, title: str, *, refused: bool) -> Line:
    """A key in the footer; an unavailable one is dimmed."""
    return (Span(label, "quiet" if refused else "key"), Span(f" {title}", "quiet"))


def task_lines(
    title: str, state: str, progress: Line, outcome: str, *, started: str, writes: bool
) -> list[Line]:
    """One task of the panel."""
    role: Role = {"failed": "error", "stopped": "warning", "done": "good"}.get(state, "title")  # type: ignore[assignment]
    lines: list[Line] = [
        (Span(f"{state:<9}", role), span(title, "title"), span(f"  {started}", "quiet"))
    ]
    if progress:
        lines.append((Span("         "), *progress))
    if outcome:
        lines.append(line(f"         {outcome}", "quiet"))
    if state in ("running", "waiting", "stopping"):
        safe = "safely: what was done stays" if writes else "without any change"
        lines.append(line(f"         x stops it {safe}", "quiet"))
    return lines


def help_lines(keys: str, meaning: str, command: str) -> list[Line]:
    """Keys, what they do, and below it the command line or why there is none."""
    first: Line = (span(f"  {keys:<14}", "key"), span(meaning))
    return [first, (Span(f"  {'':<14}", "quiet"), span(command, "quiet"))] if command else [first]


def error_lines(error: "FilestoreError") -> list[Line]:
    """What went wrong and what to do about it."""
    lines = [line(shown_path(error.message), "error")]
    if error.remedy:
        lines += [(), (Span("try  ", "quiet"), span(error.remedy, "title"))]
    if error.detail:
        lines += [(), *(line(one, "quiet") for one in error.detail.splitlines())]
    return lines


def short_error(error: "FilestoreError") -> str:
    """An error in two lines at most."""
    remedy = f"\ntry: {one_line(error.remedy)}" if error.remedy else ""
    return shown_path(error.message) + remedy


def start_lines(error: "FilestoreError", *, absent: bool) -> list[Line]:
    """What stands where no store can be opened.

    Args:
        error: Why it cannot be opened.
        absent: Whether there is no store at all, so that one can be made.
    """
    lines = error_lines(error)
    if absent:
        lines += [(), line("n  make a store here", "key"), line("x  open the example", "key")]
    return [*lines, (), line("r  try again", "key"), line("q  quit", "key")]


def log_lines(entries: Sequence[tuple[float, str]]) -> list[Line]:
    """The command lines of what was done, oldest first."""
    if not entries:
        return [line("nothing done yet", "quiet")]
    return [(Span(f"{clock(at)}  ", "quiet"), span(shortened(command))) for at, command in entries]


def log_text(entries: Sequence[tuple[float, str]]) -> str:
    """The same to be copied: each command line whole."""
    return "\n".join(f"{clock(at)}  {command}" for at, command in entries)


def clock(at: float) -> str:
    """The time of day of a moment."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def add_summary(report: "AddReport") -> str:
    """What became of the documents that were added, in a few words."""
    counts = Counter(outcome.status for outcome in report.outcomes)
    parts = [f"{number:,} {one_line(status)}" for status, number in counts.items()]
    return ", ".join(parts) or "nothing was added"


def add_errors(report: "AddReport") -> "list[tuple[str, FilestoreError]]":
    """What could not be added: the source or document, and why."""
    found = [
        (outcome.source, outcome.error) for outcome in report.outcomes if outcome.error is not None
    ]
    return found + [failure for outcome in report.outcomes for failure in outcome.failures]

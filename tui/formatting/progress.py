"""The progress of work as a line: a bar, a rate, the time left. Pure."""

from typing import Final

from tui.formatting.lines import Line, Span, span

_SURE_AFTER_S: Final = 0.5
"""Before this, no rate is shown."""


def progress_line(
    stage: str, *, done: int, total: int | None, elapsed_s: float, width: int = 24
) -> Line:
    """One line of progress.

    Args:
        stage: What is being done.
        done: How many are done.
        total: How many there are; None while unknown.
        elapsed_s: The time so far.
        width: Of the bar.
    """
    rate = done / elapsed_s if elapsed_s >= _SURE_AFTER_S else 0.0
    words = [stage or "beginning"]
    if total:
        words.append(f"{min(done, total):,}/{total:,}")
    elif done:
        words.append(f"{done:,}")
    if rate:
        words.append(f"{rate:,.0f}/s" if rate >= 1 else "less than 1/s")
    if rate and total:
        words.append(f"{duration(max(0, total - done) / rate)} left")
    bar = (Span(f"{bar_of(done, total, width)} ", "note"),) if total else ()
    return (*bar, span("  ".join(words)))


def bar_of(done: int, total: int, width: int) -> str:
    """A bar that every terminal can show."""
    full = width * min(done, total) // total if total else 0
    return f"[{'#' * full}{'.' * (width - full)}]"


def duration(seconds: float) -> str:
    """A time to wait, as roughly as it is known."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"

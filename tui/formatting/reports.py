"""Lines for what was done or went wrong: repairs, syncs, undo, enriching, tasks, errors, the log.

And those around the pages: header, footer, help. Pure. One rule: what it costs comes first, and
what was skipped, or is left, comes with its reason.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from filestore.browse import shown_path
from tui.formatting import Line, Role, Span, count, field, line, more_lines, shortened, span
from tui.formatting.findings import SEVERITY, diff_lines

if TYPE_CHECKING:
    from filestore import FilestoreError, Finding, RepairReport, SyncReport, UndoResult
    from filestore.browse import Group

Side = Literal["before", "after"]
Fate = Literal["comes back", "goes", "changes"]

_SHOWN: Final = 200
"""Paths that are named; the rest is counted."""
MOST_PRINTED: Final = 1_000
"""Lines of a command in its panel."""
_THEN: Final = "; then: "
"""Before the command of git in the detail of a step that takes a side."""
_CHANGED: Final[dict[Side, str]] = {"before": "changed back", "after": "changed again"}
_DONE: Final[dict[Side, tuple[str, str]]] = {
    "before": ("undone", "U redoes it"),
    "after": ("redone", "u undoes it"),
}
"""What undo and redo did, and the key for the other one."""
_FATES: Final[dict[Fate, Role]] = {"comes back": "good", "goes": "error", "changes": "note"}


def report_lines(report: "RepairReport", *, store: str = "") -> list[Line]:
    """What a repair did, what it left alone and why, and what is still found.

    Args:
        report: The repair.
        store: What names the store on a command line, with a space behind it.
    """
    # With it comes what reads merges, which the first page does not need.
    from filestore.browse import KINDS

    done = count(len(report.applied), "step")
    kinds = Counter(KINDS[step.kind].title for step in report.applied)
    found = [line(f"applied {done}", "title")]
    found += [line(f"  {title}: {number:,}") for title, number in kinds.items()]
    found += _embedded(report.embedded, report.reused, report.problem)
    if report.skipped:
        found += [line(""), line(f"skipped {count(len(report.skipped), 'step')}", "title")]
        for step, why in report.skipped[:_SHOWN]:
            named = why if why.startswith(step.path) else f"{shown_path(step.path)}: {why}"
            found.append((Span("  "), span(named)))
        found += more_lines(len(report.skipped), _SHOWN)
    left = [finding for finding in report.remaining if finding.severity != "I"]
    if left:
        numbers: dict[str, list[Finding]] = {}
        for finding in left:
            numbers.setdefault(finding.code, []).append(finding)
        words = f"verified again: {count(len(left), 'finding')} left"
        found += [line(""), line(words, "warning")]
        found += [
            line(f"  {SEVERITY[some[0].severity][1]} {code}: {len(some):,}  {some[0].repair}")
            for code, some in numbers.items()
        ]
    else:
        found += [line(""), line("verified again: nothing is left that needs you", "good")]
    commands = [after for step in report.applied if (after := step.detail.partition(_THEN)[2])]
    if commands:
        found += [line(""), line("next:"), *(line(f"  {one}") for one in commands[:_SHOWN])]
        found += more_lines(len(commands), _SHOWN)
    if report.undo:
        found += [line(""), line(f"u undoes it: filestore {store}undo {report.undo}", "note")]
    return found


def _embedded(embedded: int, known: int, problem: "FilestoreError | None") -> list[Line]:
    found = [line(f"embedded {count(embedded, 'passage')} ({known:,} from cache)")]
    if problem is not None:
        found.append(line(f"some passages are not embedded yet: {problem.message}", "warning"))
        found += [line(problem.remedy)] if problem.remedy else []
    return found


def sync_summary(report: "SyncReport") -> str:
    """What a sync did, in a few words."""
    left = sum(finding.severity != "I" for finding in report.remaining)
    repaired = len(report.applied)
    done = f"{count(repaired, 'finding')} repaired" if repaired else "nothing to do"
    rest = f", {left:,} left for you" if left else ""
    return f"synced: {done}, {count(report.embedded, 'passage')} embedded{rest}"


def undo_lines(result: "UndoResult | None", *, side: Side) -> list[Line]:
    """What was undone or redone."""
    word, makes = _DONE[side]
    if result is None:
        return [line(f"there was nothing to be {word}", "title")]
    message = f"{word}: {result.identifier}, {shown_path(result.what)}"
    numbers = (
        (result.changed, _CHANGED[side]),
        (result.brought_back, "restored"),
        (result.removed, "removed"),
    )
    parts = [f"{count(number, 'file')} {became}" for number, became in numbers if number]
    found = [line(message, "title"), line(", ".join(parts) or "its files were already like that")]
    found += [(Span("  "), span(shown_path(path))) for path in result.paths[:_SHOWN]]
    found += more_lines(len(result.paths), _SHOWN)
    found += _embedded(result.embedded, result.reused, result.problem)
    found += [line(""), line(makes, "note")]
    if result.differing:
        message = f"restored {count(len(result.differing), 'file')} as before the repair"
        found.append(line(f"{message}: Verify shows what to do", "note"))
    return found


# The changes that can be undone and redone


def file_changes(group: "Group", side: Side) -> list[tuple[str, Fate]]:
    """What undoing ("before") or redoing ("after") a change does to each of its files, by path."""
    found: list[tuple[str, Fate]] = []
    for path, links in group.links().items():
        first, last = links[0].entry.before, links[-1].entry.after
        now, then = (last, first) if side == "before" else (first, last)
        fate: Fate = "goes" if then is None else "comes back" if now is None else "changes"
        found.append((path, fate))
    return sorted(found)


def batch_line(group: "Group") -> Line:
    """The row of a change."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(group.batches[0].made_s))
    files = count(len(group.links()), "file")
    roles: dict[str, Role] = {"undone": "quiet", "done": "text"}
    return (
        span(f"{group.id}  ", "key"),
        span(f"{when}  ", "quiet"),
        span(f"{group.state:<10}  ", roles.get(group.state, "warning")),
        # Before the command, which may be long.
        span(f"by {_by(group)}  "),
        span(f"{shown_path(group.problem or group.what)}  "),
        span(f"{files}, {group.bytes:,} bytes", "quiet"),
    )


def _by(group: "Group") -> str:
    # Of its own name a program could make any word.
    return "you" if group.by is None else f"“{shown_path(group.by)}”"


def batch_lines(group: "Group", diff: str = "") -> list[Line]:
    """Everything about a change, what undoing or redoing does to each file, and its diff."""
    side: Side = "after" if group.state == "undone" else "before"
    head = _DONE["before" if side == "after" else "after"][1]
    found = [
        line(f"change {group.id}", "title"),
        field("command", shown_path(group.what)),
        field("by", _by(group)),
        field("state", group.state),
        field("kept", f"{group.bytes:,} bytes"),
    ]
    if group.problem:
        return [*found, line(""), line(group.problem, "error")]
    files = file_change_lines(file_changes(group, side))
    shown = [line(""), *diff_lines(diff)] if diff else []
    return [*found, line(""), line(f"{head}:"), *files, *shown]


def file_change_lines(files: Sequence[tuple[str, Fate]]) -> list[Line]:
    """The files of a change, and what happens to each."""
    found: list[Line] = [
        (span(f"  {fate:<10}  ", _FATES[fate]), span(shown_path(path)))
        for path, fate in files[:_SHOWN]
    ]
    return found + more_lines(len(files), _SHOWN)


def undo_scope(group: "Group", side: Side) -> str:
    """What undoing or redoing a change does, counted."""
    word = "undo" if side == "before" else "redo"
    numbers = Counter(fate for _, fate in file_changes(group, side))
    messages: dict[Fate, str] = {
        "changes": f"changes {{}} {_CHANGED[side].removeprefix('changed ')}",
        "comes back": "restores {}",
        "goes": "removes {}",
    }
    # How far a change came that broke off, only the files themselves show.
    limit = "up to " if group.state == "broken off" else ""
    parts = [
        message.format(limit + count(numbers[fate], "file"))
        for fate, message in messages.items()
        if numbers[fate]
    ]
    return f"{word} {group.id}: {', '.join(parts) or 'no file'}"


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
    """The state of the store, in a word."""
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
    if outcome and outcome != state:
        lines.append(line(f"         {outcome}", "quiet"))
    if state in ("running", "waiting", "stopping"):
        safe = "safely: what was done stays" if writes else "without any change"
        lines.append(line(f"         x stops it {safe}", "quiet"))
    return lines


def log_lines(entries: Sequence[tuple[float, str]]) -> list[Line]:
    """The command lines of what was done, oldest first."""
    if not entries:
        return [line("nothing done yet", "quiet")]
    return [(Span(f"{clock(at)}  ", "quiet"), span(shortened(command))) for at, command in entries]


def clock(at: float) -> str:
    """The time of day of a moment."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def printed_lines(printed: Sequence[str]) -> list[Line]:
    """What a command printed, the end of it."""
    left = len(printed) - MOST_PRINTED
    head = [line(f"… {left:,} lines before; y copies them all", "quiet")] if left > 0 else []
    return [*head, *map(line, list(printed)[-MOST_PRINTED:])]


def run_lines(printed: Sequence[str], progress: Line, outcome: str) -> list[Line]:
    """A command in its panel: what it printed, and how far it is or how it ended."""
    if outcome:
        role: Role = "good" if outcome == "done" else "warning"
        return [*printed_lines(printed), (), line(outcome, role)]
    going = [(), progress, line("x stops it; esc leaves it running, w shows it", "quiet")]
    return [*printed_lines(printed), *going]

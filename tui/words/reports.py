"""Words for what was done: a repair, a sync, a change undone or redone, and the list of changes.

Pure. One rule: what was skipped, and what is left, is said with its reason.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from filestore import KINDS, shown_path
from tui.words.lines import Line, count, field, line, span

if TYPE_CHECKING:
    from filestore import (
        FilestoreError,
        Finding,
        Group,
        RepairReport,
        Step,
        SyncReport,
        Turned,
    )

Side = Literal["before", "after"]
Fate = Literal["comes back", "goes", "changes"]

_SHOWN: Final = 200
"""So many paths are named; the rest is counted."""


def report_lines(report: "RepairReport", *, store: str = "") -> list[Line]:
    """What a repair did, what it left alone and why, and what is still found.

    Args:
        report: The repair.
        store: What names the store on a command line, with a space behind it.
    """
    done = count(len(report.applied), "step")
    found = [line(f"applied {done}", "title"), *_by_kind(report.applied)]
    found += _embedded(report.embedded, report.reused, report.problem)
    if report.skipped:
        found += [line(""), line(f"skipped {count(len(report.skipped), 'step')}", "title")]
        found += [line(_skipped(step, why)) for step, why in report.skipped[:_SHOWN]]
        found += _more(len(report.skipped))
    found += [line(""), *_remaining(report.remaining)]
    if report.undo:
        found += [line(""), *(_way_back(name, store) for name in report.undo)]
    return found


def report_words(report: "RepairReport") -> str:
    """The same in a few words."""
    skipped = f", {len(report.skipped):,} skipped" if report.skipped else ""
    kept = f"; u undoes {', '.join(report.undo)}" if report.undo else ""
    return f"applied {count(len(report.applied), 'step')}{skipped}{kept}"


def _by_kind(steps: "Iterable[Step]") -> list[Line]:
    numbers: dict[str, int] = {}
    for step in steps:
        numbers[KINDS[step.kind].title] = numbers.get(KINDS[step.kind].title, 0) + 1
    return [line(f"  {title}: {number:,}") for title, number in numbers.items()]


def _embedded(embedded: int, known: int, problem: "FilestoreError | None") -> list[Line]:
    found = [line(f"{count(embedded, 'text')} embedded, {known:,} known already")]
    if problem is not None:
        found.append(line(f"some texts wait for their vectors: {problem.message}", "warning"))
        found += [line(problem.remedy)] if problem.remedy else []
    return found


def _skipped(step: "Step", why: str) -> str:
    path = shown_path(step.path)
    return f"  {why}" if why.startswith(step.path) else f"  {path}: {why}"


def _more(total: int) -> list[Line]:
    return [line(f"  … and {total - _SHOWN:,} more", "quiet")] if total > _SHOWN else []


def _remaining(findings: "Sequence[Finding]") -> list[Line]:
    """What is still found, counted by code; notes are no matter."""
    matters = [finding for finding in findings if finding.severity != "I"]
    if not matters:
        return [line("verified again: nothing is left that needs you", "good")]
    numbers: dict[str, list[Finding]] = {}
    for finding in matters:
        numbers.setdefault(finding.code, []).append(finding)
    return [
        line(f"verified again: {count(len(matters), 'finding')} left", "warning"),
        *(
            line(f"  {some[0].severity} {code}: {len(some):,}  {some[0].repair}")
            for code, some in numbers.items()
        ),
    ]


def _way_back(identifier: str, store: str) -> Line:
    return (span(f"u takes it back: filestore {store}undo {identifier}", "note"),)


def sync_lines(report: "SyncReport") -> list[Line]:
    """What a sync did, and what it leaves for a person."""
    numbers: dict[str, int] = {}
    for finding in report.applied:
        numbers[finding.code] = numbers.get(finding.code, 0) + 1
    done = [line(f"  {code}: {number:,}") for code, number in numbers.items()]
    found = [line("synced" if done else "synced: nothing was to be done", "title"), *done]
    found += _embedded(report.embedded, report.reused, report.problem)
    if numbers.get("missing"):
        found.append(line("forgotten files come back in Repair: t, then A"))
    if report.mass_missing:
        words = "so many files are gone that nothing was forgotten: see mass-missing in Verify"
        found.append(line(words, "warning"))
    return [*found, line(""), *_remaining(report.remaining)]


def sync_words(report: "SyncReport") -> str:
    """The same in a few words."""
    left = sum(finding.severity != "I" for finding in report.remaining)
    done = count(len(report.applied), "finding") + " mended" if report.applied else "nothing to do"
    rest = f", {left:,} left for you" if left else ""
    return f"synced: {done}, {count(report.embedded, 'text')} embedded{rest}"


def turned_lines(turned: "Turned | None", *, side: Side) -> list[Line]:
    """What was undone or redone."""
    word, key, other = ("undone", "U", "again") if side == "before" else ("redone", "u", "back")
    if turned is None:
        return [line(f"there was nothing to be {word}", "title")]
    said = f"{word}: {turned.identifier}, {shown_path(turned.what)}"
    found = [line(said, "title"), line(_became(turned, side))]
    found += [line(f"  {shown_path(path)}") for path in turned.paths[:_SHOWN]]
    found += _more(len(turned.paths))
    found += _embedded(turned.embedded, turned.reused, turned.problem)
    makes = "makes the change again" if other == "again" else "takes it back"
    found += [line(""), line(f"{key} {makes}", "note")]
    if turned.differing:
        said = f"{count(len(turned.differing), 'file')} as the repair had found them"
        found.append(line(f"{said}: Verify lists what is to be done", "note"))
    return found


def _became(turned: "Turned", side: Side) -> str:
    """What became of the files, counted."""
    numbers = (
        (turned.changed, _CHANGED[side]),
        (turned.brought_back, "brought back"),
        (turned.removed, "removed"),
    )
    parts = [f"{count(number, 'file')} {said}" for number, said in numbers if number]
    return ", ".join(parts) or "its files were so already"


_CHANGED: Final[dict[Side, str]] = {"before": "changed back", "after": "changed again"}


def turned_words(turned: "Turned | None", *, side: Side) -> str:
    """The same in a few words."""
    word, key = ("undone", "U redoes") if side == "before" else ("redone", "u undoes")
    if turned is None:
        return f"nothing to be {word}"
    return f"{word}: {turned.identifier}, {count(len(turned.paths), 'file')}; {key} it"


def refusal_lines(error: "FilestoreError") -> list[Line]:
    """Why something was not done, all of it, and what to do."""
    head, *rest = error.message.splitlines() or [""]
    found = [line(head, "error"), *(line(text) for text in rest), line("")]
    found += [line(text) for text in error.remedy.splitlines()]
    return [*found, *(line(text, "quiet") for text in error.detail.splitlines())]


# The changes that can be undone and redone


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One file of a change, and what undoing or redoing does to it."""

    path: str
    fate: Fate


def turns(group: "Group", side: Side) -> list[Turn]:
    """What bringing the files of a change to one side does to each, by path."""
    found = []
    for path, links in group.links().items():
        entry = links[0].entry if side == "before" else links[-1].entry
        now = links[-1].entry.after if side == "before" else links[0].entry.before
        then = entry.before if side == "before" else entry.after
        found.append(Turn(path=path, fate=_fate(is_now=now is not None, is_then=then is not None)))
    return sorted(found, key=lambda one: one.path)


def _fate(*, is_now: bool, is_then: bool) -> Fate:
    if is_then:
        return "changes" if is_now else "comes back"
    return "goes"


def state_of(group: "Group") -> str:
    """Where a change stands, in a word or two."""
    if group.problem:
        return "damaged"
    if group.underway or not (group.is_all("before") or group.is_all("after")):
        return "broken off"
    return "undone" if group.is_all("before") else "done"


def next_turn(groups: "Sequence[Group]", side: Side) -> "Group | None":
    """The change that undo or redo takes where none is named: what broke off goes first."""
    usable = [group for group in groups if not group.problem]
    broken = [group for group in usable if _is_broken_off(group, side)]
    if broken:
        return max(broken, key=lambda group: group.sequence)
    others = [group for group in usable if not group.is_all(side)]
    if side == "before":
        return max(others, key=lambda group: int(group.identifier), default=None)
    return max(others, key=lambda group: group.sequence, default=None)


def _is_broken_off(group: "Group", side: Side) -> bool:
    return any(one.underway and one.wanted == side and one.sequence for one in group.batches)


def batch_line(group: "Group") -> Line:
    """The row of a change."""
    state = state_of(group)
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(group.batches[0].made_s))
    files = count(len(group.links()), "file")
    return (
        span(f"{group.identifier}  ", "key"),
        span(f"{when}  ", "quiet"),
        span(f"{state:<10}  ", "quiet" if state == "undone" else _state_role(state)),
        span(f"{shown_path(group.problem or group.what)}  "),
        span(f"{files}, {group.size_bytes:,} bytes", "quiet"),
    )


def _state_role(state: str) -> Literal["text", "warning"]:
    return "text" if state == "done" else "warning"


def batch_lines(group: "Group") -> list[Line]:
    """Everything about a change, and what undoing or redoing does to each file."""
    state = state_of(group)
    side: Side = "after" if state == "undone" else "before"
    head = "U redoes it" if side == "after" else "u undoes it"
    found = [
        line(f"change {group.identifier}", "title"),
        field("command", shown_path(group.what)),
        field("state", state),
        field("kept", f"{group.size_bytes:,} bytes"),
    ]
    if group.problem:
        return [*found, line(""), line(group.problem, "error")]
    return [*found, line(""), line(f"{head}:"), *turn_lines(turns(group, side))]


def turn_lines(files: Sequence[Turn]) -> list[Line]:
    """The files of a change, and what happens to each."""
    found: list[Line] = [
        (span(f"  {one.fate:<10}  ", _FATES[one.fate]), span(shown_path(one.path)))
        for one in files[:_SHOWN]
    ]
    return found + _more(len(files))


_FATES: Final[dict[Fate, Literal["good", "error", "note"]]] = {
    "comes back": "good",
    "goes": "error",
    "changes": "note",
}


def turn_scope(group: "Group", side: Side) -> str:
    """What undoing or redoing a change does, counted."""
    files = turns(group, side)
    word = "undo" if side == "before" else "redo"
    parts = []
    for fate, said in (("changes", _CHANGED[side]), ("comes back", "brought back")):
        number = sum(one.fate == fate for one in files)
        if number:
            parts.append(f"{count(number, 'file')} {said}")
    gone = removals(group, side)
    if gone:
        parts.append(f"{count(gone, 'file')} removed")
    # How far a change came that broke off, only the files themselves tell.
    limit = "up to " if parts and state_of(group) == "broken off" else ""
    return f"{word} {group.identifier}: {limit}{', '.join(parts) or 'no file'}"


def removals(group: "Group", side: Side) -> int:
    """How many files go by undoing or redoing a change."""
    return sum(one.fate == "goes" for one in turns(group, side))

"""Repairs that are planned and asked for; what undoes a change of files, and redoes it."""

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct

from filestore.cli import _context, _output
from filestore.core.errors import RefusedError
from filestore.core.findings import Finding, is_clean
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.repair.plan import KINDS, Plan, SkippedStep, Step
from filestore.server import requests
from filestore.server.operations import CommonOptions, argument, option

if TYPE_CHECKING:
    from filestore.history.batch import Group

_SHOWN = 10
"""Paths listed under one kind of step; the rest is counted."""


class PlannedRepair(JsonObject, Struct, frozen=True):
    """What `repair --plan` prints."""

    KEYS = "plan applied skipped remaining undo"

    plan: Plan
    """What would be done."""
    remaining: tuple[Finding, ...]
    """What was found."""
    applied: tuple[Step, ...] = ()
    """Empty."""
    skipped: tuple[SkippedStep, ...] = ()
    """Empty."""
    undo: tuple[str, ...] = ()
    """Empty."""


class Repair(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    plan: bool = False
    """only show the plan"""
    only: Annotated[list[str], option("CODE", many=True)] = []
    """repair only these findings"""
    path: Annotated[list[str], option("P", many=True)] = []
    """repair only these files or folders"""
    ours: Annotated[list[str], option("PATH", many=True)] = []
    """keep the edit of a file as it is, or our side of git's conflict in it"""
    theirs: Annotated[list[str], option("PATH", many=True)] = []
    """take the source's new text, or their side"""
    remove: Annotated[list[str], option("PATH", many=True)] = []
    """remove a file whose text another file has"""
    truth: Annotated[bool, option(None, "--write-files")] = False
    """also apply steps that write, restore or remove files"""
    yes: bool = False
    """do not ask"""
    level: Literal["fast", "full", "deep"] | None = None
    """how thoroughly to verify first; only full finds damage (default: what --only needs, else
    fast)"""


def run_repair(options: Repair) -> int:
    """Verify, show a plan of repairs, ask, apply it, and verify again.

    Example: filestore repair --write-files --path chunked/notes.md/chunk1.md
    """
    with _context.open_store(options) as store:
        with _output.progress_bar() as on_progress:
            plan = store.plan(
                truth=options.truth,
                only=options.only,
                paths=options.path,
                ours=options.ours,
                theirs=options.theirs,
                remove=options.remove,
                level=options.level,
                on_progress=on_progress,
            )
        if options.plan:
            planned = PlannedRepair(plan, plan.findings)
            if not _context.printed_json(options, planned):
                _show(plan, _output.line)
            left = [one.finding for one in plan.left]
            return 1 if plan.steps or not is_clean(left, store.settings.accepted) else 0
        if plan.doable and not options.yes:
            _ask(options, plan)
        elif not options.json:
            _show(plan, _output.line)
        with _output.progress_bar() as on_progress:
            report = store.apply(plan, on_progress=on_progress)
        clean = is_clean(list(report.remaining), store.settings.accepted)
        problem = _output.left_without(report.problem)
        if not _context.printed_json(options, report):
            applied = Counter(KINDS[step.kind].title for step in report.applied)
            if applied:
                titles = (f"{title} ({number:,})" for title, number in applied.items())
                _output.line(f"applied: {', '.join(titles)}")
                _output.line(_output.embedded(report.embedded, report.reused))
            for step, why in report.skipped:
                head = "" if why.startswith(step.path) else f"{shown_path(step.path)}: "
                _output.line(f"skipped: {head}{why}")
            if report.undo:
                _output.line(f"to undo it: filestore undo {report.undo}")
            remaining = [finding for finding in report.remaining if finding.severity != "I"]
            if remaining:
                _output.line("remaining:")
                _output.findings(remaining)
            _output.line("clean" if clean else "not clean")
        return problem or (0 if clean else 1)


def _show(plan: Plan, line: Any) -> None:
    """Say what is to be done, kind by kind, and what is left for a person."""
    if not plan.steps:
        line("nothing to do")
    groups: dict[str, list[Step]] = {}
    for step in plan.steps:
        groups.setdefault(step.kind, []).append(step)
    for kind, steps in groups.items():
        _show_kind(kind, steps, plan, line)
    for text in _output.folded(_price(plan), indent=0):
        line(text)
    if plan.left:
        line("left for you:")
    lists = "; 'filestore verify' lists them"
    for one in _output.first(plan.left, _SHOWN, line, rest=lists):
        finding = one.finding
        line(f"    {finding.severity} {finding.code}  {shown_path(finding.path)}")
        for text in _output.folded(f"      {one.reason}", indent=6):
            line(text)


def _show_kind(kind: str, steps: list[Step], plan: Plan, line: Any) -> None:
    needs = "" if plan.allows(steps[0]) else ", needs --write-files"
    line(f"{KINDS[kind].title} ({_sizes(steps)}{needs})")
    # Each text that would be lost has to be seen.
    most = len(steps) if KINDS[kind].named else _SHOWN
    for step in _output.first(steps, most, line, rest=""):
        from_where = f"  from {shown_path(step.other)}" if step.kind == "repoint" else ""
        detail = shown_path(step.detail) if step.truth or step.part else ""
        _output.with_detail(f"    {shown_path(step.path)}{from_where}", detail, line)
        for text in step.diff.splitlines():
            line(f"      {text}")


def _sizes(steps: list[Step]) -> str:
    if steps[0].part:
        parts = [_output.count(sum(step.findings for step in steps), "finding")]
    else:
        parts = [_output.count(len(steps), "file")]
    read = sum(step.read_bytes for step in steps)
    written = sum(step.write_bytes for step in steps)
    parts += [f"{read:,} bytes to read"] if read else []
    parts += [f"{written:,} bytes to write"] if written else []
    return ", ".join(parts)


def _price(plan: Plan) -> str:
    """What the plan has to embed, in words; "" where it embeds nothing."""
    unknown = any(step.texts is None and plan.allows(step) for step in plan.steps)
    if not (plan.texts or plan.known or unknown):
        return ""
    who = (
        f"{plan.model.partition('|')[0]} has to embed"
        if plan.model
        else "without a model, these are not embedded:"
    )
    words = f"{who} {_output.count(plan.texts, 'text')} ({plan.known:,} from cache)"
    if unknown and not (plan.texts or plan.known):
        return f"{who} re-ingested documents; how many texts is known only then"
    return f"{words}, and re-ingested documents" if unknown else words


def _ask(options: Repair, plan: Plan) -> None:
    """Show the plan and ask a person who can answer; anybody else has to say --yes."""
    is_terminal = sys.stdin.isatty()
    if not options.json:
        _show(plan, _output.line)
    elif is_terminal:
        _show(plan, _output.say)
    sys.stdout.flush()
    if not is_terminal:
        steps = _output.count(len(plan.doable), "step")
        raise RefusedError(f"{steps} to apply, and no terminal to ask on", remedy="add --yes")
    _output.go_on()


class Batches(JsonObject, Struct, frozen=True):
    """What `undo --list` prints."""

    batches: "list[Group]"
    """Changes that can be undone or redone, newest first."""


class Undo(requests.Undo, frozen=True, kw_only=True):
    """What the command takes."""

    list: bool = False
    """list the changes that can be undone or redone"""


def run_undo(options: Undo) -> int:
    """Undo a change of chunk files: all of its files, byte for byte, or none of them.

    Example: filestore undo --list
    """
    with _context.open_store(options) as store:
        if options.list:
            return _list(store.batches(), as_json=options.json)
        with _output.progress_bar() as on_progress:
            done = store.undo(options.id, on_progress=on_progress)
    _output.turned(done, word="undone", as_json=options.json)
    if done is not None and not options.json:
        _output.line("to redo it: filestore redo")
    return _output.left_without(done.problem) if done else 1


def _list(batches: "list[Group]", *, as_json: bool) -> int:
    """List, newest first; 1 where there is none."""
    if as_json:
        _output.write_json(Batches(batches[::-1]).to_dict())
        return 0 if batches else 1
    for group in reversed(batches):
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(group.batches[0].made_s))
        size = f"{group.bytes:,} bytes"
        files = _output.count(group.files, "file")
        head = f"{group.id}  {when}  {group.state:<10}  {files}, {size}"
        _output.line(head)
        _output.line(f"    {shown_path(group.problem or group.what)}")
    if not batches:
        _output.line("nothing to undo")
    return 0 if batches else 1


class Redo(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    id: Annotated[str | None, argument("ID")] = None
    """the change (default: the one undone last)"""


def run_redo(options: Redo) -> int:
    """Redo a change that 'filestore undo' undid: all of its files or none of them.

    Example: filestore redo
    """
    with _context.open_store(options) as store, _output.progress_bar() as on_progress:
        done = store.redo(options.id, on_progress=on_progress)
    _output.turned(done, word="redone", as_json=options.json)
    return _output.left_without(done.problem) if done else 1

"""Files and index checked, synced and repaired; changes of files undone and redone."""

import sys
import threading
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.cli import EXIT_INTERRUPTED, _context, _output, _progress, _terminal
from filestore.core.codes import SEVERITY_WORDS
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.findings import NOTHING, Finding, is_clean, not_checked_words
from filestore.core.safe_text import brief, shown_path
from filestore.core.schema import JsonObject
from filestore.server import requests
from filestore.server.operations import CommonOptions, argument, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filestore.history.batch import Group
    from filestore.history.changes import Change
    from filestore.repair.plan import Plan, SkippedStep, Step
    from filestore.repair.undo import UndoResult
    from filestore.store import watch


class Verify(requests.Verify, frozen=True, kw_only=True):
    """What the command takes."""

    sample: Annotated[str | None, option("N/T")] = None
    """read only slice N of T of the files and vectors; all T together cover everything once"""
    staged: bool = False
    """check what git has staged: the blobs in git's index, not the files"""


def run_verify(options: Verify) -> int:
    """Check files, catalog and vectors against each other; change nothing.

    Examples:
        filestore verify
        filestore verify --level full
        filestore verify --staged
    """
    if options.staged:
        with _context.open_store(options) as store:
            staged = store.staged()
        if not _context.printed_json(options, staged):
            _output.findings(staged.findings)
            files = _output.count(staged.files, "staged file")
            _output.line(f"{'clean' if staged.clean else 'not clean'}: {files}")
        return 0 if staged.clean else 1
    sample = None
    if options.sample is not None:
        from filestore.sidecar.snapshot import Sample

        if options.level == "fast":
            raise UsageError(
                "--sample limits what is read, but level fast reads nothing",
                remedy=f"filestore verify --level full --sample {options.sample}",
            )
        sample = Sample.parse(options.sample)
    places = None
    try:
        with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
            places = store.places
            checked = store.verify(level=options.level, sample=sample, on_progress=on_progress)
    except FilestoreError as error:
        from filestore.verify.run import refused

        # A store that must not be opened has a result, too.
        nothing = refused(options.level, error)
        if nothing is None:
            raise
        checked = nothing
    if not _context.printed_json(options, checked):
        _output.findings(checked.findings)
        _output.line(f"{'clean' if checked.clean else 'not clean'} at level {checked.level}")
        _output.wrapped("checked: ", checked.checked or ["nothing"])
        _output.wrapped("", [not_checked_words(checked.not_checked)])
        _output.next_command(checked.findings, places)
    return 0 if checked.clean else 1


class Sync(requests.Sync, frozen=True, kw_only=True):
    """What the command takes."""

    full: bool = False
    """verify everything first and repair it; outside git also remove embeddings that nothing
    needs"""


def run_sync(options: Sync) -> int:
    """Update the index from the files; never writes a chunk file.

    Examples:
        filestore sync
        filestore sync --no-embed
        filestore sync --full
    """
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        report = options.answer(store, on_progress)
        if options.full or options.deep:
            # Only here: what a server, a hook or a watcher syncs keeps every embedding.
            try:
                report = replace(report, pruned=store.prune_embeddings(spare_git=True).embeddings)
            except FilestoreError as error:
                _output.say(f"kept embeddings that nothing needs: {error.message}")
    code = _output.exit_code_of(report)
    if not _context.printed_json(options, report):
        _output.synced(report)
        _output.way_out(store.places, report.remaining)
    return code


_KEPT: Final = "what was done so far is kept"


class Watch(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    embed: bool = True
    """embed new passages now"""


def run_watch(options: Watch) -> int:
    """Keep the index up to date while files change; Ctrl-C stops it.

    Example: filestore watch --json
    """
    from filestore.store import Store, watch

    with _context.open_store(options) as store:
        places = store.places
    ended = _context.end_politely()

    # No second process walks the tree: what tells of changes has threads.
    open_store = partial(Store, places.root)
    try:
        for event in watch.watch(open_store, places, embed=options.embed, stop=threading.Event()):
            _tell(event, as_json=options.json)
    except KeyboardInterrupt:
        pass
    _say(watch.Line(event="stopped", detail=_KEPT), f"stopped: {_KEPT}", as_json=options.json)
    return 0 if ended.is_set() else EXIT_INTERRUPTED


def _tell(event: "watch.Event", *, as_json: bool) -> None:
    from filestore.store import watch

    match event:
        case watch.Synced(report=report):
            line = watch.synced_line(report.to_dict())
            parts = [_output.done(report.applied)]
            if report.embedded or report.reused:
                parts.append(_output.embedded(report.embedded, report.reused))
            remaining = Counter(one.code for one in report.remaining)
            if remaining:
                left = ", ".join(f"{number:,} {code}" for code, number in remaining.items())
                parts.append(f"left for you: {left}")
            words = "; ".join(parts)
        case watch.Updated(report=updated):
            line = watch.updated_line(updated.to_dict())
            parts = [
                *(
                    f"{one.status} {shown_path(one.resource)}"
                    for one in updated
                    if one.status != "failed"
                ),
                *(
                    f"kept {shown_path(one['path'])}: your edit and the new text"
                    " overlap ('filestore repair --ours PATH' or '--theirs PATH')"
                    for one in updated.conflicts
                ),
                *(f"failed {shown_path(one.source)}: {one.error}" for one in updated.failed),
            ]
            words = "; ".join(parts)
        case watch.Waiting(reason=reason):
            line, words = watch.Line(event="waiting", for_=reason), f"waiting: {reason}"
        case watch.Unavailable(reason=reason):
            line = watch.Line(event="blind", detail=reason)
            words = f"file watching is unavailable ({reason}); polling instead"
        case watch.Reopened():
            line, words = watch.Line(event="reopened"), "filestore.toml changed: reopened the store"
        case watch.Failed(error=error):
            line = watch.Line(
                event="failed", error=error.message, detail=error.detail, remedy=error.remedy
            )
            words = f"failed: {error.in_one_line}"
    _say(line, words, as_json=as_json)


def _say(value: "watch.Line", words: str, *, as_json: bool) -> None:
    if as_json:
        _output.write_json_line(value.to_dict())
    else:
        _output.line(_output.one_line(words))
        sys.stdout.flush()


_SHOWN = 10
"""Paths listed under one kind of step; the rest is counted."""


class PlannedRepair(JsonObject, Struct, frozen=True):
    """What `repair --plan` prints."""

    KEYS = "plan applied skipped remaining undo"

    plan: "Plan"
    """What would be done."""
    remaining: tuple[Finding, ...]
    """What was found."""
    applied: "tuple[Step, ...]" = ()
    """Empty."""
    skipped: "tuple[SkippedStep, ...]" = ()
    """Empty."""
    undo: tuple[str, ...] = ()
    """Empty."""


class Repair(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    plan: bool = False
    """show the plan; change nothing"""
    only: Annotated[list[str], option("CODE", many=True)] = []
    """repair only these findings"""
    path: Annotated[list[str], option("P", many=True)] = []
    """repair only these files or folders"""
    ours: Annotated[list[str], option("PATH", many=True)] = []
    """keep your edit of a file, or our side of a git conflict in it"""
    theirs: Annotated[list[str], option("PATH", many=True)] = []
    """take the source's new text, or their side of a git conflict"""
    hunks: Annotated[list[str], option("SIDES:PATH", many=True)] = []
    """choose a side for each hunk of a git conflict: ours,theirs,both,keep:PATH"""
    remove: Annotated[list[str], option("PATH", many=True)] = []
    """remove a file with the same text as another file"""
    truth: Annotated[bool, option(None, "--write-files")] = False
    """also apply steps that write, restore or remove files"""
    yes: bool = False
    """do not ask"""
    level: Literal["fast", "full", "deep"] | None = None
    """how thoroughly to verify first; full and deep find damage (default: what --only needs, else
    fast)"""


def run_repair(options: Repair) -> int:
    """Verify, show a plan of repairs, ask, apply it, and verify again.

    Examples:
        filestore repair --plan
        filestore repair --yes
        filestore repair --write-files --path chunked/notes.md/chunk1.md
    """
    from filestore.repair.plan import KINDS

    with _context.open_store(options) as store:
        with _progress.progress_bar() as on_progress:
            plan = store.plan(
                truth=options.truth,
                only=options.only,
                paths=options.path,
                ours=options.ours,
                theirs=options.theirs,
                hunks=options.hunks,
                remove=options.remove,
                level=options.level,
                on_progress=on_progress,
            )
        if options.plan:
            planned = PlannedRepair(plan, plan.findings)
            if not _context.printed_json(options, planned):
                with _output.paged():
                    _show(plan, _output.line)
                    _output.way_out(store.places, plan.findings)
            left = [one.finding for one in plan.left]
            return 1 if plan.steps or not is_clean(left, store.settings.accepted) else 0
        if plan.doable and not options.yes:
            _ask(options, plan)
        elif not options.json:
            _show(plan, _output.line)
        with _progress.progress_bar() as on_progress:
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
                _output.line(f"to undo it: {_output.command(f'undo {report.undo}')}")
            remaining = [finding for finding in report.remaining if finding.severity != "I"]
            if remaining:
                _output.line("remaining:")
                _output.findings(remaining)
            _output.way_out(store.places, report.remaining, plan.policy.sided)
            _output.line("clean" if clean else "not clean")
        return problem or (0 if clean else 1)


def _show(plan: "Plan", line: Any) -> None:
    """Say what is to be done, kind by kind, and what is left for a person."""
    from filestore.repair.plan import KINDS

    if not plan.steps:
        line(NOTHING)
    groups: dict[str, list[Step]] = {}
    for step in plan.steps:
        groups.setdefault(step.kind, []).append(step)
    for kind, steps in groups.items():
        findings = _output.count(sum(step.findings for step in steps), "finding")
        sizes = [findings if steps[0].part else _output.count(len(steps), "file")]
        if read := sum(step.read_bytes for step in steps):
            sizes.append(f"{read:,} bytes to read")
        if written := sum(step.write_bytes for step in steps):
            sizes.append(f"{written:,} bytes to write")
        sizes += [] if plan.allows(steps[0]) else ["needs --write-files"]
        line(f"{KINDS[kind].title} ({', '.join(sizes)})")
        # Each text that would be lost has to be seen.
        most = len(steps) if KINDS[kind].named else _SHOWN
        for step in _output.first(steps, most, line, rest=""):
            from_where = f"  from {shown_path(step.other)}" if step.kind == "repoint" else ""
            detail = shown_path(step.detail) if step.truth or step.part else ""
            _output.with_detail(f"    {shown_path(step.path)}{from_where}", detail, line)
            for text in step.diff.splitlines():
                line(f"      {text}")
    for text in _output.folded(_price(plan), indent=0):
        line(text)
    if plan.left:
        line("left for you:")
    lists = f"; '{_output.command('verify')}' lists them"
    for one in _output.first(plan.left, _SHOWN, line, rest=lists):
        finding = one.finding
        line(f"    {SEVERITY_WORDS[finding.severity]} {finding.code}  {shown_path(finding.path)}")
        for text in _output.folded(f"      {one.reason}", indent=6):
            line(text)


def _price(plan: "Plan") -> str:
    """What the plan has to embed, in words; "" where it embeds nothing."""
    unknown = any(step.texts is None and plan.allows(step) for step in plan.steps)
    if not (plan.texts or plan.known or unknown):
        return ""
    who = (
        f"{plan.model.partition('|')[0]} has to embed"
        if plan.model
        else "without a model, these are not embedded:"
    )
    words = f"{who} {_output.count(plan.texts, 'passage')} ({plan.known:,} from cache)"
    if unknown and not (plan.texts or plan.known):
        return f"{who} re-ingested documents; the number of passages is known only then"
    return f"{words}, and re-ingested documents" if unknown else words


def _ask(options: Repair, plan: "Plan") -> None:
    """Show the plan and ask on a terminal; without one --yes is needed."""
    can_ask = _terminal.can_ask()
    if not options.json:
        _show(plan, _output.line)
    elif can_ask:
        _show(plan, _output.say)
    sys.stdout.flush()
    if not can_ask:
        steps = _output.count(len(plan.doable), "step")
        raise RefusedError(f"{steps} to apply, but no terminal to ask on: add --yes")
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
    """Undo a change of files: all of them, byte for byte, or none.

    Examples:
        filestore undo
        filestore undo --list
        filestore undo --list --json
    """
    with _context.open_store(options) as store:
        if options.list:
            found = store.changes().changes
            batches = [one.group for one in found]
            if not _context.printed_json(options, Batches(batches)):
                _list_changes(found)
                if not batches:
                    _output.line("nothing to undo")
            return 0 if batches else 1
        with _progress.progress_bar() as on_progress:
            done = store.undo(options.id, on_progress=on_progress)
    return _turned(done, "undone", options)


def run_changes(options: requests.Changes) -> int:
    """List the changes that commands and programs made to files, newest first.

    Example: filestore changes --by you --diff
    """
    with _context.open_store(options) as store:
        found = options.answer(store)
    if not _context.printed_json(options, found):
        _list_changes(found.changes)
        if found.left:
            _output.line(f"and {_output.count(found.left, 'older change')}: see -n")
        if found.changes:
            undo = _output.command(f"undo {options.id or 'ID'}")
            _output.line(f"to undo {'it' if options.id else 'one'}: {undo}")
        else:
            _output.line("no such change is kept" if options.by or options.since else "no changes")
    return 0 if found.changes else 1


def _list_changes(changes: "Sequence[Change]") -> None:
    from filestore.history.changes import PERSON

    for one in changes:
        group = one.group
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(group.batches[0].made_s))
        size = f"{_output.count(group.files, 'file')}, {group.bytes:,} bytes"
        # Of its own name a program could make any word.
        by = PERSON if group.by is None else brief(group.by)
        _output.line(f"{group.id}  {when}  {group.state:<10}  by {by}  {size}")
        _output.line(f"    {shown_path(group.problem or group.what)}")
        if one.diff:
            _output.line(one.diff)


class Redo(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    id: Annotated[str | None, argument("ID")] = None
    """the change (default: the last one undone)"""


def run_redo(options: Redo) -> int:
    """Redo a change that 'filestore undo' undid: all of its files, or none.

    Example: filestore redo
    """
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        done = store.redo(options.id, on_progress=on_progress)
    return _turned(done, "redone", options)


def _turned(done: "UndoResult | None", word: str, options: CommonOptions) -> int:
    """Print what an undo or a redo did, None where there was nothing to do; the exit code.

    Args:
        done: What it gave.
        word: ``undone`` or ``redone``: the key of the paths, and the verb.
        options: Of the command.
    """
    if options.json:
        from filestore.repair.undo import UndoResult

        nothing = UndoResult(wanted="before" if word == "undone" else "after")
        _output.write_json((done or nothing).to_dict())
    elif done is None:
        _output.line(f"nothing to {word.removesuffix('ne')}")
    else:
        files = _output.count(len(done.paths), "file")
        _output.line(f"{word} {done.identifier}: {shown_path(done.what)} ({files})")
        if done.differing:
            number = _output.count(len(done.differing), "file")
            status = _output.command("status")
            _output.line(f"restored {number} as before the repair: '{status}' says what to do")
        if word == "undone":
            _output.line(f"to redo it: {_output.command('redo')}")
    return _output.left_without(done.problem) if done else 1

"""Documents added, updated and removed; questions and summaries made of them."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from filestore.cli import EXIT_PARTIAL, _context, _output, _progress, _terminal
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.findings import NOTHING, is_clean
from filestore.core.paths import CHUNKS
from filestore.core.safe_text import safe_text, shown_path
from filestore.core.schema import JsonObject
from filestore.server import requests
from filestore.server.operations import CommonOptions, argument, option

if TYPE_CHECKING:
    from filestore.enrich.plan import EnrichPlan, EnrichReport, KeptFile
    from filestore.ingest.add import AddPlan, AddReport, PlannedDocument
    from filestore.ingest.sources import Outcome
    from filestore.ingest.update import UpdatePlan, UpdateReport

_KEPT_HINT = """\
hand edits are kept, and so is the new source text. Choose for each file:
  'filestore repair --ours PATH' keeps the edit, '--theirs PATH' takes the new text"""
_DELETED_HINT = """\
files you deleted stay deleted; to restore one: 'filestore repair --path PATH --write-files'"""
_SHOWN: Final = 10
"""Lines of one kind printed for one folder; the rest is counted, and listed with ``--json``."""
_REASONS: Final = 5
"""Reasons named at the end of a partial success, the most frequent first."""
_NUMBERED: Final = re.compile(r"(?<!at most )\b\d[\d,.]* (\w+?)s?\b")
_QUOTED: Final = re.compile(r"'[^']*'|\S+://\S+")


class Add(requests.Add, frozen=True, kw_only=True):
    """What the command takes."""

    paths: Annotated[list[str], argument("PATH")] = []
    """a file or a folder; none inside a folder that was added: update that"""
    copy: bool = True
    """copy originals outside the work tree: they are only referenced then"""
    plan: bool = False
    """only show how the documents would be cut"""


def run_add(options: Add) -> int:
    """Add documents, or update them: text, web pages, PDF, office files, books, code, folders.

    Ends with 5 where some were added and others failed; with 3 or 4 where none was added.

    With --plan nothing is written: for each document it prints its chunks, each with its headings,
    its size and its first words.

    Example: filestore add handbook/ notes.md --store file_index
    """
    if not options.paths and (options.into is not None or options.each or options.plan):
        raise UsageError(
            "name a file or a folder to add",
            remedy="filestore add handbook/ notes.md --store file_index",
        )
    if not options.paths:
        # Of the resources whose source holds the working folder, or lies in it.
        with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
            if store.places.tree.has_sections:
                from filestore.sidecar.refusals import useless_error

                raise useless_error("add")
            updated = store.update(around=".", on_progress=on_progress)
        return _tell_update(updated, as_json=options.json)
    if options.plan:
        return _show_cuts(options)
    copies: list[Outcome] = []
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        report = store.add(
            *options.paths,
            into=options.into,
            each=options.each,
            copy=options.copy,
            on_copy=lambda _, outcome: copies.append(outcome),
            on_progress=on_progress,
        )
    _say_copies(copies)
    if not _context.printed_json(options, report):
        _tell_added(report)
    if report.not_remembered is not None:
        why = report.not_remembered.message
        _output.say(f"'status' and 'update' will not look at originals outside the store: {why}")
    left = _output.left_without(report.problem)
    if report.is_partial:
        if not options.json:
            _say_partial(report)
        return EXIT_PARTIAL
    waiting = any(outcome.kept for outcome in report.outcomes)
    codes = [failed.error.exit_code for failed in report.failed if failed.error is not None]
    return max(codes, default=max(left, int(waiting)))


def _tell_added(report: "AddReport") -> None:
    for outcome in report.outcomes:
        if outcome.error is None:
            _outcome(outcome)
    _remarks(report)
    for path, found in report.folders:
        _say_passed_over(path, found.skipped, found.ignored, found.other)
    for path, error in report.unusable:
        _output.say_failed(path, error)
    for outcome in report.outcomes:
        if outcome.error is not None:
            _output.say_failed(outcome.typed or outcome.source, outcome.error)
            _say_passed_over(outcome.source, outcome.skipped, outcome.ignored, outcome.other)
    _output.line(_output.embedded(report.embedded, report.reused))


class PlannedAdd(JsonObject, Struct, frozen=True):
    """What `add --plan` prints."""

    plan: "AddPlan"
    """How the documents would be cut."""


def _show_cuts(options: Add) -> int:
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        planned = store.plan_add(
            *options.paths, into=options.into, each=options.each, on_progress=on_progress
        )
    if not _context.printed_json(options, PlannedAdd(planned)):
        with _output.paged():
            for document in planned.documents:
                _cut(document)
        for one in planned.report.outcomes:
            _say_passed_over(one.resource or one.source, one.skipped, one.ignored, one.other)
        for path, found in planned.report.folders:
            _say_passed_over(path, found.skipped, found.ignored, found.other)
        for failed in planned.report.failed:
            if failed.error is not None:
                _output.say_failed(failed.typed or failed.source, failed.error)
    codes = [one.error.exit_code for one in planned.report.failed if one.error is not None]
    return EXIT_PARTIAL if codes and planned.documents else max(codes, default=0)


def _cut(document: "PlannedDocument") -> None:
    chunks = _output.count(len(document.chunks), "chunk")
    known = "" if document.is_read else ", as it was added"
    _output.line(f"{shown_path(document.source)} ({chunks}{known})")
    for number, chunk in enumerate(document.chunks, 1):
        path = _output.one_line(" > ".join(chunk.headings)) or "no heading"
        size = f"{_output.count(chunk.tokens, 'token')}{_output.pages(chunk.pages)}"
        _output.line(f"    {number}  {path}, {size}")
        _output.line(f"       {_output.one_line(chunk.words)}")


def _say_partial(report: "AddReport") -> None:
    """What became of how many documents, and why some failed: a line a reason."""
    reasons = Counter(
        _reason(failed.source, failed.error) for failed in report.failed if failed.error is not None
    )
    parts = [f"{number:,} × {reason}" for reason, number in reasons.most_common(_REASONS)]
    rest = sum(reasons.values()) - sum(number for _, number in reasons.most_common(_REASONS))
    if rest:
        parts.append(f"{rest:,} × something else")
    done = [f"{status} {number:,}" for status, number in report.counts.items()]
    _output.say(f"{', '.join(done)}, failed {len(report.failed):,}:")
    for one in parts:
        for line in _output.folded(f"    {one}", indent=8):
            _output.say(line)


def _reason(path: str, error: FilestoreError) -> str:
    """Why a document failed, without what only this one has: names, numbers, what was found."""
    names = sorted({path, os.path.basename(path)} - {""}, key=len, reverse=True)
    text = error.message.partition(", found ")[0].partition("; ")[0]
    for name in names:
        text = re.sub(rf"(?<!\w)(?:\S*/)?{re.escape(name)}(?!\w)", "…", text)
    text = text.removesuffix(": …").replace(" …: ", ": ")
    for start in ("…: ", "… ", "is "):
        text = text.removeprefix(start)
    text = _NUMBERED.sub(r"… \1s", _QUOTED.sub("…", text))
    return _output.one_line(text)


def _say_copies(outcomes: Sequence["Outcome"]) -> None:
    """How much was copied, of all of them together."""
    if outcomes:
        files = _output.count(sum(len(one.copied) for one in outcomes), "file")
        size = sum(one.copied_bytes for one in outcomes)
        folder = os.path.commonpath([os.path.dirname(one.source) for one in outcomes])
        target = outcomes[0].source if len(outcomes) == 1 else f"{folder}/"
        _output.note(
            f"copied {files} ({size:,} bytes) from outside the work tree to {shown_path(target)};"
            " --no-copy links instead"
        )


def _outcome(outcome: "Outcome") -> None:
    chunks = _output.count(outcome.chunks, "chunk")
    _output.line(f"{outcome.status} {shown_path(outcome.resource)} ({chunks})")
    if outcome.note:
        _output.line(f"    {shown_path(outcome.note)}")
    _merged(outcome)
    for path, kept in _output.first(outcome.kept.items(), _SHOWN, _output.say):
        _output.line(f"    kept {shown_path(CHUNKS.store_path(path))}:")
        _output.wrapped("    ", [kept.detail])
    if outcome.kept:
        _output.note(_KEPT_HINT)
    for path in _output.first(outcome.deleted, _SHOWN, _output.say):
        shown = shown_path(CHUNKS.store_path(path))
        _output.line(f"    left out {shown}: you deleted it, same source text")
    if outcome.deleted:
        _output.note(_DELETED_HINT)
    for document, error in _output.first(outcome.failures, _SHOWN, _output.say):
        _output.say_failed(outcome.as_typed(document), error)
    _say_passed_over(outcome.resource, outcome.skipped, outcome.ignored, outcome.other)


def _remarks(outcomes: "Iterable[Outcome]") -> None:
    """What was remarked of documents, each remark once."""
    paths: dict[str, list[str]] = {}
    for outcome in outcomes:
        for remark in outcome.remarks:
            paths.setdefault(remark.text, []).append(remark.path)
    for text, (first, *others) in _output.first(paths.items(), _SHOWN, _output.say):
        more = f" and {len(others):,} more" if others else ""
        _output.line(f"    {shown_path(first)}{more}: {_output.one_line(text)}")


def _merged(outcome: "Outcome") -> None:
    for path in _output.first(outcome.merged, _SHOWN, _output.say):
        shown = shown_path(CHUNKS.store_path(path))
        _output.line(f"    merged {shown}: your edit and the new source text")


def _say_passed_over(
    name: str, skipped: Sequence[tuple[str, str]], ignored: int, other: int
) -> None:
    from filestore.extract import count_by_suffix, unread_document

    others = [(path, reason) for path, reason in skipped if not unread_document(path)]
    for path, reason in _output.first(others, _SHOWN, _output.say):
        _output.say(f"    left out {shown_path(path)}: {reason}")
    unread = count_by_suffix(path for path, _ in skipped if unread_document(path))
    if unread:
        _output.say(f"    not read in {shown_path(name)}: {safe_text(unread)}")
    by_rules = f"{ignored:,} by ignore rules" if ignored else ""
    by_format = f"{_output.count(other, 'file')} of other formats" if other else ""
    counted = ", ".join(filter(None, [by_rules, by_format]))
    if counted:
        _output.say(f"    left out of {shown_path(name)}: {counted}")


class Update(requests.Update, frozen=True, kw_only=True):
    """What the command takes."""

    plan: bool = False
    """only show what changed among the originals"""


def run_update(options: Update) -> int:
    """Bring documents up to date with their originals, then sync; hand edits are merged.

    What was made from originals that are gone stays; --remove-gone removes it, but for hand edits.

    Examples:
        filestore update
        filestore update handbook --plan
        filestore update --remove-gone
    """
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        if options.plan:
            planned = store.plan_update(*options.resources, remove_gone=options.remove_gone)
        else:
            report = options.answer(store, on_progress)
    if options.plan:
        if not _context.printed_json(options, PlannedUpdate(planned)):
            with _output.paged():
                _plan(planned)
        return 1 if planned.changes else 0
    return _tell_update(report, as_json=options.json)


class PlannedUpdate(JsonObject, Struct, frozen=True):
    """What `update --plan` prints."""

    plan: "UpdatePlan"
    """What an update would do."""


def _plan(planned: "UpdatePlan") -> None:
    for change in planned:
        originals = {
            "changed": change.modified,
            "new": change.new,
            "renamed": [f"{old} -> {new}" for old, new in change.renamed.items()],
            "gone": change.gone,
        }
        counted = ", ".join(f"{len(some):,} {word}" for word, some in originals.items() if some)
        where = f", now in {shown_path(change.moved_to)}" if change.moved_to else ""
        _output.line(f"{shown_path(change.resource)}: {counted}{where}")
        for word, some in originals.items():
            if word == "renamed" and change.moved_to:
                continue
            for one in _output.first(some, _SHOWN):
                _output.line(f"    {word} {shown_path(one)}")
        if change.gone:
            is_one = change.chunks == 1
            chunks = _output.count(change.chunks, "chunk")
            edited = f" ({change.edited:,} edited by hand)" if change.edited else ""
            stays = f"{'stays' if is_one else 'stay'}; --remove-gone removes"
            kept = f"{stays} {'it' if is_one else 'them'}"
            verb = kept if not planned.remove_gone else "will be removed"
            _output.line(f"    source deleted: {chunks}{edited} {verb}")
    if not planned.changes and not planned.waiting:
        _output.line("sources unchanged")
    if planned.waiting:
        number = _output.count(len(planned.waiting), "original")
        where = f"'{_output.command('status')}' says where"
        _output.line(f"{number} with new text behind a hand edit: {where}")
    if planned.outside:
        number = _output.count(len(planned.outside), "original")
        _output.say(f"not looked at: {number}; 'filestore status' says why")


def _tell_update(report: "UpdateReport", *, as_json: bool) -> int:
    """Print what was done; the exit code is 1 where something is left, 5 where some failed."""
    left = _output.left_without(report.synced.problem)
    failed = [(one.source, one.error) for one in report.failed if one.error is not None]
    if as_json:
        _output.write_json(report.to_dict())
    else:
        _plan(report.plan)
        for outcome in report:
            if outcome.error is None:
                counted = f" ({_output.count(outcome.chunks, 'chunk')})"
                chunks = "" if outcome.status == "removed" else counted
                _output.line(f"{outcome.status} {shown_path(outcome.resource)}{chunks}")
                _merged(outcome)
        _remarks(report)
        for source, error in failed:
            _output.say_failed(source, error)
        if report.synced.applied:
            _output.line(_output.done(report.synced.applied))
        _output.line(_output.embedded(report.embedded, report.reused))
        if report.undo:
            _output.line(f"to undo it: {_output.command(f'undo {report.undo}')}")
        if report.remaining:
            _output.line("left for you:")
            _output.findings(report.remaining)
    if report.ingested.is_partial:
        return EXIT_PARTIAL
    clean = is_clean(report.remaining)
    return max((error.exit_code for _, error in failed), default=left or (0 if clean else 1))


_COMES_BACK: Final = """\
'filestore update' adds {name} again, as each child of its folder was added:
  to keep it out, name it in the .filestoreignore of that folder"""


def run_rm(options: requests.Remove) -> int:
    """Remove documents with their chunks and vectors; the files are kept under .undo/.

    Example: filestore rm notes.md
    """
    with _context.open_store(options) as store:
        sources = {one["resource"]: one["source"] for one in store.resources()}
        done = options.answer(store)
        new = {one.path for one in store.status().findings if one.code == "source-untracked"}
    if _context.printed_json(options, done):
        return 0
    for one in done.removed:
        files = _output.count(len(one.paths), "file")
        _output.line(f"removed {one.resource} ({files}, kept as .undo/{one.undo})")
        if sources.get(one.resource) in new:
            _output.note(_COMES_BACK.format(name=shown_path(one.resource)))
    return 0


class Mv(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    path: Annotated[str, argument("PATH")]
    """a document, a folder of documents, or a chunk file that you wrote"""
    to: Annotated[str, argument("NEW")]
    """its new path, or a folder that is there"""
    plan: bool = False
    """only show what would be written"""


def run_mv(options: Mv) -> int:
    """Move a file or a folder, and rewrite the links to it and in it.

    In place: documents. Else an original in the work tree, which is re-ingested, or a chunk file
    that you wrote. All of it is done, or none, and undone by one 'filestore undo'; git's index
    is left alone.

    Example: filestore mv handbook/lease.md handbook/rent/lease.md --plan
    """
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        if options.plan:
            done = store.plan_move(options.path, options.to)
        else:
            done = store.move(options.path, options.to, on_progress=on_progress)
    left = _output.left_without(done.problem)
    if _context.printed_json(options, done):
        return left
    is_file = done.path == done.moved[0].path
    files = "" if is_file else f" ({_output.count(len(done.moved), 'file')})"
    _output.line(f"{'moved' if done.done else 'would move'} {shown_path(done.path)}{files}")
    _output.line(f"   to {shown_path(done.to)}")
    for one in _output.first(done.relinked, _SHOWN, rest=": --json has all"):
        _output.line(f"{_output.count(one.links, 'link')} in {shown_path(one.path)}")
        for line in () if done.done else one.diff.splitlines()[2:]:
            _output.line(f"    {_output.one_line(line)}", style="2")
    for passed in _output.first(done.left, _SHOWN, rest=": --json has all"):
        _output.say(f"left {shown_path(passed.path)}: {passed.reason}")
    if done.undo:
        _output.line(_output.embedded(done.embedded, done.reused))
        _output.line(f"to undo it: {_output.command(f'undo {done.undo}')}")
    return left


class Enrich(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    resources: Annotated[list[str], argument("DOCUMENT|FOLDER")] = []
    """only these, or what is below these folders (default: all)"""
    questions: Annotated[int | None, option("N")] = None
    """make at most N questions for each passage, offline keys; alone: no summaries (default: 3)"""
    summaries: bool = False
    """summarise passages that belong together; alone: no questions"""
    across: bool = False
    """also summarise what the documents have on top: one tree over the store"""
    refresh: bool = False
    """make again only what is out of date"""
    plan: bool = False
    """only show what it would take"""
    budget: Annotated[int | None, option("TOKENS")] = None
    """begin nothing beyond this number of tokens"""
    generator: Annotated[str | None, option("G")] = None
    """extractive, or openai:MODEL (default: the store's)"""
    yes: bool = False
    """do not ask"""


def run_enrich(options: Enrich) -> int:
    """Make questions and summaries, and keep them as files that can be read, corrected and merged.

    Offline there are keys in place of questions, a heading path and rare terms, and a summary is
    the first sentences of its passages; questions take a chat service.

    Example: filestore enrich handbook --questions 3 --summaries
    """
    wanted: dict[str, Any] = {
        "across": options.across,
        "refresh": options.refresh,
        "generator": options.generator,
    }
    if options.summaries or options.questions is not None:
        wanted |= {"questions": options.questions, "summaries": options.summaries}
    with _context.open_store(options) as store:
        if options.plan or not store.model.generator(options.generator).is_free:
            with _progress.progress_bar() as on_progress:
                plan = store.plan_enrich(*options.resources, on_progress=on_progress, **wanted)
            if options.plan and options.json:
                _output.write_json(plan.to_dict())
                return 0
            if options.plan:
                with _output.paged():
                    _plan_words(plan, _output.line)
                return 0
            if plan.planned and not options.yes:
                if options.json or not _terminal.can_ask():
                    raise RefusedError(
                        f"{plan.planned:,} requests to {plan.generator}: no terminal to ask at"
                        "; look with --plan, then add --yes",
                    )
                _plan_words(plan, _output.say)
                _output.go_on("make them?", refused="nothing was made")
        with _progress.progress_bar() as on_progress:
            report = store.enrich(
                *options.resources, budget=options.budget, on_progress=on_progress, **wanted
            )
    if options.json:
        _output.write_json(report.to_dict())
    else:
        _words(report)
    if report.problem is not None:
        # The report is printed already, in JSON with the problem.
        code = report.problem.exit_code
        return code if options.json else _output.report(report.problem, as_json=False)
    left = _output.left_without(report.not_embedded)
    if not report.failed:
        return left
    return EXIT_PARTIAL if report.questions or report.summaries else 3


def _plan_words(plan: "EnrichPlan", line: Any) -> None:
    if not (plan.questions or plan.summaries or plan.removed):
        line(NOTHING)
    line(f"generator {_output.one_line(plan.generator)}")
    line(f"{plan.lines} for {_output.count(plan.questions, 'passage')}")
    line(_output.count(plan.summaries, "summary", "summaries"))
    if plan.removed:
        line(f"{_output.count(plan.removed, 'summary', 'summaries')} to be removed")
    if plan.from_cache:
        line(f"{plan.from_cache:,} of them from cache")
    line(_price(plan))
    if plan.threshold is not None:
        _output.tell(str(plan.threshold))
    _kept(plan.kept, line)
    for note in plan.notes:
        line(_output.one_line(note))


def _price(plan: "EnrichPlan") -> str:
    if plan.is_free:
        return "runs here: costs nothing"
    words = f"about {plan.tokens_in:,} tokens in, at most {plan.tokens_out:,} out"
    if plan.seconds is not None:
        words += f"; some {max(1, round(plan.seconds / 60)):,} min"
    if plan.cost is None:
        return f"{words}; no price is set: price_in, price_out under [generator]"
    return f"{words}; {plan.cost:,.2f} by the prices in filestore.toml"


def _words(report: "EnrichReport") -> None:
    if report.threshold is not None:
        _output.tell(str(report.threshold))
    _output.line(
        f"{report.lines} in {_output.count(report.questions, 'file')},"
        f" {_output.count(report.summaries, 'summary', 'summaries')} written"
        + (f", {report.removed:,} removed" if report.removed else "")
    )
    if report.tokens:
        _output.line(f"{report.bill.tokens_in:,} tokens in, {report.bill.tokens_out:,} out")
    if report.bill.from_cache:
        _output.line(f"{report.bill.from_cache:,} results from cache")
    _output.line(_output.embedded(report.embedded, report.reused))
    _kept(report.kept, _output.line)
    for note in report.notes:
        _output.say(_output.one_line(note))
    for failed in _output.first(report.failed, _SHOWN, _output.say):
        _output.say(f"failed {shown_path(failed['path'])} ({failed['kind']}):")
        for line in _output.folded(f"    {safe_text(failed['error'])}", indent=4):
            _output.say(line)
    if report.bill.left:
        _output.say(
            f"{_output.count(report.bill.left, 'task')} left: run the command again;"
            " what was made is kept"
        )
    if report.undo:
        _output.line(f"to undo it: {_output.command(f'undo {report.undo}')}")


def _kept(kept: "list[KeptFile]", line: Any) -> None:
    for one in _output.first(kept, _SHOWN, line):
        line(f"kept {shown_path(one.path)}: {one.reason}")

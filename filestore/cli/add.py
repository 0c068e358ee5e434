"""Add documents, or update them: text, Markdown, HTML, PDF, DOCX, PPTX, code, folders.

Ends with 5 where some were added and others failed; with 3 or 4 where none was added.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from filestore.cli import EXIT_PARTIAL, _context, _diagnostics, _output, update
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import CHUNKS
from filestore.core.safe_text import safe_text, shown_path
from filestore.server import requests
from filestore.server.options import argument

if TYPE_CHECKING:
    from filestore.ingest.add import AddReport
    from filestore.ingest.provenance import Outcome

EXAMPLE = "filestore add handbook/ notes.md --store file_index"
_KEPT_HINT = """\
hand edits are kept; the new source text is kept beside them. Choose for each file:
  'filestore repair --ours PATH' keeps the edit, '--theirs PATH' takes the new text"""
_DELETED_HINT = """\
files you deleted stay deleted; to restore one: 'filestore repair --path PATH --write-files'"""
_SHOWN: Final = 10
"""Lines of one kind printed for one folder; the rest is counted, and listed with ``--json``."""
_REASONS: Final = 5
"""Reasons named at the end of a partial success, the most frequent first."""
_NUMBERED: Final = re.compile(r"(?<!at most )\b\d[\d,.]* (\w+?)s?\b")
_QUOTED: Final = re.compile(r"'[^']*'|\S+://\S+")


class Options(requests.Add, frozen=True, kw_only=True):
    """What the command takes."""

    paths: Annotated[list[str], argument("PATH")] = []
    """a file or a folder; none inside a folder that was added: update that"""
    copy: bool = True
    """copy originals outside the work tree: they are only referenced then"""


def run(options: Options) -> int:
    """Add every path; what fails is said and the rest goes on."""
    if not options.paths and (options.into is not None or options.each):
        raise UsageError("name a file or a folder to add", remedy=EXAMPLE)
    if not options.paths:
        # Of the resources whose source holds the working folder, or lies in it.
        with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
            updated = store.update(around=".", on_progress=on_progress)
        return update.tell(updated, as_json=options.json)
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        report = store.add(
            *options.paths,
            into=options.into,
            each=options.each,
            copy=options.copy,
            on_copy=_say_copies,
            on_progress=on_progress,
        )
    _context.tell(options, report, _words)
    if report.not_remembered is not None:
        why = report.not_remembered.message
        _diagnostics.say(
            f"'status' and 'update' will not look at originals outside the store: {why}"
        )
    left = _diagnostics.left_without(report.problem)
    if report.is_partial:
        if not options.json:
            _say_partial(report)
        return EXIT_PARTIAL
    waiting = any(outcome.kept for outcome in report.outcomes)
    codes = [failed.error.exit_code for failed in report.failed if failed.error is not None]
    return max(codes, default=max(left, int(waiting)))


def _say_partial(report: "AddReport") -> None:
    """What became of how many documents, and why some failed: a line a reason."""
    reasons = Counter(
        _reason(failed.source, failed.error) for failed in report.failed if failed.error is not None
    )
    told = [f"{number:,} × {reason}" for reason, number in reasons.most_common(_REASONS)]
    rest = sum(reasons.values()) - sum(number for _, number in reasons.most_common(_REASONS))
    if rest:
        told.append(f"{rest:,} × something else")
    done = [f"{status} {number:,}" for status, number in report.counts.items()]
    _diagnostics.say(f"{', '.join(done)}, failed {len(report.failed):,}:")
    for one in told:
        for line in _output.folded(f"    {one}", indent=8):
            _diagnostics.say(line)


def _reason(path: str, error: FilestoreError) -> str:
    """Why a document failed, without what only this one has: names, numbers, what was found."""
    names = sorted({path, os.path.basename(path)} - {""}, key=len, reverse=True)
    text = error.message.partition(", found ")[0]
    for name in names:
        text = re.sub(rf"(?<!\w)(?:\S*/)?{re.escape(name)}(?!\w)", "…", text)
    text = text.removesuffix(": …").replace(" …: ", ": ")
    for start in ("…: ", "… ", "is "):
        text = text.removeprefix(start)
    text = _NUMBERED.sub(r"… \1s", _QUOTED.sub("…", text))
    return safe_text(text, keep_newlines=False)


def _say_copies(path: str, outcome: "Outcome") -> None:
    files = _output.count(len(outcome.copied), "file")
    _diagnostics.say(
        f"{shown_path(path)} lies outside the work tree: copying {files},"
        f" {outcome.copied_bytes:,} bytes, to {shown_path(outcome.source)}"
        " (--no-copy only references it)"
    )


def _words(report: "AddReport") -> None:
    for outcome in report.outcomes:
        if outcome.error is None:
            _outcome(outcome)
    for path, found in report.folders:
        _say_passed_over(path, found.skipped, found.ignored, found.other)
    for path, error in report.unusable:
        _diagnostics.say_error(f"failed {shown_path(path)}", error)
    for outcome in report.outcomes:
        if outcome.error is not None:
            _diagnostics.say_error(f"failed {shown_path(outcome.source)}", outcome.error)
            _say_passed_over(outcome.source, outcome.skipped, outcome.ignored, outcome.other)
    _output.line(_output.embedded(report.embedded, report.reused))


def _outcome(outcome: "Outcome") -> None:
    chunks = _output.count(outcome.chunks, "chunk")
    _output.line(f"{outcome.status} {shown_path(outcome.resource)} ({chunks})")
    if outcome.note:
        _output.line(f"    {shown_path(outcome.note)}")
    for path in outcome.merged[:_SHOWN]:
        _output.line(
            f"    merged {shown_path(CHUNKS.store_path(path))}: your edit and the new source text"
        )
    _output.say_rest(outcome.merged, _SHOWN, _diagnostics.say)
    for path, kept in list(outcome.kept.items())[:_SHOWN]:
        _output.line(f"    kept {shown_path(CHUNKS.store_path(path))}:")
        _output.wrapped("    ", [kept.detail])
    if outcome.kept:
        _output.say_rest(outcome.kept, _SHOWN, _diagnostics.say)
        _diagnostics.say(_KEPT_HINT)
    for path in list(outcome.deleted)[:_SHOWN]:
        shown = shown_path(CHUNKS.store_path(path))
        _output.line(f"    left out {shown}: you deleted it, same source text")
    if outcome.deleted:
        _output.say_rest(outcome.deleted, _SHOWN, _diagnostics.say)
        _diagnostics.say(_DELETED_HINT)
    for document, error in outcome.failures[:_SHOWN]:
        _diagnostics.say_error(f"failed {shown_path(document)}", error)
    _output.say_rest(outcome.failures, _SHOWN, _diagnostics.say)
    _say_passed_over(outcome.resource, outcome.skipped, outcome.ignored, outcome.other)


def _say_passed_over(
    name: str, skipped: Sequence[tuple[str, str]], ignored: int, other: int
) -> None:
    for path, reason in skipped[:_SHOWN]:
        _diagnostics.say(f"    left out {shown_path(path)}: {reason}")
    _output.say_rest(skipped, _SHOWN, _diagnostics.say)
    by_rules = f"{ignored:,} by ignore rules" if ignored else ""
    by_format = f"{_output.count(other, 'file')} of other formats" if other else ""
    counted = ", ".join(filter(None, [by_rules, by_format]))
    if counted:
        _diagnostics.say(f"    left out of {shown_path(name)}: {counted}")

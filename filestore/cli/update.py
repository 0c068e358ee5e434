"""Bring resources up to date with their originals, then sync; hand edits are merged.

What was made from originals that are gone stays; --remove-gone removes it, but for hand edits.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.cli import EXIT_PARTIAL, _context, _diagnostics, _output
from filestore.core.findings import is_clean
from filestore.core.paths import CHUNKS
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.server import requests

if TYPE_CHECKING:
    from filestore.ingest.update import UpdateReport
    from filestore.ingest.update_plan import SourceChange, UpdatePlan

EXAMPLE = "filestore update handbook --plan"


class Options(requests.Update, frozen=True, kw_only=True):
    """What the command takes."""

    plan: bool = False
    """only show what changed among the originals"""


def run(options: Options) -> int:
    """Update; 1 where something is left that needs a person."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        if options.plan:
            planned = store.plan_update(*options.resources, remove_gone=options.remove_gone)
        else:
            report = store.update(
                *options.resources,
                remove_gone=options.remove_gone,
                embed=options.embed,
                on_progress=on_progress,
            )
    if options.plan:
        return show(planned, as_json=options.json)
    return tell(report, as_json=options.json)


_SHOWN: Final = 10
"""Originals of one kind that are listed for one resource; the rest is counted."""


class PlannedUpdate(JsonObject, Struct, frozen=True):
    """What `update --plan` prints."""

    plan: "UpdatePlan"
    """What an update would do."""


def show(planned: "UpdatePlan", *, as_json: bool) -> int:
    """Say what changed among originals; 1 where anything did."""
    if as_json:
        _output.write_json(PlannedUpdate(planned).to_dict())
    else:
        _plan(planned)
    return 1 if planned.changes else 0


def _plan(planned: "UpdatePlan") -> None:
    for change in planned:
        _change(change, remove_gone=planned.remove_gone)
    if not planned.changes and not planned.waiting:
        _output.line("originals are as they were added")
    if planned.waiting:
        originals = _output.count(len(planned.waiting), "original")
        _output.line(f"{originals} with new text behind a hand edit: 'filestore status' says where")
    if planned.outside:
        originals = _output.count(len(planned.outside), "original")
        _diagnostics.say(f"not looked at: {originals}; 'filestore status' says why")


def _change(change: "SourceChange", *, remove_gone: bool) -> None:
    counts = [
        (len(change.modified), "changed"),
        (len(change.new), "new"),
        (len(change.renamed), "renamed"),
        (len(change.gone), "gone"),
    ]
    said = ", ".join(f"{number:,} {word}" for number, word in counts if number)
    where = f", now in {shown_path(change.moved_to)}" if change.moved_to else ""
    _output.line(f"{shown_path(change.resource)}: {said}{where}")
    _list("changed", change.modified)
    _list("new", change.new)
    if not change.moved_to:
        _list("renamed", [f"{old} -> {new}" for old, new in change.renamed.items()])
    _list("gone", change.gone)
    if change.gone:
        chunks = _output.count(change.chunks, "chunk")
        edited = f", {change.edited:,} of them edited by hand" if change.edited else ""
        verb = "goes" if change.chunks == 1 else "go"
        if not remove_gone:
            verb = (
                "stays; --remove-gone removes it"
                if change.chunks == 1
                else ("stay; --remove-gone removes them")
            )
        _output.line(f"    made from what is gone: {chunks}{edited}: {verb}")


def _list(word: str, originals: Sequence[str]) -> None:
    for one in originals[:_SHOWN]:
        _output.line(f"    {word} {shown_path(one)}")
    _output.say_rest(originals, _SHOWN)


def tell(report: "UpdateReport", *, as_json: bool) -> int:
    """Say what was done; the exit code is 1 where something is left, 5 where some of it failed."""
    left = _diagnostics.left_without(report.synced.problem)
    if as_json:
        _output.write_json(report.to_dict())
    else:
        _words(report)
    errors = [one.error for one in report.failed if one.error is not None]
    if report.ingested.is_partial:
        return EXIT_PARTIAL
    clean = is_clean(report.remaining)
    return max((error.exit_code for error in errors), default=left or (0 if clean else 1))


def _words(report: "UpdateReport") -> None:
    _plan(report.plan)
    for outcome in report:
        if outcome.error is not None:
            continue
        counted = f" ({_output.count(outcome.chunks, 'chunk')})"
        chunks = "" if outcome.status == "removed" else counted
        _output.line(f"{outcome.status} {shown_path(outcome.resource)}{chunks}")
        for path in outcome.merged[:_SHOWN]:
            shown = shown_path(CHUNKS.store_path(path))
            _output.line(f"    merged {shown}: your edit and the new source text")
        _output.say_rest(outcome.merged, _SHOWN)
    for outcome in report.failed:
        if outcome.error is not None:
            _diagnostics.say_error(f"failed {shown_path(outcome.source)}", outcome.error)
    if report.synced.applied:
        _output.line(_output.done(report.synced.applied))
    _output.line(_output.embedded(report.embedded, report.reused))
    if report.undo:
        _output.line(f"to undo it: filestore undo {report.undo}")
    if report.remaining:
        _output.line("left for you:")
        _output.findings(report.remaining)

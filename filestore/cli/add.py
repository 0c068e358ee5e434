"""Bring documents in, or up to date: text, Markdown, HTML, PDF, DOCX, PPTX, code, folders."""

import argparse
from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Any, Final

from filestore.cli import _context, _diagnostics, _output
from filestore.errors import FilestoreError, UsageError
from filestore.safe_text import shown_path

if TYPE_CHECKING:
    from filestore.adding import AddReport
    from filestore.ingest import Outcome
    from filestore.sources import SourcePath, Sources

EXAMPLE = "filestore add handbook/ notes.md --store file_index"
_KEPT_HINT = """\
hand edits are kept, and so is the new source text; choose for each file:
  'filestore repair --ours PATH' keeps it, '--theirs PATH' takes the new text"""
_DELETED_HINT = """\
what you deleted stays deleted; to have it back: 'filestore repair --path PATH --truth'"""
_SHOWN: Final = 10
"""Lines of one kind told of one folder; the rest is counted, and listed with ``--json``."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file or a folder")
    parser.add_argument("--into", metavar="NAME", help="the resource's name (default: the file's)")
    parser.add_argument(
        "--each", action="store_true", help="make every child of a folder a resource of its own"
    )


def run(options: Any) -> int:
    """Add every path; what fails is said and the rest goes on."""
    from filestore.sources import sources_of

    if options.into is not None and (len(options.paths) > 1 or options.each):
        raise UsageError("--into names one resource", remedy="add one path at a time with --into")
    sources: list[SourcePath] = []
    folders: list[tuple[str, Sources]] = []
    unusable: list[tuple[str, FilestoreError]] = []
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        for path in options.paths:
            try:
                found = sources_of(
                    path, into=options.into, each=options.each, patterns=store.settings.ignore
                )
                sources += found
                folders.append((path, found))
            except FilestoreError as error:
                unusable.append((path, error))
        report = store.add(sources, on_progress=on_progress)
    if options.json:
        _output.write_json(_json(report, unusable) | _json_of_folders(folders))
    else:
        _words(report, folders, unusable)
    left = _diagnostics.left_without(report.problem)
    errors = [error for _, error in unusable]
    errors += [outcome.error for outcome in report.outcomes if outcome.error is not None]
    errors += [error for outcome in report.outcomes for _, error in outcome.failures]
    waiting = any(outcome.kept for outcome in report.outcomes)
    return max((error.exit_code for error in errors), default=max(left, int(waiting)))


def _json(report: "AddReport", unusable: list[tuple[str, FilestoreError]]) -> dict[str, Any]:
    lists: dict[str, Any] = {"added": [], "updated": [], "unchanged": [], "failed": []}
    for path, error in unusable:
        entry: dict[str, Any] = {"source": path, "resource": None, "chunks": 0}
        lists["failed"].append(entry | _error(error))
    for outcome in report.outcomes:
        entry = {
            "source": outcome.source,
            "resource": outcome.resource,
            "chunks": outcome.chunks,
        }
        if outcome.error is not None:
            entry |= _error(outcome.error)
        if outcome.merged:
            entry["merged"] = [f"chunked/{path}" for path in outcome.merged]
        if outcome.kept:
            entry["kept"] = {f"chunked/{path}": kept.detail for path, kept in outcome.kept.items()}
        if outcome.deleted:
            entry["deleted"] = [f"chunked/{path}" for path in outcome.deleted]
        entry |= _passed_over(outcome.skipped, outcome.ignored, outcome.other)
        lists[outcome.status].append(entry)
        for path, error in outcome.failures:
            failed = {"source": path, "resource": outcome.resource, "chunks": 0}
            lists["failed"].append(failed | _error(error))
    lists["conflicts"] = [
        {"path": f"chunked/{path}", "detail": kept.detail}
        for outcome in report.outcomes
        for path, kept in outcome.kept.items()
    ]
    lists |= {"embedded": report.embedded, "reused": report.reused}
    return lists | ({"not_embedded": _error(report.problem)} if report.problem else {})


def _json_of_folders(folders: Sequence[tuple[str, "Sources"]]) -> dict[str, Any]:
    """What of the folders given with ``--each`` belongs to no source."""
    return _passed_over(
        [item for _, found in folders for item in found.skipped],
        sum(found.ignored for _, found in folders),
        sum(found.other for _, found in folders),
    )


def _passed_over(skipped: Sequence[tuple[str, str]], ignored: int, other: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "ignored": ignored,
        "other": other,
        "skipped": [{"path": path, "reason": reason} for path, reason in skipped],
    }
    return {key: value for key, value in told.items() if value}


def _error(error: FilestoreError) -> dict[str, str]:
    return {"error": error.message, "remedy": error.remedy}


def _words(
    report: "AddReport",
    folders: Sequence[tuple[str, "Sources"]],
    unusable: list[tuple[str, FilestoreError]],
) -> None:
    for outcome in report.outcomes:
        if outcome.error is None:
            _outcome(outcome)
    for path, found in folders:
        _say_passed_over(path, found.skipped, found.ignored, found.other)
    for path, error in unusable:
        _failure(path, error)
    for outcome in report.outcomes:
        if outcome.error is not None:
            _failure(outcome.source, outcome.error)
            _say_passed_over(outcome.source, outcome.skipped, outcome.ignored, outcome.other)
    texts = _output.count(report.embedded, "text")
    _output.line(f"{texts} embedded, {report.reused:,} known already")


def _outcome(outcome: "Outcome") -> None:
    chunks = _output.count(outcome.chunks, "chunk")
    _output.line(f"{outcome.status} {shown_path(outcome.resource)} ({chunks})")
    for path in outcome.merged[:_SHOWN]:
        _output.line(f"    merged chunked/{shown_path(path)}: your edit and the new source text")
    _say_rest(outcome.merged)
    for path, kept in list(outcome.kept.items())[:_SHOWN]:
        _output.line(f"    kept chunked/{shown_path(path)}:")
        _output.wrapped("    ", [kept.detail])
    if outcome.kept:
        _say_rest(outcome.kept)
        _diagnostics.say(_KEPT_HINT)
    for path in list(outcome.deleted)[:_SHOWN]:
        _output.line(f"    left out chunked/{shown_path(path)}: deleted by hand, same source text")
    if outcome.deleted:
        _say_rest(outcome.deleted)
        _diagnostics.say(_DELETED_HINT)
    for path, error in outcome.failures[:_SHOWN]:
        _failure(path, error)
    _say_rest(outcome.failures)
    _say_passed_over(outcome.resource, outcome.skipped, outcome.ignored, outcome.other)


def _say_passed_over(
    name: str, skipped: Sequence[tuple[str, str]], ignored: int, other: int
) -> None:
    for path, reason in skipped[:_SHOWN]:
        _diagnostics.say(f"    left out {shown_path(path)}: {reason}")
    _say_rest(skipped)
    by_rules = f"{ignored:,} by ignore rules" if ignored else ""
    by_format = f"{_output.count(other, 'file')} of other formats" if other else ""
    counted = ", ".join(filter(None, [by_rules, by_format]))
    if counted:
        _diagnostics.say(f"    left out of {shown_path(name)}: {counted}")


def _say_rest(told: Sized) -> None:
    rest = len(told) - _SHOWN
    if rest > 0:
        _diagnostics.say(f"    … and {rest:,} more; --json lists them all")


def _failure(path: str, error: FilestoreError) -> None:
    _diagnostics.say(f"failed {shown_path(path)}: {error.message}")
    if error.remedy:
        _diagnostics.say(f"  try: {error.remedy}")

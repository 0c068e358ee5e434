"""Bring documents in, or up to date: text, Markdown, HTML, PDF, DOCX, PPTX, code, folders."""

import argparse
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _output
from filestore.errors import FilestoreError, UsageError
from filestore.safe_text import shown_path

if TYPE_CHECKING:
    from filestore.adding import AddReport
    from filestore.ingest import Outcome

EXAMPLE = "filestore add handbook/ notes.md --store file_index"
_KEPT_HINT = "hand edits are kept; the new text of their source is remembered for a merge"


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
    sources = []
    unusable: list[tuple[str, FilestoreError]] = []
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        for path in options.paths:
            try:
                sources += sources_of(
                    path, into=options.into, each=options.each, patterns=store.settings.ignore
                )
            except FilestoreError as error:
                unusable.append((path, error))
        report = store.add(sources, on_progress=on_progress)
    if options.json:
        _output.write_json(_json(report, unusable))
    else:
        _words(report, unusable)
    left = _diagnostics.left_without(report.problem)
    errors = [error for _, error in unusable]
    errors += [outcome.error for outcome in report.outcomes if outcome.error is not None]
    errors += [error for outcome in report.outcomes for _, error in outcome.failures]
    return max((error.exit_code for error in errors), default=left)


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
        if outcome.kept:
            entry["kept"] = {f"chunked/{path}": why for path, why in outcome.kept.items()}
        if outcome.ignored:
            entry["ignored"] = outcome.ignored
        if outcome.skipped:
            entry["skipped"] = [{"path": path, "reason": why} for path, why in outcome.skipped]
        lists[outcome.status].append(entry)
        for path, error in outcome.failures:
            failed = {"source": path, "resource": outcome.resource, "chunks": 0}
            lists["failed"].append(failed | _error(error))
    lists |= {"embedded": report.embedded, "reused": report.reused}
    return lists | ({"not_embedded": _error(report.problem)} if report.problem else {})


def _error(error: FilestoreError) -> dict[str, str]:
    return {"error": error.message, "remedy": error.remedy}


def _words(report: "AddReport", unusable: list[tuple[str, FilestoreError]]) -> None:
    for outcome in report.outcomes:
        if outcome.error is None:
            _outcome(outcome)
    for path, error in unusable:
        _failure(path, error)
    for outcome in report.outcomes:
        if outcome.error is not None:
            _failure(outcome.source, outcome.error)
    texts = _output.count(report.embedded, "text")
    _output.line(f"{texts} embedded, {report.reused:,} known already")


def _outcome(outcome: "Outcome") -> None:
    chunks = _output.count(outcome.chunks, "chunk")
    ignored = f", {outcome.ignored:,} left out by ignore rules" if outcome.ignored else ""
    _output.line(f"{outcome.status} {shown_path(outcome.resource)} ({chunks}{ignored})")
    for path, reason in outcome.kept.items():
        _output.line(f"    kept chunked/{shown_path(path)}: {reason}")
    if outcome.kept:
        _diagnostics.say(_KEPT_HINT)
    for path, error in outcome.failures:
        _failure(path, error)
    for path, reason in outcome.skipped:
        _diagnostics.say(f"    left out {shown_path(path)}: {reason}")


def _failure(path: str, error: FilestoreError) -> None:
    _diagnostics.say(f"failed {shown_path(path)}: {error.message}")
    if error.remedy:
        _diagnostics.say(f"  try: {error.remedy}")

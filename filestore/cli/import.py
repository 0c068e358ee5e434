"""Take in what a store or another program wrote, be it a stranger's: files and vectors."""

from typing import TYPE_CHECKING, Annotated

from filestore.cli import EXIT_PARTIAL, _context, _diagnostics, _output
from filestore.cli._given import Limited
from filestore.core.safe_text import safe_text
from filestore.exchange.base import READ
from filestore.server.options import argument

if TYPE_CHECKING:
    from filestore.exchange.base import Imported

EXAMPLE = "filestore import jsonl handbook.jsonl --plan"

_SHOWN = 10


class Options(Limited, frozen=True, kw_only=True):
    """What the command takes."""

    form: Annotated[str, argument("FORM", one_of=list(READ))]
    """one of:"""
    source: Annotated[str, argument("SOURCE")]
    """the file or folder"""
    replace: bool = False
    """replace resources that are there and differ; 'filestore undo' brings them back"""
    unchecked: bool = False
    """take the vectors although the model that could check them is not here"""
    embed: bool = True
    """embed texts that come without a vector"""
    plan: bool = False
    """say what would be written, only"""


def run(options: Options) -> int:
    """Take it in."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        done = store.import_from(
            options.form,
            options.source,
            replace=options.replace,
            unchecked=options.unchecked,
            embed=options.embed,
            plan=options.plan,
            limits=options.limits,
            on_progress=on_progress,
        )
    _context.tell(options, done, _told)
    _output.left_out(done.left_out, done.more_left_out)
    refused = len(done.of_status("refused"))
    if not done.resources:
        return 1
    if refused == len(done.resources):
        return 4
    return EXIT_PARTIAL if refused or done.left_out else 0


def _told(done: "Imported") -> None:
    for status in ("added", "replaced", "unchanged", "refused"):
        found = done.of_status(status)
        if not found:
            continue
        would = "would be " if done.planned and status in ("added", "replaced") else ""
        files = sum(one.files for one in found)
        counted = f", {_output.count(files, 'file')}" if files else ""
        _output.line(f"{would}{status}: {_output.count(len(found), 'resource')}{counted}")
        for one in found[:_SHOWN] if status != "unchanged" else ():
            reason = f": {one.reason}" if one.reason else ""
            _output.line(safe_text(f"    {one.resource or '.'}{reason}", keep_newlines=False))
        if status != "unchanged" and len(found) > _SHOWN:
            _output.line(f"    … and {len(found) - _SHOWN:,} more")
    if not done.resources:
        _output.line("nothing to import was found")
    if done.planned:
        limits = done.limits
        _output.line(
            f"it has {_output.count(done.rows, 'row')} (at most {limits.rows:,}),"
            f" {_output.count(done.size_bytes, 'byte')} ({limits.bytes:,});"
            f" {_output.count(done.files, 'file')} would be written ({limits.files:,})"
        )
    if done.renamed:
        renamed = _output.count(done.renamed, "chunk file")
        _output.line(f"{renamed} with another name than there: those cannot be used here")
    if done.of_status("refused"):
        _output.line("--replace replaces what differs; 'filestore undo' brings it back")
    _vectors(done)
    if done.undo:
        _output.line(f"undo: filestore undo {done.undo}")


def _vectors(done: "Imported") -> None:
    if done.no_vectors:
        why = safe_text(done.no_vectors, keep_newlines=False)
        were = "would not be" if done.planned else "were not"
        _output.line(f"vectors that came along {were} taken: {why}")
    if done.vectors:
        checked = f"; {_output.count(done.compared, 'text')} embedded again: the same"
        _output.line(
            f"took {_output.count(done.vectors, 'vector')}{checked if done.compared else ''}"
        )
    if done.files and not done.planned:
        _output.line(_output.embedded(done.embedded, done.reused))
    if done.not_embedded is not None:
        _diagnostics.say(f"not embedded: {safe_text(done.not_embedded.message)}")

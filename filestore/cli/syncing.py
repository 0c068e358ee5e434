"""Files and index checked against each other, and the index kept up to date."""

import sys
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from msgspec.structs import replace

from filestore.cli import EXIT_INTERRUPTED, _context, _output
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.findings import not_checked_words
from filestore.core.safe_text import shown_path
from filestore.server import requests
from filestore.server.operations import CommonOptions, option

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import Sample
    from filestore.store import watch
    from filestore.verify.run import Checked


class Verify(requests.Verify, frozen=True, kw_only=True):
    """What the command takes."""

    sample: Annotated[str | None, option("N/T")] = None
    """read only the N-th of T slices of the files and vectors; all T are everything once"""
    staged: bool = False
    """check what git has staged instead: the blobs of the index, not the files"""


def run_verify(options: Verify) -> int:
    """Check files, catalog and vectors against each other; change nothing.

    Example: filestore verify --level full
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
                "--sample narrows what is read, and level fast reads nothing",
                remedy=f"filestore verify --level full --sample {options.sample}",
            )
        sample = Sample.parse(options.sample)
    checked = _checked(options, sample)
    if not _context.printed_json(options, checked):
        _output.findings(checked.findings)
        _output.line(f"{'clean' if checked.clean else 'not clean'} at level {checked.level}")
        _output.wrapped("checked: ", checked.checked or ["nothing"])
        _output.wrapped("", [not_checked_words(checked.not_checked)])
        _output.next_command(checked.findings)
    return 0 if checked.clean else 1


def _checked(options: Verify, sample: "Sample | None") -> "Checked":
    """The result; also for a store that must not be opened."""
    try:
        with _context.open_store(options) as store, _output.progress_bar() as on_progress:
            return store.verify(level=options.level, sample=sample, on_progress=on_progress)
    except FilestoreError as error:
        from filestore.verify.run import refused

        nothing = refused(options.level, error)
        if nothing is None:
            raise
        return nothing


class Sync(requests.Sync, frozen=True, kw_only=True):
    """What the command takes."""

    full: bool = False
    """verify everything first, and repair what that finds; outside git also remove embeddings that
    no text here and no undo has"""


def run_sync(options: Sync) -> int:
    """Update the index from the files; never writes a chunk file.

    Example: filestore sync
    """
    with _context.open_store(options) as store, _output.progress_bar() as on_progress:
        report = options.answer(store, on_progress)
        if options.full or options.deep:
            # Only here: what a server, a hook or a watcher syncs keeps every embedding.
            try:
                report = replace(report, pruned=store.prune_embeddings(spare_git=True).embeddings)
            except FilestoreError as error:
                _output.say(f"embeddings that nothing needs are kept: {error.message}")
    code = _output.exit_code_of(report)
    if not _context.printed_json(options, report):
        _output.synced(report)
    return code


_KEPT: Final = "what was done so far is kept"


class Watch(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    embed: bool = True
    """embed new texts now"""


def run_watch(options: Watch) -> int:
    """Keep the index up to date while files change; Ctrl-C ends it.

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
            _say(line, "; ".join(parts), as_json=as_json)
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
            _say(line, "; ".join(parts), as_json=as_json)
        case watch.Waiting(reason=reason):
            _say(watch.Line(event="waiting", for_=reason), f"waiting: {reason}", as_json=as_json)
        case watch.Unavailable(reason=reason):
            words = f"file watching is unavailable ({reason}); polling instead"
            _say(watch.Line(event="blind", detail=reason), words, as_json=as_json)
        case watch.Reopened():
            words = "filestore.toml changed: opened again"
            _say(watch.Line(event="reopened"), words, as_json=as_json)
        case watch.Failed(error=error):
            line = watch.Line(
                event="failed", error=error.message, detail=error.detail, remedy=error.remedy
            )
            remedy = f" (try: {error.remedy})" if error.remedy else ""
            words = f"failed: {error.message}{remedy}"
            _say(line, words, as_json=as_json)


def _say(value: "watch.Line", words: str, *, as_json: bool) -> None:
    if as_json:
        _output.write_json_line(value.to_dict())
    else:
        _output.line(_output.one_line(words))
        sys.stdout.flush()

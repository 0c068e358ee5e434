"""Keep the index up to date while files change; Ctrl-C ends it."""

import sys
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from filestore.cli import EXIT_INTERRUPTED, _context, _output
from filestore.core.safe_text import safe_text, shown_path
from filestore.server.options import CommonOptions

if TYPE_CHECKING:
    from filestore.ingest.update import UpdateReport
    from filestore.store import watch

EXAMPLE = "filestore watch --json"
_KEPT: Final = "what was done so far is kept"


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    embed: bool = True
    """embed new texts now"""


def run(options: Options) -> int:
    """Watch; 130 where Ctrl-C ends it, 0 where the system does."""
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
        case watch.Synced():
            line = watch.synced_line(event.report.to_dict())
            _say(line, _synced_words(event), as_json=as_json)
        case watch.Updated(report=report):
            line = watch.updated_line(report.to_dict())
            _say(line, _updated_words(report), as_json=as_json)
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
        _output.line(safe_text(words, keep_newlines=False))
        sys.stdout.flush()


def _updated_words(report: "UpdateReport") -> str:
    parts = [f"{one.status} {shown_path(one.resource)}" for one in report if one.status != "failed"]
    parts += [
        f"kept {shown_path(one['path'])}: your edit and the new text"
        " overlap ('filestore repair --ours PATH' or '--theirs PATH')"
        for one in report.conflicts
    ]
    parts += [f"failed {shown_path(one.source)}: {one.error}" for one in report.failed]
    return "; ".join(parts)


def _synced_words(event: "watch.Synced") -> str:
    report = event.report
    parts = [_output.done(report.applied)]
    if report.embedded or report.reused:
        parts.append(_output.embedded(report.embedded, report.reused))
    remaining = Counter(one.code for one in report.remaining)
    left = ", ".join(f"{number:,} {code}" for code, number in remaining.items())
    if left:
        parts.append(f"left for you: {left}")
    return "; ".join(parts)

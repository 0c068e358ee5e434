"""Bring resources up to date with their originals, then sync; hand edits are merged.

What was made from originals that are gone stays; --remove-gone removes it, but for hand edits.
"""

from filestore.cli import _context, _diagnostics, _updated
from filestore.server import requests

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
        return _updated.show(planned, as_json=options.json)
    return _updated.tell(report, as_json=options.json)

"""Update the index from the files; never writes a chunk file."""

from msgspec.structs import replace

from filestore.cli import _context, _diagnostics, _output
from filestore.core.errors import FilestoreError
from filestore.server import requests

EXAMPLE = "filestore sync"


class Options(requests.Sync, frozen=True, kw_only=True):
    """What the command takes."""

    full: bool = False
    """verify everything first, and repair what that finds; outside git also remove embeddings that
    no text here and no undo has"""
    deep: bool = False
    """as --full, and also compare some texts with the model"""


def run(options: Options) -> int:
    """Sync; 1 where something is left that needs a person, 4 where a mass of files is gone."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        report = store.sync(
            embed=options.embed,
            forget_missing=options.forget_missing,
            full=options.full,
            deep=options.deep,
            on_progress=on_progress,
        )
        if options.full or options.deep:
            # Only here: what a server, a hook or a watcher syncs keeps every embedding.
            try:
                report = replace(report, pruned=store.prune_embeddings(spare_git=True).embeddings)
            except FilestoreError as error:
                _diagnostics.say(f"embeddings that nothing needs are kept: {error.message}")
    code = _diagnostics.exit_code_of(report)
    _context.tell(options, report, _output.synced)
    return code

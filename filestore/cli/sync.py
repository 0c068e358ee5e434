"""Update the index from the files; never writes a chunk file."""

import argparse
from typing import Any

from filestore.cli import _context, _diagnostics, _output

EXAMPLE = "filestore sync"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("--no-embed", action="store_true", help="do not embed new texts now")
    parser.add_argument(
        "--full", action="store_true", help="verify everything first, and repair what that finds"
    )
    parser.add_argument(
        "--deep", action="store_true", help="as --full, and also compare some texts with the model"
    )
    parser.add_argument(
        "--forget-missing",
        action="store_true",
        help="remove missing files from the index even if suspiciously many are gone",
    )


def run(options: Any) -> int:
    """Sync; 1 where something is left that needs a person, 4 where a mass of files is gone."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        report = store.sync(
            embed=not options.no_embed,
            forget_missing=options.forget_missing,
            full=options.full,
            deep=options.deep,
            on_progress=on_progress,
        )
    code = _diagnostics.exit_code_of(report)
    if options.json:
        _output.write_json(report.to_dict())
    else:
        _output.synced(report)
    return code

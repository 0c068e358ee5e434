"""Check files, catalog and vectors against each other; changes nothing."""

import argparse
from typing import Any

from filestore.cli import _context, _diagnostics, _output
from filestore.findings import is_clean

EXAMPLE = "filestore verify --level full"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "--level",
        choices=("fast", "full"),
        default="fast",
        help="fast: stats; full: every byte, id, vector and full-text entry (default: fast)",
    )


def run(options: Any) -> int:
    """Print the findings; exit code 1 where there is an error or a warning."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        checked = store.verify(level=options.level, on_progress=on_progress)
        clean = is_clean(list(checked.findings), store.settings.accepted)
    if options.json:
        _output.write_json(
            {
                "clean": clean,
                "level": checked.level,
                "checked": list(checked.checked),
                "not_checked": list(checked.not_checked),
                "findings": [_output.finding_json(finding) for finding in checked.findings],
            }
        )
    else:
        _output.findings(checked.findings)
        _output.line(f"{'clean' if clean else 'not clean'} at level {checked.level}")
        _output.wrapped("checked: ", checked.checked)
        _output.wrapped("not checked: ", checked.not_checked)
    return 0 if clean else 1

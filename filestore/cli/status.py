"""Show what drifted between files and index, as fast as git status."""

import argparse
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _output

if TYPE_CHECKING:
    pass

EXAMPLE = "filestore status --json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes: nothing of its own."""


def run(options: Any) -> int:
    """Print the drift; exit code 1 where there is any."""
    with _context.open_store(options) as store:
        status = store.status()
    if options.json:
        _output.write_json(status.to_dict())
    else:
        _output.findings(status.findings)
        if status.clean:
            _output.line(f"clean: {_output.count(status.files, 'file')} as indexed")
        _output.next_command(status.findings)
    return 0 if status.clean else 1

"""Open the inspector: read chunks, see the drift, search. It changes nothing."""

import argparse
import os
import sys
from typing import Any

from filestore.cli import _context
from filestore.errors import UsageError

EXAMPLE = "filestore tui"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes: nothing of its own."""


def run(options: Any) -> int:
    """Open the inspector.

    Raises:
        UsageError: There is no terminal to open it on.
    """
    # Textual reads the first and draws on the third; who redirects the second wants no screen.
    streams = {
        "standard input": sys.stdin,
        "standard output": sys.stdout,
        "standard error": sys.stderr,
    }
    for name, stream in streams.items():
        if not stream.isatty():
            raise UsageError(
                f"the inspector needs a terminal, and {name} is none",
                remedy="use 'filestore ls', 'show', 'status' and 'search', which take --json",
            )
    import tui

    store = options.store or os.environ.get("FILESTORE") or None
    return tui.run(store=store, configuration=_context.configuration_folder())

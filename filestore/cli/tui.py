"""Open the inspector: browse, search, see every drift with its evidence, repair, undo.

Nothing is written but what you confirm on its page Repair, and what you edit. A fault of the
inspector itself ends with exit code 3 and a traceback that shows nothing of the store.
"""

import argparse
import sys
from typing import Any

from filestore.cli import _context
from filestore.config.discovery import configuration_folder
from filestore.core.errors import UsageError

EXAMPLE = "filestore tui --read-only"

_PAGES = ("browse", "verify", "repair")


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("place", nargs="?", metavar="STORE", help="the store, instead of --store")
    parser.add_argument("--read-only", action="store_true", help="write nothing at all")
    parser.add_argument("--page", choices=_PAGES, help="the page to begin with")
    parser.add_argument("--select", metavar="PATH", default="", help="the file to begin with")
    parser.add_argument("--ascii", action="store_true", help="draw with plain characters only")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def run(options: Any) -> int:
    """Open the inspector.

    Raises:
        UsageError: There is no terminal to open it on, or an option cannot be used.
    """
    if options.json:
        raise UsageError(
            "the inspector prints no JSON",
            remedy="use 'filestore ls', 'show', 'status', 'verify' and 'search', which take --json",
        )
    _check_terminal()
    if options.place is not None:
        options.store = options.place
    import tui
    from tui.app.frame import Options

    return tui.run(
        Options(
            store=_context.named(options),
            configuration=configuration_folder(),
            read_only="the inspector was started with --read-only" if options.read_only else "",
            ascii=options.ascii,
            mouse=not options.no_mouse,
            page=options.page,
            select=options.select,
        )
    )


def _check_terminal() -> None:
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

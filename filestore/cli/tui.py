"""Open the inspector: browse, search, see every drift with its evidence, repair, undo.

Nothing is written but what you confirm on its page Repair, and what you edit. A fault of the
inspector itself ends with exit code 3 and a traceback that shows nothing of the store.
"""

import sys
from typing import Annotated, Literal

from msgspec.structs import replace

from filestore.cli import _context
from filestore.config.discovery import configuration_folder
from filestore.core.errors import UsageError
from filestore.server.options import CommonOptions, argument, option

EXAMPLE = "filestore tui --read-only"


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    place: Annotated[str | None, argument("STORE")] = None
    """the store, instead of --store"""
    read_only: bool = False
    """write nothing at all"""
    page: Literal["browse", "verify", "repair"] | None = None
    """the page to begin with"""
    select: Annotated[str, option("PATH")] = ""
    """the file to begin with"""
    ascii: bool = False
    """draw with plain characters only"""
    mouse: bool = True
    """take the mouse from the terminal"""


def run(options: Options) -> int:
    """Open the inspector.

    Raises:
        UsageError: There is no terminal to open it on, or an option cannot be used.
    """
    if options.json:
        raise UsageError(
            "the inspector prints no JSON",
            remedy="use 'filestore ls', 'show', 'status', 'verify' and 'search', which take --json",
        )
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
    from tui.app import frame

    return tui.run(
        frame.Options(
            store=_context.named(replace(options, store=options.place or options.store)),
            configuration=configuration_folder(),
            read_only="the inspector was started with --read-only" if options.read_only else "",
            ascii=options.ascii,
            mouse=options.mouse,
            page=options.page,
            select=options.select,
        )
    )

"""Answer agents over MCP, the Model Context Protocol, on standard input and output.

A program that speaks it, such as Claude, Cursor or VS Code, starts this command by itself. Tools
that write are there with --write alone; what they change can be undone.
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics
from filestore.core.errors import FilestoreError
from filestore.core.packages import install_line, missing_packages

if TYPE_CHECKING:
    from filestore.server.stores import Stores

EXAMPLE = "filestore mcp ~/notes work=~/work/handbook --write"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "stores",
        nargs="*",
        metavar="[NAME=]STORE",
        help="what to serve, under a name (default: the store of this folder)",
    )
    parser.add_argument("--write", action="store_true", help="let agents add and edit notes")


def run(options: Any) -> int:
    """Serve until standard input is closed."""
    _require_packages()
    from filestore.server.agents.server import run_stdio

    if sys.stdin.isatty():
        _diagnostics.say("waiting for an agent on standard input; to tell it: filestore mcp --help")
    return run_stdio(lambda: _opened(options))


def _require_packages() -> None:
    if missing := missing_packages("mcp"):
        raise FilestoreError(
            f"{', '.join(missing)} is not installed, and agents are answered by it",
            remedy=install_line("mcp"),
        )


def _opened(options: Any) -> "Stores":
    from filestore.server.stores import Access, Stores

    given = options.stores or [_context.root_of(options)]
    return Stores.open([os.path.expanduser(one) for one in given], Access(writes=options.write))

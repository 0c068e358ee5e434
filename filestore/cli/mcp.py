"""Answer agents over MCP, the Model Context Protocol, on standard input and output.

A program that speaks it, such as Claude, Cursor or VS Code, starts this command by itself. Tools
that write are there with --write alone; what they change can be undone.
"""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _output
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.packages import install_line, missing_packages
from filestore.core.safe_text import shown_path

if TYPE_CHECKING:
    from filestore.server.stores import Stores

EXAMPLE = "filestore mcp handbook work=../work --write"
_PROGRAMS = ("claude", "cursor", "vscode")


class AgentsMissingError(FilestoreError, ImportError):
    """What speaks with agents is not installed."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "stores",
        nargs="*",
        metavar="STORE",
        help="a store, or NAME=PATH; none: the store that every command would use",
    )
    parser.add_argument("--write", action="store_true", help="let agents write notes, and sync")
    parser.add_argument(
        "--install", choices=_PROGRAMS, help="print what a program is to be told, and where"
    )
    parser.add_argument("--yes", action="store_true", help="with --install: write it there")
    parser.add_argument(
        "--to", metavar="FILE", help="with --install: another file, such as .mcp.json of a project"
    )


def run(options: Any) -> int:
    """Serve until standard input is closed; or tell a program how it does that."""
    if missing_packages("mcp"):
        raise AgentsMissingError(
            "agents cannot be answered: packages are missing", remedy=install_line("mcp")
        )
    if options.install:
        return _install(options)
    if options.yes or options.to:
        raise UsageError("--yes and --to go with --install", remedy="filestore mcp --help")
    from filestore.server.agents.server import run_stdio

    if sys.stdin.isatty():
        _diagnostics.say("waiting for an agent on standard input; Ctrl-C ends it")
        _diagnostics.say("a program is told of it by: filestore mcp --install claude")
    return run_stdio(lambda: _opened(options))


def _given(options: Any) -> list[str]:
    return options.stores or [_context.root_of(options)]


def _opened(options: Any) -> "Stores":
    from filestore.server.stores import Access, Stores

    return Stores.open(_given(options), Access(writes=options.write))


def _install(options: Any) -> int:
    from filestore.server.agents import install

    wanted = install.installation(
        options.install, _given(options), write=options.write, to=options.to
    )
    if not options.json:
        _output.line(wanted.lines)
    done = install.install(wanted) if options.yes else wanted
    if options.json:
        _output.write_json(done.to_dict())
    elif not options.yes:
        _output.line(f"belongs into {shown_path(done.file)} ({done.program})")
        _output.line(f"or, for one project, into {install.PROGRAMS[options.install].project}")
        if options.install == "claude":
            _output.line(f"or, for Claude Code: {done.command_line}")
        _output.line("to write it there: add --yes")
    elif done.written:
        _output.line(f"{'replaced' if done.replaced else 'added'} in {shown_path(done.file)}")
        if done.replaced:
            _output.line(f"it was: {json.dumps(done.before, ensure_ascii=False)}")
        _output.line(f"restart {done.program} to use it")
        _output.line(f"to take it back, remove {done.name!r} there")
    else:
        _output.line(f"{shown_path(done.file)} has it already")
    return 0

"""Answer agents over MCP, the Model Context Protocol, on standard input and output.

A program that speaks it, such as Claude, Cursor or VS Code, starts this command by itself. Tools
that write are there with --write alone; what they change can be undone.
"""

import json
import sys
from typing import Annotated, Literal

from filestore.cli import _context, _diagnostics, _output
from filestore.core.errors import FilestoreError
from filestore.core.packages import install_line, missing_packages
from filestore.core.safe_text import shown_path
from filestore.server.options import CommonOptions, argument, option

EXAMPLE = "filestore mcp handbook work=../work --write"


class AgentsMissingError(FilestoreError, ImportError):
    """What speaks with agents is not installed."""


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    stores: Annotated[list[str], argument("STORE")] = []
    """a store, or NAME=PATH; none: the store that every command would use"""
    write: bool = False
    """let agents write notes, and sync"""
    install: Literal["claude", "cursor", "vscode"] | None = None
    """print what a program is to be told, and where"""
    yes: Annotated[bool, option(needs="install")] = False
    """with --install: write it there"""
    to: Annotated[str | None, option("FILE", needs="install")] = None
    """with --install: another file, such as .mcp.json of a project"""


def run(options: Options) -> int:
    """Serve until standard input is closed; or tell a program how it does that."""
    if missing_packages("mcp"):
        raise AgentsMissingError(
            "agents cannot be answered: packages are missing", remedy=install_line("mcp")
        )
    if options.install:
        return _install(options, options.install)
    from filestore.server.agents.server import run_stdio
    from filestore.server.stores import Access, Stores

    if sys.stdin.isatty():
        _diagnostics.say("waiting for an agent on standard input; Ctrl-C ends it")
        _diagnostics.say("a program is told of it by: filestore mcp --install claude")

    def opened() -> Stores:
        stores = Stores.open(_given(options), Access(writes=options.write))
        _context.tell_unknown(one for store in stores for one in store.unknown)
        return stores

    return run_stdio(opened)


def _given(options: Options) -> list[str]:
    return options.stores or [_context.root_of(options)]


def _install(options: Options, program: str) -> int:
    from filestore.server.agents import install

    wanted = install.installation(program, _given(options), write=options.write, to=options.to)
    if not options.json:
        _output.line(wanted.lines)
    done = install.install(wanted) if options.yes else wanted
    if options.json:
        _output.write_json(done.to_dict())
    elif not options.yes:
        _output.line(f"belongs into {shown_path(done.file)} ({done.program})")
        _output.line(f"or, for one project, into {install.PROGRAMS[program].project}")
        if program == "claude":
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

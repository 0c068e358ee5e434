"""Stores served: over HTTP, to agents, and to commands of this user."""

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from msgspec import Struct, field

from filestore.cli import EXIT_INTERRUPTED, _context, _output, _parser
from filestore.config.layout import NoStoreError
from filestore.core.caller import answering, leads
from filestore.core.errors import FilestoreError, install_line, missing_packages
from filestore.core.safe_text import safe_text, shown_path
from filestore.core.schema import JsonObject
from filestore.server import wire
from filestore.server.listening import Reply, Request
from filestore.server.operations import CommonOptions, argument, option
from filestore.server.wire import ASKED

if TYPE_CHECKING:
    from filestore.store import Store


class ServerMissingError(FilestoreError, ImportError):
    """A package that serves, over HTTP or to agents, is not installed."""


class Serving(JsonObject, Struct, frozen=True):
    """What `serve` prints once requests are answered."""

    url: str
    """The address."""
    token_file: str
    """The file that has the token; empty where it was given, or none is asked for."""
    stores: list[str]
    """Names of the stores."""


class Serve(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    stores: Annotated[list[str], argument("STORE")] = []
    """a store, or NAME=PATH; none: the store that every command would use"""
    host: str = "127.0.0.1"
    """where it listens (default 127.0.0.1: this machine)"""
    port: int = 8765
    """0: any that is free"""
    token: Annotated[str | None, option("T", group="token")] = None
    """instead of the one that is made once and kept in the folder of your settings; other users see
    it in the list of processes: FILESTORE_TOKEN is better"""
    no_token: Annotated[bool, option(group="token")] = False
    """ask for none"""
    read_only: Annotated[bool, option(group="writes")] = False
    """change nothing (the default)"""
    write: Annotated[bool, option(group="writes")] = False
    """allow what changes a store"""
    documents: Annotated[list[str], option("DIR")] = []
    """documents of this folder may be added by their path, too; repeated: of any of them"""
    collections: Annotated[str | None, option("DIR")] = None
    """a folder of collections for the routes below /rag; each is a store of its own"""
    insecure: bool = False
    """confirm --no-token, or a --host that others reach"""


def run_serve(options: Serve) -> int:
    """Serve stores to programs, agents and browsers: HTTP with JSON, a page, and MCP at /mcp.

    It answers this machine alone and asks for a token by default; it changes no store
    without --write. Ctrl-C ends it. Your own searches on the command line are answered by it, too.

    Example: filestore serve handbook notes=~/notes --write
    """
    watched = ("watched tree",) if sys.platform == "linux" else ()
    if missing_packages("serve"):
        raise ServerMissingError(
            "stores cannot be served: packages are missing",
            remedy=install_line("serve", *watched),
        )
    if any(map(missing_packages, watched)):
        _output.say(f"trees are not watched, status walks them: {install_line(*watched)}")
    from filestore.config.layout import configuration_folder
    from filestore.server.collections import Collections
    from filestore.server.http import run as running
    from filestore.server.http.app import AppParts
    from filestore.server.listening import Listener
    from filestore.server.stores import Access, Stores

    address = running.Address(host=options.host, port=options.port)
    running.require_confirmed(address, token=not options.no_token, insecure=options.insecure)
    configuration = configuration_folder()
    given = options.token or os.environ.get("FILESTORE_TOKEN")
    token, path = (None, "") if options.no_token else running.token_of(configuration, given)
    access = Access(writes=options.write, documents=tuple(map(leads, options.documents)))
    # Libraries warn of every broken request; what went wrong here is an error.
    logging.basicConfig(level=logging.ERROR, format="filestore: %(message)s", stream=sys.stderr)
    with contextlib.ExitStack() as stack:
        stores = stack.enter_context(
            Stores.open(_named(options), access, configuration=configuration)
        )
        _context.tell_unknown(one for store in stores for one in store.unknown)
        collections = None
        if options.collections is not None:
            folder = os.path.expanduser(options.collections)
            collections = Collections(folder, writes=options.write, configuration=configuration)
            stack.enter_context(collections)
        parts = AppParts(
            stores=stores, token=token, is_local=address.is_local, collections=collections
        )
        opened = running.listening(address)
        ended = _context.end_politely()
        on_ready = partial(
            _print_ready,
            running.url_of(opened),
            token,
            path,
            stores.names,
            as_json=options.json,
        )
        try:
            with streams(), Listener(stores, run_words):
                running.serve(parts, opened, on_ready)
        except KeyboardInterrupt:
            return 0 if ended.is_set() else EXIT_INTERRUPTED
    return 0


def _named(options: Serve) -> list[str]:
    if options.stores:
        return list(options.stores)
    try:
        return [_context.root_of(options)]
    except NoStoreError:
        if options.collections is None or _context.named(options):
            raise
        return []  # The collections alone.


def _print_ready(
    url: str, token: str | None, path: str, names: list[str], *, as_json: bool
) -> None:
    """Print what a person, or a program, needs to ask the server."""
    if as_json:
        _output.write_json_line(Serving(url, path, names).to_dict())
        return
    _output.line(f"serving {', '.join(names) or 'collections'} at {url}")
    if token and sys.stdout.isatty():
        # On a terminal alone: what is written elsewhere is a log.
        _output.line(f"open {url}#token={token}")
    elif path:
        _output.line(f"the token is in {safe_text(path)}")
    sys.stdout.flush()
    _output.say("Ctrl-C ends it")


# What a command writes that is answered is kept, and sent whole. One rule: what fails is not
# answered. The command then runs in its own process, and says there what is wrong.
_OWN: Final = ("at", "embed", "rerank", "rewrite")
"""Options of what takes long, or loads another model: each command does that by itself."""


def run_words(store: "Store", request: Request) -> Reply | None:
    """Run a command on an open store; None for what its own process has to do."""
    kept = _Kept(is_terminal=request.caller.columns > 0)
    before = _KEPT.set(kept)
    try:
        with answering(request.caller), _context.served(store):
            run, options = _parser.parse(request.words)
            is_answered = run.__name__.removeprefix("run_") in ASKED
            if not is_answered or any(getattr(options, name, None) for name in _OWN):
                return None
            code = run(options)
    except (Exception, SystemExit):
        return None
    finally:
        _KEPT.reset(before)
    return Reply(code=code, parts=kept.parts)


class _Kept(Struct, kw_only=True):
    """What one command wrote, in its order."""

    is_terminal: bool
    parts: list[tuple[bytes, bytes]] = field(default_factory=list)
    """As it was written: where both streams go to one place, that tells what comes first."""


_KEPT: ContextVar[_Kept | None] = ContextVar("kept", default=None)


class _Written:
    """One stream of a command."""

    def __init__(self, kept: _Kept, kind: bytes) -> None:
        self._kept = kept
        self._kind = kind
        self.buffer = self

    def write(self, text: str | bytes) -> int:
        """Keep what is written."""
        if isinstance(text, str):
            self._kept.parts.append((self._kind, text.encode("utf-8", "surrogatepass")))
        else:
            self._kept.parts.append((wire.BYTES, bytes(text)))
        return len(text)

    def flush(self) -> None:
        """Have it flushed there, too: bytes are, also where there are none."""
        if self._kind == wire.TEXT:
            self.write(b"")

    def isatty(self) -> bool:
        """Whether the command writes to a terminal; errors are kept, so no bar moves there."""
        return self._kept.is_terminal and self._kind == wire.TEXT

    def fileno(self) -> int:
        """There is none."""
        raise io.UnsupportedOperation("a command that is answered has no file")


class _Stream:
    """Standard output or error: of the command that this thread runs, else of the process."""

    def __init__(self, own: Any, kind: bytes) -> None:
        self._own = own
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        kept = _KEPT.get()
        return getattr(self._own if kept is None else _Written(kept, self._kind), name)


@contextlib.contextmanager
def streams() -> Iterator[None]:
    """Until the block ends each command that a thread runs has streams of its own."""
    own = sys.stdout, sys.stderr
    sys.stdout = cast("Any", _Stream(own[0], wire.TEXT))
    sys.stderr = cast("Any", _Stream(own[1], wire.ERRORS))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = own


class Mcp(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    stores: Annotated[list[str], argument("STORE")] = []
    """a store, or NAME=PATH; none: the store that every command would use"""
    write: bool = False
    """let agents write notes, and sync"""
    install: Literal["claude", "cursor", "vscode"] | None = None
    """print the configuration of a program, and where it belongs"""
    yes: Annotated[bool, option(needs="install")] = False
    """with --install: write it there"""
    to: Annotated[str | None, option("FILE", needs="install")] = None
    """with --install: another file, such as .mcp.json of a project"""


def run_mcp(options: Mcp) -> int:
    """Answer agents over MCP, the Model Context Protocol, on standard input and output.

    A program that speaks it, such as Claude, Cursor or VS Code, starts this command by itself.
    Tools that write are there with --write alone; what they change can be undone.

    Example: filestore mcp handbook work=../work --write
    """
    if missing_packages("mcp"):
        raise ServerMissingError(
            "agents cannot be answered: packages are missing", remedy=install_line("mcp")
        )
    if options.install:
        return _install(options, options.install)
    from filestore.server.agents.server import run_stdio
    from filestore.server.stores import Access, Stores

    if sys.stdin.isatty():
        _output.say("waiting for an agent on standard input; Ctrl-C ends it")
        _output.say("to configure a program: filestore mcp --install claude")

    def opened() -> Stores:
        stores = Stores.open(_given(options), Access(writes=options.write))
        _context.tell_unknown(one for store in stores for one in store.unknown)
        return stores

    return run_stdio(opened)


def _given(options: Mcp) -> list[str]:
    return options.stores or [_context.root_of(options)]


def _install(options: Mcp, program: str) -> int:
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

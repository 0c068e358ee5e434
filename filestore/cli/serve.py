"""What shows a store elsewhere: HTTP, agents, the commands of this user, editor and inspector."""

import contextlib
import io
import json
import logging
import os
import shlex
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.cli import EXIT_INTERRUPTED, _context, _output, _parser, _terminal
from filestore.config import layout
from filestore.config.defaults import default, own_defaults
from filestore.config.settings import USERS
from filestore.core.caller import answering, leads
from filestore.core.colors import DUMB
from filestore.core.errors import FilestoreError, UsageError, extra_line, missing_packages
from filestore.core.safe_text import safe_text, shown_path
from filestore.core.schema import JsonObject
from filestore.server import wire
from filestore.server.listening import Reply, Request
from filestore.server.operations import CommonOptions, argument, option
from filestore.server.wire import ASKED

if TYPE_CHECKING:
    from filestore.browse.named import Spot
    from filestore.server.agents.install import Installation
    from filestore.store import Store


class AgentsMissingError(FilestoreError, ImportError):
    """The package that answers agents is not installed."""


class Serving(JsonObject, Struct, frozen=True):
    """What `serve` prints once requests are answered."""

    url: str
    """The address."""
    token_file: str
    """The file with the token; empty where you gave the token, or none is needed."""
    stores: list[str]
    """Names of the stores."""


class Serve(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    stores: Annotated[list[str], argument("STORE")] = []
    """a store, or NAME=PATH (default: the store of any other command)"""
    host: str = "127.0.0.1"
    """the address to listen on (default 127.0.0.1: this machine alone)"""
    name: Annotated[list[str], option("NAME")] = []
    """a host name that clients use, such as that of a TLS proxy; repeat it for several"""
    port: int = 8765
    """the port to listen on; 0: any free one"""
    token: Annotated[str | None, option("T", group="token")] = None
    """the token to use; other users see it in the process list: prefer FILESTORE_TOKEN"""
    no_token: Annotated[bool, option(group="token")] = False
    """serve without a token"""
    read_only: Annotated[bool, option(group="writes")] = False
    """change nothing (the default)"""
    write: Annotated[bool, option(group="writes")] = False
    """allow requests that change a store"""
    documents: Annotated[list[str], option("DIR")] = []
    """let clients add documents of this folder by path; repeat it for several"""
    collections: Annotated[str | None, option("DIR")] = None
    """a folder of collections for the routes under /rag; each is a store"""
    insecure: bool = False
    """confirm an insecure --no-token or --host"""


def run_serve(options: Serve) -> int:
    """Serve stores to programs, agents and browsers: HTTP with JSON, a page, and MCP at /mcp.

    By default it answers only this machine, asks for a token, and changes no store; --write allows
    changes. It also answers your own searches on the command line. Ctrl-C stops it.

    Example: filestore serve handbook=file_index --write
    """
    if missing_packages("mcp"):
        _output.say(f"/mcp is off: agents need extra packages: {extra_line('server')}")
    from filestore.server.collections import Collections
    from filestore.server.http import run as running
    from filestore.server.http.app import AppParts, make_app
    from filestore.server.listening import Listener
    from filestore.server.stores import Access, Stores

    address = running.Address(host=options.host.strip("[]"), port=options.port)
    running.require_names(options.name)
    running.require_confirmed(address, token=not options.no_token, insecure=options.insecure)
    configuration = layout.configuration_folder()
    given = options.token or os.environ.get("FILESTORE_TOKEN") or None
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
            stores=stores,
            token=token,
            is_local=address.is_local,
            names=options.name,
            configuration=configuration,
            collections=collections,
        )
        opened = running.listening(address)
        ended = _context.end_politely()
        serving = Serving(running.url_of(opened), path, stores.names)
        on_ready = partial(_print_ready, serving, token, as_json=options.json)
        try:
            with streams(), Listener(stores, run_words):
                running.serve(make_app(parts), parts, opened, on_ready)
        except KeyboardInterrupt:
            return 0 if ended.is_set() else EXIT_INTERRUPTED
    return 0


def _named(options: Serve) -> list[str]:
    if options.stores:
        return list(options.stores)
    try:
        return [_context.root_of(options)]
    except layout.NoStoreError:
        if options.collections is None or _context.named(options):
            raise
        return []  # The collections alone.


def _print_ready(serving: Serving, token: str | None, *, as_json: bool) -> None:
    """Print what a person, or a program, needs to ask the server."""
    if as_json:
        _output.write_json_line(serving.to_dict())
        return
    _output.line(f"serving {', '.join(serving.stores) or 'collections'} at {serving.url}")
    if token and sys.stdout.isatty():
        # On a terminal alone: what is written elsewhere is a log.
        _output.line(f"open {serving.url}#token={token}")
    elif serving.token_file:
        _output.line(f"the token is in {safe_text(serving.token_file)}")
    sys.stdout.flush()
    _output.note("Ctrl-C stops it")


# What a command writes that is answered is kept, and sent whole. One rule: what fails is not
# answered. The command then runs in its own process, and says there what is wrong.
_OWN: Final = ("at", "embed", "rerank", "rewrite")
"""Options of what takes long, or loads another model: each command does that by itself."""


def run_words(store: "Store", request: Request) -> Reply | None:
    """Run a command on an open store; None for what its own process has to do."""
    kept = _Kept(is_terminal=request.caller.columns > 0)
    before = _KEPT.set(kept)
    wishes = _terminal.wishes()
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
        _terminal.use(wishes)
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
        raise io.UnsupportedOperation("the output of a command over the socket is not a file")


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


_PROGRAMS: Final = (
    "claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "zed"
)  # fmt: skip


class Mcp(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    stores: Annotated[list[str], argument("STORE")] = []
    """a store, or NAME=PATH (default: the store of any other command)"""
    write: bool = False
    """let agents write notes and sync"""
    install: Annotated[str | None, option("PROGRAM", one_of=_PROGRAMS)] = None
    """show the entry for a program's configuration, and where it goes"""
    yes: Annotated[bool, option(needs="install")] = False
    """with --install: test the server as the program will start it, then write the entry"""
    remove: Annotated[bool, option(needs="install")] = False
    """with --install: remove the entry"""
    plan: Annotated[bool, option(needs="install")] = False
    """with --install: show what would change; write nothing"""
    to: Annotated[str | None, option("FILE", needs="install")] = None
    """with --install: use another file, such as .mcp.json of a project"""


def run_mcp(options: Mcp) -> int:
    """Answer agents over MCP, the Model Context Protocol, on standard input and output.

    Programs that speak MCP, such as Claude, Cursor or VS Code, start this command themselves.
    --write adds the tools that write; what they change can be undone.

    Example: filestore mcp --install claude-code --yes
    """
    if missing_packages("mcp") and not options.remove:
        raise AgentsMissingError(
            "MCP needs extra packages that are not installed", remedy=extra_line("server")
        )
    given = options.stores or [_context.root_of(options)]
    if options.install:
        return _install(options, options.install, given)
    from filestore.server.agents.server import run_stdio
    from filestore.server.stores import Access, Stores

    if sys.stdin.isatty():
        _output.note("waiting for an agent on standard input; Ctrl-C stops it")
        _output.note("to configure a program: filestore mcp --install claude-code")

    def opened() -> Stores:
        stores = Stores.open(given, Access(writes=options.write))
        _context.tell_unknown(one for store in stores for one in store.unknown)
        return stores

    return run_stdio(opened)


def _install(options: Mcp, word: str, stores: list[str]) -> int:
    """Show the entry of a program's configuration; write it, once the server has answered so."""
    from filestore.server.agents import install
    from filestore.server.agents.entries import snippet
    from filestore.server.agents.proof import ask_once
    from filestore.server.stores import named_roots

    program = install.program_of(word)
    configuration = layout.configuration_folder()
    wanted = install.installation(program, stores, write=options.write, to=options.to)
    is_planned = options.plan or not options.yes
    if options.remove:
        done = install.remove(wanted, program.form, configuration, plan=options.plan)
        return _print_removed(options, done)
    lines = snippet(program.form, wanted.key, wanted.name, wanted.server)
    if not options.json:
        _output.line(f"{wanted.program} reads {shown_path(wanted.file)}; its entry:")
        _output.line(safe_text(lines.rstrip("\n")))
    done = wanted
    if not is_planned:
        install.install(wanted, program.form, configuration, plan=True)
        several = next(iter(named_roots(stores))) if len(stores) > 1 else ""
        question, answer = ask_once(wanted.server, several)
        wanted = replace(wanted, question=question, answer=answer)
        done = install.install(wanted, program.form, configuration)
    if options.json:
        _output.write_json(done.to_dict())
    elif is_planned:
        if program.project:
            _output.line(f"for one project: --to {program.project} in its folder")
        if program is install.PROGRAMS["claude-code"]:
            _output.line(f"the same with Claude Code: {install.command_line(wanted)}")
        _output.line("to write it: add --yes; to remove it: --remove")
    else:
        _print_installed(done, word)
    return 0


def _print_installed(done: "Installation", word: str) -> None:
    _output.line(f"the server, started as by {done.program}, answers {safe_text(done.question)!r}:")
    _output.line("\n".join(f"  {line}" for line in done.answer.splitlines()))
    if not done.written:
        _output.line(f"{shown_path(done.file)} already has this entry")
        return
    _output.line(f"{'replaced' if done.replaced else 'added'} in {shown_path(done.file)}")
    if done.replaced:
        _output.line(f"before: {safe_text(json.dumps(done.before, ensure_ascii=False))}")
    _output.line(f"restart {done.program} to use it")
    _output.line(f"to remove it: filestore mcp --install {word} --remove")


def _print_removed(options: Mcp, done: "Installation") -> int:
    file = shown_path(done.file)
    if options.json:
        _output.write_json(done.to_dict())
    elif not done.removed:
        _output.line(f"{file} has no entry {done.name!r}")
    elif options.plan:
        _output.line(f"would remove {done.name!r} from {file}")
    else:
        how = "is as it was before" if done.restored else "keeps everything else"
        _output.line(f"removed {done.name!r} from {file}, which {how}")
    return 0 if done.removed else 1


_MOST_READ = 100_000


class NotOpenedError(FilestoreError):
    """There is no program to open a file with, or it failed."""


class Opened(JsonObject, Struct, frozen=True):
    """What `open` prints."""

    root: str
    """The store's folder."""
    document: str
    """The document, relative to the root."""
    line: int | None
    """The line in it."""
    page: int | None
    """The page in it, if it has pages."""
    command: tuple[str, ...]
    """The program and its arguments."""


class Open(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    hit: Annotated[str, argument("HIT")]
    """as 'search' prints it: PATH or PATH:LINE"""
    chunk: bool = False
    """open the chunk file itself, not its document"""
    only_print: Annotated[bool, option(None, "--print")] = False
    """print the editor's command without running it"""


def run_open(options: Open) -> int:
    """Open a search hit in your editor, at its line.

    HIT is PATH, PATH:LINE, or a whole line that 'search' printed; - reads it from standard input,
    as in 'filestore search lease --format oneline | fzf | filestore open -'. For a chunk file it
    opens the document that the chunk was made from. The editor is $VISUAL or $EDITOR; files that
    are not text open in the program that the desktop uses.

    Examples:
        filestore open handbook/lease.md:3
        filestore open handbook/lease.md --print
        filestore open chunked/notes.md/chunk1.md --chunk
    """
    from filestore.browse.named import Spot
    from filestore.fs.programs import run_program

    hit = sys.stdin.readline(_MOST_READ) if options.hit == "-" else options.hit
    if not hit.strip():
        raise UsageError("name what to open: 'filestore open PATH:LINE'")
    with _context.open_store(options) as store:
        root = os.path.realpath(store.root)
        place = store.locate(hit, chunk=options.chunk)
    path = os.path.normpath(os.path.join(root, place.document))
    command = _editor(Spot(path=path, line=place.line, page=place.page))
    if options.json:
        opened = Opened(root, place.document, place.line, place.page, command)
        _output.write_json(opened.to_dict())
    elif options.only_print:
        _output.line(shown_path(shlex.join(command)))
    if options.only_print:
        return 0
    # The program gets the terminal, also where standard input is a pipe.
    terminal = None
    if not sys.stdin.isatty():
        with contextlib.suppress(OSError):
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    try:
        done = run_program(command, stdin=terminal)
    except OSError as error:
        raise NotOpenedError(
            f"{command[0]} cannot be run: {error.strerror or error}; set $EDITOR"
        ) from error
    finally:
        if terminal is not None:
            os.close(terminal)
    if done.returncode != 0:
        raise NotOpenedError(f"{command[0]} ended with exit code {done.returncode}")
    return 0


def _editor(spot: "Spot") -> tuple[str, ...]:
    """The words of the program that opens a file.

    Raises:
        NotOpenedError: There is none.
    """
    from filestore.browse.editor import opened_at, program_for
    from filestore.extract import is_text

    program, text = program_for(spot.path, _variables()), is_text(spot.path)
    if program.problem:
        remedy = "EDITOR=vi filestore open …" if text else "open it in a program that reads it"
        raise NotOpenedError(program.problem, remedy=remedy)
    if spot.page is not None and not text:
        _output.note(f"page {spot.page} of {shown_path(spot.path)}")
    command = opened_at(program.words, spot.path, spot.line if text else None)
    if command is None:
        _output.note(f"line {spot.line} of {shown_path(spot.path)}")
        return *program.words, spot.path
    return command


def _variables() -> dict[str, str]:
    """Those of the process, with the editor that the user's settings name."""
    folder = layout.configuration_folder()
    editor = default("editor", own_defaults(folder), folder)
    is_chosen = editor.origin.endswith(USERS)
    return {**os.environ, **({"VISUAL": editor.value} if is_chosen else {})}


class Tui(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    place: Annotated[str | None, argument("STORE")] = None
    """the store, instead of --store"""
    read_only: bool = False
    """write nothing"""
    page: Literal["browse", "verify", "repair"] | None = None
    """the page to start on"""
    select: Annotated[str, option("PATH")] = ""
    """the file to start on"""
    ascii: bool = False
    """draw with plain characters only"""
    mouse: bool = True
    """use the mouse"""


def run_tui(options: Tui) -> int:
    """Open the inspector: browse, search, see all drift with its evidence, repair, undo.

    It writes only what you confirm on the Repair page, and what you edit. If the inspector itself
    fails, it ends with exit code 3 and a traceback that shows nothing of the store.

    Example: filestore tui --read-only
    """
    if options.json:
        raise UsageError(
            "the inspector prints no JSON",
            remedy="'filestore status --json' does; so do ls, show, verify and search",
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
                f"the inspector needs a terminal, and {name} is not one",
                remedy="'filestore status' needs none; nor do ls, show and search",
            )
    if (terminal := os.environ.get("TERM", "")) in DUMB:
        raise UsageError(
            f"the inspector needs a terminal that can move its cursor, but TERM is {terminal!r}",
            remedy="'filestore status' prints the findings; or set TERM to match your terminal",
        )
    os.getcwd()  # fails where it is gone, with a sentence of its own
    import tui
    from tui.app import frame

    return tui.run(
        frame.Options(
            store=_context.named(replace(options, store=options.place or options.store)),
            configuration=layout.configuration_folder(),
            environment=_variables(),
            read_only="the inspector was started with --read-only" if options.read_only else "",
            ascii=options.ascii,
            mouse=options.mouse,
            page=options.page,
            select=options.select,
        )
    )

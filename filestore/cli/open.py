"""Programs that show a store: your editor at a hit, and the inspector."""

import os
import shlex
import sys
from typing import Annotated, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.browse.named import Spot, editor_command, opened_at
from filestore.cli import _context, _output
from filestore.config.layout import configuration_folder
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.extract import is_text
from filestore.fs.programs import find_program, run_program
from filestore.server.operations import CommonOptions, argument, option

_DESKTOP = {"darwin": ("open",)}
_DESKTOP_OTHERWISE = ("xdg-open",)
_MOST_READ = 100_000


class NotOpenedError(FilestoreError):
    """There is no program to open a file with, or it failed."""


class Opened(JsonObject, Struct, frozen=True):
    """What `open` prints."""

    root: str
    """The store's folder."""
    document: str
    """What is opened, relative to it."""
    line: int | None
    """Where in it."""
    page: int | None
    """Where in it, if it has pages."""
    command: tuple[str, ...]
    """The program and its arguments."""


class Open(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    hit: Annotated[str, argument("HIT")]
    """as 'search' prints it: PATH or PATH:LINE"""
    chunk: bool = False
    """open the chunk file itself, not its document"""
    only_print: Annotated[bool, option(None, "--print")] = False
    """print the command, run nothing"""


def run_open(options: Open) -> int:
    """Open what a search found in your editor, at its line.

    HIT is PATH, PATH:LINE, or a whole line that 'search' printed; - reads it from standard input,
    as in 'filestore search lease --format oneline | fzf | filestore open -'. A chunk file leads to
    the document that it was made from. The editor is $VISUAL or $EDITOR; what is no text opens as
    the desktop opens it.

    Example: filestore open notes/lease.md:57
    """
    hit = sys.stdin.readline(_MOST_READ) if options.hit == "-" else options.hit
    if not hit.strip():
        raise UsageError("nothing to open was named", remedy="filestore open PATH:LINE")
    with _context.open_store(options) as store:
        root = os.path.realpath(store.root)
        place = store.locate(hit, chunk=options.chunk)
    path = os.path.normpath(os.path.join(root, place.document))
    command = _command(Spot(path=path, line=place.line, page=place.page))
    if options.json:
        opened = Opened(root, place.document, place.line, place.page, command)
        _output.write_json(opened.to_dict())
    elif options.only_print:
        _output.line(shown_path(shlex.join(command)))
    if not options.only_print:
        _start(command)
    return 0


def _command(spot: Spot) -> tuple[str, ...]:
    """The words of the program that opens a file.

    Raises:
        NotOpenedError: There is none.
    """
    shown = shown_path(spot.path)
    if not is_text(spot.path):
        words = _DESKTOP.get(sys.platform, _DESKTOP_OTHERWISE)
        if find_program(words[0]) is None:
            raise NotOpenedError(
                f"{shown} is no text, and there is no {words[0]} to open it",
                remedy="open it with the program for it",
            )
        if spot.page is not None:
            _output.say(f"page {spot.page} of {shown}")
        return *words, spot.path
    editor = editor_command(os.environ)
    if editor.problem:
        raise NotOpenedError(editor.problem, remedy="EDITOR=vi filestore open …")
    command = opened_at(editor.words, spot.path, spot.line)
    if command is None:
        _output.say(f"line {spot.line} of {shown}")
        return *editor.words, spot.path
    return command


def _start(command: tuple[str, ...]) -> None:
    """Run a program on the terminal, also where standard input is a pipe."""
    terminal = None
    if not sys.stdin.isatty():
        try:
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            terminal = None
    try:
        done = run_program(command, stdin=terminal)
    except OSError as error:
        raise NotOpenedError(
            f"{command[0]} cannot be run: {error.strerror or error}", remedy="set $EDITOR"
        ) from error
    finally:
        if terminal is not None:
            os.close(terminal)
    if done.returncode != 0:
        raise NotOpenedError(f"{command[0]} ended with {done.returncode}")


class Tui(CommonOptions, frozen=True, kw_only=True):
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


def run_tui(options: Tui) -> int:
    """Open the inspector: browse, search, see every drift with its evidence, repair, undo.

    Nothing is written but what you confirm on its page Repair, and what you edit. A fault of the
    inspector itself ends with exit code 3 and a traceback that shows nothing of the store.

    Example: filestore tui --read-only
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

"""A store made, what it may reach, and a tour of one."""

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Struct, UnsetType

from filestore.cli import _context, _output, main
from filestore.config.layout import DEFAULT_FOLDER, EXAMPLE_FOLDER, copy_example
from filestore.config.settings import LAYOUTS, check_layout
from filestore.core.errors import UsageError
from filestore.core.safe_text import safe_text, shown_path
from filestore.core.schema import JsonObject
from filestore.embed import is_service
from filestore.embed.models import about
from filestore.server.operations import CommonOptions, argument, option
from filestore.store import Store
from filestore.sync.apply import SyncReport

if TYPE_CHECKING:
    from filestore.verify.trust import Reaches


class Created(JsonObject, Struct, frozen=True, kw_only=True):
    """What `init` prints."""

    root: str
    """The new store."""
    layout: str
    """`tree`, `flat` or `in-place`."""
    embedder: str
    """As the settings name it."""
    sync: SyncReport | None
    """What the first sync did; None where nothing was indexed."""


class Init(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    folder: Annotated[str | None, argument("DIR")] = None
    """default: file_index; with --in-place the working folder"""
    layout: Annotated[str | None, option("tree|flat|in-place")] = None
    """tree: one folder a resource; flat: all files in one folder; in-place: the documents of DIR as
    they are (default: tree)"""
    in_place: bool = False
    """index the documents of DIR where they lie: --layout in-place"""
    embedder: Annotated[str | None, option("E")] = None
    """minilm, multilingual, builtin, a model's name or folder, or openai:MODEL: see 'filestore
    embedder' (default: minilm)"""
    endpoint: Annotated[str | None, option("URL")] = None
    """the service of openai:MODEL, as http://127.0.0.1:11434/v1"""


def run_init(options: Init) -> int:
    """Create a store: of chunk files in a new folder, or of the documents of a folder, in place.

    One in place is indexed at once: there is nothing to add. Only where that would send every text
    to a service it waits for a command of its own.

    Example: filestore init notes_index --layout tree
    """
    if options.in_place and options.layout not in (None, "in-place"):
        raise UsageError(
            f"--in-place is a layout itself, and --layout says {options.layout}",
            remedy="leave one of them out",
        )
    layout = "in-place" if options.in_place else options.layout or "tree"
    is_written = LAYOUTS[check_layout(layout)].is_written
    usual = DEFAULT_FOLDER if is_written else "."
    with Store.create(
        usual if options.folder is None else options.folder,
        layout=layout,
        embedder=options.embedder,
        endpoint=options.endpoint,
    ) as store:
        indexes = not is_written and not is_service(store.settings.embedder.partition(":")[0])
        if not options.json:
            _output.line(f"created a store in {store.root}")
            name = store.settings.embedder
            _output.line(f"layout {store.settings.layout}, embedder {name}: {about(name)}")
            if indexes:
                from filestore.browse.folder import look_at_folder

                is_lexical = name.partition(":")[0] == "builtin"
                _output.line(look_at_folder(store.root).words(meaning=not is_lexical))
                sys.stdout.flush()
        report, code = None, 0
        if indexes:
            with _output.progress_bar() as on_progress:
                report = store.sync(on_progress=on_progress)
            code = _output.exit_code_of(report)
        if options.json:
            made = Created(
                root=store.root,
                layout=store.settings.layout,
                embedder=store.settings.embedder,
                sync=report,
            )
            _output.write_json(made.to_dict())
            return code
        if report is not None:
            _output.synced(report)
            _output.line("left out: hidden files, and what .gitignore and .filestoreignore name")
        following = "search QUERY" if indexes else "add PATH…" if is_written else "sync"
        _output.line(f"next: filestore {following}")
    return code


_DIGITS = 12
"""Of a hash that is shown."""
_SHOWN = 10
"""Originals that are named; the rest is counted."""


class Trusted(JsonObject, Struct, frozen=True, kw_only=True):
    """What `trust` prints."""

    root: str
    """The store."""
    reaches: Sequence[str]
    """What it names outside itself: services by their whole address, folders,
    `prompts sha256:…`."""
    sources: Sequence[str]
    """Originals outside the work tree."""
    folders: Sequence[str]
    """The folders that these lie in; `/` at the end: with all below."""
    allowed: Sequence[str]
    """Folders in which it may look for originals, given to `add` on this machine or trusted; `/` at
    the end: with all below."""
    closed: Sequence[str]
    """Originals that are hidden or of no known format, and that you did not add: never opened."""
    prompts: Sequence[str]
    """Files of the store that instruct its generator."""
    conventions: str | None
    """The note for programs that write; None where there is none."""
    opened: Sequence[str]
    """Rules that the settings have no more, and that close to programs until this is allowed."""
    trusted: bool | UnsetType
    """Whether it is allowed now; not with `--list`."""


class Trust(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    list: Annotated[bool, option(group="what")] = False
    """only show what it would allow"""
    revoke: Annotated[bool, option(group="what")] = False
    """revoke what was allowed"""
    yes: bool = False
    """do not ask"""


def run_trust(options: Trust) -> int:
    """Allow what a store uses outside itself: services, its own prompts, originals elsewhere.

    Also what its settings tell programs, and what they keep from programs no more.

    Example: filestore trust
    """
    with _context.open_store(options) as store:
        reaches, root = store.reaches(), store.root
        if not options.json:
            _words(root, reaches, options)
        if options.revoke:
            store.distrust()
        elif not options.list:
            # A script that says 'trust' means it.
            asks = reaches.names or reaches.opened
            if asks and not options.yes and sys.stdin.isatty():
                if options.json:
                    _print_reach(root, reaches, _output.say)
                sys.stdout.flush()
                _output.go_on("allow it?", refused="nothing was allowed")
            store.trust(reaches)
    if options.json:
        prompts = reaches.prompts.files if reaches.prompts is not None else ()
        trusted = Trusted(
            root=root,
            reaches=reaches.names,
            sources=reaches.sources,
            folders=reaches.folders,
            allowed=reaches.allowed,
            closed=reaches.closed,
            prompts=prompts,
            conventions=reaches.conventions.path if reaches.conventions is not None else None,
            opened=reaches.opened,
            trusted=UNSET if options.list else not options.revoke,
        )
        _output.write_json(trusted.to_dict())
    return 0


def _words(root: str, reaches: "Reaches", options: Trust) -> None:
    if options.revoke:
        names = dict.fromkeys([*reaches.names, *reaches.allowed])
        _output.line(f"{', '.join(map(shown_path, names)) or 'nothing'}: not allowed for {root}")
        return
    if reaches.names or reaches.opened:
        _print_reach(root, reaches, _output.line)
    else:
        _output.line("nothing to allow: this store uses nothing outside it")
    if options.list and reaches.allowed:
        _output.line(f"{root} looks for originals in these folders, added or trusted:")
        for folder in reaches.allowed:
            _output.line(f"    {shown_path(folder)}")
    if options.list and reaches.closed:
        _output.line("never opened: hidden or of no known format, and you did not add them:")
        for path in _output.first(reaches.closed, _SHOWN, rest=""):
            _output.line(f"    {shown_path(path)}")


def _print_reach(root: str, reaches: "Reaches", line: Callable[[str], None]) -> None:
    for service in reaches.services:
        line(f"the texts of {root} may be sent to {service}")
    if reaches.generator is not None:
        line(f"questions and summaries of the texts of {root} may be made by {reaches.generator}")
    if reaches.backend is not None:
        line(f"texts and vectors of {root} may be kept in {reaches.backend}")
    if reaches.prompts is not None:
        line("the model that makes them may be instructed by, as they are now:")
        for path in reaches.prompts.files:
            line(f"    {path}")
    if reaches.conventions is not None:
        digest = reaches.conventions.reach.rpartition(":")[2][:_DIGITS]
        path = shown_path(reaches.conventions.path)
        line(f"programs that write may be told the conventions in {path} ({digest}), as they are:")
        for text in reaches.conventions.text.splitlines():
            line(f"    {safe_text(text)}")
    if reaches.opened:
        line("programs may see or change what these rules closed, which the settings have no more:")
        for rule in reaches.opened:
            line(f"    {safe_text(rule)}")
    if reaches.folders:
        number = _output.count(len(reaches.sources), "original")
        line(f"documents in these folders may be read, for {number} outside {root}")
        line("('/' at the end: with all below):")
        for folder in reaches.folders:
            line(f"    {shown_path(folder)}")


_QUESTION = "history of a renamed file"
_SENTENCE = "Beekeepers use a hive notebook, one line a visit."


class Toured(JsonObject, Struct, frozen=True):
    """What `demo` prints."""

    root: str
    """Where the copy of the example lies."""
    clean: bool
    """Whether the last verification was clean."""


def run_demo(options: CommonOptions) -> int:
    """A tour in a temporary folder: search a small store, edit its files, see drift, sync.

    Example: filestore demo
    """
    root = os.path.join(tempfile.mkdtemp(prefix="filestore-demo-"), EXAMPLE_FOLDER)
    if not options.json:
        return _walk(root)
    with contextlib.redirect_stdout(sys.stderr):
        code = _walk(root)
    _output.write_json(Toured(root, code == 0).to_dict())
    return code


def _walk(root: str) -> int:
    codes = []

    def say(text: str) -> None:
        _output.line()
        _output.line(text, style="1")

    def command(*words: str) -> None:
        _output.line()
        _output.line(f"$ filestore {shlex.join(words)}", style="36")
        codes.append(main(["--store", root, *words]))

    copy_example(root)
    say(f"A copy of the example store is in {root}.")
    say("The index is not in git, so it is built first:")
    command("sync")
    command("search", _QUESTION, "-k", "2")
    say("Now edit its files: one changed, one new, one renamed, one deleted.")
    chunked = os.path.join(root, "chunked")
    glossary = os.path.join(chunked, "glossary.md")
    with Store(root) as store:
        (best,) = store.search(_QUESTION, k=1).hits
    with open(os.path.join(root, best.path), "a", encoding="utf-8") as file:
        file.write(f"\nA note in passing: {_SENTENCE[0].lower()}{_SENTENCE[1:]}\n")
    with open(os.path.join(chunked, "bees.md"), "w", encoding="utf-8") as file:
        file.write(f"# Bees\n\n{_SENTENCE}\n")
    os.rename(os.path.join(glossary, "chunk2.md"), os.path.join(glossary, "second.md"))
    os.remove(os.path.join(chunked, "checklist.txt", "chunk1.md"))
    command("status")
    say("A search indexes what is new, edited or renamed, and says what is gone:")
    command("search", "hive notebook", "-k", "2", "--mode", "keyword")
    say("What was deleted is forgotten by a sync:")
    command("sync")
    command("verify", "--level", "full")
    say("That is all. To go on:")
    _output.line(f"  cd {root}")
    _output.line("  filestore ls                     what is in it")
    _output.line("  filestore show PATH              one chunk with its record")
    _output.line("  filestore tui                    the inspector")
    _output.line("and for your own documents, in any folder:")
    _output.line("  filestore init && filestore add PATH…")
    return 0 if codes[-1] == 0 else 1

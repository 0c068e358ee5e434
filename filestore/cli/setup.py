"""A store made, what it may reach, and a tour of one."""

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Struct, UnsetType

from filestore.browse.folder import LOOKS_S, FolderLook, look_at_folder
from filestore.cli import _context, _output, _progress, _terminal, main
from filestore.config.layout import DEFAULT_FOLDER, EXAMPLE_FOLDER, copy_example, find_root
from filestore.config.settings import LAYOUTS, check_layout
from filestore.core.caller import absolute, leads
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.safe_text import safe_text, shown_path
from filestore.core.schema import JsonObject
from filestore.embed import is_service
from filestore.embed.models import about
from filestore.server.operations import CommonOptions, argument, option
from filestore.sidecar.create import check_place, check_writable
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
    """tree: a folder per document; flat: one folder; in-place: DIR's documents as they are
    (default: tree)"""
    in_place: bool = False
    """index the documents of DIR where they are, as --layout in-place"""
    embedder: Annotated[str | None, option("E")] = None
    """minilm, multilingual, builtin, a model's name or folder, or openai:MODEL: see 'filestore
    embedder' (default: minilm)"""
    endpoint: Annotated[str | None, option("URL")] = None
    """the service for openai:MODEL, such as http://127.0.0.1:11434/v1"""
    chunks: bool = False
    """make a chunk store without asking, as without a terminal"""
    no_input: bool = False
    """ask nothing"""
    plan: bool = False
    """show what would be made; write nothing"""
    yes: bool = False
    """index in place even a home folder, /, or more than 50,000 documents"""


class PlannedStore(JsonObject, Struct, frozen=True, kw_only=True):
    """What `init --plan` prints."""

    root: str
    """Where the store would be."""
    layout: str
    """`tree`, `flat` or `in-place`."""
    documents: int
    """How many documents a store in place would index."""
    size_bytes: int
    """Their size."""
    searchable_s: float
    """About how many seconds until keyword search works."""
    meaning_s: float
    """About how many seconds until search by meaning works."""


def run_init(options: Init) -> int:
    """Create a store: of chunk files in a new folder, or of the documents of a folder, in place.

    A store in place is indexed at once: there is nothing to add. With a model of a service it
    waits until you run 'filestore sync'. On a terminal, without DIR or a layout, it looks at the
    folder and asks.

    Examples:
        filestore init --in-place notes
        filestore init notes_index --layout tree
        filestore init --in-place --plan
    """
    if options.store:
        raise UsageError(
            "--store names a store that is there; a new one is named by its folder alone",
            remedy=f"filestore init {'--in-place ' * options.in_place}{shlex.quote(options.store)}",
        )
    layout = _layout_of(options)
    seen = None
    if layout is None:
        layout = "tree"
        if options.folder is None and not (options.json or options.plan):
            # Nothing is asked, or offered, that would be refused.
            check_place(absolute(os.curdir))
            seen, chosen = _chosen(asks=not options.no_input and _terminal.is_terminal())
            if chosen == "example":
                return _walk(_new_example())
            layout = chosen
    is_written = LAYOUTS[check_layout(layout)].is_written
    usual = DEFAULT_FOLDER if is_written else "."
    folder = usual if options.folder is None else options.folder
    if options.plan or not is_written:
        # What would stop the indexing stops its plan.
        look = look_at_folder if options.plan and os.path.isdir(folder) else _look
        seen = seen or look(os.curdir if is_written else folder)
    if not (is_written or options.yes or options.plan):
        _refuse_much(folder, seen.documents if seen else 0)
    if options.plan:
        return _print_plan(folder, layout, seen or FolderLook(kinds=(), size_bytes=0), options)
    return _make(folder, layout, seen, options)


def _make(folder: str, layout: str, seen: FolderLook | None, options: Init) -> int:
    is_written = LAYOUTS[check_layout(layout)].is_written
    with Store.create(
        folder, layout=layout, embedder=options.embedder, endpoint=options.endpoint
    ) as store:
        name = store.settings.embedder
        indexes = not is_written and not is_service(name.partition(":")[0])
        if not options.json:
            _output.line(f"created a store in {store.root}")
            _output.line(f"layout {store.settings.layout}, embedder {name}: {about(name)}")
            if indexes and seen:
                is_lexical = name.partition(":")[0] == "builtin"
                _output.line(seen.words(meaning=not is_lexical))
                sys.stdout.flush()
        report, code = None, 0
        if indexes:
            with _progress.progress_bar() as on_progress:
                report = store.sync(on_progress=on_progress)
            code = _output.exit_code_of(report)
        if options.json:
            made = Created(root=store.root, layout=layout, embedder=name, sync=report)
            _output.write_json(made.to_dict())
            return code
        if report is not None:
            _output.synced(report)
            _output.line("left out: hidden files, and what .gitignore and .filestoreignore name")
        query = _first_query(store) if indexes else ""
        following = f"search {query}" if indexes else "add PATH…" if is_written else "sync"
        _output.line(f"next: filestore {_store_option(store.root)}{following}")
    return code


def _store_option(root: str) -> str:
    """What names a store on a command line here, with a space behind; "" where it is found."""
    try:
        if find_root(os.curdir) == root:
            return ""
    except FilestoreError:
        pass
    return f"--store {shlex.quote(min(os.path.relpath(root), root, key=len))} "


def _layout_of(options: Init) -> str | None:
    """What the options say; None where they leave it open.

    Raises:
        UsageError: They say two things.
    """
    if options.in_place and options.chunks:
        raise UsageError("--in-place and --chunks exclude each other: choose one")
    if options.in_place and options.layout not in (None, "in-place"):
        raise UsageError(
            f"--in-place is --layout in-place, but --layout says {options.layout}: leave one out",
        )
    named = "in-place" if options.in_place else options.layout
    return named or ("tree" if options.chunks else None)


def _look(folder: str, *, within_s: float = LOOKS_S) -> FolderLook | None:
    """What a folder holds; None where that cannot be seen, which the store says by itself."""
    try:
        return look_at_folder(folder, within_s=within_s)
    except FilestoreError:
        return None


def _chosen(*, asks: bool) -> tuple[FolderLook | None, str]:
    """What the working folder holds, and the layout that fits or was chosen, or `example`.

    Raises:
        RefusedError: The answer is none of the three.
    """
    seen = _look(os.curdir, within_s=LOOKS_S if asks else _LOOKS_ASIDE_S)
    if not seen or not seen.documents:
        return seen, "tree"
    if not asks:
        if not _why_much(os.curdir, seen.documents):
            they = "it where it is" if seen.documents == 1 else "them where they are"
            _output.note(
                f"found {_output.count(seen.documents, 'document')} here;"
                f" 'filestore init --in-place' indexes {they}"
            )
        return seen, "tree"
    _output.say(seen.words())
    _output.say(f"  1  index them where they are\n  2  make a chunk store in {DEFAULT_FOLDER}")
    _output.say("  3  tour the example in a temporary folder")
    answer = _terminal.answer("which? [1] ", unanswered="nothing was made")
    chosen = {"": "in-place", "1": "in-place", "2": "tree", "3": "example"}.get(answer.strip())
    if not answer or chosen is None:
        raise RefusedError("nothing was made: answer 1, 2 or 3")
    return seen, chosen


def _refuse_much(folder: str, documents: int) -> None:
    """Refuse a folder in place that hardly anybody wants to have indexed.

    Raises:
        RefusedError: It is the root, a home folder, or holds very many documents.
    """
    if what := _why_much(folder, documents):
        raise RefusedError(f"{shown_path(folder)} is {what}: to index it anyway, add --yes")


def _why_much(folder: str, documents: int) -> str:
    """What a folder is that needs --yes in place; "" for any other."""
    root = leads(folder)
    if root == os.sep:
        return "the root of the file system"
    if root == os.path.realpath(os.path.expanduser("~")):
        return "your home folder"
    return f"a folder of more than {_MANY:,} documents" if documents > _MANY else ""


def _print_plan(folder: str, layout: str, seen: FolderLook, options: Init) -> int:
    check_place(absolute(folder))
    check_writable(absolute(folder))
    planned = PlannedStore(
        root=absolute(folder),
        layout=layout,
        documents=seen.documents,
        size_bytes=seen.size_bytes,
        searchable_s=round(seen.searchable_s, 1),
        meaning_s=round(seen.meaning_s, 1),
    )
    if options.json:
        _output.write_json(planned.to_dict())
        return 0
    with _output.paged():
        _output.line(f"would create a store in {planned.root}, layout {layout}")
        _output.line(seen.words())
    return 0


def _first_query(store: Store) -> str:
    """The title of a document, as a query that finds it first; QUERY where none does."""
    for one in store.contents(recent=_TRIED).items:
        title = str((store.show(one.path).frontmatter or {}).get("title", ""))
        # Plain words, which any shell takes.
        if 0 < len(title.split()) < 7 and title.replace(" ", "").isalnum():
            hits = store.search(title, mode="keyword", k=1).hits
            if hits and hits[0].path == one.path:
                return shlex.quote(title)
    return "QUERY"


_LOOKS_ASIDE_S = 0.5
"""How long a folder is looked at for a remark alone."""
_MANY = 50_000
_TRIED = 20
"""Newest documents whose titles are tried as a query."""
_DIGITS = 12
"""Of a hash that is shown."""
_SHOWN = 10
"""Originals that are named; the rest is counted."""


class Trusted(JsonObject, Struct, frozen=True, kw_only=True):
    """What `trust` prints."""

    root: str
    """The store."""
    reaches: Sequence[str]
    """What it uses outside itself: services by their full address, folders,
    `prompts sha256:…`."""
    sources: Sequence[str]
    """Originals outside the work tree."""
    folders: Sequence[str]
    """The folders of these; one that ends in `/` includes its subfolders."""
    allowed: Sequence[str]
    """Folders in which it may look for originals, added or trusted; one that ends in `/` includes
    its subfolders."""
    closed: Sequence[str]
    """Originals that are never opened: hidden or of an unknown format, and not added by you."""
    prompts: Sequence[str]
    """Files of the store that instruct its generator."""
    conventions: str | None
    """The note for programs that write; None where there is none."""
    opened: Sequence[str]
    """Rules that left the settings; until you allow it, they still close files to programs."""
    trusted: bool | UnsetType
    """Whether it is allowed now; not with `--list`."""


class Trust(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    list: Annotated[bool, option(group="what")] = False
    """show what it would allow; allow nothing"""
    revoke: Annotated[bool, option(group="what")] = False
    """revoke what was allowed"""
    yes: bool = False
    """do not ask"""


def run_trust(options: Trust) -> int:
    """Allow what a store uses outside itself: services, its own prompts, originals elsewhere.

    Also conventions that it gives to programs, and files that it no longer closes to programs.

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
            if asks and not options.yes and _terminal.can_ask():
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
        _output.line(f"revoked for {root}: {', '.join(map(shown_path, names)) or 'nothing'}")
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
        _output.line("never opened, as hidden or of an unknown format, and not added by you:")
        for path in _output.first(reaches.closed, _SHOWN, rest=""):
            _output.line(f"    {shown_path(path)}")


def _print_reach(root: str, reaches: "Reaches", line: Callable[[str], None]) -> None:
    for service in reaches.services:
        line(f"the passages of {root} may be sent to {service}")
    if reaches.generator is not None:
        line(f"questions and summaries of {root} may be made by {reaches.generator}")
    if reaches.backend is not None:
        line(f"passages and vectors of {root} may be kept in {reaches.backend}")
    if reaches.prompts is not None:
        line("these files, as they are now, may instruct the model that makes them:")
        for path in reaches.prompts.files:
            line(f"    {path}")
    if reaches.conventions is not None:
        digest = reaches.conventions.reach.rpartition(":")[2][:_DIGITS]
        path = shown_path(reaches.conventions.path)
        line(f"programs that write may read the conventions in {path} ({digest}), as is:")
        for text in reaches.conventions.text.splitlines():
            line(f"    {safe_text(text)}")
    if reaches.opened:
        line("these rules left the settings; programs may see or change what they closed:")
        for rule in reaches.opened:
            line(f"    {safe_text(rule)}")
    if reaches.folders:
        number = _output.count(len(reaches.sources), "original")
        line(f"documents in these folders may be read, for {number} outside {root}")
        line("(one that ends in '/' includes its subfolders):")
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
    root = _new_example()
    if not options.json:
        return _walk(root)
    with contextlib.redirect_stdout(sys.stderr):
        code = _walk(root)
    _output.write_json(Toured(root, code == 0).to_dict())
    return code


def _new_example() -> str:
    return os.path.join(tempfile.mkdtemp(prefix="filestore-demo-"), EXAMPLE_FOLDER)


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
    say("A sync forgets what was deleted:")
    command("sync")
    command("verify", "--level", "full")
    say("That is all. What to try next:")
    _output.line(f"  cd {root}")
    _output.line("  filestore ls                     what is in it")
    _output.line("  filestore show PATH              one chunk with its record")
    _output.line("  filestore tui                    the inspector")
    _output.line("and for your own documents, where they lie:")
    _output.line("  filestore init --in-place FOLDER")
    return 0 if codes[-1] == 0 else 1

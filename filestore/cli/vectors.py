"""Where vectors are searched, and packs of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from filestore.cli import _context, _diagnostics, _output
from filestore.cli._given import Limited
from filestore.config.settings import BACKENDS
from filestore.core.errors import UsageError
from filestore.core.packages import PACKAGES, install_line, missing_packages
from filestore.core.progress import Progress
from filestore.core.safe_text import safe_text, shown_path
from filestore.core.schema import JsonObject
from filestore.server.operations import CommonOptions, argument
from filestore.sidecar import vector_change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filestore.embed.pack import PackedModel
    from filestore.sync.prune import Pruning


class Backend(JsonObject, Struct, frozen=True):
    """A kind of backend."""

    kind: str
    """As the settings name it."""
    usable: bool
    """Whether its package is installed."""
    why: str
    """Why not, with what to do; else empty."""
    keys: str
    """What it takes, in words."""


class Backends(JsonObject, Struct, frozen=True):
    """What `backend list` prints."""

    items: list[Backend]
    """The kinds of backends."""


class BackendSet(JsonObject, Struct, frozen=True, kw_only=True):
    """What `backend set` prints."""

    backend: str
    """The kind."""
    address: str
    """Where the vectors are now."""
    sent: int
    """Vectors that were sent."""
    deleted: int
    """Vectors that were deleted there."""
    kept: int
    """Vectors that were there."""
    embedded: int = 0
    """0: a switch embeds nothing."""
    cleared: bool
    """Whether the vectors in the place that was left are deleted."""


class Show(CommonOptions, frozen=True, kw_only=True):
    """Show where the vectors are and how it stands (the default)."""


class List(CommonOptions, frozen=True, kw_only=True):
    """List where vectors may be and whether that works here."""


class Set(CommonOptions, frozen=True, kw_only=True):
    """Send the vectors to another place; nothing is embedded."""

    kind: Annotated[str, argument("KIND")]
    """faiss, local, qdrant or pgvector"""
    options: Annotated[list[str], argument("KEY=VALUE")] = []
    """see 'backend list'"""
    yes: bool = False
    """do not ask"""
    take_over: bool = False
    """replace what another store has there"""
    clear: bool = False
    """delete the vectors in the place that is left"""


def _list(options: List) -> int:
    items = []
    for name, kind in BACKENDS.items():
        lacking = missing_packages(name) if name in PACKAGES else ()
        why = f"{' and '.join(lacking)} missing; {install_line(name)}" if lacking else ""
        items.append(Backend(name, not why, why, kind.keys))
    if options.json:
        _output.write_json(Backends(items).to_dict())
        return 0
    for one in items:
        _output.line(f"{one.kind}: {one.why or 'can be used'}; {one.keys}")
    return 0


def run_backend(options: Show) -> int:
    """List where vectors may be searched, show where they are, and choose another place.

    Example: filestore backend set pgvector dsn=postgresql://localhost/knowledge
    """
    with _context.open_store(options) as store:
        shown = store.backend()
    if options.json:
        _output.write_json(shown.to_dict())
    else:
        _output.line(f"{shown.kind}: {shown.address or 'cannot be opened here'}")
        vectors = _output.count(shown.vectors, "vector")
        waiting = f", {shown.waiting:,} wait to be sent" if shown.waiting else ""
        if shown.waiting and shown.approximate is None and not shown.problem:
            changes = _output.count(shown.waiting, "change")
            waiting = f"; {changes} since the file was written, searched all the same"
        _output.line(f"{vectors}{waiting}")
        if shown.problem:
            _output.line(f"cannot be asked: {shown.problem}")
    return 1 if shown.problem else 0


def _set(options: Set) -> int:
    backend = vector_change.options_of(options.kind, options.options)
    with _context.open_store(options) as store:
        before = store.vector_home()
        change = store.plan_backend(backend, takes_over=options.take_over)
        if not options.yes:
            would = change.would
            vectors = _output.count(would.written, "vector")
            there = f"{vectors} ({would.kept:,} are there); 0 texts are embedded"
            gone = f"; {_output.count(would.deleted, 'vector')} there go" if would.deleted else ""
            _diagnostics.ask(f"{change.address} gets {there}{gone}")
        sent = store.change_backend(change)
        is_left = vector_change.is_left(before, change)
        cleared = options.clear and is_left and store.clear_backend(before)
    if options.json:
        done = BackendSet(
            backend=backend.kind,
            address=change.address,
            sent=sent.written,
            deleted=sent.deleted,
            kept=sent.kept,
            cleared=cleared,
        )
        _output.write_json(done.to_dict())
        return 0
    vectors = _output.count(sent.written, "vector")
    _output.line(f"backend {backend.kind}: {vectors} sent, {sent.kept:,} were there; 0 embedded")
    if cleared:
        _output.line("the vectors in the place that was left are deleted")
    elif is_left:
        _output.line(f"{before.where} still has this store's vectors: delete them there")
        _output.line("the next time, --clear does that")
    return 0


class Export(CommonOptions, frozen=True, kw_only=True):
    """Write the vectors of the store's texts into a pack."""

    pack: Annotated[str, argument("PACK")]
    """the file; an earlier pack is replaced"""
    all: bool = False
    """all that was ever embedded, by any model, also texts that are gone"""


class Import(Limited, frozen=True, kw_only=True):
    """Check a pack and take what is not here; then run 'sync'."""

    pack: Annotated[str, argument("PACK")]
    """the file, which may come from anybody"""
    unchecked: bool = False
    """take also what cannot be checked here; what can be is checked all the same"""


class Info(CommonOptions, frozen=True, kw_only=True):
    """Say what is in a pack, and whether it is whole."""

    pack: Annotated[str, argument("PACK")]
    """the file"""


class Prune(CommonOptions, frozen=True, kw_only=True):
    """Remove the vectors that no text here, no undo and no searched commit has."""

    plan: bool = False
    """only say what would be removed"""
    yes: bool = False
    """do not ask"""


def _export(options: Export) -> int:
    with _context.open_store(options) as store, _diagnostics.progress_bar() as on_progress:
        done = store.export_embeddings(
            options.pack, everything=options.all, on_progress=on_progress
        )
    if not _context.told(options, done):
        _output.line(f"wrote {shown_path(done.path)}: {done.size_bytes:,} bytes, {done.digest}")
        _models(done.models)
    if done.lacking:
        _diagnostics.say(
            f"{_output.count(done.lacking, 'text')} without a sound vector: run 'filestore sync',"
            " then export again"
        )
    return 1 if done.lacking else 0


def _import(options: Import) -> int:
    with _context.open_store(options) as store, _diagnostics.progress_bar() as on_progress:
        done = store.import_embeddings(
            options.pack,
            unchecked=options.unchecked,
            limits=options.limits,
            on_progress=on_progress,
        )
    if not _context.told(options, done):
        if done.unchecked:
            _diagnostics.say(f"not checked: {safe_text(done.unchecked, keep_newlines=False)}")
        if done.compared:
            _output.line(f"{_output.count(done.compared, 'text')} embedded again: the same vectors")
        _output.line(f"took {_output.count(done.added, 'vector')} ({done.known:,} were here)")
        if done.left_out:
            _output.line("left out, of other models:")
            _models(done.left_out)
        _output.line("next: filestore sync")
    return 0


def _info(options: Info) -> int:
    from filestore.embed.pack import Pack

    with Pack.open(options.pack) as pack, _diagnostics.progress_bar() as on_progress:
        total = sum(model.vectors for model in pack.models)
        pack.check(lambda done: on_progress(Progress(stage="checking", done=done, total=total)))
        found = pack.info
    if not _context.told(options, found):
        _output.line(f"{shown_path(found.path)}: {found.size_bytes:,} bytes, {found.digest}")
        _models(found.models)
        _output.line("it is whole")
    return 0


def _prune(options: Prune) -> int:
    with _context.open_store(options) as store:
        found = store.plan_prune()
        if not options.plan:
            if found.embeddings and not options.yes:
                _diagnostics.ask(f"{_unneeded(found)} would be removed")
            found = store.prune_embeddings()
    verb = "would be removed" if options.plan else "removed"
    words = f"{_unneeded(found)} {verb}, {found.kept:,} kept"
    if not _context.told(options, found):
        _output.line(words)
    return 0


def _unneeded(found: "Pruning") -> str:
    number = _output.count(found.embeddings, "embedding")
    return f"{number} that no text here, no undo and no view has ({found.size_bytes:,} bytes)"


def _models(models: "Iterable[PackedModel]") -> None:
    for model in models:
        name = safe_text(model.fingerprint, keep_newlines=False)
        vectors = _output.count(model.vectors, "vector")
        _output.line(f"    {vectors} of {name}, {model.dimension:,} numbers each")


def run_embeddings(options: CommonOptions) -> int:
    """Carry embeddings to another store in a file, a pack, or remove those that nothing needs.

    Example: filestore embeddings export handbook.fspack
    """
    raise UsageError(
        f"no action was given: {', '.join(ACTIONS['embeddings'])}",
        remedy="filestore embeddings --help",
    )


ACTIONS: Final[dict[str, dict[str, Callable[[Any], int]]]] = {
    "backend": {"show": run_backend, "list": _list, "set": _set},
    "embeddings": {"export": _export, "import": _import, "info": _info, "prune": _prune},
}

"""List where vectors may be searched, show where they are, and choose another place."""

from typing import Annotated, Final

from msgspec import Struct

from filestore.cli import _context, _diagnostics, _output
from filestore.core.schema import JsonObject
from filestore.server.options import CommonOptions, argument
from filestore.sync import change_backend

EXAMPLE = "filestore backend set pgvector dsn=postgresql://localhost/knowledge"


class Backend(JsonObject, Struct, frozen=True):
    """A kind of backend."""

    kind: str
    """`faiss`, `local`, `qdrant` or `pgvector`."""
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
    found = {kind: change_backend.missing(kind) for kind in change_backend.KINDS}
    if options.json:
        items = [
            Backend(kind, not why, why, change_backend.KINDS[kind]) for kind, why in found.items()
        ]
        _output.write_json(Backends(items).to_dict())
        return 0
    for kind, why in found.items():
        _output.line(f"{kind}: {why or 'can be used'}; {change_backend.KINDS[kind]}")
    return 0


def _show(options: Show) -> int:
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
    backend = change_backend.options_of(options.kind, options.options)
    with _context.open_store(options) as store:
        before = store.backend_rows()
        change = store.plan_backend(backend, takes_over=options.take_over)
        if not options.yes:
            vectors = _output.count(change.send, "vector")
            there = f"{vectors} ({change.kept:,} are there); 0 texts are embedded"
            gone = f"; {_output.count(change.delete, 'vector')} there go" if change.delete else ""
            _diagnostics.ask(f"{change.address} gets {there}{gone}")
        sent = store.change_backend(change)
        left = before if change_backend.is_left(before, change) else None
        cleared = options.clear and left is not None and store.clear_backend(left)
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
    elif left is not None:
        _output.line(f"{left.where} still has this store's vectors: delete them there")
        _output.line("the next time, --clear does that")
    return 0


ACTIONS: Final = {
    None: (Show, _show),
    "show": (Show, _show),
    "list": (List, _list),
    "set": (Set, _set),
}

"""List where vectors may be searched, show where they are, and choose another place."""

import argparse
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from filestore.cli import _context, _diagnostics, _output, _parser
from filestore.core.schema import JsonObject
from filestore.sync import change_backend

if TYPE_CHECKING:
    from filestore.sync.change_backend import BackendChange

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


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    common = _parser.shared_options()
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser(
        "show", parents=[common], help="show where the vectors are and how it stands (the default)"
    )
    actions.add_parser(
        "list", parents=[common], help="list where vectors may be and whether that works here"
    )
    change = actions.add_parser(
        "set", parents=[common], help="send the vectors to another place; nothing is embedded"
    )
    change.add_argument("kind", metavar="KIND", help="faiss, local, qdrant or pgvector")
    change.add_argument(
        "options", metavar="KEY=VALUE", nargs="*", default=[], help="see 'backend list'"
    )
    change.add_argument("--yes", action="store_true", help="do not ask")
    change.add_argument(
        "--take-over", action="store_true", help="replace what another store has there"
    )
    change.add_argument(
        "--clear", action="store_true", help="delete the vectors in the place that is left"
    )


def run(options: Any) -> int:
    """Do what the action says."""
    return _ACTIONS[options.action or "show"](options)


def _list(options: Any) -> int:
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


def _show(options: Any) -> int:
    with _context.open_store(options) as store:
        shown = store.backend()
    if options.json:
        _output.write_json(shown.to_dict())
    else:
        _output.line(f"{shown.kind}: {shown.address or 'cannot be opened here'}")
        vectors = _output.count(shown.vectors, "vector")
        _output.line(f"{vectors}{_waiting(shown)}")
        if shown.problem:
            _output.line(f"cannot be asked: {shown.problem}")
    return 1 if shown.problem else 0


def _waiting(shown: "change_backend.ShownBackend") -> str:
    if not shown.waiting:
        return ""
    if shown.approximate is None and not shown.problem:
        changes = _output.count(shown.waiting, "change")
        return f"; {changes} since the file was written, searched all the same"
    return f", {shown.waiting:,} wait to be sent"


def _set(options: Any) -> int:
    backend = change_backend.options_of(options.kind, options.options)
    with _context.open_store(options) as store:
        before = store.backend_rows()
        change = store.plan_backend(backend, takes_over=options.take_over)
        if not options.yes:
            _ask(change)
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


def _ask(change: "BackendChange") -> None:
    vectors = _output.count(change.send, "vector")
    words = f"{change.address} gets {vectors} ({change.kept:,} are there); 0 texts are embedded"
    if change.delete:
        words += f"; {_output.count(change.delete, 'vector')} there go"
    _diagnostics.ask(words)


_ACTIONS = {"list": _list, "show": _show, "set": _set}

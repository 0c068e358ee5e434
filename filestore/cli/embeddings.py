"""Carry embeddings to another store in a file, a pack, or remove those that nothing needs."""

from typing import TYPE_CHECKING, Annotated, Final

from filestore.cli import _context, _diagnostics, _output
from filestore.cli._given import Limited
from filestore.core.progress import Progress
from filestore.core.safe_text import safe_text, shown_path
from filestore.server.options import CommonOptions, argument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filestore.embed.pack import PackedModel, PackInfo
    from filestore.sync.packs import ExportedEmbeddings, ImportedEmbeddings
    from filestore.sync.prune import Pruning

EXAMPLE = "filestore embeddings export handbook.fspack"


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
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        done = store.export_embeddings(
            options.pack, everything=options.all, on_progress=on_progress
        )
    _context.tell(options, done, _exported)
    if done.lacking:
        _diagnostics.say(
            f"{_output.count(done.lacking, 'text')} without a sound vector: run 'filestore sync',"
            " then export again"
        )
    return 1 if done.lacking else 0


def _exported(done: "ExportedEmbeddings") -> None:
    _output.line(f"wrote {shown_path(done.path)}: {done.size_bytes:,} bytes, {done.digest}")
    _models(done.models)


def _import(options: Import) -> int:
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        done = store.import_embeddings(
            options.pack,
            unchecked=options.unchecked,
            limits=options.limits,
            on_progress=on_progress,
        )
    _context.tell(options, done, _imported)
    return 0


def _imported(done: "ImportedEmbeddings") -> None:
    if done.unchecked:
        _diagnostics.say(f"not checked: {safe_text(done.unchecked, keep_newlines=False)}")
    if done.compared:
        _output.line(f"{_output.count(done.compared, 'text')} embedded again: the same vectors")
    _output.line(f"took {_output.count(done.added, 'vector')} ({done.known:,} were here)")
    if done.left_out:
        _output.line("left out, of other models:")
        _models(done.left_out)
    _output.line("next: filestore sync")


def _info(options: Info) -> int:
    from filestore.embed.pack import Pack

    with Pack.open(options.pack) as pack, _diagnostics.ProgressBar() as on_progress:
        total = sum(model.vectors for model in pack.models)
        pack.check(lambda done: on_progress(Progress(stage="checking", done=done, total=total)))
        found = pack.info
    _context.tell(options, found, _told)
    return 0


def _told(found: "PackInfo") -> None:
    _output.line(f"{shown_path(found.path)}: {found.size_bytes:,} bytes, {found.digest}")
    _models(found.models)
    _output.line("it is whole")


def _prune(options: Prune) -> int:
    with _context.open_store(options) as store:
        found = store.plan_prune()
        if not options.plan:
            if found.embeddings and not options.yes:
                _diagnostics.ask(f"{_unneeded(found)} would be removed")
            found = store.prune_embeddings()
    verb = "would be removed" if options.plan else "removed"
    words = f"{_unneeded(found)} {verb}, {found.kept:,} kept"
    _context.tell(options, found, lambda _: _output.line(words))
    return 0


def _unneeded(found: "Pruning") -> str:
    number = _output.count(found.embeddings, "embedding")
    return f"{number} that no text here, no undo and no view has ({found.size_bytes:,} bytes)"


def _models(models: "Iterable[PackedModel]") -> None:
    for model in models:
        name = safe_text(model.fingerprint, keep_newlines=False)
        vectors = _output.count(model.vectors, "vector")
        _output.line(f"    {vectors} of {name}, {model.dimension:,} numbers each")


ACTIONS: Final = {
    "export": (Export, _export),
    "import": (Import, _import),
    "info": (Info, _info),
    "prune": (Prune, _prune),
}

"""Create a store: of chunk files in a new folder, or of the documents of a folder, in place.

One in place is indexed at once: there is nothing to add. Only where that would send every text to a
service it waits for a command of its own.
"""

from typing import Annotated

from msgspec import Struct

from filestore.cli import _diagnostics, _output
from filestore.config.discovery import DEFAULT_FOLDER
from filestore.core.errors import UsageError
from filestore.core.schema import JsonObject
from filestore.embed import is_service
from filestore.embed.known_models import about
from filestore.server.options import CommonOptions, argument, option
from filestore.store import Store
from filestore.sync.apply import SyncReport

EXAMPLE = "filestore init notes_index --layout tree"


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


class Options(CommonOptions, frozen=True, kw_only=True):
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


def run(options: Options) -> int:
    """Make the store and say where, and what its embedder does."""
    layout = _layout(options)
    is_in_place = layout == "in-place"
    usual = "." if is_in_place else DEFAULT_FOLDER
    with Store.create(
        usual if options.folder is None else options.folder,
        layout=layout,
        embedder=options.embedder,
        endpoint=options.endpoint,
    ) as store:
        indexes = is_in_place and not is_service(store.settings.embedder.partition(":")[0])
        if not options.json:
            _made(store)
        report, code = None, 0
        if indexes:
            with _diagnostics.ProgressBar() as on_progress:
                report = store.sync(on_progress=on_progress)
            code = _diagnostics.exit_code_of(report)
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
        following = "search QUERY" if indexes else "sync" if is_in_place else "add PATH…"
        _output.line(f"next: filestore {following}")
    return code


def _made(store: Store) -> None:
    _output.line(f"created a store in {store.root}")
    name = store.settings.embedder
    _output.line(f"layout {store.settings.layout}, embedder {name}: {about(name)}")


def _layout(options: Options) -> str:
    if not options.in_place:
        return options.layout or "tree"
    if options.layout not in (None, "in-place"):
        raise UsageError(
            f"--in-place is a layout itself, and --layout says {options.layout}",
            remedy="leave one of them out",
        )
    return "in-place"

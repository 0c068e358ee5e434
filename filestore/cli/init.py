"""Create a store: of chunk files in a new folder, or of the documents of a folder, in place."""

import argparse
from typing import Any

from filestore.cli import _output
from filestore.config.discovery import DEFAULT_FOLDER
from filestore.core.errors import UsageError
from filestore.core.schema import make
from filestore.embed import is_service
from filestore.store import Store

EXAMPLE = "filestore init notes_index --layout tree"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "folder",
        nargs="?",
        metavar="DIR",
        help="default: file_index; with --in-place the working folder",
    )
    parser.add_argument(
        "--layout",
        metavar="tree|flat|in-place",
        help="tree: one folder a resource; flat: all files in one folder; in-place: the documents "
        "of DIR as they are (default: tree)",
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="index the documents of DIR where they lie: --layout in-place",
    )
    parser.add_argument(
        "--embedder",
        metavar="E",
        help="builtin, onnx, sentence-transformers or openai, each with :MODEL; or a model's "
        "folder (default: the best whose model is here)",
    )
    parser.add_argument(
        "--endpoint",
        metavar="URL",
        help="the service of openai:MODEL, as http://127.0.0.1:11434/v1",
    )


def run(options: Any) -> int:
    """Make the store and say where, and why it has its embedder."""
    if options.endpoint and not is_service((options.embedder or "").partition(":")[0]):
        raise UsageError(
            "--endpoint says where openai:MODEL is", remedy="add --embedder openai:MODEL"
        )
    layout = _layout(options)
    is_in_place = layout == "in-place"
    with Store.create(
        options.folder or ("." if is_in_place else DEFAULT_FOLDER),
        layout=layout,
        embedder=options.embedder,
        endpoint=options.endpoint,
    ) as store:
        if options.json:
            fields = {"layout": store.settings.layout, "embedder": store.settings.embedder}
            fields |= {"root": store.root, "reason": store.chosen_because}
            _output.write_json(make("init", fields))
            return 0
        _output.line(f"created a store in {store.root}")
        _output.line(f"layout {store.settings.layout}, embedder {store.settings.embedder}")
        if options.embedder is None:
            _output.line(f"    {store.chosen_because}")
        if store.embedder is not None and store.embedder.lexical:
            _output.line("the builtin embedder compares words and their parts, not meaning")
        _output.line("next: filestore sync" if is_in_place else "next: filestore add PATH…")
    return 0


def _layout(options: Any) -> str:
    if not options.in_place:
        return options.layout or "tree"
    if options.layout not in (None, "in-place"):
        raise UsageError(
            f"--in-place is a layout itself, and --layout says {options.layout}",
            remedy="leave one of them out",
        )
    return "in-place"

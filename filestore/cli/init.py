"""Make a store: settings, .gitignore, .gitattributes and an empty chunked/."""

import argparse
from typing import Any

from filestore.cli import _context, _output
from filestore.store import DEFAULT_FOLDER, Store

EXAMPLE = "filestore init notes_index --layout tree"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", default=DEFAULT_FOLDER, help="default: file_index"
    )
    parser.add_argument(
        "--layout",
        default="tree",
        metavar="tree|flat",
        help="tree: one folder a resource; flat: all files in one folder (default: tree)",
    )
    parser.add_argument("--embedder", default="builtin", help="default: builtin")


def run(options: Any) -> int:
    """Make the store and say where."""
    with Store.init(
        options.folder,
        layout=options.layout,
        embedder=options.embedder,
        configuration=_context.configuration_folder(),
    ) as store:
        if options.json:
            _output.write_json(
                {
                    "root": store.root,
                    "layout": store.settings.layout,
                    "embedder": store.settings.embedder,
                }
            )
            return 0
        _output.line(f"made a store in {store.root}")
        _output.line(f"layout {store.settings.layout}, embedder {store.settings.embedder}")
        if store.embedder is not None and store.embedder.lexical:
            _output.line("the builtin embedder compares words and their parts, not meaning")
        _output.line("next: filestore add PATH…")
    return 0

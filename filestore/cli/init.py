"""Make a store: settings, .gitignore, .gitattributes and an empty chunked/."""

import argparse
from typing import Any

from filestore.cli import _context, _output
from filestore.errors import UsageError
from filestore.roots import DEFAULT_FOLDER
from filestore.settings import ModelOptions
from filestore.store import Store

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
    if options.endpoint and not (options.embedder or "").startswith("openai:"):
        raise UsageError(
            "--endpoint says where openai:MODEL is", remedy="add --embedder openai:MODEL"
        )
    with Store.init(
        options.folder,
        layout=options.layout,
        embedder=options.embedder,
        options=ModelOptions(endpoint=options.endpoint),
        configuration=_context.configuration_folder(),
    ) as store:
        if options.json:
            _output.write_json(
                {
                    "root": store.root,
                    "layout": store.settings.layout,
                    "embedder": store.settings.embedder,
                    "reason": store.chosen_because,
                }
            )
            return 0
        _output.line(f"made a store in {store.root}")
        _output.line(f"layout {store.settings.layout}, embedder {store.settings.embedder}")
        if options.embedder is None:
            _output.line(f"    {store.chosen_because}")
        if store.embedder is not None and store.embedder.lexical:
            _output.line("the builtin embedder compares words and their parts, not meaning")
        _output.line("next: filestore add PATH…")
    return 0

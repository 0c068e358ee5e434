"""Write the store in a form of other programs; 'filestore import' takes all but Markdown back."""

import argparse
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _output
from filestore.core.safe_text import safe_text, shown_path
from filestore.exchange.forms import FORMS

if TYPE_CHECKING:
    from filestore.exchange.from_store import Exported

EXAMPLE = "filestore export jsonl handbook.jsonl handbook"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("form", metavar="FORM", help=f"one of: {', '.join(FORMS)}")
    parser.add_argument(
        "target", metavar="TARGET", help="the file or folder; an earlier export there is replaced"
    )
    parser.add_argument(
        "resources",
        nargs="*",
        default=[],
        metavar="RESOURCE",
        help="only these (default: the whole store)",
    )
    parser.add_argument(
        "--no-vectors", action="store_true", help="texts and metadata alone, not their vectors"
    )


def run(options: Any) -> int:
    """Write it."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        done = store.export(
            options.form,
            options.target,
            *options.resources,
            vectors=not options.no_vectors,
            on_progress=on_progress,
        )
    if options.json:
        _output.write_json(done.to_dict())
    else:
        _told(done)
    _output.left_out(done.left_out, done.more_left_out)
    return 1 if done.left_out or not done.chunks else 0


def _told(done: "Exported") -> None:
    chunks = _output.count(done.chunks, "chunk")
    resources = _output.count(done.resources, "resource")
    for path in done.files:
        _output.line(f"wrote {shown_path(path)}")
    _output.line(f"{chunks} of {resources}, {done.size_bytes:,} bytes")
    if done.vectors:
        model = safe_text(done.model, keep_newlines=False)
        _output.line(f"with {_output.count(done.vectors, 'vector')} of {model}")

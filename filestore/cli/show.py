"""Show one chunk: its frontmatter, its text, and what the store knows of it."""

import argparse
from typing import Any

from filestore.chunks.metadata import value_text
from filestore.cli import _context, _output
from filestore.core.safe_text import shown_path

EXAMPLE = "filestore show chunked/glossary.md/chunk1.md"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("path", metavar="PATH", help="as 'ls RESOURCE' and 'search' print it")


def run(options: Any) -> int:
    """Show the file as it is on disk."""
    with _context.open_store(options) as store:
        shown = store.show(options.path)
    if options.json:
        _output.write_json(shown.to_dict())
        return 0
    _output.line(shown_path(shown.path), style="1")
    for key, value in {**shown.frontmatter, **shown.record}.items():
        if value not in (None, [], {}):
            _output.line(f"{key}: {value_text(value)}", style="2")
    _output.line()
    _output.line(shown.body.rstrip("\n"))
    return 0

"""Rebuild a resource's text from its chunks, as they are on disk now."""

import argparse
import os
import sys
from typing import Any

from filestore.cli import _context, _diagnostics, _output
from filestore.core.schema import make
from filestore.fs import disk

EXAMPLE = "filestore reconstruct glossary.md -o glossary.txt"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("resource", metavar="RESOURCE")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write to a file, not to stdout")


def run(options: Any) -> int:
    """Write the text; warnings go to stderr."""
    with _context.open_store(options) as store:
        done = store.reconstruct(options.resource)
    data = done.data
    if options.output is not None:
        with disk.disk_errors(options.output):
            disk.write_path(os.path.abspath(options.output), data)
    # Of a resource whose files can all not be read nothing was found.
    code = 1 if done.warnings and not done.chunks else 0
    if options.json:
        fields = done.to_dict()
        if options.output is not None:
            fields = make("Reconstruction", fields | {"path": options.output})
            del fields["text"]
        _output.write_json(fields)
        return code
    for warning in done.warnings:
        _diagnostics.say(f"warning: {warning}")
    if options.output is not None:
        chunks = _output.count(done.chunks, "chunk")
        _output.line(f"wrote {options.output}: {chunks}, {len(data):,} bytes")
    elif sys.stdout.isatty():
        _output.line(done.text)
    else:
        sys.stdout.buffer.write(data)
    return code

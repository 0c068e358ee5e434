"""Put a resource's text together again from its chunks, as they are on disk now."""

import argparse
import os
import sys
from typing import Any

from filestore import fileio
from filestore.cli import _context, _diagnostics, _output

EXAMPLE = "filestore reconstruct glossary.md -o glossary.txt"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("resource", metavar="RESOURCE")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write there, not to stdout")


def run(options: Any) -> int:
    """Write the text; warnings go to stderr."""
    with _context.open_store(options) as store:
        done = store.reconstruct(options.resource)
    data = done.text.encode("utf-8", "surrogatepass")
    if options.output is not None:
        with fileio.disk_errors(options.output):
            fileio.write_path(os.path.abspath(options.output), data)
    if options.json:
        report: dict[str, Any] = {
            "chunks": done.chunks,
            "bytes": len(data),
            "path": options.output,
            "warnings": list(done.warnings),
        }
        if options.output is None:
            report["text"] = done.text
        _output.write_json(report)
        return 0
    for warning in done.warnings:
        _diagnostics.say(f"warning: {warning}")
    if options.output is not None:
        chunks = _output.count(done.chunks, "chunk")
        _output.line(f"wrote {options.output}: {chunks}, {len(data):,} bytes")
    elif sys.stdout.isatty():
        _output.line(done.text)
    else:
        sys.stdout.buffer.write(data)
    return 0

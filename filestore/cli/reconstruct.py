"""Put a text together from its chunks: of a resource, or of chunks that others made."""

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from filestore.cli import EXIT_PARTIAL, _context, _diagnostics, _output, _parser
from filestore.core.caller import absolute
from filestore.core.errors import UsageError
from filestore.core.limits import Counter
from filestore.core.safe_text import shown_path
from filestore.fs import disk
from filestore.fs.target import check_target

if TYPE_CHECKING:
    from filestore.exchange.base import LeftOut
    from filestore.exchange.rebuild.foreign_chunks import Document

EXAMPLE = "filestore reconstruct glossary.md -o glossary.txt"

_FOLDER = "reconstructed"
_FOREIGN = ("only", "overlap", "endpoint", "limit")


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "names",
        metavar="RESOURCE",
        nargs="*",
        help="its chunks as they are on disk now; with --from: folders, or files of JSON lines",
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        help="write to a file, not to stdout; with --from: to a folder"
        f" (default: {_FOLDER}/), NAME.reconstructed.md for each document",
    )
    parser.add_argument("--force", action="store_true", help="replace the file of -o")
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="WHERE",
        help="chunks that others made, which may overlap: folder (text files), jsonl, or"
        " openai:VECTOR_STORE_ID",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="with --from: only these documents",
    )
    parser.add_argument(
        "--overlap",
        metavar="N",
        help="with --from: what neighbours repeat: 200 (characters), '50 words', '400 tokens', 0"
        " (default: found out)",
    )
    parser.add_argument(
        "--endpoint",
        metavar="URL",
        help="with --from openai: a service that answers as OpenAI does; the key of"
        " FILESTORE_API_KEY is sent there",
    )
    _parser.add_limits(parser)


def run(options: Any) -> int:
    """Write the text; warnings go to stderr."""
    if options.origin is not None:
        if options.force:
            raise UsageError(
                "--force does not go with --from, which replaces files of its own names",
                remedy="leave it out",
            )
        return _rebuild(options)
    given = [f"--{name}" for name in _FOREIGN if getattr(options, name)]
    if given:
        raise UsageError(f"{given[0]} goes with --from", remedy="filestore reconstruct --help")
    if len(options.names) != 1:
        raise UsageError(
            f"unexpected argument {options.names[1]!r}"
            if options.names
            else "the following arguments are required: RESOURCE",
            remedy="filestore reconstruct --help",
        )
    return _reconstruct(options)


def _reconstruct(options: Any) -> int:
    """The text of a resource."""
    if options.output is not None:
        check_target(
            options.output,
            lambda _: options.force,
            found="it is there already",
            remedy="name another file; --force replaces a file",
        )
    with _context.open_store(options) as store:
        done = store.reconstruct(options.names[0])
    data = done.data
    if options.output is not None:
        with disk.disk_errors(options.output):
            disk.write_path(absolute(options.output), data)
    # Of a resource whose files can all not be read nothing was found.
    code = 1 if done.warnings and not done.chunks else 0
    if options.json:
        fields = replace(done, path=options.output).to_dict()
        if options.output is not None:
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


def _rebuild(options: Any) -> int:
    """Every document of a foreign collection, a file each."""
    from filestore.exchange.base import LeftOut
    from filestore.exchange.rebuild.joining import told
    from filestore.exchange.rebuild.rebuild import rebuild

    left_out = LeftOut()
    with _diagnostics.ProgressBar() as on_progress:
        done = rebuild(
            _documents(options, left_out),
            options.output or _FOLDER,
            only=options.only,
            strategy=None if options.overlap is None else told(options.overlap),
            left_out=left_out,
            on_progress=on_progress,
        )
    is_whole = not (done.failed or done.warnings)
    code = 0 if is_whole else EXIT_PARTIAL if done.files or not done.failed else 3
    if options.json:
        _output.write_json(done.to_dict())
        return code
    for file in done.files:
        for warning in file.warnings:
            _diagnostics.say(f"warning: {warning}")
    for warning in done.warnings:
        _diagnostics.say(f"left out: {warning}")
    for failure in done.failed:
        _diagnostics.say(f"failed: {failure}")
    for file in done.files:
        chunks = _output.count(file.chunks, "chunk")
        _output.line(f"wrote {file.path}: {chunks}, {file.size_bytes:,} bytes")
    if done.overlap:
        _output.line(f"overlap of neighbours: {done.overlap}")
    files, chunks = _output.count(len(done.files), "file"), _output.count(done.chunks, "chunk")
    _output.line(f"{files}, {chunks}, {done.size_bytes:,} bytes in {done.folder}")
    return code


def _documents(options: Any, left_out: "LeftOut") -> "Iterator[Document]":
    """The documents of what the options name.

    Raises:
        UsageError: They name nothing that can be read.
    """
    from filestore.exchange.rebuild import foreign_chunks
    from filestore.exchange.rebuild.vector_store import VectorStore

    name = ", ".join(map(shown_path, options.names)) or options.origin
    counter = Counter(_parser.limits_of(options), name)
    kind, _, identifier = options.origin.partition(":")
    if kind == "openai":
        if options.names:
            raise UsageError(
                f"unexpected argument {options.names[0]!r}: --from openai names the vector store",
                remedy="filestore reconstruct --from openai:VECTOR_STORE_ID -o FOLDER",
            )
        return VectorStore(
            identifier,
            endpoint=options.endpoint or "",
            environment=os.environ,
            left_out=left_out,
            counter=counter,
        ).documents()
    readers = {"folder": foreign_chunks.in_folder, "jsonl": foreign_chunks.in_lines}
    if options.origin not in readers:
        raise UsageError(
            f"--from {options.origin}: expected folder, jsonl or openai:VECTOR_STORE_ID",
            remedy="filestore reconstruct --help",
        )
    if options.endpoint:
        raise UsageError("--endpoint goes with --from openai", remedy="leave it out")
    if not options.names:
        raise UsageError(
            f"--from {kind} wants the {'folder' if kind == 'folder' else 'file'} to read",
            remedy=f"filestore reconstruct SOURCE --from {kind}",
        )
    read = readers[kind]
    return (document for name in options.names for document in read(name, left_out, counter))

"""Put a text together from its chunks: of a resource, or of chunks that others made."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace

from filestore.cli import EXIT_PARTIAL, _context, _diagnostics, _output
from filestore.cli._given import Limited
from filestore.core.caller import absolute
from filestore.core.errors import UsageError
from filestore.core.limits import Counter
from filestore.core.safe_text import shown_path
from filestore.fs import disk
from filestore.fs.staged_file import check_target
from filestore.server.options import argument, option

if TYPE_CHECKING:
    from filestore.exchange.base import LeftOut
    from filestore.exchange.foreign_chunks import Document

EXAMPLE = "filestore reconstruct glossary.md -o glossary.txt"

_FOLDER = "reconstructed"


class Options(Limited, frozen=True, kw_only=True):
    """What the command takes."""

    names: Annotated[list[str], argument("RESOURCE")] = []
    """its chunks as they are on disk now; with --from: folders, or files of JSON lines"""
    output: Annotated[str | None, option("FILE", "-o")] = None
    """write to a file, not to stdout; with --from: to a folder (default: reconstructed/),
    NAME.reconstructed.md for each document"""
    force: bool = False
    """replace the file of -o"""
    origin: Annotated[str | None, option("WHERE", "--from")] = None
    """chunks that others made, which may overlap: folder (text files), jsonl, or
    openai:VECTOR_STORE_ID"""
    only: Annotated[list[str], option("NAME", many=True, needs="origin")] = []
    """with --from: only these documents"""
    overlap: Annotated[str | None, option("N", needs="origin")] = None
    """with --from: what neighbours repeat: 200 (characters), '50 words', '400 tokens', 0 (default:
    found out)"""
    endpoint: Annotated[str | None, option("URL", needs="origin")] = None
    """with --from openai: a service that answers as OpenAI does; the key of FILESTORE_API_KEY is
    sent there"""


def run(options: Options) -> int:
    """Write the text; warnings go to stderr."""
    if options.origin is not None:
        if options.force:
            raise UsageError(
                "--force does not go with --from, which replaces files of its own names",
                remedy="leave it out",
            )
        return _rebuild(options, options.origin)
    if options.limit:
        raise UsageError("--limit goes with --from", remedy="filestore reconstruct --help")
    if len(options.names) != 1:
        raise UsageError(
            f"unexpected argument {options.names[1]!r}"
            if options.names
            else "the following arguments are required: RESOURCE",
            remedy="filestore reconstruct --help",
        )
    return _reconstruct(options)


def _reconstruct(options: Options) -> int:
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


def _rebuild(options: Options, origin: str) -> int:
    """Every document of a foreign collection, a file each."""
    from filestore.exchange.base import LeftOut
    from filestore.exchange.joining import told
    from filestore.exchange.rebuild import rebuild

    left_out = LeftOut()
    with _diagnostics.ProgressBar() as on_progress:
        done = rebuild(
            _documents(options, origin, left_out),
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


def _documents(options: Options, origin: str, left_out: "LeftOut") -> "Iterator[Document]":
    """The documents of what the options name.

    Raises:
        UsageError: They name nothing that can be read.
    """
    from filestore.exchange import foreign_chunks
    from filestore.exchange.vector_store import VectorStore

    name = ", ".join(map(shown_path, options.names)) or origin
    counter = Counter(options.limits, name)
    kind, _, identifier = origin.partition(":")
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
    if origin not in readers:
        raise UsageError(
            f"--from {origin}: expected folder, jsonl or openai:VECTOR_STORE_ID",
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

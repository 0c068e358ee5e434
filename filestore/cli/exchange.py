"""The forms of other programs and packs of embeddings, out and in; texts put together again."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace

from filestore.cli import EXIT_PARTIAL, _context, _output, _progress
from filestore.core.caller import absolute
from filestore.core.errors import UsageError
from filestore.core.limits import LIMITED, OPTION, USUAL, Counter, Limits
from filestore.core.progress import Progress
from filestore.core.safe_text import safe_text, shown_path
from filestore.exchange.base import FORMS, READ
from filestore.fs import disk
from filestore.fs.staged import check_target
from filestore.server.operations import CommonOptions, argument, option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filestore.embed.pack import PackedModel
    from filestore.exchange.base import Imported, LeftOut
    from filestore.exchange.rebuild import Document
    from filestore.sync.prune import Pruning


_USUAL = " ".join(f"{name}={getattr(USUAL, name)}" for name in LIMITED)


class Limited(CommonOptions, frozen=True, kw_only=True):
    """What a command takes that reads what a stranger wrote."""

    limit: Annotated[
        list[str],
        option("KEY=N", many=True, one_of=[_USUAL]),
    ] = []
    """take more than"""

    @property
    def limits(self) -> Limits:
        """The limits, some of them others.

        Raises:
            UsageError: There is no such limit, or it is no number of things.
        """
        found: dict[str, int] = {}
        for word in self.limit:
            name, _, number = word.partition("=")
            if name not in LIMITED or not re.fullmatch(r"0*[1-9][0-9]{0,17}", number):
                raise UsageError(
                    f"{OPTION} {word!r}: expected a number after {'=, '.join(LIMITED)}="
                    f"; write {OPTION} rows=1000000",
                )
            found[name] = int(number)
        return Limits(**found)


class Export(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    form: Annotated[str, argument("FORM", one_of=list(FORMS))]
    """one of:"""
    target: Annotated[str, argument("TARGET")]
    """the file or folder; an earlier export there is replaced"""
    resources: Annotated[list[str], argument("DOCUMENT")] = []
    """only these (default: the whole store)"""
    vectors: bool = True
    """write the vectors, too"""


def run_export(options: Export) -> int:
    """Write the store in a form of other programs; 'filestore import' takes all but Markdown back.

    Example: filestore export jsonl handbook.jsonl handbook
    """
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        done = store.export(
            options.form,
            options.target,
            *options.resources,
            vectors=options.vectors,
            on_progress=on_progress,
        )
    if not _context.printed_json(options, done):
        chunks = _output.count(done.chunks, "passage")
        resources = _output.count(done.resources, "document")
        for path in done.files:
            _output.line(f"wrote {shown_path(path)}")
        _output.line(f"{chunks} of {resources}, {done.size_bytes:,} bytes")
        if done.vectors:
            model = _output.one_line(done.model)
            _output.line(f"with {_output.count(done.vectors, 'vector')} of {model}")
    _output.left_out(done.left_out, done.more_left_out)
    return 1 if done.left_out or not done.chunks else 0


_SHOWN = 10


class Import(Limited, frozen=True, kw_only=True):
    """What the command takes."""

    form: Annotated[str, argument("FORM", one_of=list(READ))]
    """one of:"""
    source: Annotated[str, argument("SOURCE")]
    """the file or folder"""
    replace: bool = False
    """replace documents that are there and differ; 'filestore undo' restores them"""
    unchecked: bool = False
    """accept the vectors even if the model that checks them is not here"""
    embed: bool = True
    """embed passages that come without a vector"""
    plan: bool = False
    """only show what would be written"""


def run_import(options: Import) -> int:
    """Import an export of a store or another program: files and vectors.

    Example: filestore import jsonl handbook.jsonl --plan
    """
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        done = store.import_from(
            options.form,
            options.source,
            replace=options.replace,
            unchecked=options.unchecked,
            embed=options.embed,
            plan=options.plan,
            limits=options.limits,
            on_progress=on_progress,
        )
    if not _context.printed_json(options, done):
        with _output.paged() if options.plan else nullcontext():
            _print_imported(done)
    _output.left_out(done.left_out, done.more_left_out)
    refused = len(done.of_status("refused"))
    if not done.resources:
        return 1
    if refused == len(done.resources):
        return 4
    return EXIT_PARTIAL if refused or done.left_out else 0


def _print_imported(done: "Imported") -> None:
    for status in ("added", "replaced", "unchanged", "refused"):
        found = done.of_status(status)
        if not found:
            continue
        would = "would be " if done.planned and status in ("added", "replaced") else ""
        files = sum(one.files for one in found)
        counted = f", {_output.count(files, 'file')}" if files else ""
        _output.line(f"{would}{status}: {_output.count(len(found), 'document')}{counted}")
        for one in _output.first(found, _SHOWN, rest="") if status != "unchanged" else ():
            reason = f": {one.reason}" if one.reason else ""
            _output.line(_output.one_line(f"    {one.resource or '.'}{reason}"))
    if not done.resources:
        _output.line("nothing to import was found")
    if done.planned:
        limits = done.limits
        _output.line(
            f"it has {_output.count(done.rows, 'row')} (at most {limits.rows:,}),"
            f" {_output.count(done.size_bytes, 'byte')} ({limits.bytes:,});"
            f" {_output.count(done.files, 'file')} would be written ({limits.files:,})"
        )
    if done.renamed:
        renamed = _output.count(done.renamed, "chunk file")
        _output.line(f"{renamed} with another name than there: those cannot be used here")
    if done.of_status("refused"):
        undo = _output.command("undo")
        _output.line(f"--replace replaces what differs; '{undo}' restores it")
    _vectors(done)
    if done.undo:
        _output.line(f"undo: {_output.command(f'undo {done.undo}')}")


def _vectors(done: "Imported") -> None:
    if done.no_vectors:
        why = _output.one_line(done.no_vectors)
        were = "would not be" if done.planned else "were not"
        _output.line(f"vectors that came along {were} taken: {why}")
    if done.vectors:
        checked = f"; {_output.count(done.compared, 'passage')} embedded again: the same"
        _output.line(
            f"took {_output.count(done.vectors, 'vector')}{checked if done.compared else ''}"
        )
    if done.files and not done.planned:
        _output.line(_output.embedded(done.embedded, done.reused))
    if done.not_embedded is not None:
        _output.say(f"not embedded: {safe_text(done.not_embedded.message)}")


class Convert(Limited, frozen=True, kw_only=True):
    """What the command takes."""

    source: Annotated[str, argument("SOURCE")]
    """a .ragmd file; a folder with index.faiss, corpus.json, embeddings.npy and metadata.json; or a
    file vectors-NAME.faiss next to metadata-NAME.json"""
    target: Annotated[str, argument("TARGET")]
    """the same, of another kind; an index there is replaced"""


def run_convert(options: Convert) -> int:
    """Turn an index in one file, KB.ragmd, into FAISS + JSON, or back; no store is needed.

    Example: filestore convert handbook.ragmd handbook-index
    """
    from filestore.exchange.ragmd import convert

    done = convert(options.source, options.target, options.limits)
    if options.json:
        _output.write_json(done.to_dict())
        return 0
    documents = _output.count(done.documents, "document")
    vectors = _output.count(done.vectors, "vector")
    model = _output.one_line(done.model)
    for path in done.files:
        _output.line(f"wrote {shown_path(path)}")
    _output.line(f"{documents}, {vectors} of {model}, {done.size_bytes:,} bytes")
    for sentence in done.notes:
        _output.say(f"note: {_output.one_line(sentence)}")
    return 0


_FOLDER = "reconstructed"


class Reconstruct(Limited, frozen=True, kw_only=True):
    """What the command takes."""

    names: Annotated[list[str], argument("DOCUMENT")] = []
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
    """with --from openai: an OpenAI-compatible service; the key of FILESTORE_API_KEY is
    sent there"""


def run_reconstruct(options: Reconstruct) -> int:
    """Rebuild a document from its chunks, or from chunks that others made.

    Example: filestore reconstruct notes.md -o notes.txt
    """
    if options.origin is not None:
        if options.force:
            raise UsageError(
                "--force does not go with --from, which replaces files of its own names"
                ": leave it out",
            )
        return _rebuild(options, options.origin)
    if options.limit:
        raise UsageError("--limit goes with --from", remedy="filestore reconstruct --help")
    if len(options.names) != 1:
        raise UsageError(
            f"unexpected argument {options.names[1]!r}" if options.names else "missing: DOCUMENT",
            remedy="filestore reconstruct --help",
        )
    return _reconstruct(options)


def _reconstruct(options: Reconstruct) -> int:
    """The text of a document."""
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
        _output.say(f"warning: {warning}")
    if options.output is not None:
        chunks = _output.count(done.chunks, "chunk")
        _output.line(f"wrote {options.output}: {chunks}, {len(data):,} bytes")
    elif sys.stdout.isatty():
        _output.line(done.text)
    else:
        sys.stdout.buffer.write(data)
    return code


def _rebuild(options: Reconstruct, origin: str) -> int:
    """Every document of a foreign collection, a file each."""
    from filestore.exchange.base import LeftOut
    from filestore.exchange.joining import parse_overlap
    from filestore.exchange.rebuild import rebuild

    left_out = LeftOut()
    with _progress.progress_bar() as on_progress:
        done = rebuild(
            _documents(options, origin, left_out),
            options.output or _FOLDER,
            only=options.only,
            strategy=None if options.overlap is None else parse_overlap(options.overlap),
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
            _output.say(f"warning: {warning}")
    for warning in done.warnings:
        _output.say(f"left out: {warning}")
    for failure in done.failed:
        _output.say(f"failed: {failure}")
    for file in done.files:
        chunks = _output.count(file.chunks, "chunk")
        _output.line(f"wrote {file.path}: {chunks}, {file.size_bytes:,} bytes")
    if done.overlap:
        _output.line(f"overlap of neighbours: {done.overlap}")
    files, chunks = _output.count(len(done.files), "file"), _output.count(done.chunks, "chunk")
    _output.line(f"{files}, {chunks}, {done.size_bytes:,} bytes in {done.folder}")
    return code


def _documents(options: Reconstruct, origin: str, left_out: "LeftOut") -> "Iterator[Document]":
    """The documents of what the options name.

    Raises:
        UsageError: They name nothing that can be read.
    """
    from filestore.exchange import rebuild as rebuilding
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
    readers = {"folder": rebuilding.in_folder, "jsonl": rebuilding.in_lines}
    if origin not in readers:
        raise UsageError(
            f"--from {origin}: expected folder, jsonl or openai:VECTOR_STORE_ID",
            remedy="filestore reconstruct --help",
        )
    if options.endpoint:
        raise UsageError("--endpoint goes with --from openai: leave it out")
    if not options.names:
        raise UsageError(
            f"--from {kind} wants the {'folder' if kind == 'folder' else 'file'} to read"
            f": write `filestore reconstruct SOURCE --from {kind}`",
        )
    read = readers[kind]
    return (document for name in options.names for document in read(name, left_out, counter))


class ExportPack(CommonOptions, frozen=True, kw_only=True):
    """Write the vectors of the store's passages into a pack.

    Example: filestore embeddings export vectors.pack
    """

    pack: Annotated[str, argument("PACK")]
    """the file; an earlier pack is replaced"""
    all: bool = False
    """all that was ever embedded, by any model, also passages that are gone"""


class ImportPack(Limited, frozen=True, kw_only=True):
    """Check a pack and add what is missing here; then run 'sync'.

    Example: filestore embeddings import vectors.pack
    """

    pack: Annotated[str, argument("PACK")]
    """the file, which may come from anybody"""
    unchecked: bool = False
    """accept also what cannot be checked here; the rest is still checked"""


class ShowPack(CommonOptions, frozen=True, kw_only=True):
    """Show what is in a pack, and whether it is complete.

    Example: filestore embeddings info vectors.pack
    """

    pack: Annotated[str, argument("PACK")]
    """the file"""


class PruneEmbeddings(CommonOptions, frozen=True, kw_only=True):
    """Remove the vectors that no passage here, no undo and no searched commit has.

    Example: filestore embeddings prune --plan
    """

    plan: bool = False
    """only show what would be removed"""
    yes: bool = False
    """do not ask"""


def embeddings_export(options: ExportPack) -> int:
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        done = store.export_embeddings(
            options.pack, everything=options.all, on_progress=on_progress
        )
    if not _context.printed_json(options, done):
        _output.line(f"wrote {shown_path(done.path)}: {done.size_bytes:,} bytes, {done.digest}")
        _print_models(done.models)
    if done.lacking:
        _output.say(
            f"{_output.count(done.lacking, 'passage')} without a sound vector: run 'filestore"
            " sync', then export again"
        )
    return 1 if done.lacking else 0


def embeddings_import(options: ImportPack) -> int:
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        done = store.import_embeddings(
            options.pack,
            unchecked=options.unchecked,
            limits=options.limits,
            on_progress=on_progress,
        )
    if not _context.printed_json(options, done):
        if done.unchecked:
            _output.say(f"not checked: {_output.one_line(done.unchecked)}")
        if done.compared:
            _output.line(
                f"{_output.count(done.compared, 'passage')} embedded again: the same vectors"
            )
        _output.line(f"took {_output.count(done.added, 'vector')} ({done.known:,} were here)")
        if done.left_out:
            _output.line("left out, of other models:")
            _print_models(done.left_out)
        _output.line(f"next: {_output.command('sync')}")
    return 0


def embeddings_info(options: ShowPack) -> int:
    from filestore.embed.pack import Pack

    with Pack.open(options.pack) as pack, _progress.progress_bar() as on_progress:
        total = sum(model.vectors for model in pack.models)
        pack.check(lambda done: on_progress(Progress(stage="checking", done=done, total=total)))
        found = pack.info
    if not _context.printed_json(options, found):
        _output.line(f"{shown_path(found.path)}: {found.size_bytes:,} bytes, {found.digest}")
        _print_models(found.models)
        _output.line("it is whole")
    return 0


def embeddings_prune(options: PruneEmbeddings) -> int:
    with _context.open_store(options) as store:
        found = store.plan_prune()
        if not options.plan:
            if found.embeddings and not options.yes:
                _output.ask(f"{_unneeded(found)} would be removed")
            found = store.prune_embeddings()
    verb = "would be removed" if options.plan else "removed"
    words = f"{_unneeded(found)} {verb}, {found.kept:,} kept"
    if not _context.printed_json(options, found):
        _output.line(words)
    return 0


def _unneeded(found: "Pruning") -> str:
    number = _output.count(found.embeddings, "embedding")
    return f"{number} that no passage here, no undo and no view has ({found.size_bytes:,} bytes)"


def _print_models(models: "Iterable[PackedModel]") -> None:
    for model in models:
        name = _output.one_line(model.fingerprint)
        vectors = _output.count(model.vectors, "vector")
        _output.line(f"    {vectors} of {name}, {model.dimension:,} numbers each")


def run_embeddings(options: CommonOptions) -> int:
    """Carry embeddings to another store in a file, a pack, or remove unneeded ones.

    Example: filestore embeddings export handbook.fspack
    """
    raise UsageError(
        "no action was given: export, import, info, prune",
        remedy="filestore embeddings --help",
    )

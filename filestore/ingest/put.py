"""Single texts as chunk files of a folder of their own, and the removal of resources and files.

Writes truth files, after a copy of each was kept. One rule: all that are named at once or none of
them, and what a person wrote is replaced only where that is asked for.
"""

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from filestore.catalog import Catalog, UnknownResourceError
from filestore.chunks import chunk_file, frontmatter
from filestore.chunks.observation import INDEXED, MAX_CHUNK_BYTES, RECORD, Observation
from filestore.config.layout import RECORD_NAME, Places, folded_path
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.hashing import origin_hash
from filestore.core.paths import CHUNKED, CHUNKS, TOP, ChunkPath, StorePath, Tree, inside
from filestore.core.progress import OnProgress
from filestore.core.safe_text import brief, listed, shown_path
from filestore.core.schema import JsonObject
from filestore.extract.tree_rules import left_out
from filestore.fs import disk
from filestore.git.repository import GitBusyError, refuse_during_operation, unmerged
from filestore.history import write
from filestore.history.batch import is_truth
from filestore.ingest.sources import check_name
from filestore.sidecar import fulltext_file
from filestore.sync.actions import put_settled
from filestore.verify.drift import is_as_recorded
from filestore.verify.names import MAX_UNITS, why_no_name

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot, Writing

_NAMED: Final = 3
"""How many are named in the list of changes; the rest is counted."""


class NotKeptError(RefusedError):
    """A file that is to go cannot be read, so that undo could not bring it back."""


class Removed(JsonObject, Struct, frozen=True, kw_only=True):
    """What was removed."""

    KEYS = "resource files undo"

    resource: str
    """Its name."""
    paths: tuple[ChunkPath, ...]
    """Below `chunked/`."""
    undo: str | None
    """The name that `undo` takes."""

    @property
    def files(self) -> list[StorePath]:
        """The files that were removed."""
        return list(map(CHUNKS.store_path, self.paths))


class RemovedResources(JsonObject, Struct, frozen=True):
    """What `rm` prints."""

    removed: tuple[Removed, ...]
    """Each document."""


class RemovedChunks(JsonObject, Struct, frozen=True, kw_only=True):
    """Which chunk files were removed."""

    paths: tuple[StorePath, ...]
    """The chunk files that were removed."""
    undo: str | None
    """The name that `undo` takes."""


def remove(places: Places, catalog: Catalog, resources: Sequence[str]) -> tuple[Removed, ...]:
    """Take resources out of the tree, as one change that is undone as one.

    Args:
        places: Where the store lies.
        catalog: Up to date with the tree, as after `sync`.
        resources: Their exact names, each once.

    Raises:
        UnknownResourceError: The catalog has no file of one of them.
        GitBusyError: A merge, rebase or the like is under way, or a file of one is unmerged.
        ChangedMeanwhile: A file was edited at this moment; none was removed.
        NotKeptError: A file cannot be read; none was removed.
    """
    refuse_during_operation(places.root)
    write.collect_leftovers(places)
    its_paths: dict[str, list[ChunkPath]] = {}
    records: list[ChunkPath] = []
    for resource in resources:
        rows = catalog.files_of(resource)
        found = sorted(row.path for row in rows if row.state in (INDEXED, RECORD) or row.file_hash)
        records += (its_records := catalog.record_paths(resource))
        its_paths[resource] = [*found, *(path for path in its_records if path not in found)]
        if not its_paths[resource]:
            raise UnknownResourceError(
                f"no document {resource!r}", remedy="'filestore ls' lists what is there"
            )
    paths = [path for one in its_paths.values() for path in one]
    _, undo = _taken_out(places, paths, resources, last=records)
    return tuple(
        Removed(resource=resource, paths=tuple(one), undo=undo)
        for resource, one in its_paths.items()
    )


def remove_chunks(places: Places, paths: Sequence[ChunkPath]) -> RemovedChunks:
    """Take single chunk files out of the tree, as one change that is undone as one.

    Args:
        places: Where the store lies.
        paths: Of chunk files; what is not there is passed over.

    Raises:
        RefusedError: One is no chunk file.
        GitBusyError: A merge, rebase or the like is under way, or a file is unmerged.
        ChangedMeanwhile: A file was edited at this moment; none was removed.
        NotKeptError: A file cannot be read; none was removed.
    """
    refuse_during_operation(places.root)
    write.collect_leftovers(places)
    for path in paths:
        if not path.endswith(".md"):
            raise RefusedError(
                f"{shown_path(CHUNKS.store_path(path))} is not a chunk file",
                remedy="'filestore ls' lists documents, which 'filestore rm' removes",
            )
    gone, undo = _taken_out(places, paths)
    return RemovedChunks(paths=gone, undo=undo)


def _taken_out(
    places: Places,
    paths: Sequence[ChunkPath],
    named: Sequence[str] = (),
    last: Sequence[ChunkPath] = (),
) -> tuple[tuple[StorePath, ...], str | None]:
    """The files that went, and the name that `undo` takes; without names it has theirs.

    Raises:
        NotKeptError: One cannot be read.
    """
    refuse_unmerged(places, paths)
    before = {}
    with disk.folder_at(places.chunked) as handle:
        for path in paths:
            name = CHUNKS.store_path(path)
            try:
                before[name] = disk.read_below(handle, path)[0]
            except FileNotFoundError:
                continue
            except OSError as error:
                shown = shown_path(name)
                raise NotKeptError(
                    f"{shown} cannot be kept, so nothing was removed: {error.strerror or error};"
                    " make it readable, or remove it by hand",
                ) from error
    undo = write.change(
        places,
        dict.fromkeys(before),
        before=before,
        command=f"rm {listed(named or list(before), _NAMED, separator=' ')}",
        last=[CHUNKS.store_path(path) for path in last],
    )
    return tuple(before), undo


def refuse_unmerged(places: Places, paths: Collection[ChunkPath]) -> None:
    """Let no file be written that git holds unmerged, which outlives its operation.

    Such a file comes of ``git stash pop``, say: nothing is under way, and one side of it may be
    nowhere else.

    Args:
        places: Where the store lies.
        paths: The files.

    Raises:
        GitBusyError: One of them is unmerged.
    """
    held = sorted(unmerged(places.chunked).intersection(paths))
    if held:
        names = listed((shown_path(CHUNKS.store_path(path)) for path in held), 1)
        raise GitBusyError(
            f"git has {names} as unmerged: it is not touched until that is resolved",
            remedy="resolve the conflict, 'git add' the file, and run the command again",
        )


_SUFFIX: Final = ".md"
_ANOTHER: Final = "put the texts into another folder"


class WrittenByHand(RefusedError):
    """A text was to take the place of one that a person wrote or edited."""


class NewChunk(Struct, frozen=True, kw_only=True):
    """One text as it is to be written."""

    text: str
    name: str = ""
    """Of the file, without `.md`; "" for one that is made of its text and metadata."""
    metadata: Mapping[str, Any]
    """Keys of the frontmatter; none of ours."""


class Put(JsonObject, Struct, frozen=True, kw_only=True, rename={"problem": "not_embedded"}):
    """What became of texts."""

    SPARSE = "not_embedded"

    paths: tuple[StorePath, ...]
    """The chunk file of each text, in their order."""
    written: tuple[StorePath, ...]
    """The new and changed ones."""
    kept: tuple[StorePath, ...]
    """The ones that a person edited since the same text was put there: they stay."""
    embedded: int = 0
    """Texts sent to the model."""
    reused: int = 0
    """Texts that were embedded before."""
    problem: FilestoreError | None = None
    """Why texts were left without embedding; keywords find them."""
    undo: str | None = None
    """The name that `undo` takes; None where nothing was written."""


def new_chunks(
    texts: str | Sequence[str],
    names: str | Sequence[str | None] | None,
    metadata: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None,
) -> list[NewChunk]:
    """Texts with what is given for them; one of each may be given for a list of one.

    Raises:
        UsageError: There are not as many names or metadata as texts, or one is none.
    """
    every = [texts] if isinstance(texts, str) else list(texts)
    named = _each("names", [names] if isinstance(names, str) else names, every)
    keys = _each("metadata", [metadata] if isinstance(metadata, Mapping) else metadata, every)
    found = []
    for number, (text, name, values) in enumerate(zip(every, named, keys, strict=True), 1):
        shown = f"text {number} of {len(every)}"
        is_table = values is None or (
            isinstance(values, Mapping) and all(isinstance(key, str) for key in values)
        )
        for what, given, expected, is_right in (
            ("text", text, "a str", isinstance(text, str)),
            ("name", name, "a str", isinstance(name, str | None)),
            ("metadata", values, "a mapping of names", is_table),
        ):
            if not is_right:
                was = type(given).__name__
                raise UsageError(f"{shown}: its {what} is to be {expected}, not {was}")
        if not text.strip():
            raise UsageError(f"{shown} is empty: nothing could find it")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"{shown} is not valid UTF-8") from error
        found.append(NewChunk(text=text, name=name or "", metadata=dict(values or {})))
    return found


def _each(what: str, given: Sequence[Any] | None, texts: Sequence[str]) -> Sequence[Any]:
    if given is not None and len(given) != len(texts):
        raise UsageError(f"{len(texts)} texts with {len(given)} {what}: give one for each text")
    return [None] * len(texts) if given is None else given


def put(
    store: "Writing",
    chunks: Sequence[NewChunk],
    folder: str,
    *,
    replace: bool,
    on_progress: OnProgress,
) -> Put:
    """Write texts into a folder of the tree as one change, which is undone as one, and index them.

    Args:
        store: That takes the files.
        chunks: The last one counts where two have the same name.
        folder: Its name; "" for none, in the flat layout.
        replace: Whether what a person wrote or edited may be replaced.
        on_progress: Called with the progress.

    Raises:
        UsageError: A name or a key of metadata cannot be used.
        RefusedError: The layout has no such folders, or its files are made from a source.
        WrittenByHand: A person wrote or edited a file of one of the names.
        GitBusyError: A merge, rebase or the like is under way, or a file is unmerged.
        ChangedMeanwhile: A file was edited at this moment; nothing was written.
    """
    snapshot = store.snapshot
    refuse_during_operation(snapshot.places.root)
    check_texts_folder(snapshot, folder)
    paths = [chunk_path(folder, chunk) for chunk in chunks]
    named = dict(zip(paths, chunks, strict=True))
    disk.make_folders(snapshot.places.chunked)
    write.collect_leftovers(snapshot.places)
    looks = write.look_at_existing(snapshot.places, list(named), snapshot.layout)
    there = {look.path: look for look in looks}
    new = sorted(path.rpartition("/")[2] for path in named.keys() - there.keys())
    _check_alike(os.path.join(snapshot.places.chunked, folder), new)
    kept = set() if replace else _by_hand(there, named)
    wanted = {
        path: chunk_bytes(one, there.get(path)) for path, one in named.items() if path not in kept
    }
    changed = [path for path in wanted if path not in there or there[path].data != wanted[path]]
    refuse_unmerged(snapshot.places, changed)
    before = {CHUNKS.store_path(look.path): look.data for look in looks}
    after = {CHUNKS.store_path(path): wanted[path] for path in changed}
    undo = write.change(snapshot.places, after, before=before, command=f"put {folder or CHUNKED}")
    # What a call left in the tree that was killed is indexed, too.
    stale = list(dict.fromkeys([*changed, *_not_indexed(snapshot, looks)]))
    done = None
    if stale or fulltext_file.findings(snapshot.places, snapshot.catalog, hashes=False):
        with store.open_commit() as commit:
            put_settled(snapshot, commit, stale, store.clock, on_progress)
            done = commit.finish()
    return Put(
        paths=tuple(map(CHUNKS.store_path, paths)),
        written=tuple(map(CHUNKS.store_path, changed)),
        kept=tuple(sorted(map(CHUNKS.store_path, kept))),
        embedded=done.embedded if done else 0,
        reused=done.reused if done else 0,
        problem=done.problem if done else None,
        undo=undo,
    )


def check_texts_folder(snapshot: "StoreSnapshot", folder: str) -> None:
    """Refuse a folder that texts cannot be put into."""
    if not snapshot.layout.has_folders:
        if not folder:
            return
        raise RefusedError(
            "the flat layout has no folders: leave the folder out",
        )
    chunked = snapshot.places.chunked
    check_folders(CHUNKS, chunked, [folder], remedy=_ANOTHER)
    if os.path.lexists(os.path.join(chunked, folder, RECORD_NAME)):
        raise RefusedError(
            f"the chunk files of {folder!r} are made from its source, which would take yours away",
            remedy=_ANOTHER,
        )


def check_folders(tree: Tree, top: str, names: Iterable[str], *, remedy: str) -> None:
    """Refuse folders that a program names, for their names or for what is there.

    Args:
        tree: Whose folders they are.
        top: Where that tree lies.
        names: The first folder in it, one in that, and so on.
        remedy: What helps.

    Raises:
        SourceError: A name is none.
        RefusedError: Something else is there, or a folder whose name is nearly the same.
    """
    around = TOP
    for name in names:
        outer = os.path.join(top, around)
        check_name(name, chosen_in=outer, remedy=remedy)
        around = inside(around, name)
        place = os.path.join(top, around)
        if os.path.lexists(place) and (os.path.islink(place) or not os.path.isdir(place)):
            shown = shown_path(tree.store_path(around))
            raise RefusedError(f"{shown} exists, and is not a folder", remedy=remedy)
        _check_alike(outer, [name], remedy)


def refuse_left_out(places: Places, paths: Sequence[ChunkPath]) -> None:
    """Refuse to write documents where the rules of their folders leave them out."""
    if found := left_out(places, paths):
        raise RefusedError(
            f"{shown_path(min(found))} would be left out of the index by the rules of its folder",
            remedy="choose another folder, or change .gitignore or the ignore list",
        )


def chunk_path(folder: str, chunk: NewChunk) -> ChunkPath:
    """Where a text is written.

    Raises:
        UsageError: Its name is none of a file in this folder.
    """
    if chunk.name:
        name = chunk.name + _SUFFIX
    else:
        name = chunk_file.flat_name(json.dumps(chunk.metadata, default=str), chunk.text, ())
    path = inside(ChunkPath(folder), name)
    if (reason := why_no_name(name)) or not is_truth(CHUNKS.store_path(path)):
        raise UsageError(
            f"{brief(chunk.name)} cannot name a chunk file: {reason or 'it is hidden'}"
            f"; choose a name of at most {MAX_UNITS - len(_SUFFIX)} bytes",
        )
    return path


def _check_alike(folder: str, names: Sequence[str], remedy: str = "choose another name") -> None:
    """Refuse names that some file systems could not tell from one that is there, or each other."""
    there = os.listdir(folder) if os.path.isdir(folder) else []
    known = {folded_path(name): name for name in there}
    for name in names:
        other = known.setdefault(folded_path(name), name)
        if other != name and name not in there:
            raise RefusedError(
                f"{brief(name)} differs only by case or composition from {brief(other)}",
                remedy=remedy,
            )


def _by_hand(
    there: Mapping[ChunkPath, Observation], named: Mapping[ChunkPath, NewChunk]
) -> set[ChunkPath]:
    """The files that a person edited since the same text was put there.

    Raises:
        WrittenByHand: A person wrote one, or edited one that is to get another text.
    """
    kept: set[ChunkPath] = set()
    for path, look in there.items():
        chunk = look.chunk
        if chunk is not None and chunk.origin is not None and not chunk_file.hand_edited(chunk):
            continue
        if chunk is None or chunk.origin != origin_hash(named[path].text):
            shown = shown_path(CHUNKS.store_path(path))
            did = "wrote" if chunk is None or chunk.origin is None else "edited"
            raise WrittenByHand(
                f"a person {did} {shown}, which would be replaced: nothing was written",
                remedy="keep it and choose another name, or replace it: replace=True",
            )
        kept.add(path)
    return kept


def chunk_bytes(chunk: NewChunk, there: Observation | None) -> bytes:
    """The file of a text; what was asked and ordered of the one before stays.

    Raises:
        UsageError: A key is ours, or the file would be larger than one may be.
    """
    check_keys(chunk.metadata)
    before = there.chunk if there is not None else None
    try:
        data = chunk_file.generate(
            body=chunk.text,
            kind="chunk" if chunk_file.kind_of_name(chunk.name + _SUFFIX) == "summary" else None,
            order=before.order if before else None,
            headings=before.headings if before else (),
            pages=before.pages if before else (),
            questions=before.questions if before else (),
            questions_origin=before.questions_origin if before else None,
        )
        split = frontmatter.split(data)
        keys = frontmatter.parse_block(split.block, split.block_line)
        data = frontmatter.serialize({**keys, **chunk.metadata}, split.body)
    except ValueError as error:
        raise UsageError(f"the text {brief(chunk.text)} cannot be written: {error}") from error
    if len(data) > MAX_CHUNK_BYTES:
        raise UsageError(
            f"the text {brief(chunk.text)} has {len(data):,} bytes: a chunk file has at"
            f" most {MAX_CHUNK_BYTES:,}; cut it, or add it as a document",
        )
    return data


def check_keys(metadata: Mapping[str, Any]) -> None:
    """Refuse metadata with keys that mean something in a chunk file.

    Raises:
        UsageError: It has some.
    """
    ours = sorted(set(chunk_file.OUR_KEYS).intersection(metadata))
    if ours:
        raise UsageError(
            f"metadata cannot have {', '.join(ours)}: the store's own keys in a chunk file"
            "; rename the key, as `document_source`",
        )


def _not_indexed(snapshot: "StoreSnapshot", looks: Sequence[Observation]) -> list[ChunkPath]:
    """Files that are there and not as the catalog has them."""
    rows = snapshot.catalog.files([look.path for look in looks])
    return [
        look.path
        for look in looks
        if look.path not in rows or not is_as_recorded(rows[look.path], look)
    ]

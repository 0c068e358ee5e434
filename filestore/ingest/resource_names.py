"""What a source is called in a store: its reference, its resource, the name of its record.

Reads the tree and writes nothing. One rule: two sources never share a resource, and no name is
taken that some file system could not tell from one that is there.
Of originals that were renamed: what a record and its chunk files are under the new names; a
document keeps its chunk files, with whatever a person did to them.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from filestore.chunks import chunk_file
from filestore.chunks.resource_record import Record
from filestore.config.layout import RECORD_NAME, Places, folded_path
from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.paths import CHUNKS, TOP, ChunkPath, inside, is_below
from filestore.core.safe_text import shell_word
from filestore.extract.folder import documents as list_documents
from filestore.extract.folder import is_store
from filestore.git.repository import work_tree
from filestore.history.write import look_at_existing
from filestore.ingest.regenerate import Existing, Lost
from filestore.ingest.sources import SourceError, SourcePath, check_name
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.verify import source_drift


class Named(Struct, frozen=True, kw_only=True):
    """A source with its names."""

    reference: str
    """The source as recorded, relative to the store root."""
    resource: str
    prefix: ChunkPath
    """Folder of the resource, "" in the flat layout."""
    record_path: ChunkPath
    before: Record | None
    """The record that is there."""
    old_record: ChunkPath | None
    """Where that lies, if not where it belongs now."""
    original: str | None
    """Where the original of a copy lies; None where it is used in place."""


class Naming:
    """Names the sources of one store."""

    def __init__(self, snapshot: StoreSnapshot) -> None:
        places, catalog = snapshot.places, snapshot.catalog
        self._reachable = source_drift.reachable(snapshot)
        self._documents = {source: name for _, name, source, _ in catalog.documents()}
        self._patterns = snapshot.settings.ignore
        self._places = places
        self._layout = snapshot.layout
        self._originals = dict(catalog.originals())
        """Where the originals of copies lie, by reference."""
        self._copies = {path: reference for reference, path in self._originals.items()}
        self._root = os.path.realpath(places.root)
        self._owners = dict(catalog.sources_of_resources())
        self._tree = work_tree(places.root)
        self._in_use: dict[str, str] | None = None

    def name(self, source: SourcePath) -> Named:
        """Name a source.

        Raises:
            SourceError: It cannot be a source of this store.
            RefusedError: Its name is in use for another source.
        """
        self._check(source)
        if not source.named and self.is_copied(source):
            # Where a copy lies follows from the name of its resource.
            source = replace(source, resource=self._has_already(source) or source.resource)
        reference = self._reference(source)
        resource = source.resource
        if not source.named:
            # A source whose resource folder was renamed still belongs to that folder.
            resource = self._owner(reference) or resource
        prefix, record_path = self._places_of(resource, reference)
        was = reference if source.was is None else source.was
        old_record = self._places_of(resource, was)[1]
        before = self._read_record(old_record)
        if before is not None and before.source != was:
            record = CHUNKS.store_path(record_path)
            owner = f"{before.source}, as {record} says"
            raise self._taken(source, f"its name is in use; {source.resource!r} is that of {owner}")
        if before is not None and before.resource is not None and not source.named:
            # A file that was renamed since it was added still belongs to its resource.
            resource = before.resource
        if before is None:
            if source.recorded is None:
                self._check_overlap(source, reference, resource)
            # Refuse a name that some file systems could not tell from one that is there.
            other = self._names_in_use().get(folded_path(resource))
            if other is not None and (other != resource or self._layout.shares_folder):
                raise self._taken(
                    replace(source, resource=resource),
                    "its name is in use; another document has it"
                    if other == resource
                    else f"its name differs only by case or composition from {other!r}",
                )
        original = self._original(source, reference, is_there=before is not None)
        return Named(
            reference=reference,
            resource=resource,
            prefix=prefix,
            record_path=record_path,
            before=before,
            old_record=old_record if before is not None and old_record != record_path else None,
            original=original,
        )

    def apart(self, sources: Sequence[SourcePath]) -> list[SourcePath]:
        """The sources of one command, each with a name of its own.

        Of several that are called alike the one that is in the store keeps its name, else the first
        has it; the others are named by their folders, as far up as it takes.
        """
        taken = dict[str, str]()
        ours = [n for n, source in enumerate(sources) if not source.named]
        paths = {n: os.path.realpath(sources[n].path) for n in ours}
        known = {n: name for n in ours if (name := self._has_already(sources[n])) is not None}
        for n, name in known.items():
            taken.setdefault(folded_path(name), paths[n])
        found = list(sources)
        for n in ours:
            name = folded_path(sources[n].resource)
            if n not in known and taken.setdefault(name, paths[n]) != paths[n]:
                found[n] = self._by_folder(sources[n], paths[n], taken)
                taken.setdefault(folded_path(found[n].resource), paths[n])
        return found

    def _by_folder(self, source: SourcePath, path: str, taken: Mapping[str, str]) -> SourcePath:
        name, used = source.resource, self._names_in_use()
        for folder in _folders_around(absolute(source.path)):
            above = os.path.basename(folder).lstrip(".")
            name = f"{above}-{name}" if above else name
            folded = folded_path(name)
            if taken.get(folded) == path or (above and folded not in {*taken, *used}):
                other = taken[folded_path(source.resource)]
                note = f"named by its folder: {source.resource} is the name of {other}"
                return replace(source, resource=name, note=note)
        return source

    def _taken(self, source: SourcePath, message: str) -> RefusedError:
        """The error for a source whose name another one has."""
        name = source.resource
        free = self._by_folder(source, "", {folded_path(name): ""}).resource
        remedy = f"'filestore rm {name}' removes that one; or choose another name with --into"
        if source.typed and free != name:
            remedy = f"filestore add {shell_word(source.typed)} --into {shell_word(free)}"
        return RefusedError(message, remedy=remedy)

    def _has_already(self, source: SourcePath) -> str | None:
        """The resource that was made from a source, which keeps its name; None for a new one."""
        path = os.path.realpath(source.path)
        copied = self.is_copied(source)
        reference = self._copies.get(path, "") if copied else os.path.relpath(path, self._root)
        with contextlib.suppress(FilestoreError):
            return self._owner(reference)
        return None

    def take(self, named: Named, documents: Iterable[str]) -> None:
        """Remember that a resource is there now, with its documents."""
        self._documents |= dict.fromkeys(documents, named.resource)
        self._owners |= {named.reference: named.resource}
        self._names_in_use()[folded_path(named.resource)] = named.resource
        if named.original is not None:
            self._originals[named.reference] = named.original
            self._copies[named.original] = named.reference

    def other_owner(self, document: str, named: Named) -> str:
        """Which other resource has a document already; "" for none."""
        known = named.before.documents if named.before is not None else ()
        owner = self._documents.get(document, "")
        # Where two have it from before, it stays in both.
        is_ours = owner == named.resource or any(one.source == document for one in known)
        return "" if is_ours else owner

    def is_copied(self, source: SourcePath) -> bool:
        """Whether the source lies elsewhere, so that the store keeps a copy."""
        if source.recorded is not None or not source.is_copied:
            return False
        path = os.path.realpath(source.path)
        if is_below(path, os.path.realpath(self._tree)):
            return False
        # What was referenced once stays so.
        return os.path.relpath(path, self._root) not in self._owners

    def is_child(self, source: SourcePath, named: Named) -> bool:
        """Whether a source is one of the children of a folder, each of which is a resource."""
        if named.original is not None:
            return False
        if source.found_in is not None or named.before is None or not named.before.each:
            return source.found_in is not None
        was, now = os.path.dirname(named.before.source), os.path.dirname(named.reference)
        # One that was moved out of the folder is none of its children any more.
        return was == now or not os.path.isdir(self._reachable.folder(was) or "")

    def _check_overlap(self, source: SourcePath, reference: str, resource: str) -> None:
        """Refuse a document that is, or would be at the next update, part of another resource."""
        owner = self._documents.get(reference) or self._owners.get(reference)
        if owner == resource:
            # Its record is lost: it is completed.
            return
        if owner is not None:
            raise _part_of(source.path, owner)
        path = os.path.realpath(source.path)
        copied = self.is_copied(source)
        root = self._root
        folders = {
            self._originals[one] if copied else os.path.normpath(os.path.join(root, one)): one
            for one in self._owners
            if not copied or one in self._originals
        }
        for folder in _folders_around(path):
            if folder not in folders or self._reachable.tree(folder) is None:
                continue
            # Whether the folder has the file, or files of the folder, as its own.
            listing = list_documents(folder, leave_out=root.__eq__, patterns=self._patterns)
            added, below = folders[folder], os.path.relpath(path, folder)
            owner = self._owners[added]
            if any(
                is_below(one, below) and self._documents.get(f"{added}/{one}", owner) == owner
                for one in listing.paths
            ):
                raise _part_of(source.path, owner)

    def _check(self, source: SourcePath) -> None:
        check_name(source.resource, chosen_in=self._places.chunked if source.named else "")
        path, root = os.path.realpath(source.path), self._root
        for derived in (self._places.chunked, self._places.sidecar, self._places.undo):
            if is_below(path, os.path.realpath(derived)):
                raise SourceError(
                    f"{source.path} lies in the store's own {os.path.basename(derived)}/",
                    remedy="'filestore sync' indexes chunk files; add originals",
                )
        for folder in _folders_around(path):
            if is_below(path, Places(root=folder, sidecar="").chunked) and is_store(folder):
                raise SourceError(
                    f"{source.path} lies among the chunk files of the store {folder}"
                    ": add the documents that these were made from",
                )
        if path == root:
            raise SourceError(f"{source.path} is the store itself: add what is around it")

    def _reference(self, source: SourcePath) -> str:
        """The source as recorded: in place inside the work tree, else its copy under `source/`."""
        path = os.path.realpath(source.path)
        if source.recorded is not None:
            reference = source.recorded
        elif not self.is_copied(source):
            reference = os.path.relpath(path, self._root)
        else:
            # A copy keeps the suffix, which tells how it is to be read.
            suffix = "" if os.path.isdir(path) else os.path.splitext(path)[1]
            named_alike = source.resource.lower().endswith(suffix.lower())
            reference = f"source/{source.resource}{'' if named_alike else suffix}"
        try:
            reference.encode("utf-8")
        except UnicodeEncodeError as error:
            raise SourceError(
                "the name of the source is not valid UTF-8: rename it, then add it"
            ) from error
        return reference

    def _original(self, source: SourcePath, reference: str, *, is_there: bool) -> str | None:
        """Two documents from elsewhere with one name are two sources, while both are there."""
        if not self.is_copied(source):
            return None
        path = os.path.realpath(source.path)
        known = self._originals.get(reference, path)
        if is_there and known != path:
            raise self._taken(source, f"its name is in use; {source.resource!r} is that of {known}")
        return path

    def _owner(self, reference: str) -> str | None:
        """The resource that a source has; None where no record says so."""
        owner = self._owners.get(reference)
        if owner is None or self._layout.shares_folder:
            return owner
        there = self._read_record(inside(ChunkPath(owner), RECORD_NAME))
        return owner if there is not None and there.source == reference else None

    def _places_of(self, resource: str, reference: str) -> tuple[ChunkPath, ChunkPath]:
        if self._layout.has_folders:
            folder = ChunkPath(resource)
            return folder, inside(folder, RECORD_NAME)
        from filestore.chunks.chunk_file import record_stem

        return TOP, ChunkPath(f"{record_stem(reference)}.json")

    def _read_record(self, path: ChunkPath) -> Record | None:
        for look in look_at_existing(self._places, [path], self._layout):
            if look.record is None:
                raise SourceError(
                    f"{CHUNKS.store_path(path)} is not a usable record: {look.detail}"
                    "; restore it from git, or remove it and add the source again",
                )
            return look.record
        return None

    def _names_in_use(self) -> dict[str, str]:
        """Names of resources by what a file system that ignores case makes of them."""
        if self._in_use is None:
            try:
                names = os.listdir(self._places.chunked)
            except FileNotFoundError:
                names = []
            if self._layout.shares_folder:
                records_there = [ChunkPath(name) for name in names if name.endswith(".json")]
                looks = look_at_existing(self._places, records_there, self._layout)
                names = [look.record.resource or "" for look in looks if look.record]
            self._in_use = {folded_path(name): name for name in names}
        return self._in_use


def _folders_around(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    while folder != path:
        yield folder
        path, folder = folder, os.path.dirname(folder)


def _part_of(path: str, resource: str) -> RefusedError:
    return RefusedError(
        f"{path} belongs to the document {resource!r}",
        remedy=f"'filestore update {resource}' brings it up to date",
    )


Renames = Mapping[str, str]
"""Document as recorded to what it is called now."""


def renames_found(
    before: Record, source: str, fresh: Mapping[str, str], edited: Renames
) -> dict[str, str]:
    """Which documents of a record were renamed.

    Args:
        before: The record.
        source: What its source is called now.
        fresh: The documents that are there, with their hashes.
        edited: The ones that were edited as well.
    """
    places = {
        one.source: source + one.source[len(before.source) :]
        if is_below(one.source, before.source)
        else one.source
        for one in before.documents
    }
    places |= {old: new for old, new in edited.items() if new in fresh}
    left: dict[str, list[str]] = {}
    for place in fresh.keys() - {*places.values()}:
        left.setdefault(fresh[place], []).append(place)
    for one in before.documents:
        new = left.get(one.hash)
        if new and places[one.source] not in fresh:
            # Of several copies each goes where its name is, if it is anywhere.
            name = one.source.rpartition("/")[2]
            new.sort(key=lambda place: (place.rpartition("/")[2] != name, place))
            places[one.source] = new.pop(0)
    return {old: place for old, place in places.items() if old != place}


def renamed_record(before: Record | None, renames: Renames) -> Record | None:
    """A record with its documents under their new names."""
    if before is None or not renames:
        return before
    documents = (
        replace(one, source=renames.get(one.source, one.source)) for one in before.documents
    )
    return replace(before, documents=tuple(documents))


def renamed_files(existing: Sequence[Existing], renames: Renames) -> list[Existing]:
    """Chunk files that name their documents as they are called now."""
    found = []
    for file in existing:
        source = renames.get(file.chunk.source or "")
        if source is not None and not file.excluded:
            data = chunk_file.update(file.data, source=source)
            file = replace(file, data=data, chunk=replace(file.chunk, source=source))
        found.append(file)
    return found


def renamed_lost(deleted: Iterable[Lost], renames: Renames) -> list[Lost]:
    """Deleted chunk files with the documents that they named."""
    return [
        replace(one, source=renames.get(one.source, one.source)) if one.source else one
        for one in deleted
    ]


def in_order(sources: Iterable[str], before: Record | None, gone: set[str]) -> list[str]:
    """The documents of a record, the ones that are gone after what they followed before."""
    ordered = list(sources)
    previous = ""
    for one in before.documents if before is not None else ():
        if one.source in gone:
            at = ordered.index(previous) + 1 if previous in ordered else 0
            ordered.insert(at, one.source)
        previous = one.source
    return ordered

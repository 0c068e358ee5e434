"""A collection into a store: chunk files and records written, then indexed, with their vectors.

One rule: what a person has is not overwritten in silence. A resource that is there and differs is
left alone unless it is to be replaced, and whatever is written or removed can be undone.
"""

import os
import random
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Final

import orjson
from msgspec import Struct, field

from filestore.chunks import frontmatter, resource_record
from filestore.chunks.chunk_file import parse
from filestore.chunks.observation import Observation
from filestore.config.layout import folded_path
from filestore.core.errors import FilestoreError
from filestore.core.hashing import content_hash
from filestore.core.limits import Counter, LimitExceededError
from filestore.core.paths import CHUNKS, ChunkPath, StorePath, inside
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import brief, listed, shown_path
from filestore.exchange.base import (
    Chunk,
    Collection,
    FormDamaged,
    Imported,
    ImportedResource,
    ImportOptions,
    Resource,
    SourceMissingError,
    open_form,
)
from filestore.exchange.incoming import (
    Names,
    ResourceNames,
    UnusableChunkError,
    Vectors,
    written,
)
from filestore.fs import disk
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.git import repository
from filestore.history import write
from filestore.sidecar import fulltext_file
from filestore.sidecar.refusals import refuse_useless
from filestore.sidecar.session import Parts
from filestore.sync.actions import put_settled

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.embed.cache import EmbeddingCache
    from filestore.sidecar.commit import CommitReport

COMMAND: Final = "import"
_FILES_AT_ONCE: Final = 2_000
_BYTES_AT_ONCE: Final = 32 * 1024 * 1024
"""No more is held before it is written."""


def import_from(
    parts: Parts,
    form: str,
    source: str,
    wanted: ImportOptions,
    *,
    wait_s: float = DEFAULT_WAIT_S,
    on_progress: OnProgress = ignore,
) -> Imported:
    """Take what a file or folder holds into a store.

    What was written before a kill is whole; `sync` indexes it, and the next call takes the rest.

    Raises:
        NotWrittenError: The store's truth are documents.
        UnknownFormError: There is no such form.
        LimitExceededError: It is more than is taken.
        SourceMissingError: There is nothing at the path.
        FormDamaged: The source cannot be used; what was taken before is in the store.
        GitBusyError: A merge, rebase or the like is under way.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; what was written before stays.
    """
    refuse_useless(parts.places, COMMAND)
    name = shown_path(os.path.basename(source))
    try:
        # Counting is quick, and nothing is written of what turns out to be too much further on.
        for _ in open_form(form).read(source).counted(Counter(wanted.limits, name)):
            pass
        collection = open_form(form).read(source)
    except FileNotFoundError as error:
        raise SourceMissingError(f"no such file or folder: {source}; check the path") from error
    except OSError as error:
        disk.pass_limits(error)
        raise _unreadable(error) from error
    return _take(parts, collection, wanted, name, wait_s, on_progress)


def _unreadable(error: OSError) -> FormDamaged:
    return FormDamaged(f"it cannot be read: {error.strerror or error}; name what can be read")


def _take(
    parts: Parts,
    collection: Collection,
    wanted: ImportOptions,
    name: str,
    wait_s: float,
    on_progress: OnProgress,
) -> Imported:
    work = _Taking(
        _parts=parts,
        _collection=collection,
        _wanted=wanted,
        _name=name,
        _on_progress=on_progress,
    )
    if wanted.plan:
        work.keep_vectors()
        work.pass_through()
        return work.report(None)
    parts.model.ask()
    repository.refuse_during_operation(parts.places.root)
    with parts.writing(COMMAND, wait_s=wait_s) as (catalog, embeddings, _), ExitStack() as stack:
        disk.make_folders(parts.places.chunked)
        write.collect_leftovers(parts.places)
        stack.enter_context(work.keep_vectors())
        problem: FilestoreError | None = None
        try:
            work.pass_through()
        except (FormDamaged, LimitExceededError) as error:
            problem = error
        done = work.finish(catalog, embeddings)
        if problem is not None:
            if work.group:
                problem.remedy += f"; 'filestore undo {work.group}' takes back what was read before"
            raise problem
    return work.report(done)


class _Pending(Struct):
    """Files that wait to be written."""

    changes: dict[StorePath, bytes | None] = field(default_factory=dict)
    before: dict[StorePath, bytes | None] = field(default_factory=dict)
    size_bytes: int = 0


class _Target(Struct):
    """One resource of the store that is written to."""

    names: ResourceNames
    report: ImportedResource
    existing: dict[str, ChunkPath]
    """What a file system that ignores case makes of the paths that are there, to these."""
    is_new: bool = False
    """Whether nothing of it was there."""
    kept: set[ChunkPath] = field(default_factory=set)
    """Paths of what came."""


class _Taking(Struct, kw_only=True, dict=True):
    """One import under way."""

    _parts: Parts
    _collection: Collection
    _wanted: ImportOptions
    _name: str
    _on_progress: OnProgress
    _targets: dict[str, _Target] = field(default_factory=dict)
    _pending: _Pending = field(default_factory=_Pending)
    _written: dict[ChunkPath, None] = field(default_factory=dict)
    _removed: dict[ChunkPath, None] = field(default_factory=dict)
    _unchanged: dict[ChunkPath, bytes] = field(default_factory=dict)
    """Files that were there as they came, with the hash of their bytes."""
    _vectors: Vectors | None = None
    _chunks: int = 0
    _renamed: int = 0
    group: str = ""
    """Under which name the originals of all changes are kept; "" while nothing was written."""
    no_vectors: str = ""
    vectors: int = 0
    compared: int = 0

    def __post_init__(self) -> None:
        self._places, self._layout = self._parts.places, self._parts.layout
        self._counter = Counter(self._wanted.limits, self._name)
        self._names = Names(self._layout)
        self._unmerged = repository.unmerged(self._places.chunked)
        self.left_out = self._collection.left_out

    # Reading

    def pass_through(self) -> None:
        """Write what comes, as it comes; only count it in a plan.

        Raises:
            FormDamaged: It cannot be read to its end.
        """
        resources = self._collection.counted(self._counter)
        while True:
            try:
                resource = next(resources, None)
            except OSError as error:
                disk.pass_limits(error)
                raise _unreadable(error) from error
            if resource is None:
                break
            self._take(resource)
            self._chunks += len(resource.chunks)
            self._on_progress(Progress(stage="importing", done=self._chunks, total=None))
        for target in self._targets.values():
            if not self._wanted.replace or target.report.status == "refused":
                continue
            # What a resource that is replaced had otherwise goes, but nothing a person wrote.
            others = [path for path in target.existing.values() if path not in target.kept]
            for path, data in self._read(others).items():
                try:
                    is_made = parse(data).origin is not None
                except ValueError:
                    is_made = False
                if is_made:
                    target.report.status = "replaced"
                    target.report.files += 1
                    self._want(path, None, data)
        self._flush()

    def _take(self, resource: Resource) -> None:
        if not self._collection.model and any(chunk.vectors for chunk in resource.chunks):
            self.no_vectors = "nothing says which model they come from"
        names = self._names.of(resource)
        target = self._targets.get(resource.name)
        is_first = target is None
        if target is None:
            target = self._targets[resource.name] = self._target(names)
        looks = list(self._looks(resource, names))
        changes: dict[ChunkPath, bytes] = {look.path: look.data for look, _ in looks}
        record = self._record(resource, names)
        if record is not None:
            changes[names.record_path] = record
        if target.report.status == "refused":
            return
        self._put(target, changes, is_first=is_first, has_record=record is not None)
        if self._vectors is not None and target.report.status != "refused":
            self._vectors.take(
                [
                    (CHUNKS.store_path(look.path), look.texts[part], look.keys[part], vector)
                    for look, chunk in looks
                    for part, vector in chunk.vectors.items()
                    if 0 <= part < len(look.keys)
                ]
            )

    def _looks(
        self, resource: Resource, names: ResourceNames
    ) -> Iterator[tuple[Observation, Chunk]]:
        """The chunk files of a resource, with the chunks that they are made of."""
        for number, chunk in enumerate(resource.chunks, 1):
            path, frontmatter = names.place(chunk)
            self._renamed += chunk.path not in ("", path)
            reasons: list[str] = []
            try:
                yield written(path, chunk.text, frontmatter, self._layout, reasons.append), chunk
            except UnusableChunkError as error:
                reasons.append(str(error))
            for reason in reasons:
                called = chunk.path or f"{resource.name}, chunk {number}"
                self.left_out.add(f"{called}: {reason}")

    def _record(self, resource: Resource, names: ResourceNames) -> bytes | None:
        if resource.record is None:
            return None
        if not names.name:
            self.left_out.add("a record that names no document")
            return None
        try:
            data = orjson.dumps(
                names.record(resource.record),
                option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
            )
            resource_record.parse(data)
        except (TypeError, ValueError, FilestoreError) as error:
            self.left_out.add(f"the record of {brief(resource.name)}: {error}")
            return None
        return data

    # What is there already

    def _target(self, names: ResourceNames) -> _Target:
        report = ImportedResource(resource=names.name)
        target = _Target(names=names, report=report, existing={})
        if self._layout.has_folders and names.name:
            folder = os.path.join(self._places.chunked, names.name)
            try:
                if not stat.S_ISDIR(os.lstat(folder).st_mode):
                    report.reason = "a file or a link has its name"
            except FileNotFoundError:
                target.is_new = True
                if other := self._folders_there.get(folded_path(names.name)):
                    report.reason = f"differs only by case or composition from {other}"
            if report.reason:
                report.status = "refused"
                return target
            there = [inside(ChunkPath(names.name), one) for one in write.chunk_files(folder)]
            target.existing = {folded_path(path): path for path in there}
        return target

    @cached_property
    def _folders_there(self) -> dict[str, str]:
        """What a file system that ignores case makes of the names there were at first."""
        try:
            return {folded_path(name): name for name in os.listdir(self._places.chunked)}
        except FileNotFoundError:
            return {}

    def _put(
        self,
        target: _Target,
        changes: dict[ChunkPath, bytes],
        *,
        is_first: bool,
        has_record: bool,
    ) -> None:
        """Let the files of a part be written, unless they would overwrite what is not to be."""
        target.kept |= changes.keys()
        has_place = bool(target.names.name) and is_first
        paths = [*changes, *([target.names.record_path] if has_place and not has_record else [])]
        try:
            before = {} if target.is_new else self._read(paths)
        except OSError as error:
            self._refuse(target, f"{error.filename or 'a file'}: {error.strerror or error}")
            return
        differing = [
            path
            for path, data in before.items()
            if path not in changes or not self._is_same(path, data, changes[path])
        ]
        reason = self._why_refused(target, changes, before, differing, is_first=is_first)
        if reason:
            self._refuse(target, reason)
            return
        wanted = {
            path: data for path, data in changes.items() if path in differing or path not in before
        }
        same = before.keys() & changes.keys() - wanted.keys()
        self._unchanged |= {path: content_hash(before[path]) for path in same}
        if wanted or not target.report.status:
            was = target.report.status
            status = "replaced" if differing else "added" if wanted else "unchanged"
            target.report.status = "replaced" if was == "replaced" else status
        target.report.files += len(wanted)
        for path, data in wanted.items():
            self._want(path, data, before.get(path))

    def _why_refused(
        self,
        target: _Target,
        changes: dict[ChunkPath, bytes],
        before: dict[ChunkPath, bytes],
        differing: Sequence[ChunkPath],
        *,
        is_first: bool,
    ) -> str:
        held = self._unmerged.intersection(changes)
        if held:
            return f"git has {CHUNKS.store_path(min(held))} as unmerged"
        for path in changes:
            there = target.existing.get(folded_path(path), path)
            if there != path:
                return f"{path} differs only by case or composition from {there}"
        if self._wanted.replace:
            return ""
        if differing:
            names = listed(map(CHUNKS.store_path, differing), 1)
            return f"{names} is there and differs"
        if is_first and target.existing and not before:
            return "its name is in use for other chunk files"
        return ""

    def _read(self, paths: Sequence[ChunkPath]) -> dict[ChunkPath, bytes]:
        """What those of some files hold that are there.

        Raises:
            OSError: One is there and cannot be read.
        """
        found: dict[ChunkPath, bytes] = {}
        if not os.path.isdir(self._places.chunked):
            return found
        with disk.folder_at(self._places.chunked) as folder:
            for path in paths:
                try:
                    found[path] = disk.read_below(folder, path)[0]
                except FileNotFoundError:
                    continue
                except disk.NotAFileError as error:
                    raise OSError(0, error.message, path) from error
        return found

    def _is_same(self, path: ChunkPath, data: bytes, wanted: bytes) -> bool:
        is_record = self._layout.is_record(path.rpartition("/")[2])
        read = orjson.loads if is_record else frontmatter.parse
        try:
            return data == wanted or bool(read(data) == read(wanted))
        except ValueError:
            return False

    def _refuse(self, target: _Target, reason: str) -> None:
        target.report.status, target.report.reason = "refused", reason

    # Writing

    def _want(self, path: ChunkPath, data: bytes | None, before: bytes | None) -> None:
        (self._removed if data is None else self._written)[path] = None
        if self._wanted.plan:
            return
        store_path = CHUNKS.store_path(path)
        self._pending.changes[store_path] = data
        self._pending.before[store_path] = before
        self._pending.size_bytes += len(data or b"") + len(before or b"")
        if (
            len(self._pending.changes) >= _FILES_AT_ONCE
            or self._pending.size_bytes >= _BYTES_AT_ONCE
        ):
            self._flush()

    def _flush(self) -> None:
        pending, self._pending = self._pending, _Pending()
        if not pending.changes:
            return
        batch = write.change(
            self._places,
            pending.changes,
            before=pending.before,
            command=COMMAND,
            group=self.group,
            collects=not self.group,
        )
        self.group = self.group or batch or ""

    def keep_vectors(self) -> ExitStack:
        """Keep vectors aside from here on, if they may be taken; a context."""
        stack = ExitStack()
        model, dimension = self._collection.model, self._collection.dimension
        embedder = self._parts.model.embedder
        if not model:
            return stack
        if embedder is None:
            if not self._wanted.unchecked:
                why = self._parts.model.why_not.message
                self.no_vectors = f"they cannot be checked: {why}; --unchecked takes them"
        elif embedder.fingerprint != model or embedder.dimension != dimension:
            self.no_vectors = f"they come from {brief(model)}, not from {embedder.fingerprint}"
        if not self.no_vectors and not self._wanted.plan:
            self._vectors = Vectors(self._places.sidecar, dimension, random.SystemRandom())
            stack.enter_context(self._vectors)
        return stack

    def finish(
        self, catalog: "CatalogWriter", embeddings: "EmbeddingCache"
    ) -> "CommitReport | None":
        """Put vectors that hold into the embeddings, and index what was written."""
        self._flush()
        self._keep_vectors(embeddings)
        # An import that was killed before it indexed leaves such files.
        known = catalog.files(list(self._unchanged))
        paths = [*self._written]
        for path, digest in self._unchanged.items():
            if path not in known or known[path].file_hash != digest:
                paths.append(path)
        # One that was killed after that leaves the full-text index behind.
        behind = fulltext_file.findings(self._parts.places, catalog, hashes=False)
        if not (paths or self._removed or behind):
            return None
        snapshot = self._parts.snapshot(catalog, embeddings)
        with self._parts.commit(catalog, embeddings, embed=self._wanted.embed) as commit:
            commit.forget(list(self._removed))
            put_settled(snapshot, commit, paths, self._parts.clock(), self._on_progress)
            return commit.finish()

    def _keep_vectors(self, embeddings: "EmbeddingCache") -> None:
        vectors, embedder = self._vectors, self._parts.model.embedder
        if vectors is None:
            return
        if vectors.refused:
            self.left_out.add(
                f"{vectors.refused:,} of the vectors: of another dimension or length, or not finite"
            )
        if not vectors.count:
            return
        if embedder is not None:
            self.compared = vectors.compared
            self.no_vectors = vectors.problem(embedder)
        if not self.no_vectors:
            vectors.keep(embeddings, self._collection.model)
            self.vectors = vectors.count

    def report(self, done: "CommitReport | None") -> Imported:
        """What was taken."""
        return Imported(
            resources=tuple(target.report for target in self._targets.values()),
            planned=self._wanted.plan,
            files=len(self._written) + len(self._removed),
            rows=self._counter.found.rows,
            size_bytes=self._counter.found.bytes,
            limits=self._wanted.limits,
            renamed=self._renamed,
            vectors=self.vectors,
            compared=self.compared,
            no_vectors=self.no_vectors,
            left_out=tuple(self.left_out),
            more_left_out=self.left_out.more,
            embedded=done.embedded if done else 0,
            reused=done.reused if done else 0,
            not_embedded=done.problem if done else None,
            undo=self.group or None,
        )

"""What a plan is made of: what the files of findings hold, where lost ones come from.

Reads files, catalog, embeddings and git; changes nothing and decides nothing.
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import Catalog, Conflict
from filestore.chunks import resource_record
from filestore.chunks.kept import conflict_lines
from filestore.chunks.observation import INDEXED, Observation
from filestore.chunks.relinking import UnlinkableError
from filestore.core.caller import working_folder
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash
from filestore.core.paths import NO_PATH, ChunkPath, StorePath, inside
from filestore.core.progress import OnProgress, Progress
from filestore.core.safe_text import shell_word, shown_path
from filestore.git import attributes, repository, stopped
from filestore.git.attributes import attributes_in
from filestore.history.batch import may_change
from filestore.repair import planner
from filestore.repair.plan import ABSENT, Policy, Step
from filestore.repair.planner import Inspection, Look, Restorable
from filestore.repair.tree_files import (
    KeptBytes,
    Recorded,
    Restoring,
    TreeReader,
    difference,
    source_state,
    state_of,
)
from filestore.sidecar.losses import walk
from filestore.verify import drift, environment, recorded_state
from filestore.verify.recorded_state import resolve

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot


_SIDES: Final = ("ours", "theirs")


class Inspector:
    """Inspects one store in one generation."""

    def __init__(
        self,
        snapshot: "StoreSnapshot",
        policy: Policy,
        *,
        has_catalog: bool,
        on_progress: OnProgress,
    ) -> None:
        """Prepare.

        Args:
            snapshot: The store; its catalog inside a snapshot.
            policy: What a person wants done.
            has_catalog: False where the catalog is an empty one.
            on_progress: Called with the number of files read.
        """
        self._snapshot = snapshot
        self._places = snapshot.places
        self._tree = snapshot.places.tree
        self._catalog: Catalog = snapshot.catalog
        self._policy = policy
        self._has_catalog = has_catalog
        self._on_progress = on_progress
        self._restoring = Restoring(snapshot.places, snapshot.catalog)
        self._reader = TreeReader(snapshot)
        self._recorded = Recorded(snapshot)
        self._looks: dict[StorePath, Look] = {}
        self._tree_bytes = 0

    def inspect(self, findings: Iterable[Finding], unsound: Sequence[bytes] = ()) -> Inspection:
        """Everything a plan for these findings needs to know.

        Args:
            findings: Of one verification.
            unsound: Keys of texts whose vector it found to be wrong.
        """
        found = [finding for finding in findings if self._policy.concerns(finding)]
        codes = {finding.code for finding in found}
        is_asked = self._policy.truth or bool(self._policy.paths)
        gone: tuple[StorePath, ...] = ()
        if "mass-missing" in codes and is_asked:
            paths = map(self._tree.store_path, drift.detect(self._snapshot).gone)
            gone = tuple(filter(self._policy.names, paths))
        named = {one.path for one in found if one.meaning.step or one.meaning.excluded}
        named.update(self._policy.lost, self._policy.remove)
        # Neighbours are read together.
        self._look(sorted(self._tree.chunk_paths(named)))
        restorable = self._restorable(found, gone)
        prepared = dict(self._prepared(found))
        reasons = dict(self._reasons(found))
        steps = {finding.meaning.step for finding in found}
        everything = self._all_keys() if "rebuild-catalog" in steps else ()
        unembedded = self._unembedded(steps)
        keys = {key for look in self._looks.values() for key in look.keys}
        keys |= {k for one in prepared.values() if isinstance(one, Step) for k in one.wanted}
        embeddings = _size(self._places.embeddings)
        return Inspection(
            tree=self._tree,
            identity=self._catalog.identity if self._has_catalog else "",
            generation=self._catalog.generation if self._has_catalog else 0,
            looks=self._looks,
            restorable=restorable,
            gone=gone,
            prepared=prepared,
            reasons=reasons,
            unembedded=unembedded,
            unsound=tuple(unsound),
            all_keys=everything,
            part_bytes={
                "rebuild-catalog": self._tree_bytes,
                "salvage": embeddings,
                "rebuild-index": embeddings,
                "rebuild-fulltext": _size(self._places.catalog),
            },
            embedded=self._embedded({*keys, *unembedded, *everything}) - set(unsound),
            model=self._snapshot.embedder.fingerprint
            if self._snapshot.embedder is not None
            else ("" if self._snapshot.no_model else self._snapshot.settings.embedder),
        )

    # Files of the tree

    def _look(self, paths: Sequence[ChunkPath]) -> None:
        rows = self._catalog.files(paths)
        total = len(paths)
        for number, (path, seen) in enumerate(self._reader.each(paths)):
            if number % 1000 == 0:
                self._on_progress(Progress(stage="reading files", done=number, total=total))
            name, row = self._tree.store_path(path), rows.get(path)
            if not isinstance(seen, Observation):
                self._looks[name] = Look(state=seen)
                continue
            self._looks[name] = Look(
                state=state_of(seen),
                keys=tuple(dict.fromkeys(seen.keys)),
                size_bytes=seen.values[0],
                recorded=row is not None and drift.is_as_recorded(row, seen),
            )

    def _restorable(
        self, findings: Sequence[Finding], gone: Sequence[StorePath]
    ) -> dict[StorePath, Restorable]:
        found: dict[StorePath, Restorable] = {}
        lost = {*gone, *self._policy.lost}
        for finding in findings:
            if finding.code == "missing" and self._policy.truth:
                lost.add(finding.path)
            elif finding.code == "bit-rot":
                self._offer(
                    found,
                    finding.path,
                    self._restoring.recorded(self._tree.chunk_path(finding.path)),
                )
            elif finding.code == "record-invalid":
                kept = self._restoring.last_good_record(self._tree.chunk_path(finding.path))
                self._offer(found, finding.path, kept)
        for number, path in enumerate(sorted(lost)):
            if number % 100 == 0:
                self._on_progress(Progress(stage="looking back", done=number, total=len(lost)))
            self._offer(found, path, self._restoring.newest(self._tree.chunk_path(path)))
        return found

    def _offer(
        self, found: dict[StorePath, Restorable], path: StorePath, kept: KeptBytes | None
    ) -> None:
        if kept is None:
            return
        found[path] = Restorable(
            place=kept.place,
            hash=kept.hash,
            blob=kept.blob,
            size_bytes=len(kept.data),
            diff=difference(path, self._reader.held(path), kept.data),
            differs=not kept.intact,
        )

    # What the parts need

    def _unembedded(self, steps: set[str]) -> tuple[bytes, ...]:
        if not steps & {"embed", "salvage"}:
            return ()
        missing = {key for _, key in self._catalog.vector_keys(embedded=False)}
        if "salvage" in steps:
            missing.update(key for _, key in self._catalog.vector_keys())
        return tuple(missing)

    def _all_keys(self) -> tuple[bytes, ...]:
        """The keys of all texts of the tree: what a new catalog would ask embeddings for."""
        tree = walk(self._places, processes=self._snapshot.processes)
        paths = [
            inside(folder, name)
            for folder, packed in tree.folders.items()
            for name in packed.entries()
        ]
        keys: dict[bytes, None] = {}
        for number, (_, seen) in enumerate(self._reader.each(paths)):
            if number % 1000 == 0:
                self._on_progress(Progress(stage="reading files", done=number, total=len(paths)))
            if isinstance(seen, Observation) and seen.state == INDEXED:
                keys |= dict.fromkeys(seen.keys)
                self._tree_bytes += seen.values[0]
        return tuple(keys)

    def _embedded(self, keys: set[bytes]) -> frozenset[bytes]:
        """Those of the keys that have a sound embedding."""
        embeddings, embedder = self._snapshot.embeddings, self._snapshot.embedder
        if not keys or embeddings is None or embedder is None:
            return frozenset()
        from filestore.embed.cache import EmbeddingsDamaged

        try:
            damaged = set(embeddings.verify(embedder.fingerprint)) if embeddings.damaged else set()
            return frozenset(embeddings.has(embedder.fingerprint, keys) - damaged)
        except EmbeddingsDamaged:
            return frozenset()

    # Changes of truth files that need more than a file's own bytes

    def _prepared(
        self, findings: Sequence[Finding]
    ) -> Iterable[tuple[tuple[str, StorePath], Step | str]]:
        for finding in findings:
            code, path = finding.code, finding.path
            if code == "link-dangling":
                yield ("relink", path), self._relink(path)
            elif code == "ingest-conflict":
                for side, chosen in (("ours", self._policy.ours), ("theirs", self._policy.theirs)):
                    if path in chosen:
                        yield (f"resolve-{side}", path), self._resolve(path, f"resolve-{side}")
            elif code == "conflict-markers" and (sides := self._policy.sides(path)):
                yield (planner.take_kind(sides), path), self._sided(path)
            elif code == "source-missing" and code in self._policy.only:
                yield ("remove", path), self._remove(path, finding.other)
            elif code == "unsafe-attributes":
                yield ("rewrite-attributes", path), self._attributes(path)
            elif finding.meaning.step == "reingest":
                yield ("reingest", path), self._reingest(path)
        for path in self._policy.remove:
            yield ("remove-duplicate", path), self._without(path)

    def _attributes(self, path: StorePath) -> Step | str:
        found = attributes_in(self._places.root)
        if found is None and os.path.lexists(os.path.join(self._places.root, path)):
            return "it is not a regular file: replace it with one"
        data = found or b""
        made = attributes.corrected(data)
        return Step(
            kind="rewrite-attributes",
            path=path,
            codes=(),
            seen={path: source_state(self._snapshot, path)},
            detail=environment.losses(environment.committed_copies(self._places)),
            read_bytes=len(data),
            write_bytes=len(made),
            hash=content_hash(made).hex(),
            diff=difference(path, data, made, most=None),
        )

    def _relink(self, path: StorePath) -> Step | str:
        data, other = self._reader.held(path), NO_PATH
        try:
            made = self._recorded.relinked(path, data)
        except UnicodeDecodeError:
            return "fix the link: the file is not UTF-8"
        except UnlinkableError as error:
            return f"fix the link: {error.message}"
        if made.data == data:
            return "fix the link: its target is unknown or uncertain"
        is_own = self._tree.holds(path)
        state = self._looks[path].state if is_own else self._reader.state(path)
        if state.stat is not None and not state.stat[4] & 0o222:
            return f"the file is read-only: chmod u+w {shown_path(shlex.quote(path))}"
        seen = {path: state}
        detail = ""
        if not (self._tree.is_written and is_own):
            detail = f"{made.links:,} link{'' if made.links == 1 else 's'} to files that moved"
        own = None if self._tree.is_written else self._tree.chunk_path(path)
        if own is not None and (old := self._recorded.lost_links.old(own)):
            seen[other := self._tree.store_path(old)] = ABSENT
        return Step(
            kind="relink",
            path=path,
            codes=(),
            other=other,
            detail=detail,
            findings=max(made.links, 1),
            seen=seen,
            read_bytes=len(data),
            write_bytes=len(made.data),
            hash=content_hash(made.data).hex(),
            diff=difference(path, data, made.data),
            texts=0 if is_own else None,
            wanted=self._keys(path, made.data) if is_own else frozenset(),
        )

    @cached_property
    def _conflicts(self) -> dict[StorePath, Conflict]:
        found = recorded_state.open_conflicts(self._snapshot)
        return {self._tree.store_path(one.path): one for one in found}

    def _reasons(self, findings: Iterable[Finding]) -> Iterable[tuple[tuple[str, StorePath], str]]:
        """What a person can do about findings that no step repairs, where the store tells more."""
        for finding in findings:
            code, path = finding.code, finding.path
            conflict = self._conflicts.get(path) if code == "ingest-conflict" else None
            if conflict is not None and conflict.theirs is None:
                yield (
                    (code, path),
                    "'filestore repair --ours PATH' keeps the file, '--theirs PATH' deletes it, as"
                    " its text is gone from the source",
                )
            elif code == "conflict-markers" and conflict_lines(self._reader.held(path)) is not None:
                word = shell_word(path)
                yield (
                    (code, path),
                    f"filestore repair --ours {word} takes one side, --theirs {word} the other; or"
                    " edit it. Until then it is left out",
                )
            elif code == "model-changed" and not self._snapshot.no_model:
                both = (self._catalog.vector_keys(embedded=one) for one in (True, False))
                keys = {key for pairs in both for _, key in pairs}
                known = len(self._embedded(keys))
                price = f"{len(keys) - known:,} passages to embed, {known:,} from cache"
                yield (code, path), f"{finding.repair}: {price}"

    def _resolve(self, path: StorePath, kind: str) -> Step | str:
        conflict, data = self._conflicts.get(path), self._reader.held(path)
        if conflict is None:
            return "the source changed again: 'filestore add' it first"
        marks, seen = conflict_lines(data), self._reader.observed(path)
        if marks is not None and seen is not None and seen.state != INDEXED:
            where = f"the conflict markers are in lines {marks[0]}, {marks[1]} and {marks[2]}"
            return f"resolve git's conflict in it first: {where}"
        try:
            made = resolve(data, conflict, "ours" if kind == "resolve-ours" else "theirs")
        except FilestoreError as error:
            return error.message
        done = "the file goes, as its text went from the source; " if made is None else ""
        return Step(
            kind=kind,
            path=path,
            codes=(),
            seen={path: self._looks[path].state},
            detail=f"{done}then its source is re-ingested",
            read_bytes=len(data),
            write_bytes=len(made or b""),
            hash=content_hash(made).hex() if made is not None else "",
            # A person who gives an edit up has to see all of it.
            diff=difference(path, data, made or b"", most=None),
            wanted=self._keys(path, made) if made is not None else frozenset(),
        )

    def _sided(self, path: StorePath) -> Step | str:
        now = self._reader.look(path)
        if now[1] is None and now[0] != ABSENT:
            return "it cannot be read"
        if not may_change(path, self._tree):
            ours, theirs = (stopped.side_command(self._places.root, path, one) for one in _SIDES)
            return f"no command writes such a file: {ours} takes our side, {theirs} theirs"
        if path in self._conflicts:
            return "an ingest conflict is pending there, too: resolve the markers in an editor"
        root = self._places.root
        staged = repository.staged(root, path)
        step = planner.taken(
            path,
            now,
            self._policy.sides(path),
            staged=staged,
            names=stopped.side_names(root, path),
            interpreted=self._interpreted,
        )
        if isinstance(step, str):
            return step
        # With its markers added, a commit would keep them, although the file is resolved.
        if staged is None and repository.blob(root, path, "") != now[1]:
            return step
        command = stopped.add_command([os.path.join(root, path)], working_folder())
        return replace(step, detail=f"{step.detail}; then: {command}")

    def _without(self, path: StorePath) -> Step | str:
        seen = self._reader.observed(path)
        if seen is None:
            return "it cannot be read"
        goes = {self._tree.chunk_path(path) for path in self._policy.remove}
        owners = self._catalog.files_of_vectors(seen.vector_ids()[:1])
        ids = [file for pairs in owners.values() for file, part in pairs if not part]
        paths = sorted(set(self._catalog.indexed_paths(ids).values()) - goes)
        twins = (
            other
            for _, other in self._reader.each(paths)
            if isinstance(other, Observation) and planner.is_twin(seen, other)
        )
        return planner.without(self._tree, path, seen, next(twins, None))

    def _interpreted(self, path: StorePath, data: bytes) -> Observation:
        """What these bytes would mean in a file."""
        seen = Observation(
            path=self._tree.chunk_path(path), values=(0, 0, 0, 0, 0), state=INDEXED, data=data
        )
        self._snapshot.layout.interpret(seen, os.path.basename(path))
        return seen

    def _keys(self, path: StorePath, data: bytes) -> frozenset[bytes]:
        """Of the texts that would be embedded of a chunk file with these bytes."""
        return frozenset(self._interpreted(path, data).keys)

    def _reingest(self, path: StorePath) -> Step | str:
        found = self._recorded.record_of(path)
        if found is None:
            return "no record names this source; add it again"
        _, record, document = found
        documents = [document] if document is not None else list(record.documents)
        sources = [StorePath(one.source) for one in documents]
        if self._waiting.intersection(sources):
            return "choose first, with --ours or --theirs, in its files"
        seen = {source: source_state(self._snapshot, source) for source in sources}
        if document is not None and seen[path].hash == document.hash:
            return "its copy is as it was: 'filestore add' the original"
        rows = [row for one in documents for row in self._recorded.made_of(record, one)]
        edited = sum(row.edited for row in rows)
        files = "1 chunk file" if len(rows) == 1 else f"{len(rows):,} chunk files"
        hand = f" ({edited:,} edited by hand)" if edited else ""
        may = f"up to {files}{hand} may change, others come; passages are counted once it is read"
        return Step(
            kind="reingest",
            path=path,
            codes=(),
            seen=seen,
            detail=may,
            read_bytes=sum(state.stat[0] for state in seen.values() if state.stat),
            texts=None,
        )

    @cached_property
    def _waiting(self) -> set[str]:
        """Documents whose new text waits for a choice: re-ingested, it would wait again."""
        rows = self._catalog.files([conflict.path for conflict in self._conflicts.values()])
        return {self._catalog.source_of(row) or "" for row in rows.values()}

    def _remove(self, path: StorePath, place: StorePath) -> Step | str:
        if place:
            return f"it was renamed: 'filestore update' follows it to {place}"
        found = self._recorded.record_of(path)
        if found is None or found[2] is None:
            return "no record names this source"
        rows = self._recorded.made_of(found[1], found[2])
        edited = sum(row.edited for row in rows)
        paths = [row.path for row in rows] + [found[0]]
        seen = {path: source_state(self._snapshot, path)}
        seen |= {path: self._reader.state(path) for path in map(self._tree.store_path, paths)}
        words = "1 chunk file" if len(rows) == 1 else f"{len(rows):,} chunk files"
        left = tuple(one for one in found[1].documents if one != found[2])
        return Step(
            kind="remove",
            path=path,
            codes=(),
            seen=seen,
            detail=f"{words}, {edited} of them edited by hand" if edited else words,
            # The record goes with the last of its documents.
            write_bytes=len(resource_record.serialize(replace(found[1], documents=left)))
            if left
            else 0,
        )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0

"""The facts that a plan is made of: what the files of findings hold, where lost ones come from.

Reads files, catalog, embeddings and git; changes nothing and decides nothing.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from filestore import catalog_findings, drift, links, picking, records, worktree
from filestore.catalog import Catalog, Conflict, FileRow, LinkRow
from filestore.errors import FilestoreError
from filestore.fileio import stat_values
from filestore.findings import Finding
from filestore.hashing import content_hash, source_hash
from filestore.observation import INDEXED, UNMERGED, Observation
from filestore.observe import conflict_lines, interpret
from filestore.planning import Facts, Look, Prepared, Restorable
from filestore.plans import ABSENT, Policy, State
from filestore.progress import OnProgress, Progress
from filestore.records import Record, RecordInvalidError, SourceDocument
from filestore.resolving import resolve
from filestore.restoring import Kept, Restoring, difference
from filestore.source_drift import Reachable
from filestore.sources import SourceError, read_source

if TYPE_CHECKING:
    from filestore.subject import Subject

UNREADABLE: Final = State(stat=(-1, -1, -1, -1, -1))
"""The state of what is there and cannot be read."""
_CATALOG_CODES: Final = frozenset({"catalog-missing", "catalog-damaged", "map-mismatch"})
_NOTES: Final = frozenset(
    {"duplicate", "hand-edited", "name-collision", "unportable-name", "unreadable"}
)
"""Findings about files that need not be read again to plan what is done about them."""


class Gathering:
    """Collects facts about one store in one generation."""

    def __init__(
        self, subject: "Subject", policy: Policy, *, has_catalog: bool, on_progress: OnProgress
    ) -> None:
        """Prepare.

        Args:
            subject: The store; its catalog inside a snapshot.
            policy: What a person wants done.
            has_catalog: False where the catalog is an empty stand-in.
            on_progress: Told how many files were read.
        """
        self._subject = subject
        self._places = subject.places
        self._catalog: Catalog = subject.catalog
        self._policy = policy
        self._has_catalog = has_catalog
        self._on_progress = on_progress
        self._restoring = Restoring(subject.places, subject.catalog)
        self._looks: dict[str, Look] = {}
        self._tree_bytes = 0

    def facts(self, findings: Iterable[Finding], unsound: Sequence[bytes] = ()) -> Facts:
        """Everything a plan for these findings needs to know.

        Args:
            findings: Of one verification.
            unsound: Keys of texts whose vector it found to be wrong.
        """
        found = [finding for finding in findings if self._policy.concerns(finding)]
        codes = {finding.code for finding in found}
        gone = self._gone() if "mass-missing" in codes and self._policy.truth else ()
        self._look(_chunk_paths(found, self._policy))
        restorable = self._restorable(found, gone)
        prepared = dict(self._prepared(found))
        reasons = dict(self._reasons(found))
        everything = self._all_keys() if codes & _CATALOG_CODES else ()
        unembedded = self._unembedded(codes)
        keys = {key for look in self._looks.values() for key in look.keys}
        keys |= {key for one in prepared.values() for key in one.keys or ()}
        return Facts(
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
            part_bytes=self._part_bytes(),
            embedded=self._embedded({*keys, *unembedded, *everything}) - set(unsound),
            model=self._subject.embedder.fingerprint if self._subject.embedder else "",
        )

    # Files of the tree

    def _look(self, paths: Sequence[str]) -> None:
        rows = self._catalog.files(paths)
        total = len(paths)
        for number, (path, seen) in enumerate(looks_at(self._subject, paths)):
            if number % 1000 == 0:
                self._on_progress(Progress(stage="reading files", done=number, total=total))
            name = drift.root_path(path)
            if not isinstance(seen, Observation):
                self._looks[name] = Look(state=seen)
                continue
            self._looks[name] = Look(
                state=state_of(seen),
                keys=tuple(dict.fromkeys(seen.keys)),
                size_bytes=seen.values[0],
                recorded=_is_recorded(rows.get(path), seen),
            )

    def _gone(self) -> tuple[str, ...]:
        seen = drift.detect(
            self._places,
            self._catalog,
            layout=self._subject.layout,
            deleted=self._subject.deleted,
            processes=self._subject.processes,
        )
        return tuple(drift.root_path(path) for path in seen.gone)

    def _restorable(
        self, findings: Sequence[Finding], gone: Sequence[str]
    ) -> dict[str, Restorable]:
        found: dict[str, Restorable] = {}
        lost = {*gone, *self._policy.lost}
        for finding in findings:
            if finding.code == "missing" and self._policy.truth:
                lost.add(finding.path)
            elif finding.code == "bit-rot":
                self._offer(found, finding.path, self._restoring.recorded(_below(finding.path)))
            elif finding.code == "record-invalid":
                kept = self._restoring.last_good(_below(finding.path), _is_record)
                self._offer(found, finding.path, kept)
        for number, path in enumerate(sorted(lost)):
            if number % 100 == 0:
                self._on_progress(Progress(stage="looking back", done=number, total=len(lost)))
            self._offer(found, path, self._restoring.newest(_below(path)))
        return found

    def _offer(self, found: dict[str, Restorable], path: str, kept: Kept | None) -> None:
        if kept is None:
            return
        found[path] = Restorable(
            place=kept.place,
            hash=kept.hash,
            blob=kept.blob,
            size_bytes=len(kept.data),
            diff=difference(path, self._held(path), kept.data),
            differs=not kept.intact,
        )

    def _held(self, path: str) -> bytes:
        """What a file of the tree holds now, nothing where it cannot be read."""
        for _, seen in looks_at(self._subject, [_below(path)]):
            return seen.data if isinstance(seen, Observation) else b""
        return b""

    # What the parts need

    def _unembedded(self, codes: set[str]) -> tuple[bytes, ...]:
        if not codes & {"vector-missing", "vector-invalid", "embeddings-damaged"}:
            return ()
        missing = {key for _, key in self._catalog.vector_keys(embedded=False)}
        if "embeddings-damaged" in codes:
            missing.update(key for _, key in self._catalog.vector_keys())
        return tuple(missing)

    def _all_keys(self) -> tuple[bytes, ...]:
        """The keys of all texts of the tree: what a new catalog would ask embeddings for."""
        tree = drift.walk(self._places, processes=self._subject.processes)
        paths = [
            f"{folder}/{name}" if folder else name
            for folder, packed in tree.folders.items()
            for name in packed.entries()
        ]
        keys: dict[bytes, None] = {}
        for number, (_, seen) in enumerate(looks_at(self._subject, paths)):
            if number % 1000 == 0:
                self._on_progress(Progress(stage="reading files", done=number, total=len(paths)))
            if isinstance(seen, Observation) and seen.state == INDEXED:
                keys |= dict.fromkeys(seen.keys)
                self._tree_bytes += seen.values[0]
        return tuple(keys)

    def _embedded(self, keys: set[bytes]) -> frozenset[bytes]:
        """Those of the keys that have a sound embedding."""
        embeddings, embedder = self._subject.embeddings, self._subject.embedder
        if not keys or embeddings is None or embedder is None:
            return frozenset()
        from filestore.embed.cache import EmbeddingsDamaged

        try:
            damaged = set(embeddings.verify(embedder.fingerprint)) if embeddings.damaged else set()
            return frozenset(embeddings.has(embedder.fingerprint, keys) - damaged)
        except EmbeddingsDamaged:
            return frozenset()

    def _part_bytes(self) -> dict[str, int]:
        places = self._places
        embeddings = _size(places.embeddings)
        return {
            "rebuild-catalog": self._tree_bytes,
            "salvage": embeddings,
            "rebuild-index": embeddings,
            "rebuild-fulltext": _size(places.catalog),
        }

    # Changes of truth files that need more than a file's own bytes

    def _prepared(self, findings: Sequence[Finding]) -> Iterable[tuple[tuple[str, str], Prepared]]:
        for finding in findings:
            code, path = finding.code, finding.path
            if code == "link-dangling":
                yield ("relink", path), self._relink(path)
            elif code == "ingest-conflict":
                for kind, chosen in (
                    ("resolve-ours", self._policy.ours),
                    ("resolve-theirs", self._policy.theirs),
                ):
                    if path in chosen:
                        yield (kind, path), self._resolve(path, kind)
            elif code == "conflict-markers":
                for kind, chosen in (
                    ("take-ours", self._policy.ours),
                    ("take-theirs", self._policy.theirs),
                ):
                    if path in chosen:
                        yield (kind, path), self._sided(path, kind)
            elif code == "source-missing" and code in self._policy.only:
                yield ("remove", path), self._remove(path)
            elif code in ("source-modified", "chunker-changed"):
                yield ("reingest", path), self._reingest(path)
        for path in self._policy.remove:
            yield ("remove-duplicate", path), self._without(path)

    def _relink(self, path: str) -> Prepared:
        data = self._held(path)
        made = links.relinked(data, _below(path), self.moved_targets(path))
        if made == data:
            return Prepared(seen={}, problem="mend the link: nobody knows where its target went")
        return Prepared(
            seen={path: self._looks[path].state},
            read_bytes=len(data),
            write_bytes=len(made),
            diff=difference(path, data, made),
            keys=self._keys(path, made),
        )

    def moved_targets(self, path: str) -> dict[str, str]:
        """Where the targets of a file's dangling links went, as far as that was seen."""
        return {
            link.target: link.moved_to
            for link in self._dangling.get(_below(path), ())
            if link.moved_to is not None
        }

    @cached_property
    def _dangling(self) -> Mapping[str, list[LinkRow]]:
        found: dict[str, list[LinkRow]] = {}
        for link in self._catalog.dangling_links():
            found.setdefault(link.path, []).append(link)
        return found

    @cached_property
    def _conflicts(self) -> dict[str, Conflict]:
        found = catalog_findings.open_conflicts(self._subject)
        return {drift.root_path(one.path): one for one in found}

    def _reasons(self, findings: Iterable[Finding]) -> Iterable[tuple[tuple[str, str], str]]:
        """What a person can do about findings that no step mends, where it is a matter of facts."""
        for finding in findings:
            code, path = finding.code, finding.path
            conflict = self._conflicts.get(path) if code == "ingest-conflict" else None
            if conflict is not None and conflict.theirs is None:
                yield (
                    (code, path),
                    "'filestore repair --ours PATH' keeps the file, '--theirs PATH' deletes it, as"
                    " its text is gone from the source",
                )
            elif code == "conflict-markers" and finding.detail != UNMERGED:
                yield (
                    (code, path),
                    "'filestore repair --ours PATH' takes one side, '--theirs PATH' the other; or"
                    " resolve it in an editor. Until then it is left out",
                )
            elif code == "model-changed" and self._subject.embedder is not None:
                yield (code, path), f"{finding.repair}: {self._price_of_all()}"

    def _price_of_all(self) -> str:
        """What it costs to embed every text with the model that the settings name."""
        keys = {key for one in (True, False) for _, key in self._catalog.vector_keys(embedded=one)}
        known = len(self._embedded(keys))
        return f"{len(keys) - known:,} texts to embed, {known:,} known already"

    def _resolve(self, path: str, kind: str) -> Prepared:
        conflict, data = self._conflicts.get(path), self._held(path)
        if conflict is None:
            return Prepared(seen={}, problem="the source changed again: 'filestore add' it first")
        marks = conflict_lines(data)
        if marks is not None and self._is_withheld(path):
            where = f"its marks are in lines {marks[0]}, {marks[1]} and {marks[2]}"
            return Prepared(seen={}, problem=f"resolve git's conflict in it first: {where}")
        try:
            made = resolve(data, conflict, "ours" if kind == "resolve-ours" else "theirs")
        except FilestoreError as error:
            return Prepared(seen={}, problem=error.message)
        done = "the file goes, as its text went from the source; " if made is None else ""
        return Prepared(
            seen={path: self._looks[path].state},
            detail=f"{done}then its source is taken in again",
            read_bytes=len(data),
            write_bytes=len(made or b""),
            hash=content_hash(made).hex() if made is not None else "",
            # Whoever gives an edit up has to see all of it.
            diff=difference(path, data, made or b"", most=None),
            keys=self._keys(path, made) if made is not None else (),
        )

    def _is_withheld(self, path: str) -> bool:
        """Whether a file is out of answers as it is."""
        seen = self._observed(path)
        return seen is not None and seen.state != INDEXED

    def _observed(self, path: str) -> Observation | None:
        """A file of the tree as it is; None where it cannot be read."""
        for _, seen in looks_at(self._subject, [_below(path)]):
            return seen if isinstance(seen, Observation) else None
        return None

    def _sided(self, path: str, kind: str) -> Prepared:
        seen = self._observed(path)
        if seen is None:
            return Prepared(seen={}, problem="it cannot be read")
        if path in self._conflicts:
            problem = "a new text of its source waits there, too: resolve the marks in an editor"
            return Prepared(seen={}, problem=problem)
        return picking.one_side(
            path,
            seen,
            picking.SIDES[kind],
            is_unmerged=_below(path) in self._unmerged,
            interpreted=self._interpreted,
        )

    @cached_property
    def _unmerged(self) -> set[str]:
        return worktree.unmerged(self._places.chunked)

    def _without(self, path: str) -> Prepared:
        seen = self._observed(path)
        if seen is None:
            return Prepared(seen={}, problem="it cannot be read")
        return picking.without(path, seen, next(self._twins(seen), None))

    def _twins(self, seen: Observation) -> Iterator[Observation]:
        """The files that have the text of a file, and stay."""
        goes = {_below(path) for path in self._policy.remove}
        owners = self._catalog.files_of_vectors(seen.vector_ids()[:1])
        ids = [file for pairs in owners.values() for file, part in pairs if not part]
        paths = sorted(set(self._catalog.indexed_paths(ids).values()) - goes)
        for _, other in looks_at(self._subject, paths):
            if isinstance(other, Observation) and picking.is_twin(seen, other):
                yield other

    def _interpreted(self, path: str, data: bytes) -> Observation:
        """What these bytes would mean in a file."""
        seen = Observation(path=path, values=(0, 0, 0, 0, 0), state=INDEXED, data=data)
        interpret(seen, os.path.basename(path), layout=self._subject.layout)
        return seen

    def _keys(self, path: str, data: bytes) -> tuple[bytes, ...]:
        """Of the texts that would be embedded of a chunk file with these bytes."""
        return self._interpreted(path, data).keys

    @cached_property
    def _records(self) -> list[tuple[str, Record]]:
        """Path below `chunked/` and value of every record that the catalog has."""
        found = []
        for path in sorted({path for path, *_ in self._catalog.documents()}):
            data = self._catalog.record_data(path)
            if data is not None:
                found.append((path, records.parse(data)))
        return found

    def record_of(self, path: str) -> tuple[str, Record, SourceDocument | None] | None:
        """The record that a finding about a source, or about the record itself, is about."""
        for record_path, record in self._records:
            if drift.root_path(record_path) == path:
                return record_path, record, None
            for document in record.documents:
                if document.source == path:
                    return record_path, record, document
        return None

    def _reingest(self, path: str) -> Prepared:
        found = self.record_of(path)
        if found is None:
            return Prepared(seen={}, problem="no record names this source; add it again")
        _, record, document = found
        documents = [document] if document is not None else list(record.documents)
        if self._waiting & {one.source for one in documents}:
            return Prepared(seen={}, problem="choose first, with --ours or --theirs, in its files")
        seen = {one.source: source_state(self._subject, one.source) for one in documents}
        if document is not None and seen[document.source].hash == document.hash:
            return Prepared(seen={}, problem="its copy is as it was: 'filestore add' the original")
        return Prepared(
            seen=seen,
            detail=self._told(record, documents),
            read_bytes=sum(_size(os.path.join(self._places.root, one.source)) for one in documents),
            keys=None,
        )

    def _told(self, record: Record, documents: Sequence[SourceDocument]) -> str:
        """Which files may change where documents are taken in again."""
        rows = [row for document in documents for row in self.made_of(record, document)]
        edited = sum(row.edited for row in rows)
        files = "1 chunk file" if len(rows) == 1 else f"{len(rows):,} chunk files"
        hand = f" ({edited:,} edited by hand)" if edited else ""
        return f"up to {files}{hand} may change, others come; texts are counted once it is read"

    @cached_property
    def _waiting(self) -> set[str]:
        """Documents whose new text waits for a choice: taken in again, it would wait again."""
        rows = self._catalog.files([conflict.path for conflict in self._conflicts.values()])
        return {self._catalog.source_of(row) or "" for row in rows.values()}

    def _remove(self, path: str) -> Prepared:
        found = self.record_of(path)
        if found is None or found[2] is None:
            return Prepared(seen={}, problem="no record names this source")
        rows = self.made_of(found[1], found[2])
        edited = sum(row.edited for row in rows)
        paths = [row.path for row in rows] + [found[0]]
        seen = {path: source_state(self._subject, path)}
        seen |= {drift.root_path(name): self._state(name) for name in paths}
        words = "1 chunk file" if len(rows) == 1 else f"{len(rows):,} chunk files"
        left = tuple(one for one in found[1].documents if one != found[2])
        return Prepared(
            seen=seen,
            detail=f"{words}, {edited} of them edited by hand" if edited else words,
            # The record goes with the last of its documents.
            write_bytes=len(records.serialize(replace(found[1], documents=left))) if left else 0,
        )

    def made_of(self, record: Record, document: SourceDocument) -> list[FileRow]:
        """The chunk files that were made from one document."""
        resources = {
            resource
            for _, resource, source, _ in self._catalog.documents()
            if source == document.source
        }
        rows = [row for resource in sorted(resources) for row in self._catalog.files_of(resource)]
        return [
            row
            for row in rows
            if row.origin is not None and (row.source or record.source) == document.source
        ]

    def _state(self, path: str) -> State:
        for _, seen in looks_at(self._subject, [path]):
            return state_of(seen) if isinstance(seen, Observation) else seen
        return ABSENT


def looks_at(subject: "Subject", paths: Sequence[str]) -> Iterable[tuple[str, Observation | State]]:
    """Each path below `chunked/` with what was seen, or the state of what was not."""
    if not os.path.isdir(subject.places.chunked):
        yield from ((path, ABSENT) for path in paths)
        return
    for seen in drift.look_at(subject.places, paths, subject.layout):
        if isinstance(seen, Observation):
            yield seen.path, seen
        else:
            path, error = seen
            is_gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            yield path, ABSENT if is_gone else UNREADABLE


def state_of(seen: Observation) -> State:
    """What an observation says a step may be planned on."""
    return State(stat=seen.values, hash=seen.file_hash.hex())


def source_state(subject: "Subject", reference: str) -> State:
    """The state of an original; one that the store may not reach is not looked at."""
    path = Reachable(subject.places, everywhere=subject.may_reach_sources).followed(
        reference.replace("\0", "")
    )
    if path is None:
        return UNREADABLE
    try:
        return State(stat=stat_values(os.stat(path)), hash=source_hash(read_source(path)))
    except FileNotFoundError:
        return ABSENT
    except SourceError:
        return UNREADABLE if os.path.lexists(path) else ABSENT
    except OSError:
        return UNREADABLE


def _chunk_paths(findings: Sequence[Finding], policy: Policy) -> list[str]:
    """The files of the tree that findings are about, below `chunked/`, neighbours together."""
    start = f"{drift.CHUNKED}/"
    paths = {finding.path for finding in findings if finding.code not in _NOTES}
    paths.update(policy.lost, policy.remove)
    return sorted(_below(path) for path in paths if path.startswith(start))


def _below(path: str) -> str:
    return path.removeprefix(f"{drift.CHUNKED}/")


def _is_recorded(row: FileRow | None, seen: Observation) -> bool:
    return row is not None and drift.is_as_recorded(row, seen)


def _is_record(data: bytes) -> bool:
    try:
        records.parse(data)
    except RecordInvalidError:
        return False
    return True


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0

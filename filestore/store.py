"""The store: opens a root, holds lock, settings and parts, and hands each request to its module."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

from filestore import fileio, fulltext_file, settings
from filestore.catalog import (
    Catalog,
    CatalogDamagedError,
    CatalogMissingError,
    catalog_errors,
)
from filestore.errors import FilestoreError
from filestore.findings import Finding
from filestore.locking import DEFAULT_WAIT_S, LockedError, writer_lock
from filestore.places import Places
from filestore.progress import OnProgress, ignore
from filestore.refusals import check_sidecar
from filestore.roots import NoStoreError
from filestore.worktree import deleted_paths, operation, unmerged

if TYPE_CHECKING:
    from filestore.adding import AddReport
    from filestore.catalog import CatalogWriter
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.evaluation import Question
    from filestore.indexing import Commit, CommitReport
    from filestore.inspecting import Opening, Status
    from filestore.measuring import Evaluation
    from filestore.model import StoreModel
    from filestore.originals import Batch, State
    from filestore.plans import Plan, Policy, Step
    from filestore.reconstruction import Reconstruction
    from filestore.remodelling import ModelChange
    from filestore.removal import Removed
    from filestore.repair import Hands, RepairReport
    from filestore.saved_plans import Saved
    from filestore.search import Answer, Filters, Mode, Searcher
    from filestore.sources import SourcePath
    from filestore.subject import Level, Sample, Subject
    from filestore.syncing import SyncReport
    from filestore.trusting import Reaches
    from filestore.undoing import Turned
    from filestore.verify import Checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One chunk file with what the store knows of it."""

    path: str
    frontmatter: dict[str, Any]
    body: str
    record: dict[str, Any]


class Store:
    """An open store. Use it as a context, or close it."""

    def __init__(self, root: str, *, configuration: str, processes: int = 1) -> None:
        """Open the store at a root.

        Args:
            root: The folder with `filestore.toml`.
            configuration: The user's configuration folder.
            processes: 2 lets a forked child walk half of a large tree; only for a process
                without threads.

        Raises:
            NoStoreError: There is no settings file.
            SettingsError: The settings cannot be used.
            UnsafeSidecarError: The sidecar is not ours.
        """
        root = os.path.abspath(root)
        self.places = Places(
            root=root,
            sidecar=settings.sidecar_folder(root, configuration),
            configuration=configuration,
        )
        try:
            with open(self.places.settings, "rb") as file:
                self.settings = settings.parse(file.read(), name=self.places.settings)
        except FileNotFoundError as error:
            raise NoStoreError(f"no store in {root}", remedy="filestore init") from error
        check_sidecar(self.places.sidecar)
        self._configuration = configuration
        self._processes = processes
        self.chosen_because = ""
        """Why a store that was made just now has its embedder."""
        self._searcher: Searcher | None = None
        self._catalog: Catalog | None = None
        self._embeddings: EmbeddingCache | None = None

    @classmethod
    def init(
        cls,
        root: str,
        *,
        layout: str,
        embedder: str | None = None,
        options: settings.ModelOptions | None = None,
        configuration: str,
    ) -> Self:
        """Make a store; see `making.make`, which says what is raised."""
        from filestore import making

        root = os.path.abspath(root)
        reason = making.make(
            root,
            layout=layout,
            embedder=embedder,
            options=options or settings.ModelOptions(),
            configuration=configuration,
        )
        store = cls(root, configuration=configuration)
        store.chosen_because = reason
        with store._writing("init"):
            return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every file."""
        for part in (self._searcher, self._embeddings, self._catalog):
            if part is not None:
                part.close()
        self._searcher = self._embeddings = self._catalog = None

    @property
    def root(self) -> str:
        """The folder with `filestore.toml`."""
        return self.places.root

    @cached_property
    def model(self) -> "StoreModel":
        """The model that the settings name, opened as far as it can be here."""
        from filestore.model import StoreModel

        return StoreModel(self.root, self.settings, self._configuration)

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder of the settings; None where it cannot be used here."""
        return self.model.embedder

    def _same_model(self, catalog: Catalog) -> "Embedder | None":
        """The embedder, if the catalog's vectors are its own: two models are never mixed."""
        recorded = catalog.meta("fingerprint")
        if self.embedder is None or recorded in (None, self.embedder.fingerprint):
            return self.embedder
        return None

    def _why_no_model(self) -> str:
        problem = self.model.why_not
        return f"{problem.message} (try: {problem.remedy})"

    def _reading(self) -> Catalog:
        if self._catalog is None:
            try:
                self._catalog = Catalog.open(self.places.catalog)
            except sqlite3.OperationalError as error:
                raise FilestoreError(
                    f"the catalog cannot be opened: {error}",
                    remedy=f"make {self.places.sidecar} readable, or wait for its writer",
                ) from error
        return self._catalog

    def _open_embeddings(self) -> "EmbeddingCache | None":
        from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged, EmbeddingsMissing

        if self._embeddings is None:
            with contextlib.suppress(EmbeddingsMissing, EmbeddingsDamaged):
                self._embeddings = EmbeddingCache.open(self.places.embeddings, read_only=True)
        return self._embeddings

    def _subject(self, catalog: Catalog, embeddings: "EmbeddingCache | None") -> "Subject":
        from filestore.machine import SOURCES, read_machine
        from filestore.subject import Subject

        machine = read_machine(self._configuration, os.environ)
        return Subject(
            places=self.places,
            layout=self.settings.layout,
            catalog=catalog,
            embeddings=embeddings,
            embedder=self.embedder,
            no_model=self._why_no_model() if self.model.problem else "",
            deleted=partial(deleted_paths, self.places.chunked),
            processes=self._processes,
            settings=self.settings,
            unmerged=frozenset(unmerged(self.places.chunked) if operation(self.root) else ()),
            may_reach_sources=machine.trusts(self.root, SOURCES),
        )

    def _opening(self) -> "Opening":
        from filestore.inspecting import Opening

        return Opening(
            places=self.places,
            settings=self.settings,
            catalog=self._reading,
            embeddings=self._open_embeddings,
            subject=self._subject,
        )

    def status(self) -> "Status":
        """Drift by stat, reading only files whose stat differs or cannot be relied on."""
        from filestore import inspecting

        return inspecting.status(self._opening())

    def verify(
        self,
        *,
        level: "Level" = "fast",
        sample: "Sample | None" = None,
        on_progress: OnProgress = ignore,
    ) -> "Checked":
        """Every drift and damage; changes nothing. See `inspecting.verified`."""
        from filestore import inspecting

        return inspecting.verified(self._opening(), level, sample, on_progress)

    def sync(
        self,
        *,
        embed: bool = True,
        forget_missing: bool = False,
        full: bool = False,
        deep: bool = False,
        wait_s: float = DEFAULT_WAIT_S,
        on_progress: OnProgress = ignore,
    ) -> "SyncReport":
        """Apply every repair that touches only the sidecar.

        Args:
            embed: Whether texts without embedding are embedded now.
            forget_missing: Whether a mass of missing files is meant to be gone.
            full: Verify everything first and mend what that finds, too.
            deep: Also ask the model, and embed again what is not its own.
            wait_s: How long to wait for another writer.
            on_progress: Told how far it is.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused; the old generation stays.
        """
        from filestore.embed.cache import EmbeddingsDamaged

        mended: list[Finding] = []
        if full or deep:
            checked = self.verify(level="deep" if deep else "full", on_progress=on_progress)
            mended = self._mend(checked.findings, wait_s, checked.unsound)
        try:
            report = self._sync(embed, forget_missing, wait_s, on_progress)
        except (CatalogDamagedError, EmbeddingsDamaged) as error:
            # Damage that opening did not show: put it aside, and follow the files afresh.
            from filestore.without_catalog import part_finding

            mended += self._mend([part_finding(error)], wait_s)
            report = self._sync(embed, forget_missing, wait_s, on_progress)
        return replace(report, applied=(*dict.fromkeys([*mended, *report.applied]),))

    def _mend(
        self, found: Iterable[Finding], wait_s: float, unsound: Sequence[bytes] = ()
    ) -> list[Finding]:
        from filestore import recovery

        self.close()
        with writer_lock(self.places.lock, command="filestore sync", wait_s=wait_s):
            return recovery.mend(self.places, self.embedder, found, unsound)

    def _sync(
        self,
        embed: bool,
        forget_missing: bool,
        wait_s: float,
        on_progress: OnProgress,
        chosen: "Callable[[Finding], bool] | None" = None,
    ) -> "SyncReport":
        from filestore import syncing

        with self._writing("sync", wait_s=wait_s) as (catalog, embeddings, mended):
            with self._commit(catalog, embeddings, embed=embed) as commit:
                report = syncing.sync(
                    self._subject(catalog, embeddings),
                    commit,
                    clock=fileio.FileSystemClock(self.places.clock),
                    forget_missing=forget_missing,
                    on_progress=on_progress,
                    chosen=chosen,
                )
            return replace(report, applied=(*mended, *report.applied))

    def plan_repair(
        self, policy: "Policy", *, level: "Level" = "fast", on_progress: OnProgress = ignore
    ) -> "Plan":
        """What a repair would do; see `repair.plan`."""
        from filestore import repair

        return repair.plan(self._hands(), policy, level=level, on_progress=on_progress)

    def confirm_repair(
        self, saved: "Saved", *, truth: bool = False, on_progress: OnProgress = ignore
    ) -> "tuple[Plan, list[tuple[Step, str]]]":
        """What of a plan that was kept holds now; see `repair.confirm`."""
        from filestore import repair

        return repair.confirm(self._hands(), saved, truth=truth, on_progress=on_progress)

    def apply_repair(self, plan: "Plan", *, on_progress: OnProgress = ignore) -> "RepairReport":
        """Apply a plan as far as it still holds; see `applying.apply`."""
        from filestore import applying

        return applying.apply(self._hands(), plan, on_progress=on_progress)

    def _hands(self) -> "Hands":
        from filestore.repair import Hands

        return Hands(
            places=self.places,
            settings=self.settings,
            verify=self.verify,
            reading=self._looking,
            writing=partial(self._writing, "repair"),
            subject=self._subject,
            commit=self._commit,
            mend=lambda found, unsound: self._mend(found, DEFAULT_WAIT_S, unsound),
            sync=partial(self._sync, True, False, DEFAULT_WAIT_S),
        )

    @contextlib.contextmanager
    def _looking(self, sound: bool) -> "Iterator[tuple[Subject, bool]]":
        """The parts in one snapshot; an empty catalog stands in for one that cannot be read."""
        catalog = None
        with contextlib.suppress(CatalogMissingError, CatalogDamagedError):
            catalog = self._reading() if sound else None
        used = catalog or Catalog.open(":memory:", create=True)
        try:
            with used.snapshot():
                yield self._subject(used, self._open_embeddings()), catalog is not None
        finally:
            if catalog is None:
                used.close()

    def reaches(self) -> "Reaches":
        """What the store would reach outside itself."""
        from filestore import trusting

        try:
            catalog = self._reading()
        except (CatalogMissingError, CatalogDamagedError):
            return trusting.reaches(self.places, self.model, None)
        with catalog.snapshot():
            return trusting.reaches(self.places, self.model, catalog)

    def trust(self) -> None:
        """Let the store reach what it names now; see `trusting.trust` for what is raised."""
        from filestore import trusting

        trusting.trust(self._configuration, self.root, self.reaches())

    def distrust(self) -> None:
        """Take back whatever this store was allowed."""
        from filestore import machine

        machine.distrust(self._configuration, self.root)

    def add(
        self,
        sources: "Sequence[SourcePath]",
        *,
        wait_s: float = DEFAULT_WAIT_S,
        on_progress: OnProgress = ignore,
    ) -> "AddReport":
        """Extract, cut, write chunk files and index them, source by source.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused the sidecar; the chunk files are there.
        """
        from filestore import adding

        root = os.path.realpath(self.root)
        sources = [
            source
            for source in sources
            if not (source.implied and os.path.realpath(source.path) == root)
        ]
        with self._writing("add", wait_s=wait_s) as (catalog, embeddings, _):
            return adding.add_all(
                self._subject(catalog, embeddings),
                partial(self._commit, catalog, embeddings, embed=True),
                self.settings,
                sources,
                clock=fileio.FileSystemClock(self.places.clock),
                on_progress=on_progress,
            )

    def remove(self, resource: str, *, wait_s: float = DEFAULT_WAIT_S) -> "Removed":
        """Remove a resource from the tree and from the sidecar.

        Raises:
            UnknownResourceError: There is none of this name.
            LockedError: Another writer holds the store.
        """
        from filestore import removal

        with self._writing("rm", wait_s=wait_s) as (catalog, embeddings, _):
            removed = removal.remove(self.places, catalog, self.resource_named(resource, catalog))
            with self._commit(catalog, embeddings, embed=False) as commit:
                commit.forget(removed.paths)
                commit.finish()
        return removed

    def undo(
        self, identifier: str | None = None, *, on_progress: OnProgress = ignore
    ) -> "Turned | None":
        """Put back what files held before a change; see `undoing.turn` for what is raised."""
        return self._turn("before", identifier, on_progress)

    def redo(
        self, identifier: str | None = None, *, on_progress: OnProgress = ignore
    ) -> "Turned | None":
        """Make a change again that was undone; see `undoing.turn`."""
        return self._turn("after", identifier, on_progress)

    def _turn(
        self, wanted: "State", identifier: str | None, on_progress: OnProgress
    ) -> "Turned | None":
        from filestore import undoing

        with self._writing("undo" if wanted == "before" else "redo") as (catalog, embeddings, _):
            return undoing.turn(
                self._subject(catalog, embeddings),
                partial(self._commit, catalog, embeddings, embed=True),
                identifier,
                wanted,
                clock=fileio.FileSystemClock(self.places.clock),
                on_progress=on_progress,
            )

    def batches(self) -> "list[Batch]":
        """The changes of truth files that can be undone or redone, oldest first."""
        from filestore import originals

        return originals.list_batches(self.places.undo)

    def search(
        self,
        query: str,
        *,
        count: int = 10,
        mode: "Mode" = "hybrid",
        filters: "Filters",
        rerank: str | None = None,
    ) -> "Answer":
        """Unique files, best first; see `Searcher.search`.

        Args:
            query: What is asked.
            count: At most so many.
            mode: Which legs are asked.
            filters: What hits must satisfy.
            rerank: The reranker that has the last word, such as ``cross-encoder``; None for none.

        Raises:
            CatalogMissingError: There is no catalog yet.
            ModelMissing: The reranker's model, or the library that runs it, is not here.
        """
        catalog = self._reading()
        self._replay_fulltext(catalog)
        from filestore import reranking

        reranker = self.model.reranker(rerank) if rerank else None
        depth = reranking.depth_for(count) if reranker else count
        with catalog.snapshot():
            answer = self._fresh_searcher(catalog).search(
                query, count=depth, mode=mode, filters=filters
            )
        return reranking.rerank(answer, reranker, count=count) if reranker else answer

    def _replay_fulltext(self, catalog: Catalog) -> None:
        """Bring a full-text index that a crash left behind up to date, if nobody is writing."""
        if self._searcher is not None and self._searcher.generation == catalog.generation:
            return
        stamp = fulltext_file.own_stamp(self.places, catalog)
        if stamp is None or stamp.generation >= catalog.generation:
            return
        with (
            contextlib.suppress(LockedError, fileio.WriteFailedError),
            self._writing("search", wait_s=0) as (writer, embeddings, _),
            self._commit(writer, embeddings, embed=False) as commit,
        ):
            commit.replay()

    def _fresh_searcher(self, catalog: Catalog) -> "Searcher":
        from filestore.search import Searcher

        if self._searcher is not None and self._searcher.generation != catalog.generation:
            self._searcher.close()
            self._searcher = None
        if self._searcher is None:
            self._searcher = Searcher(
                places=self.places,
                catalog=catalog,
                embeddings=self._open_embeddings(),
                embedder=self._same_model(catalog),
                no_model=self._why_no_model(),
            )
        return self._searcher

    def evaluate(
        self, questions: "Sequence[Question]", *, count: int = 10, on_progress: OnProgress = ignore
    ) -> "Evaluation":
        """Ask questions whose answers are known; see `measuring.evaluate`."""
        from filestore import measuring

        catalog = self._reading()
        self._replay_fulltext(catalog)
        with catalog.snapshot():
            return measuring.evaluate(
                self, self.places, catalog, questions, count=count, on_progress=on_progress
            )

    def resources(self) -> list[dict[str, Any]]:
        """Name, source and number of chunks of every resource."""
        catalog = self._reading()
        with catalog.snapshot():
            found = catalog.resources()
        return [
            {"resource": name, "source": source or None, "chunks": chunks}
            for name, source, chunks in found
        ]

    def chunks(self, resource: str) -> list[dict[str, Any]]:
        """The indexed files of a resource, in reading order."""
        from filestore import browsing

        catalog = self._reading()
        with catalog.snapshot():
            return browsing.chunks(catalog, self.resource_named(resource, catalog))

    def show(self, path: str) -> Shown:
        """One chunk file with its record.

        Args:
            path: Relative to the store root, to `chunked/`, or absolute.

        Raises:
            UnknownPathError: There is no such file.
        """
        from filestore import browsing

        catalog = self._reading()
        with catalog.snapshot():
            return Shown(**browsing.show(self.places, catalog, path))

    def reconstruct(self, resource: str) -> "Reconstruction":
        """The text of a resource from its chunk files as they are on disk."""
        from filestore import browsing

        catalog = self._reading()
        with catalog.snapshot():
            name = self.resource_named(resource, catalog)
            return browsing.reconstruct_resource(self.places, catalog, name, self.settings.layout)

    def find_resource(self, name: str) -> str:
        """The resource meant by a name; see `resource_named`."""
        catalog = self._reading()
        with catalog.snapshot():
            return self.resource_named(name, catalog)

    def resource_named(self, name: str, catalog: Catalog) -> str:
        """The resource meant by a name: its own, or one that fits only it.

        Raises:
            UnknownResourceError: None or several fit.
        """
        from filestore import browsing

        return browsing.resource_named(catalog, name, self.places)

    def plan_model(self, word: str, options: settings.ModelOptions) -> "ModelChange":
        """What another model would cost; see `remodelling.plan`, which says what is raised."""
        from filestore import remodelling

        catalog = self._reading()
        with catalog.snapshot():
            return remodelling.plan(
                self.places,
                word,
                options,
                configuration=self._configuration,
                catalog=catalog,
                embeddings=self._open_embeddings(),
            )

    def change_model(
        self, change: "ModelChange", *, on_progress: OnProgress = ignore
    ) -> "CommitReport":
        """Take every vector from another model, and name it in the settings.

        Raises:
            ModelNotChanged: It could not embed everything; the store keeps the model it has.
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused.
        """
        from filestore import remodelling

        with self._writing("embedder set") as (catalog, embeddings, _):
            commit = self._commit(catalog, embeddings, embed=True, embedder=change.embedder)
            report = remodelling.embed_all(commit, change, on_progress)
            remodelling.write_settings(self.places, change, self._configuration)
        return report

    @contextlib.contextmanager
    def _writing(
        self, command: str, *, wait_s: float = DEFAULT_WAIT_S
    ) -> "Iterator[tuple[CatalogWriter, EmbeddingCache, tuple[Finding, ...]]]":
        """Hold the writer's lock, with catalog and embeddings open and mended."""
        from filestore import recovery

        recovery.make_sidecar(self.places)
        with (
            fileio.disk_errors(self.places.sidecar),
            writer_lock(self.places.lock, command=f"filestore {command}", wait_s=wait_s),
        ):
            parts = recovery.open_parts(self.places, self.embedder)
            try:
                with catalog_errors(parts[0]):
                    yield parts
            finally:
                parts[0].close()
                parts[1].close()

    def _commit(
        self,
        catalog: "CatalogWriter",
        embeddings: "EmbeddingCache",
        *,
        embed: bool,
        embedder: "Embedder | None" = None,
    ) -> "Commit":
        from filestore.indexing import Commit

        return Commit(
            places=self.places,
            layout=self.settings.layout,
            catalog=catalog,
            embeddings=embeddings,
            embedder=embedder or self._same_model(catalog),
            embed=embed,
            processes=self._processes,
            no_embedder=self.model.why_not,
            metric=self.settings.metric,
        )

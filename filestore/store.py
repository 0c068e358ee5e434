"""The store: opens a root, and hands each request to the module that does it."""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

from filestore import fileio, fulltext_file
from filestore.catalog import (
    Catalog,
    CatalogDamagedError,
    CatalogMissingError,
)
from filestore.locking import DEFAULT_WAIT_S, LockedError
from filestore.parts import Parts
from filestore.places import Places
from filestore.progress import OnProgress, ignore
from filestore.settings import ModelOptions, Settings

if TYPE_CHECKING:
    from filestore.adding import AddReport
    from filestore.batches import Group, State
    from filestore.browsing import About, AboutResource
    from filestore.embed.base import Embedder
    from filestore.evaluation import Question
    from filestore.evidence import Evidence
    from filestore.exploring import Explorer
    from filestore.findings import Finding
    from filestore.indexing import CommitReport
    from filestore.inspecting import Status
    from filestore.listing import Listing
    from filestore.measuring import Evaluation
    from filestore.model import StoreModel
    from filestore.plans import Plan, Policy, Step
    from filestore.reconstruction import Reconstruction
    from filestore.remodelling import ModelChange
    from filestore.removal import Removed
    from filestore.repair import RepairReport
    from filestore.saved_plans import Saved
    from filestore.search import Answer, Filters, Mode, Searcher
    from filestore.sides import Sides
    from filestore.sources import SourcePath
    from filestore.subject import Level, OnFound, Sample
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

    def __init__(
        self,
        root: str,
        *,
        configuration: str,
        processes: int = 1,
        on_wait: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Open the store at a root.

        Args:
            root: The folder with `filestore.toml`.
            configuration: The user's configuration folder.
            processes: 2 lets a forked child walk half of a large tree; only for a process
                without threads.
            on_wait: Told who holds the writer's lock, where that is waited for.

        Raises:
            NoStoreError: There is no settings file.
            SettingsError: The settings cannot be used.
            UnsafeSidecarError: The sidecar is not ours.
        """
        self._parts = Parts(root, configuration=configuration, processes=processes)
        self.chosen_because = ""
        """Why a store that was made just now has its embedder."""
        self._parts.on_wait = on_wait
        self._searcher: Searcher | None = None
        self._explorer: Explorer | None = None

    @classmethod
    def init(
        cls,
        root: str,
        *,
        layout: str,
        embedder: str | None = None,
        options: ModelOptions | None = None,
        configuration: str,
    ) -> Self:
        """Make a store; see `making.make`, which says what is raised."""
        from filestore import making

        root = os.path.abspath(root)
        reason = making.make(
            root,
            layout=layout,
            embedder=embedder,
            options=options or ModelOptions(),
            configuration=configuration,
        )
        store = cls(root, configuration=configuration)
        store.chosen_because = reason
        with store._parts.writing("init"):
            return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every file."""
        if self._searcher is not None:
            self._searcher.close()
            self._searcher = None
        if self._explorer is not None:
            self._explorer.close()
        self._parts.close()

    @property
    def places(self) -> Places:
        """Where everything lies."""
        return self._parts.places

    @property
    def settings(self) -> Settings:
        """What the store was set to."""
        return self._parts.settings

    @property
    def root(self) -> str:
        """The folder with `filestore.toml`."""
        return self.places.root

    @property
    def model(self) -> "StoreModel":
        """The model that the settings name, opened as far as it can be here."""
        return self._parts.model

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder of the settings; None where it cannot be used here."""
        return self.model.embedder

    def status(self) -> "Status":
        """Drift by stat, reading only files whose stat differs or cannot be relied on."""
        from filestore import inspecting

        return inspecting.status(self._parts)

    def verify(
        self,
        *,
        level: "Level" = "fast",
        sample: "Sample | None" = None,
        on_progress: OnProgress = ignore,
        on_found: "OnFound | None" = None,
    ) -> "Checked":
        """Every drift and damage; changes nothing. See `inspecting.verified`."""
        from filestore import inspecting

        return inspecting.verified(self._parts, level, sample, on_progress, on_found)

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
        from filestore import catching_up

        self.close()
        wanted = catching_up.Wanted(
            embed=embed,
            forget_missing=forget_missing,
            first="deep" if deep else "full" if full else None,
            wait_s=wait_s,
        )
        return catching_up.catch_up(self._parts, wanted, on_progress)

    def plan_repair(
        self, policy: "Policy", *, level: "Level" = "fast", on_progress: OnProgress = ignore
    ) -> "Plan":
        """What a repair would do; see `repair.plan`."""
        from filestore import repair

        return repair.plan(self._parts, policy, level=level, on_progress=on_progress)

    def confirm_repair(
        self, saved: "Saved", *, truth: bool = False, on_progress: OnProgress = ignore
    ) -> "tuple[Plan, list[tuple[Step, str]]]":
        """What of a plan that was kept holds now; see `repair.confirm`."""
        from filestore import repair

        return repair.confirm(self._parts, saved, truth=truth, on_progress=on_progress)

    def apply_repair(self, plan: "Plan", *, on_progress: OnProgress = ignore) -> "RepairReport":
        """Apply a plan as far as it still holds; see `applying.apply`."""
        from filestore import applying

        self.close()
        return applying.apply(self._parts, plan, on_progress=on_progress)

    def reaches(self) -> "Reaches":
        """What the store would reach outside itself."""
        from filestore import trusting

        try:
            catalog = self._parts.catalog()
        except (CatalogMissingError, CatalogDamagedError):
            return trusting.reaches(self.places, self.model, None)
        with catalog.snapshot():
            return trusting.reaches(self.places, self.model, catalog)

    def trust(self) -> None:
        """Let the store reach what it names now; see `trusting.trust` for what is raised."""
        from filestore import trusting

        trusting.trust(self._parts.configuration, self.root, self.reaches())

    def distrust(self) -> None:
        """Take back whatever this store was allowed."""
        from filestore import machine

        machine.distrust(self._parts.configuration, self.root)

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
        with self._parts.writing("add", wait_s=wait_s) as (catalog, embeddings, _):
            return adding.add_all(
                self._parts.subject(catalog, embeddings),
                partial(self._parts.commit, catalog, embeddings, embed=True),
                self.settings,
                sources,
                clock=self._parts.clock(),
                on_progress=on_progress,
            )

    def remove(self, resource: str, *, wait_s: float = DEFAULT_WAIT_S) -> "Removed":
        """Remove a resource from the tree and from the sidecar.

        Raises:
            UnknownResourceError: There is none of this name.
            LockedError: Another writer holds the store.
        """
        from filestore import removal

        with self._parts.writing("rm", wait_s=wait_s) as (catalog, embeddings, _):
            removed = removal.remove(self.places, catalog, self.resource_named(resource, catalog))
            with self._parts.commit(catalog, embeddings, embed=False) as commit:
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

        with self._parts.writing("undo" if wanted == "before" else "redo") as (
            catalog,
            embeddings,
            _,
        ):
            return undoing.turn(
                self._parts.subject(catalog, embeddings),
                partial(self._parts.commit, catalog, embeddings, embed=True),
                identifier,
                wanted,
                clock=self._parts.clock(),
                on_progress=on_progress,
            )

    def batches(self) -> "list[Group]":
        """The changes of truth files that can be undone or redone, oldest first."""
        from filestore import originals

        return originals.list_groups(self.places.undo)

    def turnable(self) -> tuple[str, str]:
        """The changes that `undo` and `redo` would take; "" for none."""
        from filestore import undoing

        return undoing.next_turns(batch for group in self.batches() for batch in group.batches)

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
        catalog = self._parts.catalog()
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
            self._parts.writing("search", wait_s=0) as (writer, embeddings, _),
            self._parts.commit(writer, embeddings, embed=False) as commit,
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
                embeddings=self._parts.embeddings(),
                embedder=self._parts.same_model(catalog),
                no_model=self._parts.why_no_model(),
            )
        return self._searcher

    def explorer(self) -> "Explorer":
        """Neighbours, a map, distributions: questions to the vectors; closed with the store."""
        from filestore.exploring import Explorer

        if self._explorer is None:
            self._explorer = Explorer(self._parts)
        return self._explorer

    def evidence(self, finding: "Finding") -> "Evidence":
        """What there is to see of a finding; see `evidence.evidence`."""
        from filestore import evidence

        return evidence.evidence(self._parts, finding)

    def sides(self, finding: "Finding") -> "Sides":
        """The two versions to choose between; see `sides.sides` for what is raised."""
        from filestore import sides

        return sides.sides(self._parts, finding)

    def evaluate(
        self, questions: "Sequence[Question]", *, count: int = 10, on_progress: OnProgress = ignore
    ) -> "Evaluation":
        """Ask questions whose answers are known; see `measuring.evaluate`."""
        from filestore import measuring

        catalog = self._parts.catalog()
        self._replay_fulltext(catalog)
        with catalog.snapshot():
            return measuring.evaluate(
                self, self.places, catalog, questions, count=count, on_progress=on_progress
            )

    def resources(self) -> list[dict[str, Any]]:
        """Name, source and number of chunks of every resource."""
        catalog = self._parts.catalog()
        with catalog.snapshot():
            found = catalog.resources()
        return [
            {"resource": name, "source": source or None, "chunks": chunks}
            for name, source, chunks in found
        ]

    def chunks(self, resource: str) -> list[dict[str, Any]]:
        """The indexed files of a resource, in reading order."""
        from filestore import browsing

        catalog = self._parts.catalog()
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

        catalog = self._parts.catalog()
        with catalog.snapshot():
            return Shown(**browsing.show(self.places, catalog, path))

    @cached_property
    def _listing(self) -> "Listing":
        from filestore.listing import Listing

        return Listing(self._parts)

    def listing(self) -> "Listing":
        """The catalog page by page, for a screen."""
        return self._listing

    def about(self, path: str) -> "About":
        """Everything known of one file, whatever state it is in; see `browsing.about`."""
        from filestore import browsing

        catalog = self._parts.catalog()
        with catalog.snapshot():
            return browsing.about(self._parts, catalog, path)

    def about_resource(self, name: str) -> "AboutResource":
        """What is known of one resource; see `browsing.about_resource`."""
        from filestore import browsing

        catalog = self._parts.catalog()
        with catalog.snapshot():
            return browsing.about_resource(self.places, catalog, name)

    def check(self, paths: Sequence[str]) -> "list[Finding]":
        """The findings of just these files, by reading them; see `rechecking.check`."""
        from filestore import rechecking

        return rechecking.check(self._parts, paths)

    def reconstruct(self, resource: str) -> "Reconstruction":
        """The text of a resource from its chunk files as they are on disk."""
        from filestore import browsing

        catalog = self._parts.catalog()
        with catalog.snapshot():
            name = self.resource_named(resource, catalog)
            return browsing.reconstruct_resource(self.places, catalog, name, self.settings.layout)

    def find_resource(self, name: str) -> str:
        """The resource meant by a name; see `resource_named`."""
        catalog = self._parts.catalog()
        with catalog.snapshot():
            return self.resource_named(name, catalog)

    def resource_named(self, name: str, catalog: Catalog) -> str:
        """The resource meant by a name: its own, or one that fits only it.

        Raises:
            UnknownResourceError: None or several fit.
        """
        from filestore import browsing

        return browsing.resource_named(catalog, name, self.places)

    def plan_model(self, word: str, options: ModelOptions) -> "ModelChange":
        """What another model would cost; see `remodelling.plan`, which says what is raised."""
        from filestore import remodelling

        catalog = self._parts.catalog()
        with catalog.snapshot():
            return remodelling.plan(
                self.places,
                word,
                options,
                configuration=self._parts.configuration,
                catalog=catalog,
                embeddings=self._parts.embeddings(),
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

        with self._parts.writing("embedder set") as (catalog, embeddings, _):
            commit = self._parts.commit(catalog, embeddings, embed=True, embedder=change.embedder)
            report = remodelling.embed_all(commit, change, on_progress)
            remodelling.write_settings(self.places, change, self._parts.configuration)
        return report

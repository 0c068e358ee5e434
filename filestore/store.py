"""The store: hands each request to the module that does it."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from filestore.catalog import Catalog, CatalogDamagedError, CatalogMissingError
from filestore.config.settings import ModelOptions
from filestore.core.findings import marked
from filestore.core.progress import OnProgress, ignore
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.opened import OpenStore, StrPath
from filestore.sidecar.refusals import refuse_in_place

if TYPE_CHECKING:
    from threading import Event

    from filestore.browse.duplicates import Duplicates
    from filestore.browse.file import Shown
    from filestore.browse.links import Links
    from filestore.browse.overview import Overview
    from filestore.browse.similar import Similar
    from filestore.chunks.reconstruct import Reconstruction
    from filestore.enrich.plan import EnrichPlan, EnrichReport
    from filestore.enrich.plan import Wanted as EnrichWanted
    from filestore.fulltext import Syntax
    from filestore.history.batch import Group, State
    from filestore.ingest.add import AddReport
    from filestore.ingest.pipeline import OnCopy
    from filestore.ingest.remove import Removed
    from filestore.ingest.update import UpdatePlan, UpdateReport
    from filestore.ingest.update import Wanted as UpdateWanted
    from filestore.repair.plan import Plan, Policy, Step
    from filestore.repair.plan_json import Saved
    from filestore.repair.request import RepairReport
    from filestore.repair.undo import UndoResult
    from filestore.search.answer import Answer, Mode
    from filestore.search.evaluate import Compared, Evaluation
    from filestore.search.metrics import Question
    from filestore.search.place import Place
    from filestore.search.session import SearchSession
    from filestore.sidecar.commit import CommitReport
    from filestore.sidecar.snapshot import Level, OnFound, Sample
    from filestore.sync.apply import SyncReport
    from filestore.sync.change_model import ModelChange
    from filestore.verify.run import Status
    from filestore.verify.staged import Staged
    from filestore.verify.trust import Reaches
    from filestore.verify.verify import Checked


class Store(OpenStore):
    """An open store: search it, change it, see what drifted. A context manager.

    A store belongs to the thread that opened it: in any other, all but `root`, `places` and
    `settings` raise `OtherThreadError`. Open one store in each thread. They share the files as
    processes do: one writer at a time, and every reader sees one whole generation.
    """

    def close(self) -> None:
        """Let go of every file."""
        if "_search_session" in vars(self):
            self._search_session.close()
        super().close()

    def status(self) -> "Status":
        """Drift by stat, reading only files whose stat differs or cannot be relied on."""
        from filestore.verify import run

        found = run.status(self._parts)
        return replace(found, findings=marked(found.findings, self.settings.accepted))

    def verify(
        self,
        *,
        level: "Level" = "fast",
        sample: "Sample | None" = None,
        on_progress: OnProgress = ignore,
        on_found: "OnFound | None" = None,
    ) -> "Checked":
        """Every drift and damage; changes nothing. See `run.verified`."""
        from filestore.verify import run

        found = run.verified(self._parts, level, sample, on_progress, on_found)
        return replace(found, findings=marked(found.findings, self.settings.accepted))

    def staged(self) -> "Staged":
        """What git has staged, checked as `verify` checks files."""
        from filestore.verify.staged import check

        found = check(self.places, self._parts.layout)
        return replace(found, findings=marked(found.findings, self.settings.accepted))

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
        """Index what differs in the files and repair the sidecar; writes no chunk file.

        Args:
            embed: Whether texts without embedding are embedded now.
            forget_missing: Whether a mass of missing files is meant to be gone.
            full: Verify everything first and repair what that finds, too.
            deep: Also ask the model, and embed again what is not its own.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused; the old generation stays.
        """
        from filestore.sync.run import Wanted, catch_up

        self.close()
        first: Level | None = "deep" if deep else "full" if full else None
        wanted = Wanted(embed=embed, forget_missing=forget_missing, first=first, wait_s=wait_s)
        report = catch_up(self._parts, wanted, on_progress)
        return replace(report, remaining=marked(report.remaining, self.settings.accepted))

    def plan(
        self,
        policy: "Policy | None" = None,
        *,
        truth: bool = False,
        only: Sequence[str] = (),
        paths: Sequence[StrPath] = (),
        ours: Sequence[StrPath] = (),
        theirs: Sequence[StrPath] = (),
        remove: Sequence[StrPath] = (),
        level: "Level | None" = None,
        on_progress: OnProgress = ignore,
    ) -> "Plan":
        """What a repair would do; changes nothing. See `request.plan` for what is raised.

        Args:
            policy: The next six in one value, in their stead.
            truth: Whether files of the tree may be written.
            only: Codes of the findings to be repaired; none for all.
            paths: Files and folders to be repaired; none for all.
            ours: Files that keep their edit.
            theirs: Files that take the new text of their source.
            remove: Files that go, because others have their text.
            level: How thoroughly to look; None for as much as the codes need.
            on_progress: Called with the progress.
        """
        from filestore.repair import request

        chosen = policy or request.policy_of(
            self.places,
            truth=truth,
            only=only,
            paths=paths,
            ours=ours,
            theirs=theirs,
            remove=remove,
        )
        thorough = level or request.level_for(chosen.only)
        return request.plan(self._parts, chosen, level=thorough, on_progress=on_progress)

    def confirm(
        self, saved: "Saved", *, truth: bool = False, on_progress: OnProgress = ignore
    ) -> "tuple[Plan, list[tuple[Step, str]]]":
        """What of a plan that was kept still holds; see `request.confirm`."""
        from filestore.repair import request

        return request.confirm(self._parts, saved, truth=truth, on_progress=on_progress)

    def apply(self, plan: "Plan", *, on_progress: OnProgress = ignore) -> "RepairReport":
        """Apply a plan as far as it still holds; see `apply.apply`."""
        from filestore.repair import apply

        self.close()
        return apply.apply(self._parts, plan, on_progress=on_progress)

    def reaches(self) -> "Reaches":
        """What the store would reach outside itself."""
        from filestore.verify import trust

        with contextlib.suppress(CatalogMissingError, CatalogDamagedError), self._reading() as it:
            return trust.reaches(self.places, self.model, it)
        return trust.reaches(self.places, self.model, None)

    def trust(self) -> None:
        """Let the store reach what it names now; see `trust.trust` for what is raised."""
        from filestore.verify import trust as trusting

        trusting.trust(self._parts.configuration, self.root, self.reaches())

    def distrust(self) -> None:
        """Take back whatever this store was allowed."""
        from filestore.config import user_config

        user_config.distrust(self._parts.configuration, self.root)

    def add(
        self,
        *paths: StrPath,
        into: str | None = None,
        each: bool = False,
        copy: bool = True,
        on_copy: "OnCopy | None" = None,
        wait_s: float = DEFAULT_WAIT_S,
        on_progress: OnProgress = ignore,
    ) -> "AddReport":
        """Bring documents in, or up to date; what fails is in the report, the rest goes on.

        Args:
            paths: Files and folders; a folder is one resource.
            into: The resource's name; None for that of the file or folder.
            each: Whether every child of a folder is a resource of its own.
            copy: Whether originals from outside the work tree are copied, or only referenced.
            on_copy: Called before they are, with their path and the outcome so far.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused the sidecar; the chunk files are there.
        """
        from filestore.ingest.add import add_all
        from filestore.ingest.sources import given

        refuse_in_place(self.places, "add")
        names = [os.fsdecode(path) for path in paths]
        named = given(names, into=into, each=each, patterns=self.settings.ignore)
        self.model.ask()
        with self._parts.writing("add", wait_s=wait_s) as (catalog, embeddings, _):
            report = add_all(
                self._parts.snapshot(catalog, embeddings),
                partial(self._parts.commit, catalog, embeddings, embed=True),
                self.settings,
                named.outside(self.root, copy=copy),
                clock=self._parts.clock(),
                on_progress=on_progress,
                on_copy=on_copy,
            )
        report.folders, report.unusable = named.folders, named.unusable
        return report

    def update(
        self,
        *resources: str,
        around: StrPath = "",
        followed_only: bool = False,
        remove_gone: bool = False,
        embed: bool = True,
        wait_s: float = DEFAULT_WAIT_S,
        on_progress: OnProgress = ignore,
    ) -> "UpdateReport":
        """Re-ingest what changed among originals, then sync; see `update.run` for what is raised.

        Args:
            resources: Their names; none for all.
            around: Only resources whose source holds this folder, or lies in it.
            followed_only: Only resources that follow their originals without being asked.
            remove_gone: Whether what was made from originals that are gone is to go.
            embed: Whether texts without embedding are embedded now.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.
        """
        from filestore.ingest import update

        if not followed_only:
            refuse_in_place(self.places, "update")
        wanted = self._wanted(resources, around, followed_only, remove_gone)
        self.close()
        report = update.run(
            self._parts, wanted, embed=embed, wait_s=wait_s, on_progress=on_progress
        )
        remaining = marked(report.remaining, self.settings.accepted)
        return replace(report, synced=replace(report.synced, remaining=remaining))

    def plan_update(self, *resources: str, remove_gone: bool = False) -> "UpdatePlan":
        """What `update` would do; changes nothing."""
        from filestore.ingest import update

        refuse_in_place(self.places, "update")
        return update.plan(self._parts, self._wanted(resources, "", False, remove_gone))

    def _wanted(
        self, resources: Sequence[str], around: StrPath, followed_only: bool, remove_gone: bool
    ) -> "UpdateWanted":
        from filestore.browse.file import resource_named
        from filestore.ingest.update import Wanted

        with self._reading() if resources else contextlib.nullcontext() as it:
            names = [resource_named(it, name, self.places) for name in resources] if it else []
        place = os.path.realpath(os.fsdecode(around)) if around else ""
        return Wanted(tuple(names), place, followed_only=followed_only, remove_gone=remove_gone)

    def remove(self, *resources: str, wait_s: float = DEFAULT_WAIT_S) -> "tuple[Removed, ...]":
        """Remove resources from the tree and from the sidecar: all of them, or none.

        Raises:
            UnknownResourceError: There is none of a name.
            LockedError: Another writer holds the store.
        """
        from filestore.browse import file
        from filestore.ingest import remove as removal

        refuse_in_place(self.places, "rm")
        with self._parts.writing("rm", wait_s=wait_s) as (catalog, embeddings, _):
            names = dict.fromkeys(
                file.resource_named(catalog, name, self.places) for name in resources
            )
            removed = removal.remove(self.places, catalog, list(names))
            with self._parts.commit(catalog, embeddings, embed=False) as commit:
                commit.forget([path for one in removed for path in one.paths])
                commit.finish()
        return removed

    def undo(
        self, identifier: str | None = None, *, on_progress: OnProgress = ignore
    ) -> "UndoResult | None":
        """Put back what files held before a change; see `undo.undo_or_redo` for what is raised.

        Args:
            identifier: Which change, as `RepairReport.undo` names it; None for the newest that is
                not undone, "" for none.
            on_progress: Called with the progress.
        """
        if identifier == "":
            return None
        return self._undo_or_redo("before", identifier, on_progress)

    def redo(
        self, identifier: str | None = None, *, on_progress: OnProgress = ignore
    ) -> "UndoResult | None":
        """Make a change again that was undone; see `undo.undo_or_redo`."""
        return self._undo_or_redo("after", identifier, on_progress)

    def _undo_or_redo(
        self, wanted: "State", identifier: str | None, on_progress: OnProgress
    ) -> "UndoResult | None":
        from filestore.repair.undo import undo_or_redo

        self.model.ask()
        command = "undo" if wanted == "before" else "redo"
        with self._parts.writing(command) as (catalog, embeddings, _):
            return undo_or_redo(
                self._parts.snapshot(catalog, embeddings),
                partial(self._parts.commit, catalog, embeddings, embed=True),
                identifier,
                wanted,
                clock=self._parts.clock(),
                on_progress=on_progress,
            )

    def batches(self) -> "list[Group]":
        """The changes of truth files that can be undone or redone, oldest first."""
        from filestore.history import backup_store

        return backup_store.list_groups(self.places.undo)

    def enrich(
        self,
        *resources: str,
        generator: str | None = None,
        stop: "Event | None" = None,
        on_progress: OnProgress = ignore,
        **wanted: "Unpack[EnrichWanted]",
    ) -> "EnrichReport":
        """Make questions and summaries, and write them as files; see `request.enrich`.

        Args:
            resources: Their names; none for all.
            generator: Another one than the store's, such as ``openai:MODEL``.
            stop: Set when no more is to be begun.
            on_progress: Called with the progress.
            wanted: ``questions``, ``summaries``, ``refresh``, ``budget``: see `enrich.plan.Wish`.
        """
        from filestore.enrich import request

        wish = request.wish(self._parts, resources, wanted)
        self.close()
        options: Any = {"generator": generator, "stop": stop, "on_progress": on_progress}
        return request.enrich(self._parts, wish, **options)

    def plan_enrich(
        self,
        *resources: str,
        generator: str | None = None,
        on_progress: OnProgress = ignore,
        **wanted: "Unpack[EnrichWanted]",
    ) -> "EnrichPlan":
        """What `enrich` would make and take; changes nothing, and asks nobody."""
        from filestore.enrich import request

        wish = request.wish(self._parts, resources, wanted)
        return request.plan(self._parts, wish, generator=generator, on_progress=on_progress)

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        mode: "Mode" = "hybrid",
        where: Mapping[str, object] | None = None,
        source: str | Sequence[str] = (),
        kind: str | Sequence[str] = (),
        syntax: "Syntax" = "auto",
        rerank: str | None = None,
        group: "Literal['document'] | None" = None,
        context: int = 0,
        tree: bool = False,
        rewrite: int = 0,
    ) -> "Answer":
        """Unique files, best first; see `Searcher.search`.

        Args:
            query: What is asked.
            k: At most so many.
            mode: ``hybrid``, ``vector`` or ``keyword``.
            where: Key to value of the frontmatter or the document's metadata; all must hold, and
                so must all values of a list.
            source: Globs over the source's path, of which one must hold.
            kind: ``chunk`` or ``summary``, or both.
            syntax: Which signs in the query are operators; see `fulltext.parse_query`.
            rerank: The reranker that orders the best, such as ``cross-encoder``; None for none.
            group: ``document`` for the best hit of each document alone; `k` then counts these.
            context: How many lines before and after each passage are given.
            tree: Whether summaries lead to the texts, from the top.
            rewrite: How many new queries the store's generator makes of it, asked as well.

        Raises:
            CatalogMissingError: There is no catalog yet.
            ModelMissing: The reranker's model, or the library that runs it, is not here.
        """
        from filestore.search.filters import Filters

        # Bytes of a terminal that are no text are in no document.
        query = query.encode("utf-8", "replace").decode()
        filters = Filters.of(where or {}, source=source, kind=kind)
        return self._search_session.answer(
            query,
            k=k,
            mode=mode,
            filters=filters,
            syntax=syntax,
            rerank=rerank,
            group=group,
            context=context,
            tree=tree,
            rewrite=rewrite,
        )

    def similar(self, path: StrPath, *, k: int = 10) -> "Similar":
        """At most `k` files, most similar first, to a chunk file or original: PATH or PATH:LINE."""
        from filestore.browse import similar

        return similar.similar(self._parts, os.fsdecode(path), k)

    def duplicates(self, *, above: float = 0.95, on_progress: OnProgress = ignore) -> "Duplicates":
        """Files with the same text, or nearly; see `duplicates.duplicates`.

        Args:
            above: The least cosine of texts that count as nearly the same, 0 to 1.
            on_progress: Called with the progress.
        """
        from filestore.browse import duplicates

        return duplicates.duplicates(self._parts, above, on_progress)

    def about(self, asked: StrPath = "", *, depth: int = 2) -> "Overview":
        """What the store, a resource, a file or a question is about; see `overview.overview`."""
        from filestore.browse import overview

        return overview.overview(self._parts, self._search_session, os.fsdecode(asked), depth)

    def links(self, path: StrPath) -> "Links":
        """The links of a chunk file or an original, and those to it; see `links.links`."""
        from filestore.browse import links

        return links.links(self._parts, os.fsdecode(path))

    @cached_property
    def _search_session(self) -> "SearchSession":
        from filestore.search.session import SearchSession

        return SearchSession(lambda: self._parts)

    def evaluate(
        self,
        questions: "Sequence[Question]",
        *,
        k: int = 10,
        syntax: "Syntax" = "auto",
        compared: "Compared | None" = None,
        on_progress: OnProgress = ignore,
    ) -> "Evaluation":
        """Ask questions whose answers are known; see `evaluate.evaluate`."""
        return self._search_session.evaluate(
            questions, k=k, syntax=syntax, compared=compared, on_progress=on_progress
        )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Catalog]:
        """The catalog, of one generation throughout."""
        catalog = self._parts.catalog()
        with catalog.snapshot():
            yield catalog

    def resources(self) -> list[dict[str, Any]]:
        """Name, source and number of chunks of every resource; in place, of every document."""
        from filestore.browse import in_place

        with self._reading() as catalog:
            if self.places.is_in_place:
                return in_place.documents(self.places, catalog)
            found = catalog.resources()
        return [
            {"resource": name, "source": source or None, "chunks": chunks}
            for name, source, chunks in found
        ]

    def chunks(self, resource: str) -> list[dict[str, Any]]:
        """The indexed files of a resource, in reading order; in place, sections of a document."""
        from filestore.browse import file, in_place

        with self._reading() as catalog:
            if self.places.is_in_place:
                return in_place.sections(self.places, catalog, resource)
            name = file.resource_named(catalog, resource, self.places)
            return file.chunks(self.places, catalog, name)

    def documents(self, folder: str) -> list[dict[str, Any]] | None:
        """The documents of a folder in place, as `resources` has them; None if there is none."""
        from filestore.browse import in_place

        found = in_place.folder_named(self.places, folder) if self.places.is_in_place else None
        if found is None:
            return None
        with self._reading() as catalog:
            return in_place.documents(self.places, catalog, found)

    def show(self, path: StrPath) -> "Shown":
        """One chunk file with its record; a path may start at the root or in `chunked/`.

        In place one document, or behind ``PATH:LINE`` one section of it.
        """
        from filestore.browse import file, in_place

        with self._reading() as catalog:
            if self.places.is_in_place:
                return in_place.show(self._parts, catalog, os.fsdecode(path))
            return file.show(self.places, catalog, os.fsdecode(path))

    def locate(self, hit: StrPath, *, chunk: bool = False) -> "Place":
        """The document that a hit leads to, relative to the root, with line or page.

        Args:
            hit: ``PATH``, ``PATH:LINE``, or a line that a search printed; the path relative to the
                working folder, to the root or to `chunked/`.
            chunk: Whether a chunk file stands for itself, not for its document.

        Raises:
            NoSuchDocumentError: There is no such file.
        """
        from filestore.browse import document

        spot = document.spot_of(os.fsdecode(hit), self.places)
        return document.located(self._parts, spot, chunk=chunk)

    def reconstruct(self, resource: str) -> "Reconstruction":
        """The text of a resource from its chunk files as they are on disk."""
        from filestore.browse import file

        refuse_in_place(self.places, "reconstruct")
        with self._reading() as catalog:
            name = file.resource_named(catalog, resource, self.places)
            return file.reconstruct_resource(self.places, catalog, name, self._parts.layout)

    def plan_model(self, word: str, options: ModelOptions) -> "ModelChange":
        """What another model would cost; see `change_model.plan`, which says what is raised."""
        from filestore.sync import change_model as remodelling

        with self._reading() as catalog:
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
        from filestore.sync import change_model as remodelling

        with self._parts.writing("embedder set") as (catalog, embeddings, _):
            commit = self._parts.commit(catalog, embeddings, embed=True, embedder=change.embedder)
            report = remodelling.embed_all(commit, change, on_progress)
            remodelling.write_settings(self.places, change, self._parts.configuration)
        return report


open = Store.open
create = Store.create

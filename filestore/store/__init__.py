"""The store: the one face of all rooms below, for programs, the command line, servers and screens.

What changes a store is here, questions to it are in `reading`. A class or a function here hands
over to the room that does the work.
"""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from msgspec.structs import replace

from filestore.config.settings import ModelOptions
from filestore.core.caller import absolute
from filestore.core.progress import OnProgress, ignore
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.sidecar.refusals import refuse_useless
from filestore.store.answering import StrPath
from filestore.store.changing import ChangingStore
from filestore.store.reading import ReadableStore

if TYPE_CHECKING:
    from threading import Event

    from filestore.core.limits import Limits
    from filestore.enrich.plan import EnrichPlan, EnrichReport, WishOptions
    from filestore.exchange.base import Imported
    from filestore.index.backend import Sent
    from filestore.ingest.add import AddPlan, AddReport
    from filestore.ingest.edits import Edit
    from filestore.ingest.notes import Note, NoteWriter
    from filestore.ingest.pipeline import OnCopy
    from filestore.ingest.put import Put, Removed
    from filestore.ingest.sources import Given
    from filestore.ingest.update import UpdatePlan, UpdateReport, UpdateRequest
    from filestore.repair.plan import Plan, Policy
    from filestore.repair.request import RepairReport
    from filestore.sidecar.commit import CommitReport
    from filestore.sidecar.snapshot import Level
    from filestore.sidecar.vector_home import VectorHome
    from filestore.sync.apply import SyncReport
    from filestore.sync.packs import ImportedEmbeddings
    from filestore.sync.prune import Pruning
    from filestore.sync.switching import BackendChange, Dropping, ModelChange, Switched
    from filestore.verify.trust import Reaches


class Store(ChangingStore, ReadableStore):
    """An open store: search it, change it, see what drifted. A context manager.

    A store belongs to the thread that opened it: in any other, all but `root`, `places` and
    `settings` raise `OtherThreadError`. Open one store in each thread. They share the files as
    processes do: one writer at a time, and every reader sees one whole generation.
    """

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
            forget_missing: Whether missing files are forgotten even if they are very many.
            full: Verify everything first and repair what that finds, too.
            deep: Also ask the model, and embed again what is not its own.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused; the old generation stays.
        """
        from filestore.sync.apply import SyncRequest, catch_up
        from filestore.verify.run import verified

        self.close()
        level: Level | None = "deep" if deep else "full" if full else None
        checked = verified(self._parts, level, None, on_progress) if level else None
        request = SyncRequest(
            embed=embed, forget_missing=forget_missing, checked=checked, wait_s=wait_s
        )
        return self._shown_sync(catch_up(self._parts, request, on_progress))

    def take_up(self, *, for_s: float = 60.0) -> "SyncReport":
        """Index new, edited and moved files for some time, and do nothing else."""
        return self._shown_sync(self._look.take_up(self._parts, self.close, for_s=for_s))

    def plan(
        self,
        policy: "Policy | None" = None,
        *,
        level: "Level | None" = None,
        on_progress: OnProgress = ignore,
        **wanted: Any,
    ) -> "Plan":
        """What a repair would do; changes nothing. See `request.plan` for what is raised.

        Args:
            policy: What is wanted, as one value.
            level: How thoroughly to look; None for as much as the codes need.
            on_progress: Called with the progress.
            wanted: In place of a policy ``truth``, ``only``, ``paths``, ``ours``, ``theirs``,
                ``remove``, ``hunks``, as `Policy` has them.
        """
        from filestore.repair import request

        chosen = policy or request.policy_of(self.places, **wanted)
        thorough = level or request.level_for(chosen.only)
        return request.plan(self._parts, chosen, level=thorough, on_progress=on_progress)

    def apply(self, plan: "Plan", *, on_progress: OnProgress = ignore) -> "RepairReport":
        """Apply a plan as far as it still holds; see `apply.apply`."""
        from filestore.repair import apply

        self.close()
        return apply.apply(self._parts, plan, on_progress=on_progress)

    def trust(self, shown: "Reaches | None" = None) -> None:
        """Let the store reach what was shown, else what it names now."""
        from filestore.verify import trust as trusting

        trusting.trust(self._parts.configuration, self.root, shown or self.reaches())

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
            paths: Files and folders; a folder is one document.
            into: The document's name; None for that of the file or folder.
            each: Whether every child of a folder is a document of its own.
            copy: Whether originals from outside the work tree are copied, or only referenced.
            on_copy: Called before they are, with their path and the outcome so far.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused the sidecar; the chunk files are there.
        """
        from filestore.ingest.add import add_all

        named = self._given(paths, into, each)
        self.model.ask()
        with self._parts.writing("add", wait_s=wait_s) as (catalog, embeddings, _):
            report = add_all(
                self._parts.held(catalog, embeddings),
                named.outside(self.root, copy=copy),
                on_progress=on_progress,
                on_copy=on_copy,
            )
        report.folders, report.unusable = named.folders, named.unusable
        return self._with_vectors(report, on_progress)

    def plan_add(
        self,
        *paths: StrPath,
        into: str | None = None,
        each: bool = False,
        on_progress: OnProgress = ignore,
    ) -> "AddPlan":
        """How `add` would cut documents; changes nothing.

        Args:
            paths: Files and folders; a folder is one document.
            into: The document's name; None for that of the file or folder.
            each: Whether every child of a folder is a document of its own.
            on_progress: Called with the progress.
        """
        from filestore.ingest.add import plan_all

        named = self._given(paths, into, each)
        with self._parts.comparing() as catalog:
            snapshot = self._parts.snapshot(catalog, None)
            planned = plan_all(snapshot, named.outside(self.root), on_progress=on_progress)
        planned.report.folders, planned.report.unusable = named.folders, named.unusable
        return planned

    def _given(self, paths: Sequence[StrPath], into: str | None, each: bool) -> "Given":
        from filestore.ingest.sources import given

        refuse_useless(self.places, "add")
        names = [os.fsdecode(path) for path in paths]
        patterns = self.settings.ignore + self._closed_patterns(names, into)
        return given(names, into=into, each=each, patterns=patterns)

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
            around: Only documents whose source holds this folder, or lies in it.
            followed_only: Only documents that follow their originals without being asked.
            remove_gone: Whether what was made from originals that are gone is to go.
            embed: Whether texts without embedding are embedded now.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.
        """
        from filestore.ingest import update

        if not followed_only:
            refuse_useless(self.places, "update")
        wanted = self._wanted(resources, around, followed_only, remove_gone)
        self.close()
        report = update.run(
            self._parts, wanted, embed=embed, wait_s=wait_s, on_progress=on_progress
        )
        remaining = self.shown(report.remaining)
        return replace(report, synced=replace(report.synced, remaining=remaining))

    def plan_update(self, *resources: str, remove_gone: bool = False) -> "UpdatePlan":
        """What `update` would do; changes nothing."""
        from filestore.ingest import update

        refuse_useless(self.places, "update")
        return update.plan(self._parts, self._wanted(resources, "", False, remove_gone))

    def _wanted(
        self, resources: Sequence[str], around: StrPath, followed_only: bool, remove_gone: bool
    ) -> "UpdateRequest":
        from filestore.browse.named import resource_named
        from filestore.ingest.update import UpdateRequest

        with self._parts.reading() if resources else contextlib.nullcontext() as it:
            names = [resource_named(it, name, self.places) for name in resources] if it else []
        if self.hides and not names:
            names = [one["resource"] for one in self.resources() if one["resource"]]
        place = os.path.realpath(os.fsdecode(around)) if around else ""
        return UpdateRequest(
            tuple(names), place, followed_only=followed_only, remove_gone=remove_gone
        )

    def remove(self, *resources: str, wait_s: float = DEFAULT_WAIT_S) -> "tuple[Removed, ...]":
        """Remove documents from the tree and from the sidecar: all of them, or none.

        Raises:
            UnknownResourceError: There is none of a name.
            LockedError: Another writer holds the store.
        """
        from filestore.browse.named import resource_named
        from filestore.ingest import put as changes

        refuse_useless(self.places, "rm")
        resources = self._seen_resources(resources) if self.hides else resources
        with self._parts.writing("rm", wait_s=wait_s) as (catalog, embeddings, _):
            names = dict.fromkeys(resource_named(catalog, name, self.places) for name in resources)
            removed = changes.remove(self.places, catalog, list(names))
            with self._parts.commit(catalog, embeddings, embed=False) as commit:
                commit.forget([path for one in removed for path in one.paths])
                commit.finish()
        return removed

    def put(
        self,
        texts: str | Sequence[str],
        *,
        into: str,
        names: str | Sequence[str | None] | None = None,
        metadata: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
        replace: bool = False,
        wait_s: float = DEFAULT_WAIT_S,
        on_progress: OnProgress = ignore,
    ) -> "Put":
        """Write texts as chunk files of one folder, all or none; see `put.put` for what is raised.

        Args:
            texts: One or several. Each becomes one chunk file, whole; `add` cuts documents.
            into: The folder; it is made where there is none. "" in the flat layout, which has none.
            names: Of the files, without `.md`: a text of a name that is there takes its place. None
                for names that are made of text and metadata.
            metadata: Keys for the frontmatter of each.
            replace: Whether what a person wrote or edited may be replaced.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.
        """
        from filestore.ingest import put

        refuse_useless(self.places, "put")
        chunks = put.new_chunks(texts, names, metadata)
        self.model.ask()
        with self._parts.writing("put", wait_s=wait_s) as (catalog, embeddings, _):
            store = self._parts.held(catalog, embeddings)
            report = put.put(store, chunks, into, replace=replace, on_progress=on_progress)
        return self._with_vectors(report, on_progress)

    def add_note(
        self,
        text: str,
        *,
        title: str = "",
        folder: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        plan: bool = False,
    ) -> "Note":
        """Write a text as a new Markdown file, and index it; see `notes.NoteWriter.add`.

        Args:
            text: As Markdown; its frontmatter is the file's.
            title: Its heading, and the name of its file.
            folder: Where it lies; None for `notes`.
            metadata: Keys for its frontmatter.
            plan: Whether only what would change is wanted.
        """
        from filestore.ingest import notes

        note = notes.new_note(text, title, metadata)
        return self._note("add_note", lambda writer: writer.add(note, folder), plan)

    def append_note(
        self, path: StrPath, text: str, *, revision: str | None = None, plan: bool = False
    ) -> "Note":
        """Add a text at the end of a Markdown file, on a new line; raises what `edit_note` does.

        Args:
            path: Of the file.
            text: The text.
            revision: Of the file as it was read; another one is refused. None for any.
            plan: Whether only what would change is wanted.
        """
        from filestore.ingest.edits import Edit

        return self._edited(path, Edit(new=text), revision, plan)

    def edit_note(
        self,
        path: StrPath,
        *,
        old: str = "",
        section: str = "",
        new: str,
        revision: str | None = None,
        plan: bool = False,
    ) -> "Note":
        """Replace a passage of a Markdown file, or all the text below a heading, and index it.

        Args:
            path: Of the file.
            old: The passage, which is there exactly once.
            section: The heading, without a passage.
            new: What takes its place.
            revision: Of the file as it was read; another one is refused. None for any.
            plan: Whether only what would change is wanted.

        Raises:
            RefusedError: The file has another revision, which the message names; the passage or
                the heading is not there exactly once; it is no Markdown, or read-only.
            GitBusyError: A merge, rebase or the like is under way, or the file is unmerged.
        """
        from filestore.ingest.edits import edit_of

        return self._edited(path, edit_of(old, section, new), revision, plan)

    def _edited(self, path: StrPath, edit: "Edit", revision: str | None, plan: bool) -> "Note":
        from filestore.browse import named

        command = "edit" if edit.old or edit.section else "append"
        name = os.fsdecode(path)
        if (found := named.file_in_tree(self.places, name)) is None:
            raise named.unknown(self._parts, name)
        chunk, _ = found
        self._require_seen(chunk, name)
        return self._note(command, lambda writer: writer.edit(chunk, edit, revision, command), plan)

    def _note(self, command: str, write: "Callable[[NoteWriter], Note]", plan: bool) -> "Note":
        from filestore.ingest.notes import NoteWriter

        if plan:
            with self._parts.reading() as it:
                return write(NoteWriter(self._parts.snapshot(it, None)))
        self.model.ask()
        with self._parts.writing(command) as (catalog, embeddings, _):
            held = self._parts.held(catalog, embeddings)
            note = write(NoteWriter(held.snapshot, held))
        return self._with_vectors(note)

    def import_from(
        self,
        form: str,
        source: StrPath,
        *,
        wait_s: float = DEFAULT_WAIT_S,
        on_progress: OnProgress = ignore,
        **wanted: Any,
    ) -> "Imported":
        """Add what another store or program wrote; see `into_store.import_from`.

        Args:
            form: Its name, such as ``jsonl``.
            source: The file or folder; it may come from anybody.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.
            wanted: ``replace`` what differs, take vectors ``unchecked``, ``embed`` (else not), only
                ``plan``, and other ``limits``.
        """
        from filestore.exchange import base, into_store

        self.close()
        place = absolute(os.fsdecode(source))
        how: Any = {"wait_s": wait_s, "on_progress": on_progress}
        wish = base.ImportOptions(**wanted)
        report = into_store.import_from(self._parts, form, place, wish, **how)
        return self._with_vectors(report, on_progress) if wish.embed else report

    def enrich(
        self,
        *resources: str,
        generator: str | None = None,
        stop: "Event | None" = None,
        on_progress: OnProgress = ignore,
        **wanted: "Unpack[WishOptions]",
    ) -> "EnrichReport":
        """Make questions and summaries, and write them as files; see `run.enrich`.

        Args:
            resources: Their names; none for all.
            generator: Another one than the store's, such as ``openai:MODEL``.
            stop: Set when no more is to be begun.
            on_progress: Called with the progress.
            wanted: ``questions`` a text (None for none), ``summaries`` or not, only ``refresh``
                what is out of date, a ``budget`` in tokens, summaries ``across`` documents.
        """
        from filestore.enrich import run

        wish = run.wish(self._parts, resources, wanted)
        self.close()
        options: Any = {"generator": generator, "stop": stop, "on_progress": on_progress}
        return self._with_vectors(run.enrich(self._parts, wish, **options), on_progress)

    def plan_enrich(
        self,
        *resources: str,
        generator: str | None = None,
        on_progress: OnProgress = ignore,
        **wanted: "Unpack[WishOptions]",
    ) -> "EnrichPlan":
        """What `enrich` would make and take; changes nothing, and asks no service."""
        from filestore.enrich import run

        wish = run.wish(self._parts, resources, wanted)
        return run.plan(self._parts, wish, generator=generator, on_progress=on_progress)

    def import_embeddings(
        self,
        path: StrPath,
        *,
        unchecked: bool = False,
        wait_s: float = DEFAULT_WAIT_S,
        on_progress: OnProgress = ignore,
        limits: "Limits | None" = None,
    ) -> "ImportedEmbeddings":
        """Take embeddings from a pack, so that `sync` need not make them; see `packs.import_pack`.

        Args:
            path: Of the pack, which may come from anybody.
            unchecked: Take what the store's model cannot be asked about, too.
            wait_s: How long to wait for another writer.
            on_progress: Called with the progress.
            limits: How much of it is taken; None for what is usual.
        """
        from filestore.core.limits import USUAL
        from filestore.sync import packs

        self.close()
        options: Any = {"unchecked": unchecked, "wait_s": wait_s, "on_progress": on_progress}
        return packs.import_pack(self._parts, os.fsdecode(path), limits=limits or USUAL, **options)

    def plan_prune(self) -> "Pruning":
        """What `prune_embeddings` would remove; see `prune.plan`, which says what is raised."""
        from filestore.past import views
        from filestore.sync import prune

        return prune.plan(self._parts, partial(views.text_keys, self._parts))

    def prune_embeddings(
        self, *, spare_git: bool = False, wait_s: float = DEFAULT_WAIT_S
    ) -> "Pruning":
        """Remove the embeddings that nothing needs, or none where git may bring texts back."""
        from filestore.past import views
        from filestore.sync import prune

        self.close()
        if spare_git and prune.is_in_git(self._parts):
            return prune.NOTHING
        return prune.prune(self._parts, partial(views.text_keys, self._parts), wait_s=wait_s)

    def plan_model(
        self, word: str, options: ModelOptions, *, beside: bool = False
    ) -> "ModelChange":
        """What another model would cost; see `switching.plan`, which says what is raised.

        Args:
            word: As `init` takes it.
            options: How its model is to be used. Naming a service allows the store to reach it.
            beside: Whether it is to be a second model.
        """
        from filestore.sync import switching

        with self._parts.reading() as catalog:
            change = switching.plan(
                self.places,
                word,
                options,
                configuration=self._parts.configuration,
                catalog=catalog,
                embeddings=self._parts.embeddings(),
                is_second=beside,
            )
            switching.require_room(self._parts, catalog, change)
        return change

    def change_model(
        self, change: "ModelChange", *, on_progress: OnProgress = ignore
    ) -> "CommitReport":
        """Embed every text with a model; see `switching.apply`, which says what is raised."""
        from filestore.sync import switching

        self.close()
        return switching.apply(self._parts, change, on_progress)

    def change_backend(self, change: "BackendChange") -> "Sent":
        """Have the vectors searched in another place, and name it in the settings.

        Raises:
            BackendError: It went away, or refuses; the store keeps the place it has.
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused.
        """
        from filestore.sync import switching

        with self._parts.writing("backend set") as (catalog, embeddings, _):
            sent = switching.change_place(self._parts, change, catalog, embeddings)
        self.close()
        return sent

    def clear_backend(self, home: "VectorHome") -> bool:
        """Delete what this store has in a place that it left; see `switching.clear_left`."""
        from filestore.sync import switching

        with self._parts.writing("backend set") as (catalog, embeddings, _):
            return switching.clear_left(self._parts, home, catalog, embeddings)

    def switch_model(self) -> "Switched":
        """Have the second model and the store's own change places; see `switching.switch`."""
        from filestore.sync import switching

        self.close()
        return switching.switch(self._parts)

    def plan_drop(self) -> "Dropping":
        """What would be lost with the second model; see `switching.plan_drop`."""
        from filestore.sync import switching

        return switching.plan_drop(self._parts)

    def drop_model(self, planned: "Dropping") -> None:
        """Delete the second model and its embeddings; see `switching.drop`."""
        from filestore.sync import switching

        self.close()
        switching.drop(self._parts, planned)


open = Store.open
create = Store.create

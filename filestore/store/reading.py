"""An open store: made or found, held by the thread that opened it, and asked; never changed.

Hands each question to its module.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from filestore.catalog import CatalogDamagedError, CatalogMissingError
from filestore.config.layout import Places, configuration_folder, find_root, require_named
from filestore.config.settings import ModelOptions, Settings
from filestore.core.caller import absolute, leads
from filestore.core.errors import UsageError
from filestore.core.findings import marked
from filestore.core.progress import OnProgress, ignore
from filestore.fs.programs import require_utf8
from filestore.sidecar.refusals import refuse_useless
from filestore.sidecar.session import Parts
from filestore.store.answering import AnsweringStore, StrPath, from_index

if TYPE_CHECKING:
    from filestore.browse.alike import Duplicates, Similar
    from filestore.browse.contents import Contents
    from filestore.browse.documents import WholeDocument
    from filestore.browse.file import ChunkFile, ChunkFiles, Resource, Resources
    from filestore.browse.links import Links
    from filestore.browse.overview import Overview
    from filestore.browse.shown import Shown
    from filestore.browse.vectors import VectorMap
    from filestore.chunks.reading_order import Reconstruction
    from filestore.config.settings import Backend
    from filestore.embed import Embedder
    from filestore.exchange.from_store import Exported
    from filestore.fs.watched_tree import WatchedTree
    from filestore.fulltext import Syntax
    from filestore.index.backend import ShownHome
    from filestore.past.compare import Gate, StoreComparison
    from filestore.past.moment import Log, LogEntry
    from filestore.past.views import PastStore
    from filestore.search import Mode, Query
    from filestore.search.answer import Answer
    from filestore.search.compare_models import ModelComparison
    from filestore.search.evaluate import Compared, Evaluation
    from filestore.search.metrics import Question
    from filestore.search.place import Place
    from filestore.sidecar.model import StoreModel
    from filestore.sidecar.snapshot import Level, OnFound, Sample
    from filestore.sidecar.vector_home import VectorHome
    from filestore.sync.packs import ExportedEmbeddings
    from filestore.sync.switching import BackendChange
    from filestore.verify.run import Checked, Status
    from filestore.verify.staged import Staged
    from filestore.verify.trust import Reaches


class OtherThreadError(UsageError):
    """A store is used by another thread than the one that opened it."""


class ReadableStore(AnsweringStore):
    """A store that is open for the thread that opened it, and asked. A context manager."""

    def __init__(
        self,
        root: StrPath = ".",
        *,
        configuration: StrPath | None = None,
        processes: int = 1,
        on_wait: Callable[[str], None] = lambda _: None,
        for_programs: bool = False,
        today: Callable[[], date] = date.today,
    ) -> None:
        """Open the store at a root; `open` also looks around for it.

        Args:
            root: The folder with `filestore.toml`.
            configuration: The folder of the user's settings; None for the usual one.
            processes: 2 lets a forked child walk half of a large tree; only for a process
                without threads.
            on_wait: Called with the holder of the writer's lock, where the lock is waited for.
            for_programs: Whether what the settings close to programs is neither seen nor changed.
            today: On which day documents are judged that say to be stale after a date.

        Raises:
            NoStoreError, SettingsError: There are no settings, or they cannot be used.
            UnsafeSidecarError: The sidecar is not ours.
            LocaleError: This process does not read names of files as UTF-8.
        """
        require_utf8()
        folder = configuration_folder() if configuration is None else os.fsdecode(configuration)
        self._session = Parts(
            leads(os.fsdecode(root)),
            configuration=folder,
            processes=processes,
            for_programs=for_programs,
        )
        self._session.on_wait, self._session.today = on_wait, today
        self._thread = threading.get_ident()

    @classmethod
    def open(
        cls,
        path: StrPath = ".",
        *,
        configuration: StrPath | None = None,
        for_programs: bool = False,
    ) -> Self:
        """Open the store that a folder is, holds (as `file_index`) or lies in."""
        start = os.fsdecode(path)
        root = find_root(start, None if os.path.isdir(start) else start)
        return cls(root, configuration=configuration, for_programs=for_programs)

    @classmethod
    def create(
        cls,
        path: StrPath,
        *,
        embedder: str | None = None,
        layout: str = "tree",
        endpoint: str | None = None,
        configuration: StrPath | None = None,
    ) -> Self:
        """Make a store in a new folder, or one that has no store yet, and open it.

        Args:
            path: The folder.
            embedder: ``minilm``, ``multilingual``, ``builtin``, a model's name or folder, or
                ``openai:MODEL``; None for ``minilm``.
            layout: ``tree``: one folder a document; ``flat``: all chunk files in one folder;
                ``in-place``: the folder's own documents, which are never written.
            endpoint: The address of the service of ``openai:MODEL``, which it then may reach.
            configuration: The folder of the user's settings; None for the usual one.

        Raises:
            RefusedError: There is a store already, or the folder lies inside one.
            FilestoreError: The embedder is of no use here, or the folder cannot be written.
        """
        from filestore.sidecar import create

        require_utf8()
        require_named(os.fsdecode(path))
        root = absolute(os.fsdecode(path))
        # A link that leads nowhere is refused, not followed: the disk behind it may be missing.
        root = leads(root) if os.path.isdir(root) else root
        folder = configuration_folder() if configuration is None else os.fsdecode(configuration)
        options = ModelOptions(endpoint=endpoint)
        create.make(root, layout=layout, embedder=embedder, options=options, configuration=folder)
        store = cls(root, configuration=folder)
        with store._parts.writing("init"):
            return store

    @property
    def _parts(self) -> Parts:
        """The parts, for the thread that they belong to."""
        if threading.get_ident() != self._thread:
            raise OtherThreadError(
                f"the store in {self.root} was opened by another thread"
                ": open it again in this thread: filestore.open(…)",
            )
        return self._session

    def close(self) -> None:
        """Let go of every file."""
        if "_search_session" in vars(self):
            self._search_session.close()
        self._parts.close()

    @property
    def places(self) -> Places:
        """Where everything lies."""
        return self._session.places

    @property
    def settings(self) -> Settings:
        """What the store was set to."""
        return self._session.settings

    @property
    def root(self) -> str:
        """The folder with `filestore.toml`."""
        return self.places.root

    @property
    def model(self) -> "StoreModel":
        """The model that the settings name, opened as far as it can be here."""
        return self._parts.model

    @property
    def is_model_outdated(self) -> bool:
        """Whether a model that was not here, or not allowed, when it was opened would be now."""
        return self._parts.is_model_outdated

    def share_model(self, other: "ReadableStore") -> bool:
        """Use the model that another open store of this root has loaded, if it is the same one.

        The other store may belong to another thread: the two take turns.
        """
        return self._parts.share_model(other._session)

    def stand_in_for(self, root: StrPath) -> None:
        """Use the models as the store at another root may, whose place this one is to take."""
        self._parts.stand_in_for(leads(os.fsdecode(root)))

    def watch_tree(self, watched: "WatchedTree") -> None:
        """Have `status` look only at what changed since it was last asked.

        Several stores of this root may share one, in any threads; who made it closes it.
        """
        self._parts.watched_tree = watched

    @property
    def beside(self) -> "StoreModel | None":
        """The second model, opened as far as it can be here; None where there is none."""
        return self._parts.models.second

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder of the settings; None where it cannot be used here."""
        return self.model.embedder

    def search(self, query: "Query | str", **options: Any) -> "Answer":
        """Unique files, best first, of the files as they are.

        New and edited files are indexed first where that is quick; what the index lacks else is in
        `Answer.behind` and in the notes.

        Args:
            query: What is asked, as a text or a `Query`.
            options: The fields of a `Query`, such as ``k=5`` or ``mode="keyword"``.

        Raises:
            UsageError: An option has no such value.
            CatalogMissingError: There is no catalog yet.
            NothingBeside: There is no second model.
            ModelMissing: The reranker's model, or the library that runs it, is not here.
        """
        from filestore.search import Query

        asked, session = Query.of(query, options), self._search_session
        return self.after_look(lambda _: session.answer(asked), update=asked.update)

    def status(self) -> "Status":
        """Drift by stat, reading only files whose stat differs or cannot be relied on."""
        from filestore.verify import run

        found = run.status(self._parts)
        return self._shown_status(replace(found, findings=self.shown(found.findings)))

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

        return self._shown_checked(run.verified(self._parts, level, sample, on_progress, on_found))

    def staged(self) -> "Staged":
        """What git has staged, checked as `verify` checks files."""
        from filestore.verify.staged import check

        found = check(self.places, self._parts.layout)
        return replace(found, findings=marked(found.findings, self.settings.accepted))

    def reaches(self) -> "Reaches":
        """What the store would reach outside itself."""
        from filestore.verify import trust

        with (
            contextlib.suppress(CatalogMissingError, CatalogDamagedError),
            self._parts.reading() as it,
        ):
            return trust.reaches(self._parts, it)
        return trust.reaches(self._parts, None)

    def backend(self) -> "ShownHome":
        """Where its vectors are, and in which state."""
        with self._parts.reading() as catalog:
            return self._parts.home.shown(catalog)

    def vector_home(self) -> "VectorHome":
        """Where its vectors live."""
        return self._parts.home

    def at(
        self, revision: str, *, embed: bool = False, on_progress: OnProgress = ignore
    ) -> "PastStore":
        """The store as a commit had it, to be searched and closed; no work tree is touched.

        Args:
            revision: Names the commit, such as ``HEAD~3``, a branch, a tag or a hash.
            embed: Whether texts of it that were never embedded are embedded now.
            on_progress: Called with the progress.

        Raises:
            NoRevisionError: There is no such commit here.
            NoStoreThenError: It has nothing of the store.
        """
        from filestore.past.views import PastStore

        return PastStore(self._parts, revision, embed=embed, on_progress=on_progress)

    def compare(
        self,
        questions: "Sequence[Question]",
        first: str,
        second: str | None = None,
        *,
        k: int = 10,
        mode: "Mode" = "hybrid",
        gate: "Gate | None" = None,
        embed: bool = False,
        on_progress: OnProgress = ignore,
    ) -> "StoreComparison":
        """Ask the same at two commits, or at one and today; see `compare.compare`."""
        from filestore.past import compare
        from filestore.search import Query

        way = Query(text="", k=k, mode=mode)
        options: Any = {"gate": gate, "embed": embed, "on_progress": on_progress}
        return compare.compare(self._parts, questions, first, second, way, **options)

    def log(
        self,
        query: str,
        *,
        most: int = 50,
        k: int = 10,
        mode: "Mode" = "hybrid",
        embed: bool = False,
        on_progress: OnProgress = ignore,
        on_entry: "Callable[[LogEntry], object] | None" = None,
    ) -> "Log":
        """When the answer to a question changed; see `moment.log`."""
        from filestore.past import moment
        from filestore.search import Query

        asked = Query(text=query, k=k, mode=mode)
        calls: Any = {"on_progress": on_progress, "on_entry": on_entry}
        return moment.log(self._parts, asked, most=most, embed=embed, **calls)

    @from_index
    def similar(self, path: StrPath, *, k: int = 10) -> "Similar":
        """At most `k` files, most similar first, to a chunk file or original: PATH or PATH:LINE."""
        from filestore.browse import alike

        return alike.similar(self._parts, os.fsdecode(path), k)

    @from_index
    def duplicates(self, *, above: float = 0.95, on_progress: OnProgress = ignore) -> "Duplicates":
        """Files with the same text, or nearly; see `alike.duplicates`.

        Args:
            above: The least cosine of texts that count as nearly the same, 0 to 1.
            on_progress: Called with the progress.
        """
        from filestore.browse import alike

        return alike.duplicates(self._parts, above, on_progress)

    @from_index
    def about(self, asked: StrPath = "", *, depth: int = 2) -> "Overview":
        """What the store, a resource, a file or a question is about; see `overview.overview`."""
        from filestore.browse import overview

        return overview.overview(self._parts, self._search_session, os.fsdecode(asked), depth)

    @from_index
    def links(self, path: StrPath) -> "Links":
        """The links of a chunk file or an original, and those to it; see `links.links`."""
        from filestore.browse import links

        return links.links(self._parts, os.fsdecode(path))

    @from_index
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
        from filestore.search import Query, evaluate

        way = Query(text="", k=k, syntax=syntax)
        asked = (self._search_session, self._parts, questions, way)
        return evaluate.evaluate(*asked, compared=compared, on_progress=on_progress)

    def export_embeddings(
        self,
        path: StrPath,
        *,
        everything: bool = False,
        on_progress: OnProgress = ignore,
    ) -> "ExportedEmbeddings":
        """Write the embeddings of the store's texts into one file; see `packs.export_pack`.

        Args:
            path: Of the pack; an earlier one is replaced.
            everything: Whatever is in the cache, of all models.
            on_progress: Called with the progress.
        """
        from filestore.sync import packs

        return packs.export_pack(
            self._parts, os.fsdecode(path), everything=everything, on_progress=on_progress
        )

    def plan_backend(self, backend: "Backend", *, takes_over: bool = False) -> "BackendChange":
        """What another place for the vectors takes; see `switching.plan_place`."""
        from filestore.sync import switching

        with self._parts.reading() as catalog:
            return switching.plan_place(
                self.places,
                backend,
                catalog=catalog,
                embedder=self._parts.own_embedder(catalog),
                takes_over=takes_over,
            )

    def export(
        self,
        form: str,
        target: StrPath,
        *resources: str,
        vectors: bool = True,
        on_progress: OnProgress = ignore,
    ) -> "Exported":
        """Write the store in a form of other programs; see `from_store.export`.

        Args:
            form: Its name, such as ``jsonl``.
            target: The file or folder; what the same form wrote there before is replaced.
            resources: Their names; none for all.
            vectors: Whether their vectors go with the texts.
            on_progress: Called with the progress.
        """
        from filestore.browse.named import resource_named
        from filestore.exchange import from_store

        with self._parts.reading() as catalog:
            names = [resource_named(catalog, name, self.places) for name in resources]
            place = absolute(os.fsdecode(target))
            options: Any = {"resources": names, "vectors": vectors, "on_progress": on_progress}
            return from_store.export(self._parts, catalog, form, place, **options)

    def compare_models(
        self,
        questions: "Sequence[Question] | None" = None,
        *,
        k: int = 10,
        mode: "Mode" = "vector",
        on_progress: OnProgress = ignore,
    ) -> "ModelComparison":
        """Ask the store's own model and the second one the same; see `compare_models.compare`."""
        from filestore.search import Query, compare_models

        way = Query(text="", k=k, mode=mode, syntax="plain")
        searching = self._search_session
        return compare_models.compare(searching, self._parts, questions, way, on_progress)

    def resources(self, *, after: str | None = None, limit: int | None = None) -> "list[Resource]":
        """Name, source and number of chunks of each document; behind a name."""
        from filestore.browse import documents

        return documents.resources(self._parts, after, limit)

    def chunks(self, resource: str) -> "list[ChunkFile]":
        """The indexed files of a document, in reading order; in place, its sections."""
        from filestore.browse import documents

        return documents.files_of(self._parts, resource)

    def documents(self, folder: str) -> "list[Resource] | None":
        """The documents of a folder in place, as `resources` has them; None if there is none."""
        from filestore.browse import documents

        return documents.in_folder(self._parts, folder)

    @from_index
    def contents(
        self,
        folder: str = "",
        *,
        recent: int = 0,
        after: str = "",
        most: int | None = None,
    ) -> "Contents":
        """Folders with counts, the newest, the most linked, and a folder's documents.

        Args:
            folder: A folder or a glob; "" for the store.
            recent: Only the n newest of it; 0 for the folder as it is.
            after: Begin behind this entry of the page before.
            most: Characters, about; None for all.

        Raises:
            UnknownPathError: There is no such folder, and nothing matches.
        """
        from filestore.browse import contents

        wanted = contents.Wanted(folder=folder, recent=recent, after=after, most=most)
        with self._parts.reading() as catalog:
            return contents.contents(self._parts, catalog, wanted)

    @from_index
    def ls(self, name: str = "") -> "Resources | ChunkFiles":
        """What `resources` lists, the documents of a folder, or what `chunks` lists of one."""
        from filestore.browse import documents

        return documents.listed(self._parts, name)

    @from_index
    def show(self, path: StrPath, *, lines: str = "", most: int | None = None) -> "Shown":
        """One file, or a part of it, with what the store knows of it; see `shown.show`.

        Args:
            path: A chunk file, a document, or an original, with or without a place in it.
            lines: Instead of that place: ``10-40``, ``10-``, ``p2``, ``p2-4`` or ``#Heading``.
            most: Characters, in whole lines; None for all of them.
        """
        from filestore.browse import shown

        asked = shown.Asked(text=os.fsdecode(path), lines=lines, most=most)
        with self._parts.reading() as catalog:
            return shown.show(self._parts, catalog, asked)

    @from_index
    def document(
        self,
        path: StrPath,
        *,
        line: int = 0,
        first: int | None = None,
        most: int = 1_000_000,
        link: str = "",
        rendered: bool = False,
    ) -> "WholeDocument":
        """The whole document that a file is, or was made from, part by part; see `documents.whole`.

        Args:
            path: A chunk file or a document.
            line: Of a document in place, whose part must be there.
            first: Begin with the part of this number, from 0.
            most: Characters, at most, but one part at least.
            link: A link in it as it is written, such as ``[[a#Costs]]``, which is followed.
            rendered: Whether each part has its blocks.
        """
        from filestore.browse import documents, links

        name = os.fsdecode(path)
        name, heading = links.followed(self._parts, name, link) if link else (name, "")
        wanted = documents.AskedParts(line, first, most, heading, rendered)
        with self._parts.reading() as catalog:
            return documents.whole(self._parts, catalog, name, wanted)

    @from_index
    def vector_map(self, *, most: int = 2_000) -> "VectorMap":
        """The texts of the store as points in a plane; see `Explorer.vector_map`."""
        from filestore.browse.vectors import Explorer

        return Explorer(self._parts).vector_map(most)

    def locate(self, hit: StrPath, *, chunk: bool = False) -> "Place":
        """The document that a hit leads to, relative to the root, with line or page.

        Args:
            hit: PATH, PATH:LINE or a line of a search; from here, from the root or from `chunked/`.
            chunk: Whether a chunk file is located itself, not its document.

        Raises:
            UnknownPathError: There is no such file.
        """
        from filestore.browse import named

        spot = named.spot_of(os.fsdecode(hit), self._parts)
        return named.located(self._parts, spot, chunk=chunk)

    def reconstruct(self, resource: str) -> "Reconstruction":
        """The text of a document from its chunk files as they are on disk."""
        from filestore.browse import joined, named

        refuse_useless(self.places, "reconstruct")
        with self._parts.reading() as catalog:
            name = named.resource_named(catalog, resource, self.places)
            return joined.reconstruct_resource(self.places, catalog, name, self._parts.layout)

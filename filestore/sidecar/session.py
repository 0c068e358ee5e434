"""The parts of one store, opened: settings, model, catalog, embeddings, lock, commits.

What the operations on a store share. Opens and closes; decides nothing. One rule: two models are
never mixed, so an embedder is given only for vectors that are its own.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from filestore.catalog import Catalog, CatalogDamagedError, CatalogMissingError, catalog_errors
from filestore.config import settings
from filestore.config.layout import SETTINGS, NoStoreError, Places
from filestore.config.settings import Settings
from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath, is_below
from filestore.fs import disk
from filestore.fs.lock import DEFAULT_WAIT_S, writer_lock
from filestore.fs.part import explained, of_sqlite
from filestore.git.repository import deleted_paths, is_stopped, unmerged
from filestore.sidecar.refusals import check_sidecar

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.chunks.layout import Layout
    from filestore.config.settings import Backend
    from filestore.config.user_config import Originals
    from filestore.core.findings import Finding
    from filestore.embed import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.fs.watched_tree import WatchedTree
    from filestore.sidecar.commit import Commit
    from filestore.sidecar.model import StoreModel
    from filestore.sidecar.models import Models
    from filestore.sidecar.originals import Reachable
    from filestore.sidecar.snapshot import StoreSnapshot, Writing
    from filestore.sidecar.vector_home import VectorHome


class Parts:
    """The parts of one store, each opened as it is first needed."""

    def __init__(
        self, root: str, *, configuration: str, processes: int = 1, for_programs: bool = False
    ) -> None:
        """Read the settings; see `Store`, which says what is raised."""
        root = os.path.abspath(root)
        path = os.path.join(root, SETTINGS)
        try:
            data = settings.read(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoStoreError(f"no store in {root}", remedy="filestore init") from error
        parsed = settings.parse(data, name=path)
        unknown = parsed.unknown + settings.users(configuration)[1]
        self._settings = replace(parsed, unknown=unknown)
        tree = settings.LAYOUTS[self.settings.layout]
        self.places = Places(
            root=root,
            sidecar=settings.sidecar_folder(root, configuration, tree),
            configuration=configuration,
            tree=tree,
        )
        if not tree.is_written:
            from filestore.extract.tree_rules import tree_rules

            # What of a folder of documents belongs to the store.
            own, top = os.path.realpath(self.places.sidecar), os.path.realpath(root)
            ours = [os.path.relpath(own, top).replace(os.sep, "/")] if is_below(own, top) else []
            rules = tree_rules(root, parsed.ignore, leave_out=list(map(ChunkPath, ours)))
            self.places = replace(self.places, rules=rules)
        if for_programs:
            from filestore.sidecar.door import door_of

            door = door_of(parsed.agents, root, configuration)
            self.places = replace(self.places, door=door)
        check_sidecar(self.places)
        self.configuration = configuration
        self.on_wait: Callable[[str], None] = lambda _: None
        """Called with the holder of the writer's lock, where the lock is waited for."""
        self.today: Callable[[], date] = date.today
        """On which day what documents say to be stale after a date is judged."""
        self.embed_for_s: float | None = None
        """For how long a command embeds texts that wait; None until none does."""
        self.watched_tree: WatchedTree | None = None
        """A walk of the tree that is kept, which `status` asks."""
        self._processes = processes
        self._named_for = root
        """The root by which the user's permissions and the settings' paths of models are read."""
        self._catalog: Catalog | None = None
        self._open_catalog: Catalog | None = None
        self._embeddings: EmbeddingCache | None = None
        self._models: Models | None = None
        self._vector_home: VectorHome | None = None

    @property
    def settings(self) -> Settings:
        """What the store is set to; what other ones name otherwise is opened anew."""
        return self._settings

    @settings.setter
    def settings(self, now: Settings) -> None:
        """Go on with other settings."""
        was, self._settings = self._settings, now
        if was.models != now.models:
            self._models = None
        if was.backend != now.backend:
            self._vector_home = None

    def close(self) -> None:
        """Let go of every file."""
        for part in (self._embeddings, self._catalog, self._open_catalog):
            if part is not None:
                part.close()
        self._embeddings = self._catalog = self._open_catalog = None

    @cached_property
    def layout(self) -> "Layout":
        """How the files of the store are named, and what they mean."""
        if self.places.tree.has_sections:
            from filestore.sidecar.documents import Documents

            return Documents(self.places, self.settings.budget, processes=self._processes)
        from filestore.chunks.layout import CHUNK_FILES

        return CHUNK_FILES[self.settings.layout]

    @property
    def models(self) -> "Models":
        """The models that the settings name."""
        from filestore.sidecar.model import StoreModel
        from filestore.sidecar.models import Models

        if self._models is None:
            root, configuration, recorded = self._named_for, self.configuration, self.fingerprints
            self._models = Models(
                self.settings, lambda one: StoreModel(root, one, configuration, recorded=recorded)
            )
        return self._models

    @property
    def model(self) -> "StoreModel":
        """The store's own model, opened as far as it can be here."""
        return self.models.own

    def stand_in_for(self, root: str) -> None:
        """Use the models as the store at another root may, whose place this one is to take."""
        self._named_for = root
        self._models = None

    def share_model(self, other: "Parts") -> bool:
        """Use the model that other parts of this store opened, if the settings name the same."""
        mine, its = self.settings, other.settings
        is_same = self.places.root == other.places.root and (mine.embedder, mine.model) == (
            its.embedder,
            its.model,
        )
        if is_same:
            self.models.own = other.model
        return is_same

    @property
    def is_model_outdated(self) -> bool:
        """Whether a model that was opened without success would open now."""
        return self._models is not None and self._models.is_outdated

    @property
    def home(self) -> "VectorHome":
        """Where the vectors live."""
        if self._vector_home is None:
            self._vector_home = home_of(self.settings.backend, self.places)
        return self._vector_home

    def opened_again(self) -> "Parts":
        """The same store by the settings that it has now, opened apart."""
        return Parts(
            self.places.root,
            configuration=self.configuration,
            processes=self._processes,
            for_programs=self.places.door is not None,
        )

    def fingerprints(self) -> list[str]:
        """What the store's vectors were made by: by the catalog, then by the embeddings."""
        from filestore.embed.cache import EmbeddingCache

        found = []
        # Opened apart: what is asked here may be set aside by a writer right after.
        with (
            contextlib.suppress(FilestoreError, sqlite3.Error),
            contextlib.closing(Catalog.open(self.places.catalog)) as catalog,
        ):
            found.append(catalog.meta("fingerprint") or "")
        with (
            contextlib.suppress(FilestoreError, sqlite3.Error),
            EmbeddingCache.open(self.places.embeddings, read_only=True) as embeddings,
        ):
            found += embeddings.fingerprints()
        return found

    def same_model(self, catalog: Catalog) -> "Embedder | None":
        """The embedder, if the catalog's vectors are its own."""
        embedder = self.model.embedder
        recorded = catalog.meta("fingerprint")
        return embedder if embedder and recorded in (None, embedder.fingerprint) else None

    def own_embedder(self, catalog: Catalog) -> "Embedder":
        """The embedder of the catalog's vectors.

        Raises:
            FilestoreError: What says why it is not here.
        """
        embedder = self.same_model(catalog)
        if embedder is None:
            raise self.model.why_not
        return embedder

    def catalog(self) -> Catalog:
        """The catalog, to be read; for a program without what is closed to it.

        Raises:
            CatalogMissingError: There is none.
            CatalogDamagedError: It is no sound catalog.
            FilestoreError: It cannot be opened at all.
        """
        closed = self.places.closed
        if closed is None:
            return self._whole_catalog()
        if self._open_catalog is None:
            from filestore.catalog import OpenCatalog

            tree = self.places.tree
            self._open_catalog = self._opened_catalog(
                lambda path: OpenCatalog.of(path, closed, tree)
            )
        return self._open_catalog

    def _whole_catalog(self) -> Catalog:
        if self._catalog is None:
            self._catalog = self._opened_catalog(Catalog.open)
        return self._catalog

    def _opened_catalog(self, opened: Callable[[str], Catalog]) -> Catalog:
        try:
            return opened(self.places.catalog)
        except sqlite3.OperationalError as error:
            disk.pass_hidden_limits(error)
            reason = of_sqlite(self.places.catalog, error)
            place, problem, remedy = explained(self.places.catalog, reason)
            raise FilestoreError(f"cannot open {place}: {problem}", remedy=remedy) from error

    @contextlib.contextmanager
    def reading(self) -> Iterator[Catalog]:
        """The catalog, of one generation throughout; see `catalog` for what is raised."""
        catalog = self.catalog()
        with catalog.snapshot():
            yield catalog

    @contextlib.contextmanager
    def comparing(self) -> Iterator[Catalog]:
        """The same with all files, for every caller: for what compares it with the tree.

        What is made of it must not reach a program, see `Store.shown`.
        """
        catalog = self._whole_catalog()
        with catalog.snapshot():
            yield catalog

    def embeddings(self) -> "EmbeddingCache | None":
        """The embeddings, to be read; None where they cannot be."""
        from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged, EmbeddingsMissing

        if self._embeddings is None:
            # Its verification reports why it cannot be opened.
            unusable = (EmbeddingsMissing, EmbeddingsDamaged, sqlite3.OperationalError)
            with contextlib.suppress(*unusable):
                self._embeddings = EmbeddingCache.open(self.places.embeddings, read_only=True)
        return self._embeddings

    def snapshot(self, catalog: Catalog, embeddings: "EmbeddingCache | None") -> "StoreSnapshot":
        """What is verified and followed."""
        from filestore.sidecar import losses
        from filestore.sidecar.snapshot import StoreSnapshot

        root, model = self.places.root, self.model
        no_model = "" if model.is_unasked or not model.problem else self.models.why_not("own")
        return StoreSnapshot(
            places=self.places,
            layout=self.layout,
            catalog=catalog,
            embeddings=embeddings,
            embedder=self.model.embedder,
            no_model=no_model,
            models=self.models,
            deleted=partial(deleted_paths, root, self.places.tree),
            lost=partial(losses.lost_of_git, self.places, self.layout),
            processes=self._processes,
            settings=self.settings,
            today=self.today(),
            home=self.home,
            unmerged=frozenset(unmerged(self.places.chunked) if is_stopped(root) else ()),
            originals=self.originals(),
        )

    def held(
        self, catalog: "CatalogWriter", embeddings: "EmbeddingCache", *, embed: bool = True
    ) -> "Writing":
        """What `writing` gave, for what writes files; see `commit`."""
        from filestore.sidecar.snapshot import Writing

        return Writing(
            snapshot=self.snapshot(catalog, embeddings),
            open_commit=partial(self.commit, catalog, embeddings, embed=embed),
            clock=self.clock(),
        )

    def originals(self) -> "Originals":
        """Where this user lets the store look for originals, outside its work tree."""
        from filestore.config.user_config import read_machine

        return read_machine(self.configuration, os.environ).originals_of(self.places.root)

    def reachable(self) -> "Reachable":
        """Which recorded originals may be looked at, and where they are."""
        from filestore.sidecar.originals import Reachable

        return Reachable(self.places, self.originals())

    @contextlib.contextmanager
    def looking(self, *, sound: bool) -> "Iterator[tuple[StoreSnapshot, bool]]":
        """The parts in one snapshot, and whether the catalog is the store's.

        Args:
            sound: Whether it is to be asked at all; an empty one replaces it, as it does for
                one that cannot be read.
        """
        catalog = None
        with contextlib.suppress(CatalogMissingError, CatalogDamagedError):
            catalog = self._whole_catalog() if sound else None
        used = catalog or Catalog.open(":memory:", create=True)
        try:
            with used.snapshot():
                yield self.snapshot(used, self.embeddings()), catalog is not None
        finally:
            if catalog is None:
                used.close()

    @contextlib.contextmanager
    def writing(
        self,
        command: str,
        *,
        wait_s: float = DEFAULT_WAIT_S,
        found: "Sequence[Finding]" = (),
        unsound: Sequence[bytes] = (),
    ) -> "Iterator[tuple[CatalogWriter, EmbeddingCache, tuple[Finding, ...]]]":
        """Hold the writer's lock, with catalog and embeddings open, and what was repaired for that.

        Args:
            command: Under which name the lock is held.
            wait_s: How long to wait for another writer.
            found: Findings of a verification: parts that these condemn are set aside first.
            unsound: Embedding keys whose vector it found to be wrong.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused.
        """
        with (
            self.locked(command, wait_s=wait_s) as require_alone,
            self.opened(require_alone, found=found, unsound=unsound) as opened,
        ):
            yield opened

    @contextlib.contextmanager
    def locked(
        self, command: str, *, wait_s: float = DEFAULT_WAIT_S
    ) -> "Iterator[Callable[[], None]]":
        """Hold the writer's lock; see `writing`.

        Yields:
            What `opened` takes.
        """
        from filestore.sidecar import recover

        recover.make_sidecar(self.places)
        with (
            disk.disk_errors(self.places.sidecar),
            writer_lock(
                self.places.lock,
                command=f"filestore {command}",
                wait_s=wait_s,
                on_wait=self.on_wait,
            ) as require_alone,
        ):
            # Another process may have set others: by those of before, this one would have the
            # catalog count on another model again, and send its vectors to a place that was left.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                path = self.places.settings
                now = settings.parse(settings.read(path), name=path)
                self.settings = replace(self.settings, backend=now.backend, **now.models)
            yield require_alone

    @contextlib.contextmanager
    def opened(
        self,
        require_alone: Callable[[], None],
        *,
        found: "Sequence[Finding]" = (),
        unsound: Sequence[bytes] = (),
    ) -> "Iterator[tuple[CatalogWriter, EmbeddingCache, tuple[Finding, ...]]]":
        """Open catalog and embeddings to be written, while the lock is held; see `writing`."""
        from filestore.sidecar import recover

        discarded: list[Finding] = []
        if found or unsound:
            # What is set aside must not stay open.
            self.close()
            discarded = recover.discard_damaged(self.places, self.models, found, unsound)
        catalog, embeddings, repaired = recover.open_parts(self.places, self.models)
        catalog.require_alone = require_alone
        try:
            with catalog_errors(catalog.problem):
                recover.note_lost(self.places, self.layout, catalog)
                self.home.doubt(catalog, found)
                yield catalog, embeddings, (*discarded, *repaired)
        finally:
            catalog.close()
            embeddings.close()

    def commit(
        self,
        catalog: "CatalogWriter",
        embeddings: "EmbeddingCache",
        *,
        embed: bool,
        embedder: "Embedder | None" = None,
        other: "Embedder | None" = None,
    ) -> "Commit":
        """A commit to what `writing` gave.

        Args:
            catalog: Of `writing`.
            embeddings: Of `writing`.
            embed: Whether texts without embedding are embedded now.
            embedder: Another one than the store's, which takes its place.
            other: Another second model than the settings name.
        """
        from filestore.sidecar.commit import Commit
        from filestore.sidecar.embedding_feed import other_feeds

        own = embedder or self.models.searched(catalog, "own")
        return Commit(
            places=self.places,
            layout=self.layout,
            catalog=catalog,
            embeddings=embeddings,
            embedder=own,
            embed=embed,
            no_embedder=None if own else self.model.why_not,
            metric=self.settings.metric,
            home=self.home,
            others=other_feeds(self.models, catalog, embeddings, own, embed=embed, other=other),
            keys=self.settings.keys,
        )

    def clock(self) -> disk.FileSystemClock:
        """The clock of the file system that the store lies on."""
        return disk.FileSystemClock(self.places.clock)


def home_of(backend: "Backend", places: Places) -> "VectorHome":
    """Where settings have the vectors live; nothing is opened yet."""
    if backend.is_own_file:
        from filestore.sidecar.vector_file import OwnFile

        return OwnFile(places)
    from filestore.config.user_config import read_machine
    from filestore.sidecar.vector_rows import VectorRows

    return VectorRows(backend, places, machine=read_machine(places.configuration, os.environ))

"""The parts of one store, opened: settings, model, catalog, embeddings, lock, commits.

What the operations on a store share. Opens and closes; decides nothing. One rule: two models are
never mixed, so an embedder is given only for vectors that are its own.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from filestore.catalog import Catalog, CatalogDamagedError, CatalogMissingError, catalog_errors
from filestore.config import settings
from filestore.config.discovery import NoStoreError
from filestore.config.layout import SETTINGS, Places
from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath, is_below
from filestore.fs import disk
from filestore.fs.lock import DEFAULT_WAIT_S, writer_lock
from filestore.git.repository import deleted_paths, operation, unmerged
from filestore.sidecar import git_losses
from filestore.sidecar.refusals import check_sidecar

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.chunks.layout import Layout
    from filestore.config.settings import Backend
    from filestore.core.findings import Finding
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.fs.scan import TreeRules
    from filestore.sidecar.chunker import Chunker
    from filestore.sidecar.commit import Commit
    from filestore.sidecar.model import StoreModel
    from filestore.sidecar.reachable import Reachable
    from filestore.sidecar.snapshot import StoreSnapshot
    from filestore.sidecar.vector_rows import VectorRows


class Parts:
    """The parts of one store, each opened as it is first needed."""

    def __init__(self, root: str, *, configuration: str, processes: int = 1) -> None:
        """Read the settings; see `Store`, which says what is raised."""
        root = os.path.abspath(root)
        path = os.path.join(root, SETTINGS)
        try:
            data = settings.read(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoStoreError(f"no store in {root}", remedy="filestore init") from error
        self.settings = settings.parse(data, name=path)
        tree = settings.tree_of(self.settings.layout)
        self.places = Places(
            root=root,
            sidecar=settings.sidecar_folder(root, configuration, tree),
            configuration=configuration,
            tree=tree,
        )
        if self.settings.layout == "in-place":
            self.places = replace(self.places, rules=self._rules())
        check_sidecar(self.places)
        self.configuration = configuration
        self.on_wait: Callable[[str], None] = lambda _: None
        """Called with the holder of the writer's lock, where the lock is waited for."""
        self._processes = processes
        self._catalog: Catalog | None = None
        self._embeddings: EmbeddingCache | None = None

    def close(self) -> None:
        """Let go of every file."""
        for part in (self._embeddings, self._catalog):
            if part is not None:
                part.close()
        self._embeddings = self._catalog = None

    @cached_property
    def layout(self) -> "Layout":
        """How the files of the store are named, and what they mean."""
        if self.settings.layout == "in-place":
            from filestore.sidecar.documents import InPlace

            return InPlace(self.places, self._chunker, processes=self._processes)
        from filestore.chunks.layout import FLAT, TREE

        return FLAT if self.settings.layout == "flat" else TREE

    def _rules(self) -> "TreeRules":
        """What of a folder of documents belongs to the store."""
        from filestore.extract.tree_rules import tree_rules

        sidecar, root = os.path.realpath(self.places.sidecar), os.path.realpath(self.places.root)
        own = [os.path.relpath(sidecar, root)] if is_below(sidecar, root) else []
        ours = [ChunkPath(path.replace(os.sep, "/")) for path in own]
        return tree_rules(self.places.root, self.settings.ignore, leave_out=ours)

    def _chunker(self) -> "Chunker":
        from filestore.sidecar.chunker import Chunker

        return Chunker.of(self.settings.budget, self.model.embedder)

    @cached_property
    def model(self) -> "StoreModel":
        """The model that the settings name, opened as far as it can be here."""
        from filestore.sidecar.model import StoreModel

        return StoreModel(
            self.places.root, self.settings, self.configuration, recorded=self._fingerprints
        )

    @cached_property
    def rows(self) -> "VectorRows | None":
        """The backend that has the vectors; None where the sidecar's own file has them."""
        if self.settings.backend.is_own_file:
            return None
        from filestore.config.user_config import read_machine
        from filestore.sidecar.vector_rows import VectorRows

        return VectorRows.of(
            self.settings.backend,
            self.places,
            machine=read_machine(self.configuration, os.environ),
        )

    def take_backend(self, backend: "Backend") -> None:
        """Go on with another backend, which the settings name from now on."""
        self.settings = replace(self.settings, backend=backend)
        self.__dict__.pop("rows", None)

    def _fingerprints(self) -> list[str]:
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

    def why_no_model(self) -> str:
        """Why there is no embedder for the catalog's vectors, with what to do."""
        problem = self.model.why_not
        return f"{problem.message} (try: {problem.remedy})"

    def catalog(self) -> Catalog:
        """The catalog, to be read.

        Raises:
            CatalogMissingError: There is none.
            CatalogDamagedError: It is no sound catalog.
            FilestoreError: It cannot be opened at all.
        """
        if self._catalog is None:
            try:
                self._catalog = Catalog.open(self.places.catalog)
            except sqlite3.OperationalError as error:
                disk.pass_hidden_limits(error)
                raise FilestoreError(
                    f"the catalog cannot be opened: {error}",
                    remedy=f"make {self.places.sidecar} readable, or wait for its writer",
                ) from error
        return self._catalog

    def embeddings(self) -> "EmbeddingCache | None":
        """The embeddings, to be read; None where they cannot be."""
        from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged, EmbeddingsMissing

        if self._embeddings is None:
            # Whoever looks at the file reports why it cannot be opened.
            unusable = (EmbeddingsMissing, EmbeddingsDamaged, sqlite3.OperationalError)
            with contextlib.suppress(*unusable):
                self._embeddings = EmbeddingCache.open(self.places.embeddings, read_only=True)
        return self._embeddings

    def snapshot(self, catalog: Catalog, embeddings: "EmbeddingCache | None") -> "StoreSnapshot":
        """What is verified and followed."""
        from filestore.sidecar.snapshot import StoreSnapshot

        root, problem = self.places.root, self.model.problem
        return StoreSnapshot(
            places=self.places,
            layout=self.layout,
            catalog=catalog,
            embeddings=embeddings,
            embedder=self.model.embedder,
            no_model="" if self.model.is_unasked or not problem else self.why_no_model(),
            deleted=partial(deleted_paths, root, self.places.tree),
            lost=partial(git_losses.lost, self.places, self.layout),
            processes=self._processes,
            settings=self.settings,
            rows=self.rows,
            unmerged=frozenset(unmerged(self.places.chunked) if operation(root) else ()),
            may_reach_sources=self.may_reach_sources(),
        )

    def may_reach_sources(self) -> bool:
        """Whether the user allowed source documents outside the work tree."""
        from filestore.config.user_config import SOURCES, read_machine

        return read_machine(self.configuration, os.environ).trusts(self.places.root, SOURCES)

    def reachable(self) -> "Reachable":
        """Which recorded originals may be looked at, and where they are."""
        from filestore.sidecar.reachable import Reachable

        return Reachable(self.places, everywhere=self.may_reach_sources())

    @contextlib.contextmanager
    def looking(self, *, sound: bool) -> "Iterator[tuple[StoreSnapshot, bool]]":
        """The parts in one snapshot, and whether the catalog is the store's.

        Args:
            sound: Whether it is to be asked at all; an empty one stands in for it, as it does for
                one that cannot be read.
        """
        catalog = None
        with contextlib.suppress(CatalogMissingError, CatalogDamagedError):
            catalog = self.catalog() if sound else None
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
        from filestore.sidecar import recover, vector_rows

        if found or unsound:
            # What is set aside must not stay open.
            self.close()
        embedder = self.model.embedder
        discarded = recover.discard_damaged(self.places, embedder, found, unsound)
        catalog, embeddings, repaired = recover.open_parts(self.places, embedder)
        catalog.require_alone = require_alone
        try:
            with catalog_errors(catalog):
                recover.note_lost(self.places, self.layout, catalog)
                if self.rows is not None and vector_rows.is_doubted(found):
                    catalog.doubt_sent()
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
    ) -> "Commit":
        """A commit to what `writing` gave.

        Args:
            catalog: Of `writing`.
            embeddings: Of `writing`.
            embed: Whether texts without embedding are embedded now.
            embedder: Another one than the store's, which takes its place.
        """
        from filestore.sidecar.commit import Commit

        return Commit(
            places=self.places,
            layout=self.layout,
            catalog=catalog,
            embeddings=embeddings,
            embedder=embedder or self.same_model(catalog),
            embed=embed,
            processes=self._processes,
            no_embedder=self.model.why_not,
            metric=self.settings.metric,
            rows=self.rows,
        )

    def clock(self) -> disk.FileSystemClock:
        """The clock of the file system that the store lies on."""
        return disk.FileSystemClock(self.places.clock)

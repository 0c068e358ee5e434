"""The parts of one store, opened: settings, model, catalog, embeddings, lock, commits.

What the operations on a store share. Opens and closes; decides nothing. One rule: two models are
never mixed, so an embedder is given only for vectors that are its own.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING

from filestore import fileio, settings
from filestore.catalog import (
    Catalog,
    CatalogDamagedError,
    CatalogMissingError,
    catalog_errors,
)
from filestore.errors import FilestoreError
from filestore.locking import DEFAULT_WAIT_S, writer_lock
from filestore.places import Places
from filestore.refusals import check_sidecar
from filestore.roots import NoStoreError
from filestore.worktree import deleted_paths, operation, unmerged

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.findings import Finding
    from filestore.indexing import Commit
    from filestore.model import StoreModel
    from filestore.subject import Subject


class Parts:
    """The parts of one store, each opened as it is first needed."""

    def __init__(self, root: str, *, configuration: str, processes: int = 1) -> None:
        """Read the settings; see `Store`, which says what is raised."""
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
        self.configuration = configuration
        self.on_wait: Callable[[str], None] = lambda _: None
        """Told who holds the writer's lock, where that is waited for."""
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
    def model(self) -> "StoreModel":
        """The model that the settings name, opened as far as it can be here."""
        from filestore.model import StoreModel

        return StoreModel(self.places.root, self.settings, self.configuration)

    def same_model(self, catalog: Catalog) -> "Embedder | None":
        """The embedder, if the catalog's vectors are its own."""
        embedder = self.model.embedder
        recorded = catalog.meta("fingerprint")
        return embedder if embedder and recorded in (None, embedder.fingerprint) else None

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
                raise FilestoreError(
                    f"the catalog cannot be opened: {error}",
                    remedy=f"make {self.places.sidecar} readable, or wait for its writer",
                ) from error
        return self._catalog

    def embeddings(self) -> "EmbeddingCache | None":
        """The embeddings, to be read; None where they cannot be."""
        from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged, EmbeddingsMissing

        if self._embeddings is None:
            with contextlib.suppress(EmbeddingsMissing, EmbeddingsDamaged):
                self._embeddings = EmbeddingCache.open(self.places.embeddings, read_only=True)
        return self._embeddings

    def subject(self, catalog: Catalog, embeddings: "EmbeddingCache | None") -> "Subject":
        """What is verified and followed."""
        from filestore.machine import SOURCES, read_machine
        from filestore.subject import Subject

        machine = read_machine(self.configuration, os.environ)
        root = self.places.root
        return Subject(
            places=self.places,
            layout=self.settings.layout,
            catalog=catalog,
            embeddings=embeddings,
            embedder=self.model.embedder,
            no_model=self.why_no_model() if self.model.problem else "",
            deleted=partial(deleted_paths, self.places.chunked),
            processes=self._processes,
            settings=self.settings,
            unmerged=frozenset(unmerged(self.places.chunked) if operation(root) else ()),
            may_reach_sources=machine.trusts(root, SOURCES),
        )

    @contextlib.contextmanager
    def looking(self, *, sound: bool) -> "Iterator[tuple[Subject, bool]]":
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
                yield self.subject(used, self.embeddings()), catalog is not None
        finally:
            if catalog is None:
                used.close()

    @contextlib.contextmanager
    def writing(
        self, command: str, *, wait_s: float = DEFAULT_WAIT_S
    ) -> "Iterator[tuple[CatalogWriter, EmbeddingCache, tuple[Finding, ...]]]":
        """Hold the writer's lock, with catalog and embeddings open, and what was mended for that.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused.
        """
        from filestore import recovery

        recovery.make_sidecar(self.places)
        with (
            fileio.disk_errors(self.places.sidecar),
            writer_lock(
                self.places.lock,
                command=f"filestore {command}",
                wait_s=wait_s,
                on_wait=self.on_wait,
            ),
        ):
            opened = recovery.open_parts(self.places, self.model.embedder)
            try:
                with catalog_errors(opened[0]):
                    yield opened
            finally:
                opened[0].close()
                opened[1].close()

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
        from filestore.indexing import Commit

        return Commit(
            places=self.places,
            layout=self.settings.layout,
            catalog=catalog,
            embeddings=embeddings,
            embedder=embedder or self.same_model(catalog),
            embed=embed,
            processes=self._processes,
            no_embedder=self.model.why_not,
            metric=self.settings.metric,
        )

    def clock(self) -> fileio.FileSystemClock:
        """The clock of the file system that the store lies on."""
        return fileio.FileSystemClock(self.places.clock)

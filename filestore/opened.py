"""An open root: made or found, held by the thread that opened it, and closed.

What is asked of it is `store`.
"""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from filestore.config.discovery import configuration_folder, find_root, require_named
from filestore.config.layout import Places
from filestore.config.settings import ModelOptions, Settings
from filestore.core.caller import absolute, leads
from filestore.core.errors import UsageError
from filestore.fs.programs import require_utf8
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.embed.base import Embedder
    from filestore.fs.watched_tree import WatchedTree
    from filestore.sidecar.model import StoreModel

StrPath = str | os.PathLike[str]


class OtherThreadError(UsageError):
    """A store is used by another thread than the one that opened it."""


class OpenStore:
    """A root that is open, for the thread that opened it. A context manager."""

    def __init__(
        self,
        root: StrPath = ".",
        *,
        configuration: StrPath | None = None,
        processes: int = 1,
        on_wait: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Open the store at a root; `open` also looks around for it.

        Args:
            root: The folder with `filestore.toml`.
            configuration: The folder of the user's settings; None for the usual one.
            processes: 2 lets a forked child walk half of a large tree; only for a process
                without threads.
            on_wait: Called with the holder of the writer's lock, where the lock is waited for.

        Raises:
            NoStoreError, SettingsError: There are no settings, or they cannot be used.
            UnsafeSidecarError: The sidecar is not ours.
            LocaleError: This process does not read names of files as UTF-8.
        """
        require_utf8()
        folder = configuration_folder() if configuration is None else os.fsdecode(configuration)
        self._session = Parts(leads(os.fsdecode(root)), configuration=folder, processes=processes)
        self._session.on_wait = on_wait
        self._thread = threading.get_ident()
        self.chosen_because = ""
        """Why a store that was made just now has its embedder."""

    @classmethod
    def open(cls, path: StrPath = ".", *, configuration: StrPath | None = None) -> Self:
        """Open the store that a folder is, holds (as `file_index`) or lies in."""
        start = os.fsdecode(path)
        root = find_root(start, None if os.path.isdir(start) else start)
        return cls(root, configuration=configuration)

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
            embedder: ``builtin``, ``onnx``, ``sentence-transformers`` or ``openai``, each with
                ``:MODEL``, or a model's folder; None for the best whose model is here.
            layout: ``tree``: one folder a resource; ``flat``: all chunk files in one folder;
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
        reason = create.make(
            root, layout=layout, embedder=embedder, options=options, configuration=folder
        )
        store = cls(root, configuration=folder)
        store.chosen_because = reason
        with store._parts.writing("init"):
            return store

    @property
    def _parts(self) -> Parts:
        """The parts, for the thread that they belong to."""
        if threading.get_ident() != self._thread:
            raise OtherThreadError(
                f"the store in {self.root} was opened by another thread",
                remedy="open it again in this thread: filestore.open(…)",
            )
        return self._session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every file."""
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

    def share_model(self, other: "OpenStore") -> bool:
        """Use the model that another open store of this root has loaded, if it is the same one.

        The other's thread does not matter; see `StoreModel.take_turns`.
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
        """The model beside, opened as far as it can be here; None where none is tried."""
        return self._parts.beside

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder of the settings; None where it cannot be used here."""
        return self.model.embedder

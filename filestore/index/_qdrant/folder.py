"""A folder of qdrant-client's own form, read whole and compared vector by vector.

It keeps points as pickles, which run code when they are read. One rule: a folder is opened only if
it holds our collection alone, and its pickles nothing but points. The client refuses a second
opening, of this process as well; so what is open here is handed out again, and closed with its last
user.
"""

import contextlib
import fcntl
import json
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

from msgspec import Struct

from filestore.core.errors import FilestoreError, on_error
from filestore.core.safe_text import shown_path
from filestore.fs import disk, part
from filestore.fs.database import stored_values
from filestore.fs.lock import held
from filestore.index._qdrant import Place, short_message
from filestore.index.backend import WITHOUT, BackendUnreachable, BackendUnusable

_POINT: Final = ("qdrant_client.http.models.models", "PointStruct")
"""What a pickle may name."""
_META: Final = "meta.json"
_EMPTY: Final = b'{"collections": {}, "aliases": {}}'
_EDGE: Final = "edge"
"""What the edge engine, which earlier versions knew, made in a folder."""
_WAIT_S: Final = 2.0
"""For another process to let go: a command has a folder for less."""
_PAUSE_S: Final = 0.05


class FolderDamaged(BackendUnusable):
    """The client cannot open a folder, or gives up on it."""


class _OpenFolder(Struct):
    """A folder that this process has open."""

    client: Any
    lock: int
    """The folder itself, locked: the client's own lock comes after it looked at its files, and what
    a second process repairs as it looks is what the first is writing."""
    users: int = 0


_open: dict[str, _OpenFolder] = {}
"""By real path."""


class FolderPlace(Place):
    """A collection in a folder.

    Args:
        folder: What qdrant-client calls its path.
        collection: The name.
        elsewhere: The command that has the vectors kept in another folder.
    """

    def __init__(self, folder: str, collection: str, elsewhere: str) -> None:
        super().__init__(f"{shown_path(folder)} (collection {collection})", collection)
        self._path = folder
        self._elsewhere = elsewhere
        self._key: str | None = None

    def open(self) -> None:
        """Take the folder, if it is there; another process is waited for a little.

        Raises:
            FolderDamaged: What the client would open in it is not the user's own, or not its form.
            BackendUnreachable: There can be none, or another process has it open.
        """
        if self._key is not None or not self._folder_is_there():
            return
        key = os.path.realpath(self._path)
        if key not in _open:
            lock = _patiently(self._locked)
            with on_error(os.close, lock):
                _open[key] = _OpenFolder(_patiently(self._loaded), lock)
        _open[key].users += 1
        self._key = key

    def _folder_is_there(self) -> bool:
        try:
            part.check_tree(self._path)
            names = os.listdir(self._path)
        except FileNotFoundError:
            return False
        except part.NotAFileError as error:
            raise self._damaged(error) from error
        except OSError as error:
            raise BackendUnreachable(
                f"cannot read the folder {self.address}: {error.strerror or error}",
                remedy=f"make it readable, or set another `path` under [backend_config]. {WITHOUT}",
            ) from None
        if _EDGE in names and _META not in names:
            raise FolderDamaged(
                f"{self.address} was written by Qdrant's edge engine, which filestore has no more",
                remedy=f"{self._elsewhere}. {WITHOUT}",
            )
        return True

    def _locked(self) -> int:
        """A descriptor of the folder, which no other process has locked."""
        descriptor = os.open(os.path.realpath(self._path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise self._busy() from None
        except OSError:
            pass  # a file system without locks: the client's own is what there is
        return descriptor

    def _loaded(self) -> Any:
        from qdrant_client import QdrantClient

        # Asked first, since the client reads the whole folder before it tries the lock.
        if held(os.path.join(self._path, ".lock")):
            raise self._busy()
        with self._errors():
            meta = os.path.join(self._path, _META)
            if not os.path.exists(meta):
                # Not left to the client, which writes it in place: a kill would leave half of it.
                disk.write_path(meta, _EMPTY)
            with open(meta, "rb") as file:
                names = set(json.load(file)["collections"])
            if others := names - {self.collection}:
                raise BackendUnusable(
                    f"{shown_path(self._path)} holds another collection, {min(others)!r}",
                    remedy="give this store a `path` of its own under [backend_config] in "
                    "filestore.toml",
                )
            rows = os.path.join(self._path, "collection", self.collection, "storage.sqlite")
            if names and os.path.exists(rows):
                for point in stored_values(rows, "points", "point"):
                    _PointReader(BytesIO(point)).load()
            return QdrantClient(path=self._path)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with warnings.catch_warnings():  # it recommends the server, in words of its own
                warnings.simplefilter("ignore")
                yield
        except FilestoreError:
            raise
        except Exception as error:
            if "already accessed by another instance" in str(error):
                raise self._busy() from error
            raise self._damaged(error) from error

    @contextmanager
    def asked(self) -> Iterator[Any]:
        """See the contract."""
        if self._key is None:
            raise BackendUnusable(f"{self.address} was closed meanwhile", remedy="filestore sync")
        with self._errors():
            yield _open[self._key].client

    def is_there(self) -> bool:
        """See the contract."""
        if self._key is None:
            return False
        with self.asked() as client:
            return bool(client.collection_exists(self.collection))

    def create(self, dimension: int) -> None:
        """See the contract."""
        with self._errors():
            os.makedirs(self._path, exist_ok=True)
        super().create(dimension)

    def drop(self) -> None:
        """See the contract; of a damaged folder nothing is kept, as all in it is ours."""
        try:
            self.open()
        except FolderDamaged:
            with self._errors():
                # A kill leaves it whole under its name, or not there.
                parent, name = os.path.split(self._path)
                old = f"{name}.old"
                with contextlib.suppress(FileNotFoundError), part.folder_of(parent) as around:
                    part.remove(around, old)
                    os.rename(name, old, src_dir_fd=around, dst_dir_fd=around)
                    part.remove(around, old)
        if self._key is not None:
            super().drop()

    def index_fields(self, paths: Sequence[str]) -> None:
        """Nothing: it has no indexes."""

    def close(self) -> None:
        """See the contract."""
        key, self._key = self._key, None
        if key is None:
            return
        _open[key].users -= 1
        if not _open[key].users:
            opened = _open.pop(key)
            try:
                opened.client.close()
            finally:
                os.close(opened.lock)

    def _busy(self) -> BackendUnreachable:
        return BackendUnreachable(
            f"another process has {self.address} open",
            remedy=f"end it, or wait for it, then try again; a Qdrant server takes several. "
            f"{WITHOUT}",
        )

    def _damaged(self, error: BaseException) -> FolderDamaged:
        """Say that the folder cannot be used, and what is lost with it: nothing."""
        text = short_message(error)
        remedy = "if its files are damaged, delete that folder and run `filestore sync`"
        if "No space left" in text or "disk is full" in text:
            remedy = "free space on that disk, then run `filestore sync`"
        elif "Permission denied" in text or "Read-only" in text or "readonly" in text:
            remedy = "make that folder writable: the client writes there as it opens it"
        return FolderDamaged(
            f"{self.address} cannot be used: {text or type(error).__name__}",
            remedy=f"{remedy}; the embeddings are in the sidecar. {WITHOUT}",
            detail=type(error).__name__,
        )


class _PointReader(pickle.Unpickler):
    """Reads points, and makes nothing else of what it is given."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) != _POINT:
            raise pickle.UnpicklingError(f"a point would run {module}.{name}")
        return super().find_class(module, name)


def _patiently(opened: Callable[[], Any]) -> Any:
    until = time.monotonic() + _WAIT_S
    while True:
        try:
            return opened()
        except BackendUnreachable:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)

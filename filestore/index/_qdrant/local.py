"""qdrant-client without a server: a folder of its own form, read whole and compared one by one.

It keeps points as pickles, which run code when they are read. One rule: a folder is opened only if
it holds our collection alone, and its pickles nothing but points.
"""

import json
import os
import pickle
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

from filestore.core.errors import FilestoreError
from filestore.core.safe_text import shown_path
from filestore.fs import disk
from filestore.fs.database import stored_values
from filestore.fs.lock import held
from filestore.index._qdrant.client import ClientPoints
from filestore.index._qdrant.folder import OpenFolder, busy, is_there, remove, take
from filestore.index._qdrant.points import FolderDamaged, damaged
from filestore.index.backend import BackendUnusable

_POINT: Final = ("qdrant_client.http.models.models", "PointStruct")
"""What a pickle may name."""
_EMPTY: Final = b'{"collections": {}, "aliases": {}}'


class LocalPoints(ClientPoints):
    """A collection in a folder.

    Args:
        folder: What qdrant-client calls its path.
        collection: The name.
    """

    def __init__(self, folder: str, collection: str) -> None:
        self._path = folder
        self._collection = collection
        self.address = f"{shown_path(folder)} (collection {collection})"
        self._held: OpenFolder | None = None

    @property
    def _client(self) -> Any:
        if self._held is None or self._held.engine is None:
            raise BackendUnusable(f"{self.address} was closed meanwhile", remedy="filestore sync")
        return self._held.engine

    def open(self) -> None:
        """Take the folder, if it is there."""
        if self._held is None and is_there(self._path, self.address):
            self._held = take(self._path, self._loaded)

    def _loaded(self) -> Any:
        from qdrant_client import QdrantClient

        # Asked first, since the client reads the whole folder before it tries the lock.
        if held(os.path.join(self._path, ".lock")):
            raise busy(self.address)
        with self._errors():
            self._check_pickles()
            return QdrantClient(path=self._path)

    def _check_pickles(self) -> None:
        meta = os.path.join(self._path, "meta.json")
        if not os.path.exists(meta):
            # Not left to the client, which writes it in place: a kill would leave half of it.
            disk.write_path(meta, _EMPTY)
        with open(meta, "rb") as file:
            names = set(json.load(file)["collections"])
        if others := names - {self._collection}:
            raise BackendUnusable(
                f"{shown_path(self._path)} holds another collection, {min(others)!r}",
                remedy="give this store a `path` of its own under [backend_config] in "
                "filestore.toml",
            )
        rows = os.path.join(self._path, "collection", self._collection, "storage.sqlite")
        if names and os.path.exists(rows):
            for point in stored_values(rows, "points", "point"):
                _PointReader(BytesIO(point)).load()

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
                raise busy(self.address) from error
            raise damaged(self.address, error) from error

    def _is_there(self) -> bool:
        with self._errors():
            return self._held is not None and self._client.collection_exists(self._collection)

    def create(self, dimension: int) -> None:
        """See the contract."""
        with self._errors():
            os.makedirs(self._path, exist_ok=True)
        self.open()
        self._made(dimension)

    def drop(self) -> None:
        """See the contract; of a damaged folder nothing is kept, as all in it is ours."""
        try:
            self.open()
        except FolderDamaged:
            with self._errors():
                remove(self._path)
        if self._held is not None:
            super().drop()

    def index_fields(self, paths: Sequence[str]) -> None:
        """Nothing: it has no indexes."""

    def flush(self) -> None:
        """Nothing: each point is a transaction."""

    def close(self) -> None:
        """See the contract."""
        folder, self._held = self._held, None
        if folder is not None:
            folder.leave(lambda client: client.close())


class _PointReader(pickle.Unpickler):
    """Reads points, and makes nothing else of what it is given."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) != _POINT:
            raise pickle.UnpicklingError(f"a point would run {module}.{name}")
        return super().find_class(module, name)

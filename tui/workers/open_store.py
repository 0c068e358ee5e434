"""A store that is made where there is none, and kept open from one question to the next."""

import contextlib
import os
from collections.abc import Callable

from filestore import Store
from filestore.browse import InspectedStore, copy_example

_Identity = tuple[tuple[int, ...], ...]


class StoreCache:
    """Opens a store when it is first needed, and again once its files were replaced.

    An open store does not see a rebuilt catalog or edited settings.
    """

    def __init__(self, open_store: Callable[[], InspectedStore]) -> None:
        self._open_store = open_store
        self._store: InspectedStore | None = None
        self._seen: _Identity = ()

    def get(self) -> InspectedStore:
        """The store as it is now."""
        if self._store is not None and _identity(self._store) != self._seen:
            self.close()
        if self._store is None:
            store = self._open_store()
            self._store, self._seen = store, _identity(store)
        return self._store

    def close(self) -> None:
        """Close it, in the thread that opened it."""
        store, self._store = self._store, None
        if store is not None:
            # After a failure, an error of closing adds nothing.
            with contextlib.suppress(Exception):
                store.close()


def make_store(folder: str, *, configuration: str, example: bool) -> str:
    """Make an empty store, or a copy of the example, in a folder.

    Args:
        folder: Where the store's own folder is made.
        configuration: The user's configuration folder.
        example: Whether it is to be a copy of the example.

    Returns:
        The root of the store.

    Takes some tenths of a second: for a thread, never for the screen's own.

    Raises:
        FilestoreError: It cannot be made there; nothing is overwritten.
    """
    root = os.path.join(os.path.abspath(folder), "example_index" if example else "file_index")
    if example:
        copy_example(root)
    else:
        Store.create(root, layout="tree", configuration=configuration).close()
    return root


def _identity(store: InspectedStore) -> _Identity:
    """The identity of the catalog and of the settings, not their content."""
    found = []
    for path, fields in (
        (store.places.catalog, ("st_dev", "st_ino")),
        (store.places.settings, ("st_dev", "st_ino", "st_size", "st_mtime_ns")),
    ):
        try:
            status = os.stat(path)
        except OSError:
            found.append(())
        else:
            found.append(tuple(getattr(status, name) for name in fields))
    return tuple(found)

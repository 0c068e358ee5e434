"""A store that is kept open from one question to the next, while it is the same store."""

import contextlib
import os
from collections.abc import Callable

from filestore import Store

_Look = tuple[tuple[int, ...], ...]


class KeptStore:
    """Opens a store when it is first needed, and again once its files are others.

    A catalog that was made anew, and settings that were edited, are not seen by who has the old
    ones open.
    """

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._store: Store | None = None
        self._seen: _Look = ()

    def get(self) -> Store:
        """The store as it is now."""
        if self._store is not None and _look(self._store) != self._seen:
            self.close()
        if self._store is None:
            store = self._open_store()
            self._store, self._seen = store, _look(store)
        return self._store

    def close(self) -> None:
        """Let go of it, in the thread that it was opened in."""
        store, self._store = self._store, None
        if store is not None:
            # Where it failed before, what it says when it is closed is of no use to anybody.
            with contextlib.suppress(Exception):
                store.close()


def _look(store: Store) -> _Look:
    """Which catalog and which settings are there; what is written into the catalog is no matter."""
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

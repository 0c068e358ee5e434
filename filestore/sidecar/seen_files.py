"""Files of the tree that were read, for whoever looks at the same file again.

One rule: it lives as long as one look at the store. Whoever writes reads a file anew.
"""

from collections.abc import Iterator, Sequence, Set
from typing import Final

from filestore.chunks.layout import Layout
from filestore.chunks.observation import Observation
from filestore.chunks.observe import look_at
from filestore.config.layout import Places
from filestore.core.paths import ChunkPath

KEPT_BYTES: Final = 16 * 1024 * 1024
"""So much is kept; what goes beyond is read again by who asks again."""


class SeenFiles:
    """Observations, as long as there is room for their bytes."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self.keeps = most_bytes > 0
        """Whether anything is kept at all."""
        self._room = most_bytes
        self._kept: dict[ChunkPath, Observation] = {}

    def look_at(
        self,
        places: Places,
        paths: Sequence[ChunkPath],
        layout: Layout,
        *,
        unmerged: Set[ChunkPath] = frozenset(),
    ) -> Iterator[Observation | tuple[ChunkPath, OSError]]:
        """Observe files as `chunks.observe.look_at` does, each path once."""
        unread = dict.fromkeys(path for path in paths if path not in self._kept or path in unmerged)
        fresh = look_at(places, list(unread), layout, unmerged=unmerged)
        for path in dict.fromkeys(paths):
            seen = next(fresh) if path in unread else self._kept[path]
            # What git has as unmerged is excluded only for whoever asked git.
            if isinstance(seen, Observation) and path not in unmerged:
                self._keep(seen)
            yield seen

    def _keep(self, seen: Observation) -> None:
        if seen.path not in self._kept and 0 < len(seen.data) <= self._room:
            self._room -= len(seen.data)
            self._kept[seen.path] = seen

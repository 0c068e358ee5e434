"""A folder of documents as a store: read and cut into sections in the sidecar alone.

What a reader of the store sees first is the hash of a file's bytes; what they say is taken out of
them when the sidecar is written, by `cutting`, and kept.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from filestore import chunking
from filestore.chunks.layout import MADE, Layout, shown_name
from filestore.chunks.observation import Observation
from filestore.config.layout import DOCUMENTS, MAX_SOURCE_BYTES, SETTINGS, Places
from filestore.core.paths import ChunkPath, is_made

if TYPE_CHECKING:
    from filestore.sidecar.cutting import Chunker


SECTIONS: Final = "sections/5"
"""How documents are read and cut: what is kept of them is made anew where either changed, which
costs no embedding of a text that is known."""


_LEAST_BYTES: Final = 256 * 1024 * 1024
"""So much is kept of documents that no file is any more: a branch that is left comes back."""


class Documents(Layout):
    """A folder of documents as it is."""

    most_bytes = MAX_SOURCE_BYTES
    has_sections = True

    def __init__(self, places: Places, budget: int, *, processes: int) -> None:
        """Prepare.

        Args:
            places: Where the store lies.
            budget: The most tokens of a section and its heading path.
            processes: How many child processes may read documents.
        """
        self._cache_path = os.path.join(places.sidecar, DOCUMENTS)
        self._catalog_path = places.catalog
        self._budget = budget
        self._processes = processes

    def _chunker(self) -> "Chunker":
        from filestore.sidecar.cutting import Chunker

        return Chunker(budget=self._budget, way=SECTIONS)

    @property
    def cuts_as(self) -> str:  # type: ignore[override]
        """See `Layout.cuts_as`."""
        # Without the chunker, which loads what reads documents.
        return chunking.label(self._budget, way=SECTIONS)

    def reads(self, path: ChunkPath) -> bool:
        """Whether a document would be indexed, as far as its names tell."""
        from filestore.extract import is_litter, is_read

        *folders, name = path.split("/")
        return (
            is_read(name)
            and name != SETTINGS
            and not is_litter(name, is_folder=False)
            and not any(is_litter(folder, is_folder=True) for folder in folders)
            and super().reads(path)
        )

    def is_text(self, path: ChunkPath) -> bool:
        """Whether a file is a document."""
        return not is_made(path) and self.reads(path)

    def of(self, path: ChunkPath) -> Layout:
        """See `Layout.of`."""
        return MADE if is_made(path) else self

    def interpret(self, seen: Observation, name: str) -> None:
        """Say what the bytes alone tell: a text without words, or with a conflict in it."""
        from filestore.extract import is_text

        if not seen.data.strip():
            seen.state = "empty"
            seen.detail = f"found {len(seen.data):,} bytes, of which none is text"
            return
        if is_text(name) and b"<<<<<<<" in seen.data:
            from filestore.chunks.kept import conflict_outside_code, refuse

            lines = conflict_outside_code(seen.data, 0)
            if lines is not None:
                refuse(seen, "conflict-markers", "", lines)
                return
        seen.pending = True

    def settle(self, seen: Observation) -> None:
        """Read and cut a document, unless that takes a process of its own."""
        from filestore.extract.pool import needs_child
        from filestore.sidecar.cutting import extracted_here, fill

        name = os.path.basename(seen.path)
        if not seen.pending or needs_child(name, len(seen.data)):
            return
        fill(seen, lambda: extracted_here(seen.data, name), self._chunker())

    def complete(self, seen: Iterable[Observation]) -> None:
        """Read and cut documents, or take what was kept of the same bytes."""
        waiting = [look for look in seen if look.pending]
        if not waiting:
            return
        from filestore.sidecar.cutting import complete

        chunker = self._chunker()
        self.cut_by = chunker.label
        complete(waiting, chunker, self._cache_path, self._processes)

    def drop_unused(self, files: Callable[[], Iterable[tuple[bytes, bytes]]]) -> None:
        """Forget documents that no file is any more, beyond what somebody may go back to."""
        with contextlib.suppress(OSError):
            # The catalog has the documents that are used, and so is about as large.
            in_use = os.path.getsize(self._catalog_path)
            if os.path.getsize(self._cache_path) <= in_use + _LEAST_BYTES:
                return
            from filestore.sidecar.cutting import DocumentCache, key_of_file

            used = {key_of_file(file_hash, os.fsdecode(path)) for path, file_hash in files()}
            with contextlib.closing(DocumentCache.open(self._cache_path)) as cache:
                cache.drop_unused(used, _LEAST_BYTES)

    def resource(self, path: ChunkPath, had: str = "") -> str:
        """Each document is a resource of its own, called what it is called, with what is of it."""
        return MADE.resource(path, had) if is_made(path) else shown_name(path)

    def source(self, path: ChunkPath, named: str | None) -> str | None:
        """The name of the resource, whatever the file says."""
        return self.resource(path) or None

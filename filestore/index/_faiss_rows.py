"""Vectors in a FAISS file of the user's choosing, and beside it what FAISS does not keep.

The lines of JSON beside the file (``PATH.jsonl``) hold the stamp and the hash of the file. FAISS
writes it and never reads it: what a clone brings along may be made to harm whoever lets it. A new
file stands at ``PATH.new`` until the lines that name it are written, so that a kill leaves one
whole index or the other.
"""

import contextlib
import os
from typing import TYPE_CHECKING, Final

from filestore.core.hashing import content_hash
from filestore.fs import disk
from filestore.index import _faiss_file, _row_lines
from filestore.index._faiss import FaissIndex
from filestore.index._file_rows import FileRows
from filestore.index.backend import (
    BackendChoice,
    BackendSettingsWrong,
    EmbedConfig,
    check_length,
    checked_options,
)
from filestore.index.base import VectorIndex

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

_METRICS: Final = ("cosine", "l2")
"""Vectors have length 1: both give the same order, and the score is the inner product."""
_MOST_BYTES: Final = 64 * 2**30
_HASH: Final = "faiss"


class FaissRows(FileRows):
    """A file; its options are ``path``, ``dim``, ``metric`` and ``metadata_whitelist``."""

    kind = "faiss"

    def __init__(self, choice: BackendChoice) -> None:
        known = {"path": str, "dim": int, "metric": str, "metadata_whitelist": list}
        options = checked_options(choice, needed=("path",), known=known)
        if options.get("metric", "cosine") not in _METRICS:
            raise BackendSettingsWrong(
                f"`metric` of the backend faiss is {' or '.join(_METRICS)}",
                remedy="filestore backend set faiss metric=cosine",
            )
        super().__init__(choice, options, options["path"])
        self._wanted: int | None = options.get("dim")

    def _new_index(self, dimension: int) -> VectorIndex:
        return FaissIndex(dimension)

    def _stamp_path(self) -> str:
        return f"{self._path}.jsonl"

    def set_embed_config(self, embed: EmbedConfig) -> None:
        """See the contract."""
        if self._wanted is not None:
            check_length(embed.dimension, self._wanted, self.address())
        super().set_embed_config(embed)

    def load(self) -> None:
        """See the contract."""
        self._forget()
        found = _row_lines.read(self._stamp_path())
        if found is None:
            if os.path.lexists(self._path):
                is_folder = os.path.isdir(self._path)
                what = "it is a folder" if is_folder else "nothing beside it says what it holds"
                raise _row_lines.unusable(self._path, what)
            return
        head, rows = found
        self.set_embed_config(head.stamp.embed)
        self._take(rows)
        self._index = self._parsed(head)

    def _parsed(self, head: _row_lines.Head) -> FaissIndex:
        """The index that the lines name, out of bytes that were checked."""
        dimension = head.stamp.embed.dimension
        for path in (self._path, f"{self._path}.new"):
            data = _read(path)
            if data is None or content_hash(data).hex() != head.more.get(_HASH):
                continue
            ids, vectors = _faiss_file.flat_parts(data) or (None, None)
            if ids is None or vectors is None or vectors.shape[1] != dimension:
                raise _row_lines.unusable(path, f"it is no exact index of dimension {dimension}")
            if sorted(ids.tolist()) != sorted(self._rows):
                raise _row_lines.unusable(path, "it holds other ids than the lines beside it")
            index = FaissIndex(dimension)
            index.add(ids, vectors)
            return index
        raise _row_lines.unusable(self._path, "it is not the file that the lines beside it name")

    def save(self, *, owner: str, generation: int) -> None:
        """See the contract."""
        stamp = self._stamped(owner, generation)
        assert isinstance(self._index, FaissIndex)
        data = self._index.serialized()
        rows = (self._payload(identifier) for identifier in sorted(self._rows))
        lines = _row_lines.written(stamp, rows, {_HASH: content_hash(data).hex()})
        with disk.disk_errors(self._path):
            disk.make_folders(os.path.dirname(self._path))
            self._finish()
            disk.write_path(f"{self._path}.new", data)
            disk.write_path(self._stamp_path(), lines)
            self._finish()

    def _finish(self) -> None:
        """Put a new file into its place, if the lines beside it name it already."""
        head = _row_lines.read_head(self._stamp_path())
        waiting = f"{self._path}.new"
        data = None if head is None else _read(waiting)
        if data is not None and head and content_hash(data).hex() == head.more.get(_HASH):
            os.replace(waiting, self._path)
            disk.sync_path(os.path.dirname(self._path))

    def _vectors(self, ids: "NDArray[int64]") -> "NDArray[float32]":
        assert isinstance(self._index, FaissIndex)
        return self._index.vectors_of(ids)

    def clear(self) -> None:
        """See the contract."""
        self._remove(self._stamp_path(), self._path, f"{self._path}.new")


def _read(path: str) -> bytes | None:
    """All of a file; None where there is none."""
    with contextlib.suppress(FileNotFoundError):
        try:
            return disk.read_path(path, limit=_MOST_BYTES)
        except FileNotFoundError:
            raise
        except OSError as error:
            disk.pass_limits(error)
            raise _row_lines.unreachable(path, error) from error
    return None

"""Vectors as lines of JSON in one file, compared one and all: the judge of the other backends."""

import os
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from filestore.fs import disk
from filestore.index import _row_lines
from filestore.index._exact import ExactIndex
from filestore.index._file_rows import FileRows
from filestore.index.backend import BackendChoice, checked_options
from filestore.index.base import VectorIndex

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray


class LocalRows(FileRows):
    """One file; its options are ``path``, in the sidecar's folder, and ``metadata_whitelist``."""

    kind = "local"

    def __init__(self, choice: BackendChoice) -> None:
        known = {"path": str, "metadata_whitelist": list}
        options = checked_options(choice, needed=(), known=known)
        super().__init__(choice, options, options.get("path") or "index.jsonl")

    def _new_index(self, dimension: int) -> VectorIndex:
        return ExactIndex(dimension)

    def _stamp_path(self) -> str:
        return self._path

    def load(self) -> None:
        """See the contract."""
        self._forget()
        found = _row_lines.read(self._path)
        if found is None:
            return
        head, rows = found
        self.set_embed_config(head.stamp.embed)
        self._take(rows)
        self._hold(rows, head.stamp.embed.dimension)

    def _hold(self, rows: list[dict[str, Any]], dimension: int) -> None:
        import numpy

        if not rows or self._index is None:
            return
        try:
            parts = [b64decode(one["vector"], validate=True) for one in rows]
        except (KeyError, TypeError, ValueError):
            raise _row_lines.unusable(self._path, "a line has no vector") from None
        if {len(part) for part in parts} != {4 * dimension}:
            raise _row_lines.unusable(self._path, f"not all vectors have {dimension} numbers")
        data = numpy.frombuffer(b"".join(parts), "<f4")
        vectors = data.reshape(-1, dimension).astype(numpy.float32)
        self._index.add(numpy.array([one["id"] for one in rows], numpy.int64), vectors)

    def save(self, *, owner: str, generation: int) -> None:
        """See the contract."""
        stamp = self._stamped(owner, generation)
        data = _row_lines.written(stamp, self._lines(), {})
        with disk.disk_errors(self._path):
            disk.make_folders(os.path.dirname(self._path))
            disk.write_path(self._path, data)

    def _lines(self) -> list[dict[str, Any]]:
        import numpy

        ids = sorted(self._rows)
        vectors = self._vectors(numpy.array(ids, numpy.int64)).astype("<f4", copy=False)
        return [
            {**self._payload(identifier), "vector": b64encode(row.tobytes()).decode()}
            for identifier, row in zip(ids, vectors, strict=True)
        ]

    def _vectors(self, ids: "NDArray[int64]") -> "NDArray[float32]":
        assert isinstance(self._index, ExactIndex)
        return self._index.vectors_of(ids)

    def clear(self) -> None:
        """See the contract."""
        self._remove(self._path)

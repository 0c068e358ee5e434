"""Qdrant's own engine in this process, over one folder.

It compares every vector: at 100,000 of 384 numbers that takes 15 ms, while a graph for them takes
minutes to build. One process has the folder at a time; within a process it is shared.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import UUID

from filestore.core.errors import FilestoreError
from filestore.core.safe_text import shown_path
from filestore.fs import part
from filestore.index._qdrant.folder import OpenFolder, busy, is_there, remove, take
from filestore.index._qdrant.points import (
    FILES,
    FolderDamaged,
    Point,
    Points,
    Question,
    damaged,
    other_shape,
    pushed_down,
)
from filestore.index.backend import BackendUnusable

_ROOM_BYTES: Final = 128 * 1024 * 1024
"""What must be free to write: the engine writes to mapped files, and a disk that is full as it does
so ends the process without a word."""
_NEVER_KB: Final = 2**40
"""The size from which a graph would be built."""


class EdgePoints(Points):
    """A collection in a folder of its own.

    Args:
        folder: Where the engine's folders are.
        collection: The name of this one.
    """

    def __init__(self, folder: str, collection: str) -> None:
        self._path = os.path.join(folder, "edge", collection)
        self.address = shown_path(self._path)
        self._held: OpenFolder | None = None
        self._is_changed = False

    @property
    def _shard(self) -> Any:
        if self._held is None or self._held.engine is None:
            raise BackendUnusable(f"{self.address} was deleted meanwhile", remedy="filestore sync")
        return self._held.engine

    def open(self) -> None:
        """Take the folder, if it is there."""
        own = os.path.dirname(self._path), self._path
        if self._held is None and is_there(self._path, self.address, *own):
            self._held = take(self._path, self._loaded)

    def _loaded(self) -> Any:
        import qdrant_edge

        with self._errors():
            return qdrant_edge.EdgeShard.load(self._path)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the engine raises is no more than `Exception`, and a panic of Rust is less."""
        try:
            yield
        except FilestoreError:
            raise
        except BaseException as error:
            is_panic = type(error).__name__ == "PanicException"
            if not is_panic and not isinstance(error, Exception):
                raise
            if "WouldBlock" in str(error):
                raise busy(self.address) from error
            raise damaged(self.address, error) from error

    def dimension(self) -> int | None:
        """See the contract."""
        self.open()
        if self._held is None:
            return None
        with self._errors():
            return self._checked_size()

    def _checked_size(self) -> int:
        import json

        # The engine hands out no configuration of what it loaded; it lies beside the segments.
        with open(os.path.join(self._path, "edge_config.json"), encoding="utf-8") as file:
            vectors = json.load(file).get("vectors", {})
        one = vectors.get("", {})
        if len(vectors) != 1 or one.get("distance") != "Dot" or not isinstance(one["size"], int):
            raise other_shape(self.address, "one vector with distance Dot", str(vectors))
        return int(one["size"])

    def create(self, dimension: int) -> None:
        """Made beside its place and moved there, so that a kill leaves it whole or not there."""
        import qdrant_edge as edge

        vectors = edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Dot)
        never = edge.EdgeOptimizersConfig(indexing_threshold=_NEVER_KB)
        parent, name = os.path.split(self._path)
        new = f"{name}.new"
        self._check_room()
        os.makedirs(os.path.dirname(parent), exist_ok=True)
        with self._errors(), part.own_folder(parent, make=True, replace=True) as around:
            part.remove(around, new)
            os.mkdir(new, 0o700, dir_fd=around)
            made = edge.EdgeConfig(vectors=vectors, optimizers=never)
            edge.EdgeShard.create(f"{self._path}.new", made).close()
            os.rename(new, name, src_dir_fd=around, dst_dir_fd=around)
        self.open()

    def drop(self) -> None:
        """See the contract; what is damaged is deleted as well, what somebody has open is not."""
        with suppress(FolderDamaged):
            self.open()
        held, self._held = self._held, None
        if held is not None:
            held.close(self._ended)
        own = part.own_folder(os.path.dirname(self._path), replace=True)
        with self._errors(), suppress(FileNotFoundError), own:
            remove(self._path)

    def _ended(self, shard: Any) -> None:
        # What mattered was written by `flush`; a damaged folder is let go of all the same.
        with suppress(FolderDamaged), self._errors():
            shard.close()

    def upsert(self, points: Sequence[Point]) -> None:
        """See the contract."""
        import qdrant_edge as edge

        self._is_changed = True
        self._check_room()
        with self._errors():
            some = [edge.Point(_id(one.id), one.vector, dict(one.payload)) for one in points]
            self._shard.update(edge.UpdateOperation.upsert_points(some))

    def delete(self, ids: Sequence[int]) -> None:
        """See the contract."""
        import qdrant_edge as edge

        self._is_changed = True
        self._check_room()
        with self._errors():
            self._shard.update(edge.UpdateOperation.delete_points(list(ids)))

    def retrieve(
        self, ids: Sequence[int | str], fields: Sequence[str] = (), *, vectors: bool = False
    ) -> list[Point]:
        """See the contract."""
        with self._errors():
            wanted = [_id(one) for one in ids]
            found = self._shard.retrieve(wanted, _selected(fields), vectors)
            return [_point(one) for one in found]

    def scroll(
        self, start: int | str | None, limit: int, fields: Sequence[str], *, vectors: bool
    ) -> tuple[list[Point], int | str | None]:
        """See the contract."""
        import qdrant_edge as edge

        with self._errors():
            request = edge.ScrollRequest(
                offset=None if start is None else _id(start),
                limit=limit,
                with_payload=_selected(fields),
                with_vector=vectors,
            )
            found, after = self._shard.scroll(request)
            return [_point(one) for one in found], None if after is None else _plain(after)

    def count(self) -> int:
        """See the contract."""
        import qdrant_edge as edge

        with self._errors():
            return int(self._shard.count(edge.CountRequest(exact=True)))

    def query(self, question: Question, fields: Sequence[str]) -> list[Point]:
        """See the contract."""
        import qdrant_edge as edge

        with self._errors():
            request = edge.QueryRequest(
                query=edge.Query.Nearest(question.vector),
                limit=question.limit,
                filter=_filter(question),
                params=edge.SearchParams(exact=True),
                with_payload=_selected(fields),
                with_vector=False,
            )
            return [_point(one, one.score) for one in self._shard.query(request)]

    def index_fields(self, paths: Sequence[str]) -> None:
        """See the contract."""
        import qdrant_edge as edge

        keyword = edge.PayloadSchemaType.Keyword
        self._check_room()
        with self._errors():
            known = self._shard.info().payload_schema
            for path in set(paths).difference(known):
                self._shard.update(edge.UpdateOperation.create_field_index(path, keyword))

    def flush(self) -> None:
        """Also takes out what was deleted, once that is a fifth, where there is room for a copy."""
        if self._is_changed:
            with self._errors():
                if _free_bytes(self._path) > _ROOM_BYTES + _used_bytes(self._path):
                    self._shard.optimize()
                self._shard.flush()
            self._is_changed = False

    def _check_room(self) -> None:
        with self._errors():
            free = _free_bytes(self._path)
        if free < _ROOM_BYTES:
            mib = 1024 * 1024
            raise BackendUnusable(
                f"{self.address} cannot be written: its disk has {free // mib} MiB left, and the "
                f"engine needs {_ROOM_BYTES // mib}",
                remedy="free space on that disk, then run `filestore sync`",
            )

    def close(self) -> None:
        """See the contract."""
        held, self._held = self._held, None
        if held is not None:
            held.leave(self._ended)


def _free_bytes(path: str) -> int:
    """What the disk takes, below a path that need not be there yet."""
    while not os.path.lexists(path):
        path = os.path.dirname(path) or "."
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _used_bytes(folder: str) -> int:
    """What its files take; most of them are longer than that."""
    paths = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return sum(os.lstat(path).st_blocks * 512 for path in paths)


def _id(identifier: int | str) -> int | UUID:
    return UUID(identifier) if isinstance(identifier, str) else identifier


def _plain(identifier: int | UUID) -> int | str:
    return identifier if isinstance(identifier, int) else str(identifier)


def _point(found: Any, score: float = 0.0) -> Point:
    identifier = _plain(found.id)
    return Point(id=identifier, score=score, payload=found.payload or {}, vector=found.vector)


def _selected(fields: Sequence[str]) -> Any:
    import qdrant_edge as edge

    return edge.PayloadSelector.Include(list(fields)) if fields else False


def _filter(question: Question) -> Any:
    import qdrant_edge as edge

    must: list[Any] = []
    if question.allowed is not None:
        must.append(edge.HasIdCondition(set(question.allowed)))
    if conditions := pushed_down(question.where):
        tests = [
            edge.FieldCondition(path, match=edge.MatchAny(list(values)))
            for path, values in conditions
        ]
        must.append(edge.NestedCondition(FILES, edge.Filter(must=tests)))
    return edge.Filter(must=must) if must else None

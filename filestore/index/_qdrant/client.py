"""What qdrant-client can do, the same with a server and with a folder in this process."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from filestore.index._qdrant.points import (
    FILES,
    Point,
    Points,
    Question,
    other_shape,
    pushed_down,
)

_SEARCHED: Final = 128
"""How many of its neighbours a graph looks at for a query; the server's own choice is 100."""


class ClientPoints(Points):
    """A collection that is asked through qdrant-client."""

    _client: Any
    _collection: str

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Turns what the client raises into errors of ours."""

    @abstractmethod
    def _is_there(self) -> bool:
        """Whether there is such a collection."""

    def dimension(self) -> int | None:
        """See the contract."""
        self.open()
        if not self._is_there():
            return None
        with self._errors():
            vectors = self._client.get_collection(self._collection).config.params.vectors
            distance = str(getattr(getattr(vectors, "distance", None), "value", ""))
            if distance != "Dot" or getattr(vectors, "multivector_config", None) is not None:
                raise other_shape(
                    self.address, "one vector with distance Dot", _described(vectors, distance)
                )
            return int(vectors.size)

    def _made(self, dimension: int, **more: Any) -> None:
        from qdrant_client import models

        with self._errors():
            params = models.VectorParams(size=dimension, distance=models.Distance.DOT)
            self._client.create_collection(self._collection, vectors_config=params, **more)

    def drop(self) -> None:
        """See the contract."""
        self.open()
        with self._errors():
            self._client.delete_collection(self._collection)

    def upsert(self, points: Sequence[Point]) -> None:
        """See the contract."""
        from qdrant_client import models

        some = [
            models.PointStruct(id=one.id, vector=one.vector.tolist(), payload=dict(one.payload))
            for one in points
        ]
        with self._errors():
            self._client.upsert(self._collection, some, wait=True)

    def delete(self, ids: Sequence[int]) -> None:
        """See the contract."""
        from qdrant_client import models

        with self._errors():
            chosen = models.PointIdsList(points=list(ids))
            self._client.delete(self._collection, chosen, wait=True)

    def retrieve(
        self, ids: Sequence[int | str], fields: Sequence[str] = (), *, vectors: bool = False
    ) -> list[Point]:
        """See the contract."""
        with self._errors():
            found = self._client.retrieve(
                self._collection, list(ids), with_payload=_selected(fields), with_vectors=vectors
            )
        return [_point(one) for one in found]

    def scroll(
        self, start: int | str | None, limit: int, fields: Sequence[str], *, vectors: bool
    ) -> tuple[list[Point], int | str | None]:
        """See the contract."""
        with self._errors():
            found, after = self._client.scroll(
                self._collection,
                offset=start,
                limit=limit,
                with_payload=_selected(fields),
                with_vectors=vectors,
            )
        return [_point(one) for one in found], after

    def count(self) -> int:
        """See the contract."""
        with self._errors():
            return int(self._client.count(self._collection, exact=True).count)

    def query(self, question: Question, fields: Sequence[str]) -> list[Point]:
        """See the contract."""
        with self._errors():
            found = self._client.query_points(
                self._collection,
                query=question.vector.tolist(),
                limit=question.limit,
                query_filter=_filter(question),
                search_params=_params(question),
                with_payload=_selected(fields),
            )
        return [_point(one, one.score) for one in found.points]

    def close(self) -> None:
        """See the contract."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def request(question: Question, fields: Sequence[str]) -> Any:
    """A question as one of several in a batch."""
    from qdrant_client import models

    return models.QueryRequest(
        query=question.vector.tolist(),
        limit=question.limit,
        filter=_filter(question),
        params=_params(question),
        with_payload=_selected(fields),
    )


def points_of(found: Any) -> list[Point]:
    """What a query of a batch found."""
    return [_point(one, one.score) for one in found.points]


def _described(vectors: Any, distance: str) -> str:
    if isinstance(vectors, dict):
        names = ", ".join(map(str, vectors))
        return f"vectors named {names}" if names else "no vectors"
    return f"distance {distance}" if distance != "Dot" else "several vectors a point"


def _point(found: Any, score: float = 0.0) -> Point:
    return Point(id=found.id, score=score, payload=found.payload or {}, vector=found.vector)


def _selected(fields: Sequence[str]) -> Any:
    return list(fields) or False


def _params(question: Question) -> Any:
    from qdrant_client import models

    return models.SearchParams(exact=question.exact, hnsw_ef=max(_SEARCHED, question.limit))


def _filter(question: Question) -> Any:
    from qdrant_client import models

    must: list[Any] = []
    if question.allowed is not None:
        must.append(models.HasIdCondition(has_id=list(question.allowed)))
    if conditions := pushed_down(question.where):
        tests = [
            models.FieldCondition(key=path, match=models.MatchAny(any=list(values)))
            for path, values in conditions
        ]
        nested = models.Nested(key=FILES, filter=models.Filter(must=tests))
        must.append(models.NestedCondition(nested=nested))
    return models.Filter(must=must) if must else None

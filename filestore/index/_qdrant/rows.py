"""Vectors in Qdrant: on a server, or in a folder of its client.

A change is not atomic: a reader sees the deletes and upserts of a push as they come, and the stamp
of before until it is whole; a search lays the delta of the catalog over both. The stamp is a point
of the collection itself, so that anyone who deletes, restores or copies the collection does so with
its stamp; its id is a UUID, which no vector of ours has, and it is dropped from what is found.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from filestore.core.safe_text import encodable
from filestore.index import Where
from filestore.index._qdrant.settings import opened_place
from filestore.index.backend import (
    BackendChoice,
    Capabilities,
    EmbedConfig,
    Hit,
    IndexBackend,
    Item,
    Stamp,
    State,
    check_length,
    check_stamp,
    check_where,
    digest,
    docs_of,
    not_announced,
    satisfies,
    whitelisted,
)

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

_STAMP: Final = "f17e5709-0000-8000-8000-000000000000"
_STAMP_FIELD: Final = "stamp"
_FILES: Final = "metadata.files"
"""Where a payload has its list of files."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_DOC: Final = ("doc_id", "content_hash")
_SHOWN: Final = ("text", "metadata")
_IDS: Final = 2**64
_BATCH: Final = 1_000
_SEARCHED: Final = 128
"""How many of its neighbours a graph looks at for a query; the server's own choice is 100."""
_NUMBERS: Final = 500_000
"""Of vectors in one request: 10 MB of JSON; servers take 32 MB."""
_ALLOWED: Final = 20_000
"""Ids in one filter: 400 kB of JSON."""
_SPARE: Final = 2
"""Looked for beyond what is wanted: the next score, which may be equal, and maybe the stamp."""
_INDEXED: Final = 32
"""Only the first few facts have an index of their own; filters by others look at all points."""


class QdrantRows(IndexBackend):
    """One collection; for its options see `settings`."""

    kind = "qdrant"
    capabilities = Capabilities(approximate=True, filters=True, batch=_BATCH)

    def __init__(self, choice: BackendChoice) -> None:
        self._place, self._whitelist = opened_place(choice)
        self._dim: int | None = None
        self._embed: EmbedConfig | None = None
        self._facts: set[str] = set()

    def load(self) -> None:
        """See the contract; a collection is made once the length is known."""
        self._dim = self._place.dimension()

    def save(self, *, owner: str, generation: int) -> None:
        """See the contract."""
        import numpy

        if self._embed is None and (stamp := self.stamp()):
            self._embed = stamp.embed
        if self._embed is None or self._dim is None:
            raise not_announced(self.address())
        self._place.index_fields(sorted(self._facts)[:_INDEXED])
        values = {
            "owner": owner,
            "generation": generation,
            "fingerprint": self._embed.fingerprint,
            "dimension": self._embed.dimension,
        }
        nowhere = numpy.zeros(self._dim, numpy.float32)
        self._write([(_STAMP, nowhere, {_STAMP_FIELD: values})])

    def _write(self, points: "Iterable[tuple[int | str, NDArray[float32], Any]]") -> None:
        """Hold points, of id, vector and payload; returns when they are held."""
        from qdrant_client import models

        some = [
            models.PointStruct(id=identifier, vector=vector.tolist(), payload=payload)
            for identifier, vector, payload in points
        ]
        with self._place.asked() as client:
            client.upsert(self._place.collection, some, wait=True)

    def set_embed_config(self, embed: EmbedConfig) -> None:
        """See the contract."""
        if self._dim is None:
            self._place.create(embed.dimension)
            self._dim = self._place.dimension()
        check_length(embed.dimension, self._dim, self.address())
        self._embed = embed

    @property
    def dim(self) -> int | None:
        """See the contract."""
        return self._dim

    def stamp(self) -> Stamp | None:
        """See the contract."""
        if self._dim is None:
            return None
        return _stamp_of(self._retrieved([_STAMP], [_STAMP_FIELD]))

    def _retrieved(
        self, ids: Sequence[int | str], fields: Sequence[str] = (), *, vectors: bool = False
    ) -> list[Any]:
        """Those of some points that are there, with these fields of their payload."""
        with self._place.asked() as client:
            found: list[Any] = client.retrieve(
                self._place.collection,
                list(ids),
                with_payload=list(fields) or False,
                with_vectors=vectors,
            )
        return found

    @property
    def state(self) -> State:
        """See the contract."""
        rows = (
            (_signed(one.id), _text(one, "doc_id"), _text(one, "content_hash"))
            for one in self._all(_DOC, vectors=False)
        )
        return State(docs=docs_of(rows), stamp=self.stamp())

    def _all(self, fields: Sequence[str], *, vectors: bool) -> Iterator[Any]:
        if self._dim is None:
            return
        start: int | str | None = None
        while True:
            with self._place.asked() as client:
                found, start = client.scroll(
                    self._place.collection,
                    offset=start,
                    limit=self._batch() if vectors else _BATCH,
                    with_payload=list(fields) or False,
                    with_vectors=vectors,
                )
            yield from (one for one in found if isinstance(one.id, int))
            if start is None:
                return

    def _batch(self) -> int:
        return max(1, min(_BATCH, _NUMBERS // (self._dim or 1)))

    def upsert(self, items: Iterable[Item], *, skip_existing: bool = True) -> int:
        """See the contract."""
        coming, written = iter(items), 0
        while batch := list(islice(coming, self._batch())):
            for item in batch:
                check_length(len(item.vector), self._dim, self.address())
            held: dict[int, str] = {}
            if skip_existing:
                points = self._retrieved([one.id % _IDS for one in batch], ["content_hash"])
                held = {_signed(one.id): _text(one, "content_hash") for one in points}
            some = [one for one in batch if held.get(one.id) != one.content_hash]
            if some:
                self._write((one.id % _IDS, one.vector, self._payload(one)) for one in some)
            written += len(some)
        return written

    def _payload(self, item: Item) -> dict[str, Any]:
        metadata = encodable(whitelisted(item.metadata, self._whitelist))
        for one in metadata.get("files", ()):
            self._facts.update(f"{_FILES}[].{path}" for key in one if (path := _path_of(key)))
        return {
            "doc_id": item.doc_id,
            "content_hash": item.content_hash,
            "text": encodable(item.text),
            "metadata": metadata,
        }

    def delete(self, ids: Collection[int]) -> int:
        """See the contract."""
        if self._dim is None:
            return 0
        from qdrant_client import models

        coming, gone = iter(ids), 0
        while batch := list(islice(coming, _BATCH)):
            held = [one.id for one in self._retrieved([one % _IDS for one in batch])]
            if held:
                with self._place.asked() as client:
                    chosen = models.PointIdsList(points=held)
                    client.delete(self._place.collection, chosen, wait=True)
            gone += len(held)
        return gone

    def query(
        self,
        vector: "NDArray[float32]",
        *,
        top_k: int | None = None,
        where: Where = (),
        allowed: "NDArray[int64] | None" = None,
    ) -> list[Hit]:
        """See the contract; where not all may be found, nothing is left to a graph."""
        check_where(where, self._whitelist)
        where = tuple((encodable(key), tuple(map(encodable, values))) for key, values in where)
        if self._dim is None:
            check_stamp(None, self._expected, self.address())
            return []
        check_length(len(vector), self._dim, self.address())
        is_none = top_k is not None and top_k < 1
        if is_none or not all(values for _, values in where):
            return []
        found: list[Any] = []
        for some in _batches(allowed):
            exact = bool(where) or some is not None or top_k is None
            found += self._enough(_request(vector, where, some, exact=exact), where, top_k)
        found.sort(key=lambda one: (-one.score, _signed(one.id)))
        return [
            Hit(
                id=_signed(one.id),
                score=one.score,
                text=_text(one, "text"),
                metadata=_metadata(one),
            )
            for one in found[:top_k]
        ]

    def _enough(self, request: Any, where: Where, top_k: int | None) -> list[Any]:
        """All that may be among the first: one more than these has a lower score."""
        if top_k is None:
            with self._place.asked() as client:
                limit = client.count(self._place.collection, exact=True).count
        else:
            limit = top_k + _SPARE
        while limit:
            request.limit = limit
            request.params.hnsw_ef = max(_SEARCHED, limit)
            found = self._asked(request)
            some = [
                one for one in found if isinstance(one.id, int) and satisfies(_metadata(one), where)
            ]
            if top_k is None or len(found) < limit:
                return some
            if len(some) > top_k and found[-1].score < some[top_k - 1].score:
                return some
            limit *= 4
        return []

    def _asked(self, request: Any) -> list[Any]:
        """What one request finds; the stamp comes along, so that both are of one moment."""
        from qdrant_client import models

        only = models.Filter(must=[models.HasIdCondition(has_id=[_STAMP])])
        stamp = models.QueryRequest(filter=only, limit=1, with_payload=[_STAMP_FIELD])
        with self._place.asked() as client:
            nearest, stamps = client.query_batch_points(
                self._place.collection, requests=[request, stamp]
            )
            check_stamp(_stamp_of(stamps.points), self._expected, self.address())
            found: list[Any] = nearest.points
        return found

    def digests(self, ids: "NDArray[int64] | None" = None) -> Mapping[int, bytes]:
        """See the contract; Qdrant computes none, so the vectors come here."""
        found: dict[int, bytes] = {}
        coming = self._all((), vectors=True) if ids is None else self._some(ids)
        while batch := list(islice(coming, self._batch())):
            import numpy

            bare = dict.fromkeys((_signed(one.id) for one in batch), b"")
            whole = [
                one
                for one in batch
                if isinstance(one.vector, list) and len(one.vector) == self._dim
            ]
            vectors = numpy.array([one.vector for one in whole], numpy.float32)
            keys = [_signed(one.id) for one in whole]
            found.update({**bare, **dict(zip(keys, digest(vectors), strict=True))})
        return found

    def _some(self, ids: "NDArray[int64]") -> Iterator[Any]:
        if self._dim is None:
            return
        for start in range(0, len(ids), self._batch()):
            keys = [int(one) % _IDS for one in ids[start : start + self._batch()]]
            yield from self._retrieved(keys, vectors=True)

    def clear(self) -> None:
        """See the contract."""
        self._place.drop()
        self._dim = self._embed = None

    def address(self) -> str:
        """See the contract."""
        return self._place.address

    def close(self) -> None:
        """See the contract."""
        self._place.close()


def _signed(identifier: int | str) -> int:
    """An id of ours: Qdrant has those below zero above all others."""
    number = int(identifier)
    return number - _IDS if number >= _IDS // 2 else number


def _batches(allowed: "NDArray[int64] | None") -> Iterator[tuple[int, ...] | None]:
    if allowed is None:
        yield None
        return
    for start in range(0, len(allowed), _ALLOWED):
        yield tuple(int(one) % _IDS for one in allowed[start : start + _ALLOWED])


def _request(
    vector: "NDArray[float32]", where: Where, allowed: tuple[int, ...] | None, *, exact: bool
) -> Any:
    """What to find; conditions that Qdrant cannot test are tested on what it finds."""
    from qdrant_client import models

    must: list[Any] = []
    if allowed is not None:
        must.append(models.HasIdCondition(has_id=list(allowed)))
    tests = [
        models.FieldCondition(key=path, match=models.MatchAny(any=list(values)))
        for key, values in where
        if (path := _path_of(key)) is not None
    ]
    if tests:
        nested = models.Nested(key=_FILES, filter=models.Filter(must=tests))
        must.append(models.NestedCondition(nested=nested))
    return models.QueryRequest(
        query=vector.tolist(),
        filter=models.Filter(must=must) if must else None,
        params=models.SearchParams(exact=exact),
        with_payload=list(_SHOWN),
    )


def _path_of(key: str) -> str | None:
    """A key as Qdrant's paths have it; None for one that they cannot say."""
    if _PLAIN.fullmatch(key):
        return key
    return None if '"' in key or "\\" in key else f'"{key}"'


def _text(point: Any, name: str) -> str:
    value = (point.payload or {}).get(name)
    return value if isinstance(value, str) else ""


def _metadata(point: Any) -> Any:
    return (point.payload or {}).get("metadata", {})


def _stamp_of(found: Sequence[Any]) -> Stamp | None:
    """What a collection says of itself; None for what is no stamp of ours."""
    try:
        values = found[0].payload[_STAMP_FIELD]
        return Stamp(
            owner=str(values["owner"]),
            generation=int(values["generation"]),
            embed=EmbedConfig(
                fingerprint=str(values["fingerprint"]), dimension=int(values["dimension"])
            ),
        )
    except (IndexError, KeyError, TypeError, ValueError):
        return None

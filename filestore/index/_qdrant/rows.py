"""Vectors in Qdrant: on a server, or by its engine in this process.

A change is not atomic: a reader sees the deletes and upserts of a push as they come, and the stamp
of before until it is whole; a search lays the delta of the catalog over both. The stamp is a point
of the collection itself, so that whoever deletes, restores or copies the collection does so with
its stamp; its id is a UUID, which no vector of ours has, and it is dropped from what is found.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from filestore.index._qdrant.points import FILES, Point, Points, Question, path_of
from filestore.index._qdrant.settings import opened_points
from filestore.index.backend import (
    BackendChoice,
    Capabilities,
    EmbedConfig,
    Hit,
    IndexBackend,
    Item,
    Stamp,
    State,
    Where,
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
_DOC: Final = ("doc_id", "content_hash")
_SHOWN: Final = ("text", "metadata")
_IDS: Final = 2**64
_BATCH: Final = 1_000
_NUMBERS: Final = 500_000
"""Of vectors in one request: 10 MB of JSON; servers take 32 MB."""
_ALLOWED: Final = 20_000
"""Ids in one filter: 400 kB of JSON."""
_SPARE: Final = 2
"""Looked for beyond what is wanted: the next score, which may be equal, and maybe the stamp."""
_INDEXED: Final = 32
"""Facts with an index of their own: the first so many; filters by others look at all points."""


class QdrantRows(IndexBackend):
    """One collection; for its options see `settings`."""

    kind = "qdrant"
    capabilities = Capabilities(approximate=True, filters=True, batch=_BATCH)

    def __init__(self, choice: BackendChoice) -> None:
        self._points: Points
        self._points, self._whitelist = opened_points(choice)
        self._dim: int | None = None
        self._embed: EmbedConfig | None = None
        self._expected: tuple[str, int] | None = None
        self._facts: set[str] = set()

    def load(self) -> None:
        """See the contract; a collection is made once the length is known."""
        self._points.open()
        self._dim = self._points.dimension()

    def save(self, *, owner: str, generation: int) -> None:
        """See the contract."""
        import numpy

        self._embed = self._embed or self._stamped_embed()
        if self._embed is None or self._dim is None:
            raise not_announced(self.address())
        self._points.index_fields(sorted(self._facts)[:_INDEXED])
        self._points.flush()
        values = {
            "owner": owner,
            "generation": generation,
            "fingerprint": self._embed.fingerprint,
            "dimension": self._embed.dimension,
        }
        nowhere = numpy.zeros(self._dim, numpy.float32)
        self._points.upsert([Point(id=_STAMP, vector=nowhere, payload={_STAMP_FIELD: values})])
        self._points.flush()

    def _stamped_embed(self) -> EmbedConfig | None:
        stamp = self.stamp()
        return stamp.embed if stamp else None

    def set_embed_config(self, embed: EmbedConfig) -> None:
        """See the contract."""
        if self._dim is None:
            self._points.create(embed.dimension)
            self._dim = self._points.dimension()
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
        return _stamp_of(self._points.retrieve([_STAMP], [_STAMP_FIELD]))

    @property
    def state(self) -> State:
        """See the contract."""
        rows = (
            (_signed(one.id), _text(one, "doc_id"), _text(one, "content_hash"))
            for one in self._all(_DOC, vectors=False)
        )
        return State(docs=docs_of(rows), stamp=self.stamp())

    def _all(self, fields: Sequence[str], *, vectors: bool) -> Iterator[Point]:
        if self._dim is None:
            return
        start: int | str | None = None
        while True:
            limit = self._batch() if vectors else _BATCH
            found, start = self._points.scroll(start, limit, fields, vectors=vectors)
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
            held = self._hashes([one.id for one in batch]) if skip_existing else {}
            some = [one for one in batch if held.get(one.id) != one.content_hash]
            if some:
                self._points.upsert([self._point(one) for one in some])
            written += len(some)
        return written

    def _hashes(self, ids: Sequence[int]) -> dict[int, str]:
        found = self._points.retrieve([one % _IDS for one in ids], ["content_hash"])
        return {_signed(one.id): _text(one, "content_hash") for one in found}

    def _point(self, item: Item) -> Point:
        import numpy

        metadata = _unicode(whitelisted(item.metadata, self._whitelist))
        for one in metadata.get("files", ()):
            self._facts.update(f"{FILES}[].{path}" for key in one if (path := path_of(key)))
        return Point(
            id=item.id % _IDS,
            vector=numpy.asarray(item.vector, numpy.float32),
            payload={
                "doc_id": item.doc_id,
                "content_hash": item.content_hash,
                "text": _unicode(item.text),
                "metadata": metadata,
            },
        )

    def delete(self, ids: Collection[int]) -> int:
        """See the contract."""
        if self._dim is None:
            return 0
        coming, gone = iter(ids), 0
        while batch := list(islice(coming, _BATCH)):
            found = self._points.retrieve([one % _IDS for one in batch])
            held = [one.id for one in found if isinstance(one.id, int)]
            if held:
                self._points.delete(held)
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
        where = tuple((_unicode(key), tuple(map(_unicode, values))) for key, values in where)
        if self._dim is None:
            check_stamp(None, self._expected, self.address())
            return []
        check_length(len(vector), self._dim, self.address())
        is_none = top_k is not None and top_k < 1
        if is_none or not all(values for _, values in where):
            return []
        found: list[Point] = []
        for some in _batches(allowed):
            exact = bool(where) or some is not None or top_k is None
            question = Question(vector=vector, limit=0, where=where, allowed=some, exact=exact)
            found += self._enough(question, top_k)
        found.sort(key=lambda one: (-one.score, _signed(one.id)))
        return [
            Hit(
                id=_signed(one.id),
                score=one.score,
                text=_text(one, "text"),
                metadata=one.payload.get("metadata", {}),
            )
            for one in found[:top_k]
        ]

    def _enough(self, question: Question, top_k: int | None) -> list[Point]:
        """All that may be among the first: one more than these has a lower score."""
        limit = self._points.count() if top_k is None else top_k + _SPARE
        while limit:
            found = self._asked(replace(question, limit=limit))
            some = [
                one
                for one in found
                if isinstance(one.id, int)
                and satisfies(one.payload.get("metadata", {}), question.where)
            ]
            if top_k is None or len(found) < limit:
                return some
            if len(some) > top_k and found[-1].score < some[top_k - 1].score:
                return some
            limit *= 4
        return []

    def _asked(self, question: Question) -> list[Point]:
        if self._expected is None:
            return self._points.query(question, _SHOWN)
        found, beside = self._points.query_beside(question, _SHOWN, _STAMP, _STAMP_FIELD)
        check_stamp(_stamp_of(beside), self._expected, self.address())
        return found

    def digests(self, ids: "NDArray[int64] | None" = None) -> Mapping[int, bytes]:
        """See the contract; Qdrant computes none, so the vectors come here."""
        found: dict[int, bytes] = {}
        coming = self._all((), vectors=True) if ids is None else self._some(ids)
        while batch := list(islice(coming, self._batch())):
            found.update(self._digests_of(batch))
        return found

    def _digests_of(self, points: Sequence[Point]) -> Mapping[int, bytes]:
        """Of a point without a vector of our length: the digest that none has."""
        import numpy

        found = dict.fromkeys((_signed(one.id) for one in points), b"")
        whole = [one for one in points if one.has_vector(self._dim)]
        vectors = numpy.array([one.vector for one in whole], numpy.float32)
        keys = [_signed(one.id) for one in whole]
        return {**found, **dict(zip(keys, digest(vectors), strict=True))}

    def _some(self, ids: "NDArray[int64]") -> Iterator[Point]:
        if self._dim is None:
            return
        for start in range(0, len(ids), self._batch()):
            keys = [int(one) % _IDS for one in ids[start : start + self._batch()]]
            yield from self._points.retrieve(keys, vectors=True)

    def clear(self) -> None:
        """See the contract."""
        self._points.drop()
        self._dim = self._embed = None

    def address(self) -> str:
        """See the contract."""
        return self._points.address

    def expect(self, owner: str, generation: int) -> None:
        """See the contract."""
        self._expected = (owner, generation)

    def close(self) -> None:
        """See the contract."""
        self._points.close()


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


def _text(point: Point, name: str) -> str:
    value = point.payload.get(name)
    return value if isinstance(value, str) else ""


def _unicode(value: Any) -> Any:
    """JSON without half characters, as in names that are no UTF-8: Qdrant takes none."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_unicode(key): _unicode(one) for key, one in value.items()}
    return [_unicode(one) for one in value] if isinstance(value, list | tuple) else value


def _stamp_of(found: Sequence[Point]) -> Stamp | None:
    """What a collection says of itself; None for what is no stamp of ours."""
    values: Any = found[0].payload.get(_STAMP_FIELD) if found else None
    try:
        return Stamp(
            owner=str(values["owner"]),
            generation=int(values["generation"]),
            embed=EmbedConfig(
                fingerprint=str(values["fingerprint"]), dimension=int(values["dimension"])
            ),
        )
    except (KeyError, TypeError, ValueError):
        return None

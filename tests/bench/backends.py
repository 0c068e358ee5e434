"""Backends that keep the vectors, each beside the plain client that asks the same of the same rows.

Vectors are synthetic and clustered, 384 numbers each, beside a text and some metadata. A server is
started by the benchmark itself. Each query is asked by ours and by the plain client, in any order.
"""

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import measure

COUNT = 10
RATIO = 1.2
RECALL = 0.95
VERIFIED_S = 5.0
EDITS = 10
TAGS = 50
"""A filter leaves one in so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An empty place for one backend."""

    kind: str
    options: dict[str, object]
    plain: Callable[[str, Any, str], list[Any]]
    """What the plain client finds: for ``near`` or ``filtered``, a vector, and a tag."""
    most: int | None = None
    """Vectors that can be borne; None for any number."""


@contextmanager
def pgvector(_: str) -> Iterator[Place]:
    """PostgreSQL, through psycopg with the statements that ours sends."""
    import psycopg

    sys.path.append(str(Path(__file__).parents[2]))
    from tests.postgres_server import new_database, shared_server

    plain: list[Any] = []

    def ask(kind: str, vector: Any, tag: str) -> list[Any]:
        if not plain:
            plain.append(psycopg.connect(database.dsn, autocommit=True))
            plain[0].execute("SET hnsw.ef_search = 100")
            plain[0].execute("SET hnsw.iterative_scan = strict_order")
        where, values = "true", {"vector": str(vector.tolist())}
        if kind == "filtered":
            where = "metadata @> %(tag)s::jsonb"
            values["tag"] = json.dumps({"files": [{"tags": [tag]}]})
        statement = (
            "SELECT id, embedding <#> %(vector)s::vector AS distance, body, metadata"
            f" FROM filestore_vectors WHERE {where} ORDER BY distance LIMIT {COUNT}"
        )
        return [row[0] for row in plain[0].execute(statement, values).fetchall()]

    with tempfile.TemporaryDirectory() as meeting, shared_server(Path(meeting)) as server:
        database = new_database(server, "bench")
        yield Place(
            kind="pgvector",
            options={"dsn": database.dsn, "index": "hnsw", "timeout_s": 600},
            plain=ask,
        )
        for connection in plain:
            connection.close()


@contextmanager
def local_mode(folder: str) -> Iterator[Place]:
    """qdrant-client without a server, asked over a copy; it writes one point at a time."""
    plain: list[Any] = []

    def ask(kind: str, vector: Any, tag: str) -> list[Any]:
        from qdrant_client import QdrantClient, models

        if not plain:
            shutil.copytree(f"{folder}/rows", f"{folder}/copy")
            plain.append(QdrantClient(path=f"{folder}/copy"))
        match = models.FieldCondition(key="tags", match=models.MatchAny(any=[tag]))
        nested = models.Nested(key="metadata.files", filter=models.Filter(must=[match]))
        only = models.Filter(must=[models.NestedCondition(nested=nested)])
        found = plain[0].query_points(
            "filestore",
            query=vector.tolist(),
            limit=COUNT,
            query_filter=only if kind == "filtered" else None,
            with_payload=True,
        )
        return [one.id for one in found.points]

    yield Place(kind="qdrant", options={"path": "rows"}, plain=ask, most=5_000)
    for client in plain:
        client.close()


KINDS: dict[str, Callable[[str], AbstractContextManager[Place]]] = {
    "pgvector": pgvector,
    "qdrant-folder": local_mode,
}
"""By backend and engine: what makes a place for it in a folder of its own."""


def main() -> None:
    """Measure and print a table for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vectors", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--queries", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--only", choices=KINDS, action="append", help="one of them, or several")
    given = parser.parse_args()
    for kind in given.only or KINDS:
        with tempfile.TemporaryDirectory() as folder, KINDS[kind](folder) as place:
            total = min(given.vectors, place.most or given.vectors)
            rows = figures(folder, place, total, given.queries)
        title = f"{kind}: {total:,} vectors, {given.queries} queries, median"
        print(measure.table(title, rows), flush=True)


def figures(folder: str, place: Place, total: int, queries: int) -> list[measure.Row]:
    """Fill a backend, ask it and the plain client, verify it and change a little."""
    from synthetic import Clusters

    from filestore.index import open_backend
    from filestore.index.backend import BackendChoice

    asked = Clusters(total).queries(queries)
    choice = BackendChoice(kind=place.kind, options=place.options, folder=folder, environment={})
    with open_backend(choice) as backend:
        built_s = timed(lambda: fill(backend, total))
        backend.expect("bench", 1)
        rows = [measure.Row(figure="built", ours=f"{built_s:.0f} s")]
        for kind_of in ("near", "filtered"):
            rows += compared(kind_of, backend, place, asked)
        rows.append(recall(backend, asked, total))
        verified_s = timed(lambda: digested(backend, total))
        rows.append(
            measure.Row(
                figure="digests of all",
                ours=f"{verified_s:.2f} s",
                goal=f"≤ {VERIFIED_S:g} s",
                met=verified_s <= VERIFIED_S,
            )
        )
        edited_s = timed(lambda: edit(backend))
        rows.append(measure.Row(figure=f"push of {EDITS} edits", ours=f"{edited_s * 1000:.0f} ms"))
    return rows


def items(total: int) -> Iterator[Any]:
    """As a store sends them: a text, and the file that has it."""
    from synthetic import BLOCK, Clusters

    from filestore.index.backend import Item

    clusters = Clusters(total)
    for start in range(0, total, BLOCK):
        block = clusters.block(start, min(BLOCK, total - start))
        for key, vector in enumerate(block, start=start):
            yield Item(
                id=key,
                vector=vector,
                doc_id=str(key),
                content_hash=f"{key:032x}",
                text=f"The text of chunk {key}, which says something. " * 8,
                metadata={"files": [{"path": [f"folder/{key}.md"], "tags": [f"t{key % TAGS}"]}]},
            )


def fill(backend: Any, total: int) -> None:
    """Push all of them."""
    from synthetic import DIMENSION

    from filestore.index.backend import EmbedConfig

    backend.load()
    backend.set_embed_config(EmbedConfig(fingerprint="synthetic", dimension=DIMENSION))
    backend.upsert(items(total))
    backend.save(owner="bench", generation=1)


def compared(kind: str, backend: Any, place: Place, asked: Any) -> list[measure.Row]:
    """Ours and the plain client in any order; the first round warms both."""
    times: list[tuple[float, float]] = []
    order = random.Random(0)
    for number, query in enumerate([*asked, *asked]):
        tag = f"t{number % TAGS}"
        where = (("tags", (tag,)),) if kind == "filtered" else ()
        actions = (
            lambda q=query, w=where: backend.query(q, top_k=COUNT, where=w),
            lambda q=query, t=tag: place.plain(kind, q, t),
        )
        # Who asks first brings the pages in for the other, and who has just asked is still awake.
        spent = {at: timed(actions[at]) for at in order.sample((0, 1), 2)}
        times.append((spent[0], spent[1]))
    ours, plain = zip(*times[len(asked) :], strict=True)
    return [
        ratio(f"{kind}, p50", statistics.median(ours), statistics.median(plain)),
        ratio(f"{kind}, p95", highest(ours), highest(plain)),
    ]


def ratio(figure: str, ours_s: float, plain_s: float) -> measure.Row:
    """A row for two short times."""
    return measure.Row(
        figure=figure,
        ours=measure.milliseconds(ours_s),
        yardstick=f"plain {measure.milliseconds(plain_s)}",
        compared=f"× {ours_s / plain_s:.2f}",
        goal=f"≤ × {RATIO:g}",
        met=ours_s <= RATIO * plain_s,
    )


def highest(times: Sequence[float]) -> float:
    """The time that one in twenty exceeds."""
    return statistics.quantiles(times, n=20)[-1]


def recall(backend: Any, asked: Any, total: int) -> measure.Row:
    """The share of the nearest that are found."""
    import numpy as np
    from synthetic import BLOCK, Clusters

    from filestore.index.building import Judge

    judge, clusters = Judge(asked), Clusters(total)
    for start in range(0, total, BLOCK):
        block = clusters.block(start, min(BLOCK, total - start))
        judge.take(np.arange(start, start + len(block), dtype=np.int64), block)
    found = 0
    for query, nearest in zip(asked, judge.nearest().tolist(), strict=True):
        found += len({hit.id for hit in backend.query(query, top_k=COUNT)} & set(nearest[:COUNT]))
    share = found / (COUNT * len(asked))
    return measure.Row(
        figure=f"recall@{COUNT}", ours=f"{share:.4f}", goal=f"≥ {RECALL}", met=share >= RECALL
    )


def digested(backend: Any, total: int) -> None:
    """What a full verification asks for."""
    assert len(backend.digests()) == total


def edit(backend: Any) -> None:
    """Other vectors for some, as one push."""
    from msgspec.structs import replace

    some = [replace(one, content_hash="new") for one in islice(items(1000), EDITS)]
    assert backend.upsert(some) == EDITS
    backend.save(owner="bench", generation=2)


def timed(action: Callable[[], object]) -> float:
    """How long it takes, in seconds."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

"""Vectors on three PostgreSQL servers behind a fourth: how fast, how exact, and one of them lost.

Starts real servers on loopback, sets them up by the SQL of SCALE.md, fills them through the one in
front with synthetic clustered vectors, builds HNSW on each, asks, kills one of them, asks again,
and starts it again. It needs PostgreSQL with the extensions postgres_fdw and vector, and psycopg;
``--bin`` names the folder of the server's programs, ``--print-sql`` shows the SQL and does nothing.
"""

import argparse
import operator
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import measure
import numpy as np
import servers
from synthetic import BLOCK, DIMENSION, Clusters

if TYPE_CHECKING:
    from filestore.index.backend import IndexBackend, Item

COUNT: Final = 10
EXACT_QUERIES: Final = 40
"""An exact answer reads every vector."""
RECALL: Final = 0.95
OVER_PLAIN: Final = 1.2
PATIENCE_S: Final = 5
"""How long a query of a server that answers nothing is waited for."""
LOST: Final = 1
OWNER: Final = "a catalog"
BODIES: Final = 1_000
"""So many texts are made; rows share them."""
PLAIN: Final = (
    "select id, embedding <#> %s::vector as distance, body, metadata from filestore_vectors"
    " order by distance limit 10"
)
DIGESTS: Final = "select id, md5(substring(vector_send(embedding) from 5)) from filestore_vectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Queries and their true answers."""

    queries: Any
    """(n, dimension) float32."""
    truth: Sequence[set[int]]


Answers: TypeAlias = list[list[int]]
"""Of each query the ids that were found, best first."""
Asker: TypeAlias = Callable[[Any], list[int]]


@dataclass(slots=True)
class Report:
    """What was found so far; each line is printed when it is known."""

    rows: list[measure.Row] = field(default_factory=list)

    def add(self, figure: str, ours: str, **more: Any) -> None:
        """Another line."""
        self.rows.append(measure.Row(figure=figure, ours=ours, **more))
        print(f"{time.strftime('%H:%M:%S')} {figure}: {ours}", flush=True)

    def recall(self, figure: str, found: float, goal: float) -> None:
        """Another line, with a goal."""
        self.add(figure, f"{found:.4f}", goal=f"≥ {goal:g}", met=found >= goal)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vectors", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--queries", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--bin", metavar="DIR", help="where initdb and postgres are")
    parser.add_argument(
        "--build-memory", type=int, default=1_200, metavar="MB", help="default: %(default)s"
    )
    parser.add_argument("--print-sql", action="store_true", help="show what sets it up, and end")
    given = parser.parse_args()
    if given.print_sql:
        print("\n".join(f"-- {name}\n{text}" for name, text in servers.statements().items()))
        return
    programs = servers.programs(given.bin)
    if programs is None:
        print(servers.MISSING)
        return
    with tempfile.TemporaryDirectory() as folder:
        settings = _settings(given.vectors, given.build_memory)
        with servers.running(["front", *servers.NAMES], folder, programs, settings) as (
            front,
            *shards,
        ):
            _measured(front, shards, given)


def _settings(vectors: int, build_mb: int) -> dict[str, dict[str, str]]:
    shared = {"jit": "off", "wal_level": "minimal", "max_wal_senders": "0"}
    shard = {
        **shared,
        "shared_buffers": f"{min(1_024, max(64, vectors // 1_000))}MB",
        "maintenance_work_mem": f"{build_mb}MB",
        "max_parallel_maintenance_workers": "1",
        "max_wal_size": "2GB",
    }
    return {"front": shared, **dict.fromkeys(servers.NAMES, shard)}


def _measured(
    front: servers.Server, shards: list[servers.Server], given: argparse.Namespace
) -> None:
    report = Report()
    print(f"load of the machine: {_load()}", flush=True)
    servers.set_up(front, shards)
    clusters = Clusters(given.vectors)
    asked = _fill(report, front, clusters, given)
    _build(report, shards)
    for one in shards:
        _sizes(report, one)
    _ask(report, front, shards[0], asked)
    _ask_exactly(report, front, asked)
    _compare(report, front)
    _send_ten(report, front, clusters)
    _memory(report, [front, *shards])
    _lose(report, front, shards[LOST], asked)
    title = (
        f"{given.vectors:,} vectors of {DIMENSION} on three PostgreSQL servers behind a fourth;"
        f" {len(asked.queries)} queries; load of the machine at the end {_load()}"
    )
    print("\n" + measure.table(title, report.rows))


def _opened(front: servers.Server, **options: Any) -> "IndexBackend":
    """The backend of filestore as settings open it; the password is in the environment."""
    from filestore.index import open_backend
    from filestore.index.backend import BackendChoice

    os.environ["PGPASSWORD"] = front.password
    dsn = f"postgresql://{servers.USER}@127.0.0.1:{front.port}/{servers.DATABASE}"
    choice = BackendChoice(
        kind="pgvector", options={"dsn": dsn, **options}, folder="", environment=os.environ
    )
    backend = open_backend(choice)
    backend.load()
    return backend


def _load() -> str:
    return " ".join(f"{one:.1f}" for one in os.getloadavg()) + f", {os.cpu_count()} cores"


def _fill(
    report: Report, front: servers.Server, clusters: Clusters, given: argparse.Namespace
) -> Asked:
    """Send the vectors as `sync` does, through the server in front; find the true answers, too."""
    from filestore.index.backend import EmbedConfig

    judge = Truth(clusters.queries(given.queries))
    texts = bodies()
    spent_s = 0.0
    with _opened(front) as backend:
        backend.set_embed_config(EmbedConfig(fingerprint="synthetic", dimension=DIMENSION))
        for start in range(0, given.vectors, BLOCK):
            vectors = clusters.block(start, min(BLOCK, given.vectors - start))
            items = [item(start + at, vector, texts) for at, vector in enumerate(vectors)]
            judge.take(np.array([one.id for one in items], dtype=np.int64), vectors)
            spent_s += _timed(lambda items=items: backend.upsert(items))
        spent_s += _timed(lambda: backend.save(owner=OWNER, generation=1))
    rate = given.vectors / spent_s
    report.add("sent through the server in front", f"{spent_s:,.0f} s, {rate:,.0f} rows/s")
    return Asked(queries=judge.queries, truth=judge.nearest())


def item(number: int, vector: Any, texts: Sequence[str]) -> "Item":
    """A vector with what stands beside it in a store."""
    from filestore.core.hashing import embedding_key, vector_id
    from filestore.index.backend import Item

    key = embedding_key(str(number))
    file = {"path": [f"notes/{number % 1_000:03d}/{number}.md"], "kind": ["markdown"]}
    return Item(
        id=vector_id(key),
        vector=vector,
        doc_id=str(vector_id(key)),
        content_hash=key.hex(),
        text=texts[number % len(texts)],
        metadata={"files": [file]},
    )


def bodies() -> list[str]:
    """Texts of about 700 characters, as chunks have."""
    from stores import TextMaker

    maker = TextMaker(1)
    return [maker.text() for _ in range(BODIES)]


class Truth:
    """The nearest of some queries among vectors that pass in blocks, by plain numpy."""

    def __init__(self, queries: Any) -> None:
        self.queries = queries
        self._ids = np.empty((len(queries), 0), dtype=np.int64)
        self._scores = np.empty((len(queries), 0), dtype=np.float32)

    def take(self, ids: Any, vectors: Any) -> None:
        """See another block."""
        scores = np.hstack([self._scores, self.queries @ vectors.T])
        all_ids = np.hstack([self._ids, np.broadcast_to(ids, (len(self.queries), len(ids)))])
        best = np.argpartition(-scores, COUNT - 1, axis=1)[:, :COUNT]
        self._scores = np.take_along_axis(scores, best, axis=1)
        self._ids = np.take_along_axis(all_ids, best, axis=1)

    def nearest(self) -> list[set[int]]:
        """The ids of the nearest of each query."""
        return [set(row) for row in self._ids.tolist()]


def _build(report: Report, shards: list[servers.Server]) -> None:
    """One index after another, as the memory of one machine has to do for three."""
    spent, peaks = [], []
    for one in shards:
        with one.connect() as connection, _peak(one) as peak:
            started = time.perf_counter()
            connection.execute(servers.statements()["index"])
            spent.append(time.perf_counter() - started)
        peaks.append(max(peak))
    each = ", ".join(f"{one:,.0f}" for one in spent)
    report.add("HNSW built on each, one after another", f"{sum(spent):,.0f} s ({each})")
    report.add("peak memory of a server that builds", _mb(max(peaks)))


class _peak:
    """Samples the memory of a server while a block runs."""

    def __init__(self, server: servers.Server) -> None:
        self._server = server
        self._seen = [0]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._done.wait(0.5):
            self._seen.append(self._server.memory_bytes())

    def __enter__(self) -> list[int]:
        self._thread.start()
        return self._seen

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._seen.append(self._server.memory_bytes())


def _mb(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"


def _sizes(report: Report, server: servers.Server) -> None:
    with server.connect() as connection:
        (rows, table, index) = connection.execute(
            "select count(*), pg_table_size('filestore_vectors'),"
            " pg_relation_size('filestore_vectors_hnsw') from filestore_vectors"
        ).fetchone() or (0, 0, 0)
    report.add(f"{server.name}: rows, table, HNSW", f"{rows:,}, {_mb(table)}, {_mb(index)}")


def _memory(report: Report, everyone: list[servers.Server]) -> None:
    sizes = ", ".join(f"{one.name} {_mb(one.memory_bytes())}" for one in everyone)
    report.add("memory after the queries, their shared buffers with it", sizes)


def _ask(report: Report, front: servers.Server, alone: servers.Server, asked: Asked) -> None:
    """Latencies and recall with the indexes, beside a plain client."""
    with _opened(front) as backend, front.connect() as plain, alone.connect() as third:
        # As a search opens it: its stamp is read along with every answer.
        backend.expect(OWNER, 1)
        ours, theirs, one = (
            _asker_of(backend),
            _plainly(plain),
            _plainly(third),
        )
        # The first round brings the pages into memory.
        _in_turns((ours, theirs), asked)
        (ours_s, found), (theirs_s, others) = _in_turns((ours, theirs), asked)
        ((one_s, _),) = _in_turns((one,), asked)
    report.add("query of one server alone, for its third", _spread(one_s))
    for name, place in (("p50", 0), ("p95", 1)):
        mine, other = _quantiles(ours_s)[place], _quantiles(theirs_s)[place]
        report.add(
            f"query {name}",
            measure.milliseconds(mine),
            yardstick=f"plain client {measure.milliseconds(other)}",
            compared=f"× {mine / other:.2f}",
            goal=f"≤ × {OVER_PLAIN:g}",
            met=mine <= OVER_PLAIN * other,
        )
    report.recall(f"recall@{COUNT} with the indexes", _recall(found, asked), RECALL)
    report.add(f"recall@{COUNT} of the plain client", f"{_recall(others, asked):.4f}")


def _ask_exactly(report: Report, front: servers.Server, asked: Asked) -> None:
    few = Asked(queries=asked.queries[:EXACT_QUERIES], truth=asked.truth[:EXACT_QUERIES])
    with _opened(front, index="exact", timeout_s=300) as backend:
        ((spent_s, found),) = _in_turns((_asker_of(backend),), few)
    report.add(f"exact query ({len(few.queries)} queries)", _spread(spent_s))
    report.recall(f"recall@{COUNT} exact, judged by numpy", _recall(found, few), 1.0)


def _asker_of(backend: "IndexBackend") -> Asker:
    return lambda vector: [hit.id for hit in backend.query(vector, top_k=COUNT)]


def _plainly(connection: Any) -> Asker:
    """What a program would do that knows the table and nothing else."""

    def ask(vector: Any) -> list[int]:
        return [row[0] for row in connection.execute(PLAIN, (str(vector.tolist()),)).fetchall()]

    return ask


def _in_turns(askers: Sequence[Asker], asked: Asked) -> list[tuple[list[float], Answers]]:
    """Seconds and answers of each, asked in turns."""
    done: list[tuple[list[float], Answers]] = [([], []) for _ in askers]
    for vector in asked.queries:
        for asker, (spent_s, found) in zip(askers, done, strict=True):
            started = time.perf_counter()
            found.append(asker(vector))
            spent_s.append(time.perf_counter() - started)
    return done


def _quantiles(spent_s: Sequence[float]) -> tuple[float, float]:
    return statistics.median(spent_s), statistics.quantiles(spent_s, n=20, method="inclusive")[-1]


def _spread(spent_s: Sequence[float]) -> str:
    p50_s, p95_s = _quantiles(spent_s)
    return f"p50 {measure.milliseconds(p50_s)}, p95 {measure.milliseconds(p95_s)}"


def _recall(found: Answers, asked: Asked) -> float:
    shared = (len(truth.intersection(ids)) for ids, truth in zip(found, asked.truth, strict=True))
    return sum(shared) / sum(map(len, asked.truth))


def _compare(report: Report, front: servers.Server) -> None:
    """Digests of all vectors, as a verification asks for."""
    with _opened(front) as backend, front.connect() as connection:
        held: list[int] = []
        spent_s = _timed(lambda: held.append(len(backend.digests())))
        report.add(f"digests of {held[0]:,} vectors", f"{spent_s:.1f} s")
        spent_s = _timed(lambda: connection.execute(DIGESTS).fetchall())
        report.add("the same computed in front: each vector goes there", f"{spent_s:.1f} s")


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _send_ten(report: Report, front: servers.Server, clusters: Clusters) -> None:
    """Ten rows again, as after an edit of what stands beside them."""
    vectors, texts = clusters.block(0, BLOCK), ["another text"]
    with _opened(front) as backend:
        some = [item(number, vectors[number], texts) for number in range(COUNT)]

        def send() -> None:
            backend.upsert(some, skip_existing=False)
            backend.save(owner=OWNER, generation=2)

        report.add("ten rows sent again", measure.milliseconds(_timed(send)))


def _lose(report: Report, front: servers.Server, lost: servers.Server, asked: Asked) -> None:
    """Kill a server; what answers say then, and after it is there again."""
    with _opened(front) as strict, _opened(front, partial=True, timeout_s=PATIENCE_S) as backend:
        strict.expect(OWNER, 2)
        backend.expect(OWNER, 2)
        asker = _asker_of(backend)
        ((_, whole),) = _in_turns((asker,), asked)
        lost.kill()
        print(f"{lost.name} is killed", flush=True)
        report.add("query without it", _failure(lambda: strict.query(asked.queries[0], top_k=10)))
        report.add("ten rows deleted without it", _failure(lambda: strict.delete(whole[0])))
        ((spent_s, found),) = _in_turns((asker,), asked)
        report.add("query with `partial`: note", backend.lacking or "**none**")
        report.add("query with `partial`", _spread(spent_s))
        report.add(f"recall@{COUNT} of partial answers", f"{_recall(found, asked):.4f}")
        report.add("started again until it answers", f"{_timed(lost.start):.1f} s")
        ((_, again),) = _in_turns((asker,), asked)
        report.add("note after that", backend.lacking or "none")
        same, total = sum(map(operator.eq, again, whole)), len(whole)
        report.add("answers as before", f"{same}", goal=f"{total}", met=same == total)
        with lost.frozen():
            spent_s = [_timed(lambda: asker(asked.queries[0]))]
            report.add("while it is there and answers nothing: note", backend.lacking or "**none**")
            report.add("and how long it was waited for", f"{spent_s[0]:.1f} s")


def _failure(action: Callable[[], object]) -> str:
    """What an action says that has to fail, and how soon."""
    from filestore.index import BackendError

    started = time.perf_counter()
    try:
        action()
    except BackendError as error:
        spent = measure.milliseconds(time.perf_counter() - started)
        return f"fails after {spent}: {error.message}"
    return "**done as if nothing were missing**"


if __name__ == "__main__":
    main()

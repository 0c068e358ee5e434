"""The index of a large store beside raw FAISS of the same type and parameters, without files.

Vectors are synthetic and clustered. Ours is what a store does: built out of the embeddings in
SQLite, tuned, written with its hash; opened by hash; hits scored again with stored embeddings. Raw
FAISS is trained with as many vectors, filled from memory, written; asked with as many probes, its
scores left as they are. ``--vectors`` says how many, ``--work`` keeps the embeddings.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import measure

COUNT = 10
ALLOWED_S = 0.005
RECALL = 0.98


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vectors", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--queries", type=int, default=300, help="default: %(default)s")
    parser.add_argument(
        "--work", metavar="DIR", help="keep the embeddings here, and use them again"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = os.path.abspath(os.path.join(given.work or temporary, f"vectors-{given.vectors}"))
        if not os.path.isdir(root):
            _child("fill", root, given.vectors)
        ours, theirs = _child("build", root, given.vectors), _child("raw", root, given.vectors)
        found = json.loads(_child("ask", root, given.vectors, given.queries).output)
    built, raw = json.loads(ours.output), json.loads(theirs.output)
    title = (
        f"Index of {given.vectors:,} vectors: {built['kind']}, {built['lists']} lists,"
        f" {built['probes']} probes; recall said {built['recall']}; {given.queries} queries"
    )
    print(measure.table(title, _rows(ours, built, theirs, raw, found)))


def _child(*words: object) -> measure.Run:
    return measure.run([sys.executable, __file__, "child", *map(str, words)])


def _rows(
    ours: measure.Run,
    built: dict[str, Any],
    theirs: measure.Run,
    raw: dict[str, Any],
    found: dict[str, Any],
) -> list[measure.Row]:
    mine, other = found["ours"], found["raw"]
    return [
        _row("build", f"{built['build_s']:.0f} s", f"{raw['build_s']:.0f} s"),
        _row("peak memory", *(f"{run.peak_bytes / measure.MIB:,.0f} MB" for run in (ours, theirs))),
        _row("file", *(f"{one['file_bytes'] / 1e6:,.0f} MB" for one in (built, raw))),
        _row("open, first search", f"{mine['open_s']:.2f} s", f"{other['open_s']:.2f} s"),
        measure.over("query p50", mine["p50_s"], "raw", other["p50_s"], ALLOWED_S),
        measure.over("query p95", mine["p95_s"], "raw", other["p95_s"], ALLOWED_S),
        measure.Row(
            figure=f"recall@{COUNT}",
            ours=f"{mine['recall']:.4f}",
            yardstick=f"{other['recall']:.4f}",
            goal=f"≥ {RECALL}",
            met=mine["recall"] >= RECALL,
        ),
    ]


def _row(figure: str, ours: str, yardstick: str) -> measure.Row:
    return measure.Row(figure=figure, ours=ours, yardstick=yardstick)


def fill(root: str, vectors: str) -> None:
    """Put synthetic embeddings into a sidecar, and their ids into its catalog."""
    from synthetic import BLOCK, Clusters, SyntheticEmbedder

    from filestore.core.hashing import embedding_key, vector_id

    total = int(vectors)
    clusters, fingerprint = Clusters(total), SyntheticEmbedder(total).fingerprint
    os.makedirs(os.path.join(root, ".sidecar"))
    catalog, embeddings = _parts(root, create=True)
    with closing(catalog), closing(embeddings):
        catalog.begin()
        for start in range(0, total, BLOCK):
            count = min(BLOCK, total - start)
            keys = [embedding_key(str(number)) for number in range(start, start + count)]
            embeddings.put(fingerprint, keys, clusters.block(start, count))
            catalog.connection.executemany(
                "INSERT INTO vectors VALUES (?, ?, 1)", [(vector_id(key), key) for key in keys]
            )
        catalog.commit()


def _parts(root: str, *, create: bool = False) -> tuple[Any, Any]:
    from filestore.catalog import CatalogWriter
    from filestore.embed.cache import EmbeddingCache

    places = _places(root)
    catalog = CatalogWriter.open(places.catalog, create=create)
    return catalog, EmbeddingCache.open(places.embeddings)


def _places(root: str) -> Any:
    from filestore.config.layout import Places

    return Places(root=root, sidecar=os.path.join(root, ".sidecar"), configuration=root)


def build(root: str, vectors: str) -> None:
    """Write the FAISS file, trained anew, and print what it is."""
    from synthetic import SyntheticEmbedder

    from filestore.sidecar import vector_file
    from filestore.sidecar.vector_home import StoredVectors

    for path in Path(root, ".sidecar").glob("vectors-*.faiss"):
        path.unlink()
    catalog, embeddings = _parts(root)
    with closing(catalog), closing(embeddings):
        catalog.begin()
        started = time.perf_counter()
        home = vector_file.OwnFile(_places(root))
        stored = StoredVectors(catalog, embeddings, SyntheticEmbedder(int(vectors)))
        home.write(catalog, stored, wanted=True)
        build_s = time.perf_counter() - started
        catalog.commit()
        described = json.loads(vector_file.describe(catalog).serialize())
        file_bytes = catalog.index_file().size_bytes
    print(json.dumps(described | {"build_s": build_s, "file_bytes": file_bytes}))


def raw(root: str, vectors: str) -> None:
    """Train, fill and write raw FAISS; generating the vectors is not timed."""
    import faiss
    import numpy as np

    built, total = _faiss_of(root), int(vectors)
    sample_size = _sample_size(total)
    sample = np.empty((sample_size, built.d), dtype=np.float32)
    for start, block in _blocks(sample_size):
        sample[start : start + len(block)] = block
    index: Any = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(built.d),
        built.d,
        built.nlist,
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
        False,
    )
    index.cp.niter, index.cp.spherical, index.cp.min_points_per_centroid = 8, True, 1
    build_s = _timed(lambda: index.train(sample))
    for start, block in _blocks(total):
        ids = np.arange(start, start + len(block))
        build_s += _timed(lambda index=index, block=block, ids=ids: index.add_with_ids(block, ids))
    path = os.path.join(root, "raw.faiss")
    build_s += _timed(lambda: faiss.write_index(index, path))
    print(json.dumps({"build_s": build_s, "file_bytes": os.path.getsize(path)}))


def _sample_size(total: int) -> int:
    from filestore.index.building import sample_size

    return sample_size(total)


def _faiss_of(root: str) -> Any:
    import faiss

    (path,) = Path(root, ".sidecar").glob("vectors-*.faiss")
    return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)


def _blocks(total: int) -> Iterator[tuple[int, Any]]:
    from synthetic import BLOCK, Clusters

    clusters = Clusters(total)
    for start in range(0, total, BLOCK):
        # A block is always made whole: its numbers depend on how many are drawn.
        yield start, clusters.block(start, min(BLOCK, total - start))


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def ask(root: str, vectors: str, queries: str) -> None:
    """Ask both in turns, and print latencies and recall."""
    import faiss
    from synthetic import Clusters, SyntheticEmbedder

    from filestore.sidecar import vector_file
    from filestore.sidecar.vector_home import StoredVectors

    total = int(vectors)
    asked = Clusters(total).queries(int(queries))
    truth = _truth(asked, total)
    probes = int(_faiss_of(root).nprobe)
    catalog, embeddings = _parts(root)
    with closing(catalog), closing(embeddings):
        started = time.perf_counter()
        embedder = SyntheticEmbedder(total)
        index = vector_file.loaded(_places(root), StoredVectors(catalog, embeddings, embedder))
        index.search(asked[0], COUNT)
        ours = {"open_s": time.perf_counter() - started}
        started = time.perf_counter()
        plain: Any = faiss.read_index(os.path.join(root, "raw.faiss"))
        plain.nprobe = probes
        plain.search(asked[:1], COUNT)
        theirs = {"open_s": time.perf_counter() - started}
        times: list[tuple[float, float]] = []
        hits: list[tuple[set[int], set[int]]] = []
        for query in [*asked, *asked]:
            started = time.perf_counter()
            mine = index.search(query, COUNT)
            between = time.perf_counter()
            _, other = plain.search(query.reshape(1, -1), COUNT)
            times.append((between - started, time.perf_counter() - between))
            hits.append(({found for found, _ in mine}, set(other[0].tolist())))
    # The first round brings the pages of the embeddings in.
    rounds = slice(len(asked), None)
    for at, report in enumerate((ours, theirs)):
        spent = [pair[at] for pair in times[rounds]]
        report["p50_s"] = statistics.median(spent)
        report["p95_s"] = statistics.quantiles(spent, n=20)[-1]
        found = [len(pair[at] & best[at]) for pair, best in zip(hits[rounds], truth, strict=True)]
        report["recall"] = sum(found) / (COUNT * len(asked))
    print(json.dumps({"ours": ours, "raw": theirs}))


def _truth(queries: Any, total: int) -> list[tuple[set[int], set[int]]]:
    """Of each query the vector ids of its nearest, and their numbers."""
    from filestore.core.hashing import embedding_key, vector_id
    from filestore.index.building import Judge

    judge = Judge(queries)
    for start, block in _blocks(total):
        judge.take(_numbers(start, len(block)), block)
    best = [set(row) for row in judge.nearest().tolist()]
    return [({vector_id(embedding_key(str(one))) for one in row}, row) for row in best]


def _numbers(start: int, count: int) -> Any:
    import numpy as np

    return np.arange(start, start + count, dtype=np.int64)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        {"fill": fill, "build": build, "raw": raw, "ask": ask}[sys.argv[2]](*sys.argv[3:])
    else:
        main()

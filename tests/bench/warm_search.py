"""Search in an open process, beside the bare FAISS and tantivy calls on the same index files.

Each mode by itself, every query of it in turns with the raw calls. Ours includes parsing and
embedding the query, asking the catalog and reading every hit from disk. Raw FAISS is the exact
``index.search`` of all the store's vectors, by one thread, of a query that is embedded already; raw
tantivy parses the same words into a query over the stemmed field and searches. All give the same
number of hits. What is compared is the median of the differences, query by query; beside it the
processor time, as other programs wait for the processor, too. ``--runs`` is the number of queries.
"""

import os
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, ParamSpec

import measure
from stores import TextMaker

from filestore.fulltext import read_stamp
from filestore.search.query import Mode
from filestore.store import Store

WORDS = 4
COUNT = 10
ALLOWED_S = 0.003
QUERIES_SEED = 2

Spent = tuple[float, float]
"""Seconds by the clock, and of the processor."""
RawSearch = Callable[[str], Spent]
"""Searches, and gives what the bare call took."""

RAW: dict[Mode, tuple[str, ...]] = {
    "vector": ("faiss",),
    "keyword": ("tantivy",),
    "hybrid": ("faiss", "tantivy"),
}

Arguments = ParamSpec("Arguments")


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=200) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        maker = TextMaker(QUERIES_SEED)
        queries = [" ".join(maker.word() for _ in range(WORDS)) for _ in range(options.runs)]
        # The user's configuration that the index was written under: another's is not trusted.
        configuration = os.environ["XDG_CONFIG_HOME"]
        with closing(Store(root, configuration=configuration)) as store:
            raw = {"faiss": open_faiss(root, store), "tantivy": open_tantivy(root)}
            rows = [
                row
                for mode, names in RAW.items()
                for row in _rows(mode, *_ask(store, mode, [raw[name] for name in names], queries))
            ]
            index = store.status().index
    kind = f"{index.kind} index" if index else "no index"
    load = f"load {os.getloadavg()[0]:.1f}"
    title = f"Warm search of {options.files:,} chunks, {kind}, {options.runs} queries, {load}"
    print(measure.table(title, rows))


def _ask(
    store: Store, mode: Mode, raw: list[RawSearch], queries: list[str]
) -> tuple[list[Spent], list[Spent]]:
    """What every query took, ours and raw; modes take no turns: one empties another's cache."""
    ours: list[Spent] = []
    theirs: list[Spent] = []
    for query in [queries[0], *queries]:
        ours.append(_timed(_search, store, query, mode))
        wall, processor = zip(*(search(query) for search in raw), strict=True)
        theirs.append((sum(wall), sum(processor)))
    # The first query opens and loads.
    return ours[1:], theirs[1:]


def _search(store: Store, query: str, mode: Mode) -> None:
    store.search(query, k=COUNT, mode=mode)


def _timed(
    action: Callable[Arguments, object], *words: Arguments.args, **named: Arguments.kwargs
) -> Spent:
    started, spent = time.perf_counter(), time.process_time()
    action(*words, **named)
    return time.perf_counter() - started, time.process_time() - spent


def open_faiss(root: str, store: Store) -> RawSearch:
    """The exact search of the store's own vectors; embedding the query is not timed."""
    import faiss
    import numpy

    from filestore.embed.cache import EmbeddingCache

    embedder = store.embedder
    assert embedder is not None
    # As ours does: on a busy machine more of them mostly wait for each other.
    faiss.omp_set_num_threads(1)
    index: Any = faiss.IndexFlatIP(embedder.dimension)
    path = os.path.join(root, ".sidecar", "embeddings.sqlite")
    with closing(EmbeddingCache.open(path, read_only=True)) as embeddings:
        for _, vectors in embeddings.walk(embedder.fingerprint, 4096):
            rows = numpy.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
            index.add(numpy.ascontiguousarray(rows))
    return lambda query: _timed(index.search, embedder.embed_query(query).reshape(1, -1), COUNT)


def open_tantivy(root: str) -> RawSearch:
    """The search of the store's own tantivy files, over the stemmed words."""
    import tantivy

    # The tokenizers are part of an index that its files do not hold.
    from filestore.fulltext._analysis import DEFAULT_LANGUAGE, build_stem_analyzer

    folder = os.path.join(root, ".sidecar", "fulltext")
    stamp = read_stamp(folder)
    assert stamp is not None
    index = tantivy.Index.open(os.path.join(folder, stamp.part()))
    index.register_tokenizer(DEFAULT_LANGUAGE, build_stem_analyzer(DEFAULT_LANGUAGE))
    searcher = index.searcher()

    def search(query: str) -> None:
        searcher.search(index.parse_query(query, ["stem"]), COUNT, count=False)

    return lambda query: _timed(search, query)


def _rows(mode: Mode, ours: list[Spent], theirs: list[Spent]) -> list[measure.Row]:
    rows = []
    for at, clock in enumerate(("", ", processor")):
        mine, raw = [one[at] for one in ours], [one[at] for one in theirs]
        p95 = measure.milliseconds(statistics.quantiles(mine, n=20)[-1])
        base = statistics.median(raw)
        over_s = statistics.median(a - b for a, b in zip(mine, raw, strict=True))
        name = f"{mode}{clock} (p95 {p95}, × {statistics.median(mine) / base:.2f})"
        yardstick = "raw " + " + ".join(RAW[mode])
        rows.append(measure.over(name, base + over_s, yardstick, base, ALLOWED_S))
    return rows


if __name__ == "__main__":
    main()

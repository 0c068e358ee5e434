"""Search in an open process, beside the bare FAISS and tantivy calls on the same index files.

Each mode by itself, every query of it in turns with the raw calls. Ours includes parsing and
embedding the query, asking the catalog and reading every hit from disk. Raw FAISS is
``index.search`` alone, of a vector that is embedded already; raw tantivy parses the same words into
a query over the stemmed field and searches. All give the same number of hits. ``--runs`` is the
number of queries.
"""

import os
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, ParamSpec

import measure
from stores import TextMaker

from filestore.fulltext import read_stamp
from filestore.search import Filters, Mode
from filestore.store import Store

WORDS = 4
COUNT = 10
ALLOWED_S = 0.002
QUERIES_SEED = 2
NO_FILTERS = Filters()

RawSearch = Callable[[str], float]
"""Searches, and gives the seconds of the bare call."""

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
        with closing(Store(root, configuration=root)) as store:
            raw = {"faiss": open_faiss(root, store), "tantivy": open_tantivy(root)}
            rows = [
                _row(mode, *_ask(store, mode, [raw[name] for name in names], queries))
                for mode, names in RAW.items()
            ]
    title = f"Warm search of {options.files:,} chunks, {options.runs} queries, {COUNT} hits, p50"
    print(measure.table(title, rows))


def _ask(
    store: Store, mode: Mode, raw: list[RawSearch], queries: list[str]
) -> tuple[list[float], list[float]]:
    """Seconds of every query, ours and raw; modes take no turns: one empties another's cache."""
    ours: list[float] = []
    theirs: list[float] = []
    for query in [queries[0], *queries]:
        ours.append(_timed(_search, store, query, mode))
        theirs.append(sum(search(query) for search in raw))
    # The first query opens and loads.
    return ours[1:], theirs[1:]


def _search(store: Store, query: str, mode: Mode) -> None:
    store.search(query, count=COUNT, mode=mode, filters=NO_FILTERS)


def _timed(
    action: Callable[Arguments, object], *words: Arguments.args, **named: Arguments.kwargs
) -> float:
    started = time.perf_counter()
    action(*words, **named)
    return time.perf_counter() - started


def open_faiss(root: str, store: Store) -> RawSearch:
    """The search of the store's own FAISS file; embedding the query is not timed."""
    import faiss

    embedder = store.embedder
    assert embedder is not None
    path = max(Path(root, ".sidecar").glob("vectors-*.faiss"), key=os.path.getmtime)
    index: Any = faiss.read_index(str(path))
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


def _row(mode: Mode, ours: list[float], theirs: list[float]) -> measure.Row:
    p95 = measure.milliseconds(statistics.quantiles(ours, n=20)[-1])
    return measure.over(
        f"{mode} (p95 {p95})",
        statistics.median(ours),
        "raw " + " + ".join(RAW[mode]),
        statistics.median(theirs),
        ALLOWED_S,
    )


if __name__ == "__main__":
    main()

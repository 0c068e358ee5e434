"""One search of a large store by a process that has just started, and where its time goes.

The chunk files are written and indexed as any others; only the vectors are synthetic, computed
from the bytes of a text, so that no model is measured. A search is a process of its own that opens
the store, answers and ends; the yardstick is a process that loads the same libraries and does
nothing. ``--files`` says how many chunks, ``--work`` keeps the store.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import measure

MODES = ("vector", "keyword", "hybrid")
QUERY = "the time of a new man"
ALLOWED_S = 1.5
WORDS = 40
SUBJECTS_PER_FOLDER = 5


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=1_000_000, folders=1_000, runs=5) as options:
        root = os.path.abspath(os.path.join(options.work, f"large-{options.files}"))
        if not os.path.isdir(root):
            child("make", root, options.files, options.folders)
        synced = child("sync", root, options.files)
        rows = [_sync_row(synced)]
        for mode in MODES:
            # One to bring the files into memory, as a second search of the day finds them.
            child("search", root, options.files, mode)
            ours, bare = measure.alternate(
                options.runs,
                lambda mode=mode: child("search", root, options.files, mode),
                lambda mode=mode: child("load", mode),
            )
            rows += _mode_rows(mode, ours, bare)
    print(measure.table(f"A store of {options.files:,} chunks", rows))


def child(*words: object) -> measure.Run:
    return measure.run([sys.executable, __file__, "child", *map(str, words)])


def _sync_row(synced: measure.Run) -> measure.Row:
    report = json.loads(synced.output)
    return measure.Row(
        figure=f"`sync` of {report['embedded']:,} new texts: {report['index']}",
        ours=f"{synced.wall_s:,.0f} s, {synced.peak_bytes / measure.MIB:,.0f} MB",
    )


def _mode_rows(mode: str, ours: list[measure.Run], bare: list[measure.Run]) -> list[measure.Row]:
    wall_s = measure.median_s(ours)
    rows = [
        measure.Row(
            figure=f"{mode}, whole process",
            ours=measure.milliseconds(wall_s),
            yardstick=f"libraries {measure.milliseconds(measure.median_s(bare))}",
            goal=f"≤ {measure.milliseconds(ALLOWED_S)}",
            met=wall_s <= ALLOWED_S,
        )
    ]
    parts = [json.loads(run.output) for run in ours]
    for name in parts[0]:
        spent = statistics.median(part[name] for part in parts)
        if spent:
            rows.append(measure.Row(figure=f"· {name}", ours=measure.milliseconds(spent)))
    return rows


def make(root: str, files: str, folders: str) -> None:
    """Write the chunk files: short texts, some subjects in each folder."""
    from stores import TextMaker

    from filestore.chunks import chunk_file
    from filestore.config.settings import Settings
    from filestore.config.written import serialize

    maker = TextMaker(seed=3)
    for folder in range(int(folders)):
        path = os.path.join(root, "chunked", f"resource-{folder:04d}")
        os.makedirs(path)
        subjects = [f"{maker.word()} {maker.word()}" for _ in range(SUBJECTS_PER_FOLDER)]
        for number in range(1, int(files) // int(folders) + 1):
            subject = subjects[number % SUBJECTS_PER_FOLDER]
            data = chunk_file.generate(body=f"{maker.text(WORDS)}{number}\n", headings=(subject,))
            with open(os.path.join(path, chunk_file.chunk_name(number)), "wb") as file:
                file.write(data)
    with open(os.path.join(root, "filestore.toml"), "wb") as file:
        file.write(serialize(Settings()))


def _open(root: str, files: str) -> Any:
    from synthetic import SyntheticEmbedder

    from filestore.store import Store

    store = Store(root, configuration=root)
    store.__dict__["embedder"] = SyntheticEmbedder(int(files))
    return store


def sync(root: str, files: str) -> None:
    """Index what is new, and print what was made of it."""
    from filestore.catalog import Catalog
    from filestore.sidecar import vector_file

    with closing(_open(root, files)) as store:
        report = store.sync()
        catalog = Catalog.open(store.places.catalog)
        described = vector_file.describe(catalog)
        catalog.close()
    words = f"{described.kind}, {described.lists} lists, {described.probes} probes"
    print(json.dumps({"embedded": report.embedded, "index": words}))


def search(root: str, files: str, mode: str) -> None:
    """Answer one question, and print the seconds of the parts."""
    started = time.perf_counter()
    parts: dict[str, float] = {}
    load(mode)
    parts["loading libraries"] = time.perf_counter() - started
    from filestore.fs import disk
    from filestore.fulltext import Reader
    from filestore.index import faiss_index

    _clock(parts, "hashing the FAISS file", disk, "file_hash")
    _clock(parts, "opening the FAISS file", faiss_index, "read")
    _clock(parts, "asking the vectors", _approximate(), "search")
    _clock(parts, "opening the full-text index", Reader, "open")
    _clock(parts, "asking the full-text index", Reader, "search")
    with closing(_open(root, files)) as store:
        # Made before: a real model has its own figures.
        store.embedder.embed_query(QUERY)
        opened = time.perf_counter()
        answer = store.search(QUERY, mode=mode, without=["cut"])
        parts["the search as a whole"] = time.perf_counter() - opened
    assert answer.hits
    print(json.dumps(parts))


def _approximate() -> Any:
    from filestore.index.building import ApproximateIndex

    return ApproximateIndex


def _clock(parts: dict[str, float], name: str, owner: Any, attribute: str) -> None:
    """Let a function add the seconds it takes to the parts."""
    plain: Callable[..., Any] = getattr(owner, attribute)

    def timed(*words: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return plain(*words, **named)
        finally:
            parts[name] = parts.get(name, 0) + time.perf_counter() - started

    parts[name] = 0.0
    setattr(owner, attribute, timed)


def load(mode: str) -> None:
    """Load what a search of this mode needs."""
    import filestore.search.search
    import filestore.store  # noqa: F401

    if mode != "keyword":
        import faiss  # noqa: F401
        import synthetic  # noqa: F401
    if mode != "vector":
        import tantivy  # noqa: F401


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        actions = {"make": make, "sync": sync, "search": search, "load": load}
        actions[sys.argv[2]](*sys.argv[3:])
    else:
        main()

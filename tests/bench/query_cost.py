"""What a warm query costs beside bare tantivy and FAISS on the same index: sizes, layouts, modes.

Sizes are a hundredth, a tenth and all of ``--files`` chunks, once as chunk files and once as
sections of documents in place; texts are made, with sentences, lists, links and tables. Each query
runs in turns with the raw calls: tantivy searches the same words in the stemmed field, FAISS all
the store's vectors, exactly and by one thread. All give the same number of hits. What the model
takes to embed the query counts for neither and is told beside it; so is what the passages of all
hits take, which are made when they are read. Compared are medians of processor time, since other
programs want the processor, too; the clock is told beside it.
``--runs`` is the number of queries; ``--profile`` prints where the time of each mode goes.
"""

import cProfile
import itertools
import os
import pstats
import random
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import measure
from stores import TextMaker

from filestore.fulltext import read_stamp
from filestore.search import Mode
from filestore.search.answer import Answer
from filestore.store import Store

COUNT: Final = 10
WORDS: Final = (1, 2, 3, 5, 8)
"""Of a query, in turns."""
UNKNOWN: Final = 20
"""Of so many queries one has a word that no text has."""
QUERIES_SEED: Final = 2
SECTIONS: Final = 10
"""Of a document."""
LEAST: Final = 1_000
"""A smaller size is measured only where it is asked for."""
LAYOUTS: Final = ("chunks", "in place")
PROFILED: Final = 25
"""Functions of a profile."""

Spent = tuple[float, float]
"""Seconds of the processor, and by the clock."""
RawSearch = Callable[[str], Spent]
"""Searches, and gives what the bare call took."""

RAW: Final[dict[Mode, tuple[str, ...]]] = {
    "keyword": ("tantivy",),
    "vector": ("faiss",),
    "hybrid": ("tantivy", "faiss"),
}
ALLOWED_S: Final[dict[Mode, float]] = {"keyword": 0.002, "vector": 0.002, "hybrid": 0.003}


def main() -> None:
    """Measure and print a table for each store."""
    flags = ("profile",)
    given = measure.options(__doc__ or "", files=100_000, folders=1_000, runs=100, flags=flags)
    with given as options:
        sizes = [size for size in (options.files // 100, options.files // 10) if size >= LEAST]
        for size in (*sizes, options.files):
            for layout in LAYOUTS:
                root = _indexed(options.work, size, layout)
                _measure(root, f"{size:,} chunks, {layout}", options)


def _measure(root: str, what: str, options: measure.Options) -> None:
    queries = _queries(root, options.runs)
    # The user's configuration that the index was written under: another's is not trusted.
    configuration = os.environ["XDG_CONFIG_HOME"]
    with closing(Store(root, configuration=configuration)) as store, _model_time(store) as embedded:
        raw = {"faiss": open_faiss(root, store), "tantivy": open_tantivy(root)}
        rows = [
            row for mode in RAW for row in _rows(mode, *_ask(store, mode, raw, queries, embedded))
        ]
        load = f"load {os.getloadavg()[0]:.1f}"
        print(
            measure.table(f"Warm query: {what}, {options.runs} queries, {load}", rows), flush=True
        )
        if options.flags:
            for mode in RAW:
                _profile(store, mode, queries)


def _queries(root: str, count: int) -> list[str]:
    """Words that stand together somewhere, as people ask for what is there; seldom another one."""
    chosen = random.Random(QUERIES_SEED)
    paths = sorted(str(path) for path in Path(root).glob("[!.]*/**/*.md"))
    found = []
    for number in range(count):
        said = re.findall(r"[a-z]{2,}", Path(chosen.choice(paths)).read_text("utf-8"))
        first = chosen.randrange(len(said) - max(WORDS))
        words = said[first : first + WORDS[number % len(WORDS)]]
        found.append(" ".join([*words, "zyxomma"] if number % UNKNOWN == 0 else words))
    return found


def _indexed(work: str, size: int, layout: str) -> str:
    """The root of a store of so many texts that is in step with its files."""
    root = os.path.abspath(os.path.join(work, f"{layout.replace(' ', '-')}-{size}"))
    if not os.path.isdir(root):
        documents = os.path.join(work, f"documents-{size}")
        if not os.path.isdir(documents):
            _write_documents(documents, size)
        if layout == "in place":
            shutil.copytree(documents, root)
            init = measure.filestore("init", "--in-place", "--embedder", "builtin")
            measure.run(init, folder=root)
        else:
            measure.run(measure.filestore("init", root, "--embedder", "builtin"))
            measure.run(measure.filestore("add", "--no-copy", documents), folder=root)
    measure.run(measure.filestore("sync"), folder=root)
    return root


def _sections(maker: TextMaker, count: int) -> Iterator[str]:
    """Sections of notes: prose, a list, a table, links, as people write them."""
    for number in range(count):
        parts = [f"## {maker.word().title()} {maker.word()}", _prose(maker, 60)]
        if number % 3 == 0:
            parts.append("\n".join(f"- {_sentence(maker, 9)}" for _ in range(4)))
        if number % 7 == 0:
            rows = [f"| {maker.word()} | {maker.word()} {maker.word()} |" for _ in range(4)]
            parts.append("\n".join([rows[0], "|---|---|", *rows[1:]]))
        parts.append(_prose(maker, 30))
        yield "\n\n".join(parts) + "\n"


def _prose(maker: TextMaker, words: int) -> str:
    return " ".join(_sentence(maker, 12) for _ in range(words // 12))


def _sentence(maker: TextMaker, words: int) -> str:
    said = [maker.word() for _ in range(words)]
    said[words // 2] = f"[{said[words // 2]}]({maker.word()}.md)"
    return f"{' '.join(said).capitalize()}."


def _write_documents(root: str, size: int) -> None:
    texts = _sections(TextMaker(size), size)
    for number in range(max(1, size // SECTIONS)):
        path = Path(root, f"area-{number // 100:03d}", f"note-{number:05d}.md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(itertools.islice(texts, SECTIONS)), "utf-8")


@contextmanager
def _model_time(store: Store) -> Iterator[list[Spent]]:
    """What embedding queries takes, while it is asked: it is the model's time, not ours."""
    kind: Any = type(store.embedder)
    whole, spent = kind.embed_query, []

    def timed(self: Any, text: str) -> Any:
        found: list[Any] = []
        spent.append(_timed(lambda: found.append(whole(self, text))))
        return found[0]

    kind.embed_query = timed
    try:
        yield spent
    finally:
        kind.embed_query = whole


def _ask(
    store: Store, mode: Mode, raw: dict[str, RawSearch], queries: list[str], embedded: list[Spent]
) -> tuple[list[Spent], list[Spent], list[Spent], list[Spent]]:
    """What every query took, ours and raw, the model and passages; the first opens and loads."""
    ours: list[Spent] = []
    theirs: list[Spent] = []
    models: list[Spent] = []
    passages: list[Spent] = []
    answers: list[Answer] = []
    for query in [queries[0], *queries]:
        embedded.clear()
        total = _timed(lambda q=query: answers.append(store.search(q, k=COUNT, mode=mode)))
        passages.append(_timed(answers.pop().made))
        model = _sum(embedded)
        ours.append((total[0] - model[0], total[1] - model[1]))
        models.append(model)
        theirs.append(_sum([raw[name](query) for name in RAW[mode]]))
    return ours[1:], theirs[1:], models[1:], passages[1:]


def _sum(spent: list[Spent]) -> Spent:
    return sum(one[0] for one in spent), sum(one[1] for one in spent)


def _timed(action: Callable[[], object]) -> Spent:
    started, spent = time.perf_counter(), time.process_time()
    action()
    return time.process_time() - spent, time.perf_counter() - started


def open_faiss(root: str, store: Store) -> RawSearch:
    """The exact search of the store's own vectors."""
    import faiss
    import numpy

    from filestore.embed.cache import EmbeddingCache

    embedder = store.embedder
    assert embedder is not None
    # As ours does: on a busy machine more of them mostly wait for each other.
    faiss.omp_set_num_threads(1)
    index: Any = faiss.IndexFlatIP(embedder.dimension)
    path = os.path.join(_sidecar(root), "embeddings.sqlite")
    with closing(EmbeddingCache.open(path, read_only=True)) as embeddings:
        for _, vectors in embeddings.walk(embedder.fingerprint, 4096):
            rows = numpy.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
            index.add(numpy.ascontiguousarray(rows))

    def search(query: str) -> Spent:
        vector = embedder.embed_query(query).reshape(1, -1)
        return _timed(lambda: index.search(vector, COUNT))

    return search


def open_tantivy(root: str) -> RawSearch:
    """The search of the store's own tantivy files, over the stemmed words."""
    import tantivy

    # The tokenizers are part of an index that its files do not hold.
    from filestore.fulltext._analysis import DEFAULT_LANGUAGE, build_stem_analyzer

    folder = os.path.join(_sidecar(root), "fulltext")
    stamp = read_stamp(folder)
    assert stamp is not None
    index = tantivy.Index.open(os.path.join(folder, stamp.part()))
    index.register_tokenizer(DEFAULT_LANGUAGE, build_stem_analyzer(DEFAULT_LANGUAGE))
    searcher = index.searcher()

    def search(query: str) -> None:
        searcher.search(index.parse_query(query, ["stem"]), COUNT, count=False)

    return lambda query: _timed(lambda: search(query))


def _sidecar(root: str) -> str:
    return next(str(path.parent) for path in Path(root).glob(".*/**/embeddings.sqlite"))


def _rows(mode: Mode, *spent: list[Spent]) -> Iterator[measure.Row]:
    for at, clock in enumerate(("processor", "clock")):
        mine, raw, model, passages = ([one[at] for one in some] for some in spent)
        base = statistics.median(raw)
        over_s = statistics.median(a - b for a, b in zip(mine, raw, strict=True))
        name = f"{mode}, {clock} (× {statistics.median(mine) / base:.1f}"
        name += f", p95 {measure.milliseconds(statistics.quantiles(mine, n=20)[-1])}"
        name += f", model {measure.milliseconds(statistics.median(model))}" if any(model) else ""
        name += f", passages {measure.milliseconds(statistics.median(passages))})"
        row = measure.over(name, base + over_s, " + ".join(RAW[mode]), base, ALLOWED_S[mode])
        yield row


def _profile(store: Store, mode: Mode, queries: list[str]) -> None:
    """Where the time goes; functions of C are charged to those that call them."""
    profile = cProfile.Profile(time.process_time, builtins=True)
    profile.enable()
    for query in queries:
        store.search(query, k=COUNT, mode=mode)
    profile.disable()
    print(f"{mode}: {len(queries)} queries")
    pstats.Stats(profile).sort_stats("tottime").print_stats(PROFILED)
    pstats.Stats(profile).sort_stats("cumtime").print_stats(2 * PROFILED)


if __name__ == "__main__":
    main()

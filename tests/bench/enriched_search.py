"""Search of a store with questions and summaries, beside the same chunks without.

Every chunk gets a question, as many as `enrich` makes unasked; ten chunks that follow each other
are one summary, and so are the summaries of a resource. Both stores are open, and asked in turns in
each mode; what is compared is the median, and beside it the processor time, as other programs wait
for the processor, too. The command itself is started for a tenth of the queries. ``--runs`` is the
number of queries.
"""

import os
import shutil
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import measure
from stores import TextMaker

from filestore.chunks import chunk_file
from filestore.core.hashing import embedding_key
from filestore.core.paths import ChunkPath
from filestore.search import MODES, Mode
from filestore.store import Store

COUNT = 10
WORDS = 4
GROUP = 10
LIMIT = 1.2
SEED = 3
Spent = tuple[float, float]
"""Seconds by the clock, and of the processor."""


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=20_000, folders=200, runs=200) as options:
        plain = measure.indexed_store(options.work, options.files, options.folders)
        enriched = enriched_store(plain)
        maker = TextMaker(SEED)
        queries = [" ".join(maker.word() for _ in range(WORDS)) for _ in range(options.runs)]
        configuration = os.environ["XDG_CONFIG_HOME"]
        with (
            closing(Store(enriched, configuration=configuration)) as ours,
            closing(Store(plain, configuration=configuration)) as theirs,
        ):
            rows = [row for mode in MODES for row in _rows(mode, ours, theirs, queries)]
        rows += _commands(enriched, plain, queries[: options.runs // 10 or 1])
    title = f"Search with questions and summaries, {options.files:,} chunks, {len(queries)} queries"
    print(measure.table(title, rows))


def enriched_store(plain: str) -> str:
    """A copy of a store in which every chunk has a question and is in a summary; indexed."""
    root = f"{plain}-enriched"
    if not os.path.isdir(root):
        shutil.copytree(plain, root)
        maker = TextMaker(SEED + 1)
        for folder in sorted(Path(root, "chunked").iterdir()):
            _enrich(folder, maker)
    measure.run(measure.filestore("sync"), folder=root)
    return root


def _enrich(folder: Path, maker: TextMaker) -> None:
    children = [_with_question(path, maker) for path in sorted(folder.glob("chunk*.md"))]
    level, number = 1, 1
    while len(children) > 1 or level == 1:
        above = []
        for start in range(0, len(children), GROUP):
            path = folder / f"summary{number}.md"
            body, title = maker.text(60), maker.word()
            data = chunk_file.generate(
                body=body,
                kind="summary",
                level=level,
                headings=[title],
                children=children[start : start + GROUP],
            )
            path.write_bytes(data)
            above.append(_child(path, body, [title]))
            number += 1
        children, level = above, level + 1


def _with_question(path: Path, maker: TextMaker) -> chunk_file.Child:
    data = path.read_bytes()
    question = " ".join(maker.word() for _ in range(8)) + "?"
    path.write_bytes(chunk_file.update(data, questions=[question]))
    chunk = chunk_file.parse(data)
    return _child(path, chunk.body, chunk.headings)


def _child(path: Path, body: str, headings: Sequence[str]) -> chunk_file.Child:
    text = chunk_file.embed_text(headings, body)
    below = ChunkPath(f"{path.parent.name}/{path.name}")
    return chunk_file.Child(path=below, hash=f"sha256:{embedding_key(text).hex()}")


def _rows(mode: Mode, ours: Store, theirs: Store, queries: Sequence[str]) -> list[measure.Row]:
    """What each query took in turns, by the clock and by the processor."""
    spent: list[tuple[Spent, Spent]] = [
        (_timed(ours, query, mode), _timed(theirs, query, mode)) for query in [queries[0], *queries]
    ]
    # The first query opens and loads.
    return [
        _row(
            f"{mode}{clock}",
            statistics.median(one[at] for one, _ in spent[1:]),
            statistics.median(one[at] for _, one in spent[1:]),
        )
        for at, clock in enumerate(("", ", processor"))
    ]


def _commands(ours: str, theirs: str, queries: Sequence[str]) -> list[measure.Row]:
    """The same of the command, from its start to its end."""
    spent: list[tuple[measure.Run, measure.Run]] = []
    for query in [queries[0], *queries]:
        command = measure.filestore("search", query)
        asked = [measure.run(command, folder=root, expected=(0, 1)) for root in (ours, theirs)]
        spent.append((asked[0], asked[1]))
    mine, base = ([pair[at] for pair in spent[1:]] for at in (0, 1))
    return [
        _row("command", measure.median_s(mine), measure.median_s(base)),
        _row("command, processor", measure.median_cpu_s(mine), measure.median_cpu_s(base)),
    ]


def _row(figure: str, ours_s: float, theirs_s: float) -> measure.Row:
    return measure.Row(
        figure=figure,
        ours=measure.milliseconds(ours_s),
        yardstick=f"without {measure.milliseconds(theirs_s)}",
        compared=f"× {ours_s / theirs_s:.2f}",
        goal=f"≤ × {LIMIT}",
        met=ours_s <= LIMIT * theirs_s,
    )


def _timed(store: Store, query: str, mode: Mode) -> Spent:
    started, spent = time.perf_counter(), time.process_time()
    store.search(query, k=COUNT, mode=mode)
    return time.perf_counter() - started, time.process_time() - spent


if __name__ == "__main__":
    main()

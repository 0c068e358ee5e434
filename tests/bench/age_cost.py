"""What dates, status and sources cost a warm search, with and without, in turns in one process.

The store is a folder of ``--files`` notes in git. Half of them say when they were updated; one in
ten is deprecated and names its successor, and one in ten names a source. "Without" is the same
search with what this adds taken out; half of the time it comes first. Compared are medians of
processor time, once over notes that say nothing, and once over those that do. ``--runs`` is the
number of queries. Measured too: what a filter by date costs, warm, and reading git's log.
"""

import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import measure
from stores import TextMaker

from filestore.search import authority
from filestore.search.authority import Authority
from filestore.store import Store

ALLOWED_MS: Final = 1.0
WORDS: Final = 2
FOLDER: Final = 1_000
"""Notes of a folder."""
_NAME: Final = {
    f"GIT_{one}_{what}": "a@b" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def main() -> None:
    """Measure and print a table."""
    with measure.options(__doc__ or "", files=10_000, folders=1, runs=100) as options:
        rows = list[measure.Row]()
        for says in (False, True):
            root = _made(options.work, options.files, says=says)
            with closing(Store(root)) as store:
                rows += _rows(store, options, "that say much" if says else "that say nothing")
        print(measure.table(f"Dates and status in a warm search, {options.files:,} notes", rows))


def _rows(store: Store, options: measure.Options, which: str) -> Iterator[measure.Row]:
    words = TextMaker(options.files)
    queries = [" ".join(words.word() for _ in range(WORDS)) for _ in range(options.runs)]
    ours, plain = list[float](), list[float]()
    store.search(queries[0], k=10, mode="keyword")
    for number, query in enumerate(queries):
        for takes_part in (True, False) if number % 2 else (False, True):
            if takes_part:
                ours.append(_search_ms(store, query))
            else:
                with _left_out():
                    plain.append(_search_ms(store, query))
    with_ms, without_ms = statistics.median(ours), statistics.median(plain)
    more_ms = with_ms - without_ms
    yield measure.Row(
        figure=f"search of notes {which}",
        ours=f"{with_ms:.2f} ms",
        yardstick=f"{without_ms:.2f} ms without",
        compared=f"{with_ms / without_ms:.2f}; {more_ms:+.2f} ms",
        goal=f"≤ {ALLOWED_MS:g} ms",
        met=more_ms <= ALLOWED_MS,
    )
    since = [_search_ms(store, query, since="2026") for query in queries]
    yield measure.Row(
        figure=f"--since over notes {which}, first and then",
        ours=f"{since[0]:.1f} ms; {statistics.median(since[1:] or since):.2f} ms",
    )


@contextmanager
def _left_out() -> Iterator[None]:
    """Searching as it is without what this measures."""
    owners: Any = (
        (Authority, "annotated"),
        (Authority, "behind_successors"),
        (authority, "_by_sources"),
    )
    plain: Any = (
        lambda _, hits, *rest: list(hits),
        lambda _, hits: list(hits),
        lambda hits, *_: (hits, []),
    )
    kept = [getattr(owner, name) for owner, name in owners]
    for (owner, name), other in zip(owners, plain, strict=True):
        setattr(owner, name, other)
    try:
        yield
    finally:
        for (owner, name), own in zip(owners, kept, strict=True):
            setattr(owner, name, own)


def _made(work: str, count: int, *, says: bool) -> str:
    root = Path(work, f"age-{count}-{says}")
    if not (root / "filestore.toml").exists():
        maker = TextMaker(count)
        for number in range(count):
            path = root / f"f{number // FOLDER:03}" / f"n{number:06}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_head(number) * says + maker.text())
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Write"]):
            subprocess.run(["git", *words], cwd=root, check=True, env=os.environ | _NAME)
        measure.run(
            measure.filestore("init", "--in-place", "--embedder", "builtin"), folder=str(root)
        )
    measure.run(measure.filestore("sync"), folder=str(root))
    return str(root)


def _head(number: int) -> str:
    lines = [f"updated: 2026-{number % 12 + 1:02}-11"] if number % 2 else []
    if number % 10 == 0:
        lines += ["status: deprecated", f'superseded_by: "[[n{number + 1:06}]]"']
    if number % 10 == 5:
        lines.append(f"sources: [n{number - 1:06}.md]")
    return "".join(f"{line}\n" for line in ["---", *lines, "---"]) if lines else ""


def _search_ms(store: Store, query: str, **options: Any) -> float:
    started = time.process_time()
    store.search(query, k=10, mode="keyword", update=False, **options)
    return 1000 * (time.process_time() - started)


if __name__ == "__main__":
    main()

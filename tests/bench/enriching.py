"""Keys and summaries offline, beside the first index of the same chunks.

Each resource has sentences about a few subjects of its own, so that texts group. ``--embedder E``
names another embedder than the builtin one, such as ``onnx:FOLDER``. Then one chunk is edited and
synced, and what is out of date is made again: the time of that command, less that of a `status`,
which starts the same program and looks at the same files.
"""

import random
import shutil
import sys
from pathlib import Path

import measure
from stores import TextMaker

from filestore.chunks import chunk_file

LIMIT = 2.0
REFRESH_S = 1.0
SUBJECTS = 6
SENTENCES = 6
WORDS = 8
OWN_WORDS = 60


def main() -> None:
    """Measure and print the table."""
    embedder = _taken_option("--embedder", "builtin")
    with measure.options(__doc__ or "", files=20_000, folders=200, runs=1) as options:
        root = _store(options.work, options.files, options.folders, embedder)
        index, enrich = measure.alternate(
            options.runs, lambda: _first_sync(root), lambda: _enriched(root)
        )
        refresh = [_refreshed(root, number) for number in range(3)]
        status = [measure.run(measure.filestore("status"), folder=root) for _ in range(3)]
    index_s, enrich_s = measure.median_s(index), measure.median_s(enrich)
    refresh_s, status_s = measure.median_s(refresh), measure.median_s(status)
    rows = [
        measure.times("`enrich`", enrich_s, "first `sync`", index_s, LIMIT),
        measure.Row(
            figure="processor seconds",
            ours=f"{measure.median_cpu_s(enrich):.1f}",
            yardstick=f"{measure.median_cpu_s(index):.1f}",
        ),
        measure.peak("`enrich`", enrich),
        measure.over("`enrich --refresh`, one edit", refresh_s, "`status`", status_s, REFRESH_S),
    ]
    title = f"Enriching {options.files:,} chunks, {embedder.partition(':')[0]}"
    print(measure.table(title, rows))


def _taken_option(name: str, default: str) -> str:
    """An option that the others do not have, taken out of the command line."""
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = sys.argv[at + 1]
    del sys.argv[at : at + 2]
    return value


def _store(work: str, files: int, folders: int, embedder: str) -> str:
    root = Path(work, f"enriching-{files}-{folders}")
    if not root.is_dir():
        measure.run(measure.filestore("init", str(root), "--embedder", embedder))
        maker = TextMaker(1)
        chance = random.Random(1)
        for folder in range(folders):
            _resource(root / "chunked" / f"resource-{folder:04d}", files // folders, maker, chance)
    return str(root)


def _resource(path: Path, files: int, maker: TextMaker, chance: random.Random) -> None:
    path.mkdir(parents=True)
    subjects = [[maker.word() for _ in range(OWN_WORDS)] for _ in range(SUBJECTS)]
    for number in range(1, files + 1):
        words = subjects[chance.randrange(SUBJECTS)]
        lines = [_sentence(words, maker, chance) for _ in range(SENTENCES)]
        headings = (maker.word(), chance.choice(words))
        data = chunk_file.generate(body=" ".join(lines) + "\n", headings=headings)
        (path / chunk_file.chunk_name(number)).write_bytes(data)


def _sentence(words: list[str], maker: TextMaker, chance: random.Random) -> str:
    found = [chance.choice(words) if chance.random() < 0.6 else maker.word() for _ in range(WORDS)]
    return " ".join(found).capitalize() + "."


def _first_sync(root: str) -> measure.Run:
    shutil.rmtree(Path(root, ".sidecar"), ignore_errors=True)
    return measure.run(measure.filestore("sync"), folder=root)


def _enriched(root: str) -> measure.Run:
    return measure.run(measure.filestore("enrich"), folder=root)


def _refreshed(root: str, number: int) -> measure.Run:
    path = sorted(Path(root, "chunked").glob("resource-*/chunk1.md"))[number]
    path.write_bytes(path.read_bytes() + b"One more sentence, which changes it.\n")
    measure.run(measure.filestore("sync"), folder=root, expected=(0, 1))
    return measure.run(measure.filestore("enrich", "--refresh"), folder=root)


if __name__ == "__main__":
    main()

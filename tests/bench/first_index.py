"""The first ``filestore sync`` of a tree, beside a loop that only reads, parses and embeds it.

Both are processes of their own, in turns; the loop takes files and texts in the same batches.
"""

import shutil
import sys
from pathlib import Path

import measure

RATIO = 1.5
SMALL_FILES = 1_000
SMALL_FOLDERS = 10


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=1) as options:
        root = measure.store(options.work, options.files, options.folders)
        # A first sync of another store compiles modules.
        measure.indexed_store(options.work, SMALL_FILES, SMALL_FOLDERS)
        ours, loop = measure.alternate(
            options.runs,
            lambda: _first_sync(root),
            lambda: measure.run([sys.executable, __file__, "loop", root]),
        )
    ours_s, loop_s = measure.median_s(ours), measure.median_s(loop)
    rows = [
        measure.times("first `sync`", ours_s, "read, parse, embed", loop_s, RATIO),
        measure.Row(
            figure="files a second",
            ours=f"{options.files / ours_s:,.0f}",
            yardstick=f"{options.files / loop_s:,.0f}",
        ),
        measure.Row(
            figure="peak memory of the largest process",
            ours=f"{measure.peak_bytes(ours) / measure.MIB:.0f} MB",
            yardstick=f"{measure.peak_bytes(loop) / measure.MIB:.0f} MB",
        ),
    ]
    print(measure.table(f"First index of {options.files:,} files, median of {options.runs}", rows))


def _first_sync(root: str) -> measure.Run:
    shutil.rmtree(Path(root, ".sidecar"), ignore_errors=True)
    return measure.run(measure.filestore("sync"), folder=root)


def loop(root: str) -> None:
    """Read, parse and embed every chunk file."""
    from filestore.chunks import chunk_file
    from filestore.embed import Choice, open_embedder
    from filestore.sidecar.commit import BATCH
    from filestore.sidecar.embedding_feed import EMBED_BATCH

    embedder = open_embedder(Choice(name="builtin"))
    paths = sorted(Path(root, "chunked").rglob("*.md"))
    for start in range(0, len(paths), BATCH):
        chunks = [chunk_file.parse(path.read_bytes()) for path in paths[start : start + BATCH]]
        texts = [text for chunk in chunks for text in chunk_file.texts(chunk)]
        for first in range(0, len(texts), EMBED_BATCH):
            embedder.embed_documents(texts[first : first + EMBED_BATCH])


if __name__ == "__main__":
    if sys.argv[1:2] == ["loop"]:
        loop(sys.argv[2])
    else:
        main()

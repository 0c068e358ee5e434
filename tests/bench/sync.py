"""``filestore sync`` after a few edits and renames, beside ``filestore status`` on the same tree.

The embedding of the edited texts is timed in a process of its own, after numpy is loaded, and taken
out. Every change is taken back afterwards, so that the store can be used again.
"""

import hashlib
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import measure

EDITS = 10
RENAMES = 100
ALLOWED_S = 0.200
DELETION_S = 1.0


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=7) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        chance = random.Random(1)
        paths = sorted(str(path) for path in Path(root, "chunked").rglob("chunk*.md"))
        rows = _edit_rows(root, [chance.sample(paths, EDITS) for _ in range(options.runs)])
        rows += _read_rows(root, chance.sample(paths, EDITS))
        rows += _deletion_rows(root, chance.sample(paths, options.runs))
        rows += _rename_rows(root, chance.sample(paths, min(RENAMES, len(paths) // 2)))
    print(measure.table(f"Sync of {options.files:,} files, median of {options.runs}", rows))


def _edit_rows(root: str, choices: list[list[str]]) -> list[measure.Row]:
    synced: list[measure.Run] = []
    status: list[measure.Run] = []
    embedding: list[float] = []
    for number, paths in enumerate(choices):
        with _edited(root, paths, f"Edited in round {number}."):
            status.append(measure.run(measure.filestore("status"), folder=root, expected=(1,)))
            embedding.append(_embedding_s(paths))
            synced.append(measure.run(measure.filestore("sync", "--json"), folder=root))
    reports = [json.loads(run.output) for run in synced]
    embedding_s = statistics.median(embedding)
    name = f"`sync` after {EDITS} edits, {measure.milliseconds(embedding_s)} embedding taken out"
    ours_s = measure.median_s(synced) - embedding_s
    return [
        measure.over(name, ours_s, "`status`", measure.median_s(status), ALLOWED_S),
        measure.counted(
            "texts embedded, all rounds",
            sum(report["embedded"] for report in reports),
            EDITS * len(reports),
        ),
    ]


@contextmanager
def _edited(root: str, paths: list[str], line: str) -> Iterator[None]:
    """Add a line to each file; afterwards files and index are as before.

    The line was never seen before, since a text that once was is not embedded again.
    """
    line = f"{line} {time.time_ns()}"
    before = {path: Path(path).read_bytes() for path in paths}
    try:
        for path, data in before.items():
            Path(path).write_bytes(data + f"\n{line} {os.path.basename(path)}\n".encode())
        yield
    finally:
        for path, data in before.items():
            Path(path).write_bytes(data)
    measure.run(measure.filestore("sync"), folder=root)


@contextmanager
def _renamed(root: str, paths: list[str]) -> Iterator[None]:
    """Rename each file within its folder; afterwards files and index are as before."""
    new = {path: f"{path.removesuffix('.md')}-renamed.md" for path in paths}
    for path in paths:
        os.rename(path, new[path])
    try:
        yield
    finally:
        for path in paths:
            os.rename(new[path], path)
    measure.run(measure.filestore("sync"), folder=root)


def _embedding_s(paths: list[str]) -> float:
    """How long the texts of some files take to embed, in a fresh process."""
    command = [sys.executable, __file__, "embed", *paths]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def embed(paths: list[str]) -> None:
    """Embed the texts of some files and print the seconds; the libraries are loaded before."""
    import numpy  # noqa: F401

    from filestore.chunks import chunk_file
    from filestore.embed import Choice, open_embedder

    embedder = open_embedder(Choice(name="builtin"))
    chunks = [chunk_file.parse(Path(path).read_bytes()) for path in paths]
    texts = [text for chunk in chunks for text in chunk_file.texts(chunk)]
    started = time.perf_counter()
    embedder.embed_documents(texts)
    print(time.perf_counter() - started)


def _read_rows(root: str, paths: list[str]) -> list[measure.Row]:
    with _edited(root, paths, "Edited under trace."):
        opened = measure.chunk_files_opened(measure.filestore("sync"), root)
    return [measure.counted(f"chunk files read after {EDITS} edits", opened, EDITS)]


def _deletion_rows(root: str, paths: list[str]) -> list[measure.Row]:
    """The index of a small store is then written whole."""
    synced: list[measure.Run] = []
    status: list[measure.Run] = []
    for path in paths:
        data = Path(path).read_bytes()
        os.unlink(path)
        status.append(measure.run(measure.filestore("status"), folder=root, expected=(1,)))
        synced.append(measure.run(measure.filestore("sync"), folder=root))
        Path(path).write_bytes(data)
        measure.run(measure.filestore("sync"), folder=root)
    times = measure.median_s(synced), "`status`", measure.median_s(status)
    return [measure.over("`sync` after 1 deletion", *times, DELETION_S)]


def _rename_rows(root: str, paths: list[str]) -> list[measure.Row]:
    before = _index_rows(root)
    with _renamed(root, paths):
        run = measure.run(measure.filestore("sync", "--json"), folder=root)
        changed = len(before ^ _index_rows(root))
    report: dict[str, Any] = json.loads(run.output)
    moved = sum(finding["code"] == "moved" for finding in report["applied"])
    return [
        measure.counted(f"moves followed of {len(paths)} renames", moved, len(paths)),
        measure.counted("texts embedded for them", report["embedded"], 0),
        measure.counted("FAISS rows changed for them", changed, 0),
    ]


def _index_rows(root: str) -> set[tuple[object, ...]]:
    """What a vector search reads: the FAISS files by hash, and the rows of the difference."""
    sidecar = Path(root, ".sidecar")
    rows: set[tuple[object, ...]] = set()
    for path in sidecar.glob("vectors-*.faiss"):
        with path.open("rb") as file:
            rows.add((path.name, hashlib.file_digest(file, "sha256").hexdigest()))
    with closing(sqlite3.connect(sidecar / "catalog.sqlite")) as catalog:
        rows |= set(catalog.execute("SELECT vector, present FROM index_delta"))
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["embed"]:
        embed(sys.argv[2:])
    else:
        main()

"""Renames, and a branch there and back: how many texts are embedded for them (none should be).

The store is made for this and grows by a branch, so it is not shared with the other benchmarks.
"""

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import measure
from stores import commit_tree, make_tree

RENAMED_SHARE = 0.5
"""Of the renamed files those that move with their whole folder."""


def main() -> None:
    """Measure and print the tables."""
    with measure.options(__doc__ or "", files=20_000, folders=200, runs=1) as options:
        count = options.files // 2
        root = os.path.abspath(os.path.join(options.work, f"renames-{options.files}"))
        shutil.rmtree(root, ignore_errors=True)
        make_tree(root, options.files, options.folders)
        commit_tree(root)
        measure.run(measure.filestore("sync"), folder=root)
        renames = _rename_rows(root, count)
        print(measure.table(f"{count:,} renames in {options.files:,} files", renames))
        branch = _branch_rows(root, count)
        print(measure.table(f"A branch there and back over {count:,} changed files", branch))
        shutil.rmtree(root)


def _rename_rows(root: str, count: int) -> list[measure.Row]:
    before = _rows_of_index(root)
    moved = _rename_folders(root, int(count * RENAMED_SHARE))
    moved += _rename_files(root, count - moved)
    report, wall_s = _sync(root)
    followed = sum(finding["code"] == "moved" for finding in report["applied"])
    rows = [
        measure.counted("moves followed", followed, moved),
        measure.counted("texts embedded", report["embedded"], 0),
        measure.counted("FAISS rows changed", len(before ^ _rows_of_index(root)), 0),
        measure.Row(figure="time of `sync`", ours=measure.milliseconds(wall_s)),
    ]
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "renames")
    return rows


def _rename_folders(root: str, count: int) -> int:
    """Rename whole folders until so many files have moved; returns how many did."""
    moved = 0
    for folder in sorted(Path(root, "chunked").iterdir()):
        if moved >= count:
            break
        moved += len(list(folder.iterdir()))
        folder.rename(folder.with_name(f"moved-{folder.name}"))
    return moved


def _rename_files(root: str, count: int) -> int:
    """Rename files within folders that did not move; returns how many did."""
    paths = sorted(Path(root, "chunked").glob("resource-*/*.md"))[:count]
    for path in paths:
        path.rename(path.with_name(f"renamed-{path.name}"))
    return len(paths)


def _branch_rows(root: str, count: int) -> list[measure.Row]:
    """Edit files on a branch without the store knowing, then switch to it, back, and there."""
    _git(root, "switch", "-qc", "edits")
    for number, path in enumerate(sorted(Path(root, "chunked").rglob("chunk*.md"))[:count]):
        with path.open("ab") as file:
            file.write(f"\nA line of the branch, number {number}.\n".encode())
    _git(root, "commit", "-qam", "edits")
    _git(root, "switch", "-q", "-")
    _sync(root)
    expected = {"first switch": count, "back": 0, "there again": 0}
    rows = []
    for words, embedded in expected.items():
        _git(root, "switch", "-q", "-")
        report, wall_s = _sync(root)
        found = measure.counted(f"texts embedded, {words}", report["embedded"], embedded)
        rows += [found, measure.Row(figure=f"`sync`, {words}", ours=measure.milliseconds(wall_s))]
    return rows


def _sync(root: str) -> tuple[dict[str, Any], float]:
    run = measure.run(measure.filestore("sync", "--json"), folder=root, expected=measure.FOUND)
    return json.loads(run.output), run.wall_s


def _git(root: str, *words: str) -> None:
    identity = ["-c", "user.name=b", "-c", "user.email=b@localhost"]
    subprocess.run(["git", "-C", root, *identity, *words], check=True, stdout=subprocess.DEVNULL)


def _rows_of_index(root: str) -> set[tuple[object, ...]]:
    """What a vector search reads: the FAISS files, and the rows of the difference to them."""
    sidecar = Path(root, ".sidecar")
    rows: set[tuple[object, ...]] = {
        (path.name, path.read_bytes()) for path in sidecar.glob("vectors-*.faiss")
    }
    with closing(sqlite3.connect(sidecar / "catalog.sqlite")) as catalog:
        rows |= set(catalog.execute("SELECT vector, present FROM index_delta"))
    return rows


if __name__ == "__main__":
    main()

"""A whole store whose vectors lie in a backend, beside the same store with its own FAISS file.

The switch and what it embeds, a full verification over the wire, a sync of ten edits and the rows
that it writes as the server counts them, and a search by the command. The first model is the
builtin one: its vectors have as many numbers as it gives.
"""

import json
import os
import random
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import measure

EDITS = 10
MORE_S = 5.0
"""What a full verification may take longer over the wire."""


def main() -> None:
    """Measure and print the table."""
    sys.path.append(str(Path(__file__).parents[2]))
    from tests.postgres_server import PACKAGE, is_installed

    if not is_installed():
        print(f"skipped: needs {PACKAGE}")
        return
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=5) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        with _database() as database:
            rows = _rows(root, database, options.runs)
    print(measure.table(f"{options.files:,} files, vectors in PostgreSQL", rows))


@contextmanager
def _database() -> Any:
    """A database of a server of this run's own; its password is in the environment."""
    import tempfile

    from tests.postgres_server import PASSWORD, new_database, shared_server

    with tempfile.TemporaryDirectory() as meeting, shared_server(Path(meeting)) as server:
        os.environ["PGPASSWORD"] = PASSWORD
        yield new_database(server, "measured")


def _rows(root: str, database: Any, runs: int) -> list[measure.Row]:
    plain = f"{root}-own-file"
    shutil.copytree(root, plain, symlinks=True)
    dsn = f"dsn=postgresql://postgres@127.0.0.1:{database.server.port}/{database.name}"
    switch = measure.run(
        measure.filestore("backend", "set", "pgvector", dsn, "--yes", "--json"), folder=root
    )
    switched = json.loads(switch.output)
    verified, plain_verified = _beside(root, plain, ("verify", "--level", "full"), runs)
    found, plain_found = _beside(root, plain, ("search", "harbour", "--mode", "vector"), runs)
    rows = [
        measure.Row(figure="the switch, graph included", ours=f"{switch.wall_s:.1f} s"),
        measure.counted("texts that it embedded", switched["embedded"], 0),
        measure.over("full `verify`", verified, "own file", plain_verified, MORE_S),
        measure.times("`search` by vectors", found, "own file", plain_found, 2.0),
        measure.counted(f"rows written for {EDITS} edits", _written(root, database), EDITS),
    ]
    back = measure.run(
        measure.filestore("backend", "set", "faiss", "--yes", "--clear", "--json"), folder=root
    )
    embedded = json.loads(back.output)["embedded"]
    rows.append(measure.counted("texts embedded by the switch back", embedded, 0))
    shutil.rmtree(plain)
    return rows


def _beside(root: str, plain: str, words: tuple[str, ...], runs: int) -> tuple[float, float]:
    """Seconds of a command on both stores, in turns."""
    ours, theirs = measure.alternate(
        runs,
        lambda: measure.run(measure.filestore(*words), folder=root, expected=measure.FOUND),
        lambda: measure.run(measure.filestore(*words), folder=plain, expected=measure.FOUND),
    )
    return measure.median_s(ours), measure.median_s(theirs)


def _written(root: str, database: Any) -> int:
    """Rows that are others after some edits were synced; the edits are taken back."""
    statement = "SELECT id, xmin::text FROM filestore_vectors"
    paths = random.Random(2).sample(sorted(Path(root, "chunked").rglob("chunk*.md")), EDITS)
    before = {path: path.read_bytes() for path in paths}
    rows = set(database.run(statement))
    for path, data in before.items():
        path.write_bytes(data + f"\nEdited at {time.time_ns()}.\n".encode())
    measure.run(measure.filestore("sync"), folder=root)
    written = len(set(database.run(statement)) - rows)
    for path, data in before.items():
        path.write_bytes(data)
    measure.run(measure.filestore("sync"), folder=root)
    return written


if __name__ == "__main__":
    main()

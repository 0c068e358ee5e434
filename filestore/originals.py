"""Originals: what truth files held before a command changed them, kept under `.undo/`.

Written before the change, one numbered folder a command, so that the change can be taken back.
"""

import os
from collections.abc import Mapping
from typing import Final

import orjson

from filestore import fileio
from filestore.hashing import content_hash

BATCH_NAME: Final = "batch.json"


def keep_originals(
    folder: str, what: str, changes: Mapping[str, tuple[bytes | None, bytes | None]]
) -> str | None:
    """Keep what some files held.

    Args:
        folder: The store's `.undo` folder; made where it is missing.
        what: The command, for the list of batches.
        changes: Path below `chunked/` to its bytes before and after; None for no file.

    Returns:
        The id of the batch; None where no file existed before, so that there is nothing to keep.

    Raises:
        WriteFailedError: The disk refused.
    """
    if all(before is None for before, _ in changes.values()):
        return None
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        identifier = _next_identifier(folder)
        batch = os.path.join(folder, identifier)
        os.mkdir(batch, 0o700)
    except OSError as error:
        raise fileio.write_failed(folder, error) from error
    entries = []
    for number, (path, (before, after)) in enumerate(sorted(changes.items())):
        if before is not None:
            fileio.write_path(os.path.join(batch, str(number)), before)
        entries.append(
            {
                "path": path.encode("utf-8", "surrogateescape").decode("latin-1"),
                "before": None if before is None else str(number),
                "after": None if after is None else content_hash(after).hex(),
            }
        )
    record = {"format": 1, "what": what, "files": entries}
    data = orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    fileio.write_path(os.path.join(batch, BATCH_NAME), data)
    return identifier


def _next_identifier(folder: str) -> str:
    numbers = [int(name) for name in os.listdir(folder) if name.isdigit()]
    return f"{max(numbers, default=0) + 1:06d}"

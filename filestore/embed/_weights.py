"""Which file is which: the SHA-256 of weights, computed once for each state of a file.

Hashing 90 MB takes a twentieth of a second, which a question should not pay, so hashes are kept in
the user's cache folder by path, size, stamps and inode. One rule: the cache may be lost, stale or
unwritable, and the answer is the same.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from typing import Any, Final

import orjson

from filestore.core.errors import FilestoreError
from filestore.embed.base import ModelUnusable
from filestore.fs import disk

NAME: Final = "weights.json"
_KEPT: Final = 200
"""Files remembered; the ones met last."""
_SETTLED_NS: Final = 2_100_000_000
"""A file touched more recently may be written again without its stamps telling."""


def weights_digest(folder: str, names: Sequence[str], cache: str) -> str:
    """The SHA-256 of some files of a folder, in hexadecimal.

    That of a single file is its own, so that it can be compared with what its maker publishes; of
    several it is the SHA-256 of their names and digests.

    Args:
        folder: The model's.
        names: Paths relative to it.
        cache: A folder for what is remembered; "" for none.

    Raises:
        ModelUnusable: A file cannot be read.
    """
    digests = {name: file_digest(os.path.join(folder, name), cache) for name in names}
    if len(digests) == 1:
        return next(iter(digests.values()))
    lines = "".join(f"{name}\0{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def file_digest(path: str, cache: str) -> str:
    """The SHA-256 of one file, in hexadecimal, from the cache where nothing changed.

    Raises:
        ModelUnusable: It cannot be read.
    """
    path = os.path.realpath(path)
    try:
        stamps = _stamps(path)
        entry = _read(cache).get(path)
        if isinstance(entry, dict) and entry.get("stamps") == stamps:
            return str(entry["sha256"])
        with open(disk.open_regular(path, follow_links=True), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        settled = time.time_ns() - max(stamps[1:3]) > _SETTLED_NS and _stamps(path) == stamps
    except OSError as error:
        raise ModelUnusable(
            f"{path} cannot be read: {error.strerror}",
            remedy="fix the model folder, or name another one",
        ) from error
    if settled and cache:
        known = {key: value for key, value in _read(cache).items() if key != path}
        known[path] = {"stamps": stamps, "sha256": digest}
        kept = dict(list(known.items())[-_KEPT:])
        with contextlib.suppress(OSError, FilestoreError, TypeError):
            os.makedirs(cache, mode=0o700, exist_ok=True)
            disk.write_own(os.path.join(cache, NAME), orjson.dumps(kept))
    return digest


def _stamps(path: str) -> list[int]:
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _read(cache: str) -> dict[str, Any]:
    if not cache:
        return {}
    try:
        known = orjson.loads(disk.read_path(os.path.join(cache, NAME), follow_links=True))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}

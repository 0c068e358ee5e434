"""What of a catalog is at an earlier commit as it is now: files of the same bytes under one path.

Git names bytes by one hash, the catalog by another. Which of them are the same is remembered, in a
file that may be lost; so a commit is compared without reading what did not change.
"""

from collections.abc import Callable, Mapping
from typing import Final

from filestore.catalog import Catalog, queries
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath
from filestore.fs import disk
from filestore.git.repository import blob_name

_HASH_BYTES: Final = 16
_NAME_BYTES: Final = (20, 32)
_MAGIC: Final = b"filestore blob names 1\n"


class BlobNames:
    """Git's names of what the catalog has hashed, read from a file and kept in it."""

    def __init__(self, path: str) -> None:
        """Read the file; one that is damaged, or is not there, says nothing."""
        self._path = path
        self._names: dict[bytes, bytes] = {}
        self._has_more = False
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return
        start = len(_MAGIC) + _HASH_BYTES
        body = data[start + 1 :]
        if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != content_hash(data[start:]):
            return
        size = data[start]
        if size in _NAME_BYTES and len(body) % (_HASH_BYTES + size) == 0:
            step = _HASH_BYTES + size
            self._names = {
                body[place : place + _HASH_BYTES]: body[place + _HASH_BYTES : place + step]
                for place in range(0, len(body), step)
            }

    def __contains__(self, file_hash: bytes) -> bool:
        """Whether git's name of bytes with a hash is known."""
        return file_hash in self._names

    def get(self, file_hash: bytes) -> str | None:
        """Git's name of bytes with a hash, as far as it is known."""
        name = self._names.get(file_hash)
        return name.hex() if name is not None else None

    def note(self, file_hash: bytes, name: str) -> None:
        """Remember that git gives bytes with a hash that name."""
        self._names[file_hash] = bytes.fromhex(name)
        self._has_more = True

    def save(self) -> None:
        """Write what was noted."""
        if not self._has_more:
            return
        size = len(next(iter(self._names.values())))
        entries = [key + name for key, name in self._names.items() if len(name) == size]
        body = bytes([size]) + b"".join(entries)
        disk.write_path(self._path, _MAGIC + content_hash(body) + body)


def unchanged(
    catalog: Catalog,
    wanted: Mapping[ChunkPath, str],
    names: BlobNames,
    read: Callable[[str], bytes],
) -> set[ChunkPath]:
    """The paths of a catalog whose bytes are those that a commit has there.

    Args:
        catalog: Inside a snapshot.
        wanted: Path to the name of its blob, at the commit.
        names: Asked, and told what is found out.
        read: Gives the bytes of a blob.

    Raises:
        NoAnswerError: A blob is not here.
    """
    files = list(queries.sound_files(catalog))
    unknown = {file_hash for _, file_hash in files if file_hash not in names}
    if unknown:
        like = next(iter(wanted.values()), "")
        for file_hash, data in queries.kept_bytes(catalog):
            # What is kept may be damaged; then git is asked.
            if file_hash in unknown and content_hash(data) == file_hash:
                names.note(file_hash, blob_name(data, like))
    found = set()
    for path, file_hash in files:
        name = wanted.get(path)
        if name is None:
            continue
        if file_hash not in names and content_hash(read(name)) == file_hash:
            names.note(file_hash, name)
        if names.get(file_hash) == name:
            found.add(path)
    return found

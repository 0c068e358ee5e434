"""What of a catalog is at an earlier commit as it is now: files of the same bytes under one path.

Git names bytes by one hash, the catalog by another. Which of them are the same is remembered, in a
file that may be lost; so a commit is compared without reading what did not change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from filestore.catalog import Catalog, queries
from filestore.chunks.observation import RECORD
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath
from filestore.fs import disk
from filestore.git.repository import blob_namer

_HASH_BYTES: Final = 16
_NAME_BYTES: Final = (20, 32)
_MAGIC: Final = b"filestore blob names 1\n"


class BlobNames:
    """Git's names of what the catalog has hashed, read from a file and kept in it."""

    def __init__(self, folder: int, name: str) -> None:
        """Read the file in an open folder; one that is damaged, or is not there, says nothing."""
        self._folder = folder
        self._name = name
        self.known: dict[bytes, str] = {}
        """By content hash; added to by whoever finds out more."""
        self._saved = 0
        try:
            data, _ = disk.read_at(folder, name)
        except OSError:
            return
        start = len(_MAGIC) + _HASH_BYTES
        body = data[start + 1 :]
        if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != content_hash(data[start:]):
            return
        size = data[start]
        if size in _NAME_BYTES and len(body) % (_HASH_BYTES + size) == 0:
            step = _HASH_BYTES + size
            text = body.hex()
            self.known = {
                body[place : place + _HASH_BYTES]: text[
                    2 * (place + _HASH_BYTES) : 2 * (place + step)
                ]
                for place in range(0, len(body), step)
            }
            self._saved = len(self.known)

    def save(self) -> None:
        """Write what was found out."""
        if len(self.known) == self._saved:
            return
        size = len(next(reversed(self.known.values())))
        entries = (key + bytes.fromhex(one) for key, one in self.known.items() if len(one) == size)
        body = bytes([size // 2]) + b"".join(entries)
        disk.write_at(self._folder, self._name, _MAGIC + content_hash(body) + body)


def compared(
    catalog: Catalog,
    wanted: Mapping[ChunkPath, str],
    names: BlobNames,
    read: Callable[[Iterable[str]], Iterator[bytes]],
) -> tuple[set[ChunkPath], dict[ChunkPath, bytes]]:
    """The paths of a catalog whose bytes are those that a commit has there, and all others of it.

    The others have the content hash that the catalog knows, or none.

    Args:
        catalog: Inside a snapshot.
        wanted: Path to the name of its blob, at the commit.
        names: Asked, and told what is found out.
        read: Gives the bytes of blobs.

    Raises:
        NoAnswerError: A blob is not here.
    """
    files, known = list(queries.sound_files(catalog)), names.known
    unknown = {file_hash for _, file_hash in files if file_hash not in known}
    if unknown:
        name_of = blob_namer(next(iter(wanted.values()), ""))
        for file_hash, data in queries.kept_bytes(catalog):
            # What is kept may be damaged; then git is asked.
            if file_hash in unknown and content_hash(data) == file_hash:
                known[file_hash] = name_of(data)
    asked = [(key, name) for path, key in files if key not in known and (name := wanted.get(path))]
    for (file_hash, name), data in zip(asked, read(name for _, name in asked), strict=True):
        if content_hash(data) == file_hash:
            known[file_hash] = name
    same: set[ChunkPath] = set()
    others = {path: b"" for path, state, _ in catalog.states() if state != RECORD}
    for path, file_hash in files:
        name = wanted.get(path)
        if name and known.get(file_hash) == name:
            same.add(path)
        else:
            others[path] = file_hash
    return same, others

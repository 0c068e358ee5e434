"""The observation of one entry of the truth tree, as a value; `observe` makes them.

Apart from `observe`, because a clean tree is told by stats and needs none of what parses files.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filestore.hashing import content_hash, vector_id

if TYPE_CHECKING:
    from filestore.chunkfile import Chunk
    from filestore.records import Record

INDEXED: Final = ""
"""The state of a chunk file that is in answers."""
RECORD: Final = "record"
"""The state of a resource's record."""
UNMERGED: Final = "git has it as unmerged; 'git add' it when it is as it should be"
"""The detail of a file that holds no marks of a conflict, and is in one."""


@dataclass(slots=True, kw_only=True)
class Observation:
    """What was seen of one entry."""

    path: str
    values: tuple[int, int, int, int, int]
    """Size, mtime_ns, ctime_ns, inode and mode of exactly these bytes."""
    state: str
    """`INDEXED`, `RECORD`, or the code of the finding that withholds it."""
    detail: str = ""
    file_hash: bytes = b""
    """xxh3_128 of the bytes; empty where they were not read."""
    data: bytes = b""
    chunk: "Chunk | None" = None
    texts: tuple[str, ...] = ()
    """What is embedded: part 0 the headings and body, part n question n."""
    keys: tuple[bytes, ...] = ()
    """Embedding keys of the texts: 32 bytes each."""
    record: "Record | None" = None

    @property
    def text_key(self) -> bytes:
        """One hash over all embedded texts: 16 bytes."""
        return content_hash(b"".join(self.keys))

    def vector_ids(self) -> list[int]:
        """Vector ids of the texts."""
        return [vector_id(key) for key in self.keys]

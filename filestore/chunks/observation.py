"""The observation of one entry of the truth tree, as a value; `layout` makes them.

Apart from `layout`, because a clean tree is recognised by stats and needs no parser.
"""

from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.codes import CODES
from filestore.core.hashing import DIGEST_BYTES, content_hash, vector_id
from filestore.core.paths import ChunkPath

if TYPE_CHECKING:
    from filestore.chunks.chunk_file import Chunk
    from filestore.chunks.resource_record import Record

MAX_CHUNK_BYTES: Final = 16 * 1024 * 1024
INDEXED: Final = ""
"""The state of a chunk file that is searchable."""
RECORD: Final = "record"
"""The state of a resource's record."""
DOCUMENT: Final = "document"
"""The kind of a file of an in-place store."""
GONE: Final = "missing"
"""The state of a file that only git knew when the catalog was made: it was gone then."""
UNMERGED: Final = "unmerged"
"""The detail, as it is kept, of a file without conflict markers that git has as unmerged."""
UNMERGED_BEFORE: Final = "git has it as unmerged; 'git add' it when it is as it should be"
"""What catalogs keep instead that were made by version 0.1.0 or before."""


MAGIC: Final = b"\xff\x00filestore document 1\n"
"""What is kept of a document begins so, see `kept`; no chunk file does: it would be no UTF-8."""


def kept_hash(data: bytes) -> bytes:
    """The xxh3_128 of the file that bytes were kept of; empty where they are damaged."""
    if not data.startswith(MAGIC):
        return content_hash(data)
    body_at = len(MAGIC) + 2 * DIGEST_BYTES
    checksum = data[body_at - DIGEST_BYTES : body_at]
    is_sound = content_hash(memoryview(data)[body_at:]) == checksum
    return data[len(MAGIC) : len(MAGIC) + DIGEST_BYTES] if is_sound else b""


def why_excluded(state: str, detail: str) -> str:
    """Why a file is excluded from search, as a sentence."""
    if detail == UNMERGED:
        return "git has it as unmerged; 'git add' it when it is as it should be"
    return detail or CODES[state].repair


class Observation(Struct, kw_only=True):
    """What was seen of one entry."""

    path: ChunkPath
    values: tuple[int, int, int, int, int]
    """Size, mtime_ns, ctime_ns, inode and mode of exactly these bytes."""
    state: str
    """`INDEXED`, `RECORD`, or the code of the finding that excludes it."""
    detail: str = ""
    line: int = 0
    """Of what is wrong, 1-based; 0 where no line is to blame."""
    column: int = 0
    """1-based, in characters; 0 where only the line is known."""
    file_hash: bytes = b""
    """xxh3_128 of the bytes; empty where they were not read."""
    data: bytes = b""
    chunk: "Chunk | None" = None
    texts: tuple[str, ...] = ()
    """What is embedded: part 0 the headings and body, part n question n."""
    keys: tuple[bytes, ...] = ()
    """Embedding keys of the texts: 32 bytes each."""
    record: "Record | None" = None
    pending: bool = False
    """Whether its text was not taken out yet: only its bytes are known, and the state is not."""

    @property
    def text_key(self) -> bytes:
        """One hash over all embedded texts: 16 bytes."""
        return content_hash(b"".join(self.keys))

    def vector_ids(self) -> list[int]:
        """Vector ids of the texts."""
        return [vector_id(key) for key in self.keys]

    def without_content(self) -> Self:
        """The same, without the bytes and what they say."""
        return replace(self, data=b"", chunk=None, texts=(), keys=(), record=None)

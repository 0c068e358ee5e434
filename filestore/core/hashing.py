"""Every digest, and exactly which bytes go into it.

Two families: xxh3_128 for what stays in the sidecar (fast, not for strangers), SHA-256 for what is
committed or shared. One rule: a text is normalised before it is hashed, bytes never are.
"""

import hashlib
import re
from typing import Final

from xxhash import xxh3_128_digest

ORIGIN_PREFIX: Final = "sha256:"
_ORIGIN_DIGITS: Final = 16
_LONG_ORIGIN: Final = re.compile(r"sha256:([0-9a-f]{16})[0-9a-f]{48}", re.ASCII)
_BYTE_ORDER_MARK: Final = "\ufeff"


DIGEST_BYTES: Final = 16
"""The length of a `content_hash`."""


def content_hash(data: bytes | bytearray | memoryview) -> bytes:
    """The xxh3_128 digest of some bytes: 16 bytes."""
    return xxh3_128_digest(data)


def revision_of(path: str, data: bytes) -> str:
    """The state of a file as who changes it names it: 16 hexadecimal digits of path and bytes.

    Args:
        path: Below the store root.
        data: All of the file.
    """
    name = path.encode("utf-8", "surrogateescape")
    return content_hash(b"%b\0%b" % (name, data)).hex()[:16]


def normalize_text(text: str) -> str:
    """The text as it is compared: no byte-order mark, no CR before LF, no final line ends."""
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return text.removeprefix(_BYTE_ORDER_MARK).rstrip("\n")


def embedding_key(text: str) -> bytes:
    """SHA-256 of a normalised text: 32 bytes. Keys the embeddings, and yields the vector id."""
    return hashlib.sha256(normalize_text(text).encode("utf-8", "surrogatepass")).digest()


def vector_id(key: bytes) -> int:
    """The first 63 bits of an embedding key, so that it fits a signed 64-bit FAISS id."""
    return int.from_bytes(key[:8], "big") >> 1


def origin_hash(body: str) -> str:
    """What tells whether a generated body was changed since: 16 hex digits of its text.

    Enough to notice a change. Who writes a body can write its origin too: no trust rests on it.
    """
    return embedding_key(body).hex()[:_ORIGIN_DIGITS]


def short_origin(origin: str) -> str:
    """An `origin_hash`, given as it is, or with all 64 digits as it was written before."""
    long = _LONG_ORIGIN.fullmatch(origin)
    return long[1] if long else origin


def source_hash(data: bytes) -> str:
    """The committed identity of a source: ``sha256:<64 hex digits>`` of its bytes."""
    return ORIGIN_PREFIX + hashlib.sha256(data).hexdigest()

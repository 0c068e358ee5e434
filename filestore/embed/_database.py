"""The checksums in the database of embeddings.

What the cache and its salvage share; tables and errors are the cache's. One rule: a checksum is
seeded by the model's fingerprint, so that no row passes for another model's.
"""

from collections.abc import Sequence

from xxhash import xxh3_64_digest, xxh3_64_intdigest


def seed_of(fingerprint: str) -> int:
    """What seeds the checksums of a model's rows."""
    return xxh3_64_intdigest(fingerprint.encode("utf-8", "surrogatepass"))


def model_checksum(seed: int, dimension: object) -> bytes:
    """The checksum in the record of a model."""
    return xxh3_64_digest(str(dimension).encode(), seed)


def row_checksum(seed: int, key: bytes, vector: bytes) -> bytes:
    """The checksum beside a vector."""
    return xxh3_64_digest(key + vector, seed)


def are_sound(seed: int, rows: Sequence[tuple[bytes, bytes, bytes]]) -> bool:
    """Whether the checksums of all rows hold, of key, checksum and vector; quicker than each."""
    try:
        found = [xxh3_64_digest(key + vector, seed) for key, _, vector in rows]
        return found == [checksum for _, checksum, _ in rows]
    except TypeError:
        return False


def is_sound(seed: int, key: bytes, checksum: bytes, vector: bytes) -> bool:
    """Whether the checksum of a row holds, whatever types its values have."""
    try:
        return checksum == xxh3_64_digest(key + vector, seed)
    except TypeError:  # a flipped type byte turns a blob into a number, a text or NULL
        return False

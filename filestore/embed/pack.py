"""A pack: embeddings in one file that is carried from one store to another, and never trusted.

Says what is in the file and whether it is whole; what is to be packed, and whether a model would
give the same vectors, is for others. One rule: the same embeddings give the same bytes, whatever
the order they came in, so no time, no path and no machine is in it.

Layout, all numbers little-endian: the eight bytes `_MAGIC`, uint32 version, uint32 number of
models, 32 bytes digest; for each model, by fingerprint, uint64 number of rows, uint32 dimension,
uint32 length of the fingerprint, and the fingerprint in UTF-8; then for each model its rows by key:
32 bytes embedding key, 8 bytes checksum, float32 vector, as `cache` has them. The digest is the
SHA-256 of all rows followed by all that comes before them but itself.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from filestore.core.errors import UPGRADE, FilestoreError, on_error
from filestore.core.hashing import ORIGIN_PREFIX, content_hash
from filestore.core.schema import JsonObject
from filestore.embed import odd_lengths
from filestore.embed.cache import are_sound, is_sound, row_checksum, seed_of
from filestore.fs import disk

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

VERSION: Final = 1
_MAGIC: Final = b"\x93FSPACK\n"
_HEAD: Final = struct.Struct("<8sII32s")
_MODEL: Final = struct.Struct("<QII")
_UNSEALED: Final = _HEAD.size - 32
_KEY_BYTES: Final = 32
_CHECKSUM_BYTES: Final = 8
_FLOAT_BYTES: Final = 4
_MOST_MODELS: Final = 1_000
_LONGEST_FINGERPRINT: Final = 4_096
_LARGEST_DIMENSION: Final = 65_536
_BLOCK_BYTES: Final = 4 * 1024 * 1024
"""So much is in memory at once."""

Batch = tuple[Sequence[bytes], Sequence[bytes]]
"""Embedding keys, and the raw vector of each."""
Row = tuple[bytes, bytes, bytes]
"""Key, checksum and raw vector."""
OnRows = Callable[[int], None]
"""Called with how many rows are done."""


class NotAPack(FilestoreError, ValueError):
    """What is there is no pack."""

    def __init__(self, path: str, found: str) -> None:
        super().__init__(
            f"{path} is not a pack of embeddings: {found}"
            "; name a file that `filestore embeddings export` wrote",
        )


class PackDamaged(FilestoreError, ValueError):
    """A pack is not as it was written."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(
            f"the pack {path} is damaged: {detail}"
            "; fetch it again, or have it exported again; nothing was taken from it",
            detail=detail,
        )


class PackNewer(FilestoreError, ValueError):
    """A later version wrote the pack."""

    def __init__(self, path: str, version: int) -> None:
        super().__init__(
            f"the pack {path} has format {version:,}, this version reads up to {VERSION}"
            f"; {UPGRADE}, or have it exported by this version",
        )


class PackedModel(JsonObject, Struct, frozen=True, kw_only=True):
    """The embeddings of one model in a pack."""

    KEYS = "fingerprint dimension vectors"

    fingerprint: str
    """Of the model."""
    dimension: int
    """How many numbers a vector has."""
    vectors: int
    """How many there are."""
    start: int
    """Where its rows begin, in bytes."""

    @property
    def row_bytes(self) -> int:
        """The length of a row."""
        return _KEY_BYTES + _CHECKSUM_BYTES + self.dimension * _FLOAT_BYTES

    @property
    def end(self) -> int:
        """Where its rows end, in bytes."""
        return self.start + self.vectors * self.row_bytes


class PackInfo(JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}):
    """What a pack holds."""

    path: str
    """Of the pack."""
    version: int
    """Of its format."""
    size_bytes: int
    """Its size."""
    digest: str
    """`sha256:` and 64 hexadecimal digits; equal for packs of the same embeddings."""
    models: tuple[PackedModel, ...]
    """What is in it."""


class Pack(disk.Closing):
    """A pack that is open. A context manager; it may come from anybody.

    Opening it holds its length against what its head says. `check` reads all of it; what is read
    later is then what was checked, or an error.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._blocks: dict[int, bytes] = {}
        """The hash of each block that was checked, by its place in the file."""
        self._head = b""
        self._digest = b""
        self._size = os.fstat(descriptor).st_size
        self.models: tuple[PackedModel, ...] = ()

    @classmethod
    def open(cls, path: str) -> Self:
        """Open a pack; its rows are not read yet.

        Raises:
            NotAPack: It is none, or no file.
            PackNewer: A later version wrote it.
            PackDamaged: It has another length than its head says.
            FilestoreError: It cannot be read.
        """
        try:
            descriptor = disk.open_regular(path, follow_links=True)
        except disk.NotAFileError as error:
            raise NotAPack(path, error.message) from error
        except OSError as error:
            disk.pass_limits(error)
            reason = error.strerror or str(error)
            raise FilestoreError(
                f"cannot read {path}: {reason}; name a pack that can be read"
            ) from error
        pack = cls(path, descriptor)
        with on_error(pack.close):
            head = os.pread(pack._descriptor, _HEAD.size, 0)
            if not head.startswith(_MAGIC):
                raise NotAPack(pack._path, "it does not begin like one")
            if len(head) < _HEAD.size:
                raise pack._cut()
            _, version, count, pack._digest = _HEAD.unpack(head)
            if version > VERSION:
                raise PackNewer(pack._path, version)
            if version != VERSION or not 0 < count <= _MOST_MODELS:
                raise PackDamaged(pack._path, "its head says nothing that can be")
            table, listed = b"", []
            for _ in range(count):
                entry = pack._at(_HEAD.size + len(table), _MODEL.size)
                vectors, dimension, length = _MODEL.unpack(entry)
                if not 0 < length <= _LONGEST_FINGERPRINT:
                    raise PackDamaged(pack._path, f"a fingerprint of {length:,} bytes")
                name = pack._at(_HEAD.size + len(table) + len(entry), length)
                listed.append((name, dimension, vectors))
                table += entry + name
            pack._head = head[:_UNSEALED] + table
            pack._take(listed, _HEAD.size + len(table))
        return pack

    def close(self) -> None:
        """Let go of the file; a second time does nothing."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    @property
    def info(self) -> PackInfo:
        """What its head says."""
        return PackInfo(
            path=self._path,
            version=VERSION,
            size_bytes=self._size,
            digest=ORIGIN_PREFIX + self._digest.hex(),
            models=self.models,
        )

    def of(self, fingerprint: str) -> PackedModel | None:
        """What it has of one model."""
        return next((one for one in self.models if one.fingerprint == fingerprint), None)

    def check(self, on_rows: OnRows = lambda _: None) -> None:
        """Read everything: digest, checksums, order of the keys, lengths of the vectors.

        Raises:
            PackDamaged: Something does not hold.
        """
        hashed = hashlib.sha256()
        done = 0
        for model in self.models:
            last = b""
            for place, data in self._read(model):
                rows = _rows(model, data)
                problem = _problem(model, rows, last)
                if problem:
                    raise PackDamaged(self._path, problem)
                hashed.update(data)
                self._blocks[place] = content_hash(data)
                last = rows[-1][0]
                done += len(rows)
                on_rows(done)
        hashed.update(self._head)
        if hashed.digest() != self._digest:
            raise PackDamaged(self._path, "its digest does not hold")

    def blocks(self, model: PackedModel) -> "Iterator[tuple[list[bytes], NDArray[float32]]]":
        """Keys and vectors in key order, some megabytes at a time; to be checked before.

        Raises:
            PackDamaged: The file changed since it was checked.
        """
        for place, data in self._read(model):
            if self._blocks.get(place) != content_hash(data):
                raise PackDamaged(self._path, "it changed while it was read")
            rows = _rows(model, data)
            yield [key for key, _, _ in rows], _vectors(model, rows)

    def find(self, model: PackedModel, keys: Iterable[bytes]) -> "dict[bytes, NDArray[float32]]":
        """The vectors of those of the keys that it has.

        Raises:
            PackDamaged: A row is not as it was checked.
        """
        found = {}
        for key in keys:
            # Where the first row begins whose key is not before this one.
            low, high = 0, model.vectors
            while low < high:
                middle = (low + high) // 2
                if self._at(model.start + middle * model.row_bytes, _KEY_BYTES) < key:
                    low = middle + 1
                else:
                    high = middle
            place = model.start + low * model.row_bytes
            data = self._at(place, model.row_bytes) if place < model.end else b""
            if data[:_KEY_BYTES] != key:
                continue
            rows = _rows(model, data)
            if problem := _problem(model, rows, b""):
                raise PackDamaged(self._path, problem)
            found[key] = _vectors(model, rows)[0]
        return found

    def _take(self, listed: Sequence[tuple[bytes, int, int]], start: int) -> None:
        """Hold what the head says of the models against the length of the file."""
        names = [name for name, _, _ in listed]
        if any(one >= other for one, other in pairwise(names)):
            raise PackDamaged(self._path, "its models are not in order")
        models = []
        for name, dimension, vectors in listed:
            fingerprint = _decoded(name)
            if fingerprint is None or not 0 < dimension <= _LARGEST_DIMENSION or vectors == 0:
                raise PackDamaged(self._path, "its head says nothing that can be")
            models.append(
                PackedModel(
                    fingerprint=fingerprint, dimension=dimension, vectors=vectors, start=start
                )
            )
            start = models[-1].end
        if start != self._size:
            raise PackDamaged(self._path, f"it has {self._size:,} bytes, its head says {start:,}")
        self.models = tuple(models)

    def _read(self, model: PackedModel) -> Iterator[tuple[int, bytes]]:
        step = max(1, _BLOCK_BYTES // model.row_bytes) * model.row_bytes
        for place in range(model.start, model.end, step):
            yield place, self._at(place, min(step, model.end - place))

    def _at(self, place: int, size: int) -> bytes:
        """`size` bytes of the file, at most some megabytes."""
        try:
            data = os.pread(self._descriptor, size, place)
            while len(data) < size and (
                more := os.pread(self._descriptor, size - len(data), place + len(data))
            ):
                data += more
        except OSError as error:
            disk.pass_limits(error)
            reason = error.strerror or str(error)
            raise PackDamaged(self._path, f"it cannot be read: {reason}") from error
        if len(data) < size:
            raise self._cut()
        return data

    def _cut(self) -> PackDamaged:
        return PackDamaged(self._path, f"it ends after {self._size:,} bytes")


class Source(Struct, frozen=True, kw_only=True):
    """The embeddings of one model on their way into a pack."""

    fingerprint: str
    dimension: int
    batches: Iterable[Batch]
    """By key; none twice."""


def is_pack(head: bytes) -> bool:
    """Whether a file that begins so is a pack, of whatever version."""
    return head.startswith(_MAGIC)


def write(
    descriptor: int, sources: Iterable[Source], on_rows: OnRows = lambda _: None
) -> tuple[PackedModel, ...]:
    """Write a pack into an empty file; what no reader would take is left out, whatever wrote it.

    Args:
        descriptor: Of the file, at its beginning.
        sources: In any order, each fingerprint once; those without a vector are left out.
        on_rows: Called with how many rows are written.

    Returns:
        What was written of each model; nothing at all where there is none.
    """
    begun = []
    for source in sorted(sources, key=lambda one: _name(one)):
        blocks = _packed(source)
        for first in blocks:
            begun.append((source, chain([first], blocks)))
            break
    if not begun:
        return ()
    start = _HEAD.size + sum(_MODEL.size + len(_name(source)) for source, _ in begun)
    os.lseek(descriptor, start, os.SEEK_SET)
    hashed = hashlib.sha256()
    models: list[PackedModel] = []
    done = 0
    for source, blocks in begun:
        vectors = 0
        for count, data in blocks:
            disk.write_all(descriptor, data)
            hashed.update(data)
            vectors += count
            on_rows(done + vectors)
        done += vectors
        model = PackedModel(
            fingerprint=source.fingerprint,
            dimension=source.dimension,
            vectors=vectors,
            start=start,
        )
        models.append(model)
        start = model.end
    head = _HEAD.pack(_MAGIC, VERSION, len(models), b"")[:_UNSEALED]
    table = b"".join(map(_entry, models))
    hashed.update(head + table)
    os.pwrite(descriptor, head + hashed.digest() + table, 0)
    return tuple(models)


def _entry(model: PackedModel) -> bytes:
    name = model.fingerprint.encode()
    return _MODEL.pack(model.vectors, model.dimension, len(name)) + name


def _name(source: Source) -> bytes:
    name = source.fingerprint.encode()
    fits = 0 < len(name) <= _LONGEST_FINGERPRINT and 0 < source.dimension <= _LARGEST_DIMENSION
    if not fits or _decoded(name) is None:
        raise FilestoreError(
            f"the model {source.fingerprint[:80]!r} cannot be packed: a fingerprint of"
            f" {len(name):,} bytes, {source.dimension:,} numbers; name others with --model",
        )
    return name


def _packed(source: Source) -> Iterator[tuple[int, bytes]]:
    """The rows of a model as they are in a pack, some at a time, with their number."""
    import numpy

    seed = seed_of(source.fingerprint)
    last = b""
    for keys, raw in source.batches:
        vectors = numpy.frombuffer(b"".join(raw), "<f4").reshape(len(raw), source.dimension)
        odd = odd_lengths(vectors)
        parts: list[bytes] = []
        for place, (key, vector) in enumerate(zip(keys, raw, strict=True)):
            if place not in odd and len(key) == _KEY_BYTES and key > last:
                parts += key, row_checksum(seed, key, vector), vector
                last = key
        if parts:
            yield len(parts) // 3, b"".join(parts)


def _rows(model: PackedModel, data: bytes) -> list[Row]:
    checksum, vector = _KEY_BYTES, _KEY_BYTES + _CHECKSUM_BYTES
    return [
        (
            data[place : place + checksum],
            data[place + checksum : place + vector],
            data[place + vector : place + model.row_bytes],
        )
        for place in range(0, len(data), model.row_bytes)
    ]


def _vectors(model: PackedModel, rows: Sequence[Row]) -> "NDArray[float32]":
    import numpy

    data = b"".join(vector for _, _, vector in rows)
    vectors = numpy.frombuffer(data, "<f4").reshape(len(rows), model.dimension)
    return vectors.astype(numpy.float32, copy=False)


def _problem(model: PackedModel, rows: Sequence[Row], last: bytes) -> str:
    """What is wrong with some rows that follow a key; "" where nothing is."""
    seed = seed_of(model.fingerprint)
    if not are_sound(seed, rows):
        key = next(
            key for key, checksum, vector in rows if not is_sound(seed, key, checksum, vector)
        )
        return f"the checksum of vector {key.hex()[:16]} does not hold"
    for key, _, _ in rows:
        if key <= last:
            return f"vector {key.hex()[:16]} appears twice, or is out of order"
        last = key
    for place, length in odd_lengths(_vectors(model, rows)).items():
        return f"vector {rows[place][0].hex()[:16]} has length {length:.4g}, expected 1"
    return ""


def _decoded(name: bytes) -> str | None:
    """The text of a fingerprint; None for one that would not stay on its line when it is shown."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None

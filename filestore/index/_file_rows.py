"""Backends that keep files: rows in memory, written whole by `save`.

The vectors come with lines of JSON, with a checksum each. The first line is the stamp; it says how
many lines follow, and which. A line is read only when its checksum is right, and a file only when
all of them are: a part of an index is no index.
"""

import contextlib
import os
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

import orjson
from msgspec import Struct, field
from xxhash import xxh3_128, xxh3_128_hexdigest

from filestore.core.hashing import content_hash
from filestore.core.safe_text import listed, shown_path
from filestore.fs import disk
from filestore.index import ExactIndex, Where
from filestore.index.backend import (
    BackendChoice,
    BackendSettingsWrong,
    BackendUnreachable,
    BackendUnusable,
    Capabilities,
    EmbedConfig,
    Hit,
    IndexBackend,
    Item,
    Stamp,
    State,
    check_length,
    check_stamp,
    check_where,
    checked_options,
    digest,
    docs_of,
    not_announced,
    satisfies,
    whitelisted,
)
from filestore.index.faiss_index import FaissIndex, flat_parts

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray


FORMAT: Final = "filestore-index/1"
_START: Final = b'{"sum":"'
_HEX: Final = 32
_AFTER: Final = len(_START) + _HEX + len(b'",')
_MOST_LINE: Final = 64 * 1024 * 1024
_NAMED: Final = 5
"""How many damaged lines are named by number."""


class Head(Struct, frozen=True, kw_only=True):
    """The first line."""

    stamp: Stamp
    items: int
    of: str
    """Over the checksums of all lines that follow, in their order."""
    more: dict[str, Any] = field(default_factory=dict)
    """What the backend that wrote it needs besides."""


def written(stamp: Stamp, rows: Iterable[dict[str, Any]], more: dict[str, Any]) -> bytes:
    """The bytes of a file: the same for the same rows."""
    lines, over = [], xxh3_128()
    for row in rows:
        line = _line(row)
        over.update(line[len(_START) : len(_START) + _HEX])
        lines.append(line)
    head = {
        "format": FORMAT,
        "owner": stamp.owner,
        "generation": stamp.generation,
        "fingerprint": stamp.embed.fingerprint,
        "dimension": stamp.embed.dimension,
        "items": len(lines),
        "of": over.hexdigest(),
        "more": more,
    }
    return b"".join([_line(head), *lines])


def _line(value: dict[str, Any]) -> bytes:
    body = orjson.dumps(value)
    return _START + xxh3_128_hexdigest(body).encode() + b'",' + body[1:] + b"\n"


def read_head(path: str) -> Head | None:
    """The first line of a file; None where there is no file.

    Raises:
        BackendUnusable: It is no such file, or that line is damaged.
        BackendUnreachable: The disk does not give it.
    """
    for number, line in _lines(path):
        return _head(path, number, line)
    return None


def _read_lines(path: str) -> tuple[Head, list[dict[str, Any]]] | None:
    """All of a file; None where there is none.

    Raises:
        BackendUnusable: It is no such file, or a line is damaged, missing or too many.
        BackendUnreachable: The disk does not give it.
    """
    head: Head | None = None
    rows, damaged, over = [], [], xxh3_128()
    for number, line in _lines(path):
        if head is None:
            head = _head(path, number, line)
            continue
        over.update(line[len(_START) : len(_START) + _HEX])
        row = _checked(line)
        if row is None:
            damaged.append(number)
        else:
            rows.append(row)
    if head is None:
        return None
    if damaged:
        numbers = listed(damaged, _NAMED)
        raise unusable(path, f"{len(damaged):,} of {head.items:,} lines are damaged: {numbers}")
    if len(rows) != head.items or over.hexdigest() != head.of:
        raise unusable(path, f"its first line counts {head.items:,} others, found {len(rows):,}")
    return head, rows


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers; an empty one has one empty line."""
    try:
        descriptor = disk.open_regular(path)
    except FileNotFoundError:
        return
    except OSError as error:
        disk.pass_limits(error)
        raise unreachable(path, error) from error
    with os.fdopen(descriptor, "rb") as file:
        number = 0
        while True:
            try:
                line = file.readline(_MOST_LINE)
            except OSError as error:
                raise unreachable(path, error) from error
            if not line and number:
                return
            number += 1
            yield number, line
            if not line:
                return


def _checked(line: bytes) -> dict[str, Any] | None:
    """What a line says; None where its checksum is wrong."""
    if not line.startswith(_START) or not line.endswith(b"}\n"):
        return None
    body = b"{" + line[_AFTER:-1]
    if line[len(_START) : _AFTER] != xxh3_128_hexdigest(body).encode() + b'",':
        return None
    try:
        value: dict[str, Any] = orjson.loads(body)
    except ValueError:
        return None
    return value


def _head(path: str, number: int, line: bytes) -> Head:
    found = _checked(line)
    if found is None or found.get("format") != FORMAT:
        raise unusable(path, f"line {number} is not what an index of filestore begins with")
    embed = EmbedConfig(fingerprint=found["fingerprint"], dimension=found["dimension"])
    stamp = Stamp(owner=found["owner"], generation=found["generation"], embed=embed)
    return Head(stamp=stamp, items=found["items"], of=found["of"], more=found["more"])


def unusable(path: str, what: str) -> BackendUnusable:
    """Say what is wrong with a file."""
    shown = shown_path(path)
    return BackendUnusable(
        f"{shown} cannot be used: {what}",
        remedy="name another path, or move it away and run 'filestore sync --full', which"
        " writes it again",
    )


def unreachable(path: str, error: OSError) -> BackendUnreachable:
    """Say that the disk does not give a file."""
    return BackendUnreachable(
        f"cannot read {shown_path(path)}: {error.strerror or error}"
        "; make it readable, or set another path"
    )


_PAYLOAD: Final = {"id": int, "doc_id": str, "content_hash": str, "text": str, "metadata": dict}
"""What a line says of a row."""
_METRICS: Final = ("cosine", "l2")
"""Vectors have length 1: both give the same order, and the score is the inner product."""
_MOST_BYTES: Final = 64 * 2**30
_HASH: Final = "faiss"


class Row(Struct, frozen=True, kw_only=True):
    """What is next to a vector."""

    doc_id: str
    content_hash: str
    text: str
    metadata: Mapping[str, Any]


class FileRows(IndexBackend):
    """Rows by id next to an index in memory; `save` writes both, and nothing before it does."""

    capabilities = Capabilities(filters=True, compares=True, atomic=True, batch=10_000)

    _compared_by: ClassVar[type[ExactIndex] | type[FaissIndex]]

    def __init__(
        self, choice: BackendChoice, options: Mapping[str, Any], path: str, *, stamped: str = ""
    ) -> None:
        self._path = os.path.normpath(os.path.join(choice.folder, path))
        self._stamp_path = self._path + stamped
        """The file that begins with the stamp."""
        self._whitelist: tuple[str, ...] = tuple(options.get("metadata_whitelist", ()))
        self._rows: dict[int, Row] = {}
        self._index: ExactIndex | FaissIndex | None = None
        self._embed: EmbedConfig | None = None

    def set_embed_config(self, embed: EmbedConfig) -> None:
        """See the contract."""
        if self._index is None:
            self._index = self._compared_by(embed.dimension)
        check_length(embed.dimension, self._index.dimension, self.address())
        self._embed = embed

    @property
    def dim(self) -> int | None:
        """See the contract."""
        return None if self._index is None else self._index.dimension

    def stamp(self) -> Stamp | None:
        """See the contract."""
        head = read_head(self._stamp_path)
        return None if head is None else head.stamp

    @property
    def state(self) -> State:
        """See the contract."""
        rows = ((key, row.doc_id, row.content_hash) for key, row in self._rows.items())
        return State(stamp=self.stamp(), docs=docs_of(rows))

    def upsert(self, items: Iterable[Item], *, skip_existing: bool = True) -> int:
        """See the contract."""
        import numpy

        coming, written = iter(items), 0
        while batch := list(islice(coming, self.capabilities.batch)):
            for item in batch:
                check_length(len(item.vector), self.dim, self.address())
            some = [
                one
                for one in batch
                if not skip_existing
                or (row := self._rows.get(one.id)) is None
                or row.content_hash != one.content_hash
            ]
            if self._index is not None and some:
                ids = numpy.array([item.id for item in some], numpy.int64)
                self._index.add(ids, numpy.array([item.vector for item in some], numpy.float32))
            for item in some:
                self._rows[item.id] = Row(
                    doc_id=item.doc_id,
                    content_hash=item.content_hash,
                    text=item.text,
                    metadata=whitelisted(item.metadata, self._whitelist),
                )
            written += len(some)
        return written

    def delete(self, ids: Collection[int]) -> int:
        """See the contract."""
        import numpy

        held = [identifier for identifier in set(ids) if self._rows.pop(identifier, None)]
        if self._index is not None and held:
            self._index.remove(numpy.array(held, numpy.int64))
        return len(held)

    def query(
        self,
        vector: "NDArray[float32]",
        *,
        top_k: int | None = None,
        where: Where = (),
        allowed: "NDArray[int64] | None" = None,
    ) -> list[Hit]:
        """See the contract."""
        check_where(where, self._whitelist)
        if self._expected is not None:
            check_stamp(self.stamp(), self._expected, self.address())
        if self._index is None or not self._rows:
            return []
        check_length(len(vector), self.dim, self.address())
        if where:
            import numpy

            some = self._rows if allowed is None else allowed.tolist()
            held = (one for one in some if one in self._rows)
            kept = [one for one in held if satisfies(self._rows[one].metadata, where)]
            allowed = numpy.array(kept, numpy.int64)
        count = len(self._rows) if top_k is None else min(top_k, len(self._rows))
        return [
            Hit(id=found, score=score, text=row.text, metadata=row.metadata)
            for found, score in self._index.search(vector, count, allowed=allowed)
            for row in (self._rows[found],)
        ]

    def digests(self, ids: "NDArray[int64] | None" = None) -> Mapping[int, bytes]:
        """See the contract."""
        import numpy

        some = self._rows if ids is None else (one for one in ids.tolist() if one in self._rows)
        keys = numpy.array(sorted(some), numpy.int64)
        if self._index is None or not len(keys):
            return {}
        return dict(zip(keys.tolist(), digest(self._index.vectors_of(keys)), strict=True))

    def _remove(self, *paths: str) -> None:
        """Remove files of ours, in this order; the first tells whether they are.

        Raises:
            BackendUnusable: They are not.
        """
        self._forget()
        if read_head(paths[0]) is None:
            return
        with disk.disk_errors(self._path):
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                disk.sync_path(os.path.dirname(path))

    def _forget(self) -> None:
        """Hold nothing, as before the first upsert."""
        self._rows, self._index, self._embed = {}, None, None

    def address(self) -> str:
        """See the contract."""
        return shown_path(self._path)

    def close(self) -> None:
        """See the contract."""
        self._forget()

    def _stamped(self, owner: str, generation: int) -> Stamp:
        # Anyone who did not load may not know that the file is somebody else's.
        read_head(self._stamp_path)
        if self._embed is None:
            raise not_announced(self.address())
        return Stamp(owner=owner, generation=generation, embed=self._embed)

    def _payload(self, identifier: int) -> dict[str, Any]:
        row = self._rows[identifier]
        return {
            "id": identifier,
            "doc_id": row.doc_id,
            "content_hash": row.content_hash,
            "text": row.text,
            "metadata": row.metadata,
        }

    def _take(self, rows: list[dict[str, Any]]) -> None:
        """Hold the rows of a file.

        Raises:
            BackendUnusable: They are not what `_payload` gives, or two have one id.
        """
        path = self._stamp_path
        if not all(
            _PAYLOAD.items() <= {key: type(one[key]) for key in one}.items() for one in rows
        ):
            raise unusable(path, "a line lacks the data of a vector")
        self._rows = {
            one["id"]: Row(
                doc_id=one["doc_id"],
                content_hash=one["content_hash"],
                text=one["text"],
                metadata=one["metadata"],
            )
            for one in rows
        }
        if len(self._rows) != len(rows):
            raise unusable(path, "two of its lines have the same id")


class LocalRows(FileRows):
    """Vectors as lines of JSON in one file, compared one and all: the judge of other backends.

    Its options are ``path``, in the sidecar's folder, and ``metadata_whitelist``.
    """

    kind = "local"
    _compared_by = ExactIndex

    def __init__(self, choice: BackendChoice) -> None:
        known = {"path": str, "metadata_whitelist": list}
        options = checked_options(choice, needed=(), known=known)
        super().__init__(choice, options, options.get("path") or "index.jsonl")

    def load(self) -> None:
        """See the contract."""
        self._forget()
        found = _read_lines(self._path)
        if found is None:
            return
        head, rows = found
        self.set_embed_config(head.stamp.embed)
        self._take(rows)
        dimension = head.stamp.embed.dimension
        if not rows or self._index is None:
            return
        import numpy

        try:
            parts = [b64decode(one["vector"], validate=True) for one in rows]
        except (KeyError, TypeError, ValueError):
            raise unusable(self._path, "a line has no vector") from None
        if {len(part) for part in parts} != {4 * dimension}:
            raise unusable(self._path, f"not all vectors have {dimension} numbers")
        data = numpy.frombuffer(b"".join(parts), "<f4")
        vectors = data.reshape(-1, dimension).astype(numpy.float32)
        self._index.add(numpy.array([one["id"] for one in rows], numpy.int64), vectors)

    def save(self, *, owner: str, generation: int) -> None:
        """See the contract."""
        stamp = self._stamped(owner, generation)
        import numpy

        ids = sorted(self._rows)
        assert self._index is not None
        vectors = self._index.vectors_of(numpy.array(ids, numpy.int64)).astype("<f4", copy=False)
        data = written(
            stamp,
            (
                [
                    {**self._payload(identifier), "vector": b64encode(row.tobytes()).decode()}
                    for identifier, row in zip(ids, vectors, strict=True)
                ]
            ),
            {},
        )
        with disk.disk_errors(self._path):
            disk.make_folders(os.path.dirname(self._path))
            disk.write_path(self._path, data)

    def clear(self) -> None:
        """See the contract."""
        self._remove(self._path)


class FaissRows(FileRows):
    """A FAISS file; its options are ``path``, ``dim``, ``metric`` and ``metadata_whitelist``.

    The lines of JSON next to the file (``PATH.jsonl``) hold the stamp and the hash of the file.
    FAISS writes it and never reads it: what a clone brings along may be made to do harm. A
    new file is at ``PATH.new`` until the lines that name it are written, so that a kill leaves one
    whole index or the other.
    """

    kind = "faiss"
    _compared_by = FaissIndex

    def __init__(self, choice: BackendChoice) -> None:
        known = {"path": str, "dim": int, "metric": str, "metadata_whitelist": list}
        options = checked_options(choice, needed=("path",), known=known)
        if options.get("metric", "cosine") not in _METRICS:
            raise BackendSettingsWrong(
                f"`metric` of the backend faiss is {' or '.join(_METRICS)}",
                remedy="filestore backend set faiss metric=cosine",
            )
        super().__init__(choice, options, options["path"], stamped=".jsonl")
        self._wanted: int | None = options.get("dim")

    def set_embed_config(self, embed: EmbedConfig) -> None:
        """See the contract."""
        if self._wanted is not None:
            check_length(embed.dimension, self._wanted, self.address())
        super().set_embed_config(embed)

    def load(self) -> None:
        """See the contract."""
        self._forget()
        found = _read_lines(self._stamp_path)
        if found is None:
            if os.path.lexists(self._path):
                is_folder = os.path.isdir(self._path)
                what = "it is a folder" if is_folder else "the lines that describe it are missing"
                raise unusable(self._path, what)
            return
        head, rows = found
        self.set_embed_config(head.stamp.embed)
        self._take(rows)
        self._index = self._parsed(head)

    def _parsed(self, head: Head) -> FaissIndex:
        """The index that the lines name, out of bytes that were checked."""
        dimension = head.stamp.embed.dimension
        for path in (self._path, f"{self._path}.new"):
            data = _read(path)
            if data is None or content_hash(data).hex() != head.more.get(_HASH):
                continue
            ids, vectors = flat_parts(data) or (None, None)
            if ids is None or vectors is None or vectors.shape[1] != dimension:
                raise unusable(path, f"it is not an exact index of dimension {dimension}")
            if sorted(ids.tolist()) != sorted(self._rows):
                raise unusable(path, "its ids are not those of its lines")
            index = FaissIndex(dimension)
            index.add(ids, vectors)
            return index
        raise unusable(self._path, "it is not the file that its lines name")

    def save(self, *, owner: str, generation: int) -> None:
        """See the contract."""
        stamp = self._stamped(owner, generation)
        assert isinstance(self._index, FaissIndex)
        data = self._index.serialized()
        rows = (self._payload(identifier) for identifier in sorted(self._rows))
        lines = written(stamp, rows, {_HASH: content_hash(data).hex()})
        with disk.disk_errors(self._path):
            disk.make_folders(os.path.dirname(self._path))
            self._finish()
            disk.write_path(f"{self._path}.new", data)
            disk.write_path(self._stamp_path, lines)
            self._finish()

    def _finish(self) -> None:
        """Put a new file into its place, if the lines next to it name it already."""
        head = read_head(self._stamp_path)
        waiting = f"{self._path}.new"
        data = None if head is None else _read(waiting)
        if data is not None and head and content_hash(data).hex() == head.more.get(_HASH):
            os.replace(waiting, self._path)
            disk.sync_path(os.path.dirname(self._path))

    def clear(self) -> None:
        """See the contract."""
        self._remove(self._stamp_path, self._path, f"{self._path}.new")


def _read(path: str) -> bytes | None:
    """All of a file; None where there is none."""
    with contextlib.suppress(FileNotFoundError):
        try:
            return disk.read_path(path, limit=_MOST_BYTES)
        except FileNotFoundError:
            raise
        except OSError as error:
            disk.pass_limits(error)
            raise unreachable(path, error) from error
    return None

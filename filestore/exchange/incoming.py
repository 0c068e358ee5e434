"""What comes from outside, judged: what it is called in a store, its chunk files, its vectors.

Writes nothing but vectors that are kept aside. Three rules: a name from outside never becomes a
path before every part of it was judged, and what some file system could not hold, or tell from
another name, is not used; what a file cannot hold of its metadata is named and left out, and the
text is taken; no vector gets into the embeddings before all were read, and the model of the store
gave the same vectors for some of the texts, chosen by chance.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from filestore.chunks import chunk_file, order_key
from filestore.chunks.frontmatter import serialize
from filestore.chunks.layout import Layout
from filestore.chunks.observation import INDEXED, MAX_CHUNK_BYTES, Observation, why_excluded
from filestore.config.layout import RECORD_NAME, folded_path
from filestore.core.errors import FilestoreError
from filestore.core.frontmatter_yaml import MAX_BLOCK_BYTES
from filestore.core.hashing import DIGEST_BYTES, origin_hash
from filestore.core.paths import CHUNKS, ChunkPath, around, inside
from filestore.embed import (
    COMPARED,
    LEAST_COSINE,
    EndpointError,
    ModelMissing,
    ModelUnusable,
    Sampled,
    first_unlike,
    odd_lengths,
)
from filestore.exchange.base import Chunk, Resource
from filestore.fs import part
from filestore.fs.scan import MAX_DEPTH
from filestore.history.batch import is_truth
from filestore.verify.names import DECEIVING, why_no_name, why_unportable

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed import Embedder
    from filestore.embed.cache import EmbeddingCache

_MOST_BYTES: Final = 200
"""Of a name that is made up of a stranger's: room is left for a tag."""
_MOST_PATH_BYTES: Final = 1_000
_UNSAFE: Final = re.compile(rf'[<>:"|?*\\/{DECEIVING}]+')
_CHANGED: Final = "-"


def is_usable(path: str) -> bool:
    """Whether a path below `chunked/` may be written: each part a name that all systems hold."""
    parts = path.split("/")
    return (
        len(parts) <= MAX_DEPTH
        and len(path.encode("utf-8", "replace")) <= _MOST_PATH_BYTES
        and not any(why_no_name(part) or why_unportable(part) for part in parts)
        and is_truth(CHUNKS.store_path(ChunkPath(path)))
    )


def folder_name(name: str) -> str:
    """A name that a resource may have, as near to a stranger's as can be."""
    text = name.encode("utf-8", "replace").decode()
    if _is_folder(text):
        return text
    made = _shortened(_UNSAFE.sub(_CHANGED, text).strip(" -").lstrip(".").strip(" .-"))
    # What is left may be the name of a device, or the short name of something hidden.
    return made if _is_folder(made) else f"resource-{tag_of(name, 8)}"


def _shortened(name: str) -> str:
    return name.encode()[:_MOST_BYTES].decode("utf-8", "ignore").rstrip(" .-")


def _is_folder(name: str) -> bool:
    return "/" not in name and is_usable(f"{name}/{RECORD_NAME}")


def tag_of(name: str, length: int) -> str:
    """Some base-32 characters that tell a name from others."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode()[:length].lower()


class _Paths(Struct, kw_only=True):
    """The paths in use in one place, as a file system that ignores case sees them."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    """On the way to these: none of them can be a file as well."""

    def are_free(self, path: str) -> bool:
        """Whether nothing is at a path, nor on the way to it."""
        folded = folded_path(path)
        return folded not in self.folders and self.files.isdisjoint(around(folded))

    def take(self, path: str) -> None:
        """Let nothing else have it."""
        folded, *folders = around(folded_path(path))
        self.files.add(folded)
        self.folders.update(folders)


class Names(Struct):
    """The names of one import: two resources never share one."""

    layout: Layout
    _by_name: dict[str, ResourceNames] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    """What resources are called, as a file system that ignores case sees it."""
    _top: _Paths = field(default_factory=_Paths)
    """Of what lies in no folder: all of the flat layout, in a tree the chunks of no resource."""

    def __post_init__(self) -> None:
        if self.layout.has_folders:
            # There they lie among the folders of the resources.
            self._top.folders = self._used

    def of(self, resource: Resource) -> ResourceNames:
        """The names of a resource, the same for each of its parts."""
        known = self._by_name.get(resource.name)
        if known is None:
            folder = folder_name(resource.name) if resource.name else ""
            if folder:
                others = set[str]() if self.layout.shares_folder else self._top.files
                start, tries = _shortened(folder), 0
                while (folded := folded_path(folder)) in self._used or folded in others:
                    folder = f"{start}-{tag_of(resource.name + '~' * tries, 6)}"
                    tries += 1
                self._used.add(folded)
            is_top = self.layout.shares_folder or not folder
            paths = self._top if is_top else _Paths(files={folded_path(f"{folder}/{RECORD_NAME}")})
            known = ResourceNames(layout=self.layout, own=resource.name, name=folder, paths=paths)
            self._by_name[resource.name] = known
        known.see(resource)
        return known


class ResourceNames(Struct, kw_only=True):
    """The names of one resource."""

    layout: Layout
    own: str
    """What it was called."""
    name: str
    """What it is called in the store; "" for chunks of none."""
    paths: _Paths
    _number: int = 0
    _next: int = 0
    """A number from which on no name was made up yet."""
    _source: str = ""

    def see(self, resource: Resource) -> None:
        """Take notice of what a record says."""
        source = resource.record.get("source") if resource.record is not None else None
        if isinstance(source, str):
            self._source = source

    @property
    def record_path(self) -> ChunkPath:
        """Where its record belongs."""
        if self.layout.shares_folder:
            return ChunkPath(f"{chunk_file.record_stem(self._source or self.name)}.json")
        return inside(ChunkPath(self.name), RECORD_NAME)

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Its record as this layout has it."""
        rest = {key: value for key, value in record.items() if key != "resource"}
        if self.layout.has_folders:
            return rest
        first = {key: value for key, value in rest.items() if key == "format"}
        return first | {"resource": self.name} | rest

    def place(self, chunk: Chunk) -> tuple[ChunkPath, dict[str, Any]]:
        """Where a chunk belongs, and its frontmatter there."""
        self._number += 1
        frontmatter = dict(chunk.frontmatter)
        # The path that it had, in the folder that its resource has now.
        old, start = chunk.path, f"{self.own}/"
        if self.layout.shares_folder or not self.name:
            moved = old if "/" not in old else ""
        else:
            moved = f"{self.name}/{old.removeprefix(start)}" if old.startswith(start) else ""
        if moved.endswith(".md") and is_usable(moved) and self.paths.are_free(moved):
            path = ChunkPath(moved)
        else:
            path = self._made_up(chunk, frontmatter)
        self.paths.take(path)
        return path, frontmatter

    def _made_up(self, chunk: Chunk, frontmatter: dict[str, Any]) -> ChunkPath:
        if self.layout.shares_folder:
            if not isinstance(frontmatter.get("source"), str):
                frontmatter["source"] = self._source or self.own
            if not isinstance(frontmatter.get("order"), str):
                frontmatter["order"] = order_key.number_key(self._number)
            source = frontmatter["source"]
            name = chunk_file.flat_name(source, chunk.text, ())
            taken = self.paths.files
            if name in taken:
                # A text that comes again is named by its place, not by trying name after name.
                name = chunk_file.flat_name(f"{source}\0{self._number}", chunk.text, taken)
            return ChunkPath(name)
        kind = "summary" if frontmatter.get("kind") == "summary" else "chunk"
        number = max(self._number, self._next)
        while True:
            path = inside(ChunkPath(self.name), f"{kind}{number}.md")
            number += 1
            if self.paths.are_free(path):
                self._next = number
                return path


_NO_STAT: Final = (0, 0, 0, 0, 0)


class UnusableChunkError(FilestoreError, ValueError):
    """A text cannot be a chunk file."""


def written(
    path: ChunkPath,
    text: str,
    frontmatter: Mapping[str, Any],
    layout: Layout,
    on_left: Callable[[str], None],
) -> Observation:
    """The file of a chunk, as a reader of the tree sees it.

    Args:
        path: Where it is to be.
        text: Its body.
        frontmatter: Any mapping of texts to JSON values.
        layout: Of the store.
        on_left: Called with what of the frontmatter is left out, and why.

    Raises:
        UnusableChunkError: No file with this text would be searched.
    """
    try:
        body = text.encode()
    except UnicodeEncodeError as error:
        raise UnusableChunkError("the text holds half of a character") from error
    if not text.strip():
        raise UnusableChunkError("the text is empty")
    if len(body) > MAX_CHUNK_BYTES:
        raise UnusableChunkError(
            f"the text has {len(body):,} bytes, at most {MAX_CHUNK_BYTES:,} are read"
        )
    values = dict(frontmatter)
    for _ in range(len(values) + 2):
        data, wrong = _serialized(values, body)
        if data is None:
            for key, reason in wrong.items():
                on_left(f"{key!r:.60}: {reason}")
                del values[key]
            continue
        look = Observation(path=path, values=_NO_STAT, state=INDEXED, data=data)
        layout.interpret(look, path.rpartition("/")[2])
        if look.state == INDEXED:
            return look
        if look.state == "conflict-markers" and "origin" not in values:
            # A text about git, not a merge that somebody has to finish.
            values["origin"] = origin_hash(text)
            continue
        keys, reason = _wrong_keys(data, values, look)
        for key in keys:
            on_left(f"{key!r:.60}: {reason}")
            del values[key]
    raise UnusableChunkError("its metadata cannot be written")


def _serialized(values: Mapping[str, Any], body: bytes) -> tuple[bytes | None, dict[str, str]]:
    """The bytes of a file; None where some keys cannot be written, with the reasons."""
    try:
        return serialize(values, body), {}
    except ValueError as error:
        reason = str(error)
    wrong: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for key, value in values.items():
        try:
            sizes[key] = len(serialize({key: value}, b""))
        except ValueError as error:
            wrong[key] = str(error)
    # Each may be well, and all together too large: the largest go.
    total = sum(sizes.values())
    for key in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if total <= MAX_BLOCK_BYTES and wrong:
            break
        total -= sizes[key]
        wrong[key] = reason
    return None, wrong


def _wrong_keys(data: bytes, values: Mapping[str, Any], look: Observation) -> tuple[list[str], str]:
    """The keys that keep a file from being searched, and why.

    Raises:
        UnusableChunkError: It is none of them.
    """
    try:
        chunk_file.parse(data)
    except chunk_file.InvalidMetadata as error:
        if error.key in values:
            return [error.key], error.message
    except ValueError:
        pass
    if look.state == "invalid-metadata" and "kind" in values:
        return ["kind"], look.detail
    if look.state == "malformed-frontmatter" and values:
        # Written well, and yet of more values than are read: some of the largest go.
        largest = sorted(values, key=lambda key: len(serialize({key: values[key]}, b"")))
        return largest[-max(1, len(values) // 4) :], look.detail
    raise UnusableChunkError(why_excluded(look.state, look.detail))


_KEY_BYTES: Final = 2 * DIGEST_BYTES
"""Of an embedding key."""
_FLOAT_BYTES: Final = 4
_AT_ONCE: Final = 2_000


class Vectors:
    """Vectors of one import, in a file without a name. A context manager."""

    def __init__(self, folder: str, dimension: int, chance: random.Random) -> None:
        """Take nothing yet.

        Args:
            folder: Where there is room for all of them.
            dimension: How many numbers each has.
            chance: Chooses the texts that are embedded again.
        """
        self._file = part.unnamed_file(folder)
        self._dimension = dimension
        self._chance = chance
        self._sample: list[Sampled] = []
        self.count = 0
        """How many are kept aside."""
        self.refused = 0
        """How many are not: of another dimension, of another length than 1, not finite."""

    def __enter__(self) -> Vectors:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def take(self, found: Sequence[tuple[str, str, bytes, NDArray[float32]]]) -> None:
        """Keep some aside.

        Args:
            found: Of each its name, its text, its embedding key, and its stated vector.
        """
        import numpy

        fitting = [one for one in found if one[3].shape == (self._dimension,)]
        self.refused += len(found) - len(fitting)
        if not fitting:
            return
        odd = odd_lengths(numpy.stack([vector for *_, vector in fitting]))
        self.refused += len(odd)
        for place, (name, text, key, vector) in enumerate(fitting):
            if place in odd:
                continue
            self._file.write(key + vector.astype("<f4").tobytes())
            one = Sampled(name=name, text=text, vector=vector)
            # Every text so far is compared with the same chance.
            if len(self._sample) < COMPARED:
                self._sample.append(one)
            elif (at := self._chance.randrange(self.count + 1)) < COMPARED:
                self._sample[at] = one
            self.count += 1

    @property
    def compared(self) -> int:
        """How many texts are embedded again."""
        return len(self._sample)

    def problem(self, embedder: Embedder) -> str:
        """Why they are not taken, "" where the model gives the same for some of the texts."""
        try:
            unlike = first_unlike(embedder, self._sample)
        except (EndpointError, ModelMissing, ModelUnusable) as error:
            return f"the model cannot be asked: {error.message}"
        if unlike is None:
            return ""
        one, cosine = unlike
        return (
            f"{embedder.name} gives another vector for {one.name}: their cosine is {cosine:.3f},"
            f" expected at least {LEAST_COSINE}"
        )

    def keep(self, embeddings: EmbeddingCache, fingerprint: str) -> int:
        """Put them into the store's embeddings; how many were not there."""
        import numpy

        row = _KEY_BYTES + self._dimension * _FLOAT_BYTES
        self._file.seek(0)
        new = 0
        while data := self._file.read(row * _AT_ONCE):
            rows = numpy.frombuffer(data, dtype=numpy.uint8).reshape(-1, row)
            keys = [bytes(one) for one in rows[:, :_KEY_BYTES]]
            vectors = numpy.ascontiguousarray(rows[:, _KEY_BYTES:]).view("<f4")
            new += embeddings.put(fingerprint, keys, vectors.astype(numpy.float32, copy=False))
        return new

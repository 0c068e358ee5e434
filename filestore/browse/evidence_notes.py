"""What is known of a derived part, or of an original, in words for the screen of a finding.

Reads the catalog and stats. One rule: nothing outside the store is looked at unless it may be.
"""

import os
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import Catalog, FileRow, queries
from filestore.chunks import kept
from filestore.chunks.layout import describe_unread
from filestore.chunks.observation import MAX_CHUNK_BYTES
from filestore.config.layout import Places
from filestore.config.user_config import Originals
from filestore.core.errors import FilestoreError
from filestore.core.hashing import vector_id
from filestore.fs import disk
from filestore.fulltext import FulltextUnreadable
from filestore.sidecar import fulltext_file, vector_file
from filestore.sidecar.originals import Reachable

if TYPE_CHECKING:
    from filestore.embed.cache import EmbeddingCache

_NAMED: Final = 8
_FOLDER_FILES: Final = 10_000
"""At most this many files of a folder are counted; no part has as many."""


def of_sidecar(
    path: str, places: Places, catalog: Catalog | None, embeddings: "EmbeddingCache | None"
) -> Iterator[str]:
    """Notes on a part of the sidecar.

    Args:
        path: As findings have it, the sidecar or below.
        places: Where the store lies.
        catalog: None where it cannot be read.
        embeddings: None where they cannot be read.
    """
    name = path.removeprefix(places.sidecar_name).strip("/")
    yield _on_disk(os.path.join(places.sidecar, name) if name else places.sidecar, path)
    if name.endswith(vector_file.SUFFIX) or not name:
        yield from _of_index(catalog)
    if name.startswith("catalog") or not name:
        if catalog is None:
            yield "the catalog cannot be read; no passage is embedded twice when it is made again"
        else:
            yield (
                f"the catalog is at generation {catalog.generation} and knows"
                f" {_many(catalog.file_count(), 'file')}, {catalog.indexed_count():,} of them"
                " searchable"
            )
    if name.startswith("embeddings"):
        if embeddings is None:
            yield "the embeddings cannot be read; sound rows are kept, the rest is embedded again"
        else:
            yield from _of_embeddings(embeddings)
    if name.startswith("fulltext"):
        yield from _of_fulltext(places, catalog)
    yield "it is derived: whatever becomes of it, it is made again from the files"


def _on_disk(absolute: str, name: str) -> str:
    try:
        status = os.lstat(absolute)
        if os.path.isdir(absolute) and not os.path.islink(absolute):
            with os.scandir(absolute) as entries:
                sizes = [
                    entry.stat(follow_symlinks=False).st_size
                    for entry, _ in zip(entries, range(_FOLDER_FILES), strict=False)
                ]
            return f"{name}: a folder with {_many(len(sizes), 'file')}, {sum(sizes):,} bytes"
    except FileNotFoundError:
        return f"{name}: it is not there"
    except OSError as error:
        return f"{name}: {error.strerror or error}"
    return f"{name}: {status.st_size:,} bytes, written {moment(status.st_mtime_ns)}"


def _of_index(catalog: Catalog | None) -> Iterator[str]:
    named = catalog.index_file() if catalog is not None else None
    if catalog is None or named is None:
        yield "the catalog names no vector index"
        return
    described = vector_file.describe(catalog)
    kind = f", {described.kind}, {_many(described.vectors, 'vector')}" if described else ""
    yield (
        f"the catalog names {named.name}: {named.size_bytes:,} bytes, hash {named.hash},"
        f" of generation {named.generation}{kind}"
    )
    yield (
        f"the catalog is at generation {catalog.generation}"
        f" and counts {_many(catalog.count('vectors'), 'vector')};"
        f" {queries.unsent_vectors(catalog):,} came or went since that file was written"
    )


def _of_embeddings(embeddings: "EmbeddingCache") -> Iterator[str]:
    try:
        for fingerprint, dimension in sorted(embeddings.fingerprints().items()):
            held = _many(embeddings.count(fingerprint), "embedding")
            yield f"it holds {held} of {fingerprint}, {dimension} numbers each"
    except FilestoreError as error:
        yield error.message


def _of_fulltext(places: Places, catalog: Catalog | None) -> Iterator[str]:
    try:
        stamp = fulltext_file.own_stamp(places, catalog) if catalog is not None else None
    except FulltextUnreadable as error:
        yield error.message
        return
    if catalog is None or stamp is None:
        yield "this catalog has no full-text index of this user"
        return
    yield (
        f"it reflects generation {stamp.generation} with {_many(stamp.documents, 'file')};"
        f" the catalog is at generation {catalog.generation} with {catalog.indexed_count():,}"
    )


def of_vectors(
    row: FileRow, catalog: Catalog, embeddings: "EmbeddingCache | None"
) -> Iterator[str]:
    """Notes on the vectors of a file, part by part."""
    ids = catalog.parts_of(row.id)
    keys = catalog.keys_of_vectors(ids)
    lengths = _lengths(list(keys.values()), catalog, embeddings)
    for number, identifier in enumerate(ids[:_NAMED]):
        part = kept.part_name(row.kind, number)
        key = keys.get(identifier)
        length = lengths.get(identifier)
        if key is None or vector_id(key) != identifier:
            stored = "no passage of the catalog has this id"
        elif length is None:
            stored = "no sound embedding of it is stored"
        else:
            stored = f"its stored embedding has length {length:.6f}"
        yield f"{part} is vector {identifier}: {stored}"
    if len(ids) > _NAMED:
        yield f"and {_many(len(ids) - _NAMED, 'more text')}"


def _lengths(
    keys: list[bytes], catalog: Catalog, embeddings: "EmbeddingCache | None"
) -> dict[int, float]:
    """Vector id to the length of its stored embedding, where there is a sound one."""
    fingerprint = catalog.meta("fingerprint")
    if embeddings is None or fingerprint is None or not keys:
        return {}
    import numpy

    try:
        vectors, found = embeddings.get(fingerprint, keys)
    except FilestoreError:
        return {}
    with numpy.errstate(all="ignore"):
        lengths = numpy.sqrt(numpy.einsum("ij,ij->i", vectors, vectors, dtype=numpy.float64))
    sound = zip(keys, lengths.tolist(), found.tolist(), strict=True)
    return {vector_id(key): length for key, length, is_sound in sound if is_sound}


def of_original(
    source: str, places: Places, catalog: Catalog | None, originals: Originals
) -> Iterator[str]:
    """Notes on a file that is none of the tree: an original, the settings.

    Args:
        source: Relative to the store root.
        places: Where the store lies.
        catalog: None where it cannot be read.
        originals: Where this user lets the store look, besides its work tree.
    """
    path = Reachable(places, originals).path(source)
    if path is None:
        yield f"{source}: it is not looked at, 'filestore trust --list' tells why"
    else:
        yield _on_disk(path, source)
    if catalog is None:
        return
    for _, resource, document, digest in catalog.documents():
        if document == source:
            made = len(catalog.files_from([source])) or queries.generated_count(catalog, resource)
            yield f"when it was added its bytes had {digest}"
            yield f"made from it: {_many(made, 'chunk file')} of {resource or 'the store'}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


_TEXT_START: Final = 8192
"""A file with a NUL in this many first bytes is no text, as git has it."""


class Present(Struct, frozen=True, kw_only=True):
    """What is at a path."""

    data: bytes | None = None
    """None where nothing is read; `problem` says why."""
    size_bytes: int = 0
    mtime_ns: int = 0
    problem: str = ""
    is_gone: bool = False

    @property
    def is_text(self) -> bool:
        """Whether there are bytes that a person can read."""
        return self.data is not None and b"\0" not in self.data[:_TEXT_START]

    @property
    def text(self) -> str:
        """The bytes as text, bytes that are no UTF-8 by their numbers."""
        return (self.data or b"").decode("utf-8", "backslashreplace")


GONE: Final = Present(problem="there is no file", is_gone=True)


def look(root: str, path: str) -> Present:
    """Look at a file.

    Args:
        root: A folder; a link to one is followed.
        path: Relative to it, with forward slashes.
    """
    try:
        parent, _, name = path.rpartition("/")
        with disk.folder_at(root) as handle, disk.folder(handle, parent) as folder:
            name = name or "."
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            size, stamp = status.st_size, status.st_mtime_ns
            problem = ""
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink(os.fsencode(name), dir_fd=folder)
                problem = describe_unread("symlink", name, status.st_mode, size, target)
            elif not stat.S_ISREG(status.st_mode):
                problem = describe_unread("special-file", name, status.st_mode, size)
            elif size > MAX_CHUNK_BYTES:
                problem = f"{size:,} bytes, too many to be read here"
            if problem:
                return Present(size_bytes=size, mtime_ns=stamp, problem=problem)
            try:
                data, status = disk.read_at(folder, name, limit=MAX_CHUNK_BYTES)
            except OSError as error:
                reason, is_gone = error.strerror or str(error), isinstance(error, FileNotFoundError)
                return Present(size_bytes=size, mtime_ns=stamp, problem=reason, is_gone=is_gone)
            return Present(data=data, size_bytes=status.st_size, mtime_ns=status.st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    except (OSError, ValueError) as error:
        return Present(problem=getattr(error, "strerror", None) or str(error))


def moment(stamp_ns: int) -> str:
    """A stamp of a file in words, local time; "" for one that no calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp_ns // 1_000_000_000))
    except (OverflowError, OSError, ValueError):
        return ""

"""FAISS + JSON: an index beside JSON that says what its vectors are of, in two variants.

A folder of four files (`_faiss_folder`), or two files, `vectors-NAME.faiss` and
`metadata-NAME.json`, which has the list of chunks and the map of documents of `.ragmd`. FORMAT.md
says what we put where. One rule: what is read comes from strangers, and FAISS never sees it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import orjson

from filestore.core.hashing import content_hash
from filestore.core.safe_text import brief, listed, shown_path
from filestore.exchange.base import Collection, Form, TargetRefused
from filestore.exchange.vector_files import faiss_bytes, faiss_folder, mapped
from filestore.exchange.vector_files.document_map import (
    MOST_BYTES,
    MOST_JSON_BYTES,
    UNKNOWN_TIME,
    DocumentMap,
    check_count,
    check_index,
    check_map,
    check_time,
    naming,
    read_bytes,
    read_json,
    refuse,
    too_large,
    utc,
)
from filestore.fs import disk, staged_file
from filestore.fs.staged_file import staged

VERSION: Final = "1.0"
_VECTORS: Final = re.compile(r"vectors-(.+)\.faiss", re.DOTALL)
_METADATA: Final = re.compile(r"metadata-(.+)\.json", re.DOTALL)
_CHECKSUM: Final = "vectors_xxh3"
"""The key for the hash of the file beside, which tells one that was replaced alone."""
_REMEDY: Final = "name another place, or an empty folder"


class FaissJson(Form):
    """The form `faiss-json`."""

    name: ClassVar[str] = "faiss-json"

    def __init__(self, now: Callable[[], str] = lambda: utc(time.time())) -> None:
        self._now = now

    def write(self, target: str, collection: Collection) -> tuple[str, ...]:
        """See `Form.write`; a target named `vectors-NAME.faiss` gets the variant of two files."""
        check_target(target)
        made = mapped.of_collection(collection, flat=faiss_bytes.L2, now=self._now())
        return write_map(target, made)

    def read(self, source: str) -> Collection:
        """See `Form.read`."""
        found, left_out = read_map(source)
        with naming(source):
            collection = mapped.to_collection(found)
        for sentence in left_out:
            collection.left_out.add(sentence)
        return collection


def is_pair(path: str) -> bool:
    """Whether a path is that of a file of the variant of two files."""
    name = os.path.basename(path)
    return bool(_VECTORS.fullmatch(name) or _METADATA.fullmatch(name))


def read_map(source: str) -> tuple[DocumentMap, Sequence[str]]:
    """Read either variant, whoever wrote it; with what of it was not taken.

    Args:
        source: A folder, or one of two files.

    Raises:
        FormDamaged: It is none, or its files disagree.
        FileNotFoundError: There is nothing.
    """
    with naming(source):
        if is_pair(source) and not os.path.isdir(source):
            return _read_pair(os.path.dirname(source), _stem(os.path.basename(source))), ()
        try:
            there = set(os.listdir(source))
        except NotADirectoryError:
            refuse("it is no folder", "name a folder, or a file called vectors-NAME.faiss")
        pairs = sorted(match[1] for match in map(_VECTORS.fullmatch, there) if match)
        if there.intersection(faiss_folder.FILES) or not pairs:
            return faiss_folder.read(source)
        if len(pairs) > 1:
            some = listed(f"vectors-{one}.faiss" for one in pairs)
            refuse(f"it has {len(pairs):,} indexes: {some}", "name the file of one of them")
        return _read_pair(source, pairs[0]), ()


def write_map(target: str, made: DocumentMap) -> tuple[str, ...]:
    """Write the folder, or two files where the target is named like one; returns their paths.

    Raises:
        TargetRefused: Other things are there, or it would be larger than is read.
        WriteFailedError: The disk refused; what was there is untouched.
    """
    check_target(target)
    if made.rows.nbytes + 1_000 > MOST_BYTES:
        raise too_large(target, made.rows.nbytes)
    return _write_pair(target, made) if is_pair(target) else faiss_folder.write(target, made)


def check_target(target: str) -> None:
    """Let nothing be replaced that is not of this form.

    Raises:
        TargetRefused: Other things are there.
    """
    try:
        if os.path.islink(target):
            raise TargetRefused(f"{shown_path(target)} is a symbolic link", remedy=_REMEDY)
        if is_pair(target):
            _check_files(target)
        else:
            faiss_folder.check_target(target)
    except OSError as error:
        disk.pass_limits(error)
        raise TargetRefused(
            f"{shown_path(target)} is not written: {error.strerror or error}", remedy=_REMEDY
        ) from error


def _check_files(target: str) -> None:
    """Let an index and its metadata be replaced, and nothing else."""
    folder, name = os.path.split(target)
    vectors, metadata = _names(_stem(name))
    for path, start in ((vectors, b"I"), (metadata, b"{")):

        def begins(head: bytes, start: bytes = start) -> bool:
            return head[:1] in (start, b"")

        staged_file.check_target(
            os.path.join(folder, path),
            begins,
            found="it is no part of an index",
        )


def _stem(name: str) -> str:
    """What the names of two files have in common."""
    match = _VECTORS.fullmatch(name) or _METADATA.fullmatch(name)
    assert match is not None
    return match[1]


def _names(stem: str) -> tuple[str, str]:
    return f"vectors-{stem}.faiss", f"metadata-{stem}.json"


def _read_pair(folder: str, stem: str) -> DocumentMap:
    vectors, metadata = _names(stem)
    for name in (vectors, metadata):
        if not os.path.lexists(os.path.join(folder, name)):
            refuse(f"there is no {shown_path(name)}", "put the two files beside each other")
    with naming(metadata):
        data = read_bytes(os.path.join(folder, metadata), most=MOST_JSON_BYTES)
        about = read_json(data, "file")
        if type(about) is not dict:
            refuse(f"an object was expected, found {brief(about)}")
    with naming(vectors):
        data = read_bytes(os.path.join(folder, vectors))
        checksum = about.get(_CHECKSUM)
        if checksum is not None and checksum != content_hash(data).hex():
            refuse(f"it is not the index that {shown_path(metadata)} was written with")
        found = faiss_bytes.parse(data)
    with naming(metadata):
        return _paired(about, found, stem)


def _paired(about: Mapping[str, Any], found: faiss_bytes.Vectors, stem: str) -> DocumentMap:
    """The index with what the JSON beside it says."""
    chunks = _value_of(about, "chunks", list, "list of chunks")
    documents = _value_of(about, "documents", dict, "map of documents")
    places = check_map(chunks, documents, len(found.rows))
    for key, number, what in (
        ("vector_count", len(found.rows), "vectors"),
        ("document_count", len(documents), "documents"),
        ("embedding_dim", found.dimension, "numbers in a vector"),
    ):
        if about.get(key) is not None:
            check_count(about[key], number, key, what)
    if about.get("index_type") is not None:
        check_index(about["index_type"], found)
    model = about.get("model_name")
    times = (
        UNKNOWN_TIME if about.get(key) is None else check_time(about[key], key)
        for key in ("created_at", "updated_at")
    )
    created_at, updated_at = times
    return DocumentMap(
        model=model if isinstance(model, str) and model.strip() else stem,
        dimension=found.dimension,
        flat=found.flat,
        kind=found.kinds[0],
        created_at=created_at,
        updated_at=updated_at,
        places=places,
        documents=documents,
        rows=found.rows,
    )


def _value_of(about: Mapping[str, Any], key: str, kind: type, called: str) -> Any:
    """The value of a key; where that is of another type, the only one of this type."""
    if type(about.get(key)) is kind:
        return about[key]
    found = [value for value in about.values() if type(value) is kind]
    if len(found) != 1:
        refuse(f"it must have the {called} under {key!r}")
    return found[0]


def _write_pair(target: str, made: DocumentMap) -> tuple[str, ...]:
    folder, name = os.path.split(target)
    files = tuple(os.path.join(folder, one) for one in _names(_stem(name)))
    count, dimension = made.rows.shape
    index = faiss_bytes.head(made.flat, count, dimension) + bytes(faiss_bytes.bytes_of(made.rows))
    metadata = orjson.dumps(
        {
            "format_version": VERSION,
            "model_name": made.model,
            "embedding_dim": made.dimension,
            "vector_count": count,
            "document_count": len(made.documents),
            "index_type": made.flat,
            "created_at": made.created_at,
            "updated_at": made.updated_at,
            _CHECKSUM: content_hash(index).hex(),
            "chunks": made.chunk_list(),
            "documents": made.documents,
        }
    )
    if len(metadata) > MOST_JSON_BYTES:
        raise too_large(target, len(metadata))
    with disk.disk_errors(folder):
        disk.make_folders(folder)
    # Nothing takes its name before both are on the disk.
    with staged(files[0]) as vectors:
        disk.write_all(vectors, index)
        os.fsync(vectors)
        with staged(files[1]) as beside:
            disk.write_all(beside, metadata)
    return files

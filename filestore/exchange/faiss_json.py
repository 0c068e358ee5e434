"""FAISS + JSON: an index, and JSON that says what its vectors are of, in two variants.

A folder of four files, of which row i belongs together: `index.faiss`, `embeddings.npy`,
`corpus.json` with the texts, `metadata.json`. Or two files, `vectors-NAME.faiss` and
`metadata-NAME.json`, which has the list of chunks and the map of documents of `.ragmd`. FORMAT.md
says what we put where. One rule: what is read comes from strangers: the files are counted against
each other, and neither FAISS nor pickle sees any of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.core.hashing import content_hash
from filestore.core.safe_text import brief, listed, shown_path
from filestore.exchange import faiss_bytes
from filestore.exchange.base import FormDamaged, TargetRefused, naming, refuse
from filestore.exchange.document_map import (
    MOST_BYTES,
    MOST_JSON_BYTES,
    OURS,
    UNKNOWN_MODEL,
    UNKNOWN_TIME,
    DocumentMap,
    check_count,
    check_index,
    check_map,
    check_time,
    read_bytes,
    read_json,
    too_large,
)
from filestore.exchange.mapped import MapForm
from filestore.fs import disk, staged
from filestore.fs.staged import collect_folders, staged_file, staged_folder

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

VERSION: Final = "1.0"
_VECTORS: Final = re.compile(r"vectors-(.+)\.faiss", re.DOTALL)
_METADATA: Final = re.compile(r"metadata-(.+)\.json", re.DOTALL)
_CHECKSUM: Final = "vectors_xxh3"
"""The key for the hash of the other file, which shows one that was replaced alone."""
_REMEDY: Final = "name another place, or an empty folder"


class FaissJson(MapForm):
    """The form `faiss-json`; a target named `vectors-NAME.faiss` gets the variant of two files."""

    name: ClassVar[str] = "faiss-json"
    flat: ClassVar[str] = faiss_bytes.L2

    def check_target(self, target: str) -> None:
        """See `MapForm.check_target`."""
        try:
            if os.path.islink(target):
                raise TargetRefused(f"{shown_path(target)} is a symbolic link", remedy=_REMEDY)
            if not is_pair(target):
                _check_folder(target)
                return
            folder, name = os.path.split(target)
            vectors, metadata = _names(_stem(name))
            for file, start in ((vectors, b"I"), (metadata, b"{")):

                def begins(head: bytes, start: bytes = start) -> bool:
                    return head[:1] in (start, b"")

                place = os.path.join(folder, file)
                staged.check_target(place, begins, found="it is not part of an index")
        except OSError as error:
            disk.pass_limits(error)
            raise TargetRefused(
                f"{shown_path(target)} is not written: {error.strerror or error}", remedy=_REMEDY
            ) from error

    def write_map(self, target: str, made: DocumentMap) -> tuple[str, ...]:
        """See `MapForm.write_map`."""
        self.check_target(target)
        if made.rows.nbytes + 1_000 > MOST_BYTES:
            raise too_large(target, made.rows.nbytes)
        return (_write_pair if is_pair(target) else _write_folder)(target, made)

    def read_map(self, source: str) -> tuple[DocumentMap, Sequence[str]]:
        """See `MapForm.read_map`."""
        with naming(source):
            if is_pair(source) and not os.path.isdir(source):
                return _read_pair(os.path.dirname(source), _stem(os.path.basename(source))), ()
            try:
                there = set(os.listdir(source))
            except NotADirectoryError:
                refuse("it is not a folder", "name a folder, or a file called vectors-NAME.faiss")
            pairs = sorted(match[1] for match in map(_VECTORS.fullmatch, there) if match)
            if there.intersection(FILES) or not pairs:
                return _read_folder(source)
            if len(pairs) > 1:
                some = listed(f"vectors-{one}.faiss" for one in pairs)
                refuse(f"it has {len(pairs):,} indexes: {some}", "name the file of one of them")
            return _read_pair(source, pairs[0]), ()


def is_pair(path: str) -> bool:
    """Whether a path is that of a file of the variant of two files."""
    name = os.path.basename(path)
    return bool(_VECTORS.fullmatch(name) or _METADATA.fullmatch(name))


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
            refuse(f"there is no {shown_path(name)}", "put the two files into one folder")
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
    """The index with what its JSON says."""
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
    with staged_file(files[0]) as vectors:
        disk.write_all(vectors, index)
        os.fsync(vectors)
        with staged_file(files[1]) as other:
            disk.write_all(other, metadata)
    return files


INDEX: Final = "index.faiss"
CORPUS: Final = "corpus.json"
EMBEDDINGS: Final = "embeddings.npy"
METADATA: Final = "metadata.json"
FILES: Final = (INDEX, CORPUS, EMBEDDINGS, METADATA)
_MODEL_KEYS: Final = ("model_name", "model", "embedding_model")
_LEAST_COSINE: Final = 0.999
"""Of row i of the index and row i of the embeddings, which may differ in their lengths alone."""
_COMPARED_AT_ONCE: Final = 4_096
_LONGEST_NAME: Final = 1_000
_GAP: Final = "\n\n"
_INDEX_AGAIN: Final = "have the documents indexed again by the program that it comes from"


class _Files(Struct, frozen=True, kw_only=True):
    """What the files hold, row by row."""

    about: Mapping[str, Any]
    texts: Sequence[str]
    rows: NDArray[float32]
    kind: str
    flat: str
    note: str
    """What of them was not taken; "" for nothing."""


def _read_folder(folder: str) -> tuple[DocumentMap, Sequence[str]]:
    """Read a folder of any program; with what of it was not taken.

    Raises:
        FormDamaged: A file is missing, or they disagree.
    """
    lacking = [name for name in FILES if not os.path.lexists(os.path.join(folder, name))]
    if lacking:
        what = "there is no index" if len(lacking) == len(FILES) else "the index is not whole"
        refuse(
            f"{what}: it has no {', '.join(lacking)}",
            f"name a folder with {', '.join(FILES)}, or a file called vectors-NAME.faiss",
        )
    found = _files(folder)
    left_out = [found.note] if found.note else []
    foreign = _foreign_map(found)
    info = found.about.get("dataset_info")
    ours = info.get(OURS) if type(info) is dict else None
    if type(ours) is not dict:
        return foreign, left_out
    # The map that we wrote, where it is of these texts.
    note = (
        f"the names and metadata that {METADATA} has under {OURS!r}: they are not of the texts that"
        f" {CORPUS} has"
    )
    try:
        places = check_map(ours.get("chunks"), ours.get("documents"), len(found.rows))
    except FormDamaged as error:
        return foreign, [*left_out, f"{note}: {error.message}"]
    made = replace(foreign, places=places, documents=ours["documents"])
    pairs = zip(made.texts(), found.texts, strict=True)
    if all(own in (None, text) for own, text in pairs):
        return made, left_out
    return foreign, [*left_out, note]


def _files(folder: str) -> _Files:
    """The four files, of which every row must be there in each."""
    corpus = _read_json(folder, CORPUS)
    if type(corpus) is not dict or type(corpus.get("documents")) is not list:
        refuse(f"{CORPUS} must be an object with the list 'documents'")
    texts: list[str] = corpus["documents"]
    if corpus.get("count") is not None:
        check_count(corpus["count"], len(texts), f"count of {CORPUS}", "documents in it")
    for at, text in enumerate(texts):
        if type(text) is not str:
            refuse(f"{CORPUS}: document {at:,} must be text, found {brief(text)}")
    with naming(EMBEDDINGS):
        rows = faiss_bytes.parse_npy(read_bytes(os.path.join(folder, EMBEDDINGS)))
    about = _read_json(folder, METADATA)
    if type(about) is not dict:
        refuse(f"{METADATA} must be an object, found {brief(about)}")
    with naming(INDEX):
        data = read_bytes(os.path.join(folder, INDEX))
        kind, flat, dimension, count = faiss_bytes.head_of(data)
    counts = {CORPUS: len(texts), EMBEDDINGS: len(rows), INDEX: count}
    if len(set(counts.values())) > 1:
        stated = ", ".join(f"{name} has {number:,}" for name, number in counts.items())
        refuse(f"its files have different numbers of rows: {stated}", _INDEX_AGAIN)
    if dimension != rows.shape[1]:
        stated = f"{INDEX} has vectors of {dimension:,} numbers, {EMBEDDINGS} of {rows.shape[1]:,}"
        refuse(stated, _INDEX_AGAIN)
    for key, number, what in (
        ("document_count", count, f"rows in {INDEX}"),
        ("embedding_dimension", dimension, f"numbers in a row of {EMBEDDINGS}"),
    ):
        if about.get(key) is not None:
            check_count(about[key], number, f"{key} of {METADATA}", what)
    note = ""
    try:
        with naming(INDEX):
            found = faiss_bytes.parse(data)
        _compare(found.rows, rows)
    except faiss_bytes.NotRead:
        # The vectors are there all the same; of such an index only the head is believed.
        note = f"{INDEX} is an {kind}, which is not read: the vectors are those of {EMBEDDINGS}"
    return _Files(about=about, texts=texts, rows=rows, kind=kind, flat=flat, note=note)


def _read_json(folder: str, name: str) -> Any:
    with naming(name):
        return read_json(read_bytes(os.path.join(folder, name), most=MOST_JSON_BYTES), "file")


def _compare(index: NDArray[float32], rows: NDArray[float32]) -> None:
    """See that row i of the index is row i of the embeddings, at whatever length."""
    import numpy

    for start in range(0, len(rows), _COMPARED_AT_ONCE):
        some = slice(start, start + _COMPARED_AT_ONCE)
        if numpy.array_equal(index[some], rows[some]):
            continue
        one, other = index[some].astype(numpy.float64), rows[some].astype(numpy.float64)
        lengths = numpy.linalg.norm(one, axis=1) * numpy.linalg.norm(other, axis=1)
        near = (one * other).sum(axis=1) >= _LEAST_COSINE * lengths
        if not near.all():
            row = f"row {start + int(numpy.argmin(near)):,}"
            refuse(f"{row} of {INDEX} is another vector than {row} of {EMBEDDINGS}", _INDEX_AGAIN)


def _foreign_map(found: _Files) -> DocumentMap:
    """One document of all texts: another program tells only one name for them."""
    about, texts = found.about, found.texts
    info = about.get("dataset_info")
    content = dict(info) if type(info) is dict else {}
    content.pop(OURS, None)
    stated = [content.pop(key, None) for key in _MODEL_KEYS]
    model = next((one for one in stated if isinstance(one, str) and one.strip()), UNKNOWN_MODEL)
    name = about.get("rag_name")
    name = name[:_LONGEST_NAME] if isinstance(name, str) and name.strip() else "index"
    chunks: dict[str, dict[str, int]] = {}
    start = 0
    for row, text in enumerate(texts):
        end = start + len(text)
        chunks[f"chunk{row + 1}"] = {"i_start": start, "i_end": end, "faiss_id": row}
        start = end + len(_GAP)
    document = {
        "id": name,
        "source": "",
        "full_text": _GAP.join(texts),
        "content": content,
        "chunks": chunks,
    }
    return DocumentMap(
        model=model,
        dimension=int(found.rows.shape[1]),
        flat=found.flat,
        kind=found.kind,
        created_at=_time_of(about, "created_at"),
        updated_at=_time_of(about, "updated_at"),
        places=[(name, key) for key in chunks],
        documents={name: document},
        rows=found.rows,
    )


def _time_of(about: Mapping[str, Any], key: str) -> str:
    value = about.get(key)
    return UNKNOWN_TIME if value is None else check_time(value, f"{key} of {METADATA}")


def _check_folder(target: str) -> None:
    """Let no folder be replaced that holds anything else.

    Raises:
        TargetRefused: It does.
        OSError: It cannot be listed.
    """
    try:
        others = sorted(set(os.listdir(target)) - {*FILES})
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise TargetRefused(
            f"{shown_path(target)} is not overwritten: it is a file; name a folder, or a"
            " file vectors-NAME.faiss",
        ) from error
    if others:
        raise TargetRefused(
            f"{shown_path(target)} is not overwritten: {shown_path(others[0])} in it is not part of"
            " an index"
            "; name another folder, or an empty one",
        )


def _write_folder(target: str, made: DocumentMap) -> tuple[str, ...]:
    """Write a folder in place of what is there; returns the paths of its files.

    Raises:
        TargetRefused: A file would be larger than is read.
        WriteFailedError: The disk refused; what was there is untouched.
    """
    texts = [text or "" for text in made.texts()]
    corpus = orjson.dumps({"documents": texts, "count": len(texts)})
    count, dimension = made.rows.shape
    numbers = faiss_bytes.bytes_of(made.rows)
    contents = {
        CORPUS: (corpus,),
        INDEX: (faiss_bytes.head(made.flat, count, dimension), numbers),
        EMBEDDINGS: (faiss_bytes.head_of_npy(count, dimension), numbers),
    }
    sizes = {name: sum(len(one) for one in pieces) for name, pieces in contents.items()}
    own = {"chunks": made.chunk_list(), "documents": made.documents}
    metadata = orjson.dumps(
        {
            "rag_name": os.path.basename(target),
            "document_count": count,
            "embedding_dimension": made.dimension,
            "index_type": made.flat,
            "created_at": made.created_at,
            "updated_at": made.updated_at,
            "file_sizes": sizes,
            "dataset_info": {"model_name": made.model, OURS: own},
        }
    )
    if max(len(corpus), len(metadata)) > MOST_JSON_BYTES:
        raise too_large(target, max(len(corpus), len(metadata)))
    with disk.disk_errors(target):
        disk.make_folders(os.path.dirname(target))
        collect_folders(os.path.dirname(target))
    with staged_folder(target, names=FILES) as folder:
        for name, pieces in (contents | {METADATA: (metadata,)}).items():
            with open(os.path.join(folder, name), "xb", buffering=0) as file:
                for piece in pieces:
                    disk.write_all(file.fileno(), piece)
                os.fsync(file.fileno())
    return tuple(os.path.join(target, name) for name in FILES)

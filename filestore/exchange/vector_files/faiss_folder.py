"""FAISS + JSON as a folder of four files, of which row i belongs together.

`index.faiss`, `embeddings.npy`, `corpus.json` with the texts, `metadata.json`. FORMAT.md says what
we put where. One rule: the files are counted against each other, and neither FAISS nor pickle sees
any of them: of the `.npy` file the header is compared with what numpy writes, never evaluated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.core.safe_text import brief, shown_path
from filestore.exchange.base import FormDamaged, TargetRefused
from filestore.exchange.vector_files import faiss_bytes
from filestore.exchange.vector_files.document_map import (
    MOST_JSON_BYTES,
    OURS,
    UNKNOWN_MODEL,
    UNKNOWN_TIME,
    DocumentMap,
    check_count,
    check_map,
    check_time,
    naming,
    read_bytes,
    read_json,
    refuse,
    too_large,
)
from filestore.fs import disk
from filestore.fs.staged_folder import staged_folder

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

_NPY_MAGIC: Final = b"\x93NUMPY"
_NPY_VERSIONS: Final = {b"\x01\x00": 10, b"\x02\x00": 12, b"\x03\x00": 12}
"""Where the header begins."""
_NPY_HEADER: Final = re.compile(
    rb"\{'descr': '([^'\n]{1,20})', 'fortran_order': (True|False),"
    rb" 'shape': \(([0-9]{1,12}), ([0-9]{1,12})\), \} *\n?"
)
_LARGEST_NPY_HEADER: Final = 1_000
_NPY_ALIGNMENT: Final = 64


def parse_npy(data: bytes | bytearray) -> NDArray[float32]:
    """The table in the bytes of a file: (n, dimension) float32, every number finite.

    Raises:
        FormDamaged: They are of another kind of file, or not whole.
    """
    import numpy

    start = _NPY_VERSIONS.get(bytes(data[6:8]), 0)
    if not data.startswith(_NPY_MAGIC) or not start:
        refuse("it is no .npy file of a version that is known")
    size = int.from_bytes(data[8:start], "little")
    header = (
        _NPY_HEADER.fullmatch(data[start : start + size]) if size < _LARGEST_NPY_HEADER else None
    )
    if header is None:
        refuse("its header is not the one of a table of float32")
    kind, by_column = header[1].decode(errors="replace"), header[2] == b"True"
    count, dimension = int(header[3]), int(header[4])
    if kind != "<f4":
        refuse(f"its numbers must be float32 ('<f4'), found {brief(kind)}")
    if dimension > faiss_bytes.LARGEST_DIMENSION or (count and not dimension):
        refuse(f"{count:,} rows of {dimension:,} numbers")
    there = len(data) - start - size
    if there != 4 * count * dimension:
        refuse(f"{there:,} bytes for {count:,} rows of {dimension:,} numbers")
    numbers = numpy.frombuffer(data, "<f4", offset=start + size)
    table = numbers.reshape((count, dimension), order="F" if by_column else "C")
    table = numpy.ascontiguousarray(table, numpy.float32)
    faiss_bytes.check_finite(table)
    return table


def head_of_npy(count: int, dimension: int) -> bytes:
    """What stands before the numbers of a table."""
    shape = f"({count}, {dimension})"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    blanks = " " * (-(10 + len(header) + 1) % _NPY_ALIGNMENT)
    padded = f"{header}{blanks}\n".encode()
    return _NPY_MAGIC + b"\x01\x00" + len(padded).to_bytes(2, "little") + padded


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
_AGAIN: Final = "have the documents indexed again by the program that it comes from"


class _Files(Struct, frozen=True, kw_only=True):
    """What the files hold, row by row."""

    about: Mapping[str, Any]
    texts: Sequence[str]
    rows: NDArray[float32]
    kind: str
    flat: str
    note: str
    """What of them was not taken; "" for nothing."""


def read(folder: str) -> tuple[DocumentMap, Sequence[str]]:
    """Read a folder, whoever wrote it; with what of it was not taken.

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
    made, note = _own_map(found)
    return made, [one for one in (found.note, note) if one]


def _files(folder: str) -> _Files:
    """The four files, of which every row must be there in each."""
    texts = _texts(_json(folder, CORPUS))
    with naming(EMBEDDINGS):
        rows = parse_npy(read_bytes(os.path.join(folder, EMBEDDINGS)))
    about = _json(folder, METADATA)
    if type(about) is not dict:
        refuse(f"{METADATA} must be an object, found {brief(about)}")
    with naming(INDEX):
        data = read_bytes(os.path.join(folder, INDEX))
        kind, flat, dimension, count = faiss_bytes.head_of(data)
    counts = {CORPUS: len(texts), EMBEDDINGS: len(rows), INDEX: count}
    if len(set(counts.values())) > 1:
        stated = ", ".join(f"{name} has {number:,}" for name, number in counts.items())
        refuse(f"its files have different numbers of rows: {stated}", _AGAIN)
    if dimension != rows.shape[1]:
        stated = f"{INDEX} has vectors of {dimension:,} numbers, {EMBEDDINGS} of {rows.shape[1]:,}"
        refuse(stated, _AGAIN)
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


def _json(folder: str, name: str) -> Any:
    with naming(name):
        return read_json(read_bytes(os.path.join(folder, name), most=MOST_JSON_BYTES), "file")


def _texts(corpus: Any) -> Sequence[str]:
    if type(corpus) is not dict or type(corpus.get("documents")) is not list:
        refuse(f"{CORPUS} must be an object with the list 'documents'")
    texts: list[str] = corpus["documents"]
    if corpus.get("count") is not None:
        check_count(corpus["count"], len(texts), f"count of {CORPUS}", "documents in it")
    for at, text in enumerate(texts):
        if type(text) is not str:
            refuse(f"{CORPUS}: document {at:,} must be text, found {brief(text)}")
    return texts


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
            refuse(f"{row} of {INDEX} is another vector than {row} of {EMBEDDINGS}", _AGAIN)


def _own_map(found: _Files) -> tuple[DocumentMap, str]:
    """The map of documents: the one that we wrote where it is of these texts; and why it is not."""
    foreign = _foreign_map(found)
    info = found.about.get("dataset_info")
    ours = info.get(OURS) if type(info) is dict else None
    if type(ours) is not dict:
        return foreign, ""
    note = (
        f"the names and metadata that {METADATA} has under {OURS!r}: they are not of the texts that"
        f" {CORPUS} has"
    )
    try:
        places = check_map(ours.get("chunks"), ours.get("documents"), len(found.rows))
    except FormDamaged as error:
        return foreign, f"{note}: {error.message}"
    made = replace(foreign, places=places, documents=ours["documents"])
    pairs = zip(made.texts(), found.texts, strict=True)
    return (made, "") if all(own in (None, text) for own, text in pairs) else (foreign, note)


def _foreign_map(found: _Files) -> DocumentMap:
    """One document of all texts: another program tells only one name for them."""
    about, texts = found.about, found.texts
    info = about.get("dataset_info")
    said = dict(info) if type(info) is dict else {}
    said.pop(OURS, None)
    stated = [said.pop(key, None) for key in _MODEL_KEYS]
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
        "content": said,
        "chunks": chunks,
    }
    return DocumentMap(
        model=model,
        dimension=int(found.rows.shape[1]),
        flat=found.flat,
        kind=found.kind,
        created_at=_time(about, "created_at"),
        updated_at=_time(about, "updated_at"),
        places=[(name, key) for key in chunks],
        documents={name: document},
        rows=found.rows,
    )


def _time(about: Mapping[str, Any], key: str) -> str:
    value = about.get(key)
    return UNKNOWN_TIME if value is None else check_time(value, f"{key} of {METADATA}")


def check_target(target: str) -> None:
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
            f"{shown_path(target)} is not overwritten: it is a file, not a folder",
            remedy="name a folder, or a file called vectors-NAME.faiss",
        ) from error
    if others:
        raise TargetRefused(
            f"{shown_path(target)} is not overwritten: {shown_path(others[0])} in it is no file of"
            " an index",
            remedy="name another folder, or an empty one",
        )


def write(target: str, made: DocumentMap) -> tuple[str, ...]:
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
        EMBEDDINGS: (head_of_npy(count, dimension), numbers),
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
    with staged_folder(target, FILES) as folder:
        for name, pieces in (contents | {METADATA: (metadata,)}).items():
            with open(os.path.join(folder, name), "xb", buffering=0) as file:
                for piece in pieces:
                    disk.write_all(file.fileno(), piece)
    return tuple(os.path.join(target, name) for name in FILES)

"""Vectors: stored embeddings against their checksums, the FAISS rows against both, bit for bit.

One rule: what is damaged is not parsed, and what could then not be compared is said.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from filestore import drift, vector_file
from filestore.catalog import Catalog
from filestore.findings import Finding
from filestore.hashing import vector_id
from filestore.subject import Said, Sample, Subject

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex

TOLERANCE: Final = 1e-3
"""How far the length of a stored vector may be from 1."""
EMBEDDINGS: Final = ".sidecar/embeddings.sqlite"
_NAMED: Final = 10
"""Files named one by one for each code; more are counted."""
_BLOCK: Final = 4096
_Read = Callable[[Sequence[bytes]], "tuple[NDArray[float32], NDArray[bool_]]"]
_FEW_OF: Final = 0.25
"""Below this share of all rows it is quicker to ask for each than to walk through all."""

Wrong = Mapping[int, str]
"""Vector id to what is wrong with it."""


def check(subject: Subject, sample: Sample, said: Said) -> None:
    """Hold embeddings and FAISS rows against the catalog's ids, and against each other."""
    fingerprint = subject.catalog.meta("fingerprint")
    if fingerprint is None or not vector_file.has_embedded(subject.catalog):
        said.checked.append("vectors (there are none)")
        return
    embeddings = subject.embeddings
    if embeddings is None:
        said.add(_why_none(subject))
        said.not_checked.append("vectors, since there are no embeddings to hold them against")
        return
    _check_embeddings(subject, embeddings, fingerprint, sample, said)
    if subject.embedder is None:
        said.not_checked.append("FAISS rows, since the model of the store is not here")
    elif subject.embedder.fingerprint != fingerprint:
        said.not_checked.append("FAISS rows, since they come from another model")
    else:
        _try_rows(subject, embeddings, subject.embedder, sample, said)


def _try_rows(
    subject: Subject, embeddings: "EmbeddingCache", embedder: "Embedder", sample: Sample, said: Said
) -> None:
    from filestore.embed.cache import EmbeddingsDamaged

    try:
        _check_rows(subject, embeddings, embedder, sample, said)
    except EmbeddingsDamaged as error:
        said.add([_damaged(error.detail)])
        said.not_checked.append("FAISS rows whose embeddings SQLite cannot walk to")


def _why_none(subject: Subject) -> list[Finding]:
    """Why there are no embeddings."""
    from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged, EmbeddingsMissing

    try:
        EmbeddingCache.open(subject.places.embeddings, read_only=True).close()
    except EmbeddingsMissing:
        return vector_file.embeddings_findings(subject.places, subject.catalog)
    except EmbeddingsDamaged as error:
        return [_damaged(error.detail)]
    return []


def _damaged(detail: str) -> Finding:
    return Finding(code="embeddings-damaged", path=EMBEDDINGS, detail=detail)


def _check_embeddings(
    subject: Subject, embeddings: "EmbeddingCache", fingerprint: str, sample: Sample, said: Said
) -> None:
    """Every checksum of a slice, and whether the vectors that hold it can be vectors at all."""
    from filestore.embed.cache import EmbeddingsDamaged

    keys = dict(_in_slice(subject.catalog.vector_keys(), sample))
    try:
        # What no text has is walked through by itself: it is rare, and a second walk is not cheap.
        others = sample.is_all and embeddings.count(fingerprint) > len(keys)
        lost = dict.fromkeys(embeddings.verify(fingerprint) if others else (), "")
        invalid: dict[int, str] = {}
        for ids, vectors, present in _blocks(embeddings, fingerprint, keys):
            lost |= dict.fromkeys((keys[one] for one in ids[~present].tolist()), "")
            invalid |= _lengths(ids[present], vectors[present])
    except EmbeddingsDamaged as error:
        said.add([_damaged(error.detail)])
        said.not_checked.append("embeddings that SQLite cannot walk to")
        return
    said.checked.append(
        "every stored embedding" if sample.is_all else f"embeddings of slice {sample}"
    )
    if not sample.is_all:
        said.not_checked.append(f"embeddings outside slice {sample}")
    detail = "its checksum does not hold, or its row is gone"
    wrong = {vector_id(key): detail for key in lost}
    said.add(findings(subject.catalog, "embeddings-damaged", wrong, EMBEDDINGS))
    said.add(findings(subject.catalog, "vector-invalid", invalid, EMBEDDINGS))
    said.unsound |= {keys[one] for one in invalid}


def invalid_keys(embeddings: "EmbeddingCache", fingerprint: str) -> set[bytes]:
    """The keys of stored embeddings that can be no vector: not of length 1."""
    import numpy

    keys: set[bytes] = set()
    for key, raw in embeddings.rows(fingerprint):
        vector = numpy.frombuffer(raw, dtype="<f4").reshape(1, -1)
        if _lengths(numpy.zeros(1, numpy.int64), vector):
            keys.add(key)
    return keys


def _in_slice(keys: Iterable[tuple[int, bytes]], sample: Sample) -> Iterator[tuple[int, bytes]]:
    return (pair for pair in keys if sample.has_vector(pair[0]))


def _blocks(
    embeddings: "EmbeddingCache", fingerprint: str, keys: Mapping[int, bytes]
) -> Iterator["tuple[NDArray[int64], NDArray[float32], NDArray[bool_]]"]:
    import numpy

    everything = sorted(keys)
    # Ids are the beginnings of keys, so both are in one order.
    ordered = [keys[one] for one in everything]
    read: _Read = partial(embeddings.get, fingerprint)
    if len(keys) >= _FEW_OF * embeddings.count(fingerprint):
        read = _walked(embeddings, fingerprint)
    for start in range(0, len(everything), _BLOCK):
        vectors, present = read(ordered[start : start + _BLOCK])
        yield numpy.array(everything[start : start + _BLOCK], numpy.int64), vectors, present


def _walked(embeddings: "EmbeddingCache", fingerprint: str) -> _Read:
    """As `EmbeddingCache.get`, in one walk through all rows: for keys that only ascend."""
    import numpy

    rows = embeddings.rows(fingerprint)
    nothing, _ = embeddings.get(fingerprint, [b""])
    absent = nothing.tobytes()
    ahead = next(rows, None)

    def read(keys: Sequence[bytes]) -> "tuple[NDArray[float32], NDArray[bool_]]":
        nonlocal ahead
        raw, present = [absent] * len(keys), numpy.zeros(len(keys), numpy.bool_)
        for place, key in enumerate(keys):
            while ahead is not None and ahead[0] < key:
                ahead = next(rows, None)
            if ahead is not None and ahead[0] == key:
                raw[place] = ahead[1]
                present[place] = True
        vectors = numpy.frombuffer(b"".join(raw), "<f4").reshape(len(keys), nothing.shape[1])
        return vectors.astype(numpy.float32, copy=False), present

    return read


def _lengths(ids: "NDArray[int64]", vectors: "NDArray[float32]") -> dict[int, str]:
    """The vectors that are not of length 1; a number that is not finite gives no length."""
    import numpy

    with numpy.errstate(all="ignore"):
        lengths = numpy.sqrt(numpy.einsum("ij,ij->i", vectors, vectors, dtype=numpy.float64))
    wrong = ~(numpy.abs(lengths - 1) < TOLERANCE)
    pairs = zip(ids[wrong].tolist(), lengths[wrong].tolist(), strict=True)
    return {identifier: f"its length is {length:.4g}, expected 1" for identifier, length in pairs}


def _check_rows(
    subject: Subject, embeddings: "EmbeddingCache", embedder: "Embedder", sample: Sample, said: Said
) -> None:
    # What its size told already is not told again by its hash.
    found = vector_file.findings(subject.places, subject.catalog, hashes=True)
    said.add(finding for finding in found if finding.code not in said.codes())
    unread = said.codes() & {"index-missing", "index-damaged", "index-foreign"}
    if not unread and not _is_ours(subject):
        unread = {"nobody can tell who wrote it"}
    elif not unread and (reason := _unreadable(subject, embedder)):
        said.add([Finding(code="index-damaged", path=file_of(subject.catalog), detail=reason)])
        unread = {"index-damaged"}
    if unread:
        said.not_checked.append(f"FAISS rows, since the file is not opened ({', '.join(unread)})")
        return
    index = vector_file.load(subject.places, subject.catalog, embeddings, embedder)
    _compare(subject.catalog, index, embeddings, embedder.fingerprint, sample, said)
    rows = "every FAISS row" if sample.is_all else f"FAISS rows of slice {sample}"
    said.checked.append(f"{rows}, bit for bit")


def _is_ours(subject: Subject) -> bool:
    named = subject.catalog.index_file()
    return named is None or vector_file.is_ours(subject.places, subject.catalog, named)


def _unreadable(subject: Subject, embedder: "Embedder") -> str:
    return vector_file.unreadable(subject.places, subject.catalog, embedder)


def _compare(
    catalog: Catalog,
    index: "VectorIndex",
    embeddings: "EmbeddingCache",
    fingerprint: str,
    sample: Sample,
    said: Said,
) -> None:
    """Ids both ways for all, and bits for a slice.

    An index that shortens vectors is held against the embeddings shortened in the same way.
    """
    import numpy

    keys = dict(catalog.vector_keys())
    ids = numpy.array(list(keys), dtype=numpy.int64)
    held = index.ids()
    file = file_of(catalog)
    distinct, times = numpy.unique(held, return_counts=True)
    orphans = dict.fromkeys(numpy.setdiff1d(distinct, ids).tolist(), "it belongs to no text")
    orphans |= dict.fromkeys(distinct[times > 1].tolist(), "it is there more than once")
    said.add(findings(catalog, "vector-orphan", orphans, file))
    missing = dict.fromkeys(numpy.setdiff1d(ids, held).tolist(), "it is not in the FAISS file")
    wrong: dict[int, str] = {}
    held_too = numpy.intersect1d(ids, held).tolist()
    both = dict(_in_slice([(one, keys[one]) for one in held_too], sample))
    for block, vectors, present in _blocks(embeddings, fingerprint, both):
        if present.any():
            same = index.holds(block[present], vectors[present])
            wrong |= _differing(index, block[present][~same], vectors[present][~same])
    # A vector that should not be there at all is no matter of bits.
    invalid = {vector_id(key) for key in said.unsound}
    wrong = {one: detail for one, detail in wrong.items() if one not in invalid}
    said.add(findings(catalog, "vector-missing", missing, file))
    said.add(findings(catalog, "vector-mismatch", wrong, file))


def _differing(
    index: "VectorIndex", ids: "NDArray[int64]", vectors: "NDArray[float32]"
) -> dict[int, str]:
    """How far rows are from their embeddings, measured for those that are named."""
    details = dict.fromkeys(ids.tolist(), "its row differs from its embedding")
    for place in range(min(len(ids), _NAMED)):
        hits = index.search(vectors[place], 1, allowed=ids[place : place + 1])
        found = f"{hits[0][1]:.6f}" if hits else "nothing"
        details[int(ids[place])] += f": their product is {found}, expected the same bits"
    return details


def file_of(catalog: Catalog) -> str:
    """The path of the FAISS file in findings."""
    named = catalog.index_file()
    return f".sidecar/{named.name}" if named else ".sidecar"


def findings(catalog: Catalog, code: str, wrong: Wrong, part: str) -> list[Finding]:
    """One finding for each file that a wrong vector concerns; where they are many, one for all.

    Args:
        catalog: Knows whose text a vector is.
        code: Of the findings.
        wrong: What is wrong, by vector id.
        part: The damaged part of the sidecar: the path where no file is meant, else `other`.
    """
    if not wrong:
        return []
    owners = catalog.files_of_vectors(list(wrong))
    rows = catalog.files_by_id(sorted({file for files in owners.values() for file, _ in files}))
    named: dict[str, list[str]] = {}
    for identifier, files in owners.items():
        for file, number in files:
            if file in rows:
                detail = f"{_part_name(number)}: {wrong[identifier]}"
                named.setdefault(rows[file].path, []).append(detail)
    loose = len(wrong.keys() - owners.keys())
    if len(named) > _NAMED or loose:
        return [Finding(code=code, path=part, other=part, detail=_counted(wrong, sorted(named)))]
    return [
        Finding(code=code, path=drift.root_path(path), other=part, detail="; ".join(details))
        for path, details in named.items()
    ]


def _part_name(number: int) -> str:
    return f"question {number}" if number else "its text"


def _counted(wrong: Wrong, paths: Sequence[str]) -> str:
    first = next(iter(wrong))
    some = ", ".join(drift.root_path(path) for path in paths[:3])
    files = f" of {len(paths):,} files ({some}{', …' if len(paths) > 3 else ''})" if paths else ""
    return f"{len(wrong):,} vectors{files}; vector {first}: {wrong[first]}"

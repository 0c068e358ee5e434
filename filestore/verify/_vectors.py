"""Vectors: stored embeddings against their checksums, the FAISS rows against both, bit for bit.

At the deepest level the model is asked, too: are they still its own, and do texts find themselves?
It embeds texts again, so it looks at one slice of them at a time. One rule: what is damaged is not
parsed, and what could then not be compared is reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from filestore.catalog import in_batches, queries
from filestore.chunks import kept
from filestore.config.layout import EMBEDDINGS, SETTINGS
from filestore.core.codes import codes_where
from filestore.core.findings import Finding
from filestore.core.hashing import vector_id
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.progress import OnProgress, Progress
from filestore.core.safe_text import listed
from filestore.embed import TOLERANCE, EndpointError, ModelMissing, ModelUnusable, canary_likeness
from filestore.embed.cache import EmbeddingsDamaged
from filestore.index import BackendError
from filestore.sidecar import vector_file
from filestore.sidecar.file_rows import texts_of_vectors
from filestore.sidecar.models import WHOSE
from filestore.sidecar.snapshot import Level, Sample, StoreSnapshot, VerificationReport
from filestore.sidecar.vector_file import loaded
from filestore.sidecar.vector_home import StoredVectors

if TYPE_CHECKING:
    from numpy import float32, intp, uint64
    from numpy.typing import NDArray

    from filestore.embed import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index import VectorIndex


_NAMED: Final = 10
"""Files named one by one for each code; more are counted."""
_BLOCK: Final = 4096
_KEY_BYTES: Final = 32
_FEW_OF: Final = 0.25
"""Below this share of all rows it is quicker to ask for each than to walk through all."""

_NOT_THERE: Final = "it is not in the index"

Wrong = Mapping[int, str]
"""Vector id to what is wrong with it."""


def check(
    snapshot: StoreSnapshot, level: Level, sample: Sample, report: VerificationReport
) -> None:
    """Hold embeddings and FAISS rows against the catalog's ids, and against each other."""
    fingerprint = snapshot.catalog.meta("fingerprint")
    if fingerprint is None or not queries.has_embedded(snapshot.catalog):
        report.checked.append("vectors (there are none)")
        return
    embeddings = snapshot.embeddings
    if embeddings is None:
        report.add(vector_file.embeddings_findings(snapshot.places, snapshot.catalog))
        report.not_checked.append("vectors, since there are no embeddings to hold them against")
        return
    from filestore.embed.cache import EmbeddingsDamaged

    keys = snapshot.catalog.vector_keys()
    unread = "embeddings that SQLite cannot walk to"
    index: VectorIndex | None = None
    try:
        index = _index(snapshot, embeddings, fingerprint, report)
        if index is not None:
            unread += ", and their FAISS rows"
            report.add(_id_findings(snapshot, keys, index))
        wanted = keys if sample.is_all else [one for one in keys if sample.has_vector(one[0])]
        seen = read(embeddings, fingerprint, wanted, index, level)
    except EmbeddingsDamaged as error:
        part = snapshot.places.part(EMBEDDINGS)
        report.add([Finding(code="embeddings-damaged", path=part, detail=error.detail)])
        report.not_checked.append(unread)
        return
    except BackendError as error:
        report.add([Finding(code="index-away", path=file_of(snapshot), detail=error.message)])
        report.not_checked.append("embeddings, and vectors of the backend: it went away meanwhile")
        return
    finally:
        if index is not None:
            index.close()
    if sample.is_all:
        seen.lost.update(embeddings.damaged_keys(fingerprint))
    _tell_embeddings(snapshot, seen, sample, report)
    if index is not None:
        _tell_rows(snapshot, index, seen, level, sample, report)


def check_other(snapshot: StoreSnapshot, sample: Sample, report: VerificationReport) -> None:
    """Read every stored vector of a second model that is tried."""
    from filestore.embed.cache import EmbeddingsDamaged

    whose, embeddings = WHOSE["beside"], snapshot.embeddings
    if snapshot.models is None or snapshot.models.second is None:
        return
    fingerprint = snapshot.models.second_fingerprint(snapshot.catalog)
    if not fingerprint or embeddings is None:
        report.not_checked.append(f"vectors of {whose}, since there are none")
        return
    keys = snapshot.catalog.vector_keys(embedded=None)
    wanted = [one for one in keys if sample.has_vector(one[0])]
    try:
        seen = read(embeddings, fingerprint, wanted, None, "full")
        there = embeddings.has(fingerprint, seen.lost)
    except EmbeddingsDamaged:
        report.not_checked.append(f"vectors of {whose}, which SQLite cannot walk to")
        return
    part = snapshot.places.part(EMBEDDINGS)
    damaged = {vector_id(key): f"{whose}: its checksum does not hold" for key in there}
    report.add(findings(snapshot, "embeddings-damaged", damaged, part))
    invalid = {one: f"{whose}: {why}" for one, why in seen.invalid.items()}
    report.add(findings(snapshot, "vector-invalid", invalid, part))
    if not any(snapshot.findings_on_models()):
        gone = {vector_id(key): f"{whose}: its row is gone" for key in seen.lost - there}
        report.add(findings(snapshot, "beside-behind", gone, part))
    report.not_checked.append(f"whether {whose} still gives the same vectors")
    of = "every vector" if sample.is_all else f"vectors of slice {sample}"
    report.checked.append(f"{of} of {whose}")


class _ReadVectors(Struct):
    """What one walk through embeddings and FAISS rows found."""

    lost: set[bytes] = field(default_factory=set)
    """Keys without a sound row."""
    invalid: dict[int, str] = field(default_factory=dict)
    """Vectors that can be none."""
    unsound: set[bytes] = field(default_factory=set)
    """Their keys."""
    differing: dict[int, str] = field(default_factory=dict)
    """Vectors that FAISS holds otherwise, or where no search for them looks."""


def _index(
    snapshot: StoreSnapshot,
    embeddings: "EmbeddingCache",
    fingerprint: str,
    report: VerificationReport,
) -> "VectorIndex | None":
    """The FAISS index as it is searched; None where it is not opened, which is reported."""
    embedder = snapshot.embedder
    if embedder is None:
        report.not_checked.append("FAISS rows, since the model of the store is not here")
        return None
    if embedder.fingerprint != fingerprint:
        report.not_checked.append("FAISS rows, since they come from another model")
        return None
    seen = snapshot.home.inspect(StoredVectors(snapshot.catalog, embeddings, embedder))
    # What its size has shown is not reported again by its hash.
    report.add(finding for finding in seen.findings if finding.code not in report.codes())
    wrong = dict.fromkeys(seen.stale, "its data are not those of its file")
    report.add(findings(snapshot, "vector-mismatch", wrong, file_of(snapshot)))
    if seen.index is None:
        report.not_checked.append(seen.unread)
    return seen.index


def _id_findings(
    snapshot: StoreSnapshot, keys: Sequence[tuple[int, bytes]], index: "VectorIndex"
) -> Iterator[Finding]:
    """Ids of the catalog against those of the FAISS file, both ways."""
    import numpy

    ids, held = numpy.array([one for one, _ in keys], numpy.int64), index.ids()
    if numpy.array_equal(ids, held):
        return
    file = file_of(snapshot)
    distinct, times = numpy.unique(held, return_counts=True)
    orphans = dict.fromkeys(numpy.setdiff1d(distinct, ids).tolist(), "it belongs to no passage")
    orphans |= dict.fromkeys(distinct[times > 1].tolist(), "it is there more than once")
    yield from findings(snapshot, "vector-orphan", orphans, file)
    missing = dict.fromkeys(numpy.setdiff1d(ids, held).tolist(), _NOT_THERE)
    yield from findings(snapshot, "vector-missing", missing, file)


def read(
    embeddings: "EmbeddingCache",
    fingerprint: str,
    wanted: Sequence[tuple[int, bytes]],
    index: "VectorIndex | None",
    level: Level,
) -> _ReadVectors:
    """One walk: every checksum, whether it can be a vector, and its FAISS row.

    An index that shortens vectors is held against the embeddings shortened in the same way.
    """
    import numpy

    seen = _ReadVectors()
    there = numpy.zeros(len(wanted), numpy.bool_)
    every = numpy.array([identifier for identifier, _ in wanted], numpy.int64)
    held = numpy.empty(0, numpy.int64) if index is None else index.ids()
    for places, vectors in _blocks(embeddings, fingerprint, wanted):
        there[places] = True
        ids = every[places]
        invalid = vector_file.odd_lengths(ids, vectors)
        seen.invalid |= invalid
        if index is None:
            continue
        same = index.holds(ids, vectors) if level == "deep" else index.holds_codes(ids, vectors)
        if not same.all():
            # What the file lacks is reported as such; an invalid vector is not bit rot.
            away = ~same & numpy.isin(ids, held) & ~numpy.isin(ids, list(invalid))
            ids, vectors = ids[away], vectors[away]
            seen.differing |= dict.fromkeys(ids.tolist(), "its row differs from its embedding")
            for place in range(min(len(ids), _NAMED)):
                hits = index.search(vectors[place], 1, allowed=ids[place : place + 1])
                product = f"{hits[0][1]:.6f}" if hits else "nothing"
                detail = f": their product is {product}, expected the same bits"
                seen.differing[int(ids[place])] += detail
    seen.lost.update(wanted[place][1] for place in numpy.flatnonzero(~there).tolist())
    if seen.invalid:
        seen.unsound.update(key for one, key in wanted if one in seen.invalid)
    return seen


def _tell_embeddings(
    snapshot: StoreSnapshot, seen: _ReadVectors, sample: Sample, report: VerificationReport
) -> None:
    report.checked.append(
        "every stored embedding" if sample.is_all else f"embeddings of slice {sample}"
    )
    if not sample.is_all:
        report.not_checked.append(f"embeddings outside slice {sample}")
    detail = "its checksum does not hold, or its row is gone"
    wrong = {vector_id(key): detail for key in seen.lost}
    part = snapshot.places.part(EMBEDDINGS)
    report.add(findings(snapshot, "embeddings-damaged", wrong, part))
    report.add(findings(snapshot, "vector-invalid", seen.invalid, part))
    report.unsound |= seen.unsound


def _tell_rows(
    snapshot: StoreSnapshot,
    index: "VectorIndex",
    seen: _ReadVectors,
    level: Level,
    sample: Sample,
    report: VerificationReport,
) -> None:
    report.add(findings(snapshot, "vector-mismatch", seen.differing, file_of(snapshot)))
    kind = snapshot.home.row_name
    rows = f"every {kind}" if sample.is_all else f"each {kind} of slice {sample}"
    report.checked.append(f"{rows}, bit for bit")
    if index.has_lists:
        words = "whether each FAISS row is in the list where a search looks for it"
        (report.checked if level == "deep" else report.not_checked).append(words)


def _blocks(
    embeddings: "EmbeddingCache", fingerprint: str, wanted: Sequence[tuple[int, bytes]]
) -> Iterator["tuple[NDArray[intp], NDArray[float32]]"]:
    """Places in what is wanted, and the sound vectors that are stored for them."""
    import numpy

    found = numpy.zeros(len(wanted), numpy.bool_)
    few = len(wanted) < _FEW_OF * embeddings.count(fingerprint)
    if not few and {len(key) for _, key in wanted} == {_KEY_BYTES}:
        # One walk through all rows, wanted or not.
        words = _as_words([key for _, key in wanted])
        order = numpy.argsort(words[:, 0], kind="stable")
        ascending = words[order, 0]
        for keys, raw in embeddings.walk(fingerprint, _BLOCK):
            if set(map(len, keys)) != {_KEY_BYTES}:
                continue
            stored = _as_words(keys)
            at = numpy.minimum(numpy.searchsorted(ascending, stored[:, 0]), len(order) - 1)
            ours = (words[order[at]] == stored).all(axis=1)
            if ours.any():
                vectors = numpy.frombuffer(b"".join(raw), "<f4").reshape(len(raw), -1)
                # A slice copies nothing.
                some = slice(None) if ours.all() else ours
                places = order[at][some]
                found[places] = True
                yield places, vectors[some].astype(numpy.float32, copy=False)
    # One by one what the walk did not come by, or where there are few.
    others = numpy.flatnonzero(~found)
    for start in range(0, len(others), _BLOCK):
        block = others[start : start + _BLOCK]
        vectors, sound = embeddings.get(fingerprint, [wanted[one][1] for one in block.tolist()])
        if sound.any():
            yield block[sound], vectors[sound]


def _as_words(keys: Sequence[bytes]) -> "NDArray[uint64]":
    """Keys as (n, 4) uint64, so that they are compared at once and ordered by the first."""
    import numpy

    return numpy.frombuffer(b"".join(keys), ">u8").reshape(len(keys), -1).astype(numpy.uint64)


def file_of(snapshot: StoreSnapshot) -> StorePath:
    """The path of where the vectors live, in findings."""
    return snapshot.home.part(snapshot.catalog)


def findings(snapshot: StoreSnapshot, code: str, wrong: Wrong, part: StorePath) -> list[Finding]:
    """One finding for each file that a wrong vector concerns; where they are many, one for all.

    Args:
        snapshot: The store; its catalog knows whose text a vector is.
        code: Of the findings.
        wrong: What is wrong, by vector id.
        part: The damaged part of the sidecar: the path of what is about no file, else `other`.
    """
    if not wrong:
        return []
    catalog, tree = snapshot.catalog, snapshot.places.tree
    owners = catalog.files_of_vectors(list(wrong))
    rows = catalog.files_by_id(sorted({file for files in owners.values() for file, _ in files}))
    named: dict[ChunkPath, list[str]] = {}
    for identifier, files in owners.items():
        for file, number in files:
            if file in rows:
                part_name = kept.part_name(rows[file].kind, number)
                detail = f"{part_name}: {wrong[identifier]}"
                named.setdefault(rows[file].path, []).append(detail)
    loose = len(wrong.keys() - owners.keys())
    if len(named) > _NAMED or loose:
        first = next(iter(wrong))
        paths = f" of {len(named):,} files ({listed(map(tree.store_path, sorted(named)))})"
        counted = f"{len(wrong):,} vectors{paths if named else ''}"
        detail = f"{counted}; vector {first}: {wrong[first]}"
        return [Finding(code=code, path=part, other=part, detail=detail)]
    return [
        Finding(code=code, path=tree.store_path(path), other=part, detail="; ".join(details))
        for path, details in named.items()
    ]


MOST_TEXTS: Final = 256
"""How many texts are embedded again where no slice is named."""
_LOOKED_UP: Final = 64
_ROUNDING: Final = 1e-4


def check_model(
    snapshot: StoreSnapshot, sample: Sample, report: VerificationReport, on_progress: OnProgress
) -> None:
    """Embed a slice of the texts again, compare, and look each up by its own vector."""
    embedder, embeddings = snapshot.embedder, snapshot.embeddings
    if embedder is None or report.codes() & codes_where(about="model"):
        report.not_checked.append("the model, since it is not here or not the one of the vectors")
        return
    if embeddings is None or not queries.has_embedded(snapshot.catalog):
        report.not_checked.append("the model, since there is no embedding to compare it with")
        return
    sample = affordable(sample, snapshot.catalog.count("vectors"))
    keys = {one: key for one, key in snapshot.catalog.vector_keys() if sample.has_vector(one)}
    try:
        _ask_model(snapshot, embedder, embeddings, keys, report, on_progress)
        _look_up(snapshot, embedder, embeddings, keys, report)
    except EmbeddingsDamaged as error:
        # What SQLite cannot reach was reported when the embeddings were read.
        report.not_checked.append(f"the model with embeddings that are damaged ({error.detail})")
    if not sample.is_all:
        report.not_checked.append(f"the model with passages outside slice {sample}")


def _ask_model(
    snapshot: StoreSnapshot,
    embedder: "Embedder",
    embeddings: "EmbeddingCache",
    keys: Mapping[int, bytes],
    report: VerificationReport,
    on_progress: OnProgress,
) -> None:
    try:
        likeness = canary_likeness(embedder, embeddings)
        if likeness is not None and not likeness >= 1 - TOLERANCE:
            detail = (
                f"{embedder.name} does not embed as it did: a fixed text has a cosine of "
                f"{likeness:.3f} to itself, expected at least {1 - TOLERANCE}"
            )
            report.add([Finding(code="model-drift", path=SETTINGS, detail=detail)])
            report.not_checked.append("each passage with the model, since the model is another")
            return
        _embed_again(snapshot, embedder, embeddings, keys, report, on_progress)
        report.checked.append(f"the embeddings of {len(keys):,} passages against the model")
    except (EndpointError, ModelMissing, ModelUnusable) as error:
        report.not_checked.append(f"the model, since it does not answer: {error.message}")


def affordable(sample: Sample, texts: int) -> Sample:
    """A slice of few texts where none was named."""
    if not sample.is_all or texts <= MOST_TEXTS:
        return sample
    return Sample(number=1, of=-(-texts // MOST_TEXTS))


def _embed_again(
    snapshot: StoreSnapshot,
    embedder: "Embedder",
    embeddings: "EmbeddingCache",
    keys: Mapping[int, bytes],
    report: VerificationReport,
    on_progress: OnProgress,
) -> None:
    wrong: dict[int, str] = {}
    done = 0
    for ids, texts in texts_of_vectors(snapshot.catalog, list(keys)):
        stored, present = embeddings.get(embedder.fingerprint, [keys[one] for one in ids])
        now = embedder.embed_documents(texts)
        for place, identifier in enumerate(ids):
            cosine = float(stored[place] @ now[place])
            # Written so that a number that is none counts as wrong.
            if present[place] and not cosine >= 1 - TOLERANCE:
                wrong[identifier] = (
                    f"its embedding has a cosine of {cosine:.3f} to what the model gives now, "
                    f"expected at least {1 - TOLERANCE}"
                )
        done += len(ids)
        on_progress(Progress(stage="embedding again", done=done, total=len(keys)))
    # What is no vector was reported as such.
    wrong = {one: detail for one, detail in wrong.items() if keys[one] not in report.unsound}
    report.add(findings(snapshot, "vector-mismatch", wrong, snapshot.places.part(EMBEDDINGS)))
    report.unsound |= {keys[one] for one in wrong}


def _look_up(
    snapshot: StoreSnapshot,
    embedder: "Embedder",
    embeddings: "EmbeddingCache",
    keys: Mapping[int, bytes],
    report: VerificationReport,
) -> None:
    """Ask the index that searches use for the neighbours of each vector: itself is the nearest."""
    index = loaded(snapshot.places, StoredVectors(snapshot.catalog, embeddings, embedder))
    wrong: dict[int, str] = {}
    for batch in in_batches(list(keys), _LOOKED_UP):
        vectors, present = embeddings.get(embedder.fingerprint, [keys[one] for one in batch])
        for place, identifier in enumerate(batch):
            reported = keys[identifier] in report.unsound or not present[place]
            if not reported and (detail := astray(index, identifier, vectors[place])):
                wrong[identifier] = detail
    # A row that differs, or is not there, is not found for that reason.
    known = {finding.path for finding in report.findings if finding.other == file_of(snapshot)}
    lost = findings(snapshot, "vector-mismatch", wrong, file_of(snapshot))
    report.add(finding for finding in lost if finding.path not in known)
    report.checked.append(f"whether passages are found by their own vectors: {len(keys):,}")


def astray(index: "VectorIndex", identifier: int, vector: "NDArray[float32]") -> str:
    """What is nearer to a vector than itself; "" where nothing is."""
    import numpy

    hits = index.search(vector, 1)
    if hits and hits[0][0] == identifier:
        return ""
    own = index.search(vector, 1, allowed=numpy.array([identifier], numpy.int64))
    # Texts with equal vectors, or nearly so, are one as near as the other.
    if own and hits and own[0][1] >= hits[0][1] - _ROUNDING:
        return ""
    nearest = f"{hits[0][0]} with {hits[0][1]:.4f}" if hits else "nothing"
    return f"its own vector finds {nearest}, expected itself"

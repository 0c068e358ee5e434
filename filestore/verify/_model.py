"""What only the model can say: are the stored vectors still its own, and do texts find themselves?

The deepest level. It embeds texts again, so it looks at one slice of them at a time.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from filestore.catalog import in_batches, queries
from filestore.config.layout import EMBEDDINGS, SETTINGS
from filestore.core.codes import codes_where
from filestore.core.findings import Finding
from filestore.core.progress import OnProgress, Progress
from filestore.embed import EndpointError, ModelMissing, ModelUnusable
from filestore.embed.cache import EmbeddingsDamaged
from filestore.embed.canaries import TOLERANCE, canary_likeness
from filestore.sidecar.file_rows import texts_of_vectors
from filestore.sidecar.snapshot import Sample, StoreSnapshot, VerificationReport
from filestore.sidecar.vector_file import loaded
from filestore.sidecar.vector_home import StoredVectors
from filestore.verify._vectors import file_of, findings

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex

MOST_TEXTS: Final = 256
"""How many texts are embedded again where no slice is named."""
_BATCH: Final = 64
_ROUNDING: Final = 1e-4


def check(
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
        report.not_checked.append(f"the model with texts outside slice {sample}")


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
            report.not_checked.append("each text with the model, since the model is another")
            return
        _embed_again(snapshot, embedder, embeddings, keys, report, on_progress)
        report.checked.append(f"the embeddings of {len(keys):,} texts against the model")
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
    for batch in in_batches(list(keys), _BATCH):
        vectors, present = embeddings.get(embedder.fingerprint, [keys[one] for one in batch])
        for place, identifier in enumerate(batch):
            reported = keys[identifier] in report.unsound or not present[place]
            if not reported and (detail := astray(index, identifier, vectors[place])):
                wrong[identifier] = detail
    # A row that differs, or is not there, is not found for that reason.
    known = {finding.path for finding in report.findings if finding.other == file_of(snapshot)}
    lost = findings(snapshot, "vector-mismatch", wrong, file_of(snapshot))
    report.add(finding for finding in lost if finding.path not in known)
    report.checked.append(f"whether texts are found by their own vectors: {len(keys):,}")


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

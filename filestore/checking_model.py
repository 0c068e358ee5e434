"""What only the model can say: are the stored vectors still its own, and do texts find themselves?

The deepest level. It embeds texts anew, so it looks at one slice of them at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from filestore import vector_file
from filestore.catalog import Catalog, in_batches
from filestore.checking_vectors import EMBEDDINGS, file_of, findings
from filestore.embed import EndpointError, ModelMissing, ModelUnusable
from filestore.embed.cache import EmbeddingsDamaged
from filestore.embed.canaries import TOLERANCE, canary_likeness
from filestore.findings import Finding
from filestore.observation import INDEXED, Observation
from filestore.observe import interpret_chunk
from filestore.progress import OnProgress, Progress
from filestore.subject import Said, Sample, Subject

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex

MOST_TEXTS: Final = 256
"""So many texts are embedded anew where no slice is named."""
_BATCH: Final = 64
_ROUNDING: Final = 1e-4


def check(subject: Subject, sample: Sample, said: Said, on_progress: OnProgress) -> None:
    """Embed a slice of the texts anew, compare, and look each up by its own vector."""
    embedder, embeddings = subject.embedder, subject.embeddings
    blocked = said.codes() & {"model-missing", "model-changed"}
    if embedder is None or blocked:
        said.not_checked.append("the model, since it is not here or not the one of the vectors")
        return
    if embeddings is None or not vector_file.has_embedded(subject.catalog):
        said.not_checked.append("the model, since there is no embedding to compare it with")
        return
    sample = affordable(sample, subject.catalog.count("vectors"))
    keys = {one: key for one, key in subject.catalog.vector_keys() if sample.has_vector(one)}
    try:
        _ask_model(subject.catalog, embedder, embeddings, keys, said, on_progress)
        _look_up(subject, embedder, embeddings, keys, said)
    except EmbeddingsDamaged as error:
        # What SQLite cannot walk to was told when the embeddings were read.
        said.not_checked.append(f"the model with embeddings that are damaged ({error.detail})")
    if not sample.is_all:
        said.not_checked.append(f"the model with texts outside slice {sample}")


def _ask_model(
    catalog: Catalog,
    embedder: "Embedder",
    embeddings: "EmbeddingCache",
    keys: Mapping[int, bytes],
    said: Said,
    on_progress: OnProgress,
) -> None:
    try:
        likeness = canary_likeness(embedder, embeddings)
        if likeness is not None and not likeness >= 1 - TOLERANCE:
            said.add([_drifted(embedder, likeness)])
            said.not_checked.append("each text with the model, since the model is another")
            return
        _embed_again(catalog, embedder, embeddings, keys, said, on_progress)
        said.checked.append(f"the embeddings of {len(keys):,} texts against the model")
    except (EndpointError, ModelMissing, ModelUnusable) as error:
        said.not_checked.append(f"the model, since it does not answer: {error.message}")


def affordable(sample: Sample, texts: int) -> Sample:
    """A slice of few texts where none was named."""
    if not sample.is_all or texts <= MOST_TEXTS:
        return sample
    return Sample(number=1, of=-(-texts // MOST_TEXTS))


def _drifted(embedder: "Embedder", likeness: float) -> Finding:
    detail = (
        f"{embedder.name} does not embed as it did: a fixed text has a cosine of {likeness:.3f} "
        f"to itself, expected at least {1 - TOLERANCE}"
    )
    return Finding(code="model-drift", path="filestore.toml", detail=detail)


def _embed_again(
    catalog: Catalog,
    embedder: "Embedder",
    embeddings: "EmbeddingCache",
    keys: Mapping[int, bytes],
    said: Said,
    on_progress: OnProgress,
) -> None:
    wrong: dict[int, str] = {}
    done = 0
    for ids, texts in _texts(catalog, list(keys)):
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
    # What is no vector at all was told as such.
    wrong = {one: detail for one, detail in wrong.items() if keys[one] not in said.unsound}
    said.add(findings(catalog, "vector-mismatch", wrong, EMBEDDINGS))
    said.unsound |= {keys[one] for one in wrong}


def _texts(catalog: Catalog, ids: Sequence[int]) -> Iterator[tuple[list[int], list[str]]]:
    """Vector ids with their texts, as the catalog last saw them, in batches."""
    for batch in in_batches(ids, _BATCH):
        owners = catalog.files_of_vectors(batch)
        pairs = [(one, *owners[one][0]) for one in batch if owners.get(one)]
        texts: dict[int, str] = {}
        for identifier, file, part in pairs:
            look = _seen(catalog.content(file) or b"")
            if part < len(look.texts) and look.vector_ids()[part] == identifier:
                texts[identifier] = look.texts[part]
        if texts:
            yield list(texts), list(texts.values())


def _seen(data: bytes) -> Observation:
    look = Observation(path="", values=(0, 0, 0, 0, 0), state=INDEXED, data=data)
    interpret_chunk(look)
    return look


def _look_up(
    subject: Subject,
    embedder: "Embedder",
    embeddings: "EmbeddingCache",
    keys: Mapping[int, bytes],
    said: Said,
) -> None:
    """Ask the index that searches use for the neighbours of each vector: itself is the nearest."""
    index = vector_file.load(subject.places, subject.catalog, embeddings, embedder)
    wrong: dict[int, str] = {}
    for batch in in_batches(list(keys), _BATCH):
        vectors, present = embeddings.get(embedder.fingerprint, [keys[one] for one in batch])
        for place, identifier in enumerate(batch):
            told = keys[identifier] in said.unsound or not present[place]
            if not told and (detail := astray(index, identifier, vectors[place])):
                wrong[identifier] = detail
    # A row that differs, or is not there, is not found for that reason.
    known = {finding.path for finding in said.findings if finding.other == file_of(subject.catalog)}
    lost = findings(subject.catalog, "vector-mismatch", wrong, file_of(subject.catalog))
    said.add(finding for finding in lost if finding.path not in known)
    said.checked.append(f"whether texts are found by their own vectors: {len(keys):,}")


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

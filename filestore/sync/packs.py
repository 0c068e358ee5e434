"""Embeddings carried from one store to another: what goes into a pack, and what is taken from one.

A pack may come from a stranger. One rule: before anything of it is kept, all of it was read and
found whole, and the store's model gave the same vectors for some of the store's texts, chosen by
chance.
"""

import contextlib
import os
import random
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import CatalogDamagedError, in_batches, queries
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.hashing import vector_id
from filestore.core.limits import USUAL, Counter, Limits, Size
from filestore.core.paths import ChunkPath, inside
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.schema import JsonObject
from filestore.embed import (
    COMPARED,
    LEAST_COSINE,
    EndpointError,
    ModelMissing,
    ModelUnusable,
    Sampled,
    first_unlike,
)
from filestore.embed.pack import Batch, Pack, PackDamaged, PackedModel, Source, is_pack, write
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.fs.staged import TargetRefused, check_target, staged_file
from filestore.sidecar.losses import walk
from filestore.sidecar.refusals import own_folder_of
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import texts_now

if TYPE_CHECKING:
    from filestore.catalog import Catalog
    from filestore.embed.cache import EmbeddingCache

_FILES_AT_ONCE: Final = 32
_MOST_FILES: Final = 2_000
_MOST_KEYS: Final = 20_000
"""More files are not read, nor more keys of the catalog looked up, to find such texts."""
_BATCH: Final = 500


class PackUnchecked(RefusedError):
    """Nothing here can tell whether the vectors of a pack are what a model gives."""

    def __init__(self, path: str, reason: str, remedy: str = "") -> None:
        self.reason = reason
        super().__init__(
            f"the vectors of {path} cannot be checked: {reason}",
            remedy=f"{remedy}{', or ' if remedy else ''}import it with --unchecked: its vectors are"
            " taken as they are",
        )


class PackDiffers(RefusedError):
    """A pack has other vectors than the store's model gives."""


class NothingToExport(FilestoreError):
    """None of the vectors that were asked for is there."""

    def __init__(self) -> None:
        super().__init__("there are no embeddings to export", remedy="filestore sync")


class ExportedEmbeddings(
    JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}
):
    """What was written into a pack."""

    path: str
    """Of the pack."""
    size_bytes: int
    """Its size."""
    digest: str
    """`sha256:` and 64 hexadecimal digits; equal for packs of the same embeddings."""
    models: tuple[PackedModel, ...]
    """What was written."""
    lacking: int
    """Texts that have no sound vector; the exit code is then 1."""


class ImportedEmbeddings(JsonObject, Struct, frozen=True, kw_only=True):
    """What was taken from a pack."""

    SPARSE = "unchecked"

    path: str
    """Of the pack."""
    models: tuple[PackedModel, ...]
    """What was taken."""
    left_out: tuple[PackedModel, ...]
    """What was not: of models that are not the store's."""
    added: int
    """Vectors that are new here."""
    known: int
    """Vectors that were here before, which stay as they were."""
    compared: int
    """Texts that were embedded again, and had the same vectors."""
    unchecked: str | None = None
    """Why some of it could not be checked, where that was allowed."""


def export_pack(
    parts: Parts,
    path: str,
    *,
    everything: bool = False,
    on_progress: OnProgress = ignore,
) -> ExportedEmbeddings:
    """Write embeddings into a pack, which replaces an earlier one.

    Args:
        parts: The store's.
        path: Of the pack.
        everything: All that is in the cache, of every model, not only what the store's texts need.
        on_progress: Called with the progress.

    Raises:
        TargetRefused: The path is no place for a pack.
        CatalogMissingError: Nothing is known of the store's texts.
        EmbeddingsMissing, NothingToExport: There is nothing to be packed.
        WriteFailedError: The disk refused; an earlier pack is untouched.
    """
    from filestore.embed.cache import EmbeddingCache

    # No path that belongs to the store, or to something that is no pack.
    if folder := own_folder_of(parts.places, path):
        raise TargetRefused(
            f"{path} lies in {folder}, which holds files of the store: name a file outside it",
        )
    if not os.path.basename(path):
        raise TargetRefused(f"{path!r} names no file: name the file itself")
    check_target(path, is_pack, found="it is not a pack")
    with EmbeddingCache.open(parts.places.embeddings, read_only=True) as embeddings:
        known = embeddings.fingerprints()
        if everything:
            return _Export(embeddings, None, on_progress).write(path, known)
        with parts.reading() as catalog:
            own = catalog.meta("fingerprint")
            if own not in known:
                raise NothingToExport
            return _Export(embeddings, catalog, on_progress).write(path, {own: known[own]})


class _Export:
    """One pack on its way to the disk."""

    def __init__(
        self,
        embeddings: "EmbeddingCache",
        catalog: "Catalog | None",
        on_progress: OnProgress,
    ) -> None:
        """Take where vectors come from, and what knows the texts; None for all vectors."""
        self._embeddings = embeddings
        self._catalog = catalog
        self._on_progress = on_progress
        self._wanted = 0

    def write(self, path: str, models: dict[str, int]) -> ExportedEmbeddings:
        """Write the pack."""
        on_progress, catalog = self._on_progress, self._catalog
        total = sum(
            self._embeddings.count(name) if catalog is None else catalog.count("vectors")
            for name in models
        )
        sources = [
            Source(fingerprint=name, dimension=dimension, batches=self._batches(name))
            for name, dimension in models.items()
        ]
        with staged_file(path) as descriptor:
            packed = write(
                descriptor,
                sources,
                lambda done: on_progress(Progress(stage="exporting", done=done, total=total)),
            )
            if not packed:
                raise NothingToExport
        with Pack.open(path) as pack:
            info = pack.info
        vectors = sum(model.vectors for model in packed)
        return ExportedEmbeddings(
            path=path,
            size_bytes=info.size_bytes,
            digest=info.digest,
            models=packed,
            lacking=self._wanted - vectors,
        )

    def _batches(self, fingerprint: str) -> Iterator[Batch]:
        """The vectors of a model by key, some at a time."""
        if self._catalog is None:
            self._wanted += self._embeddings.count(fingerprint)
            yield from self._embeddings.walk(fingerprint, _BATCH)
            return
        from filestore.embed import canary_keys

        texts = queries.text_keys(self._catalog)
        fixed = sorted(self._embeddings.has(fingerprint, canary_keys()))
        keys = (key for key, _ in groupby(merge(texts, fixed)))
        while some := list(islice(keys, _BATCH)):
            self._wanted += len(some)
            found = self._embeddings.raw(fingerprint, some)
            there = [key for key in some if key in found]
            if there:
                yield there, [found[key] for key in there]


def import_pack(
    parts: Parts,
    path: str,
    *,
    unchecked: bool = False,
    wait_s: float = DEFAULT_WAIT_S,
    on_progress: OnProgress = ignore,
    limits: Limits = USUAL,
    chance: random.Random | None = None,
) -> ImportedEmbeddings:
    """Take embeddings from a pack; a sound vector that is here stays. Writes the cache alone.

    All of a pack or nothing: whatever is wrong with it, nothing is taken. What was taken before a
    kill is sound, and the next call takes the rest.

    Args:
        parts: The store's.
        path: Of the pack.
        unchecked: Take what cannot be checked here, too; what can be is checked all the same.
        wait_s: How long to wait for another writer.
        on_progress: Called with the progress.
        limits: How much is taken.
        chance: Chooses the texts that are embedded again; None for an unforeseeable choice.

    Raises:
        NotAPack, PackDamaged, PackNewer: It cannot be used.
        LimitExceededError: It is more than is taken.
        PackUnchecked: Nothing here can tell whether its vectors are right.
        PackDiffers: They are not.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; what was taken is sound, the next call takes the rest.
    """
    with Pack.open(path) as pack:
        total = sum(model.vectors for model in pack.models)
        Counter(limits, path).add(Size(rows=total, bytes=pack.info.size_bytes))
        pack.check(lambda done: on_progress(Progress(stage="checking", done=done, total=total)))
        parts.model.ask()
        with parts.locked("embeddings import", wait_s=wait_s):
            compared, reasons, taken = 0, [], pack.models
            try:
                own, compared = _checked(parts, pack, path, chance or random.SystemRandom())
                taken = taken if unchecked else (own,)
                others = [one.fingerprint for one in taken if one != own]
                reasons += [f"{name}: not the model of the store" for name in others]
            except PackUnchecked as error:
                if not unchecked:
                    raise
                reasons.append(error.reason)
            added = _take(parts, pack, path, taken, on_progress)
    return ImportedEmbeddings(
        path=path,
        models=taken,
        left_out=tuple(one for one in pack.models if one not in taken),
        added=added,
        known=sum(one.vectors for one in taken) - added,
        compared=compared,
        unchecked="; ".join(reasons) or None,
    )


def _checked(parts: Parts, pack: Pack, path: str, chance: random.Random) -> tuple[PackedModel, int]:
    """What a pack has of the store's model, and how many texts were compared.

    Raises:
        PackUnchecked: There is nothing to compare with.
        PackDiffers: The vector of some text is not what the model gives.
    """
    from filestore.embed import CANARIES, canary_keys

    embedder = parts.model.embedder
    if embedder is None:
        why = parts.model.why_not
        raise PackUnchecked(path, why.message, why.remedy)
    own = pack.of(embedder.fingerprint)
    if own is None:
        models = ", ".join(one.fingerprint for one in pack.models)
        raise PackUnchecked(
            path, f"they come from {models}, the model of the store is {embedder.fingerprint}"
        )
    if own.dimension != embedder.dimension:
        raise _unlike(path, own, embedder.dimension)
    keys = canary_keys()
    there = pack.find(own, keys)
    # The canaries that a pack has: its maker saw these, but no one has to.
    texts = [
        Sampled(name="a fixed text", text=text, vector=there[key])
        for key, text in zip(keys, CANARIES, strict=True)
        if key in there
    ]
    texts += _own_texts(parts, pack, own, path, chance)
    try:
        unlike = first_unlike(embedder, texts)
    except (EndpointError, ModelMissing, ModelUnusable) as error:
        raise PackUnchecked(path, error.message, error.remedy) from error
    if unlike is not None:
        one, cosine = unlike
        raise PackDiffers(
            f"{path} has another vector for {one.name} than {embedder.name} gives: their cosine"
            f" is {cosine:.3f}, expected at least {LEAST_COSINE}",
            remedy="'filestore sync' embeds the passages here, without this pack",
        )
    return own, len(texts)


def _own_texts(
    parts: Parts, pack: Pack, model: PackedModel, path: str, chance: random.Random
) -> list[Sampled]:
    """Some texts of files in the tree that a pack has, by chance."""
    found: dict[bytes, Sampled] = {}
    known = _known_files(parts, pack, model, chance)
    folders = walk(parts.places, processes=1).folders.items()
    every = [inside(folder, name) for folder, packed in folders for name in packed.entries()]
    others = chance.sample(every, min(_MOST_FILES, len(every)))
    for some in chain(in_batches(known, _FILES_AT_ONCE), in_batches(others, _FILES_AT_ONCE)):
        texts = {
            key: (file, text)
            for file, key, text in texts_now(parts.places, parts.layout, sorted(some))
        }
        for key, packed in pack.find(model, texts).items():
            file, text = texts[key]
            name = parts.places.tree.store_path(file)
            found[key] = Sampled(name=name, text=text, vector=packed)
        if len(found) >= COMPARED:
            break
    if not found:
        raise PackUnchecked(
            path,
            f"none of {len(others):,} files of the store has a text that is among them",
            "run 'filestore sync --no-embed', so that all passages are known" if others else "",
        )
    keys = chance.sample(sorted(found), min(COMPARED, len(found)))
    return [found[key] for key in keys]


def _known_files(
    parts: Parts, pack: Pack, model: PackedModel, chance: random.Random
) -> list[ChunkPath]:
    """Some files with a text that a pack has, by chance, as far as the catalog knows."""
    try:
        catalog = parts.catalog()
    except FilestoreError:
        return []
    with contextlib.suppress(CatalogDamagedError), catalog.snapshot():
        count = catalog.count("vectors")
        chosen = set(chance.sample(range(count), min(_MOST_KEYS, count)))
        keys = [key for at, key in enumerate(queries.text_keys(catalog)) if at in chosen]
        chance.shuffle(keys)
        there: list[bytes] = []
        for some in in_batches(keys, _BATCH):
            there += pack.find(model, some)
            if len(there) >= COMPARED:
                break
        owners = catalog.files_of_vectors([vector_id(key) for key in there[:COMPARED]])
        files = catalog.files_by_id([files[0][0] for files in owners.values()])
        return sorted(row.path for row in files.values())
    return []


def _take(
    parts: Parts, pack: Pack, path: str, models: Sequence[PackedModel], on_progress: OnProgress
) -> int:
    """Keep the vectors of some models; how many were not here."""
    from filestore.embed.cache import EmbeddingCache

    total = sum(model.vectors for model in models)
    done = added = 0
    with EmbeddingCache.open(parts.places.embeddings) as embeddings:
        known = embeddings.fingerprints()
        for model in models:
            if known.get(model.fingerprint, model.dimension) != model.dimension:
                raise _unlike(path, model, known[model.fingerprint])
        for model in models:
            for keys, vectors in pack.blocks(model):
                added += embeddings.put(model.fingerprint, keys, vectors)
                done += len(keys)
                on_progress(Progress(stage="importing", done=done, total=total))
    return added


def _unlike(path: str, model: PackedModel, dimension: int) -> PackDamaged:
    return PackDamaged(
        path,
        f"its vectors of {model.fingerprint} have {model.dimension:,} numbers, here they have"
        f" {dimension:,}",
    )

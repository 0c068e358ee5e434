"""Giving a store another model: what that costs, and doing it.

One rule: vectors of two models never stand in one index; until every text has its new vector, the
old generation answers.
"""

import os
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from filestore.config import settings, user_config
from filestore.config.layout import Places
from filestore.core.errors import FilestoreError
from filestore.core.progress import OnProgress, part_of
from filestore.embed import Choice, Embedder, reaches_out
from filestore.embed.dimensions import forget_dimension
from filestore.embed.models import try_out
from filestore.fs import disk
from filestore.sidecar.model import ask_model, chosen_by

if TYPE_CHECKING:
    from filestore.catalog import Catalog
    from filestore.embed.cache import EmbeddingCache
    from filestore.sidecar.commit import Commit, CommitReport


class ModelNotChanged(FilestoreError):
    """A new model could not embed every text."""

    def __init__(self, problem: FilestoreError) -> None:
        super().__init__(
            f"the store keeps the model it has: {problem.message}",
            remedy=problem.remedy,
            detail=problem.detail,
        )


class ModelChange(Struct, frozen=True, kw_only=True):
    """Another model for a store, and what it costs."""

    choice: Choice
    embedder: Embedder
    texts: int
    """How many texts of the store it would embed; those it embedded before cost nothing."""
    known: int
    beside: bool = False
    """Whether it is to stand beside the store's own, and not to take its place."""


def plan(
    places: Places,
    word: str,
    options: settings.ModelOptions,
    *,
    configuration: str,
    catalog: "Catalog",
    embeddings: "EmbeddingCache | None",
    beside: bool = False,
) -> ModelChange:
    """Open another embedder and count what it would have to embed.

    Args:
        places: Where the store lies.
        word: As `init` takes it.
        options: How its model is to be used. Naming a service allows the store to reach it.
        configuration: The user's configuration folder.
        catalog: Knows the texts.
        embeddings: Knows what is embedded.
        beside: Whether it is to stand beside the store's own model.

    Raises:
        FilestoreError: The embedder is unknown, not here, or of no use.
    """
    here = user_config.read_machine(configuration, os.environ)
    chosen = chosen_by(word, root=places.root, machine=here, configuration=configuration)
    choice = replace(chosen.choice, options=options, root=places.root)
    service = reaches_out(choice.name, options)
    if service is not None:
        forget_dimension(here.cache, service, choice.model)
        choice = replace(choice, machine=choice.machine.trusting(places.root, service))
    opened = ask_model(choice)
    if opened.embedder is None:
        raise opened.why_not
    try_out(opened.embedder)
    keys = {key for _, key in catalog.vector_keys(embedded=None)}
    known = embeddings.has(opened.embedder.fingerprint, keys) if embeddings is not None else set()
    return ModelChange(
        choice=choice,
        embedder=opened.embedder,
        texts=len(keys - known),
        known=len(keys & known),
        beside=beside,
    )


def write_settings(places: Places, change: ModelChange, configuration: str) -> None:
    """Name the model in `filestore.toml`, and remember that its service may be reached.

    Raises:
        WriteFailedError: The disk refused.
    """
    service = reaches_out(change.choice.name, change.choice.options)
    if service is not None:
        user_config.trust(configuration, places.root, service)
    name, options = change.choice.name, change.choice.options
    with disk.disk_errors(places.settings):
        data = settings.read(places.settings)
        if change.beside:
            data = settings.with_beside(data, settings.Beside(embedder=name, model=options))
        else:
            data = settings.with_model(data, name, options)
        disk.write_path(places.settings, data)


def embed_all(commit: "Commit", change: ModelChange, on_progress: OnProgress) -> "CommitReport":
    """Take every vector of the store from the new model, in one commit or not at all.

    Raises:
        ModelNotChanged: Some text could not be embedded; what was embedded is kept for next time.
    """
    with commit:
        commit.change_model(
            part_of(on_progress, "embedding", done=0, part=change.texts, total=change.texts)
        )
        if commit.problem is not None:
            raise ModelNotChanged(commit.problem)
        return commit.finish()

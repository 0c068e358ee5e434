"""Giving a store another model, or a second one beside its own: what that costs, and doing it.

One rule: vectors of two models never stand in one index; until every text has its new vector, the
old generation answers. The settings name both models, so a clone knows of them; whatever is
interrupted, each has its vectors under its own fingerprint, and `sync` completes what they say.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog
from filestore.config import settings, user_config
from filestore.config.layout import Places
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.progress import OnProgress, part_of
from filestore.core.schema import JsonObject
from filestore.embed import Choice, Embedder, reaches_out
from filestore.embed.models import forget_dimension, try_out
from filestore.fs import disk
from filestore.sidecar.beside import NotEmbedded, NothingBeside, known, lacking, remember
from filestore.sidecar.model import ask_model, chosen_by
from filestore.sidecar.model import remember as remember_choice
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
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
    catalog: Catalog,
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
    choice = chosen_by(word, root=places.root, options=options, machine=here)
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
    """Name the model in `filestore.toml`, and what the user's side has of it.

    Raises:
        WriteFailedError: The disk refused.
    """
    remember_choice(change.choice, places.root, configuration)
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


class SettingsMovedError(FilestoreError):
    """The settings were changed while a command ran that was to change them."""


class Switched(JsonObject, Struct, frozen=True, kw_only=True):
    """Two models that have changed places."""

    embedder: str
    """The store's own now."""
    beside: str
    """The one that was the store's own."""


class Dropping(JsonObject, Struct, frozen=True, kw_only=True):
    """What is lost with the model beside."""

    embedder: str
    """As the settings name it; its fingerprint where they no longer do."""
    fingerprint: str
    """Of its vectors; empty where there were none."""
    embeddings: int
    """How many go, those of other branches and of the texts that tell a model by included."""
    texts: int
    """So many texts of the store would have to be embedded to have them again."""


def require_room(parts: Parts, catalog: Catalog, change: ModelChange) -> None:
    """See that a model may take the place that is planned for it.

    Raises:
        RefusedError: It has it already, or another one does.
    """
    name, there = change.choice.name, parts.settings.beside
    is_there = there is not None and (there.embedder, there.model) == (name, change.choice.options)
    if not change.beside:
        if is_there:
            raise RefusedError(f"{name} stands beside", remedy="filestore embedder switch")
        return
    own = parts.model.embedder
    fingerprint = own.fingerprint if own else catalog.meta("fingerprint")
    if change.embedder.fingerprint == fingerprint:
        raise RefusedError(
            f"{name} gives the same vectors as the store's own model", remedy="name another model"
        )
    if there is not None and not is_there:
        raise RefusedError(
            f"{there.embedder} stands beside already", remedy="filestore embedder drop"
        )


def build(parts: Parts, change: ModelChange, on_progress: OnProgress) -> "CommitReport":
    """Embed every text with the second model, then name it in the settings.

    Raises:
        NotEmbedded: Some text could not be embedded; what was embedded is kept for next time.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    with parts.writing("embedder set") as (catalog, embeddings, _):
        commit = parts.commit(catalog, embeddings, embed=True, beside=change.embedder)
        with commit:
            commit.embed_beside(
                part_of(on_progress, "embedding", done=0, part=change.texts, total=change.texts)
            )
            if commit.problem is not None:
                raise commit.problem
            report = commit.finish()
        write_settings(parts.places, change, parts.configuration)
    return report


def switch(parts: Parts) -> Switched:
    """Make the model beside the store's own, and the other way round; no text is embedded.

    Raises:
        NothingBeside: There is none.
        NotEmbedded: It lacks vectors.
        FilestoreError: It cannot be used here.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    with parts.writing("embedder switch") as (catalog, embeddings, _):
        before = parts.settings
        if before.beside is None or parts.beside is None:
            raise NothingBeside
        embedder = parts.beside.embedder
        if embedder is None:
            raise parts.beside.why_not
        if short := lacking(catalog, embeddings, embedder.fingerprint):
            number = "1 text has" if len(short) == 1 else f"{len(short):,} texts have"
            raise NotEmbedded(
                f"{number} no vector of {before.beside.embedder} yet", remedy="filestore sync"
            )
        then = parts.switched()
        with then.commit(catalog, embeddings, embed=False, embedder=embedder) as commit:
            commit.finish()
        _write(parts, settings.with_models_switched)
    return Switched(embedder=before.beside.embedder, beside=before.embedder)


def plan_drop(parts: Parts) -> Dropping:
    """What would be lost; changes nothing.

    Raises:
        NothingBeside: There is nothing to drop.
    """
    catalog = parts.catalog()
    chosen, kept = parts.settings.beside, known(catalog)
    other = parts.beside.embedder if parts.beside else None
    fingerprint = other.fingerprint if other else kept.fingerprint if kept else ""
    own = parts.model.embedder
    if fingerprint in (own.fingerprint if own else None, catalog.meta("fingerprint")):
        # Both names mean one model, whose vectors the store needs.
        fingerprint = ""
    if chosen is None and not fingerprint:
        raise NothingBeside
    embeddings, texts = parts.embeddings(), 0
    if embeddings is not None and fingerprint:
        texts = catalog.count("vectors") - len(lacking(catalog, embeddings, fingerprint))
    return Dropping(
        embedder=chosen.embedder if chosen else fingerprint,
        fingerprint=fingerprint,
        embeddings=embeddings.count(fingerprint) if embeddings and fingerprint else 0,
        texts=texts,
    )


def drop(parts: Parts, planned: Dropping) -> None:
    """Take the model beside out of the settings, then delete its embeddings.

    Raises:
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    with parts.writing("embedder drop") as (catalog, embeddings, _):
        if parts.settings.beside is not None:
            _write(parts, lambda data: settings.with_beside(data, None))
        if planned.fingerprint:
            embeddings.forget(planned.fingerprint)
        after = parts.opened_again()
        with after.commit(catalog, embeddings, embed=False) as commit:
            remember(catalog, None)
            commit.finish()


def _write(parts: Parts, edited: Callable[[bytes], bytes]) -> None:
    """Edit the settings, if they still name the models that this command began with.

    Raises:
        SettingsMovedError: They do not.
        WriteFailedError: The disk refused.
    """
    path, then = parts.places.settings, parts.settings
    with disk.disk_errors(path):
        data = settings.read(path)
        now = settings.parse(data, name=path)
        if (now.embedder, now.model, now.beside) != (then.embedder, then.model, then.beside):
            raise SettingsMovedError(
                f"{path} names other models than a moment ago", remedy="run the command again"
            )
        disk.write_path(path, edited(data))

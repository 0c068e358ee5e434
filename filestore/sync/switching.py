"""Giving a store another model, a second one, or another place for vectors: the cost, and doing it.

One rule: vectors of two models are never in one index; until every text has its new vector, the
old generation answers. The settings name both models, so a clone knows of them; whatever is
interrupted, each has its vectors under its own fingerprint, and `sync` completes what they say. A
change of place embeds nothing, and the store keeps the place it has until the new one has all.
"""

import os
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from filestore.catalog import Catalog
from filestore.config import settings, user_config, written
from filestore.config.layout import Places
from filestore.config.settings import Backend
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.progress import OnProgress, part_of
from filestore.core.safe_text import brief
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean
from filestore.embed import Choice, Embedder, reaches_out
from filestore.embed.models import forget_dimension, try_out
from filestore.fs import disk
from filestore.index import BackendError
from filestore.index.backend import BackendKeysMissing, BackendSettingsWrong, Sent
from filestore.sidecar.model import ask_model, chosen_by
from filestore.sidecar.model import remember as remember_choice
from filestore.sidecar.models import NotEmbedded, NothingBeside, lacking, remember
from filestore.sidecar.session import Parts, home_of
from filestore.sidecar.vector_home import StoredVectors, VectorHome

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.embed.cache import EmbeddingCache
    from filestore.sidecar.commit import CommitReport


class SettingsMovedError(FilestoreError):
    """The settings were changed while a command ran that was to change them."""


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
    is_second: bool = False
    """Whether it is a second model, and does not take the place of the store's own."""


def plan(
    places: Places,
    word: str,
    options: settings.ModelOptions,
    *,
    configuration: str,
    catalog: Catalog,
    embeddings: "EmbeddingCache | None",
    is_second: bool = False,
) -> ModelChange:
    """Open another embedder and count what it would have to embed.

    Args:
        places: Where the store lies.
        word: As `init` takes it.
        options: How its model is to be used. Naming a service allows the store to reach it.
        configuration: The user's configuration folder.
        catalog: Knows the texts.
        embeddings: Knows what is embedded.
        is_second: Whether it is to be a second model.

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
        is_second=is_second,
    )


class Switched(JsonObject, Struct, frozen=True, kw_only=True):
    """Two models that have changed places."""

    embedder: str
    """The store's own now."""
    beside: str
    """The one that was the store's own."""


class Dropping(JsonObject, Struct, frozen=True, kw_only=True):
    """What is lost with the second model."""

    embedder: str
    """As the settings name it; its fingerprint where they no longer do."""
    fingerprint: str
    """Of its vectors; empty where there were none."""
    embeddings: int
    """How many go, those of other branches and of the texts that tell a model by included."""
    texts: int
    """How many texts of the store would have to be embedded to have them again."""


def require_room(parts: Parts, catalog: Catalog, change: ModelChange) -> None:
    """See that a model may take the place that is planned for it.

    Raises:
        RefusedError: It has it already, or another one does.
    """
    name, there = change.choice.name, parts.settings.second
    is_there = there is not None and (there.embedder, there.model) == (name, change.choice.options)
    if not change.is_second:
        if is_there:
            raise RefusedError(
                f"{name} is the second model already", remedy="filestore embedder switch"
            )
        return
    own = parts.model.embedder
    fingerprint = own.fingerprint if own else catalog.meta("fingerprint")
    if change.embedder.fingerprint == fingerprint:
        raise RefusedError(
            f"{name} gives the same vectors as the store's own model: name another model"
        )
    if there is not None and not is_there:
        raise RefusedError(
            f"there is a second model already, {there.embedder}", remedy="filestore embedder drop"
        )


def apply(parts: Parts, change: ModelChange, on_progress: OnProgress) -> "CommitReport":
    """Embed every text with a model, in one commit or not at all, and name it in the settings.

    Raises:
        ModelNotChanged: Some text could not be embedded; what was embedded is kept for next time.
        NotEmbedded: The same of a second model.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    on_share = part_of(on_progress, "embedding", done=0, part=change.texts, total=change.texts)
    own, other = (None, change.embedder) if change.is_second else (change.embedder, None)
    with parts.writing("embedder set") as (catalog, embeddings, _):
        with parts.commit(catalog, embeddings, embed=True, embedder=own, other=other) as commit:
            if change.is_second:
                commit.embed_others(on_share)
            else:
                commit.change_model(on_share)
            if commit.problem is not None:
                raise commit.problem if change.is_second else ModelNotChanged(commit.problem)
            report = commit.finish()
        remember_choice(change.choice, parts.places.root, parts.configuration)
        name, model = change.choice.name, change.choice.options
        path = parts.places.settings
        with disk.disk_errors(path):
            data = settings.read(path)
            now = settings.parse(data, name=path)
            if change.is_second:
                now = replace(now, second=_as_second(name, model))
            else:
                now = replace(now, embedder=name, model=model)
            disk.write_path(path, written.with_models(data, now))
    return report


def _as_second(embedder: str, model: settings.ModelOptions) -> settings.SecondModel:
    return settings.SecondModel(embedder=embedder, **asdict(model))


def switch(parts: Parts) -> Switched:
    """Swap the store's own model and the second one; no text is embedded.

    Raises:
        NothingBeside: There is none.
        NotEmbedded: It lacks vectors.
        FilestoreError: It cannot be used here.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    with parts.writing("embedder switch") as (catalog, embeddings, _):
        before, model = parts.settings, parts.models.of("beside")
        embedder = model.embedder
        if embedder is None:
            raise model.why_not
        if short := lacking(catalog, embeddings, embedder.fingerprint):
            number = "1 passage has" if len(short) == 1 else f"{len(short):,} passages have"
            raise NotEmbedded(f"{number} no vector of {model.name} yet", remedy="filestore sync")
        assert before.second is not None
        other = _as_second(before.embedder, before.model)
        then = parts.opened_again()
        then.settings = replace(
            before, embedder=model.name, model=before.second.model, second=other
        )
        with then.commit(catalog, embeddings, embed=False, embedder=embedder) as commit:
            commit.finish()
        _write(parts, then.settings)
    return Switched(embedder=model.name, beside=before.embedder)


def plan_drop(parts: Parts) -> Dropping:
    """What would be lost; changes nothing.

    Raises:
        NothingBeside: There is nothing to drop.
    """
    catalog, own, chosen = parts.catalog(), parts.model.embedder, parts.settings.second
    fingerprint = parts.models.second_fingerprint(catalog)
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
    """Take the second model out of the settings, then delete its embeddings.

    Raises:
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    with parts.writing("embedder drop") as (catalog, embeddings, _):
        if parts.settings.second is not None:
            _write(parts, replace(parts.settings, second=None))
        if planned.fingerprint:
            embeddings.forget(planned.fingerprint)
        after = parts.opened_again()
        with after.commit(catalog, embeddings, embed=False) as commit:
            remember(catalog, None)
            commit.finish()


def _write(parts: Parts, wanted: settings.Settings) -> None:
    """Name other models in the settings, if these name the ones that this command began with.

    Raises:
        SettingsMovedError: They do not.
        WriteFailedError: The disk refused.
    """
    path = parts.places.settings
    with disk.disk_errors(path):
        data = settings.read(path)
        if settings.parse(data, name=path).models != parts.settings.models:
            raise SettingsMovedError(
                f"{path} names other models than a moment ago: run the command again"
            )
        disk.write_path(path, written.with_models(data, wanted))


_PASSWORD: Final = re.compile(r"//[^/@\s]*:[^/@\s]+@|\bpassword\s*=\s*\S", re.IGNORECASE)


class BackendChange(Struct, frozen=True, kw_only=True):
    """Another place for the vectors of a store, and what it takes."""

    backend: Backend
    home: VectorHome
    address: str
    """Of the new place, for people."""
    would: Sent
    """What filling it does."""
    takes_over: bool = False
    """Whether what it has may be another store's."""


def options_of(kind: str, given: list[str]) -> Backend:
    """A backend as it is named on the command line.

    Args:
        kind: One of the backends.
        given: ``KEY=VALUE``; a value is true, false, a whole number, or a text; of a
            whitelist, a list.

    Raises:
        UsageError: There is no such backend, an option is none, or holds a password.
    """
    if kind not in settings.BACKENDS:
        raise UsageError(
            f"there is no backend {brief(kind)}{did_you_mean(kind, settings.BACKENDS)}"
            f": the backends are {', '.join(settings.BACKENDS)}",
        )
    values: dict[str, str | int | bool | tuple[str, ...]] = {}
    for word in given:
        key, equals, value = word.partition("=")
        if not equals or not key:
            # The word is not named: it may be a password.
            raise UsageError("an option is written KEY=VALUE", remedy="filestore backend list")
        if _PASSWORD.search(value):
            raise UsageError(
                f"{brief(key)} holds a password, and filestore.toml is committed; use"
                " PGPASSWORD or ~/.pgpass",
            )
        if not value:
            raise UsageError(f"{brief(key)} has no value", remedy="filestore backend list")
        if key in values:
            raise UsageError(f"{brief(key)} is given twice: give it one value")
        if key == "metadata_whitelist":
            values[key] = tuple(one for one in value.split(",") if one)
        elif value in ("true", "false"):
            values[key] = value == "true"
        else:
            values[key] = int(value) if re.fullmatch(r"[+-]?[0-9]{1,9}", value) else value
    return Backend(kind=kind, options=values)


def plan_place(
    places: Places,
    backend: Backend,
    *,
    catalog: "Catalog",
    embedder: "Embedder",
    takes_over: bool,
) -> BackendChange:
    """Connect to the new place and count what it lacks; changes nothing of the store.

    Args:
        places: Where the store lies.
        backend: The new place. Naming it allows the store to reach it.
        catalog: Knows the vectors.
        embedder: Whose vectors.
        takes_over: Whether what another store has there may be replaced.

    Raises:
        UsageError: A key is missing, unknown, or has a value that cannot be used.
        BackendError: It cannot be used, or belongs to another store.
    """
    try:
        home = home_of(backend, places).trusted()
    except (BackendKeysMissing, BackendSettingsWrong) as error:
        raise UsageError(error.message, remedy=error.remedy) from error
    would = home.compare(catalog, embedder, takes_over=takes_over)
    return BackendChange(
        backend=backend, home=home, address=home.address(), would=would, takes_over=takes_over
    )


def change_place(
    parts: Parts,
    change: BackendChange,
    catalog: "CatalogWriter",
    embeddings: "EmbeddingCache",
) -> Sent:
    """Fill the new place, then name it: until then the store goes on with the one it has.

    Raises:
        BackendError: It went away, or refuses.
        WriteFailedError: The disk refused.
    """
    home, vectors = change.home, StoredVectors(catalog, embeddings, parts.own_embedder(catalog))

    def name() -> None:
        """Name the place in `filestore.toml`, and remember that it may be reached."""
        places = parts.places
        if home.reaches_out:
            user_config.trust(parts.configuration, places.root, change.address)
        with disk.disk_errors(places.settings):
            data = settings.read(places.settings)
            disk.write_path(places.settings, written.with_backend(data, change.backend))
        parts.settings = replace(parts.settings, backend=change.backend)

    sent = home.fill(catalog, vectors, name, takes_over=change.takes_over)
    if sent is not None:
        return sent
    with parts.commit(catalog, embeddings, embed=False) as commit:
        commit.want_index()
        commit.finish()
    return change.would


def is_left(before: VectorHome, change: BackendChange) -> bool:
    """Whether vectors stay behind in a place that is another than the one that takes them."""
    if not before.elsewhere:
        return False
    try:
        return before.address() != change.address
    except BackendError:
        # It could not be used, which the new place can.
        return True


def clear_left(
    parts: Parts, left: VectorHome, catalog: "CatalogWriter", embeddings: "EmbeddingCache"
) -> bool:
    """Delete what a store has in the place it left; returns whether that was there.

    Raises:
        BackendError: It is away, or refuses.
    """
    if not left.clear(catalog):
        return False
    if parts.home.is_emptied():
        # One table may have two addresses, as a server has two names: then it is filled again.
        vectors = StoredVectors(catalog, embeddings, parts.own_embedder(catalog))
        parts.home.fill(catalog, vectors, lambda: None)
    return True

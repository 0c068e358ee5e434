"""The models of one store: its own, and a second one that is tried.

Both are fingerprints among the embeddings. The catalog counts on the vectors of the store's own
model; of the second one it remembers a few numbers, and a search compares all of its embeddings.
One rule: two models are never mixed, so an embedder is given only for vectors that are its own. The
store's own model comes first: what the other cannot embed keeps no commit from being made.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from filestore.catalog import Catalog
from filestore.config.layout import SETTINGS
from filestore.config.settings import Which
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.config.settings import Settings
    from filestore.embed import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.sidecar.model import StoreModel

WHOSE: Final[Mapping[Which, str]] = {"own": "the store's own model", "beside": "the second model"}

EMBEDDINGS: Final = "embeddings"
"""In the catalog, how many embeddings there were: any other number is looked into."""
_KEY: Final = "beside_"
"""Before the names of the fields of `Known`, in the catalog's memory."""


class NothingBeside(FilestoreError):
    """The store has no second model."""

    def __init__(self) -> None:
        super().__init__(
            "the store has no second model", remedy="filestore embedder set multilingual --beside"
        )


class NotEmbedded(FilestoreError):
    """The second model has no vectors of the store's texts, or not of all."""


class Known(Struct, frozen=True):
    """What the catalog remembers of the second model."""

    fingerprint: str
    lacking: int
    """How many texts had no vector of it."""
    embeddings: int
    """How many embeddings of it there were: any other number is looked into."""
    generation: int
    """Of which generation that is true."""


def known(catalog: Catalog) -> Known | None:
    """What is remembered; None where there was no second model, or it was dropped."""
    fingerprint = catalog.meta(f"{_KEY}fingerprint")
    numbers = (catalog.meta(f"{_KEY}{name}", 0) for name in ("lacking", "embeddings", "generation"))
    return Known(fingerprint, *numbers) if fingerprint else None


def remember(catalog: "CatalogWriter", now: Known | None) -> None:
    """Remember it in the running transaction; None forgets it."""
    for name, value in asdict(now or Known("", 0, 0, 0)).items():
        catalog.set_meta(f"{_KEY}{name}", value)


class Models:
    """The models that a store's settings name, each opened as far as it can be here."""

    def __init__(self, settings: "Settings", opened: "Callable[[Settings], StoreModel]") -> None:
        """Open nothing yet.

        Args:
            settings: The store's.
            opened: Gives the model that settings name as the store's own.
        """
        self.own = opened(settings)
        other = settings.second
        self.second: StoreModel | None = None
        if other is not None:
            self.second = opened(replace(settings, embedder=other.embedder, model=other.model))

    def __iter__(self) -> "Iterator[StoreModel]":
        yield self.own
        if self.second is not None:
            yield self.second

    @property
    def embedders(self) -> "list[Embedder]":
        """What can be used here, the store's own first."""
        return [one.embedder for one in self if one.embedder is not None]

    @property
    def is_outdated(self) -> bool:
        """Whether a model that was opened without success would open now."""
        return any(one.is_outdated for one in self)

    @property
    def reaches(self) -> tuple[str, ...]:
        """The services that texts would be sent to."""
        return tuple(dict.fromkeys(one.reaches for one in self if one.reaches is not None))

    def second_fingerprint(self, catalog: Catalog) -> str:
        """Of the second model's vectors; "" where there are none."""
        if self.second is not None and self.second.embedder is not None:
            return self.second.embedder.fingerprint
        kept = known(catalog)
        return kept.fingerprint if kept is not None else ""

    def of(self, which: Which) -> "StoreModel":
        """One of the two.

        Raises:
            NothingBeside: There is no second one.
        """
        model = self.own if which == "own" else self.second
        if model is None:
            raise NothingBeside
        return model

    def searched(self, catalog: Catalog, which: Which) -> "Embedder | None":
        """One of the two, if its vectors are here: as the catalog has them.

        Where a switch was not completed, or git made it, the two have changed places. See `of`.
        """
        embedder, recorded = self.of(which).embedder, catalog.meta("fingerprint")
        if embedder is None or (which == "own" and recorded is None):
            return embedder
        other = known(catalog)
        mine = {recorded, other.fingerprint if other else None}
        return embedder if embedder.fingerprint in mine else None

    def why_not(self, which: Which) -> str:
        """Why there is no embedder for the vectors of one of the two, with what to do; see `of`."""
        model = self.of(which)
        if which == "own":
            return model.why_not.in_one_line
        not_yet = NotEmbedded(
            f"no passage was embedded with {model.name} yet", remedy="filestore sync"
        )
        return f"{WHOSE[which]}: {(model.problem or not_yet).in_one_line}"

    def waiting(self, catalog: Catalog) -> int:
        """How many vectors are still to be made by both."""
        other = known(catalog) if self.second else None
        return catalog.waiting_count() + (other.lacking if other else 0)

    def findings(self, catalog: Catalog, embeddings: "EmbeddingCache | None") -> Iterator[Finding]:
        """What is wrong with the second model, without reading a vector of it."""
        model, own = self.second, self.own.embedder
        if model is None:
            return
        other = model.embedder
        unusable = ""
        if other is None and not model.is_unasked:
            unusable = model.why_not.in_one_line
        elif other and own and own.fingerprint == other.fingerprint:
            unusable = f"{other.name} gives the same vectors as the store's own model"
        if unusable:
            yield Finding(code="beside-unusable", path=SETTINGS, detail=unusable)
            return
        # The two may have changed places in the settings, and not yet in the catalog.
        is_counted_on = other and catalog.meta("fingerprint") == other.fingerprint
        if is_counted_on or not catalog.has_rows("vectors"):
            return
        kept = known(catalog)
        if kept is None or (other and kept.fingerprint != other.fingerprint):
            detail = f"no passage was embedded with {model.name} yet"
        elif kept.lacking:
            number = "1 passage has" if kept.lacking == 1 else f"{kept.lacking:,} passages have"
            detail = f"{number} no vector of {model.name}"
        elif kept.generation != catalog.generation or _were_lost(embeddings, kept):
            detail = f"passages or vectors changed without {model.name} being asked"
        else:
            return
        yield Finding(code="beside-behind", path=SETTINGS, detail=detail)


def _were_lost(embeddings: "EmbeddingCache | None", kept: Known) -> bool:
    """Whether there are fewer embeddings than there were, as far as these are open."""
    from filestore.embed.cache import EmbeddingsDamaged

    if embeddings is None:
        return False
    try:
        return embeddings.count(kept.fingerprint) != kept.embeddings
    except (EmbeddingsDamaged, sqlite3.DatabaseError):
        # That is a finding of the embeddings as a whole.
        return False


def lacking(catalog: Catalog, embeddings: "EmbeddingCache", fingerprint: str) -> list[int]:
    """The vector ids of the texts that a model has no embedding of."""
    keys = catalog.vector_keys(embedded=None)
    had = embeddings.has(fingerprint, [key for _, key in keys])
    return [vector for vector, key in keys if key not in had]


def lost_vectors(catalog: Catalog, embeddings: "EmbeddingCache | None") -> list[int]:
    """The vector ids whose embedding is gone, though the catalog counts on it.

    Whether the model is here or not: else a sync would repair the same loss for ever.
    """
    fingerprint = catalog.meta("fingerprint")
    if fingerprint is None or embeddings is None:
        return []
    if embeddings.count(fingerprint) == catalog.meta(EMBEDDINGS):
        return []
    keys = dict(catalog.vector_keys())
    had = embeddings.has(fingerprint, list(keys.values()))
    return [vector for vector, key in keys.items() if key not in had]


def take_over(
    catalog: "CatalogWriter", embeddings: "EmbeddingCache", embedder: "Embedder | None"
) -> bool:
    """Have the catalog count on another model, in the running transaction; whether it did not.

    After a switch that was not completed, or that git made, the vectors of the store's own model
    are among the embeddings. What is missing is noted as lacking.
    """
    before = catalog.meta("fingerprint")
    if embedder is None or before in (None, embedder.fingerprint):
        return False
    keys = catalog.vector_keys(embedded=None)
    had = embeddings.has(embedder.fingerprint, [key for _, key in keys])
    catalog.set_embedded((vector for vector, _ in keys), embedded=False)
    catalog.set_embedded(vector for vector, key in keys if key in had)
    catalog.set_meta("fingerprint", embedder.fingerprint)
    return True

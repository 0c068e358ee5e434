"""The family of embedders. One rule: an implementation is imported only when it is opened.

A new one is a module beside these and one entry in `_OPENERS`.
"""

from collections.abc import Callable
from typing import Final

from filestore.embed.base import Embedder, UnknownEmbedder

__all__ = ["Embedder", "UnknownEmbedder", "known_embedders", "open_embedder"]


def _open_builtin() -> Embedder:
    from filestore.embed._builtin import BuiltinEmbedder

    return BuiltinEmbedder()


_OPENERS: Final[dict[str, Callable[[], Embedder]]] = {
    "builtin": _open_builtin,
}


def known_embedders() -> tuple[str, ...]:
    """The names that `open_embedder` understands, sorted."""
    return tuple(sorted(_OPENERS))


def open_embedder(name: str) -> Embedder:
    """Open an embedder by its name in the settings.

    Raises:
        UnknownEmbedder: No embedder has this name.
    """
    opener = _OPENERS.get(name)
    if opener is None:
        raise UnknownEmbedder(name, known_embedders())
    return opener()

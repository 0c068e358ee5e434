"""The catalog: SQLite book-keeping of files, texts and vectors, generation by generation.

Writing is loaded on first use: most commands only read.
"""

from typing import TYPE_CHECKING, Any

from filestore.catalog._reading import (
    Catalog,
    Conflict,
    FileRow,
    Forgotten,
    IndexFile,
    LinkRow,
    catalog_errors,
    decode_path,
    encode_path,
    in_batches,
)
from filestore.catalog._schema import (
    CatalogDamagedError,
    CatalogMissingError,
    CatalogNewerError,
    CatalogOutdatedError,
    UnknownResourceError,
)

if TYPE_CHECKING:
    from filestore.catalog._writing import CatalogWriter, VectorCollisionError

__all__ = [
    "Catalog",
    "CatalogDamagedError",
    "CatalogMissingError",
    "CatalogNewerError",
    "CatalogOutdatedError",
    "CatalogWriter",
    "Conflict",
    "FileRow",
    "Forgotten",
    "IndexFile",
    "LinkRow",
    "UnknownResourceError",
    "VectorCollisionError",
    "catalog_errors",
    "decode_path",
    "encode_path",
    "in_batches",
]


def __getattr__(name: str) -> Any:
    """Load the writing half."""
    if name in ("CatalogWriter", "VectorCollisionError"):
        from filestore.catalog import _writing

        return getattr(_writing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

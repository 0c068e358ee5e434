"""The catalog: SQLite book-keeping of files, texts and vectors, generation by generation.

Writing, and what only a screen asks, are loaded on first use: most commands only read.
"""

from typing import TYPE_CHECKING, Any

from filestore.catalog._reading import FILE_COLUMNS, Catalog
from filestore.catalog._remembered import AWAITED, LET_GO
from filestore.catalog._rows import (
    BEFORE,
    SOME_TIME,
    Conflict,
    Deleted,
    FileRow,
    Forgotten,
    IndexFile,
    LinkRow,
    decode_path,
    encode_path,
    encode_place,
    file_of_text,
    in_batches,
    part_of_text,
    text_id,
)
from filestore.catalog._schema import (
    CHUNKER,
    METRIC,
    CatalogDamagedError,
    CatalogMissingError,
    CatalogNewerError,
    CatalogOutdatedError,
    UnknownResourceError,
    catalog_errors,
)

if TYPE_CHECKING:
    from filestore.catalog._pages import CatalogPages
    from filestore.catalog._writing import CatalogWriter, VectorCollisionError

__all__ = [
    "AWAITED",
    "BEFORE",
    "CHUNKER",
    "FILE_COLUMNS",
    "LET_GO",
    "METRIC",
    "SOME_TIME",
    "Catalog",
    "CatalogDamagedError",
    "CatalogMissingError",
    "CatalogNewerError",
    "CatalogOutdatedError",
    "CatalogPages",
    "CatalogWriter",
    "Conflict",
    "Deleted",
    "FileRow",
    "Forgotten",
    "IndexFile",
    "LinkRow",
    "UnknownResourceError",
    "VectorCollisionError",
    "catalog_errors",
    "decode_path",
    "encode_path",
    "encode_place",
    "file_of_text",
    "in_batches",
    "part_of_text",
    "text_id",
]


def __getattr__(name: str) -> Any:
    """Load what most commands do without."""
    if name == "CatalogPages":
        from filestore.catalog._pages import CatalogPages

        return CatalogPages
    if name in ("CatalogWriter", "VectorCollisionError"):
        from filestore.catalog import _writing

        return getattr(_writing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

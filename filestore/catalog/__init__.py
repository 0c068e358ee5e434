"""The catalog: SQLite book-keeping of files, texts and vectors, generation by generation.

Writing, and what only a screen asks, are loaded on first use: most commands only read.
"""

from typing import TYPE_CHECKING, Any

from filestore.catalog._reading import Catalog as Catalog
from filestore.catalog._remembered import AWAITED as AWAITED
from filestore.catalog._remembered import LET_GO as LET_GO
from filestore.catalog._rows import BEFORE as BEFORE
from filestore.catalog._rows import FILE_COLUMNS as FILE_COLUMNS
from filestore.catalog._rows import SOME_TIME as SOME_TIME
from filestore.catalog._rows import Conflict as Conflict
from filestore.catalog._rows import Deleted as Deleted
from filestore.catalog._rows import FileRow as FileRow
from filestore.catalog._rows import Forgotten as Forgotten
from filestore.catalog._rows import IndexFile as IndexFile
from filestore.catalog._rows import LinkRow as LinkRow
from filestore.catalog._rows import decode_path as decode_path
from filestore.catalog._rows import encode_path as encode_path
from filestore.catalog._rows import encode_place as encode_place
from filestore.catalog._rows import file_of_text as file_of_text
from filestore.catalog._rows import in_batches as in_batches
from filestore.catalog._rows import part_of_text as part_of_text
from filestore.catalog._rows import placeholders as placeholders
from filestore.catalog._rows import text_id as text_id
from filestore.catalog._schema import CHUNKER as CHUNKER
from filestore.catalog._schema import METRIC as METRIC
from filestore.catalog._schema import CatalogDamagedError as CatalogDamagedError
from filestore.catalog._schema import CatalogMissingError as CatalogMissingError
from filestore.catalog._schema import CatalogNewerError as CatalogNewerError
from filestore.catalog._schema import CatalogOutdatedError as CatalogOutdatedError
from filestore.catalog._schema import UnknownResourceError as UnknownResourceError
from filestore.catalog._schema import catalog_errors as catalog_errors
from filestore.catalog._schema import is_damage as is_damage

if TYPE_CHECKING:
    from filestore.catalog._open import OpenCatalog as OpenCatalog
    from filestore.catalog._pages import CatalogPages as CatalogPages
    from filestore.catalog._writing import CatalogWriter as CatalogWriter


def __getattr__(name: str) -> Any:
    """Load what most commands do without."""
    if name == "OpenCatalog":
        from filestore.catalog._open import OpenCatalog

        return OpenCatalog
    if name == "CatalogPages":
        from filestore.catalog._pages import CatalogPages

        return CatalogPages
    if name == "CatalogWriter":
        from filestore.catalog._writing import CatalogWriter

        return CatalogWriter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

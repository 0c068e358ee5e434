"""BM25 full-text search over tantivy: an index derived from the chunk files.

It holds the index of titles and texts under the catalog's file ids, and no text. A text that
changes gets a new id, so a document never changes and ids the catalog has forgotten do no harm: the
caller drops them from the hits. Its one rule: nothing is parsed before its size and hash matched
the stamp, and only what this user wrote. Importing this package loads no tantivy.
"""

from typing import TYPE_CHECKING, Any

from filestore.fulltext._stamp import ANALYSIS as ANALYSIS
from filestore.fulltext._stamp import STAMP_NAME as STAMP_NAME
from filestore.fulltext._stamp import FulltextDamaged as FulltextDamaged
from filestore.fulltext._stamp import FulltextMissing as FulltextMissing
from filestore.fulltext._stamp import FulltextUnreadable as FulltextUnreadable
from filestore.fulltext._stamp import Stamp as Stamp
from filestore.fulltext._stamp import check_files as check_files
from filestore.fulltext._stamp import read_stamp as read_stamp
from filestore.fulltext._stamp import write_stamp as write_stamp

if TYPE_CHECKING:
    from filestore.fulltext._marks import Mark as Mark
    from filestore.fulltext._marks import Marker as Marker
    from filestore.fulltext._marks import Named as Named
    from filestore.fulltext._query import BINDING as BINDING
    from filestore.fulltext._query import MAX_CLAUSES as MAX_CLAUSES
    from filestore.fulltext._query import SYNTAXES as SYNTAXES
    from filestore.fulltext._query import Clause as Clause
    from filestore.fulltext._query import Kind as Kind
    from filestore.fulltext._query import Need as Need
    from filestore.fulltext._query import ParsedQuery as ParsedQuery
    from filestore.fulltext._query import Syntax as Syntax
    from filestore.fulltext._query import Understood as Understood
    from filestore.fulltext._query import most_telling as most_telling
    from filestore.fulltext._query import parse_query as parse_query
    from filestore.fulltext._reader import Reader as Reader
    from filestore.fulltext._reader import Respelling as Respelling
    from filestore.fulltext._reader import corrected as corrected
    from filestore.fulltext._reader import respelled as respelled
    from filestore.fulltext._writer import Entry as Entry
    from filestore.fulltext._writer import Writer as Writer

_HOMES = {
    "BINDING": "_query",
    "MAX_CLAUSES": "_query",
    "Respelling": "_reader",
    "SYNTAXES": "_query",
    "Clause": "_query",
    "Entry": "_writer",
    "Kind": "_query",
    "Mark": "_marks",
    "Marker": "_marks",
    "Named": "_marks",
    "Need": "_query",
    "ParsedQuery": "_query",
    "Reader": "_reader",
    "Syntax": "_query",
    "Understood": "_query",
    "Writer": "_writer",
    "corrected": "_reader",
    "most_telling": "_query",
    "parse_query": "_query",
    "respelled": "_reader",
}


def __getattr__(name: str) -> Any:
    """Load what reads or writes the index on first use; the stamp is enough for `status`."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)

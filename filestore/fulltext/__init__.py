"""BM25 full-text search over tantivy: an index derived from the chunk files.

It holds the index of titles and texts under the catalog's file ids, and no text. A text that
changes gets a new id, so a document never changes and ids the catalog has forgotten do no harm: the
caller drops them from the hits. Its one rule: nothing is parsed before its size and hash matched
the stamp, and only what this user wrote. Importing this package loads no tantivy.
"""

from typing import TYPE_CHECKING, Any

from filestore.fulltext._stamp import (
    ANALYSIS,
    STAMP_NAME,
    FulltextDamaged,
    FulltextMissing,
    FulltextUnreadable,
    Stamp,
    check_files,
    read_stamp,
    write_stamp,
)

if TYPE_CHECKING:
    from filestore.fulltext._marks import Mark, Marker
    from filestore.fulltext._query import (
        MAX_CLAUSES,
        SYNTAXES,
        Clause,
        Kind,
        Need,
        ParsedQuery,
        Syntax,
        Understood,
        most_telling,
        parse_query,
    )
    from filestore.fulltext._reader import Reader
    from filestore.fulltext._respelling import Respelling, respelled
    from filestore.fulltext._writer import Entry, Writer

_HOMES = {
    "MAX_CLAUSES": "_query",
    "Respelling": "_respelling",
    "SYNTAXES": "_query",
    "Clause": "_query",
    "Entry": "_writer",
    "Kind": "_query",
    "Mark": "_marks",
    "Marker": "_marks",
    "Need": "_query",
    "ParsedQuery": "_query",
    "Reader": "_reader",
    "Syntax": "_query",
    "Understood": "_query",
    "Writer": "_writer",
    "most_telling": "_query",
    "parse_query": "_query",
    "respelled": "_respelling",
}

__all__ = [
    "ANALYSIS",
    "MAX_CLAUSES",
    "STAMP_NAME",
    "SYNTAXES",
    "Clause",
    "Entry",
    "FulltextDamaged",
    "FulltextMissing",
    "FulltextUnreadable",
    "Kind",
    "Mark",
    "Marker",
    "Need",
    "ParsedQuery",
    "Reader",
    "Respelling",
    "Stamp",
    "Syntax",
    "Understood",
    "Writer",
    "check_files",
    "most_telling",
    "parse_query",
    "read_stamp",
    "respelled",
    "write_stamp",
]


def __getattr__(name: str) -> Any:
    """Load what reads or writes the index on first use; the stamp is enough for `status`."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)

"""What hits must satisfy, and why nothing does: filters by metadata, source and kind.

One rule: a filter that no file satisfies is said, with what there is instead.
"""

import contextlib
import fnmatch
import os
from collections.abc import Iterable, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from filestore.catalog import Catalog, queries
from filestore.chunks.frontmatter import value_text
from filestore.config.layout import Places
from filestore.core.caller import leads
from filestore.core.safe_text import brief, listed
from filestore.core.schema import text
from filestore.core.spelling import did_you_mean
from filestore.fs.path_names import composed
from filestore.search.query import Query

if TYPE_CHECKING:
    from filestore.index.base import Where

_NAMED: Final = 8
"""Keys or values that a note names."""


class Filters(Struct, frozen=True, kw_only=True):
    """What hits must satisfy."""

    where: tuple[tuple[str, str], ...] = ()
    """(key, value) pairs that all hold, of the frontmatter or the document's metadata."""
    source: tuple[str, ...] = ()
    """Globs over the source path, the end of it, or a folder in it, of which one holds."""
    kind: tuple[str, ...] = ()
    """Kinds of chunk files, of which one holds."""

    @classmethod
    def of(cls, query: Query) -> Self:
        """The filters of a query; of a key with a list all values must hold."""
        pairs = (
            (key, value)
            # None, too, of a caller who has no filter.
            for key, given in (query.where or {}).items()
            for value in (given if isinstance(given, list | tuple) else [given])
        )
        return cls(
            where=tuple((text(key), text(_compared(value))) for key, value in pairs),
            source=tuple(query.source),
            kind=tuple(map(text, query.kind)),
        )

    def __bool__(self) -> bool:
        return bool(self.where or self.source or self.kind)


def allowed(catalog: Catalog, filters: Filters, places: Places, notes: list[str]) -> set[int]:
    """The ids of the files that satisfy filters.

    Args:
        catalog: Inside a snapshot.
        filters: At least one.
        places: Where the store lies.
        notes: Takes why one of them holds for no file.
    """
    every: list[set[int]] = []
    for key, value in filters.where:
        found = (
            catalog.files_with_fact(one, other) for one, other in _spellings(catalog, key, value)
        )
        matching = set().union(*found)
        if key == "kind":
            matching |= catalog.files_of_kind(value)
        if not matching:
            notes.append(_no_such_value(catalog, key, value))
        every.append(matching)
    if filters.kind:
        matching = set().union(*map(catalog.files_of_kind, filters.kind))
        if not matching:
            notes.append(_no_such_kind(catalog, filters.kind))
        every.append(matching)
    if filters.source:
        sources = catalog.sources_of_files()
        names = {source for _, source in sources}
        meant = set().union(*(_sources_meant(one, names, places.root) for one in filters.source))
        if not meant:
            notes.append(_no_such_source(filters.source, names))
        every.append({file for file, source in sources if source in meant})
    return set.intersection(*every)


def conditions(catalog: Catalog, filters: Filters) -> "Where":
    """The same filters as a backend takes them; empty where it cannot tell some of them.

    It has the metadata of chunk files, not that of their documents, and knows no globs.

    Args:
        catalog: Inside a snapshot.
        filters: At least one.
    """
    every: list[tuple[str, tuple[str, ...]]] = []
    from filestore.catalog import queries

    for key, value in filters.where:
        if key in ("kind", "path", "source") or queries.is_of_documents(catalog, key):
            return ()
        pairs = _spellings(catalog, key, value)
        if len({name for name, _ in pairs}) > 1:
            return ()
        every.append((pairs[0][0], tuple(dict.fromkeys(one for _, one in pairs))))
    if filters.kind:
        every.append(("kind", filters.kind))
    texts = [text for key, values in every for text in (key, *values)]
    if filters.source or queries.sendable(texts) != texts:
        return ()
    return tuple(every)


def _compared(value: object) -> str:
    """A value as metadata is compared: numbers and such as JSON writes them, all else as text."""
    return value_text(value) if isinstance(value, bool | int | float | None) else str(value)


def _spellings(catalog: Catalog, key: str, value: str) -> list[tuple[str, str]]:
    """Every way in which a key and its value stand in files: with letters composed or not.

    A tag with another case, or with its `#`, is no other tag.
    """
    keys, values, form = [key], [value], _folded_tag if key == "tags" else composed
    if not key.isascii():
        keys = [one for one in queries.metadata_keys(catalog) if composed(one) == composed(key)]
    if key == "tags" or not value.isascii():
        there = chain.from_iterable(queries.metadata_values(catalog, one) for one in keys)
        values = [one for one in there if form(one) == form(value)]
    return list(product(keys, values)) or [(key, value)]


def _folded_tag(tag: str) -> str:
    return composed(tag.lstrip("#")).casefold()


def _sources_meant(pattern: str, sources: Iterable[str], root: str) -> set[str]:
    """The sources that a text names: one, the end of its path, a folder; else what a glob finds.

    A name is first taken as it stands, then with its letters composed or not, then as a path from
    the working folder, then as a glob.
    """
    names = [pattern.removeprefix("./").rstrip("/") or pattern]
    with contextlib.suppress(FileNotFoundError):  # from a folder that was removed
        names.append(os.path.relpath(leads(pattern), leads(root)))
    for name in names:
        for form in (str, composed):
            whole = f"/{form(name)}/"
            if found := {source for source in sources if whole in f"/{form(source)}/"}:
                return found
    glob = composed(names[-1] if os.path.isabs(pattern) else names[0])
    forms = (glob, f"*/{glob}", f"{glob}/*", f"*/{glob}/*")
    return {one for one in sources if any(fnmatch.fnmatchcase(composed(one), f) for f in forms)}


def _no_such_value(catalog: Catalog, key: str, value: str) -> str:
    keys = queries.metadata_keys(catalog)
    if key not in keys and key != "kind":
        return f"no file has the key {brief(key)}" + _instead(key, keys, "keys")
    values = queries.kinds(catalog) if key == "kind" else queries.metadata_values(catalog, key)
    return f"no file has {brief(key)} = {brief(value)}" + _instead(value, values, "values")


def _no_such_kind(catalog: Catalog, kinds: Sequence[str]) -> str:
    from filestore.chunks.chunk_file import KINDS

    kind, known = kinds[0], queries.kinds(catalog)
    meant = "" if kind in KINDS else did_you_mean(kind, KINDS)
    return f"no file is of kind {brief(kind)}" + (meant or _instead(kind, known, "kinds"))


def _no_such_source(patterns: Sequence[str], sources: Iterable[str]) -> str:
    names = sorted({source.rpartition("/")[2] for source in sources})
    return f"no source matches {brief(patterns[0])}{did_you_mean(patterns[0], names)}"


def _instead(word: str, known: Sequence[str], what: str) -> str:
    """The end of a sentence: what was meant, or what there is."""
    if meant := did_you_mean(word, known):
        return meant
    if not known:
        return f"; there are no {what}"
    return f"; {what} there are: {listed(map(brief, known), _NAMED)}"

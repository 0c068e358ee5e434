"""What hits must satisfy, and why nothing does: filters by metadata, source and kind.

One rule: a filter that no file satisfies is reported, with what there is instead.
"""

import contextlib
import fnmatch
import os
from collections.abc import Iterable, Sequence
from itertools import chain, product
from math import inf
from typing import TYPE_CHECKING, Final, cast

from filestore.catalog import Catalog, ages, queries
from filestore.config.layout import Places
from filestore.config.settings import KeyNames
from filestore.core.caller import leads
from filestore.core.dates import iso_span
from filestore.core.paths import around
from filestore.core.safe_text import brief, listed
from filestore.core.spelling import did_you_mean, did_you_mean_path
from filestore.fs.path_names import composed
from filestore.search import Query

if TYPE_CHECKING:
    from filestore.index import Where
    from filestore.search.conditions import Condition

_NAMED: Final = 8
"""Keys or values that a note names."""
_ASKED_SINGLY: Final = 64
"""Of more values the catalog is asked for all files that have the key."""


def allowed(
    catalog: Catalog, query: Query, places: Places, keys: KeyNames, notes: list[str]
) -> set[int]:
    """The ids of the files that satisfy the filters of a query.

    Args:
        catalog: Inside a snapshot.
        query: With one filter at least.
        places: Where the store lies.
        keys: Which ones say how old a document is.
        notes: Takes why one of them holds for no file.
    """
    every: list[set[int]] = []
    every += [
        _satisfying(catalog, condition, notes)
        for condition in cast("Sequence[Condition]", query.where)
    ]
    if query.kind:
        matching = set().union(*map(catalog.files_of_kind, query.kind))
        if not matching:
            from filestore.chunks.chunk_file import KINDS

            kind, known = query.kind[0], queries.kinds(catalog)
            similar = "" if kind in KINDS else did_you_mean(kind, KINDS)
            similar = similar or _instead(kind, known, "kinds")
            notes.append(f"no file is of kind {brief(kind)}{similar}")
        every.append(matching)
    if query.source:
        sources = catalog.sources_of_files()
        names = {source for _, source in sources}
        chosen = set().union(*(_sources_of(one, names, places.root) for one in query.source))
        if not chosen:
            named = {source.rpartition("/")[2] for source in names}
            similar = did_you_mean_path(query.source[0], named)
            notes.append(f"no source matches {brief(query.source[0])}{similar}")
        every.append({file for file, source in sources if source in chosen})
    if query.within:
        every.append(_inside(catalog, query.within, places, notes))
    if query.since is not None or query.until is not None:
        every.append(_updated(catalog, query, places, keys, notes))
    return set.intersection(*every)


def _satisfying(catalog: Catalog, condition: "Condition", notes: list[str]) -> set[int]:
    """The files for which a condition on metadata holds."""
    pairs = _holding(catalog, condition)
    if len(pairs) <= _ASKED_SINGLY:
        matching = set().union(*(catalog.files_with_fact(*pair) for pair in pairs))
    else:
        found = queries.files_with_keys(catalog, sorted({key for key, _ in pairs}))
        matching = {file for file, *pair in found if tuple(pair) in pairs}
    if condition.key == "kind":
        matching = matching.union(*map(catalog.files_of_kind, _wanted(catalog, condition)))
    if not matching:
        notes.append(_no_such_value(catalog, condition))
    return set(catalog.indexed_ids()) - matching if condition.op == "!=" else matching


def _holding(catalog: Catalog, condition: "Condition") -> set[tuple[str, str]]:
    """Keys and values, as they are in files, that are as a condition wants them.

    With `!=` the ones that it does not want.
    """
    from filestore.search.conditions import is_ordered, test

    op, wanted = condition.op, _wanted(catalog, condition)
    found: set[tuple[str, str]] = set()
    if op in ("=", "!="):
        found = {pair for value in wanted for pair in _spellings(catalog, condition.key, value)}
    if tests := [test(op, value) for value in wanted if is_ordered(value)]:
        for key in _keys(catalog, condition.key):
            there = queries.metadata_values(catalog, key)
            found |= {(key, one) for one in there if any(holds(one) for holds in tests)}
    return found


def _wanted(catalog: Catalog, condition: "Condition") -> tuple[str, ...]:
    values = condition.texts()
    if not any("|" in value for value in values):
        return values
    from filestore.search.conditions import alternatives

    there = set(queries.metadata_values(catalog, condition.key))
    return tuple(alternatives(values, there.__contains__))


def _inside(catalog: Catalog, folders: Sequence[str], places: Places, notes: list[str]) -> set[int]:
    """The files below some folders: of the documents, or of the tree of chunk files."""
    sources = catalog.sources_of_files()
    found: set[int] = set()
    for folder in folders:
        names = [os.path.normpath(folder)]
        with contextlib.suppress(FileNotFoundError):  # from a folder that was removed
            names.append(os.path.relpath(leads(folder), leads(places.root)))
        starts = tuple({"" if name == "." else f"{composed(name)}/" for name in names})
        below = {file for file, source in sources if composed(source).startswith(starts)}
        below |= {one for start in starts for one in queries.files_below(catalog, start)}
        if not below:
            known = (one for _, source in sources for one in around(source))
            notes.append(f"no file is in {brief(folder)}{did_you_mean_path(folder, known)}")
        found |= below
    return found


def _updated(
    catalog: Catalog, query: Query, places: Places, keys: KeyNames, notes: list[str]
) -> set[int]:
    """The files of documents that were updated between two days."""
    known = ages.updated(catalog, places.tree, keys)
    since, until = (one and iso_span(one) for one in (query.since, query.until))
    first_s = since[0].timestamp() if since else -inf
    end_s = until[1].timestamp() if until else inf
    found = {file for file, at in known.items() if first_s <= at.at_s < end_s}
    if not found:
        days = sorted(at.day for at in known.values())
        spans = f"; they are of {days[0]} to {days[-1]}" if days else "; no date of one is known"
        asked = [f"since {query.since}"] if since else []
        asked += [f"until {query.until}"] if until else []
        notes.append(f"no document was updated {' and '.join(asked)}{spans}")
    if problem := ages.history(catalog).problem:
        notes.append(problem)
    return found


def conditions(catalog: Catalog, query: Query) -> "Where":
    """The same filters as a backend takes them; empty where it cannot tell some of them.

    It has the metadata of chunk files, not that of their documents, and knows no globs.

    Args:
        catalog: Inside a snapshot.
        query: With one filter at least.
    """
    every: list[tuple[str, tuple[str, ...]]] = []
    if query.since is not None or query.until is not None:
        return ()
    for condition in cast("Sequence[Condition]", query.where):
        key = condition.key
        if key in ("kind", "path", "source") or queries.is_of_documents(catalog, key):
            return ()
        pairs = sorted(_holding(catalog, condition))
        if condition.op == "!=" or len({name for name, _ in pairs}) != 1:
            return ()
        every.append((pairs[0][0], tuple(one for _, one in pairs)))
    if query.kind:
        every.append(("kind", tuple(query.kind)))
    texts = [text for key, values in every for text in (key, *values)]
    if query.source or query.within or queries.sendable(texts) != texts:
        return ()
    return tuple(every)


def _keys(catalog: Catalog, key: str) -> list[str]:
    """A key as it is in files: with letters composed or not."""
    if key.isascii():
        return [key]
    return [one for one in queries.metadata_keys(catalog) if composed(one) == composed(key)]


def _spellings(catalog: Catalog, key: str, value: str) -> list[tuple[str, str]]:
    """Every way in which a key and its value are in files: with letters composed or not.

    A tag with another case, or with its `#`, is no other tag.
    """
    keys, values = _keys(catalog, key), [value]
    there = chain.from_iterable(queries.metadata_values(catalog, one) for one in keys)
    if key == "tags":
        tag = composed(value.lstrip("#")).casefold()
        values = [one for one in there if composed(one.lstrip("#")).casefold() == tag]
    elif not value.isascii():
        values = [one for one in there if composed(one) == composed(value)]
    return list(product(keys, values)) or [(key, value)]


def _sources_of(pattern: str, sources: Iterable[str], root: str) -> set[str]:
    """The sources that a text names: one, the end of its path, a folder; else what a glob finds.

    A name is first taken as it is, then with its letters composed or not, then as a path from
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


def _no_such_value(catalog: Catalog, condition: "Condition") -> str:
    keys, key = queries.metadata_keys(catalog), condition.key
    if key not in keys and key != "kind":
        return f"no file has the key {brief(key)}" + _instead(key, keys, "keys")
    values = queries.kinds(catalog) if key == "kind" else queries.metadata_values(catalog, key)
    op = "=" if condition.op == "!=" else condition.op
    wanted = condition.texts()
    text = " or ".join(map(brief, wanted[:_NAMED]))
    return f"no file has {brief(key)} {op} {text}" + _instead("".join(wanted[:1]), values, "values")


def _instead(word: str, known: Sequence[str], what: str) -> str:
    """The end of a sentence: a similar word, or what there is."""
    if similar := did_you_mean(word, known):
        return similar
    if not known:
        return f"; there are no {what}"
    return f"; {what} there are: {listed(map(brief, known), _NAMED)}"

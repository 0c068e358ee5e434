"""What is in a store, as one looks around: folders with counts, newest, most linked, documents.

Documents of a store in place are its files; of a chunk store they are the originals that its
records name, and chunk files that were made from none. One rule: what is given at once is bounded,
what is left is counted, and the next page begins behind the last entry of this one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.browse.links import linking_documents
from filestore.browse.named import UnknownPathError, prefix_of
from filestore.browse.rows import documents as rows_of_documents
from filestore.catalog import Catalog, ages, decode_path, queries
from filestore.chunks.links import path_keys
from filestore.core.findings import FromIndex
from filestore.core.paths import ChunkPath, StorePath, around
from filestore.core.safe_text import brief, brief_path, offered, shown_path
from filestore.core.schema import JsonObject
from filestore.core.spelling import nearest_paths
from filestore.fs.path_names import composed
from filestore.search.answer import stem
from filestore.sidecar import fulltext_file
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.core.dates import Moment

_FEW: Final = 5
"""Of the newest, and of the most linked."""
_MOST_FILES: Final = 20_000
"""Of a chunk store: links are looked for in the texts of no more, which takes a second."""
_LONG_NAME: Final = 300
"""Characters: a longer one is listed as a document only."""
_ENTRY: Final = 30
"""Characters that a row takes besides its name."""
_LONG_TITLE: Final = 60
_NO_END: Final = 1 << 62


class Folder(JsonObject, Struct, frozen=True, kw_only=True):
    """A folder with documents."""

    path: str
    """Its path, with "/" behind it."""
    documents: int
    """How many lie in it and below it."""


class Listed(JsonObject, Struct, frozen=True, kw_only=True):
    """A document."""

    SPARSE = "title date links"

    path: str
    """As `show` takes it."""
    title: str = ""
    """What it calls itself; empty where it does not."""
    date: str = ""
    """When it changed last: ``2026-05-01``."""
    links: int = 0
    """How many documents have a link to it, in the list of the most linked."""


class Contents(FromIndex, frozen=True, kw_only=True):
    """What a store or a folder holds."""

    folder: str
    """That was named; empty for the store."""
    documents: int
    """How many are in it and below it, or match."""
    folders: tuple[Folder, ...]
    """The ones that lie in it."""
    newest: tuple[Listed, ...]
    """The documents that changed last, newest first."""
    linked: tuple[Listed, ...]
    """The ones that most others link to; none in a store of more than 20,000 chunk files."""
    items: tuple[Listed, ...]
    """The documents that lie in it, by path; or the ones that match; or the newest first."""
    left: int
    """Folders and documents that are not given."""
    next: str
    """The last entry, behind which the next page begins; empty where none is left."""
    generation: int = 0
    """Of the index."""
    languages: tuple[str, ...] = ()
    """Of the texts of the store, the one of most first; empty for a folder."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be listed."""

    folder: str = ""
    """A folder or a glob; "" for the store."""
    recent: int = 0
    """Only the n newest; 0 for the folder as it is."""
    after: str = ""
    """Begin behind this entry of the page before."""
    most: int | None = None
    """Characters, about; None for all."""


def contents(parts: Parts, catalog: Catalog, wanted: Wanted) -> Contents:
    """What is in a store or a folder, or what a glob matches.

    Args:
        parts: The store's.
        catalog: Inside a snapshot.
        wanted: What is to be listed.

    Raises:
        UnknownPathError: There is no such folder, and nothing matches.
    """
    known = documents_of(parts, catalog)
    folder = prefix_of(parts.places, wanted.folder)
    names = sorted(one for one in known if one.startswith(folder))
    # A folder may be called like a glob.
    is_glob = not names and any(sign in folder for sign in "*?[")
    if is_glob:
        folder = wanted.folder.removeprefix("./")
        names = sorted(one for one in known if fnmatchcase(composed(one), composed(folder)))
    if not names and folder:
        raise _unknown(wanted.folder, known, is_glob=is_glob)
    is_overview = not (wanted.recent or is_glob or wanted.after)
    among = {name: known[name] for name in names}
    dates = _dates(parts, catalog, among) if wanted.recent or is_overview else {}
    entries = [(name, 0) for name in names]
    if wanted.recent:
        entries = [(name, 0) for name in _newest(wanted.recent, names, dates)]
    elif not is_glob:
        folder, entries = _lying_in(names, folder, is_named=bool(folder))
    marked: tuple[Listed, ...] = ()
    linked: tuple[Listed, ...] = ()
    left = _NO_END if wanted.most is None else wanted.most
    if is_overview:
        short = [name for name in names if len(repr(name)) <= _LONG_NAME]
        dated = _newest(_FEW, short, dates)
        marked = tuple(_listed(name, dates[name]) for name in dated if name in dates)
        linked = _most_linked(parts, catalog, short)
        left -= sum(_room(one.path) for one in (*marked, *linked))
    rest = _behind(entries, wanted.after) if wanted.after else entries
    page = _fitting(rest, {}, left)
    titles: dict[str, str] = {}
    if wanted.most is not None:
        titles = _titles(parts, catalog, [name for name, count in page if not count], known)
        page = _fitting(page, titles, left)
    return Contents(
        folder=folder,
        documents=len(names),
        folders=tuple(Folder(path=name, documents=count) for name, count in page if count),
        newest=marked,
        linked=linked,
        items=tuple(
            _listed(name, dates.get(name) if wanted.recent else None, title=titles.get(name, ""))
            for name, count in page
            if not count
        ),
        left=len(rest) - len(page),
        next=page[-1][0] if len(page) < len(rest) else "",
        generation=catalog.generation,
        languages=() if wanted.folder else fulltext_file.languages(parts.places, catalog),
    )


_Entries = Sequence[tuple[str, int]]
"""Folders, and how many documents each has; documents, with none."""


def _behind(entries: _Entries, after: str) -> _Entries:
    """The entries behind one, as it is called or was printed; all where there is none such."""
    for number, (name, _) in enumerate(entries, 1):
        if after in (name, shown_path(name), brief_path(name)):
            return entries[number:]
    return entries


def _room(name: str, title: str = "") -> int:
    """Characters of an entry, with escapes."""
    return len(repr(brief_path(name))) + _ENTRY + (len(repr(title)) if title else 0)


def _fitting(entries: _Entries, titles: Mapping[str, str], most: int) -> _Entries:
    """As many as there is room for, the first at least; the last one is named again."""
    used = 0
    for number, (name, _) in enumerate(entries):
        used += _room(name, titles.get(name, ""))
        if number and used + _room(name) > most:
            return entries[:number]
    return entries


def _unknown(typed: str, known: Iterable[str], *, is_glob: bool) -> UnknownPathError:
    shown = brief(typed)
    if is_glob:
        return UnknownPathError(
            f"nothing matches {shown}: * matches anything, also /: notes/*, *plan*"
        )
    folders = {one.rpartition("/")[0] for one in known if "/" in one}
    folders |= {above for one in folders for above in around(one)}
    near = offered([f"{one}/" for one in nearest_paths(typed, sorted(folders - {".."}))])
    return UnknownPathError(
        f"no folder {shown} has documents{near}: leave it out to see which folders do"
    )


def _lying_in(
    names: Sequence[str], folder: str, *, is_named: bool
) -> tuple[str, list[tuple[str, int]]]:
    """The folders in a folder, with counts, then its documents; one that holds all is entered."""
    while True:
        folders: Counter[str] = Counter()
        direct = []
        for name in names:
            first, slash, _ = name[len(folder) :].partition("/")
            if slash:
                folders[f"{folder}{first}/"] += 1
            else:
                direct.append((name, 0))
        if direct or is_named or len(folders) != 1:
            return folder, [*sorted(folders.items()), *direct]
        (folder,) = folders


def documents_of(parts: Parts, catalog: Catalog) -> dict[str, ChunkPath]:
    """Every document by the name that `show` takes, with a file of it."""
    tree = parts.places.tree
    if tree.has_sections:
        paths = (decode_path(path) for path, _ in queries.documents_with_sections(catalog))
        return {tree.store_path(path): path for path in paths}
    return {
        source if source is not None else tree.store_path(path): path
        for path, source in queries.documents_of_chunks(catalog)
    }


def _dates(parts: Parts, catalog: Catalog, known: Mapping[str, ChunkPath]) -> "dict[str, Moment]":
    """When each document changed last, as a hit says it; what is not known is left out."""
    changed = ages.updated(catalog, parts.places.tree, parts.settings.keys)
    names = {path: name for name, path in known.items()}
    return {
        names[path]: changed[row.id]
        for path, row in catalog.files(list(names)).items()
        if row.id in changed
    }


def _newest(count: int, names: Iterable[str], dates: "Mapping[str, Moment]") -> list[str]:
    """The ones that changed last, newest first."""
    return nlargest(count, names, key=lambda one: (dates[one].at_s if one in dates else 0.0, one))


def _listed(name: str, date: "Moment | None" = None, *, title: str = "") -> Listed:
    return Listed(path=name, date=date.day if date else "", title=title)


def _titles(
    parts: Parts, catalog: Catalog, names: Sequence[str], known: Mapping[str, ChunkPath]
) -> dict[str, str]:
    """The titles of documents that their names do not tell."""
    if parts.places.tree.has_sections:
        rows = catalog.files([known[name] for name in names])
        paths = {row.id: parts.places.tree.store_path(row.path) for row in rows.values()}
        of_rows = rows_of_documents(parts.places.tree, catalog, list(paths))
        found = {paths[one]: row.title for one, row in of_rows.items()}
    else:
        of_sources = queries.titles_of_documents(catalog, names)
        found = {StorePath(source): title for (_, source), title in of_sources.items()}
    return {
        name: title[:_LONG_TITLE]
        for name, title in found.items()
        if title and title.casefold() != stem(name).casefold()
    }


def _most_linked(parts: Parts, catalog: Catalog, names: Sequence[str]) -> tuple[Listed, ...]:
    """The documents that most others link to; in place by a name that no other has."""
    tree = parts.places.tree
    if not tree.has_sections:
        if catalog.indexed_count() > _MOST_FILES:
            return ()
        linking = catalog.once("linking", lambda: linking_documents(tree, catalog))
        only = ((len(linking[name]), name) for name in names if name in linking)
    else:
        counts = queries.counts_of_link_keys(catalog)
        named: dict[str, list[str]] = {}
        for name in names:
            for key in path_keys(tree.chunk_path(StorePath(name))):
                if key in counts:
                    named.setdefault(key, []).append(name)
        only = ((counts[key], of_key[0]) for key, of_key in named.items() if len(of_key) == 1)
    return tuple(
        Listed(path=name, links=count) for count, name in nlargest(_FEW, only) if count > 1
    )

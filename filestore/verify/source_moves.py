"""Where originals went that are missing: renamed in their folder, or with it.

Reads names and stats; the bytes of a few candidates where their stat does not tell. One rule: a
file is where another went only if it has the bytes that were recorded, and no record names it; or,
where one went and one came, most of its lines.
"""

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct, field

from filestore.catalog import Catalog, FileRow, queries
from filestore.chunks import chunk_file
from filestore.core.errors import FilestoreError
from filestore.extract import names_document
from filestore.fs import disk
from filestore.fs.stats import NEVER_CLEAN, unpack_stat
from filestore.sidecar.originals import Reachable, read

MAX_READ: Final = 100
"""How many candidates are read to see what they hold; the others are known by their stat."""
MAX_COMPARED_BYTES: Final = 1024 * 1024
"""Of a text whose lines are compared."""
MIN_SHARED: Final = 0.6
"""The share of its lines that a document keeps which was edited while it was renamed."""
MAX_FOLDERS: Final = 100
"""How many folders are looked through for what a folder that is gone held."""

Stat = tuple[int, int, int, int, int]


class _Search(Struct):
    """What is looked for, and what may be it."""

    catalog: Catalog
    reachable: Reachable
    digests: Mapping[str, str]
    """Missing source to its recorded hash."""
    stats: dict[str, tuple[str, bytes]]
    recorded: frozenset[str]
    listed: frozenset[str] = frozenset()
    """Files of added folders: part of them whatever they are called."""
    places: dict[str, None] = field(default_factory=dict)
    """Files that no record names, in the order in which they are considered."""

    def consider(self, references: Iterable[str]) -> None:
        """Take files as candidates."""
        self.places |= dict.fromkeys(one for one in references if one not in self.recorded)

    def path_of(self, reference: str) -> str | None:
        """Where a candidate is; None where the store may not look."""
        found = self.reachable.path(reference)
        if found is None and reference in self.listed:
            folder, _, name = reference.rpartition("/")
            around = self.reachable.folder(folder)
            found = f"{around}/{name}" if around is not None else None
        return found

    def size_of(self, source: str) -> int | None:
        """The bytes that a missing original had; None where that is not known."""
        stat = self._recorded_stat(source)
        return stat[0] if stat is not None else None

    def is_same_file(self, source: str, now: Stat) -> bool:
        """Whether a stat is that of the recorded file under another name."""
        was = self._recorded_stat(source)
        return was is not None and (was[0], was[1], was[3]) == (now[0], now[1], now[3])

    def _recorded_stat(self, source: str) -> Stat | None:
        digest, packed = self.stats.get(source, ("", NEVER_CLEAN))
        is_known = digest == self.digests[source] and packed != NEVER_CLEAN
        return unpack_stat(packed) if is_known else None


def where_to(
    missing: Mapping[str, str],
    new: Sequence[str],
    folders: Sequence[str],
    catalog: Catalog,
    reachable: Reachable,
) -> dict[str, str]:
    """Where missing originals are now: source to the reference of the file that has their bytes.

    Args:
        missing: Source to its recorded hash.
        new: Files of added folders that no record names.
        folders: The sources that are folders.
        catalog: Inside a snapshot.
        reachable: Where the store may look.
    """
    if not missing:
        return {}
    recorded = frozenset(source for _, _, source, _ in catalog.documents())
    stats = queries.source_stats_of(catalog, list(missing))
    search = _Search(catalog, reachable, missing, stats, recorded, frozenset(new))
    search.consider(new)
    for folder in folders:
        _consider_moved_folder(search, folder)
    for parent in sorted({source.rpartition("/")[0] for source in missing}):
        path = reachable.folder(parent)
        search.consider(
            f"{parent}/{entry.name}" if parent else entry.name
            for entry in (_entries(path) if path is not None else ())
            if entry.is_file(follow_symlinks=False)
        )
    return _matched(search)


def edited_on_the_way(
    pairs: Iterable[tuple[str, Sequence[FileRow], str]], catalog: Catalog, reachable: Reachable
) -> dict[str, str]:
    """Which originals were renamed and edited: source to what it is called now.

    Args:
        pairs: A missing original, the chunk files made from it, and the one file that came; of more
            than `MAX_READ` the first are read.
        catalog: Inside a snapshot.
        reachable: Where the store may look.
    """
    found = {}
    for source, rows, place in islice(pairs, MAX_READ):
        path = reachable.path(place)
        if path is None:
            continue
        one, other = _lines_of(rows, catalog), _lines_in(path)
        most = max(one.total(), other.total())
        # Each line counts as often as both have it.
        if most > 0 and (one & other).total() >= MIN_SHARED * most:
            found[source] = place
    return found


def came_to_folder_of(source: str, catalog: Catalog, reachable: Reachable) -> list[str]:
    """The documents in the folder of an original that no record names."""
    parent = source.rpartition("/")[0]
    path = reachable.folder(parent)
    found = [
        f"{parent}/{entry.name}" if parent else entry.name
        for entry in (_entries(path) if path is not None else ())
        if names_document(entry.name) and entry.is_file(follow_symlinks=False)
    ]
    known = {one for _, _, one, _ in queries.documents_from(catalog, found)}
    return [one for one in found if one not in known]


def _lines(texts: Iterable[str]) -> Counter[str]:
    return Counter(line for text in texts for line in map(str.strip, text.splitlines()) if line)


def _lines_of(rows: Sequence[FileRow], catalog: Catalog) -> Counter[str]:
    """The lines of chunk files as they were indexed; none where they are too large to compare."""
    texts = list[str]()
    size_bytes = 0
    for row in rows:
        data = catalog.content(row.id) or b""
        size_bytes += len(data)
        if size_bytes > MAX_COMPARED_BYTES:
            return Counter()
        with contextlib.suppress(FilestoreError):
            texts.append(chunk_file.parse(data).body)
    return _lines(texts)


def _lines_in(path: str) -> Counter[str]:
    """The lines of a document; none of one that is too large, or read in a process of its own."""
    from filestore import extract
    from filestore.extract.pool import needs_child

    folder, name = os.path.split(path)
    with contextlib.suppress(FilestoreError, OSError), disk.folder_at(folder) as handle:
        data, _ = disk.read_at(handle, name, most=MAX_COMPARED_BYTES)
        reader = extract.for_name(name)
        if reader is not None and not needs_child(name, len(data)):
            return _lines([reader.extract(data, name=name).text])
    return Counter()


def _entries(path: str) -> "list[os.DirEntry[str]]":
    """What a folder holds that is not hidden, by name; nothing where it cannot be listed."""
    try:
        with os.scandir(path) as listed:
            found = [entry for entry in listed if not entry.name.startswith(".")]
    except OSError as error:
        disk.pass_limits(error)
        return []
    return sorted(found, key=lambda entry: entry.name)


def _consider_moved_folder(search: _Search, folder: str) -> None:
    """Take what lies in sibling folders of one that is gone where its documents lay in it."""
    path = search.reachable.tree(folder)
    parent, _, name = folder.rpartition("/")
    around = search.reachable.tree(parent) if name not in ("", ".", "..") else None
    if path is None or around is None or os.path.lexists(path):
        return
    below = [source[len(folder) :] for source in search.digests if source.startswith(f"{folder}/")]
    others = [one.name for one in _entries(around) if one.is_dir(follow_symlinks=False)]
    for other in others[:MAX_FOLDERS]:
        place = f"{parent}/{other}" if parent else other
        if os.path.lexists(f"{around}/{other}{below[0]}") if below else False:
            search.consider(f"{place}{rest}" for rest in below)


def _matched(search: _Search) -> dict[str, str]:
    """Each missing source with the file that has its bytes; a file serves one of them."""
    by_size: dict[int | None, list[str]] = {}
    for source in search.digests:
        by_size.setdefault(search.size_of(source), []).append(source)
    found: dict[str, str] = {}
    left = MAX_READ
    for reference in search.places:
        path = search.path_of(reference)
        try:
            seen = os.lstat(path) if path is not None else None
        except OSError:
            continue
        if seen is None or not stat.S_ISREG(seen.st_mode):
            continue
        status = disk.stat_values(seen)
        alike = (*by_size.get(status[0], ()), *by_size.get(None, ()))
        wanted = [source for source in alike if source not in found]
        same = [source for source in wanted if search.is_same_file(source, status)]
        if wanted and not same and left:
            left -= 1
            digest = read(path or "").found
            same = [source for source in wanted if search.digests[source] == digest]
        name = reference.rpartition("/")[2]
        # Of several copies of one text each goes where its name is, if it is anywhere.
        for source in sorted(same, key=lambda one: one.rpartition("/")[2] != name)[:1]:
            found[source] = reference
    return found

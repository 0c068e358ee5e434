"""How old documents are, and what they say of it: by their metadata, git's log, and their files.

Asks the catalog alone. What git's log says is kept by path, so that it outlives the rows of files.
One rule: what the document says itself comes first, then its last commit, unless it was edited
since; then the stamp of its file.
"""

import posixpath
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct

from filestore.catalog import queries
from filestore.catalog._reading import Catalog
from filestore.catalog._remembered import HISTORY
from filestore.catalog._rows import VARIABLES, FileRow, encode_path, placeholders
from filestore.catalog._schema import written_by_us
from filestore.config.settings import KeyNames
from filestore.core.paths import StorePath, Tree
from filestore.fs.stats import STAT_BYTES, unpack_stat

if TYPE_CHECKING:
    from filestore.core.dates import Moment

Statements = Mapping[str, Sequence[str]]
"""What a document says under the names of `KeyNames`, in the order of these keys."""


class History(Struct, frozen=True, kw_only=True):
    """What was read of git's log."""

    head: str = ""
    """The last commit."""
    prefix: str = "."
    """The store root, relative to the top of the work tree."""
    below: tuple[str, ...] = ()
    """The folders of the work tree that were looked at, relative to the same."""
    generation: int = 0
    """In which that was."""
    problem: str = ""
    """Why dates are not known, in words; without a commit those of files are not either."""

    def path(self, named: str) -> bytes:
        """What git calls a path that is relative to the store root."""
        return posixpath.normpath(f"{self.prefix}/{named}").encode("utf-8", "surrogateescape")


class Age(Struct, frozen=True):
    """When a document was made and last changed; None where nothing tells."""

    created: "Moment | None" = None
    updated: "Moment | None" = None


class Aged(Struct, frozen=True, kw_only=True):
    """A file whose age is asked for."""

    file: int
    """Its id."""
    path: StorePath
    resource: str
    source: str | None
    """Its document, relative to the store root."""
    generation: int
    """In which its text was indexed."""


def aged(row: FileRow, tree: Tree, source: str | None) -> Aged:
    """A file by its row, and the document that it is of."""
    path = tree.store_path(row.path)
    return Aged(
        file=row.id, path=path, resource=row.resource, source=source, generation=row.generation
    )


def all_aged(catalog: Catalog, tree: Tree, among: Iterable[int] | None = None) -> list[Aged]:
    """Every searchable file, or those with some ids."""
    rows = catalog.all_files() if among is None else catalog.files_by_id(list(among)).values()
    own = {resource: source for source, resource in catalog.sources_of_resources().items()}
    return [aged(row, tree, row.source or own.get(row.resource)) for row in rows if row.state == ""]


def history(catalog: Catalog) -> History:
    """What is known of git's log."""

    def read() -> History:
        kept = catalog.meta(HISTORY)
        if not kept:
            return History()
        with written_by_us():
            values = orjson.loads(kept)
            return History(**values | {"below": tuple(values["below"])})

    return catalog.once("history", read)


def statements(
    catalog: Catalog, files: Sequence[Aged], names: KeyNames, *, only: Sequence[str] = ()
) -> dict[int, Statements]:
    """What files and their documents say of themselves, the files first; by id.

    Args:
        catalog: Inside a snapshot.
        files: They; the ones that say nothing are left out.
        names: Which keys say it.
        only: The fields of `names` that are wanted; all if empty.
    """
    wanted = {field: getattr(names, field) for field in only or KeyNames.__struct_fields__}
    keys = sorted({key for own in wanted.values() for key in own})
    found: dict[int, dict[str, list[str]]] = {}
    for file, key, value in _pairs(catalog, "facts", "file", [one.file for one in files], keys):
        found.setdefault(file, {}).setdefault(key, []).append(value)
    # What a document in place says is a fact of its file.
    of_documents: dict[str, list[Aged]] = {}
    for one in files:
        if one.source is not None and one.source != one.path:
            of_documents.setdefault(one.source, []).append(one)
    columns = "source, resource"
    for source, resource, key, value in _pairs(
        catalog, "record_facts", columns, sorted(of_documents), keys
    ):
        for one in of_documents.get(source, ()):
            if one.resource == resource:
                found.setdefault(one.file, {}).setdefault(key, []).append(value)
    return {
        one.file: {
            field: tuple(value for key in own for value in found[one.file].get(key, ()))
            for field, own in wanted.items()
        }
        for one in files
        if one.file in found
    }


def _pairs(
    catalog: Catalog, table: str, columns: str, owners: Sequence[int | str], keys: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Owner, key and value of metadata; of very many owners, those of all there are."""
    start = f"SELECT {columns}, key, value FROM {table} WHERE"
    if len(owners) > VARIABLES:
        for key in keys:
            yield from catalog.rows(f"{start} key = ?", (key,))
    elif owners and keys:
        # The plus keeps SQLite from going through the values that all files have.
        first, _, _ = columns.partition(",")
        some = f"{first} IN ({placeholders(owners)}) AND +key IN ({placeholders(keys)})"
        yield from catalog.rows(f"{start} {some}", [*owners, *keys])


def with_key(catalog: Catalog, tree: Tree, key: str) -> list[tuple[str, str]]:
    """Each file or document whose metadata has a key, relative to the store root, and the value."""
    own = queries.files_with_key(catalog, key)
    statement = "SELECT source, value FROM record_facts WHERE key = ? ORDER BY source"
    return [
        *((str(tree.store_path(path)), value) for path, value in own),
        *catalog.rows(statement, (key,)),
    ]


def ages(
    catalog: Catalog, tree: Tree, files: Sequence[Aged], says: Mapping[int, Statements]
) -> dict[int, Age]:
    """When files, or the documents that they are of, were made and last changed; by id.

    Args:
        catalog: Inside a snapshot.
        tree: Of the store.
        files: They.
        says: What they say of themselves.
    """
    known = history(catalog)
    names = {known.path(name) for one in files for name in (one.source, one.path) if name}
    at = committed(catalog, names) if known.head else {}
    stamps = _Stamps(catalog, tree)
    found: dict[int, Age] = {}
    for one in files:
        own = says.get(one.file, {})
        created, updated = _first(own.get("created", ())), _first(own.get("updated", ()))
        if created is None or updated is None:
            first_s, last_s = _commits(one, known, at) or (0, 0)
            has_stamp = bool(known.head) or not known.problem
            written_s = last_s or (stamps.written_s(one) if has_stamp else 0.0)
            created = created or _moment(first_s or written_s)
            updated = updated or _moment(written_s)
        found[one.file] = Age(created, updated)
    return found


def updated(catalog: Catalog, tree: Tree, names: KeyNames) -> "dict[int, Moment]":
    """When the document of each searchable file last changed, by its id; made once a generation."""

    def made() -> "dict[int, Moment]":
        files = all_aged(catalog, tree)
        says = statements(catalog, files, names, only=("created", "updated"))
        known = ages(catalog, tree, files, says).items()
        return {file: age.updated for file, age in known if age.updated is not None}

    return catalog.once(("updated", names), made)


def stale_since(says: Statements, today: date) -> str:
    """The day after which a document calls itself stale, if that is over; "" if not."""
    day = _first(says.get("stale_after", ()))
    # A month or a year is over when it is.
    return day.day if day is not None and today.isoformat()[: len(day.day)] > day.day else ""


def last_day(values: Sequence[str]) -> str:
    """The last of some values that are dates; "" for none."""
    if not values:
        return ""
    from filestore.core.dates import read_date

    found = max(filter(None, map(read_date, values)), default=None)
    return found.day if found else ""


def _first(values: Sequence[str]) -> "Moment | None":
    """The first of some values that is a date."""
    if not values:
        return None
    from filestore.core.dates import read_date

    return next(filter(None, map(read_date, values)), None)


def _moment(seconds: float) -> "Moment | None":
    if not seconds:
        return None
    from filestore.core.dates import moment

    return moment(seconds)


def committed(catalog: Catalog, names: Collection[bytes]) -> dict[bytes, tuple[int, int, int]]:
    """When files of the work tree were first and last committed, and whether they were edited."""
    statement = "SELECT path, created, updated, edited FROM committed_files"
    if len(names) > VARIABLES:
        rows: Iterable[tuple[Any, ...]] = catalog.rows(statement)
    else:
        rows = catalog.rows_among(f"{statement} WHERE path IN ({{}})", names)
    return {path: (created, updated, edited) for path, created, updated, edited in rows}


def last_commit(one: Aged, known: History, dates: Mapping[bytes, tuple[int, int, int]]) -> int:
    """When a file, or its document, was committed last; 0 where it was edited since, or never."""
    return int((_commits(one, known, dates) or (0, 0))[1])


def _commits(
    one: Aged, known: History, dates: Mapping[bytes, tuple[int, int, int]]
) -> tuple[int, int] | None:
    """The first and the last commit of a file; 0 for the last where it was edited since."""
    for name in (one.source, one.path):
        at = dates.get(known.path(name)) if name else None
        if at is not None:
            created, updated, is_edited = at
            is_edited = is_edited or (name == one.path and one.generation > known.generation)
            return created, 0 if is_edited else updated
    return None


class _Stamps:
    """When files were written last, as the catalog has seen it."""

    def __init__(self, catalog: Catalog, tree: Tree) -> None:
        self._catalog, self._tree = catalog, tree
        self._folders: dict[bytes, tuple[list[bytes], bytes]] = {}

    def written_s(self, one: Aged) -> float:
        """In seconds since 1970, of the document, else of the file; 0 where that is not known."""
        if one.source is not None and one.source != one.path:
            kept = queries.source_stats_of(self._catalog, [one.source])
            if one.source in kept and (written_s := _written_s(kept[one.source][1])):
                return written_s
        folder, _, name = encode_path(self._tree.chunk_path(one.path)).rpartition(b"/")
        if folder not in self._folders:
            # Of files that may be seen, also where the names of all files may not.
            statement = "SELECT names, stats FROM main.folders WHERE path = ?"
            (packed, known), *_ = [*self._catalog.rows(statement, (folder,)), (b"", b"")]
            self._folders[folder] = packed.split(b"\0"), known
        names, stats = self._folders[folder]
        at = bisect_left(names, name)
        if names[at : at + 1] != [name]:
            # Names that are no UTF-8 have another order as text, in which they are sorted.
            at = names.index(name) if name in names else len(names)
        return _written_s(stats[STAT_BYTES * at : STAT_BYTES * (at + 1)])


def _written_s(entry: bytes) -> float:
    return unpack_stat(entry)[1] / 10**9 if len(entry) == STAT_BYTES else 0.0

"""Originals that records name: where they lie, and as they are now, by stat, then by hash.

Changes nothing. One rule: records come from strangers, so what they name outside the work tree is
not even statted but where this user added documents or allowed it, and what does not look like a
document is not opened unless this user added that very file.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from filestore.catalog import Catalog, queries
from filestore.config.layout import Places
from filestore.config.settings import Follow
from filestore.config.user_config import Originals, read_machine, stored_path
from filestore.core.hashing import source_hash
from filestore.core.paths import around, is_below
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.extract import names_document
from filestore.fs import disk
from filestore.fs.scan import HORIZON_NS
from filestore.fs.stats import pack_stat, stat_entry
from filestore.git import process, repository

_MOST_LINKS: Final = 40


class Reachable:
    """Which recorded sources may be looked at, and where they are."""

    def __init__(self, places: Places, originals: Originals) -> None:
        """Prepare.

        Args:
            places: Where the store lies.
            originals: What this user allowed outside the work tree.
        """
        self._root = os.path.realpath(places.root)
        self._tree = os.path.realpath(process.work_tree(places.root) or places.root)
        self._around = os.path.realpath(repository.work_tree(places.root))
        self._whole = originals.given | originals.trusted
        self._tops = {stored_path(self._tree), *self._whole, *originals.near, *originals.files}
        self._above = {folder for top in self._tops for folder in around(top)}
        self._originals = originals
        self._real: dict[str, str | None] = {}
        self._entered: dict[str, bool] = {}
        self._led_to: dict[str, str] = {}
        self._links_left = _MOST_LINKS
        self._fetch = places.fetch

    def path(self, source: str) -> str | None:
        """Where an original is, its folder without links; None where the store may not look.

        Args:
            source: As recorded, relative to the store root.
        """
        folder, _, name = source.rpartition("/")
        if folder not in self._real:
            self._real[folder] = self.folder(folder) if folder else None
        real = self._real[folder]
        is_plain = names_document(name) and "\0" not in source
        found: str | None = f"{real}/{name}"
        if not (real and is_plain):
            # What is not simply a document in a folder.
            folder, name = os.path.split(self.named(source))
            found = None
            if self._opens(folder, name):
                real = self._led(folder)
                found = os.path.join(real, name) if self._opens(real, name) else None
        if found is not None and self._fetch is not None:
            self._fetch(found)
        return found

    def followed(self, source: str) -> str | None:
        """Where an original is, all links followed; None where the store may not look."""
        if not self._opens(*os.path.split(self.named(source))):
            return None
        found = self.leads(source)
        return found if self._opens(*os.path.split(found)) else None

    def folder(self, source: str) -> str | None:
        """Where a folder is whose files may be listed, all links followed; None for any other."""
        if not self._enters(self.named(source)):
            return None
        found = self.leads(source)
        return found if self._enters(found) else None

    def may_hold(self, source: str) -> bool:
        """Whether an original may lie at a path, where commands may write it."""
        return self.folder(source.rpartition("/")[0]) is not None

    def tree(self, source: str) -> str | None:
        """Where a folder is, all below which may be listed, as `folder`."""
        found = self.folder(source)
        return found if found is not None and self._enters(os.path.join(found, "_")) else None

    def lists(self, path: str, top: str) -> bool:
        """Whether a document that a folder holds belongs to it without having been named.

        Args:
            path: Absolute, below the folder.
            top: The folder, without links, as `tree` gives it.
        """
        folder, name = os.path.split(path)
        is_added = stored_path(top) in self._originals.given and not name.startswith(".")
        return self._opens(folder, name) or (is_added and _is_seen(folder, top))

    def given_to_add(self, paths: Iterable[str]) -> Originals:
        """What to remember of paths given to `add`: a file allows its folder."""
        real = [os.path.realpath(path) for path in paths]
        folders = {path for path in real if os.path.isdir(path)}
        folders_of_files = {os.path.dirname(path) for path in real if path not in folders}
        return Originals(
            given=frozenset(map(stored_path, folders)),
            near=frozenset(stored_path(one) for one in folders_of_files if not self._enters(one)),
        )

    def is_outside(self, source: str) -> bool:
        """Whether an original lies outside the work tree, or a link leads there."""
        named = self.named(source)
        return not (is_below(named, self._tree) and is_below(self._led(named), self._tree))

    def is_document(self, source: str) -> bool:
        """Whether an original may be opened wherever the store may look."""
        return self.path(source) is not None or all(
            names_document(words[-1])
            and not any(part.startswith(".") and part != ".." for part in words)
            for path in (self.named(source), self.leads(source))
            for words in [os.path.relpath(path or os.sep, self._root).split(os.sep)]
        )

    def is_near(self, source: str) -> bool:
        """Whether an original, or a folder of them, lies in the work tree and may be looked at.

        Without git it is the folder that the store lies in.
        """
        if os.path.isabs(source) or not is_below(self.named(source), self._around):
            return False
        found = self.followed(source) or self.folder(source)
        return found is not None and is_below(found, self._around)

    def named(self, source: str) -> str:
        """The path that a record names, absolute, by its words alone."""
        # No file has a NUL in its name, and asking for one is an error.
        return "" if "\0" in source else os.path.normpath(os.path.join(self._root, source))

    def leads(self, source: str) -> str:
        """Where the path that a record names leads, absolute, as far as links may be read."""
        return self._led(self.named(source))

    def _led(self, path: str) -> str:
        """A path with all links followed; from where the store may not look on, by its words."""
        folder, name = os.path.split(path)
        if not name:
            return path
        if folder not in self._led_to:
            self._led_to[folder] = self._led(folder)
        self._links_left = _MOST_LINKS
        return self._step(self._led_to[folder], name)

    def _step(self, folder: str, name: str) -> str:
        """Where a name in a folder without links leads."""
        place = os.path.normpath(os.path.join(folder, name))
        known = stored_path(place)
        may_ask = known in self._above or not self._tops.isdisjoint(around(known))
        if not may_ask or not self._links_left:
            return place
        try:
            target = os.readlink(place)
        except OSError:
            return place
        self._links_left -= 1
        found = os.sep if target.startswith(os.sep) else folder
        for part in filter(None, target.split(os.sep)):
            found = self._step(found, part)
        return found

    def _opens(self, folder: str, name: str) -> bool:
        """Whether a file may be opened, by its folder and its name."""
        is_added = stored_path(os.path.join(folder, name)) in self._originals.files
        return is_added or (names_document(name) and self._enters(folder))

    def _enters(self, folder: str) -> bool:
        """Whether files that lie directly in a folder may be looked at."""
        if folder not in self._entered:
            known = stored_path(folder)
            tops = [top for top in around(known) if top in self._whole]
            if is_below(folder, self._tree):
                tops.append(stored_path(os.path.commonpath((folder, self._root))))
            is_near = known in self._originals.near
            self._entered[folder] = is_near or any(_is_seen(known, top) for top in tops)
        return self._entered[folder]


def of_places(places: Places) -> Reachable:
    """Where a store may look, by the user's own file.

    Raises:
        MachineError: That file cannot be read.
    """
    machine = read_machine(places.configuration, os.environ)
    return Reachable(places, machine.originals_of(places.root))


def _is_seen(folder: str, top: str) -> bool:
    """Whether a folder lies below another, and no part of the way is hidden."""
    return is_below(folder, top) and not any(
        part.startswith(".") for part in folder[len(top) :].split(os.sep)
    )


BATCH: Final = 100
_ELSEWHERE: Final = "original:"
"""Before the name of a copy: its original."""
COPIES: Final = "source"
"""Where copies of originals from elsewhere lie, below the store root."""

RecordedDocument: TypeAlias = tuple[str, str, str, str]
"""Record path, resource, source and hash, as `Catalog.documents` gives them."""


class SeenOriginal(Struct, frozen=True):
    """One original as it is now."""

    found: str = ""
    """The hash of its bytes, or what tells without one that it is another file; "" for no file."""
    values: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    """Its stat: size, mtime_ns, ctime_ns, inode and mode."""
    reason: str = ""
    """Why it could not be read."""


class Elsewhere(Struct, frozen=True, kw_only=True):
    """The original of a copy."""

    path: str
    """Absolute."""
    found: str
    """The hash of its bytes."""


class SourceDrift(Struct):
    """What a look at all recorded originals found."""

    documents: Sequence[RecordedDocument] = ()
    """Every document that records name."""
    seen: dict[str, SeenOriginal] = field(default_factory=dict)
    """What is not known to be as recorded, by source."""
    outside: list[str] = field(default_factory=list)
    """What the store may not look at."""
    read: dict[str, bytes] = field(default_factory=dict)
    """Stat entries worth recording, of those whose recorded one was of no use."""
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    """Copies whose original on this machine says something else now."""


def is_followed(follow: Follow, reachable: Reachable, resource: str, source: str) -> bool:
    """Whether a resource follows its original without being asked.

    Args:
        follow: The store's choice.
        reachable: Where the store may look.
        resource: Its name.
        source: As its record has it. A copy stays as it is unless the resource is named.
    """
    chosen = follow.named.get(resource)
    if chosen is not None:
        return chosen
    return follow.every and not is_copy(source) and reachable.is_near(source)


def is_copy(source: str) -> bool:
    """Whether a source is a copy that the store keeps."""
    return source.partition("/")[0] == COPIES


def of_copies(catalog: Catalog, sources: Iterable[str]) -> dict[str, str]:
    """Where the originals of copied documents lie on this machine, by the copy.

    Args:
        catalog: Inside a snapshot or a transaction.
        sources: Documents, as recorded.
    """
    copies = [source for source in sources if is_copy(source)]
    known = catalog.originals() if copies else {}
    found: dict[str, str] = {}
    for source in copies:
        base = source
        while base and base not in known:
            base = base.rpartition("/")[0]
        if base:
            found[source] = known[base] + source[len(base) :]
    return found


def look(
    catalog: Catalog,
    reachable: Reachable,
    *,
    documents: Sequence[RecordedDocument] | None = None,
    clock: disk.FileSystemClock | None = None,
    on_progress: OnProgress = ignore,
) -> SourceDrift:
    """Stat every original that a record names; read those whose stat tells nothing.

    Args:
        catalog: Inside a snapshot or a transaction.
        reachable: Where the store may look.
        documents: Which ones of the catalog's; None for all.
        clock: The file system's, where stats are to be recorded.
        on_progress: Called with the number of sources read.
    """
    drift = SourceDrift(catalog.documents() if documents is None else documents)
    if documents is None:
        known = catalog.source_stats()
    else:
        known = queries.source_stats_of(catalog, [source for _, _, source, _ in documents])
    doubtful = [
        source
        for _, _, source, digest in drift.documents
        if known.get(source) != (digest, _packed(reachable.path(source)))
    ]
    unread: list[tuple[str, str]] = []
    for source in dict.fromkeys(doubtful):
        path = reachable.path(source)
        seen, where = (SeenOriginal(), None) if path is None else _stat(path, source, reachable)
        if where is None:
            drift.outside.append(source)
            continue
        drift.seen[source] = seen
        if seen.reason or not seen.values[4]:
            continue
        digest, packed = known.get(source, ("", b""))
        if packed == pack_stat(seen.values):
            drift.seen[source] = SeenOriginal(digest, seen.values)
        else:
            unread.append((source, where))
    _read_all(drift, unread, known, clock, on_progress)
    _look_elsewhere(drift, catalog, reachable, clock)
    return drift


def _look_elsewhere(
    drift: SourceDrift,
    catalog: Catalog,
    reachable: Reachable,
    clock: disk.FileSystemClock | None,
) -> None:
    """Stat the originals of copies, read those whose stat tells nothing.

    The catalog that names them may be a stranger's. One that is gone is no news: the copy is kept
    for that.
    """
    places = of_copies(catalog, (source for _, _, source, _ in drift.documents))
    known = queries.source_stats_of(catalog, [_ELSEWHERE + source for source in places])
    unread = []
    for source, named in places.items():
        path = reachable.path(named)
        if path is None:
            drift.outside.append(named)
            continue
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                values = disk.stat_values(status)
                digest, packed = known.get(_ELSEWHERE + source, ("", b""))
                is_known = packed == pack_stat(values)
                drift.seen[_ELSEWHERE + source] = SeenOriginal(digest if is_known else "", values)
                unread += [] if is_known else [(_ELSEWHERE + source, path)]
    _read_all(drift, unread, known, clock, ignore)
    for _, _, source, digest in drift.documents:
        seen = drift.seen.get(_ELSEWHERE + source)
        if seen is not None and seen.found not in ("", digest):
            drift.elsewhere[source] = Elsewhere(path=places[source], found=seen.found)


def _packed(path: str | None) -> bytes:
    """The stat of a file as it is recorded; of what is no file, one that never is."""
    if path is None:
        return b""
    try:
        return pack_stat(disk.stat_values(os.lstat(path)))
    except OSError:
        return b""


def _stat(path: str, source: str, reachable: Reachable) -> tuple[SeenOriginal, str | None]:
    """The stat of an original, and where it is to be read; a link is followed inside."""
    where: str | None = path
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            where = reachable.followed(source)
            if where is None:
                return SeenOriginal(), None
            status = os.lstat(where)
    except (FileNotFoundError, NotADirectoryError):
        return SeenOriginal(), where
    except OSError as error:
        disk.pass_limits(error)
        return SeenOriginal(reason=error.strerror or str(error)), where
    if not stat.S_ISREG(status.st_mode):
        return SeenOriginal(), where
    return SeenOriginal(values=disk.stat_values(status)), where


def _read_all(
    drift: SourceDrift,
    unread: Sequence[tuple[str, str]],
    known: Mapping[str, tuple[str, bytes]],
    clock: disk.FileSystemClock | None,
    on_progress: OnProgress,
) -> None:
    horizon_ns = time.time_ns() + HORIZON_NS
    stamps = [max(drift.seen[source].values[1:3]) for source, _ in unread]
    latest = max(filter(horizon_ns.__gt__, stamps), default=0)
    read_from_ns = clock.wait_past(latest) if clock is not None and unread else 0
    for number, (source, path) in enumerate(unread):
        if number % BATCH == 0:
            on_progress(Progress(stage="reading originals", done=number, total=len(unread)))
        seen = drift.seen[source] = read(path)
        entry = stat_entry(seen.values, read_from_ns)
        if seen.found and known.get(source) != (seen.found, entry):
            drift.read[source] = entry


def read(path: str) -> SeenOriginal:
    """Read one original, no link followed in its last step."""
    from filestore.config.layout import MAX_SOURCE_BYTES

    folder, name = os.path.split(path)
    try:
        with disk.folder_at(folder) as handle:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if status.st_size > MAX_SOURCE_BYTES:
                # Too large to have been added, so it is not what was.
                return SeenOriginal(f"{status.st_size:,} bytes", disk.stat_values(status))
            data, status = disk.read_at(handle, name)
    except (FileNotFoundError, NotADirectoryError):
        return SeenOriginal()
    except OSError as error:
        disk.pass_limits(error)
        return SeenOriginal(reason=error.strerror or str(error))
    return SeenOriginal(source_hash(data), disk.stat_values(status))


def found_now(catalog: Catalog, reachable: Reachable, source: str) -> str | None:
    """The hash of one original as it is now, "" for no file; None where that is unknown.

    Args:
        catalog: Inside a snapshot or a transaction.
        reachable: Where the store may look.
        source: As recorded.
    """
    path = reachable.path(source)
    seen, where = (SeenOriginal(), None) if path is None else _stat(path, source, reachable)
    if where is None or seen.reason:
        return None
    if not seen.values[4]:
        return ""
    digest, packed = queries.source_stats_of(catalog, [source]).get(source, ("", b""))
    if packed == pack_stat(seen.values):
        return digest
    again = read(where)
    return None if again.reason else again.found


def misremembered(catalog: Catalog, reachable: Reachable, drift: SourceDrift) -> Iterator[str]:
    """Originals that do not have the hash that is recorded for their stat; reads what differs.

    Args:
        catalog: Inside a snapshot.
        reachable: Where the store may look.
        drift: What a look at them found.
    """
    known = catalog.source_stats()
    for source, seen in drift.seen.items():
        path = reachable.followed(source)
        if path is None or known.get(source) != (seen.found, pack_stat(seen.values)):
            continue
        again = read(path)
        if again.values == seen.values and again.found != seen.found:
            yield source


def entries(drift: SourceDrift) -> Iterator[tuple[str, str, bytes]]:
    """Source, hash and stat entry of what is to be recorded."""
    return ((source, drift.seen[source].found, entry) for source, entry in drift.read.items())

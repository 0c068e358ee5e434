"""Originals: what truth files held before a command changed them, kept under `.undo/`.

One numbered folder, a batch, for each change: what each file held before, by bytes, and what it
became, by hash; once the change was taken back, that by bytes too. Written before a file changes.
One rule: a folder without a record is no batch, so that a batch is there whole or not at all.

What a writer that died left outside of `chunked/` and the sidecar is found and collected here, too:
temporary files, and originals that were never recorded. `drift` tells what lies in `chunked/`. Only
what bears a name of ours is removed, and only by the holder of the writer's lock.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Self

from msgspec.structs import replace

from filestore.config.layout import UNDO, Places, folded_path
from filestore.core.errors import FilestoreError, on_error
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash
from filestore.core.paths import CHUNKS, DOCUMENTS, StorePath, Tree, is_made
from filestore.fs import disk, part, transaction
from filestore.fs.transaction import Content
from filestore.history.batch import (
    BATCH_NAME,
    KEPT_BYTES,
    KEPT_S,
    NUMBERED,
    Batch,
    BatchInvalidError,
    ChangedFile,
    Group,
    KeptBatch,
    State,
    expired,
    grouped,
    invalid,
    parse,
    serialize,
)

_UNDERWAY: Final = "underway"
_OURS: Final = re.compile(
    rf"[0-9]+\.(before|after)|{re.escape(BATCH_NAME)}|{_UNDERWAY}"
    rf"|{re.escape(disk.TEMPORARY_PREFIX)}[0-9a-f]+"
)
_TEMPORARY: Final = re.compile(rf"{re.escape(disk.TEMPORARY_PREFIX)}[0-9a-f]+")
_UNREADABLE: Final = ("",)
"""The names in a folder that cannot be read: none of ours."""
_FEW_BATCHES: Final = 128
_LARGE_SHARE: Final = 256


class BatchMissingError(FilestoreError, LookupError):
    """There is no batch of this name."""


def list_batches(folder: str) -> list[Batch]:
    """What can be undone or redone, oldest first; none where nothing was kept yet.

    Raises:
        WriteFailedError: The folder cannot be read.
    """
    if not os.path.isdir(folder):
        return []
    with Originals.open(folder) as originals:
        return originals.batches()


def list_groups(folder: str) -> list[Group]:
    """The same, by command."""
    return grouped(list_batches(folder))


def broken_off(folder: str) -> list[Group]:
    """What a writer was at that died, or that is at it now; nothing where none can be read."""
    with contextlib.suppress(OSError), part.own_folder(folder) as handle:
        names = [name for name in os.listdir(handle) if NUMBERED.fullmatch(name)]
        if any(os.path.lexists(os.path.join(folder, name, _UNDERWAY)) for name in names):
            return [group for group in list_groups(folder) if group.underway]
    return []


def is_temporary(name: str) -> bool:
    """Whether a name is one that a writer of ours gives to a file that is not complete."""
    # Asked of every name, of which next to none is one.
    return name.startswith(disk.TEMPORARY_PREFIX) and _TEMPORARY.fullmatch(name) is not None


class Originals:
    """The `.undo` folder of a store, open. Only the holder of the writer's lock writes to it."""

    def __init__(
        self, handle: int, tree: Tree = CHUNKS, is_near: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._handle = handle
        self._tree = tree
        self._is_near = is_near

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, folder: str, *, is_near: Callable[[str], bool] = lambda _: True
    ) -> Iterator[Self]:
        """Open the folder, made where it is missing.

        Args:
            folder: Its path.
            is_near: Whether a file outside of the root may be changed, for who is to change one.

        Raises:
            WriteFailedError: It cannot be made or opened, or is a symbolic link.
        """
        stack = contextlib.ExitStack()
        with transaction.naming_file(folder):
            is_new = not os.path.lexists(folder)
            opened = stack.enter_context(part.own_folder(folder, make=True))
            if is_new:
                disk.sync_path(os.path.dirname(folder))
        with stack:
            # Of documents in place it lies in the sidecar, and has a name without a dot.
            tree = DOCUMENTS if os.path.basename(folder) == UNDO else CHUNKS
            yield cls(opened, tree, is_near)

    def keep(
        self,
        what: str,
        entries: Sequence[ChangedFile],
        before: Mapping[str, Content],
        *,
        now_s: float,
        by: str | None = None,
        group: str = "",
        folders: Sequence[str] = (),
    ) -> Batch:
        """Keep what some files hold, before they change.

        Args:
            what: The command, for the list.
            entries: The files, in the order in which they are to change.
            before: What the existing ones hold.
            now_s: Seconds since 1970.
            by: The program that changes them; None for a person.
            group: The first batch of the command; "" where this is it.
            folders: The folders that were made for the files.

        Raises:
            WriteFailedError: The disk refused; nothing is left of the batch.
        """
        numbers = [int(name) for name in os.listdir(self._handle) if NUMBERED.fullmatch(name)]
        identifier = f"{max(numbers, default=0) + 1:06d}"
        with transaction.naming_file(f".undo/{identifier}"):
            os.mkdir(identifier, 0o700, dir_fd=self._handle)
        batch = Batch(
            identifier=identifier,
            what=what,
            made_s=int(now_s),
            entries=tuple(entries),
            by=by,
            group=group,
            folders=tuple(folders),
        )
        blobs = {
            f"{number}.before": replace(before[entry.path], mode=0o600)
            for number, entry in enumerate(entries)
            if entry.path in before
        }
        with on_error(self.discard, identifier):
            self._write(batch, blobs)
        return batch

    def turn(
        self, batch: Batch, wanted: State, sequence: int, blobs: Mapping[int, Content]
    ) -> None:
        """Note that a batch is being undone or redone, before its files change.

        Args:
            batch: With what its files hold now.
            wanted: The side that they are to hold.
            sequence: Higher than that of what was turned before.
            blobs: Number of an entry to what its file holds that is not kept yet.

        Raises:
            WriteFailedError: The disk refused; the batch is as it was.
        """
        turned = replace(batch, wanted=wanted, sequence=sequence, underway=True)
        self._write(
            turned,
            {f"{number}.after": replace(one, mode=0o600) for number, one in blobs.items()},
        )

    def _write(self, batch: Batch, blobs: Mapping[str, Content]) -> None:
        """Blobs first, then the record, which makes the batch."""
        name = batch.identifier
        transaction.write_all(self._handle, {f"{name}/{blob}": one for blob, one in blobs.items()})
        with transaction.naming_file(f".undo/{name}"), disk.folder(self._handle, name) as handle:
            os.close(part.open_file(_UNDERWAY, os.O_WRONLY | os.O_CREAT, folder=handle))
            # The blobs' names must be there before the record that counts on them.
            os.fsync(handle)
            record = transaction.content(serialize(batch), 0o600)
            transaction.write_all(handle, {BATCH_NAME: record})
            os.fsync(handle)
            os.fsync(self._handle)

    def turn_back(self, batch: Batch) -> None:
        """Put the record of a batch back whose files were not changed after all."""
        with contextlib.suppress(disk.WriteFailedError):
            self._write(batch, {})
        if not batch.underway:
            self.finish(batch.identifier)

    def finish(self, identifier: str) -> None:
        """Note that the files of a batch are all on the side that was wanted."""
        # Not synced: a mark that comes back only has the files looked at once more.
        with contextlib.suppress(OSError), disk.folder(self._handle, identifier) as handle:
            os.unlink(_UNDERWAY, dir_fd=handle)

    def discard(self, identifier: str) -> None:
        """Remove a batch, its record first; what is not ours in it stays."""
        with contextlib.suppress(OSError), disk.folder(self._handle, identifier) as handle:
            names = [name for name in os.listdir(handle) if _OURS.fullmatch(name)]
            for name in sorted(names, key=lambda name: name != BATCH_NAME):
                os.unlink(name, dir_fd=handle)
            os.rmdir(identifier, dir_fd=self._handle)

    def batches(self) -> list[Batch]:
        """Every batch, oldest first; one that cannot be used has a `problem`."""
        found = []
        names = [name for name in os.listdir(self._handle) if NUMBERED.fullmatch(name)]
        for name in sorted(names, key=int):
            with contextlib.suppress(BatchMissingError):
                try:
                    found.append(self.batch(name))
                except BatchInvalidError as error:
                    found.append(
                        Batch(identifier=name, what="", made_s=0, entries=(), problem=error.message)
                    )
        return found

    def batch(self, identifier: str) -> Batch:
        """One batch.

        Raises:
            BatchMissingError: There is none of this name.
            BatchInvalidError: Its record cannot be used.
        """
        missing = BatchMissingError(
            f"no batch {identifier!r}", remedy="'filestore undo --list' shows what is there"
        )
        if not NUMBERED.fullmatch(identifier):
            raise missing
        try:
            with disk.folder(self._handle, identifier) as handle:
                data, _ = disk.read_at(handle, BATCH_NAME)
                sizes = _sizes(handle)
                ignores_case = _ignores_case(handle)
        except FileNotFoundError as error:
            raise missing from error
        except OSError as error:
            raise invalid(identifier, error.strerror or str(error)) from error
        batch = parse(data, identifier=identifier, tree=self._tree)
        for one in batch.entries:
            if one.path.startswith("../") and not self._is_near(one.path):
                raise invalid(identifier, f"{one.path} is not an original that the store may read")
        for side in ("before", "after") if ignores_case else ():
            # A file that was given another case is fine: each of its names is on one side alone.
            there = [one.path for one in batch.entries if getattr(one, side) is not None]
            if len(set(map(folded_path, there))) < len(there):
                raise invalid(identifier, "it names a file twice, in other letters")
        return replace(batch, underway=_UNDERWAY in sizes, size_bytes=sum(sizes.values()))

    def blob(
        self, identifier: str, name: str, digest: bytes, *, most: int = disk.MOST_BYTES
    ) -> bytes:
        """What a file held, as it was kept.

        Args:
            identifier: Of the batch.
            name: Of the blob in it.
            digest: Of what it is to hold.
            most: Refuse more bytes than this.

        Raises:
            BatchInvalidError: It is gone or damaged.
        """
        try:
            data, _ = disk.read_below(self._handle, f"{identifier}/{name}", most=most)
        except OSError as error:
            raise invalid(identifier, f"{name}: {error.strerror or error}") from error
        if content_hash(data) != digest:
            raise invalid(identifier, f"{name} does not hold what was kept in it")
        return data

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Everything that is kept, each with the path of its file; what is damaged is left out."""
        for batch in self.batches():
            for number, entry in enumerate(batch.entries):
                for side, version in (("before", entry.before), ("after", entry.after)):
                    if version is not None and version.mode is not None:
                        with contextlib.suppress(BatchInvalidError):
                            name = f"{number}.{side}"
                            yield entry.path, self.blob(batch.identifier, name, version.digest)

    def collect(
        self,
        newest: Batch,
        *,
        now_s: float,
        most_s: float = KEPT_S,
        most_bytes: int = KEPT_BYTES,
    ) -> None:
        """Remove batches beyond the caps, and what dead writers left.

        A look at every batch takes time where there are thousands, so that then only one of many
        changes pays for it, and large ones.
        """
        names = [name for name in os.listdir(self._handle) if NUMBERED.fullmatch(name)]
        large = newest.size_bytes * _LARGE_SHARE > most_bytes
        if len(names) > _FEW_BATCHES and int(newest.identifier) % _FEW_BATCHES and not large:
            return
        kept, left = [], []
        for name in sorted(names, key=int):
            one = self._kept(name)
            if one is None:
                left.append(name)
            else:
                kept.append(one)
        for name in [*left, *expired(kept, now_s=now_s, most_s=most_s, most_bytes=most_bytes)]:
            self.discard(name)

    def leftovers(self) -> list[str]:
        """What dead writers left: temporary files, and folders that were not recorded."""
        found = []
        for name in os.listdir(self._handle):
            if is_temporary(name):
                found.append(name)
            elif NUMBERED.fullmatch(name):
                held = self._held(name)
                if BATCH_NAME in held:
                    found += [f"{name}/{one}" for one in held if is_temporary(one)]
                # What somebody else put there stays, and is reported once.
                elif not held or any(map(_OURS.fullmatch, held)):
                    found.append(name)
        return sorted(found)

    def _held(self, name: str) -> Sequence[str]:
        """The names in a folder; there may be thousands of folders."""
        try:
            handle = os.open(name, part.FOLDER_FLAGS, dir_fd=self._handle)
        except OSError:
            return _UNREADABLE
        try:
            return os.listdir(handle)
        finally:
            os.close(handle)

    def _kept(self, name: str) -> KeptBatch | None:
        """A batch as the cap sees it; None for what a dead writer left."""
        try:
            with disk.folder(self._handle, name) as handle:
                sizes = _sizes(handle)
                status = os.stat(BATCH_NAME, dir_fd=handle, follow_symlinks=False)
                is_large = sizes.get(BATCH_NAME, 0) > disk.MOST_BYTES
                data = b"" if is_large else disk.read_at(handle, BATCH_NAME)[0]
        except OSError:
            return None
        group = ""
        with contextlib.suppress(BatchInvalidError):
            group = parse(data, identifier=name, tree=self._tree).group
        size = sum(sizes.values())
        return KeptBatch(identifier=name, used_s=status.st_mtime, size_bytes=size, group=group)


def _sizes(handle: int) -> dict[str, int]:
    """The files of a folder, name to size."""
    with os.scandir(handle) as entries:
        statuses = ((entry.name, entry.stat(follow_symlinks=False)) for entry in entries)
        return {name: one.st_size for name, one in statuses if stat.S_ISREG(one.st_mode)}


def _ignores_case(handle: int) -> bool:
    """Whether the file system of a batch takes names that differ in their case for one."""
    try:
        other = os.stat(BATCH_NAME.upper(), dir_fd=handle, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(other, os.stat(BATCH_NAME, dir_fd=handle, follow_symlinks=False))


_DEEPEST = 64
"""Folders below this are not looked into, as in the tree of chunk files."""


def leftovers(places: Places) -> list[Finding]:
    """What is there; none where the root cannot be read."""
    found = list(_temporary(places))
    if disk.is_folder(places.undo):
        # What was begun under `.undo/`: nothing was changed after it. A writer may begin, and
        # remove what is there, while it is looked at.
        with contextlib.suppress(OSError), Originals.open(places.undo) as originals:
            for name in originals.leftovers():
                mode = os.lstat(os.path.join(places.undo, name)).st_mode
                if stat.S_ISREG(mode) == is_temporary(os.path.basename(name)):
                    found.append(f"{places.undo_name}/{name}")
    detail = "left by a filestore process that was killed"
    return [Finding(code="leftovers", path=StorePath(path), detail=detail) for path in found]


def remove_leftovers(places: Places) -> list[Finding]:
    """Remove what is there, and say what that was. The lock is held."""
    found = leftovers(places)
    with disk.folder_at(places.root) as root:
        for finding in found:
            folder, _, name = finding.path.rpartition("/")
            with contextlib.suppress(OSError), _opened(places, root, folder) as handle:
                if is_temporary(name):
                    os.unlink(name, dir_fd=handle)
                else:
                    Originals(handle).discard(name)
    return found


@contextlib.contextmanager
def _opened(places: Places, root: int, folder: str) -> Iterator[int]:
    """A folder as findings name it; that of the originals may lie outside of the root."""
    kept = places.undo_name
    if folder != kept and not folder.startswith(f"{kept}/"):
        with disk.folder(root, folder) as handle:
            yield handle
        return
    with (
        part.own_folder(places.undo) as undo,
        disk.folder(undo, folder[len(kept) + 1 :]) as handle,
    ):
        yield handle


def _temporary(places: Places) -> Iterator[str]:
    """Temporary files, relative to the root; no link is followed."""
    try:
        root = os.open(places.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        yield from _names_in(root, "")[0]
        if not places.tree.is_written:
            # Where a writer that died was about to write. `drift` tells what lies among what was
            # made of documents.
            paths = (path for group in broken_off(places.undo) for path in group.links())
            for folder in sorted(set(map(os.path.dirname, paths))):
                if folder and not is_made(f"{folder}/"):
                    yield from _names_in(root, folder)[0]
            return
        waiting = ["source"]
        while waiting:
            found, folders = _names_in(root, waiting.pop())
            yield from found
            waiting += folders
    finally:
        os.close(root)


def _names_in(root: int, folder: str) -> tuple[list[str], list[str]]:
    """The temporary files and the folders of a folder; nothing where it cannot be read."""
    start = f"{folder}/" if folder else ""
    found, folders = [], []
    with (
        contextlib.suppress(OSError),
        disk.folder(root, folder) as handle,
        os.scandir(handle) as entries,
    ):
        for entry in entries:
            if is_temporary(entry.name):
                status = entry.stat(follow_symlinks=False)
                found += [start + entry.name] if stat.S_ISREG(status.st_mode) else []
            elif folder.count("/") < _DEEPEST and entry.is_dir(follow_symlinks=False):
                folders.append(start + entry.name)
    return sorted(found), sorted(folders)

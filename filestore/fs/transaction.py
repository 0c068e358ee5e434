"""Several files below a folder replaced as one: all of them, or none.

Knows nothing of what they hold or mean. One rule: what a file holds is compared with what was
expected of it right before it is replaced, so that no edit is overwritten.
"""

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.errors import RefusedError
from filestore.core.hashing import content_hash
from filestore.core.safe_text import listed
from filestore.fs import disk

_FEW_FILES: Final = 8
_SYNCED_AT_ONCE: Final = 16
_COARSEST_TICK_NS: Final = 2_100_000_000
_IN_THE_WAY: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.ENXIO})
_KEPT_FOLDERS: Final = frozenset({"", "chunked"})
"""They belong to the store, and stay when they are left empty."""


class ChangedMeanwhile(RefusedError):
    """Files do not hold what they were expected to hold; nothing was touched."""

    def __init__(
        self,
        message: str,
        *,
        paths: Sequence[str] = (),
        remedy: str = "run the command again",
        detail: str = "",
    ) -> None:
        super().__init__(message, remedy=remedy, detail=detail)
        self.paths = tuple(paths)
        """Relative to the folder below which they were to be replaced."""


class HalfReplacedError(disk.WriteFailedError):
    """The disk refused in the middle, and then refused to take back what was done."""


class Content(Struct, frozen=True, kw_only=True):
    """What a file holds."""

    digest: bytes
    """`content_hash` of its bytes."""
    read: Callable[[], bytes]
    mode: int | None = None
    """Its permissions; None: as the process's mask has it."""
    mtime_ns: int | None = None
    """When it was written, where it is only moved; None: now."""


class Replacement(Struct, frozen=True, kw_only=True):
    """One file, from what it holds to what it is to hold; None is no file."""

    path: str
    before: Content | None
    after: Content | None
    last: bool = False
    """Whether it is made when all else is."""


class Seen(Struct, frozen=True, kw_only=True):
    """A file that was read."""

    digest: bytes
    status: os.stat_result
    read_ns: int
    """The wall clock before it was read."""

    @property
    def mode(self) -> int:
        """Its permissions."""
        return stat.S_IMODE(self.status.st_mode)


def content(data: bytes, mode: int | None = None) -> Content:
    """A content that lies in memory."""
    return Content(digest=content_hash(data), read=lambda: data, mode=mode)


def look(root: int, path: str) -> Seen | None:
    """What a path below a directory handle holds; None where there is no file.

    Raises:
        ChangedMeanwhile: A link, a folder or a device is there, or in the place of its folder.
        WriteFailedError: It cannot be read.
    """
    now_ns = time.time_ns()
    try:
        data, status = disk.read_below(root, path)
    except FileNotFoundError:
        return None
    except disk.NotAFileError as error:
        raise ChangedMeanwhile(f"{path} is not a regular file", paths=[path]) from error
    except disk.UnstableFileError as error:
        raise ChangedMeanwhile(f"{path} is being written", paths=[path]) from error
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            raise ChangedMeanwhile(
                f"{path} is, or is below, a symbolic link or a file in place of a folder",
                paths=[path],
            ) from error
        raise disk.write_failed(path, error) from error
    return Seen(digest=content_hash(data), status=status, read_ns=now_ns)


class Replacing:
    """A replacement of several files under way: `check`, `stage`, `apply`. Use it as a context.

    A file is replaced by another, so that a second hard link to it keeps what it had; permissions
    are kept, an owner is not.
    """

    def __init__(
        self,
        root: int,
        replacements: Sequence[Replacement],
        *,
        removable: Container[str] | None = None,
    ) -> None:
        """Prepare; touches nothing.

        Args:
            root: A directory handle, open as long as this is in use.
            replacements: In the order in which they are made; removals come after what is written,
                and what is to be last after them.
            removable: The folders that go where removals leave them empty; None: all but the
                store's own.
        """
        self._root = root
        self._removable = removable
        self.replacements: Final = tuple(replacements)
        """In the order in which they are made."""
        self._writes = [one for one in replacements if one.after is not None]
        self._removals = [one for one in replacements if one.after is None]
        self._rounds = [
            [one for one in self._writes if not one.last],
            [one for one in self._removals if not one.last],
            [one for one in replacements if one.last],
        ]
        self._seen: dict[str, Seen | None] = {}
        self._staged: dict[str, str] = {}
        self._made: set[str] = set()
        self._unsynced = False
        self.touched = False
        """Whether some file was replaced and not put back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path, temporary in self._staged.items():
            _remove_quietly(self._root, _sibling(path, temporary))
        for folder in sorted(self._made, reverse=True):
            with contextlib.suppress(OSError), _parent(self._root, folder) as (handle, name):
                os.rmdir(name, dir_fd=handle)

    def check(self) -> Mapping[str, Seen | None]:
        """Compare every file with what is expected of it.

        Raises:
            ChangedMeanwhile: Some hold something else, all named.
            WriteFailedError: One cannot be read.
        """
        wrong: dict[str, str] = {}
        for one in [*self._writes, *self._removals]:
            try:
                self._seen[one.path] = look(self._root, one.path)
            except ChangedMeanwhile as error:
                wrong[one.path] = error.message
                continue
            seen, reason = self._seen[one.path], ""
            if seen is None:
                reason = "is gone" if one.before is not None else ""
            elif one.before is None:
                reason = "is there already"
            elif seen.digest != one.before.digest:
                reason = "was edited meanwhile"
            if reason:
                wrong[one.path] = f"{one.path} {reason}"
        _refuse(wrong)
        return self._seen

    def stage(self) -> None:
        """Put every new file on disk next to its place; what is there is not touched.

        Raises:
            WriteFailedError: The disk refused; the context takes away what was staged.
        """
        for folder in dict.fromkeys(_folder_of(one.path) for one in self._writes):
            for depth in range(len(folder.split("/")) if folder else 0):
                inner = "/".join(folder.split("/")[: depth + 1])
                with naming_file(inner), _parent(self._root, inner) as (handle, name):
                    try:
                        os.mkdir(name, dir_fd=handle)
                    except FileExistsError:
                        continue
                    self._made.add(inner)
                    os.fsync(handle)
        every = dict.fromkeys(_folder_of(one.path) for one in [*self._writes, *self._removals])
        for folder in every:
            # What may hold every file of a store is not listed for each change.
            if "/" in folder or folder == "source":
                collect_staged(self._root, folder)
        contents = {
            one.path: self._with_mode(one.path, one.after) for one in self._writes if one.after
        }
        self._staged = stage_all(self._root, contents)

    def _with_mode(self, path: str, wanted: Content) -> Content:
        seen = self._seen[path]
        return replace(wanted, mode=seen.mode) if wanted.mode is None and seen else wanted

    def apply(self) -> None:
        """Rename, sync, remove, sync; what fails is taken back.

        Raises:
            ChangedMeanwhile: A file changed since it was checked; all is as it was.
            HalfReplacedError: The disk refused to take back what was done.
            WriteFailedError: The disk refused; all is as it was.
        """
        # An editor that saves while this runs is noticed before each file. What remains is the time
        # between one look and one system call: no system offers to compare and rename in one.
        _refuse(self._moved_on([*self._writes, *self._removals]))
        done: list[Replacement] = []
        self.touched = True
        try:
            for replacements in self._rounds:
                if replacements:
                    self._make(replacements, done)
        except BaseException as error:
            self._take_back(done, error)
            raise
        self._made.clear()
        for folder in {_folder_of(one.path) for one in self._removals}:
            # It and those around it, as long as they are empty and may go.
            with contextlib.suppress(OSError):
                while folder not in _KEPT_FOLDERS and (
                    self._removable is None or folder in self._removable
                ):
                    with _parent(self._root, folder) as (handle, name):
                        os.rmdir(name, dir_fd=handle)
                    folder = _folder_of(folder)

    def lacking(self) -> list[str]:
        """The folders that `stage` is to make."""
        found: set[str] = set()
        for one in self._writes:
            folder = _folder_of(one.path)
            while folder and folder not in found:
                try:
                    os.stat(folder, dir_fd=self._root, follow_symlinks=False)
                except FileNotFoundError:
                    found.add(folder)
                except OSError:
                    break
                else:
                    break
                folder = _folder_of(folder)
        return sorted(found)

    def _make(self, replacements: Sequence[Replacement], done: list[Replacement]) -> None:
        for one in replacements:
            _refuse(self._moved_on([one]))
            # Noted first: whether it came to pass is looked up if it must be taken back.
            done.append(one)
            with naming_file(one.path), _parent(self._root, one.path) as (handle, name):
                if one.after is None:
                    os.unlink(name, dir_fd=handle)
                else:
                    os.rename(self._staged[one.path], name, src_dir_fd=handle, dst_dir_fd=handle)
                    del self._staged[one.path]
        self._unsynced = True
        for folder in sorted({_folder_of(one.path) for one in replacements}):
            with naming_file(folder):
                disk.sync_folders(self._root, [folder])
        self._unsynced = False

    def _moved_on(self, replacements: Iterable[Replacement]) -> dict[str, str]:
        """The files that are not as they were when they were read, with the reason."""
        wrong = {}
        for one in replacements:
            try:
                same = _is_as_seen(self._root, one.path, self._seen[one.path])
            except ChangedMeanwhile:
                same = False
            if not same:
                wrong[one.path] = f"{one.path} was changed meanwhile"
        return wrong

    def _take_back(self, done: Sequence[Replacement], reason: BaseException) -> None:
        left = []
        for one in reversed(done):
            try:
                self._put_back(one)
            except (OSError, RefusedError):
                left.append(one.path)
        if not self._unsynced:
            # A folder whose sync failed is not synced again: the second answer would be a lie.
            with contextlib.suppress(OSError):
                disk.sync_folders(self._root, {_folder_of(one.path) for one in done})
        if left:
            raise HalfReplacedError(
                f"{reason}; {len(left)} of {len(done)} files could not be restored",
                detail=listed(left, 5),
            ) from reason
        self.touched = False

    def _put_back(self, one: Replacement) -> None:
        """Put back what a file held, if it holds what this replacement made of it."""
        seen = look(self._root, one.path)
        made = one.after.digest if one.after else None
        if (seen.digest if seen else None) != made:
            return
        if one.before is None:
            with _parent(self._root, one.path) as (handle, name):
                os.unlink(name, dir_fd=handle)
            return
        was = self._seen[one.path]
        before = replace(one.before, mtime_ns=was.status.st_mtime_ns if was else None)
        write_all(self._root, {one.path: self._with_mode(one.path, before)})


def stage_all(root: int, contents: Mapping[str, Content]) -> dict[str, str]:
    """Write and sync files under temporary names next to their places: path to that name.

    Several are synced side by side: a disk does that in the time of one.

    Raises:
        WriteFailedError: The disk refused; nothing is left of them.
    """
    staging = _Staging(root, contents)
    try:
        if len(contents) <= _FEW_FILES:
            for path in contents:
                staging.stage(path)
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(_SYNCED_AT_ONCE) as threads:
                pending = [threads.submit(staging.stage, path) for path in contents]
                try:
                    for one in pending:
                        one.result()
                except BaseException:
                    threads.shutdown(cancel_futures=True)
                    raise
    except BaseException:
        staging.take_back()
        raise
    return staging.staged


class _Staging:
    """Files that are being staged, perhaps by several threads.

    It counts them itself: an executor forgets a thread whose start was interrupted, which then
    goes on writing.
    """

    def __init__(self, root: int, contents: Mapping[str, Content]) -> None:
        self._root = root
        self._contents = contents
        self._changed = threading.Condition()
        self._under_way = 0
        self._is_over = False
        self.staged: dict[str, str] = {}
        """A path to the temporary name next to it."""

    def stage(self, path: str) -> None:
        """Stage one file, unless what is staged is being taken back."""
        with self._changed:
            if self._is_over:
                return
            self._under_way += 1
        try:
            wanted = self._contents[path]
            data = wanted.read()
            with naming_file(path), _parent(self._root, path) as (handle, _):
                self.staged[path] = disk.stage(handle, data, wanted.mode, wanted.mtime_ns)
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def take_back(self) -> None:
        """Remove what is staged, once nothing is being staged any more."""
        with self._changed:
            self._is_over = True
            self._changed.wait_for(lambda: not self._under_way)
        for path, temporary in self.staged.items():
            _remove_quietly(self._root, _sibling(path, temporary))


def write_all(root: int, contents: Mapping[str, Content]) -> None:
    """Write files that no other process writes, each atomically; folders are not synced.

    Raises:
        WriteFailedError: The disk refused.
    """
    staged = stage_all(root, contents)
    for path, temporary in staged.items():
        with naming_file(path), _parent(root, path) as (handle, name):
            os.rename(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)


def _is_as_seen(root: int, path: str, seen: Seen | None) -> bool:
    """Whether a file is as it was when it was read, by its stat where that can be relied on."""
    try:
        with _parent(root, path) as (handle, name):
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return seen is None
    except OSError:
        return False
    if seen is None or disk.stat_values(status) != disk.stat_values(seen.status):
        return False
    if seen.read_ns - max(status.st_mtime_ns, status.st_ctime_ns) > _COARSEST_TICK_NS:
        return True
    # A stamp as fresh as this would be the same if the file were written once more.
    again = look(root, path)
    return again is not None and again.digest == seen.digest


def _refuse(wrong: Mapping[str, str]) -> None:
    if not wrong:
        return
    first = next(iter(wrong.values()))
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    raise ChangedMeanwhile(f"{first}{more}", paths=list(wrong), detail="; ".join(wrong.values()))


@contextlib.contextmanager
def naming_file(path: str) -> Iterator[None]:
    """An error of the disk names the file."""
    try:
        yield
    except disk.WriteFailedError:
        raise
    except OSError as error:
        raise disk.write_failed(path, error) from error


@contextlib.contextmanager
def _parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The folder of a path, open, and the name in it."""
    folder, _, name = path.rpartition("/")
    with disk.folder(root, folder) as handle:
        yield handle, name


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _sibling(path: str, name: str) -> str:
    folder = _folder_of(path)
    return f"{folder}/{name}" if folder else name


def collect_staged(root: int, folder: str) -> None:
    """Remove what a dead writer staged in a folder: the caller is the only writer."""
    with contextlib.suppress(OSError), disk.folder(root, folder) as handle:
        disk.remove_staged(handle)


def collect_begun(root: int, paths: Iterable[str], made: Iterable[str] = ()) -> None:
    """Remove what a dead writer staged for some files, and the folders that it made, if empty."""
    for folder in {_folder_of(path) for path in paths}:
        collect_staged(root, folder)
    for folder in sorted(made, reverse=True):
        with contextlib.suppress(OSError), _parent(root, folder) as (handle, name):
            os.rmdir(name, dir_fd=handle)


def _remove_quietly(root: int, path: str) -> None:
    with contextlib.suppress(OSError), _parent(root, path) as (handle, name):
        os.unlink(name, dir_fd=handle)

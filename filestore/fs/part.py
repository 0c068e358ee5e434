"""A part of a sidecar: judged before it is used, reached without links; and why a disk refuses it.

A store may come from a stranger, in a clone or an archive. One rule: what is not the user's own, of
its kind and in its folder is neither followed nor written; nothing is made or removed through it.
SQLite has one sentence for many causes of a refusal: a cause is named where a look, or a try with a
file of our own, shows it; where nothing does, the message is passed on.
"""

import contextlib
import errno
import fcntl
import itertools
import mmap
import os
import pwd
import re
import resource
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from typing import IO, Final, Literal

from filestore.core.errors import FilestoreError, RefusedError, on_error

Kind = Literal["file", "shared", "folder", "socket"]
"""A `shared` file may have a second name: it is never written again."""
KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFREG: "a file",
}
"""What was found where something else was expected, in words."""
DATABASE_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
"""A database and what SQLite opens with it, by the end of its name."""
_FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
FOLDER_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY
_DEEPEST: Final = 64
_HANDLES: Final = "/proc/self/fd/"


class NotAFileError(FilestoreError, OSError):
    """Something was found that is not a regular file of the user."""


class UnsafePartError(RefusedError, PermissionError):
    """A part of a sidecar is another user's folder, or a mount."""


def judge(path: str, seen: os.stat_result, kind: Kind, *, folder: int | None = None) -> None:
    """Refuse what may not be used as a part: the one rule for all of them.

    Args:
        path: Of the part.
        seen: What was found.
        kind: What is expected.
        folder: A directory handle that the path is relative to; None for an ordinary path.

    Raises:
        NotAFileError: It is of another kind, another user's file, or has a second name.
        UnsafePartError: It is another user's folder.
    """
    is_folder, shown = kind == "folder", path
    place = path if folder is None else os.path.join(f"{_HANDLES}{folder}", path)
    if place.startswith(_HANDLES):
        # As a person knows it.
        shown = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(path))
    if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(seen.st_mode):
        found = KINDS.get(stat.S_IFMT(seen.st_mode), "something unknown")
        raise not_a_file(shown, f"is {found}, not a {'folder' if is_folder else 'regular file'}")
    if seen.st_uid not in (os.geteuid(), 0):
        if is_folder:
            raise UnsafePartError(
                f"{shown} is not safe to open: it belongs to user {seen.st_uid}",
                remedy=f"'rm -r {shown} && filestore sync' rebuilds it; or fix its owner",
            )
        raise not_a_file(shown, f"belongs to user {seen.st_uid}, expected your own file")
    if kind == "file" and seen.st_nlink > 1:
        raise not_a_file(shown, "has a second name (a hard link), which a write would change too")


def not_a_file(path: str, found: str) -> NotAFileError:
    """The error that says what was found in the place of a file, or of a folder."""
    return NotAFileError(f"{path} {found}", remedy=f"remove {path}")


def check(path: str, kind: Kind = "file", *, folder: int | None = None) -> None:
    """Judge a part for a library that opens it by its path; nothing there is fine.

    Args:
        path: Where it is expected.
        kind: What is expected.
        folder: A directory handle that the path is relative to; None for an ordinary path.

    Raises:
        NotAFileError, UnsafePartError: See `judge`.
        OSError: It cannot be looked at.
    """
    with contextlib.suppress(FileNotFoundError):
        seen = os.stat(path, dir_fd=folder, follow_symlinks=False)
        judge(path, seen, kind, folder=folder)


def check_mounts(folder: str) -> None:
    """Refuse mounts below a folder; it may be one itself.

    The system is asked for its mounts: with layered file systems a file may seem to lie on another
    device than its folder, and a folder mounted elsewhere lies on the same one.

    Raises:
        UnsafePartError: There is one.
    """
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            paths = [line.split(b" ")[4] for line in file]
        found = [
            os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), path))
            for path in paths
        ]
    except OSError:
        with os.scandir(folder) as entries:
            found = [os.path.realpath(one.path) for one in entries if os.path.ismount(one.path)]
    top = os.path.join(os.path.realpath(folder), "")
    for path in found:
        if path.startswith(top):
            raise UnsafePartError(
                f"{path} is a mount point in {folder}, expected its own files",
                remedy=f"'umount {path}', then run the command again",
            )


def check_tree(path: str) -> None:
    """`check` for all that lies below a folder."""
    for around, folders, files in os.walk(path):
        for name in folders:
            check(os.path.join(around, name), "folder")
        for name in files:
            check(os.path.join(around, name))


def open_file(
    path: str,
    flags: int,
    *,
    kind: Kind = "file",
    folder: int | None = None,
    mode: int = 0o600,
) -> int:
    """Open a part that is a file; no link is followed.

    Args:
        path: Where it is expected.
        flags: How to open it, such as ``os.O_RDWR | os.O_CREAT``.
        kind: ``shared`` where it is only read.
        folder: A directory handle that the path is relative to; None for an ordinary path.
        mode: Of a file that is made.

    Returns:
        A descriptor, to be closed by the caller.

    Raises:
        NotAFileError, UnsafePartError: See `judge`.
        OSError: It can neither be opened nor made.
    """
    # Looked at before: some devices act as soon as they are opened.
    check(path, kind, folder=folder)
    descriptor = os.open(path, flags | _FILE_FLAGS, mode, dir_fd=folder)
    with on_error(os.close, descriptor):
        judge(path, os.fstat(descriptor), kind, folder=folder)
    return descriptor


@contextlib.contextmanager
def folder_of(path: str) -> Iterator[int]:
    """A handle of a folder that parts lie in, which may be a mount point; no link is followed."""
    handle = os.open(path, FOLDER_FLAGS)
    try:
        yield handle
    finally:
        os.close(handle)


def unnamed_file(folder: str) -> IO[bytes]:
    """A file without a name in a folder that parts lie in; no link is followed.

    Raises:
        OSError: None can be made; `NotADirectoryError` where the folder is a link.
    """
    import tempfile

    with folder_of(folder) as handle:
        # It is made and loses its name in one folder, whatever has the folder's name by then.
        return tempfile.TemporaryFile(dir=path_of(handle, folder))


@contextlib.contextmanager
def own_folder(
    path: str, *, folder: int | None = None, make: bool = False, replace: bool = False
) -> Iterator[int]:
    """A handle of a part that is a folder.

    Args:
        path: Where it is expected.
        folder: A directory handle that the path is relative to; None for an ordinary path.
        make: Make it where it is missing.
        replace: Remove what is there and is no folder: the name alone goes.

    Raises:
        NotAFileError, UnsafePartError: See `judge`.
        OSError: It can neither be opened nor made.
    """
    try:
        check(path, "folder", folder=folder)
    except NotAFileError:
        if not replace:
            raise
        os.unlink(path, dir_fd=folder)
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700, dir_fd=folder)
    handle = os.open(path, FOLDER_FLAGS, dir_fd=folder)
    try:
        judge(path, os.fstat(handle), "folder", folder=folder)
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def made_below(folder: int, path: str) -> Iterator[int]:
    """A handle of a folder below an open one; it and those around it are made where missing.

    Raises:
        OSError: One of them can neither be opened nor made, or is a link.
    """
    with contextlib.ExitStack() as stack:
        handle = folder
        for name in path.split("/"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=handle)
            handle = os.open(name, FOLDER_FLAGS, dir_fd=handle)
            stack.callback(os.close, handle)
        yield handle


def path_of(handle: int, path: str) -> str:
    """A path of an open folder that leads to it whatever becomes of its name, where there is one.

    Args:
        handle: The folder.
        path: Its usual path, for systems without ``/proc``.
    """
    # With a dot, for the last step of a path is not followed.
    place = f"{_HANDLES}{handle}/."
    return place if os.path.isdir(place) else path


def remove(folder: int, name: str, depth: int = 0) -> None:
    """Remove what has a name in an open folder, and all below it, as far as there is anything.

    No link is followed, and no other user's folder is entered.

    Raises:
        UnsafePartError: It is, or holds, one of these, or is very deep.
        OSError: It stays.
    """
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise
        if depth > _DEEPEST:
            raise UnsafePartError(
                f"{name} is nested {depth} folders deep, which filestore never makes",
                remedy="remove what is there, then run the command again",
            ) from None
        with own_folder(name, folder=folder) as handle:
            for inner in os.listdir(handle):
                remove(handle, inner, depth + 1)
        os.rmdir(name, dir_fd=folder)


NAME_SIDECAR: Final = (
    "name a sidecar under [sidecar] in filestore/settings.toml of your configuration folder"
)
LOCAL_SIDECAR: Final = (
    "name a sidecar on a local disk under [sidecar] in filestore/settings.toml of your config"
    " folder"
)
_WRITABLE: Final = "make the folder writable, or work on a copy of the store"
REMEDIES: Final = {
    errno.ENOSPC: "free some space, then run the command again",
    errno.EDQUOT: "free some space in your disk quota, then run the command again",
    errno.EFBIG: "raise the limit that 'ulimit -f' shows, then run the command again",
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EROFS: _WRITABLE,
    errno.ENOENT: "name a folder that can hold new files, then run the command again",
    errno.EAGAIN: "close other programs, then run the command again",
    errno.EBUSY: "wait for the program that uses it, then run the command again",
    errno.ENODEV: LOCAL_SIDECAR,
    errno.ENOLCK: LOCAL_SIDECAR,
    errno.ENOSYS: LOCAL_SIDECAR,
    errno.EOPNOTSUPP: LOCAL_SIDECAR,
}
"""Number of an error to what to do. The last ones are of file systems that do not lock files, or
map none that are shared."""
_CHECK: Final = "check the disk, then run the command again"
_WORDS: Final = {
    errno.ENODEV: "its file system does not support shared memory",
    errno.ENOLCK: "its file system does not lock files",
}
"""What the system says in words that tell nothing."""
_TOO_LARGE: Final = ("SQLITE_IOERR_WRITE", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_SHMSIZE")
"""How SQLite tells of a file that this process may not make so large; it is rolled back already."""
_TRIED_BYTES: Final = 64 * 1024


def explained(path: str, error: OSError) -> tuple[str, str, str]:
    """What is refused, the reason, and what to do.

    Args:
        path: Of what was to be read or written.
        error: As it was raised; where a right is missing, it may name the place.
    """
    reason = error.strerror or str(error)
    if error.errno in _WORDS:
        reason = f"{_WORDS[error.errno]} ({reason})"
    if error.errno in (errno.EACCES, errno.EPERM):
        named = error.filename if isinstance(error.filename, str) else ""
        # A name may be one of an open folder.
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        named = os.path.join(folder, named) if named else path
        if place := _denied(named) if os.path.isabs(named) else "":
            seen = os.lstat(place)
            whose = f"it belongs to {_name(seen.st_uid)}, mode {stat.S_IMODE(seen.st_mode):03o}"
            is_folder = stat.S_ISDIR(seen.st_mode)
            me, quoted = os.geteuid(), shlex.quote(place)
            remedy = f"make {place} readable and writable for {_name(me)}, or work on a copy of"
            remedy += " the store"
            if seen.st_uid == me:
                remedy = f"chmod u+{'rwx' if is_folder else 'rw'} {quoted}"
            elif os.stat(os.path.dirname(place)).st_uid == me:
                # As a command run by `sudo` leaves it.
                remedy = f"sudo chown {'-R ' * is_folder}{_name(me)} {quoted}"
            return place, f"{reason} ({whose})", remedy
    return path, reason, REMEDIES.get(error.errno or 0, _CHECK)


def unwritable(folder: str) -> OSError | None:
    """Why nothing can be made in a folder, by its mode and its mount; None where it can be."""
    if os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        return None
    is_mounted_so = os.statvfs(folder).f_flag & os.ST_RDONLY
    return _error(errno.EROFS if is_mounted_so else errno.EACCES, folder)


def _denied(path: str) -> str:
    """The file or folder, or that around it, where this user lacks a right; "" for none."""
    around = os.path.dirname(path)
    while not os.path.lexists(around):
        around = os.path.dirname(around)
    # What can be read and not written is named only where all can be read.
    for right, place in itertools.product((os.R_OK, os.W_OK), (around, path)):
        needed = right | (os.X_OK if os.path.isdir(place) else 0)
        if os.path.lexists(place) and not os.access(place, needed, effective_ids=True):
            return place
    return ""


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def of_sqlite(path: str, error: sqlite3.Error) -> OSError:
    """What kept SQLite from a database: the error of the system, as far as it can be found out.

    Args:
        path: Of the database, or of the folder that it lies in.
        error: As SQLite raised it.
    """
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    name = getattr(error, "sqlite_errorname", None) or ""
    if name == "SQLITE_FULL":
        return _error(errno.ENOSPC, path)
    places = [f"{path}{suffix}" for suffix in DATABASE_SUFFIXES]
    if os.path.isdir(path):
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            places = sorted(one.path for one in entries if ".sqlite" in one.name)
    for place in places:
        if denied := _denied(place):
            is_fixed = os.statvfs(denied).f_flag & os.ST_RDONLY
            return _error(errno.EROFS if is_fixed else errno.EACCES, denied)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        # Where nothing can be locked, SQLite believes that somebody else has it locked.
        return no_locks(folder) or OSError(errno.EBUSY, str(error))
    found = no_locks(folder) or tried(folder)
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if found is None and name in _TOO_LARGE and limit != resource.RLIM_INFINITY:
        found = _error(errno.EFBIG, path)
    return found or OSError(errno.EIO, str(error))


def _error(number: int, path: str, words: str | None = None) -> OSError:
    return OSError(number, words or os.strerror(number), path)


def no_locks(folder: str) -> OSError | None:
    """How a file in a folder cannot be locked as SQLite does it; None where it can be."""
    with contextlib.suppress(OSError), unnamed_file(folder) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return _error(errno.ENOLCK, folder, error.strerror)
    return None


def tried(folder: str) -> OSError | None:
    """How a file in a folder cannot be written or mapped; None where it can be, and for a link."""
    try:
        with unnamed_file(folder) as file:
            file.write(bytes(_TRIED_BYTES))
            file.flush()
            os.fsync(file.fileno())
            try:
                mmap.mmap(file.fileno(), _TRIED_BYTES).close()
            except OSError as error:
                if error.errno == errno.ENOMEM:
                    return error
                return _error(errno.ENODEV, folder, error.strerror)
    except NotADirectoryError:
        return None
    except OSError as error:
        return error
    return None


# Folders opened by handle, one name at a time, so that no link in their path is followed

DEEPEST: Final = 64
"""How many folders around another one can be named as `..`."""


class Climbing(int):
    """A directory handle from which paths may begin with some `..`."""

    above: int = 0
    """How many."""


def open_folder(root: int, path: str) -> int:
    """Open a folder below a directory handle, one component at a time.

    Args:
        root: A directory handle.
        path: Forward-slash path relative to it; empty for the root itself. It may begin with as
            many `..` as the handle climbs.

    Returns:
        A new directory handle, to be closed by the caller.

    Raises:
        OSError: A component is missing, unreadable, or a symbolic link.
    """
    handle = os.open(".", FOLDER_FLAGS, dir_fd=root)
    climbs = root.above if isinstance(root, Climbing) else 0
    for component in filter(None, path.split("/")):
        climbs = climbs - 1 if component == ".." else min(climbs, 0)
        if component == "." or (component == ".." and climbs < 0):
            os.close(handle)
            raise PermissionError(errno.EACCES, "the path leaves its folder", path)
        try:
            following = os.open(component, FOLDER_FLAGS, dir_fd=handle)
        except BaseException:
            os.close(handle)
            raise
        # Outside the block: a close that is interrupted must not be repeated.
        os.close(handle)
        handle = following
    return handle


@contextlib.contextmanager
def folder_at(path: str, *, above: int = 0) -> Iterator[int]:
    """A directory handle of a folder, as a context; a symbolic link is followed.

    Args:
        path: Of the folder.
        above: How many folders around it may be named as well, as `..`.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    climbing = Climbing(handle)
    climbing.above = above
    try:
        yield climbing
    finally:
        os.close(handle)


@contextlib.contextmanager
def folder(root: int, path: str) -> Iterator[int]:
    """`open_folder` as a context."""
    handle = open_folder(root, path)
    try:
        yield handle
    finally:
        os.close(handle)

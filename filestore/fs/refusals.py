"""Why a disk refuses, and what to do: one table, whether the system, SQLite or a library tells.

SQLite has one sentence for many causes. One rule: a cause is named where a look, or a try with a
file of our own, shows it; where nothing does, the message is passed on.
"""

import errno
import fcntl
import itertools
import mmap
import os
import pwd
import resource
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from filestore.fs.part import DATABASE_SUFFIXES, unnamed_file

NAME_SIDECAR: Final = (
    "name a sidecar of your own for this store under [sidecar] in filestore/settings.toml of your"
    " configuration folder"
)
LOCAL_SIDECAR: Final = f"put the sidecar on a local disk: {NAME_SIDECAR}"
_WRITABLE: Final = "make the folder writable, or work on a copy of the store"
REMEDIES: Final = {
    errno.ENOSPC: "free some space, then run the command again",
    errno.EDQUOT: "free some space of your quota, then run the command again",
    errno.EFBIG: "raise the limit that 'ulimit -f' shows, then run the command again",
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EROFS: _WRITABLE,
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
    errno.ENODEV: "its file system maps no shared memory",
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
            return place, f"{reason} ({whose})", _permission(place, seen)
    return path, reason, REMEDIES.get(error.errno or 0, _CHECK)


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


def _permission(path: str, seen: os.stat_result) -> str:
    me, is_folder = os.geteuid(), stat.S_ISDIR(seen.st_mode)
    if seen.st_uid == me:
        return f"chmod u+{'rwx' if is_folder else 'rw'} {shlex.quote(path)}"
    if os.stat(os.path.dirname(path)).st_uid == me:
        # As a command run by `sudo` leaves it.
        return f"sudo chown {'-R ' * is_folder}{_name(me)} {shlex.quote(path)}"
    return f"make {path} readable and writable for {_name(me)}, or work on a copy of the store"


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
    for place in _places(path):
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


def _places(path: str) -> Iterator[str]:
    """What SQLite opens: databases with what belongs to them."""
    if not os.path.isdir(path):
        yield from (f"{path}{suffix}" for suffix in DATABASE_SUFFIXES)
        return
    with suppress(OSError), os.scandir(path) as entries:
        yield from sorted(one.path for one in entries if ".sqlite" in one.name)


def no_locks(folder: str) -> OSError | None:
    """How a file in a folder cannot be locked as SQLite does it; None where it can be."""
    with suppress(OSError), unnamed_file(folder) as file:
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

"""A large file that takes its name once it is whole: written beside it, synced, renamed.

For what is written piece by piece; `disk.write_path` is for what is in memory. Two rules: a name
has one temporary file, held by a lock while it is written, so what a killed writer left is used
again; and where a person names the place (`check_target`), what this program did not write is not
replaced, nor a link followed.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from typing import Final

from filestore.core.caller import absolute
from filestore.core.errors import RefusedError, on_error
from filestore.core.hashing import content_hash
from filestore.core.safe_text import shown_path
from filestore.fs import disk

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_BUSY: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES})


class AlreadyWrittenError(RefusedError):
    """Another process is writing the same file."""


@contextlib.contextmanager
def staged(path: str) -> Iterator[int]:
    """A descriptor, to be read and written, of a file that replaces `path` when the block ends.

    A block that raises leaves what was there. An existing file keeps its mode.

    Raises:
        AlreadyWrittenError: Another process is at it.
        WriteFailedError: The disk refused; the old file is untouched.
    """
    parent, name = os.path.split(absolute(path))
    temporary = f"{disk.TEMPORARY_PREFIX}{content_hash(os.fsencode(name)).hex()}"
    with disk.disk_errors(path), disk.folder_at(parent) as folder:
        mode = None
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        descriptor = _locked(folder, temporary, path)
        try:
            os.ftruncate(descriptor, 0)
            yield descriptor
            os.fsync(descriptor)
            if mode is not None:
                # Last: what a killed writer left must stay writable.
                os.fchmod(descriptor, mode)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(descriptor)
        os.fsync(folder)


def _locked(folder: int, temporary: str, path: str) -> int:
    """Open the temporary file, and hold it."""
    while True:
        disk.check_regular(temporary, folder=folder)
        descriptor = os.open(temporary, _FLAGS, 0o666, dir_fd=folder)
        with on_error(os.close, descriptor):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                # Where nothing can be locked, the one who renames last wins, with a whole file.
                if error.errno in _BUSY:
                    raise AlreadyWrittenError(
                        f"another process is writing {path}", remedy="wait until it has ended"
                    ) from error
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(temporary, dir_fd=folder, follow_symlinks=False)
                if os.path.samestat(there, os.fstat(descriptor)):
                    return descriptor
        # Its writer gave it its name just now.
        os.close(descriptor)


HEAD_BYTES: Final = 65 * 1024
"""Of what is there; no form needs more to be told."""
ANOTHER: Final = "name another file, or remove that one"


class TargetRefused(RefusedError):
    """Something would be written where other things have their place."""


def check_target(
    path: str, is_own: Callable[[bytes], bool], *, found: str, remedy: str = ANOTHER
) -> None:
    """Let no file be replaced that a person may want to keep; nothing there is fine.

    Args:
        path: As it was named.
        is_own: Whether a file that begins so may be replaced.
        found: What any other file is, as "it is no pack".
        remedy: What to do then.

    Raises:
        TargetRefused: It may not, or is no regular file.
    """
    try:
        descriptor = disk.open_regular(path)
        with open(descriptor, "rb", buffering=0) as file:
            if is_own(file.read(HEAD_BYTES)):
                return
    except FileNotFoundError:
        return
    except disk.NotAFileError as error:
        found = error.message.removeprefix(f"{path} ")
    except OSError as error:
        disk.pass_limits(error)
        is_link = error.errno == errno.ELOOP and os.path.islink(path)
        found = "it is a symbolic link" if is_link else error.strerror or str(error)
    raise TargetRefused(f"{shown_path(path)} is not overwritten: {found}", remedy=remedy)

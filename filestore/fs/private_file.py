"""A small file that its user alone reads: made once, believed only where nobody else made it."""

import contextlib
import os
from collections.abc import Callable
from typing import Final

from filestore.fs import disk

Usable = Callable[[bytes], bool]
_MOST_BYTES: Final = 4096


def read(path: str, usable: Usable) -> bytes | None:
    """What it holds; None where there is none, or none that others could not have put there.

    Args:
        path: Of the file.
        usable: Whether what it holds is what it should be.
    """
    try:
        descriptor = disk.open_regular(path)
    except OSError as error:
        disk.pass_limits(error)
        return None
    with open(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        is_private = seen.st_uid == os.geteuid() and not seen.st_mode & 0o077
        data = file.read(_MOST_BYTES) if is_private else b""
    return data if usable(data) else None


def make(path: str, data: bytes, usable: Usable) -> bytes | None:
    """Have it; of two processes that make it one is kept.

    Returns:
        What it holds then; None where nothing can be written.
    """
    name = f"{disk.TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    temporary = os.path.join(os.path.dirname(path), name)
    try:
        disk.make_folders(os.path.dirname(path), 0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            if read(path, usable) is None:
                os.replace(temporary, path)
        except OSError:
            # Some file systems have no hard links: of two processes that make it the last one wins.
            os.replace(temporary, path)
        disk.sync_path(os.path.dirname(path))
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    return read(path, usable)

"""The socket in a sidecar: at most one server has it, and it is nobody's but this user's.

One rule: what lies in a folder that others can write to is believed only after its owner was asked
for; the system says who is at the other end.
"""

import contextlib
import fcntl
import os
import socket
import stat
import struct
import sys
from typing import Final

from msgspec import Struct

from filestore.server.socket import wire

_BACKLOG: Final = 64
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group of a peer."""


class Place(Struct, frozen=True, kw_only=True):
    """Where one store's commands ask."""

    listener: socket.socket
    folder: int
    """The sidecar, open and locked for as long as this server has the socket."""
    path: str
    identity: tuple[int, int]
    """Of the socket file."""

    @property
    def is_there(self) -> bool:
        """Whether commands still find it."""
        try:
            seen = os.lstat(self.path)
        except OSError:
            return False
        return (seen.st_dev, seen.st_ino) == self.identity

    def close(self) -> None:
        """Leave it to the next server."""
        self.listener.close()
        with contextlib.suppress(OSError):
            seen = os.stat(wire.NAME, dir_fd=self.folder, follow_symlinks=False)
            if (seen.st_dev, seen.st_ino) == self.identity:
                os.unlink(wire.NAME, dir_fd=self.folder)
        os.close(self.folder)


def taken(sidecar: str) -> Place | None:
    """Listen in a sidecar; None where another server does, or where no socket can be."""
    if not sys.platform.startswith("linux"):
        # No way is known there to bind below an open folder, which long paths need.
        return None
    try:
        folder = os.open(sidecar, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        seen = os.fstat(folder)
        if seen.st_uid != os.geteuid() or seen.st_mode & stat.S_IWOTH:
            raise PermissionError(f"{sidecar} is not this user's alone")
        # Held by the process: a server that dies leaves the socket to the next one.
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _bound(folder, os.path.join(sidecar, wire.NAME))
    except OSError:
        os.close(folder)
        return None


def _bound(folder: int, path: str) -> Place:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(wire.NAME, dir_fd=folder)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux makes the file with the mode of the socket: there is no moment with another one.
        os.fchmod(listener.fileno(), 0o600)
        # A path of any length: the system takes 107 bytes.
        listener.bind(f"/proc/self/fd/{folder}/{wire.NAME}")
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        seen = os.stat(wire.NAME, dir_fd=folder, follow_symlinks=False)
    except OSError:
        listener.close()
        raise
    identity = seen.st_dev, seen.st_ino
    return Place(listener=listener, folder=folder, path=path, identity=identity)


def is_own_user(connection: socket.socket) -> bool:
    """Whether a process of this user is at the other end."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(data)[1] == os.geteuid())

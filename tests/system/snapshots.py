"""What a file system shows of a folder, to prove that something changed nothing in it."""

import os
import stat
from pathlib import Path

Seen = dict[str, tuple[int, int, int, int, int, bytes]]


def snapshot(folder: Path) -> Seen:
    """Size, modification and change time, inode, mode and bytes of everything below a folder.

    Left out is what SQLite keeps beside a database while it is open, `-wal` and `-shm`, and with
    them the times of the folder they come and go in. A folder's size is left out, too: some file
    systems count its entries in it.
    """
    found: Seen = {}
    for parent, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = os.path.join(parent, name)
            if not name.endswith(("-wal", "-shm")):
                found[os.path.relpath(path, folder)] = _seen(path)
    return found


def _seen(path: str) -> tuple[int, int, int, int, int, bytes]:
    status = os.lstat(path)
    data = b""
    if os.path.isfile(path) and not os.path.islink(path):
        data = Path(path).read_bytes()
    times = (status.st_mtime_ns, status.st_ctime_ns)
    if os.path.basename(path) in (".sidecar", ".filestore"):
        times = (0, 0)
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return (size, *times, status.st_ino, status.st_mode, data)

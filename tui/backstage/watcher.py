"""The watching process: ``python -m tui.backstage.watcher``, told of files by the system.

A process of its own, because setting up the watch of a large tree holds the interpreter for
seconds. One rule: what it cannot tell for certain it tells as "everything".
"""

import contextlib
import fcntl
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tui.backstage.crossing import pack, unpack
from tui.backstage.notices import Blind, FilesChanged, Notice, Ready, StoreChanged, Watched
from tui.backstage.process import own_line

MOST_PATHS: Final = 5_000
QUIET_MS: Final = 100
"""So long nothing may happen before what happened is told."""
LONGEST_MS: Final = 1_000
"""Under steady events it is told this often."""
BLIND_S: Final = 5.0
"""Where the system tells nothing, it is looked this often."""
_TICK_MS: Final = 500
_NICENESS: Final = 10
_TEMPORARY: Final = ".filestore-tmp-"
_SETTINGS: Final = "filestore.toml"


class Concern:
    """What of all events is about the store."""

    def __init__(self, watched: Watched) -> None:
        root = watched.root.rstrip(os.sep) + os.sep
        self._root = root
        self._catalog = frozenset({watched.catalog, f"{watched.catalog}-wal"})
        self._exact = frozenset({root + name for name in ("chunked", "source", _SETTINGS)})
        self._below = (f"{root}chunked{os.sep}", f"{root}source{os.sep}")

    def __call__(self, _: object, path: str) -> bool:
        """Whether an event is to be heard of at all."""
        if path in self._catalog or path in self._exact:
            return True
        return path.startswith(self._below) and not os.path.basename(path).startswith(_TEMPORARY)

    def relative(self, paths: Sequence[str]) -> frozenset[str] | None:
        """The files among some paths, as the store names them; None where they are too many."""
        found = {path.removeprefix(self._root) for path in paths if path not in self._catalog}
        if len(found) > MOST_PATHS:
            return None
        return frozenset(path.replace(os.sep, "/") for path in found)


def notices(watched: Watched) -> Iterator[Notice]:
    """What happens, for ever."""
    polls = again = False
    while True:
        try:
            for notice in _notices_until_replaced(watched, polls=polls):
                yield notice
                if again and isinstance(notice, Ready):
                    yield FilesChanged(paths=None)
            again = True
        except ValueError:
            again = True  # a name that the watch cannot tell, but it did change
        except (OSError, RuntimeError) as error:
            yield Blind(reason=str(error))
            again = polls = True
            time.sleep(BLIND_S)


def _notices_until_replaced(watched: Watched, *, polls: bool) -> Iterator[Notice]:
    """What happens until the root is another folder."""
    concern = Concern(watched)
    identity, content = _identity(watched.root), _content(watched.catalog)
    is_ready = False
    for paths in _batches(watched, concern, polls=polls):
        if not is_ready:
            is_ready = True
            yield Ready()
        changed = concern.relative(paths)
        if changed is None or changed:
            yield FilesChanged(paths=changed)
        if (now := _content(watched.catalog)) != content:
            content = now
            yield StoreChanged()
        if _identity(watched.root) != identity:
            return


def _batches(watched: Watched, concern: Concern, *, polls: bool) -> Iterator[list[str]]:
    """The paths of every batch of events; none where nothing happened for a while."""
    from watchfiles import watch

    sidecar = os.path.dirname(watched.catalog)
    is_inside = sidecar.startswith(watched.root.rstrip(os.sep) + os.sep)
    folders = [watched.root] if is_inside else [watched.root, sidecar]
    for changes in watch(
        *folders,
        watch_filter=concern,
        debounce=LONGEST_MS,
        step=QUIET_MS,
        rust_timeout=_TICK_MS,
        yield_on_timeout=True,
        force_polling=polls or None,
        poll_delay_ms=round(BLIND_S * 1000),
        ignore_permission_denied=True,
    ):
        yield [path for _, path in changes]


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _content(catalog: str) -> tuple[tuple[int, ...], ...]:
    """What tells whether a catalog was written; readers leave it, and an empty log, as it is."""
    found = []
    for path in (catalog, f"{catalog}-wal"):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            if status.st_size:
                found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _end_with(handle: int) -> None:
    """Have the system end this process as soon as its line is closed, whatever it is doing."""
    fcntl.fcntl(handle, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(handle, fcntl.F_GETFL)
    # The signal that is sent then ends a process that does not handle it.
    fcntl.fcntl(handle, fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([handle], [], [], 0)[0]:
        sys.exit(0)


def main(arguments: Sequence[str]) -> None:
    """Watch what the line tells first, and say what happens."""
    line = own_line(arguments)
    watched: Any = unpack(line.recv_bytes())
    _end_with(line.fileno())
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        for notice in notices(watched):
            line.send_bytes(pack(notice))


if __name__ == "__main__":
    main(sys.argv[1:])

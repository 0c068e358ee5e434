"""The file watcher of the inspector: `store.watch.changes`, reported on the screen's thread.

It runs in a process of its own, ``python -m tui.workers.file_watcher``, because setting up the
watch of a large tree holds the interpreter for seconds.
"""

import contextlib
import fcntl
import os
import select
import sys
import threading
from collections.abc import Callable
from typing import Final

from filestore import FilestoreError
from filestore.browse import CHUNKS, Tree
from filestore.fs.programs import Child, parent_line
from filestore.store.watch import CatalogChanged, Changed, Notice, Ready, Unavailable, changes
from tui.workers.faults import UnexpectedError, died, report_uncaught
from tui.workers.tasks import as_error, pack, unpack

__all__ = ["CatalogChanged", "Changed", "FileWatcher", "Notice", "Ready", "Unavailable"]

MODULE: Final = "tui.workers.file_watcher"
QUIET_S: Final = 0.1
LONGEST_S: Final = 1.0
_DEAD_WITHIN_S: Final = 5.0
"""How long a process whose line is closed may take to end."""
_NICENESS: Final = 10


class FileWatcher:
    """A process that watches, and the thread that receives from it, until `end`."""

    def __init__(
        self,
        root: str,
        *,
        catalog: str,
        tree: Tree = CHUNKS,
        post: Callable[[Callable[[], None]], None],
        notify: Callable[[Notice | FilestoreError], None],
    ) -> None:
        """Begin to watch.

        Args:
            root: The store's.
            catalog: Its path.
            tree: Where its files lie.
            post: Calls a function on the screen's thread; does not block.
            notify: Receives each notice on that thread, and the error that ended the watch.
        """
        self._watched = (os.path.abspath(root), os.path.abspath(catalog), tree)
        self._post = post
        self._notify = notify
        self._lock = threading.Lock()
        self._ended = False
        self._child: Child | None = None
        self._thread = threading.Thread(target=self._listen, name="watching", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop watching; returns when neither the process nor the thread is left."""
        with self._lock:
            self._ended = True
            if self._child is not None:
                self._child.terminate()
        self._thread.join()

    def _listen(self) -> None:
        try:
            with self._lock:
                if self._ended:
                    return
                self._child = Child(MODULE, own_session=True)
            self._child.send(pack(self._watched))
            while True:
                self._report(unpack(self._child.receive()))
        except OSError as error:
            self._report(Unavailable(reason=str(error)))
            if self._child is not None and not self._ended:
                self._child.wait(_DEAD_WITHIN_S)
                output = self._child.last_output()
                crash = died(self._child.kill(), output)
                if isinstance(crash, UnexpectedError):
                    self._report(crash)
        except Exception as error:  # the top of a thread: whatever it is, it is reported
            self._report(Unavailable(reason=type(error).__name__))
            self._report(as_error(error))
        finally:
            if self._child is not None:
                self._child.kill()

    def _report(self, notice: Notice | FilestoreError) -> None:
        """Notify on the screen's thread, unless the watch has ended before that."""
        self._post(lambda: None if self._ended else self._notify(notice))


def main() -> None:
    """Watch what the first message names, and send each notice."""
    report_uncaught()
    line = parent_line()
    root, catalog, tree = unpack(line.receive())
    # Have the system end this process as soon as its line is closed, whatever it is doing: the
    # signal that is sent then ends a process that does not handle it.
    fcntl.fcntl(line.fileno(), fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(line.fileno(), fcntl.F_GETFL)
    fcntl.fcntl(line.fileno(), fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([line], [], [], 0)[0]:
        sys.exit(0)
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        stop = threading.Event()
        for notice in changes(
            root, tree=tree, catalog=catalog, stop=stop, quiet_s=QUIET_S, longest_s=LONGEST_S
        ):
            if notice is not None:
                line.send(pack(notice))


if __name__ == "__main__":
    main()

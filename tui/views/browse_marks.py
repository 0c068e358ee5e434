"""The marked rows of Browse: which files they mean, to be copied or planned for together.

One rule: a marked resource means every file of it, read from the catalog and never on the screen's
thread.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from itertools import chain

from filestore import Finding, UsageError
from filestore.browse import InspectedStore
from tui.formatting.lines import Line, Span, count, span
from tui.views.context import ViewContext
from tui.widgets.rows import MOST_MARKED

PAGE = 500
"""Files that are asked for at once."""


def markable(key: Hashable) -> Collection[Hashable]:
    """What is marked with a row of the tree: nothing while its file is not known."""
    return () if isinstance(key, tuple) and key[0] == "p" else (key,)


def marked_line(number: int) -> Line:
    """Below a list: how many rows are marked, and what can be done with them."""
    keys = "y copies their paths, p plans their repair, esc clears"
    return (span(f"{number:,} marked  ", "mark"), Span(keys, "quiet"))


class MarkedFiles:
    """What is done with all marked rows of a list."""

    def __init__(self, host: ViewContext) -> None:
        self._host = host

    def read(self, marks: Collection[Hashable], then: Callable[[Sequence[str]], None]) -> None:
        """Have the paths of marked rows read, in reading order within each resource."""
        wanted = tuple(marks)
        self._host.task_manager.read(lambda store: _paths(store, wanted), then, group="marked")

    def plan(self, marks: Collection[Hashable]) -> None:
        """Plan a repair of all that is found of the marked files."""
        self.read(marks, partial(self._plan, len(marks)))

    def _plan(self, rows: int, paths: Sequence[str]) -> None:
        known = self._host.findings.of_row
        found: list[Finding] = list(chain.from_iterable(map(known, paths)))
        if found:
            self._host.plan(found)
        else:
            self._host.notify(
                f"nothing is found of {count(len(paths), 'file')} in {count(rows, 'marked row')}",
                severity="warning",
            )


def _paths(store: InspectedStore, keys: Sequence[Hashable]) -> Sequence[str]:
    """The paths of files that are named, numbered, or in a resource.

    Raises:
        UsageError: They are too many.
    """
    found: dict[str, None] = {}
    for key in keys:
        match key:
            case str(path):
                found[path] = None
            case ("r", str(name)):
                found |= dict.fromkeys(_of_ids(store, store.listing.chunk_ids(name)))
    found |= dict.fromkeys(_of_ids(store, [key for key in keys if isinstance(key, int)]))
    return tuple(found)


def _of_ids(store: InspectedStore, ids: Sequence[int]) -> Sequence[str]:
    if len(ids) > MOST_MARKED:
        raise UsageError(
            f"{count(len(ids), 'file')} are too many to take one by one",
            remedy="p in Repair plans a repair of everything; 'filestore ls' prints every path",
        )
    found: list[str] = []
    for first in range(0, len(ids), PAGE):
        some = ids[first : first + PAGE]
        rows = store.listing.chunks(some)
        found += [rows[one].path for one in some if one in rows]
    return found

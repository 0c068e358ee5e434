"""What is done from Browse: marked files are copied or planned for together, resources enriched.

One rule: a marked resource means every file of it, read from the catalog and never on the screen's
thread; and nothing is made before somebody saw what it costs and said yes.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from filestore import FilestoreError, Finding, UsageError
from filestore.browse import InspectedStore
from tui.formatting import reports as texts
from tui.formatting.lines import Line, Span, count, quoted, span
from tui.views.context import ViewContext
from tui.views.dialogs import ConfirmScreen
from tui.widgets.rows import MOST_MARKED
from tui.workers.tasks import Handlers, Job

if TYPE_CHECKING:
    from filestore.browse import EnrichPlan, EnrichReport

PAGE = 500
"""Files that are asked for at once."""


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
        known = self._host.findings.index.of_row
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
            case (*_, str(name)):
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
        found += store.listing.paths(ids[first : first + PAGE])
    return found


Show = Callable[[ConfirmScreen, Callable[[bool | None], None]], Any]
"""Lays a question over the page."""


class Enriching:
    """Makes questions and summaries of one resource, or of all."""

    def __init__(self, host: ViewContext, show: Show) -> None:
        self._host = host
        self._show = show

    def ask(self, resource: str, *, refresh: bool) -> None:
        """Find out what it would take, then ask.

        Args:
            resource: Its name; "" for all.
            refresh: Whether only what is out of date is made again.
        """
        arguments = {"resources": [resource] if resource else [], "refresh": refresh}
        what = f"{'refresh' if refresh else 'enrich'} {resource}".rstrip()

        def confirm(plan: "EnrichPlan") -> None:
            if not texts.has_work(plan):
                self._host.notify(texts.nothing_to_do(plan, refresh=refresh))
                return
            self._show(
                ConfirmScreen(f"{what}: {texts.scope(plan)}", texts.plan_lines(plan)),
                partial(self._begin, what, arguments, plan),
            )

        self._host.task_manager.ask(
            Job(name="plan_enrich", arguments=arguments),
            Handlers(then=confirm),
            group="plan enrich",
            title=f"what it takes to {what}",
        )

    def _begin(
        self, what: str, arguments: dict[str, Any], plan: "EnrichPlan", wanted: bool | None
    ) -> None:
        if not wanted:
            return
        names = "".join(f" {quoted(name)}" for name in arguments["resources"])
        options = " --refresh" if arguments["refresh"] else ""
        # Where it costs something the command asks, too, and here it was answered.
        options += "" if plan.is_free else " --yes"
        self._host.note(f"filestore {self._host.store_option}enrich{options}{names}")

        def failed(error: FilestoreError) -> None:
            self._host.fail(error)
            self._host.look_again()

        def stopped() -> None:
            self._host.notify("stopped: what was made is kept; the same key goes on")
            self._host.look_again()

        self._host.task_manager.work(
            Job(name="enrich", arguments=arguments),
            Handlers(then=self._done, failed=failed, stopped=stopped),
            title=what,
            writes=True,
        )

    def _done(self, report: "EnrichReport") -> None:
        self._host.notify(texts.summary(report))
        if report.problem is not None:
            self._host.fail(report.problem)
        elif report.failed:
            self._host.fail(texts.failure(report))
        self._host.look_again()

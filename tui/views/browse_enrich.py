"""Enriching from Browse: what it would take is asked for and shown, then it is done.

One rule: nothing is made before somebody saw what it costs and said yes.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from filestore import FilestoreError
from tui.formatting import reports as texts
from tui.formatting.lines import quoted
from tui.views.context import ViewContext
from tui.views.questions import ConfirmScreen
from tui.workers import Handlers, Job

if TYPE_CHECKING:
    from filestore.browse import EnrichPlan, EnrichReport

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

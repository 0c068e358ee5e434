"""A verification, from its beginning to what is known when it ends or is stopped. Draws nothing."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from filestore import FilestoreError, Finding
from filestore.browse import is_clean
from tui.formatting.findings import looked_line
from tui.formatting.lines import Line, Span, duration
from tui.state.findings import Coverage, FindingIndex
from tui.views.context import ViewContext
from tui.workers import Handlers, Job, Task

if TYPE_CHECKING:
    from filestore import Checked


class VerifyRun:
    """Has the store verified, and the findings follow as they come. One run at a time."""

    def __init__(self, host: ViewContext) -> None:
        self._host = host
        self._run: Task | None = None
        self._level = ""
        self._has_begun = False

    @property
    def is_running(self) -> bool:
        """Whether one is running, or waits for its turn."""
        return self._run is not None and not self._run.is_over

    def begin(self, level: str) -> None:
        """Verify, unless that is running."""
        if self._run is not None and not self._run.is_over:
            self._host.notify(f"{self._run.title} is running: x stops it", severity="warning")
            return
        self._host.note(f"filestore {self._host.store_option}verify --level {level}")
        self._level, self._has_begun = level, False
        self._run = self._host.task_manager.work(
            Job(name="verify", arguments={"level": level}),
            Handlers(
                then=self._verified,
                failed=self._broken_off,
                found=self._found,
                stopped=self._broken_off,
            ),
            title=f"verify ({level})",
            writes=False,
        )

    def tick(self) -> None:
        """Take notice when its turn came: other work may have gone first."""
        if self._run is not None and self._run.state == "running":
            self._start()

    def _start(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._host.findings.begin(self._level)
            self._host.findings_changed()

    def _found(self, found: Sequence[Finding]) -> None:
        self._start()
        self._host.findings.add(found)
        self._host.findings_changed()

    def _verified(self, checked: "Checked") -> None:
        # Which warnings were accepted stands in the settings of the store.
        self._host.task_manager.read(
            lambda store: (
                FindingIndex.of(checked.findings),
                is_clean(checked.findings, store.settings.accepted),
            ),
            partial(self._end, checked),
            group="",
            failed=lambda _: self._end(
                checked, (FindingIndex.of(checked.findings), is_clean(checked.findings))
            ),
            urgent=True,
        )

    def _end(self, checked: "Checked", found: tuple[FindingIndex, bool]) -> None:
        self._has_begun = True
        coverage = Coverage(
            level=checked.level,
            at=_now(),
            checked=checked.checked,
            not_checked=checked.not_checked,
        )
        self._host.findings.replace(found[0], coverage, clean=found[1])
        self._host.findings_changed()

    def _broken_off(self, error: FilestoreError | None = None) -> None:
        self._start()
        why = "the rest, since it was stopped" if error is None else "the rest, since it failed"
        self._host.findings.stop(at=_now(), why=why)
        self._host.findings_changed()
        if error is not None:
            self._host.fail(error)

    def line(self) -> Line:
        """Its progress; else the last check and its result."""
        run, findings = self._run, self._host.findings
        if run is not None and not run.is_over:
            # Without a total, the time that has passed shows that it goes on.
            passed = () if run.total else (Span(f"  {duration(run.elapsed_s)}", "quiet"),)
            return (*run.progress(title=run.title), *passed, Span("  x stops", "key"))
        coverage = findings.coverage
        return looked_line(
            coverage.level,
            at=coverage.at,
            found=len(findings),
            clean=findings.clean,
            was_stopped=coverage.was_stopped,
            again=coverage.again,
        )


def _now() -> str:
    return time.strftime("%H:%M:%S")

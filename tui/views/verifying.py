"""A verification, from its beginning to what is known when it ends or is stopped. Draws nothing."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from filestore import FilestoreError, Finding, is_clean
from tui.backstage import Handlers, Job, Task
from tui.desk import Desk
from tui.model.findings import Looked, Told
from tui.words.findings import looked_line
from tui.words.lines import Line, Span
from tui.words.progress import duration, progress_line

if TYPE_CHECKING:
    from filestore import Checked


class Verifying:
    """Has the store verified, and the findings follow as they come. One run at a time."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._run: Task | None = None
        self._level = ""
        self._has_begun = False

    @property
    def is_running(self) -> bool:
        """Whether one is under way, or waits for its turn."""
        return self._run is not None and not self._run.is_over

    def begin(self, level: str) -> None:
        """Verify, unless that is under way."""
        if self._run is not None and not self._run.is_over:
            self._desk.say(f"{self._run.title} is under way: x stops it", severity="warning")
            return
        command = f"filestore {self._desk.store_option}verify --level {level}"
        self._desk.note(command)
        self._level, self._has_begun = level, False
        self._run = self._desk.backstage.work(
            Job(name="verify", arguments={"level": level}),
            Handlers(
                then=self._verified,
                failed=self._broken_off,
                found=self._found,
                stopped=self._broken_off,
            ),
            title=f"verify ({level})",
            command=command,
            writes=False,
        )

    def tick(self) -> None:
        """Take notice when its turn came: other work may have gone first."""
        if self._run is not None and self._run.state == "running":
            self._start()

    def _start(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._desk.findings.begin(self._level)
            self._desk.findings_changed()

    def _found(self, found: Sequence[Finding]) -> None:
        self._start()
        self._desk.findings.add(found)
        self._desk.findings_changed()

    def _verified(self, checked: "Checked") -> None:
        # Which warnings were accepted stands in the settings of the store.
        self._desk.backstage.read(
            lambda store: (
                Told.of(checked.findings),
                is_clean(checked.findings, store.settings.accepted),
            ),
            partial(self._end, checked),
            group="",
            failed=lambda _: self._end(
                checked, (Told.of(checked.findings), is_clean(checked.findings))
            ),
            urgent=True,
        )

    def _end(self, checked: "Checked", found: tuple[Told, bool]) -> None:
        self._has_begun = True
        looked = Looked(
            level=checked.level,
            at=_now(),
            checked=checked.checked,
            not_checked=checked.not_checked,
        )
        self._desk.findings.replace(found[0], looked, clean=found[1])
        self._desk.findings_changed()

    def _broken_off(self, error: FilestoreError | None = None) -> None:
        self._start()
        why = "the rest, since it was stopped" if error is None else "the rest, since it failed"
        self._desk.findings.stop(at=_now(), why=why)
        self._desk.findings_changed()
        if error is not None:
            self._desk.fail(error)

    def line(self) -> Line:
        """How far it is; else what was looked at last, and what came of it."""
        run, findings = self._run, self._desk.findings
        if run is not None and not run.is_over:
            elapsed_s = time.monotonic() - run.started_s
            stage = f"{run.title}  {run.stage or 'beginning'}"
            said = progress_line(stage, done=run.done, total=run.total, elapsed_s=elapsed_s)
            # Without an end in sight, time that passes is what shows that it goes on.
            passed = () if run.total else (Span(f"  {duration(elapsed_s)}", "quiet"),)
            return (*said, *passed, Span("  x stops", "key"))
        looked = findings.looked
        return looked_line(
            looked.level,
            at=looked.at,
            found=len(findings),
            clean=findings.clean,
            was_stopped=looked.was_stopped,
            again=looked.again,
        )


def _now() -> str:
    return time.strftime("%H:%M:%S")

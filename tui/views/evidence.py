"""What shows a finding to be true: beside the list of findings, following its cursor."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.timer import Timer

from filestore import FilestoreError, Finding
from tui.formatting.findings import evidence_lines, finding_lines, neighbour_lines, problem_lines
from tui.formatting.lines import Line
from tui.state.findings import key_of
from tui.views.context import ViewContext
from tui.widgets.text import TextPane
from tui.workers import Handlers, Job

if TYPE_CHECKING:
    from filestore.browse import Evidence, Neighbour

FOLLOW_S: Final = 0.03
"""How long the cursor rests before evidence is read."""
NEIGHBOURS_S: Final = 0.25
"""How long until neighbours are asked for: they may cost an embedding."""
NEIGHBOURS: Final = 5


class EvidenceLoader:
    """Shows the evidence of one finding in a pane, as the store gives it."""

    def __init__(self, host: ViewContext, pane: TextPane) -> None:
        self._host = host
        self._pane = pane
        self._finding: Finding | None = None
        self._evidence: Evidence | None = None
        self._neighbours: dict[bool, Sequence[Neighbour]] = {}
        """By the stored vector at False, by the present text at True."""
        self._problems: list[FilestoreError] = []
        self._timer: Timer | None = None
        self._sought = ""

    def seek(self, text: str) -> None:
        """Mark a text in the evidence; "" for none."""
        self._sought = text
        self._pane.find(text)

    def show(self, lines: Sequence[Line], *, key: str) -> None:
        """Show lines about no single finding."""
        self._begin(None)
        self._pane.show(lines, key=key)

    def follow(self, finding: Finding) -> None:
        """Show the evidence of a finding, once the cursor rests on it."""
        if self._finding is not None and key_of(self._finding) == key_of(finding):
            return
        self._begin(finding)
        self._timer = self._pane.set_timer(FOLLOW_S, self._read)

    def again(self) -> None:
        """Read the same evidence again: the store may have changed."""
        if self._evidence is not None:
            self._read()

    def _begin(self, finding: Finding | None) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._finding = finding
        self._evidence = None
        self._neighbours = {}
        self._problems = []
        self._timer = None

    def _read(self) -> None:
        finding = self._finding
        if finding is not None:
            self._draw()
            self._host.task_manager.read(
                lambda store: store.evidence(finding),
                partial(self._take, finding),
                group="evidence",
                failed=partial(self._missed, finding),
                urgent=True,
            )

    def _take(self, finding: Finding, evidence: "Evidence") -> None:
        if finding is not self._finding:
            return
        before, self._evidence = self._evidence, evidence
        self._draw()
        is_same = before is not None and (before.indexed_hash, before.disk_hash) == (
            evidence.indexed_hash,
            evidence.disk_hash,
        )
        if not is_same:
            self._problems = []
            tree = self._host.findings.tree
            is_text = finding.path.endswith(".md") or not tree.folder
            if is_text and tree.holds(finding.path):
                self._timer = self._pane.set_timer(NEIGHBOURS_S, self._ask_neighbours)

    def _missed(self, finding: Finding, error: FilestoreError) -> None:
        if finding is self._finding:
            if error.message not in [problem.message for problem in self._problems]:
                self._problems.append(error)
            self._draw()

    # Neighbours

    def _ask_neighbours(self) -> None:
        self._neighbours = {}
        if self._evidence is not None and self._evidence.indexed_hash:
            self._ask(now=False)
        if self._is_compared:
            self._ask(now=True)

    @property
    def _is_compared(self) -> bool:
        """Whether the vector of the present text may be another than the stored one."""
        found = self._evidence
        return (
            found is not None
            and bool(found.disk_hash)
            and (found.disk_hash != found.indexed_hash or found.finding.meaning.vector_in_doubt)
        )

    def _ask(self, *, now: bool) -> None:
        finding = self._finding
        if finding is None:
            return
        # Nothing is indexed under the name that a moved file has now.
        path = finding.other if finding.code == "moved" and not now else finding.path
        arguments = {"path": path, "count": NEIGHBOURS, "now": now}

        def take_neighbours(found: "Sequence[Neighbour]") -> None:
            if finding is self._finding:
                self._neighbours[now] = found
                self._draw()

        self._host.task_manager.ask(
            Job(name="neighbours", arguments=arguments),
            Handlers(
                then=take_neighbours,
                failed=partial(self._missed, finding),
            ),
            group=f"evidence neighbours {'now' if now else 'then'}",
        )

    def _draw(self) -> None:
        finding = self._finding
        if finding is None:
            return
        known = self._evidence
        lines = finding_lines(finding) if known is None else evidence_lines(known)
        if self._neighbours:
            lines += neighbour_lines(
                self._neighbours.get(False),
                self._neighbours.get(True),
                compared=self._is_compared,
                tree=self._host.findings.tree,
            )
        for problem in self._problems:
            lines += problem_lines(problem)
        self._pane.show(lines, key=str(key_of(finding)))
        self._pane.find(self._sought)

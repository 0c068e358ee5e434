"""The heartbeat: how late the screen's loop is, for measurements; off unless it is asked for.

Wakes a hundred times a second and notes how much later than it wanted. One rule: what it costs is
part of what it measures, so it does nothing else.
"""

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

VARIABLE: Final = "FILESTORE_HEARTBEAT"
"""Names the file to which one JSON line is written at the end."""
EVERY_S: Final = 0.01
WINDOW: Final = 60_000
"""Beats that are kept, the last ones: ten minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How late the loop was, in milliseconds."""

    beats: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


def lag_of(late_s: Sequence[float]) -> Lag:
    """The percentiles, each one of the values (nearest rank); all zero of none."""
    ordered = sorted(late_s) or [0.0]
    return Lag(
        beats=len(late_s),
        p50_ms=_percentile(ordered, 50),
        p95_ms=_percentile(ordered, 95),
        p99_ms=_percentile(ordered, 99),
        max_ms=_percentile(ordered, 100),
    )


def _percentile(ordered: Sequence[float], share: int) -> float:
    rank = max(1, -(-len(ordered) * share // 100))
    return round(1000 * ordered[rank - 1], 3)


class Heartbeat:
    """Measures the loop it was started on, until `end`."""

    def __init__(self, path: str) -> None:
        """Measure nothing yet.

        Args:
            path: Where it is written at the end; "" for nowhere.
        """
        self._path = path
        self._late_s: deque[float] = deque(maxlen=WINDOW)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; on the loop, and only where it is wanted."""
        if self._path and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._beat())

    @property
    def lag(self) -> Lag:
        """How late it was so far."""
        return lag_of(list(self._late_s))

    def end(self) -> None:
        """Measure no more, and write what was measured."""
        if self._task is None:
            return
        self._task.cancel()
        self._task = None
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self.lag)) + "\n")

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._late_s.append(max(0.0, loop.time() - due))


def of(environment: Mapping[str, str]) -> Heartbeat:
    """The heartbeat that the environment asks for."""
    return Heartbeat(environment.get(VARIABLE, ""))

"""The inspector with a heartbeat: ``heartbeat.py FILE words…`` runs ``filestore words…``.

A task of its loop wakes a hundred times a second and notes how much later than it wanted; at the
end FILE holds the percentiles as one JSON object. What it costs is part of what it measures.
"""

import asyncio
import json
import sys
from collections import deque
from pathlib import Path

import screen

import tui.app
from filestore.cli import main
from tui.app.inspector import Inspector

EVERY_S = 0.01
WINDOW = 60_000
"""Beats that are kept, the last ones: ten minutes."""


class MeasuredInspector(Inspector):
    """Measures its loop from the first handler to the last."""

    CSS_PATH = str(Path(tui.app.__file__).with_name(str(Inspector.CSS_PATH)))

    def on_load(self) -> None:
        """Begin."""
        self._late_s: deque[float] = deque(maxlen=WINDOW)
        self._beating = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._late_s.append(max(0.0, loop.time() - due))

    async def on_unmount(self) -> None:
        """Write what was measured."""
        self._beating.cancel()
        late_ms = [1000 * one for one in self._late_s] or [0.0]
        lag = {
            "beats": len(self._late_s),
            **{f"p{share}_ms": screen.percentile(late_ms, share / 100) for share in (50, 95, 99)},
            "max_ms": max(late_ms),
        }
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump({name: round(value, 3) for name, value in lag.items()}, file)


if __name__ == "__main__":
    import tui.app.inspector

    tui.app.inspector.Inspector = MeasuredInspector  # type: ignore[misc]
    sys.exit(main(sys.argv[2:]))

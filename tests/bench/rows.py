"""The inspector's list beside Textual's OptionList, DataTable and Tree: paint, key, page, memory.

Each is a small app on a terminal of its own, with the same rows, in turns. First paint is from the
start of the process until a row is on the screen; a key counts until the last byte of its answer.
The tree shows its rows opened. ``--files`` is the larger number of rows; a thousand are the other.
Memory is that of the process after the keys.
"""

import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import measure
from screen import Screen

SMALL = 1_000
KEYS = 12
QUIET_S = 0.3
"""Nothing for so long is the end of an answer: longer than Textual's scrolling takes."""
MARKER = "row 000003"
NAMES = {"rows": "ours", "options": "OptionList", "table": "DataTable", "tree": "Tree"}
DOWN, PAGE_DOWN = b"\x1b[B", b"\x1b[6~"
_FIGURES = ("first paint", "key", "page down", "memory")

Timed = tuple[float, float, float, float]
"""Seconds to the first paint, medians of a key and of a page; bytes."""


def main() -> None:
    """Measure and print the table."""
    if len(sys.argv) == 4 and sys.argv[1] == "--show":
        _show(sys.argv[2], int(sys.argv[3]))
        return
    with measure.options(__doc__ or "", files=100_000, folders=1, runs=5) as options:
        rows = [row for total in (SMALL, options.files) for row in _compared(total, options.runs)]
    print(measure.table(f"Lists, median of {options.runs} processes", rows))


def _compared(total: int, runs: int) -> list[measure.Row]:
    """Our list beside each of the others."""
    actions = [lambda kind=kind: _timed(kind, total) for kind in NAMES]
    ours, *others = (_medians(found) for found in measure.alternate(runs, *actions))
    return [
        _row(f"{figure}, {total:,} rows", ours[number], other, theirs[number])
        for number, figure in enumerate(_FIGURES)
        for other, theirs in zip(list(NAMES.values())[1:], others, strict=True)
    ]


def _row(figure: str, ours_s: float, other: str, theirs_s: float) -> measure.Row:
    unit = _mebibytes if figure.startswith("memory") else measure.milliseconds
    return measure.Row(
        figure=figure,
        ours=unit(ours_s),
        yardstick=f"{other} {unit(theirs_s)}",
        compared=f"× {ours_s / theirs_s:.2f}",
    )


def _mebibytes(size_bytes: float) -> str:
    return f"{size_bytes / 2**20:,.0f} MiB"


def _medians(found: Sequence[Timed]) -> Timed:
    first, key, page, memory = (statistics.median(one) for one in zip(*found, strict=True))
    return first, key, page, memory


def _timed(kind: str, total: int) -> Timed:
    command = [sys.executable, __file__, "--show", kind, str(total)]
    checkout = str(Path(__file__).resolve().parents[2])
    with Screen(command, PYTHONPATH=checkout) as screen:
        painted_s = screen.until(MARKER, 120.0) - screen.started_s
        screen.settled(QUIET_S)
        # `Screen` sees no answer in the first lines, where it expects the head of the inspector.
        for _ in range(3):
            screen.type(DOWN)
            screen.settled(QUIET_S)
        key_s, page_s = (
            statistics.median(screen.answer(keys, quiet_s=QUIET_S)[1] for _ in range(KEYS))
            for keys in (DOWN, PAGE_DOWN)
        )
        memory, _ = screen.memory()
    return painted_s, key_s, page_s, memory


def _show(kind: str, total: int) -> None:
    """Be the app that is measured."""
    from textual.app import App

    class ListApp(App[None]):
        def on_mount(self) -> None:
            shown = {"rows": _virtual, "options": _options, "table": _table, "tree": _tree}[kind](
                total
            )
            self.mount(shown)
            shown.focus()

        def key_q(self) -> None:
            self.exit()

    ListApp().run()
    # Taking so many objects down is nobody's wait.
    os._exit(0)


def _virtual(total: int) -> Any:
    from array import array

    from tui.formatting import line
    from tui.state.rows import TreeRows
    from tui.widgets.rows import VirtualRows

    tree = TreeRows(
        lambda way: line(f"row {way[1]:06}" if way[1:] else way[0]),
        lambda _: array("q", range(total)),
        print,
        lambda _: None,
    )
    tree.replace(["all"])
    tree.open(("all",))
    shown = VirtualRows()
    shown.show(tree)
    return shown


def _options(total: int) -> Any:
    from textual.widgets import OptionList

    return OptionList(*(f"row {number:06}" for number in range(total)))


def _table(total: int) -> Any:
    from textual.widgets import DataTable

    shown: DataTable[str] = DataTable(show_header=False, cursor_type="row")
    shown.add_column("row", width=80)
    shown.add_rows((f"row {number:06}",) for number in range(total))
    return shown


def _tree(total: int) -> Any:
    from textual.widgets import Tree

    shown: Tree[None] = Tree("all")
    for number in range(total):
        shown.root.add_leaf(f"row {number:06}")
    shown.root.expand()
    return shown


if __name__ == "__main__":
    main()

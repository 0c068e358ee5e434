"""Both sides of a conflict or of a duplicate, to choose one; or to leave it as it is.

One rule: nothing is written here. What was chosen becomes a plan, which is seen before it is done.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import set_cell_size
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen

from filestore.browse import SideChoice, shown_path
from tui.formatting.findings import (
    BASE_TITLE,
    Facing,
    Mark,
    choice_lines,
    facing,
    side_titles,
    sides_title,
    stacked_lines,
    wanted_side,
)
from tui.formatting.lines import Line, Role, Span, line, span
from tui.views.context import ViewContext, line_named
from tui.widgets.drawing import Wrapping
from tui.widgets.steady import Steady
from tui.widgets.text import Caption, TextPane

if TYPE_CHECKING:
    from filestore import FilestoreError, Finding
    from filestore.browse import Sides

SIDE_BY_SIDE: Final = 90
"""So wide the screen has to be for both sides next to each other."""
TAB: Final = 4
_ROLES: Final[dict[Mark, tuple[Role, Role]]] = {
    "": ("text", "text"),
    "<": ("removed", "quiet"),
    ">": ("quiet", "added"),
    "|": ("removed", "added"),
}


class SidesScreen(Steady, ModalScreen[SideChoice | None]):
    """Two texts line by line; gives what was chosen, or None where it is left as it is."""

    DEFAULT_CSS = """
    SidesScreen { align: center middle; }
    SidesScreen > Vertical {
        width: 96%; height: 94%; padding: 0 1; border: round $primary; background: $surface;
    }
    SidesScreen TextPane { height: 1fr; background: $surface; }
    SidesScreen Caption { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1,left", "take('left')", "take the left side"),
        Binding("2,right", "take('right')", "take the right side"),
        Binding("3", "take('both')", "keep both"),
        Binding("b", "base", "show the common ancestor"),
        Binding("e", "edit", "edit by hand"),
        Binding("escape,q", "dismiss", "leave it as it is"),
    ]

    def __init__(self, host: ViewContext, finding: "Finding") -> None:
        super().__init__()
        self._host = host
        self._finding = finding
        self._sides: Sides | None = None
        self._rows: Sequence[Facing] = ()
        self._shows_base = False

    def compose(self) -> ComposeResult:
        """What it is about, both sides, and what can be chosen."""
        with Vertical():
            yield Caption(id="sides-title")
            yield Caption(id="sides-labels")
            yield TextPane(id="sides-text")
            yield Caption(id="sides-choices", most=8)

    def begin(self) -> None:
        """Have both sides read."""
        self.query_one("#sides-title", Caption).show(
            [line(shown_path(self._finding.path), "title")]
        )
        self.query_one(TextPane).focus()
        finding = self._finding

        def failed(error: "FilestoreError") -> None:
            self._host.fail(error)
            if self.is_current:
                self.dismiss(None)

        self._host.task_manager.read(
            lambda store: store.sides(finding),
            self._show,
            group="sides",
            failed=failed,
            urgent=True,
        )

    def _show(self, sides: "Sides") -> None:
        if not self.is_attached:
            return
        self._sides = sides
        self._rows = facing(sides.ours, sides.theirs or "")
        self.query_one("#sides-title", Caption).show([sides_title(sides)])
        self.query_one("#sides-choices", Caption).show(choice_lines(sides))
        self._draw()

    def on_resize(self, _: Resize) -> None:
        """Put the sides next to each other, or below each other where there is no room."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        if self._sides is None:
            return
        left, right = side_titles(self._sides)
        pane = self.query_one(TextPane)
        width = pane.scrollable_content_region.width
        labels = self.query_one("#sides-labels", Caption)
        if self._shows_base and self._sides.base is not None:
            labels.show([line(BASE_TITLE, "title")])
            pane.show(
                [line(text.expandtabs(TAB)) for text in self._sides.base.splitlines()], key="base"
            )
        elif self.app.size.width < SIDE_BY_SIDE:
            labels.show([(Span("< ", "removed"), *left), (Span("> ", "added"), *right)])
            pane.show(stacked_lines(self._rows), key="stacked")
        else:
            half = half_of(width)
            labels.show([(*_padded(left, half), Span("   "), *right)])
            pane.show(columns(self._rows, width), key="columns")

    def action_base(self) -> None:
        """Show the text that both sides began with, or both sides again."""
        if self._sides is None:
            return
        if self._sides.base is None:
            self._host.notify("no common ancestor available", severity="warning")
            return
        self._shows_base = not self._shows_base
        self._draw()

    # Choosing

    def action_take(self, side: str) -> None:
        """Take a side, or both."""
        if self._sides is None:
            return
        choice = wanted_side(self._sides, side)
        if choice is None:
            self._host.notify("that cannot be chosen here: see the list below", severity="warning")
        else:
            self.dismiss(choice)

    def action_edit(self) -> None:
        """Leave it, and open its file in an editor, whatever is under the cursor then."""
        path = self._finding.path if self._sides is None else self._sides.path
        self.dismiss(None)
        self.app.call_later(self._host.edit, path, line=line_named(self._finding.detail))


def half_of(width: int) -> int:
    """How wide each side is; the mark is between them."""
    return max((width - 3) // 2, 2)


def columns(rows: Sequence[Facing], width: int) -> list[Line]:
    """Both sides next to each other, each wrapped to its half."""
    half = half_of(width)
    found: list[Line] = []
    for row in rows:
        left, right = _ROLES[row.mark]
        pairs = zip_longest(_wrapped(row.left, left, half), _wrapped(row.right, right, half))
        for number, (mine, other) in enumerate(pairs):
            mark = span(f" {row.mark if not number else ' '} ".rjust(3), "mark")
            found.append((*_padded(mine or (), half), mark, *_padded(other or (), half)))
    return found


def _wrapped(text: str, role: Role, width: int) -> list[Line]:
    wrapping = Wrapping([line(text.expandtabs(TAB), role)], width)
    wrapping.advance(len(text) + 1)
    return [wrapping.row(number) for number in range(len(wrapping))]


def _padded(words: Line, width: int) -> Line:
    """A line exactly as wide as its side: a row may end in a space that has no room."""
    text, role = "".join(one.text for one in words), words[0].role if words else "text"
    return (Span(set_cell_size(text, width), role),)

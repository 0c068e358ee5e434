"""Words for the choice between two sides: what each is, what choosing it does. Pure."""

from typing import TYPE_CHECKING, Final

from filestore import CODES
from filestore.browse import shown_path
from tui.formatting.lines import Line, line, span

if TYPE_CHECKING:
    from filestore.browse import Choice, Sides

SIDES: Final = {
    "left": ("ours", "remove-other"),
    "right": ("theirs", "remove-this"),
    "both": ("keep-both",),
}
"""What a side stands for: of two copies, to take one is to remove the other."""
BASE_TITLE: Final = "the common ancestor; b shows both sides again"
KEYS: Final = {"left": "1", "right": "2", "both": "3"}


def sides_title(sides: "Sides") -> Line:
    """What there is to choose from."""
    beside = f" and {shown_path(sides.other)}" if sides.other else ""
    return (
        span(f"{CODES[sides.code].sides}  ", "title"),
        span(f"{shown_path(sides.path)}{beside}", "quiet"),
    )


def side_titles(sides: "Sides") -> tuple[Line, Line]:
    """What stands above each side."""
    return line(sides.ours_label, "title"), line(sides.theirs_label, "title")


def wanted_side(sides: "Sides", side: str) -> "Choice | None":
    """The choice that a side stands for; None where it is none."""
    names = SIDES.get(side, ())
    return next((choice for choice in sides.choices if choice.name in names), None)


def _label(sides: "Sides", side: str, choice: "Choice") -> str:
    """What a choice does; of two copies, which one stays and which one goes."""
    if sides.code != "duplicate" or side == "both":
        return choice.label
    left, right = shown_path(sides.path), shown_path(sides.other)
    stays, goes = (left, right) if side == "left" else (right, left)
    return f"keep {stays}, remove {goes}"


def choice_lines(sides: "Sides") -> list[Line]:
    """The keys, what each does, and the command that does the same."""
    found: list[Line] = []
    for side, key in KEYS.items():
        choice = wanted_side(sides, side)
        if choice is not None:
            command = (span(f"  {choice.command}", "quiet"),) if choice.command else ()
            found.append((span(f"{key}  ", "key"), span(_label(sides, side, choice)), *command))
    if sides.base is not None:
        found.append((span("b  ", "key"), span("show the common ancestor")))
    found.append((span("e  ", "key"), span("edit it by hand")))
    found.append(
        (span("esc  ", "key"), span("leave it as it is; nothing is written before you confirm"))
    )
    return found

"""Two texts compared: a unified diff, two sides line by line, the choice between them. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from filestore import CODES
from filestore.browse import shown_path
from tui.formatting.lines import Line, Role, line, span

if TYPE_CHECKING:
    from filestore.browse import SideChoice, Sides

Mark = Literal["", "<", ">", "|"]

MOST_ALIGNED: Final = 4_000
"""Lines of both sides together; comparing more would keep a key waiting."""
TAB: Final = 4

_ROLES: Final[dict[str, Role]] = {"+": "added", "-": "removed"}
_HEADS: Final = ("--- ", "+++ ")


def diff_lines(diff: str) -> list[Line]:
    """A unified diff; what was added or removed keeps its sign, whatever the colours."""
    found: list[Line] = []
    is_head = True
    for text in diff.splitlines():
        is_head = is_head and not text.startswith("@@")
        if is_head and text.startswith(_HEADS):
            found.append(line(text, "title"))
        elif text.startswith("@@"):
            found.append(line(text, "hunk"))
        else:
            role = _ROLES.get(text[:1], "text")
            # The sign by itself, so that the rest of a long line stands beside it, not below it.
            found.append((span(text[:1], role), span(text[1:].expandtabs(TAB), role)))
    return found


class Facing(Struct, frozen=True, kw_only=True):
    """One line of both sides."""

    mark: Mark
    """``<`` only on the left, ``>`` only on the right, ``|`` differs, "" the same."""
    left: str
    right: str


def facing(ours: str, theirs: str) -> list[Facing]:
    """Both sides line by line, equal lines at the same height."""
    left, right = ours.splitlines(), theirs.splitlines()
    if len(left) + len(right) > MOST_ALIGNED:
        return [_faced(one, other) for one, other in zip_longest(left, right)]
    found: list[Facing] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for _, first, last, start, stop in matcher.get_opcodes():
        pairs = zip_longest(left[first:last], right[start:stop])
        found += [_faced(one, other) for one, other in pairs]
    return found


def _faced(left: str | None, right: str | None) -> Facing:
    mark: Mark = "" if left == right else "|"
    if left is None:
        mark = ">"
    elif right is None:
        mark = "<"
    return Facing(mark=mark, left=left or "", right=right or "")


def stacked_lines(rows: Sequence[Facing]) -> list[Line]:
    """Both sides below each other where there is no room beside: changes stand together."""
    found: list[Line] = []
    right: list[Line] = []
    for row in rows:
        if row.mark == "":
            found += [*right, (span("  "), span(row.left.expandtabs(TAB)))]
            right = []
            continue
        if row.mark in "<|":
            found.append((span("< ", "removed"), span(row.left.expandtabs(TAB), "removed")))
        if row.mark in ">|":
            right.append((span("> ", "added"), span(row.right.expandtabs(TAB), "added")))
    return found + right


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


def wanted_side(sides: "Sides", side: str) -> "SideChoice | None":
    """The choice that a side stands for; None where it is none."""
    names = SIDES.get(side, ())
    return next((choice for choice in sides.choices if choice.name in names), None)


def _label(sides: "Sides", side: str, choice: "SideChoice") -> str:
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

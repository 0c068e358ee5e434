"""The keys of the inspector as a page of Markdown, from the table of actions.

`python -m tui.actions.keys > tui/KEYS.md` writes the page.
"""

import sys
from typing import Final

from tui.actions.table import Action, ActionContext, Place, command_line, key_label, of_place

_TITLES: Final[tuple[tuple[Place, str], ...]] = (
    ("everywhere", "On every page"),
    ("lists", "In every list"),
    ("browse", "Browse"),
    ("verify", "Verify"),
    ("repair", "Repair"),
)
_SOMEWHERE: Final = ActionContext(
    path="PATH",
    codes=("CODE",),
    paths=("PATH",),
    can_undo="ID",
    can_redo="ID",
    level="LEVEL",
    query="WORDS",
    truth=True,
)


def page() -> str:
    """The whole page."""
    parts = [
        "# Keys of the inspector",
        "",
        "Written from the table of actions, `tui/actions/table.py`, by",
        "`python -m tui.actions.keys`.",
        "Every action names the command line that does the same, or why there is none.",
    ]
    for place, title in _TITLES:
        parts += ["", f"## {title}", "", "| Keys | Does | On the command line |", "|---|---|---|"]
        parts += [_row(action) for action in of_place(place)]
    return "\n".join([*parts, ""])


def _row(action: Action) -> str:
    keys = " ".join(_code(key_label(key)) for key in action.keys)
    line = command_line(action, _SOMEWHERE)
    same = _code(line) if line else f"– {action.no_command}"
    return f"| {keys} | {action.help} | {same} |"


def _code(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in escaped else f"`{escaped}`"


if __name__ == "__main__":
    sys.stdout.write(page())

"""How wide help is: as the terminal, or as COLUMNS says, within what can be read."""

from __future__ import annotations

import textwrap

from filestore.server import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_COLUMNS: Final = 78
_NARROWEST: Final = 40
_WIDEST: Final = 100


def width() -> int:
    """The columns that help is written in, from 40 to 100: those of the terminal or of COLUMNS."""
    found = wire.columns() or wire.named_columns()
    return min(max(found - 2, _NARROWEST), _WIDEST) if found else _COLUMNS


def filled(line: str, width: int, *, indent: int = 0) -> list[str]:
    """A line, broken where it is too wide; of a list, the rest goes below its second column."""
    below = " " * (indent if width >= 2 * indent else 4)
    return textwrap.wrap(line, width, subsequent_indent=below, break_on_hyphens=False)

"""The terminal at standard output. Imports nothing else: a command that asks a server loads it."""

import os
import sys

FALLBACK = 80


def columns() -> int:
    """Its width in columns; 0 where standard output is no terminal.

    One that does not know its width, as some serial lines, has that of the variable COLUMNS, else
    80.
    """
    if not sys.stdout.isatty():
        return 0
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        found = 0
    named = os.environ.get("COLUMNS", "")
    if not found and named.isdecimal() and len(named) < 6:
        found = int(named)
    return found or FALLBACK

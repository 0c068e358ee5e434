"""Whether a person wants colors, as the variables of a process say it."""

import os

DUMB = ("", "dumb")
"""What the variable TERM says of a terminal that shows text alone."""


def wanted_colors() -> str:
    """``never`` or ``always`` where a variable says so; ``auto``: where there is a terminal."""
    if os.environ.get("NO_COLOR"):
        return "never"
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return "always"
    return "never" if os.environ.get("TERM", "") in DUMB else "auto"

"""`python -m tui [DIR]`, the same as `filestore tui --store DIR`."""

import os
import sys

from tui import run

_CONFIGURATION = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")

sys.exit(
    run(
        store=sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FILESTORE") or None,
        configuration=_CONFIGURATION,
    )
)

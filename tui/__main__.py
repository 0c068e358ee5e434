"""`python -m tui`, the same as `filestore tui`."""

import sys

from filestore.cli import main

sys.exit(main(["tui", *sys.argv[1:]]))

"""`python -m tui`, the same as `filestore tui`; what a browser's server starts."""

import sys

from filestore.cli import main

sys.exit(main(["tui", *sys.argv[1:]]))

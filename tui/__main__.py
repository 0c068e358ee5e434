"""`python -m tui`, the same as `filestore tui`."""

import sys

from filestore.cli import main

sys.argv.insert(1, "tui")
sys.exit(main())

"""`python -m filestore`."""

import sys

from filestore.cli import main

code = main()
# Python remembers an interruption that left an `exec` (a dataclass that was being made), though
# `main` answered it, and would end this process by the signal; any other `exec` makes it forget.
exec("")
sys.exit(code)

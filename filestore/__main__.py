"""`python -m filestore`."""

import sys

from filestore.cli import main

sys.exit(main())

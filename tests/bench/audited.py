"""Run a Python command and log what it opens: ``python audited.py LOG COMMAND…``.

For where there is no strace. The hook sees what Python opens, not what other languages' libraries
do.
"""

import os
import runpy
import sys


def main() -> None:
    """Run the command of the arguments in this process, with the hook set."""
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(event: str, values: tuple[object, ...]) -> None:
        # A descriptor is opened a second time, as a stream, after it was opened by its name.
        if event == "open" and isinstance(values[0], (str, bytes)):
            os.write(log, b'open("' + os.fsencode(values[0]) + b'"\n')

    sys.addaudithook(note)
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()

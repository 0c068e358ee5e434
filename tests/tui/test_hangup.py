"""A terminal that goes away takes the inspector along, and all that it started."""

import os
import pty
import select
import subprocess
import sys
import termios
import time

from filestore import Store
from tui import HUNG_UP


def test_a_closed_terminal_ends_it(tmp_path):
    """Also where no signal tells of it: it does not go on reading what never comes."""
    root = str(tmp_path / "file_index")
    configuration = str(tmp_path / "configuration")
    Store.create(root, layout="tree", embedder="builtin", configuration=configuration).close()
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 100))
    environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(tmp_path / "state")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", "--store", root],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 30
    while b"Browse" not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([ours], [], [], 1.0)[0]:
            seen += os.read(ours, 1 << 16)
    os.close(ours)
    assert process.wait(20) == HUNG_UP

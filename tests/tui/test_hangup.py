"""A terminal that goes away takes the inspector along, and a signal gives the terminal back."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

from filestore import Store
from tui import SIGNALLED
from tui.workers.faults import ENDING
from tui.workers.session_file import recent

from .processes import children, is_running
from .raw_terminal import Screen

MODES = (b"?1049", b"?1000", b"?1003", b"?1006", b"?2004", b"?1004")
HANGING = """
import time
from tui.app import menus
menus.Menus.do_help = lambda self: time.sleep(1000)
"""

ENDED_EARLY = """
import os, signal, time
from tui.app.inspector import Inspector
step = Inspector.{step}
def ended(self, *given):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)
    return step(self, *given)
Inspector.{step} = ended
"""


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
    assert process.wait(20) == SIGNALLED + signal.SIGHUP


def test_the_store_of_a_killed_inspector_is_a_recent_one(tmp_path):
    """Nothing is left to be done at the end: it is remembered once it is open."""
    root, configuration = str(tmp_path / "file_index"), str(tmp_path / "configuration")
    Store.create(root, layout="tree", embedder="builtin", configuration=configuration).close()
    with Screen(str(tmp_path), home=tmp_path) as screen:
        environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
        until = time.monotonic() + 60
        while not recent(environment):
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(screen.process.pid, signal.SIGKILL)
        screen.process.wait(20)
    assert recent(environment) == [root]


@pytest.mark.parametrize("step", ["compose", "open_store", "page_of"])
def test_a_signal_while_it_starts(tmp_path, step):
    """It is no failure that the rest of the start finds no screen any more."""
    root, configuration = str(tmp_path / "file_index"), str(tmp_path / "configuration")
    Store.create(root, layout="tree", embedder="builtin", configuration=configuration).close()
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(ENDED_EARLY.format(step=step))
    with Screen(str(tmp_path), home=tmp_path, modules=modules) as screen:
        assert screen.ended() == SIGNALLED + signal.SIGTERM
        screen.see()
        assert b"failed" not in screen.output


@pytest.mark.parametrize("is_hanging", [False, True], ids=["running", "hanging"])
def test_a_signal_gives_the_terminal_back(tmp_path, is_hanging):
    """Whichever ends it, and whatever it is doing: all modes are as before, no child is left."""
    root, configuration = str(tmp_path / "file_index"), str(tmp_path / "configuration")
    Store.create(root, layout="tree", embedder="builtin", configuration=configuration).close()
    modules = tmp_path / "modules"
    modules.mkdir()
    if is_hanging:
        (modules / "sitecustomize.py").write_text(HANGING)
    for number in ENDING[:1] if is_hanging else ENDING:
        with Screen(str(tmp_path), home=tmp_path, modules=modules) as screen:
            before = termios.tcgetattr(screen.terminal)
            screen.see(until="clean")
            started = children(screen.process.pid)
            assert started
            assert termios.tcgetattr(screen.terminal) != before
            if is_hanging:
                screen.send(b"?")
                screen.see()
            screen.process.send_signal(number)
            assert screen.ended() == SIGNALLED + number
            screen.see()
            assert termios.tcgetattr(screen.terminal) == before
            for mode in MODES:
                on, off = b"\x1b[" + mode + b"h", b"\x1b[" + mode + b"l"
                assert -1 < screen.output.rfind(on) < screen.output.rfind(off), (number, mode)
            assert screen.output.rfind(b"\x1b[?25l") < screen.output.rfind(b"\x1b[?25h")
            deadline = time.monotonic() + 60
            while any(map(is_running, started)):
                assert time.monotonic() < deadline
                time.sleep(0.05)


def test_it_goes_to_the_shell_and_comes_back(tmp_path):
    """Ctrl-Z stops it and gives the terminal back, whatever has the keys; then all is drawn."""
    root, configuration = str(tmp_path / "file_index"), str(tmp_path / "configuration")
    Store.create(root, layout="tree", embedder="builtin", configuration=configuration).close()
    with Screen(str(tmp_path), home=tmp_path) as screen:
        before = termios.tcgetattr(screen.terminal)
        screen.see(until="clean")
        screen.press("s", until="a phrase")
        screen.send(b"\x1a")
        deadline = time.monotonic() + 60
        while not os.waitpid(screen.process.pid, os.WNOHANG | os.WUNTRACED)[0]:
            assert time.monotonic() < deadline
            screen.see(quiet_s=0.02)
        assert termios.tcgetattr(screen.terminal) == before
        screen.process.send_signal(signal.SIGCONT)
        screen.see(until="Browse")
        assert termios.tcgetattr(screen.terminal) != before
        screen.press("esc")
        assert screen.end() == 0

"""A fault of the inspector itself, wherever it happens, leaves a trace and a terminal that works.

The faults are planted: their messages quote a file, and no word of that may be on the terminal that
was given back.
"""

import pytest

from tests.tui.raw_terminal import Screen, words_of

SECRET = "words of a chunk \x1b[2J"
LEFT = b"\x1b[?1049l"
PLANTED = """
import faulthandler, os, sys, threading

def planted_fault(*_, **__):
    raise ValueError(os.environ["PLANTED_WORDS"])

async def planted_task():
    planted_fault()

class Lost:
    def __del__(self):
        planted_fault()

def in_thread(*_, **__):
    threading.Thread(target=planted_fault).start()
    threading.Event().wait()

def plant(where):
    from tui.app.inspector import Inspector
    from filestore.fs import programs
    from tui.widgets import upstream
    from tui.workers import tasks

    if where == "handler":
        Inspector.do_help = planted_fault
    elif where == "worker":
        Inspector.do_help = lambda app: app.run_worker(planted_fault, thread=True)
    elif where == "thread":
        Inspector.do_help = lambda app: threading.Thread(target=planted_fault).start()
    elif where == "input":
        feed = upstream.Keyboard.feed
        upstream.Keyboard.feed = lambda keys, sent: (
            planted_fault() if b"?" in sent else feed(keys, sent)
        )
    elif where == "start":
        Inspector.compose = planted_fault
    elif where == "end":
        Inspector.on_unmount = planted_fault
    elif where == "reading":
        Inspector.do_help = lambda app: app.task_manager.read(planted_fault, print, group="")
    elif where == "task":
        import asyncio
        Inspector.do_help = lambda _: asyncio.get_running_loop().create_task(planted_task())
    elif where == "destructor":
        Inspector.do_help = lambda _: Lost() and None
    elif where == "job":
        tasks.JOBS["status"] = planted_fault
    elif where == "thread of a child":
        tasks.JOBS["status"] = in_thread
    elif where == "machine code":
        tasks.JOBS["status"] = lambda *_, **__: faulthandler._sigsegv()
    elif where == "watcher":
        if "tui.workers.file_watcher" in sys.orig_argv:
            programs.parent_line = planted_fault

if os.environ.get("PLANTED_IN"):
    plant(os.environ["PLANTED_IN"])
"""


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """A folder that plants a fault in every Python."""
    folder = tmp_path_factory.mktemp("plant")
    (folder / "sitecustomize.py").write_text(PLANTED)
    return folder


ENDING = ("handler", "worker", "thread", "input", "start", "end")
"""After these nobody knows what still works."""
GOING_ON = {
    "reading": "unexpected",
    "task": "Browse",
    "destructor": "Browse",
    "job": "unexpected",
    "thread of a child": "process ended",
    "machine code": "process ended",
    "watcher": "process ended",
}
"""After these the session goes on, and shows this."""
ON_KEY = ("handler", "worker", "thread", "input", "reading", "task", "destructor")


def crash(made, plant, tmp_path, where):
    """Bring a fault about; the exit code, and what was said on the terminal that was given back."""
    planted = {"PLANTED_IN": where, "PLANTED_WORDS": SECRET}
    with Screen(str(made), home=tmp_path, modules=plant, variables=planted) as screen:
        if where in ON_KEY:
            screen.see(until="Browse")
            screen.send(b"?")
        if where in ("end", *GOING_ON):
            screen.see(until=GOING_ON.get(where, "Browse"))
            screen.send(b"\x11")
        code = screen.ended()
        screen.see()
        return code, words_of(bytes(screen.output).rpartition(LEFT)[2])


@pytest.mark.parametrize("where", [*ENDING, *GOING_ON])
def test_a_fault_leaves_a_trace(made, plant, tmp_path, where):
    """The exit code is 3; where it was and one sentence are told, and nothing that it quoted."""
    code, said = crash(made, plant, tmp_path, where)
    assert code == 3, said
    kind = "Segmentation fault" if where == "machine code" else "ValueError"
    (line,) = (line for line in said.splitlines() if line.startswith("filestore: "))
    assert line.startswith("filestore: the inspector failed: ")
    assert kind in said
    if where != "machine code":
        assert line.endswith(kind)
        assert "planted_fault" in said
    assert "words of a chunk" not in said
    assert "\x1b" not in said
    assert "Traceback" not in said
    assert not list((tmp_path / "state").rglob("*crash*"))

"""A fault of the inspector itself, wherever it happens, leaves a report and a terminal that works.

The faults are planted: their messages quote a file, and no word of that may be in the report or on
the terminal that was given back.
"""

import os
import stat

import pytest

from tests.tui.raw_terminal import Screen, words_of
from tests.tui.repairing import Case
from tui.workers.crash_reports import MOST_REPORTS, CrashReports

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
    from filestore.fs import subprocess_worker
    from tui.workers import jobs, terminal_input

    if where == "handler":
        Inspector.do_help = planted_fault
    elif where == "worker":
        Inspector.do_help = lambda app: app.run_worker(planted_fault, thread=True)
    elif where == "thread":
        Inspector.do_help = lambda app: threading.Thread(target=planted_fault).start()
    elif where == "input":
        feed = terminal_input.Keyboard.feed
        terminal_input.Keyboard.feed = lambda keys, sent: (
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
        jobs.JOBS["status"] = planted_fault
    elif where == "thread of a child":
        jobs.JOBS["status"] = in_thread
    elif where == "machine code":
        jobs.JOBS["status"] = lambda *_, **__: faulthandler._sigsegv()
    elif where == "watcher":
        if "tui.workers.file_watcher" in sys.orig_argv:
            subprocess_worker.parent_line = planted_fault

if os.environ.get("PLANTED_IN"):
    plant(os.environ["PLANTED_IN"])
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small store, to be looked at only, and a folder that plants a fault in every Python."""
    folder = tmp_path_factory.mktemp("made")
    Case.make(folder)
    (folder / "plant").mkdir()
    (folder / "plant" / "sitecustomize.py").write_text(PLANTED)
    return folder


ENDING = ("handler", "worker", "thread", "input", "start", "end")
"""After these nobody knows what still works."""
GOING_ON = (
    "reading", "task", "destructor", "job", "thread of a child", "machine code", "watcher",
)  # fmt: skip
ON_KEY = ("handler", "worker", "thread", "input", "reading", "task", "destructor")


def reports(tmp_path):
    """The reports that were written."""
    return list((tmp_path / "state" / "filestore").glob("filestore-crash-*.txt"))


def crash(made, tmp_path, where):
    """Bring a fault about; the exit code, and what was said on the terminal that was given back."""
    planted = {"PLANTED_IN": where, "PLANTED_WORDS": SECRET}
    with Screen(str(made), home=tmp_path, modules=made / "plant", variables=planted) as screen:
        if where in ON_KEY:
            screen.see(until="Browse")
            screen.send(b"?")
        if where in GOING_ON:
            screen.wait_for(lambda: reports(tmp_path))
        if where in ("end", *GOING_ON):
            screen.see(until="" if where in GOING_ON else "Browse")
            screen.send(b"\x11")
        code = screen.ended()
        screen.see()
        return code, words_of(bytes(screen.output).rpartition(LEFT)[2])


@pytest.mark.parametrize("where", [*ENDING, *GOING_ON])
def test_a_fault_leaves_a_report(made, tmp_path, where):
    """The exit code is 3, one line names the report, and neither quotes what the fault quoted."""
    code, said = crash(made, tmp_path, where)
    assert code == 3, said
    (report,) = reports(tmp_path)
    (line,) = (line for line in said.splitlines() if line.startswith("filestore: "))
    assert line.endswith(f"the report is {report}")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    text = report.read_text()
    if where != "machine code":
        assert "planted_fault" in text
        assert "error: ValueError" in text
    else:
        assert "Segmentation fault" in text
    assert "filestore 0" in text
    for seen in (text, said):
        assert "words of a chunk" not in seen
        assert "\x1b" not in seen
    assert "Traceback" not in said


def test_only_the_newest_reports_stay(tmp_path):
    """So many are kept; what else lies in the folder is left alone."""
    folder = tmp_path / "filestore"
    folder.mkdir()
    for name in ("inspector-1.json", "filestore-crash-notes.md"):
        (folder / name).write_text("mine")
    written = [
        CrashReports({"XDG_STATE_HOME": str(tmp_path)}).keep(f"trace {number}")
        for number in range(MOST_REPORTS + 3)
    ]
    found = sorted(str(path) for path in folder.glob("*.txt"))
    assert found == written[3:]
    assert len(list(folder.iterdir())) == MOST_REPORTS + 2


def test_where_no_state_can_be_kept_the_report_is_a_temporary_file(tmp_path, monkeypatch):
    """It is as private there."""
    (tmp_path / "state").write_text("a file")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    path = CrashReports({"XDG_STATE_HOME": str(tmp_path / "state")}).keep("trace")
    assert os.path.dirname(path) == str(tmp_path / "temporary")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_one_fault_is_one_report(tmp_path):
    """What fails at every key is written once."""
    reports = CrashReports({"XDG_STATE_HOME": str(tmp_path)})
    assert reports.keep("trace") == reports.keep("trace")
    assert len(list((tmp_path / "filestore").iterdir())) == 1


def test_where_nothing_can_be_written_that_is_told(tmp_path, monkeypatch):
    """The error at the end says so; nothing else is raised."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent" / "file"))
    (tmp_path / "absent").write_text("a file")
    reports = CrashReports({"XDG_STATE_HOME": str(tmp_path / "absent")})
    assert reports.keep("  error: ValueError") == ""
    assert "no report" in reports.failure.message

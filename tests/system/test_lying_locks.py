"""File systems that lock nothing: a writer notices, says so, and loses nothing.

A network file system may refuse a lock, give it to everybody, or keep it within one machine. The
second and the third are played by a `flock` of ours, in processes forked from this one.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.system.test_crashes import assert_survives

ADVICE: Final = "under [sidecar] in filestore/settings.toml"
PAIRS: Final = (
    "add and add",
    "add and add of one",
    "repair and undo",
    "sync and add",
    "sync and sync",
)
SCRIPT: Final = Path(__file__).with_name("lying_locks.py")


def test_a_lock_that_everybody_gets_is_no_lock(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where flock does nothing, no command writes; those that look go on."""
    source = workspace.write("manual.md", "# Manual\n\nThe pump needs care.\n")
    workspace("add", "manual.md")
    before = workspace.committed()
    source.write_text("# Manual\n\nThe pump needs none.\n")
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", lambda *_: None)
        for words in (("sync",), ("add", "manual.md"), ("undo",)):
            done = workspace(*words, code=3)
            assert "it gave one lock to two processes at once" in done.stderr
            assert ADVICE in done.stderr
        assert workspace.found("pump")
        assert workspace("status", code=None).code in (0, 1)
    assert workspace.committed() == before
    workspace("add", "manual.md")
    workspace.assert_settled()


@pytest.mark.parametrize("moment", ["begin", "commit"])
def test_who_finds_another_name_on_the_lock_commits_nothing(
    workspace: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Another machine took the lock at that moment: the catalog stays, and says who it was."""
    from filestore.catalog import CatalogWriter

    workspace.write("file_index/chunked/one.md", "The pump needs care.\n")
    workspace.sync()
    workspace.write("file_index/chunked/two.md", "The valve needs care.\n")
    other = {"command": "filestore add", "host": "elsewhere", "pid": 7, "token": "another"}
    real = getattr(CatalogWriter, moment)

    def signed_meanwhile(catalog: CatalogWriter) -> Any:
        (workspace.sidecar / "lock").write_text(json.dumps(other))
        return real(catalog)

    with monkeypatch.context() as patch:
        patch.setattr(CatalogWriter, moment, signed_meanwhile)
        done = workspace("sync", code=3)
    assert "'filestore add', process 7 on elsewhere got the lock while" in done.stderr
    assert ADVICE in done.stderr
    assert workspace.drift() == {"untracked": ["chunked/two.md"]}
    workspace.sync()
    workspace.assert_settled()


@pytest.mark.parametrize("pair", PAIRS)
def test_two_machines_lose_nothing(pair: str) -> None:
    """Two at once who both hold the lock: each file is one that either leaves, and a sync mends."""
    assert_survives("--rounds", "3", "--pair", pair, script=SCRIPT)


@pytest.mark.parametrize(
    ("injected", "check"),
    [
        ("flock:error=ENOLCK", lambda done: done.returncode == 3 and ADVICE in done.stderr),
        ("flock:error=EOPNOTSUPP", lambda done: done.returncode == 3 and ADVICE in done.stderr),
        ("flock:error=EINTR:when=1", lambda done: done.returncode == 0),
    ],
    ids=["refused", "unknown", "interrupted"],
)
def test_what_the_system_says_of_a_lock(
    workspace: Any, injected: str, check: Callable[[Any], bool]
) -> None:
    """The command as it is installed: refused where nothing can be locked, deaf to a signal."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    workspace.write("file_index/chunked/one.md", "The pump needs care.\n")
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"inject={injected}"]
    done = subprocess.run(
        [*command, sys.executable, "-m", "filestore", "sync"],
        cwd=workspace.folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "attach" in done.stderr or "ptrace" in done.stderr:
        pytest.skip(f"strace cannot watch a process here: {done.stderr}")
    assert check(done), done
    workspace("sync")
    workspace.assert_settled()

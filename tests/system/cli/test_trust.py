"""`filestore trust`: what a store would reach is shown first, and allowed only then."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def strange(workspace: Any) -> Any:
    """A store with a record that names an original outside the work tree."""
    workspace.write("note.md", "Words of the note.\n")
    workspace("add", "note.md")
    (path,) = workspace.chunked.glob("*/meta.json")
    record = json.loads(path.read_bytes())
    outside = str(workspace.folder.parent / "diary.md")
    record["source"] = outside
    for document in record["documents"]:
        document["source"] = outside
    path.write_text(json.dumps(record))
    workspace.sync(code=None)
    return workspace


def on_terminal(workspace: Any, *words: str, answer: bytes) -> tuple[int, str]:
    """Run one command with a terminal as its input, and an answer typed ahead."""
    leader, follower = pty.openpty()
    os.write(leader, answer)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    done = subprocess.run(
        [sys.executable, "-m", "filestore", *words],
        cwd=workspace.folder,
        env=environment,
        stdin=follower,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(follower)
    os.close(leader)
    return done.returncode, done.stdout + done.stderr


def test_a_list_allows_nothing(strange: Any) -> None:
    """What would be allowed is shown as often as one likes, and stays forbidden."""
    for _ in range(2):
        assert "1 original outside the work tree" in strange("trust", "--list").stdout
        listed = strange.json("trust", "--list")
        assert (listed["reaches"], "trusted" in listed) == (["sources"], False)
    assert "source-missing" not in strange.drift()
    assert strange.json("trust")["trusted"] is True
    assert "source-missing" in strange.drift()


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 4)])
def test_a_person_is_asked(strange: Any, answer: bytes, code: int) -> None:
    """On a terminal the originals are named before the question, and only a yes allows them."""
    found, seen = on_terminal(strange, "trust", answer=answer)
    assert found == code
    assert seen.find("diary.md") > 0
    assert "allow it? [y/N]" in seen
    assert ("source-missing" in strange.drift()) == (code == 0)


def test_yes_is_not_asked(strange: Any) -> None:
    """Who said yes beforehand is not asked on a terminal either."""
    found, seen = on_terminal(strange, "trust", "--yes", answer=b"")
    assert found == 0
    assert "[y/N]" not in seen
    assert "source-missing" in strange.drift()

"""Which views of earlier commits are kept, and what the command says of them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.past import views
from tests.system.past.histories import History


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Documents in place, with a few commits."""
    made = History(tmp_path / "kb", layout="in-place", seed=6)
    made.grow(5)
    return made


def kept(history: History) -> set[str]:
    """The folders of the views there are."""
    past = history.root / ".filestore" / "past"
    return {path.name for path in past.iterdir() if path.is_dir()}


def test_the_views_unused_for_longest_go(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that somebody reads stays, whatever its age."""
    monkeypatch.setattr(views, "MOST_VIEWS", 3)
    with filestore.open(history.root) as store:
        first = store.at(history.commits[0])
        (held,) = kept(history)
        for commit in history.commits[1:]:
            with store.at(commit) as then:
                assert then.search("garden").hits
            used = history.root / ".filestore" / "past" / held / "used"
            os.utime(used, (1, 1))
        assert held in kept(history)
        assert len(kept(history)) <= 4
        assert first.search("garden").hits
        first.close()
        os.utime(used, (1, 1))
        history.git("commit", "-q", "--allow-empty", "-m", "one more")
        with store.at("HEAD") as then:
            assert then.search("garden").hits
    assert held not in kept(history)
    assert len(kept(history)) == 3


def test_what_takes_too_much_room_goes(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest stays, however large it is."""
    monkeypatch.setattr(views, "MOST_BYTES", 1)
    with filestore.open(history.root) as store:
        for commit in history.commits:
            with store.at(commit) as then:
                assert then.search("garden").hits
            assert len(kept(history)) == 1


def test_the_command_names_the_commit(history: History, run: Any) -> None:
    """In words on stderr, and as `at` in JSON; nothing is found is 1 as ever."""
    commit = history.commits[1]
    done = run("search", "--at", "HEAD~3", "garden", "-l", cwd=history.root)
    assert done.code == 0
    assert f"commit {commit[:12]} of " in done.stderr
    assert done.stdout.startswith("notes/")
    said = json.loads(run("search", "--at", "HEAD~3", "garden", "--json", cwd=history.root).stdout)
    assert said["at"]["commit"] == commit
    assert said["at"]["not_embedded"] == 0
    assert said["root"] == str(history.root)
    assert "at" not in json.loads(run("search", "garden", "--json", cwd=history.root).stdout)
    nothing = run("search", "--at", "HEAD~3", "--mode", "keyword", "qqqqq", cwd=history.root)
    assert (nothing.code, nothing.stdout) == (1, "nothing found\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--at", "nothing"), "no commit 'nothing' in this repository"),
        (("--embed",), "--embed is for --at"),
        (("--at", "HEAD", "--beside"), "--beside"),
    ],
)
def test_what_cannot_be_asked(
    history: History, run: Any, words: tuple[str, ...], said: str
) -> None:
    """It is said, with what to do instead."""
    done = run("search", "garden", *words, cwd=history.root)
    assert done.code in (2, 3)
    assert said in done.stderr


def test_what_lies_in_the_sidecar_is_no_drift(history: History, run: Any) -> None:
    """Views are parts of it, and go with it."""
    with filestore.open(history.root) as store:
        with store.at("HEAD~1") as then:
            assert then.search("garden").hits
        assert [one.code for one in store.verify(level="full")] == []
        assert [one.code for one in store.status().findings] == []
    assert history.git("status", "--porcelain") == ""


def test_a_sidecar_that_cannot_be_written(history: History, run: Any) -> None:
    """A view is then made elsewhere, and goes with the command."""
    sidecar = history.root / ".filestore"
    words = ["search", "--at", "HEAD~1", "garden", "-l"]
    said = run(*words, cwd=history.root).stdout
    shutil.rmtree(sidecar / "past")
    filestore_words = f"{sys.executable} -m filestore"
    script = (
        f"mount --bind {sidecar} {sidecar} && mount -o remount,ro,bind {sidecar} && cd"
        f" {history.root} && {filestore_words} {' '.join(words)} && {filestore_words} log garden"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if "mount:" in done.stderr:
        pytest.skip("nothing can be mounted here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(said)
    assert not (sidecar / "past").exists()


@pytest.mark.parametrize("damage", ["no settings", "no tree", "a pipe"])
def test_a_view_that_lost_its_tree_is_made_again(history: History, damage: str) -> None:
    """Whatever a kill or a person left of it, the commit is answered for."""
    with filestore.open(history.root) as store:
        store.at("HEAD").close()
        (name,) = kept(history)
        tree = history.root / ".filestore" / "past" / name / "tree"
        if damage == "no settings":
            (tree / "filestore.toml").unlink()
        else:
            shutil.rmtree(tree)
        if damage == "a pipe":
            os.mkfifo(tree)
        with store.at("HEAD") as then:
            assert then.search("garden").hits

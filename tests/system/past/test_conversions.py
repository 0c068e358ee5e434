"""Commits whose files git stores otherwise than they lie in the work tree."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.git.process import NoAnswerError
from filestore.past.commits import NOTE, NoRevisionError
from tests.system.past.histories import History


@pytest.fixture
def filtered(tmp_path: Path) -> History:
    """A store whose notes go through a filter: what git has of them is turned around."""
    history = History(tmp_path / "kb", layout="in-place", seed=8)
    history.git("config", "filter.turned.clean", "rev")
    history.git("config", "filter.turned.smudge", "rev")
    (history.folder / ".gitattributes").write_text("*.md filter=turned\n")
    history.grow(1)
    (history.folder / "notes" / "a.md").write_text("# Zebra\n\nThe zebra sleeps.\n")
    for note in history.notes:
        # A file that is as young as the index git would compare by what it stores.
        os.utime(note, (1_700_000_000, 1_700_000_000))
    with filestore.open(history.root) as store:
        store.sync()
    history.git("add", "-A")
    history.git("commit", "-q", "-m", "a zebra")
    assert (
        b".speels"
        in subprocess.run(
            ["git", "cat-file", "blob", "HEAD:notes/a.md"],
            cwd=history.folder,
            capture_output=True,
            check=True,
        ).stdout
    )
    return history


def test_what_did_not_change_is_taken_from_the_work_tree(filtered: History) -> None:
    """A filter is a program of the repository's: it is never run."""
    with filestore.open(filtered.root) as store, store.at("HEAD") as then:
        (hit,) = then.search("zebra", mode="keyword")
        assert (hit.document, hit.line, hit.freshness) == ("notes/a.md", 3, "fresh")
        assert then.search("zebra").notes == ()


def test_what_changed_since_is_read_as_git_stores_it(filtered: History) -> None:
    """That is said."""
    (filtered.folder / "notes" / "a.md").write_text("# Horse\n\nThe horse sleeps.\n")
    filtered.git("commit", "-qam", "a horse")
    with filestore.open(filtered.root) as store:
        store.sync()
        with store.at("HEAD~1") as then:
            answer = then.search("zebra", mode="keyword", syntax="plain")
            assert not answer.hits
            assert NOTE in answer.notes
        with store.at("HEAD~1") as then:
            assert NOTE in then.search("zebra").notes


def test_a_partial_clone_says_how_to_get_the_rest(tmp_path: Path) -> None:
    """An ordinary fetch brings no blob that was left out."""
    history = History(tmp_path / "kb", layout="in-place", seed=13)
    history.grow(3)
    history.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    words = ["git", "clone", "-q", "--filter=blob:none", f"file://{history.folder}", str(clone)]
    subprocess.run(words, check=True)
    with filestore.open(clone) as store:
        store.sync()
        with pytest.raises(NoAnswerError, match="partial clone") as caught:
            store.at(history.commits[0])
        subprocess.run(caught.value.remedy.split(), cwd=clone, check=True, capture_output=True)
        with store.at(history.commits[0]) as then:
            assert then.search("garden", mode="keyword").hits


def test_a_name_of_several_things(tmp_path: Path) -> None:
    """Git would take the tag, and warn."""
    history = History(tmp_path / "kb", layout="in-place", seed=14)
    history.grow(2)
    history.git("branch", "both", "HEAD")
    history.git("tag", "both", "HEAD~1")
    with filestore.open(history.root) as store:
        with pytest.raises(NoRevisionError, match="several things"):
            store.at("both")
        with store.at("refs/heads/both") as then:
            assert then.commit.commit == history.commits[1]


def test_a_commit_of_a_time_that_is_none(tmp_path: Path, run: Any) -> None:
    """A commit may claim any second."""
    history = History(tmp_path / "kb", layout="in-place", seed=15)
    history.grow(1)
    note = history.notes[0]
    note.write_text("# Later\n\nThe zebra came later.\n")
    words = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qam", "late"]
    when = {"GIT_COMMITTER_DATE": "@99999999999 +0000", "GIT_AUTHOR_DATE": "@99999999999 +0000"}
    subprocess.run(words, cwd=history.folder, env=os.environ | when, check=True)
    for said in (
        run("search", "--at", "HEAD", "zebra", "--mode", "keyword", cwd=history.root),
        run("log", "zebra", "--mode", "keyword", cwd=history.root),
    ):
        assert said.code == 0
        assert "Traceback" not in said.stderr

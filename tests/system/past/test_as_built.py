"""What a store answers at a commit is what a store answers that is built from its checkout."""

import os
import subprocess
from pathlib import Path

import pytest

import filestore
from tests.system.past.histories import History, answers, queries_of, seen

BUNDLE = os.environ.get("FILESTORE_VAULT_BUNDLE", "")
"""A git bundle of real notes, whose history is tried as well where one is named."""


def assert_as_built(history: History, commits: list[str], folder: Path) -> None:
    """Compare answers at some commits; nothing beside the sidecar may change."""
    before = seen(history.folder)
    with filestore.open(history.root) as store:
        for number, commit in enumerate(commits):
            root = history.built(commit, folder / "checkout")
            queries = queries_of(root, 4, number)
            with store.at(commit, embed=True) as then, filestore.open(root) as built:
                assert list(answers(then, queries)) == list(answers(built, queries)), commit
                assert then.not_embedded == 0
    after = seen(history.folder)
    git = str(history.folder / ".git")
    assert {path: one for path, one in after.items() if not path.startswith(git)} == {
        path: one for path, one in before.items() if not path.startswith(git)
    }


@pytest.mark.parametrize("layout", ["tree", "flat", "in-place"])
def test_each_commit_answers_as_its_checkout(layout: str, tmp_path: Path) -> None:
    """Files came, went, moved, were edited and ignored since."""
    history = History(tmp_path / "kb", layout=layout, seed=11)
    history.grow(7)
    assert_as_built(history, history.commits, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", ["tree", "flat", "in-place"])
def test_a_long_history_answers_as_its_checkouts(layout: str, tmp_path: Path) -> None:
    """The same over many commits."""
    history = History(tmp_path / "kb", layout=layout, seed=5)
    history.grow(20)
    assert_as_built(history, history.commits, tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not BUNDLE, reason="no FILESTORE_VAULT_BUNDLE is named")
def test_a_real_history_answers_as_its_checkouts(tmp_path: Path) -> None:
    """Real notes, at 200 of their commits."""
    history = History(tmp_path / "vault", layout="in-place", seed=1)
    history.git("fetch", "-q", BUNDLE, "main")
    history.git("reset", "-q", "--hard", "FETCH_HEAD")
    with filestore.create(history.root, layout="in-place", embedder="builtin") as store:
        store.sync()
    commits = history.git("rev-list", "HEAD").split()
    step = max(1, len(commits) // 200)
    assert_as_built(history, commits[::step][:200], tmp_path)


def test_nothing_is_embedded_that_was_embedded_once(tmp_path: Path) -> None:
    """The vectors of texts that are gone are still there."""
    history = History(tmp_path / "kb", layout="in-place", seed=3)
    history.grow(6)
    with filestore.open(history.root) as store:
        for commit in history.commits:
            with store.at(commit) as then:
                assert then.not_embedded == 0


def test_what_was_never_embedded_is_said_and_embedded_on_request(tmp_path: Path) -> None:
    """A clone has the files of an old commit, and no vector of them."""
    history = History(tmp_path / "kb", layout="in-place", seed=4)
    history.grow(5)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(history.folder), str(clone)], check=True)
    with filestore.open(clone) as store:
        store.sync()
        with store.at(history.commits[0]) as then:
            answer = then.search("garden harbour")
            assert answer.at is not None
            assert answer.at.not_embedded == then.not_embedded > 0
            assert "never embedded" in answer.notes[0]
        with store.at(history.commits[0], embed=True) as then:
            assert then.not_embedded == 0
            assert then.search("garden harbour").notes == ()
        with store.at(history.commits[0]) as then:
            assert then.not_embedded == 0
